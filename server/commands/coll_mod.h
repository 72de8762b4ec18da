/* Options of collections that create sets and collMod changes. */
#ifndef OV_COMMANDS_COLL_MOD_H
#define OV_COMMANDS_COLL_MOD_H

#include "server/commands/command.h"

/* The options of db.name as they become: those of `old` with what the command asks for, as a document in the command's arena. NULL: cx->op.err.
 * Options that are neither kept nor refused by the caller are not touched. */
const uint8_t *options_merge(struct command_ctx *cx, const char *name, const uint8_t *old);

#endif
