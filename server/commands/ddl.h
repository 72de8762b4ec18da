/* Handlers of collections, databases and indexes, for table.c: ddl.c, lists.c, indexes.c, search_indexes.c. */
#ifndef OV_COMMANDS_DDL_H
#define OV_COMMANDS_DDL_H

#include "server/commands/command.h"

enum op_status cmd_create(struct command_ctx *cx);
enum op_status cmd_drop(struct command_ctx *cx);
enum op_status cmd_drop_database(struct command_ctx *cx);
enum op_status cmd_list_databases(struct command_ctx *cx);
enum op_status cmd_list_collections(struct command_ctx *cx);
enum op_status cmd_create_indexes(struct command_ctx *cx);
enum op_status cmd_list_indexes(struct command_ctx *cx);
enum op_status cmd_drop_indexes(struct command_ctx *cx);
enum op_status cmd_search_indexes(struct command_ctx *cx); /* each of the commands about search indexes */

extern const char *const create_fields[], *const drop_fields[], *const drop_database_fields[],
                                                                    *const list_databases_fields[],
                                                                        *const list_collections_fields[],
                                                                            *const create_indexes_fields[],
                                                                                *const list_indexes_fields[],
                                                                                    *const drop_indexes_fields[];

/* For handlers that call the catalog step by step: interrupts and what is pending in the catalog. Sets cx->cleanup. */
void ddl_begin(struct command_ctx *cx);
/* DDL_OK: false. Else the handler returns *out now. */
bool ddl_stops(struct command_ctx *cx, enum ddl_result r, enum op_status *out);

#endif
