/* bulkWrite: writes to several collections in one command. */
#ifndef OV_COMMANDS_BULK_WRITE_H
#define OV_COMMANDS_BULK_WRITE_H

#include "server/commands/command.h"

enum op_status cmd_bulk_write(struct command_ctx *cx);
extern const char *const bulk_write_fields[];

#endif
