/* Handlers of commands that write documents, for table.c. */
#ifndef OV_COMMANDS_CRUD_WRITE_H
#define OV_COMMANDS_CRUD_WRITE_H

#include "server/commands/command.h"

enum op_status cmd_insert(struct command_ctx *cx);
enum op_status cmd_update(struct command_ctx *cx);
enum op_status cmd_delete(struct command_ctx *cx);
enum op_status cmd_find_and_modify(struct command_ctx *cx); /* alias: findandmodify */

extern const char *const insert_fields[];
extern const char *const update_fields[];
extern const char *const delete_fields[];
extern const char *const find_and_modify_fields[];

#endif
