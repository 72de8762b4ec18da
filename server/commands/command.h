/* Commands: the table, the request, the context of a handler. No sockets, no OP_MSG: a handler gets a struct request and appends its reply. */
#ifndef OV_COMMAND_H
#define OV_COMMAND_H

#include "protocol/bson/bson.h"
#include "server/catalog/catalog.h"
#include "server/op/operation.h"
#include "storage/engine.h"

struct sequence { /* kind-1 section: documents back to back, each already checked */
    const char *name;
    const uint8_t *p;
    size_t n;
    uint32_t count;
};
struct request {
    const uint8_t *body; /* checked BSON; valid until the reply */
    const struct sequence *seqs;
    uint32_t n_seqs;
    const char *db;   /* of $db, or of the OP_QUERY namespace */
    const char *name; /* the command's name as sent (first field) */
    bool op_query;    /* came as OP_QUERY */
    bool no_reply;    /* moreToCome */
    bool exhaust_allowed;
    bool continued; /* a further round of an exhaust request: the client has just got the last reply */
    int32_t request_id;
};

struct
    client { /* a connection's memory: owned by net/, on its loop; handlers read and write it in the first step or in the reply */
    int64_t id;
    char addr[64];        /* peer "127.0.0.1:50000" */
    char local[64];       /* our end, for replica-set hello */
    uint32_t compressors; /* negotiated, bit per OP_COMPRESSED id; set by hello */
    bool got_metadata;
    char app_name[130];
    int64_t last_ts; /* last own timestamp (R13) */
    void *awaiting_hello;
};

struct server { /* everything that lives as long as the daemon */
    struct engine *engine;
    struct catalog *catalog;
    struct cursors *cursors; /* session/cursors.h */
    struct failpoints *failpoints;
    struct running *running;     /* commands/running.h; NULL: not kept */
    struct ttl *ttl;             /* ttl/ttl.h; NULL: nothing expires */
    const struct config *config; /* server/conf/config.h */
    const char *set_name;        /* the replica set's name; NULL: stand-alone */
    const char *advertised;      /* host:port that a replica set tells its clients; NULL: the address they came by */
    uint32_t compressors;        /* that may be negotiated: bit per OP_COMPRESSED id */
    uint8_t process_id[12];      /* topologyVersion.processId */
    int64_t start_wall_ms, start_mono_us;
    _Atomic int64_t connections, connections_total, requests, bytes_in, bytes_out;
    _Atomic int64_t op_insert, op_query, op_update, op_delete, op_getmore, op_command;
    _Atomic bool shutting_down;
    _Atomic bool default_is_unsynced; /* setDefaultRWConcern: writes that name no concern do not wait for the disk */
    void (*stop)(struct server *s);   /* asks the host to end the daemon; returns at once. Thread: any */
};

enum command_flags {
    CMD_READ = 1,
    CMD_WRITE = 2,
    CMD_ADMIN = 4 /* only on admin */,
    CMD_NO_AUTH = 8,
    CMD_CURSOR = 16,
    CMD_NO_COUNT = 32 /* counts itself: opcounters other than command */,
    CMD_NO_COMPRESS = 64,
    CMD_API_V1 = 128 /* part of the stable API */,
    CMD_RETRY = 256 /* takes a txnNumber */,
    CMD_ANY_WC = 512 /* no write, but a writeConcern does no harm */,
    CMD_TEST = 1024 /* unknown without enableTestCommands */,
    CMD_READ_CONCERN = 2048 /* takes read concerns other than local */,
};

