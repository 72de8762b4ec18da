/* The options of create. */
#ifndef OV_CREATE_OPTIONS_H
#define OV_CREATE_OPTIONS_H

#include "server/commands/command.h"

/* Are they well-formed, do they go together, and is what they ask for there? The code of the error otherwise. */
OV_MUST_CHECK int create_options_check(struct command_ctx *cx);

#endif
