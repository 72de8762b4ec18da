/* Fields of the statements of update and delete, and of findAndModify: types, and what is refused by name. */
#ifndef OV_WRITE_ARGS_H
#define OV_WRITE_ARGS_H

#include "server/commands/command.h"

/* `where` is "update.updates": it stands in messages. Each returns the code, 0 if all is well. */
OV_MUST_CHECK int write_arg_type(struct command_ctx *cx, const char *where, const struct belem *e, const char *wanted);
OV_MUST_CHECK int write_arg_doc(struct command_ctx *cx, const char *where, const struct belem *e, const uint8_t **out);
OV_MUST_CHECK int write_arg_bool(struct command_ctx *cx, const char *where, const struct belem *e, bool *out);
OV_MUST_CHECK int write_arg_hint(struct command_ctx *cx, const char *where, const struct belem *e, struct bval *out);
OV_MUST_CHECK int write_arg_array(struct command_ctx *cx, const char *where, const struct belem *e, struct bval *out);
OV_MUST_CHECK int write_arg_update(struct command_ctx *cx, const struct belem *e, struct bval *out);
/* The simple collation is what we have; another one is refused. */
OV_MUST_CHECK int write_arg_collation(struct command_ctx *cx, const char *where, const struct belem *e);
/* let, c: variables of expressions. Empty ones do no harm. */
OV_MUST_CHECK int write_arg_variables(struct command_ctx *cx, const char *where, const struct belem *e);
/* With bypassEmptyTsReplacement: a replacement that holds what is not to be replaced is refused, for it would be. */
OV_MUST_CHECK int write_arg_empty_ts(struct command_ctx *cx, struct bval update);
OV_MUST_CHECK int write_arg_unknown(struct command_ctx *cx, const char *where, const struct belem *e);
OV_MUST_CHECK int write_arg_missing(struct command_ctx *cx, const char *where, const char *field);

extern const uint8_t WRITE_EMPTY_DOC[5];

#endif
