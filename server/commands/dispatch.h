/* What the parts of dispatch share: dispatch.c (the life of a command), generic.c (arguments that every command takes). */
#ifndef OV_DISPATCH_H
#define OV_DISPATCH_H

#include "server/commands/command.h"

/* Checks all top-level fields of the request, known ones by cx->cmd and the generic ones, and reads the latter into *cx: deadline, write concern.
 * Nonzero: op.err is set. */
OV_MUST_CHECK int generic_args(struct command_ctx *cx);

/* Appends topologyVersion: {processId, counter}. */
void put_topology_version(struct command_ctx *cx);

/* write_concern.c. Reads the field writeConcern; nonzero: op.err is set. */
OV_MUST_CHECK int write_concern_read(struct command_ctx *cx, const struct belem *e);
/* The readConcern of the body. `any_level`: the command takes others than local, too. */
OV_MUST_CHECK int read_concern_check(struct command_ctx *cx, bool any_level);
void write_concern_put_error(struct command_ctx *cx); /* writeConcernError into the reply of a write, if there is one */

#endif
