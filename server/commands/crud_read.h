/* Handlers of reads, for table.c: find.c, get_more.c, count.c, aggregate.c, distinct.c, explain.c. */
#ifndef OV_COMMANDS_CRUD_READ_H
#define OV_COMMANDS_CRUD_READ_H

#include "server/commands/command.h"

enum op_status cmd_find(struct command_ctx *cx);
enum op_status cmd_get_more(struct command_ctx *cx);
enum op_status cmd_kill_cursors(struct command_ctx *cx);
enum op_status cmd_count(struct command_ctx *cx);
enum op_status cmd_aggregate(struct command_ctx *cx);
enum op_status cmd_distinct(struct command_ctx *cx);
enum op_status cmd_explain(struct command_ctx *cx);

extern const char *const find_fields[];
extern const char *const get_more_fields[];
extern const char *const kill_cursors_fields[];
extern const char *const count_fields[];
extern const char *const aggregate_fields[];
extern const char *const distinct_fields[];
extern const char *const explain_fields[];

#endif
