/* Handlers of administration, for table.c: rename.c, stats.c, coll_mod.c, validate.c, current_op.c, rw_concern_defaults.c, flush.c. */
#ifndef OV_COMMANDS_ADMIN_H
#define OV_COMMANDS_ADMIN_H

#include "server/commands/command.h"

enum op_status cmd_rename_collection(struct command_ctx *cx);

extern const char *const rename_collection_fields[];

#endif