struct command_ctx {     /* of one command; lives in its arena */
    struct operation op; /* first: the host sees this */
    struct server *server;
    struct client *client;
    const struct request *req;
    const struct command *cmd;
    struct eng_call call; /* its wake-up wakes op */
    struct buf *reply;    /* append the reply's FIELDS (inside an already opened document; "ok" is added by dispatch) */
    void *state;          /* the handler's, kept over steps; NULL at the first */
    bool exhaust_more;    /* handler: more replies follow (getMore, hello with exhaustAllowed) */
    bool extra_error_info;
    bool journaled;         /* write concern asks for j: true or w: "majority" */
    bool w0;                /* nobody asks what became of the write */
    const uint8_t *concern; /* writeConcern as sent; NULL: none was */
    int concern_code;       /* it cannot be satisfied: what the reply says once the write is done; 0: it can */
    const uint8_t *lsid;    /* the session's 16 bytes, in the request; NULL: none was given */
    bool has_txn_number;    /* a retryable write */
    int64_t txn_number;
    uint64_t own_ts;       /* handler: timestamp of its last commit; the client's later commands see it (R13) */
    bool wrote;            /* handler: something of this command is committed, though it may still fail */
    bool close_connection; /* the host closes the connection instead of replying (fail points, shutdown) */
    void (*cleanup)(struct command_ctx *cx); /* run once when the command ends in any way; may be NULL */
    size_t reply_at;                         /* dispatch's: where the reply document starts */
    bool refused;                            /* dispatch's: op.err was set before the handler came to run */
    const struct failpoint_hit *hit;         /* dispatch's: what a fail point wants of this command; NULL: nothing */
    int64_t blocked_until_us;                /* dispatch's: by a fail point */
    int32_t opid;                            /* running.c's: 0 while it is not in the lists */
    int64_t start_us;                        /* likewise */
    struct command_ctx *running_next, **running_at;
};
typedef enum op_status (*command_fn)(struct command_ctx *cx); /* DONE (op.err tells failure), AGAIN, WAIT */

struct command {
    const char *name; /* as users write it */
    uint32_t flags;
    command_fn fn;
    const char *const
        *fields;       /* allowed top-level fields beside the generic ones, NULL-terminated; NULL: not checked */
    const char *alias; /* a second spelling, or NULL */
    const char *help;
};
extern const struct command commands[];               /* table.c; ends with a NULL name */
const struct command *command_find(const char *name); /* exact, then the aliases; NULL if unknown */

/* dispatch.c: makes the context for a request (checks name, $db, fields, generic arguments, write concern, fail points); its op is ready to run.
 * Never NULL: what fails is an op that is done at its first step. When the op is DONE, command_finish closes the reply document: "ok", or the error
 * document in place of what was appended. */
struct command_ctx *command_start(struct server *s, struct client *c, const struct request *req, struct arena *a,
                                  struct buf *reply);
void command_finish(struct command_ctx *cx);

/* Typed access to command fields; errors 14 in the real server's words, "BSON field 'find.limit' is the wrong type …". Absent: default. */
OV_MUST_CHECK int arg_string(struct command_ctx *cx, const char *field, const char **out, bool required);
OV_MUST_CHECK int arg_doc(struct command_ctx *cx, const char *field,
                          const uint8_t **out); /* empty document when absent */
OV_MUST_CHECK int arg_i64(struct command_ctx *cx, const char *field, int64_t dflt, int64_t min,
                          int64_t *out); /* any number; < min: 51024 */
OV_MUST_CHECK int arg_bool(struct command_ctx *cx, const char *field, bool dflt, bool *out); /* bool or number */
/* The errors themselves, for what has no function of its own. `expected`: "type 'array'", "types '[string, object]'". Both return the code. */
int arg_wrong_type(struct command_ctx *cx, const char *field, struct bval v, const char *expected);
int arg_missing(struct command_ctx *cx, const char *field);
OV_MUST_CHECK int arg_collection(struct command_ctx *cx, const char **out); /* the first field's value; name rules 73 */
enum op_status command_fail(struct command_ctx *cx, int code, const char *fmt, ...)
    OV_PRINTF(3, 4); /* sets op.err, returns OP_DONE */
/* An engine result as the client's error (112, 14031, 11602 …). */
enum op_status command_engine_error(struct command_ctx *cx, enum eng_result r);

#endif
