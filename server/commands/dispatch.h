/* What the parts of dispatch share: dispatch.c (the life of a command), generic.c (arguments that every command takes). */
#ifndef OV_DISPATCH_H
#define OV_DISPATCH_H

#include "server/commands/command.h"

/* Checks all top-level fields of the request, known ones by cx->cmd and the generic ones, and reads the latter into *cx: deadline, write concern.
 * Nonzero: op.err is set. */
OV_MUST_CHECK int generic_args(struct command_ctx *cx);

/* Appends topologyVersion: {processId, counter}. */
void put_topology_version(struct command_ctx *cx);

#endif
