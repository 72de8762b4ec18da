/* The commands under way, for currentOp and killOp. One that is done with its first step never gets here: the way of most has no lock. */
#ifndef OV_COMMANDS_RUNNING_H
#define OV_COMMANDS_RUNNING_H

#include "server/commands/command.h"

struct running;
struct running *running_new(void);
void running_free(struct running *r); /* nothing runs any more; accepts NULL */

/* Enters the command, once; it stays until running_remove. Thread: the command's, in a step. */
void running_add(struct command_ctx *cx);
void running_remove(struct command_ctx *cx); /* if it was entered */
/* Interrupts it (11601). False: there is none. Thread: any. */
bool running_kill(struct running *r, int64_t opid);
/* fn for each, under the lock of its shard: what the context points to stays meanwhile; what its steps write is not to be read. */
void running_each(struct running *r, void (*fn)(void *arg, const struct command_ctx *cx), void *arg);

#endif
