/* The commands. One row each; its function is in the file of its family. */
#include "server/commands/admin.h"
#include "server/commands/bulk_write.h"
#include "server/commands/crud_read.h"
#include "server/commands/crud_write.h"
#include "server/commands/ddl.h"
#include "server/commands/diagnostic.h"
#include "server/commands/failpoint.h"

#define V1 CMD_API_V1
static const char *const none[] = {NULL};
static const char *const connection_status_fields[] = {"showPrivileges", NULL};
static const char *const shutdown_fields[] = {"force", "timeoutSecs", NULL};

const struct command commands[] = {
    /* name, flags, handler, own fields, second spelling, help */

    /* documents */
    {"find", CMD_READ | CMD_READ_CONCERN | CMD_CURSOR | CMD_NO_COUNT | V1, cmd_find, find_fields, NULL,
     "documents that match a filter"},
    {"getMore", CMD_READ | CMD_CURSOR | CMD_NO_COUNT | V1, cmd_get_more, get_more_fields, NULL,
     "the next batch of a cursor"},
    {"insert", CMD_WRITE | CMD_NO_COUNT | CMD_RETRY | V1, cmd_insert, insert_fields, NULL, "stores documents"},
    {"bulkWrite", CMD_ADMIN | CMD_WRITE | CMD_CURSOR | CMD_NO_COUNT | CMD_RETRY | V1, cmd_bulk_write, bulk_write_fields,
     NULL, "writes to several collections"},
    {"update", CMD_WRITE | CMD_NO_COUNT | CMD_RETRY | V1, cmd_update, update_fields, NULL, "changes documents"},
    {"delete", CMD_WRITE | CMD_NO_COUNT | CMD_RETRY | V1, cmd_delete, delete_fields, NULL, "removes documents"},
    {"findAndModify", CMD_WRITE | CMD_RETRY | V1, cmd_find_and_modify, find_and_modify_fields, "findandmodify",
     "changes or removes one document and returns it"},
    {"killCursors", CMD_READ | V1, cmd_kill_cursors, kill_cursors_fields, NULL, "closes cursors"},
    {"count", CMD_READ | CMD_READ_CONCERN | V1, cmd_count, count_fields, NULL, "how many documents match"},
    {"distinct", CMD_READ | CMD_READ_CONCERN, cmd_distinct, distinct_fields, NULL, "the different values of a field"},
    {"explain", CMD_READ | CMD_READ_CONCERN | V1, cmd_explain, explain_fields, NULL, "how a command would be run"},
    {"aggregate", CMD_READ | CMD_READ_CONCERN | CMD_WRITE | CMD_CURSOR | V1, cmd_aggregate, aggregate_fields, NULL,
     "runs a pipeline"},

    /* collections, databases, indexes */
    {"create", CMD_WRITE | V1, cmd_create, create_fields, NULL, "makes a collection"},
    {"drop", CMD_WRITE | V1, cmd_drop, drop_fields, NULL, "removes a collection and its indexes"},
    {"renameCollection", CMD_WRITE | CMD_ADMIN, cmd_rename_collection, rename_collection_fields, NULL,
     "gives a collection another name"},
    {"collMod", CMD_WRITE | V1, cmd_coll_mod, coll_mod_fields, NULL, "changes options of a collection"},
    {"dropDatabase", CMD_WRITE | V1, cmd_drop_database, drop_database_fields, NULL, "removes a database"},
    {"listDatabases", CMD_READ | CMD_ADMIN | V1, cmd_list_databases, list_databases_fields, NULL, "the databases"},
    {"listCollections", CMD_READ | CMD_CURSOR | V1, cmd_list_collections, list_collections_fields, NULL,
     "the collections of a database"},
    {"createIndexes", CMD_WRITE | V1, cmd_create_indexes, create_indexes_fields, NULL, "builds indexes"},
    {"listIndexes", CMD_READ | CMD_CURSOR | V1, cmd_list_indexes, list_indexes_fields, NULL,
     "the indexes of a collection"},
    {"dropIndexes", CMD_WRITE | V1, cmd_drop_indexes, drop_indexes_fields, "deleteIndexes", "removes indexes"},

    /* figures */
    {"collStats", CMD_READ, cmd_coll_stats, coll_stats_fields, "collstats", "sizes of a collection"},
    {"dbStats", CMD_READ, cmd_db_stats, db_stats_fields, "dbstats", "sizes of a database"},
    {"validate", CMD_READ, cmd_validate, validate_fields, NULL, "compares documents and indexes of a collection"},
    {"dataSize", CMD_READ, cmd_data_size, data_size_fields, "datasize", "bytes of a collection's documents"},

    /* what clients ask first */
    {"hello", CMD_NO_AUTH | CMD_NO_COMPRESS | CMD_ANY_WC | V1, cmd_hello, NULL, NULL,
     "who is this, and what can it do"},
    {"isMaster", CMD_NO_AUTH | CMD_NO_COMPRESS | CMD_ANY_WC, cmd_hello, NULL, "ismaster", "hello of older clients"},
    {"ping", CMD_NO_AUTH | CMD_ANY_WC | V1, cmd_ping, none, NULL, "answers"},
    {"buildInfo", CMD_NO_AUTH | CMD_ANY_WC, cmd_build_info, none, "buildinfo", "version and build of the server"},
    {"testVersion2", CMD_ANY_WC | CMD_TEST, cmd_ping, none, NULL, "no part of the stable API: for tests of apiStrict"},
    {"whatsmyuri", CMD_NO_AUTH | CMD_ANY_WC, cmd_whatsmyuri, none, NULL, "the client's address"},
    {"connectionStatus", CMD_NO_AUTH | CMD_ANY_WC, cmd_connection_status, connection_status_fields, NULL,
     "the users of this connection"},

    /* search indexes: refused as by a server without a search service */
    {"createSearchIndexes", 0, cmd_search_indexes, NULL, NULL, "makes search indexes"},
    {"updateSearchIndex", 0, cmd_search_indexes, NULL, NULL, "changes a search index"},
    {"dropSearchIndex", 0, cmd_search_indexes, NULL, NULL, "removes a search index"},
    {"listSearchIndexes", 0, cmd_search_indexes, NULL, NULL, "the search indexes"},

    /* sessions */
    {"startSession", CMD_ANY_WC, cmd_start_session, none, NULL, "starts a logical session"},
    {"refreshSessions", CMD_ANY_WC | V1, cmd_refresh_sessions, none, NULL, "keeps logical sessions alive"},
    {"endSessions", CMD_NO_AUTH | CMD_ANY_WC | V1, cmd_end_sessions, none, NULL, "ends logical sessions"},

    /* administration */
    {"serverStatus", CMD_ANY_WC, cmd_server_status, NULL, NULL, "figures of the server"},
    {"getParameter", CMD_ADMIN | CMD_ANY_WC, cmd_get_parameter, NULL, NULL, "reads parameters"},
    {"setParameter", CMD_ADMIN | CMD_ANY_WC, cmd_set_parameter, NULL, NULL, "changes a parameter"},
    {"hostInfo", CMD_ADMIN | CMD_ANY_WC, cmd_host_info, none, NULL, "the machine"},
    {"getCmdLineOpts", CMD_ADMIN | CMD_ANY_WC, cmd_get_cmd_line_opts, none, NULL, "the settings as given"},
    {"getLog", CMD_ADMIN | CMD_ANY_WC, cmd_get_log, none, NULL, "the newest lines of the log"},
    {"currentOp", CMD_ADMIN | CMD_ANY_WC, cmd_current_op, NULL, "currentop", "the commands under way"},
    {"killOp", CMD_ADMIN | CMD_ANY_WC, cmd_kill_op, kill_op_fields, "killop", "ends a command under way"},
    {"getDefaultRWConcern", CMD_ADMIN | CMD_ANY_WC, cmd_get_default_rw_concern, get_default_rw_concern_fields, NULL,
     "the concerns of commands that name none"},
    {"setDefaultRWConcern", CMD_ADMIN | CMD_ANY_WC, cmd_set_default_rw_concern, set_default_rw_concern_fields, NULL,
     "changes them"},
    {"fsync", CMD_ADMIN | CMD_ANY_WC, cmd_fsync, fsync_fields, NULL, "flushes what is in memory"},
    {"fsyncUnlock", CMD_ADMIN | CMD_ANY_WC, cmd_fsync_unlock, none, NULL, "ends the lock of fsync"},
    {"logRotate", CMD_ADMIN | CMD_ANY_WC, cmd_log_rotate, none, NULL, "opens the log file anew"},
    {"listCommands", CMD_NO_AUTH | CMD_ANY_WC, cmd_list_commands, none, NULL, "this list"},
    {"shutdown", CMD_ADMIN | CMD_ANY_WC, cmd_shutdown, shutdown_fields, NULL, "ends the server"},
    {"configureFailPoint", CMD_ADMIN | CMD_ANY_WC | CMD_TEST, cmd_configure_fail_point, configure_fail_point_fields,
     NULL, "makes commands fail, for tests of drivers"},

    {NULL, 0, NULL, NULL, NULL, NULL},
};
