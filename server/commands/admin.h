/* Handlers of administration, for table.c: rename.c, stats.c, coll_mod.c, validate.c, current_op.c, rw_concern_defaults.c, flush.c. */
#ifndef OV_COMMANDS_ADMIN_H
#define OV_COMMANDS_ADMIN_H

#include "server/commands/command.h"

enum op_status cmd_rename_collection(struct command_ctx *cx);
enum op_status cmd_coll_stats(struct command_ctx *cx);
enum op_status cmd_db_stats(struct command_ctx *cx);
enum op_status cmd_data_size(struct command_ctx *cx);
enum op_status cmd_fsync(struct command_ctx *cx);
enum op_status cmd_fsync_unlock(struct command_ctx *cx);
enum op_status cmd_log_rotate(struct command_ctx *cx);
enum op_status cmd_coll_mod(struct command_ctx *cx);
enum op_status cmd_validate(struct command_ctx *cx);
enum op_status cmd_current_op(struct command_ctx *cx);
enum op_status cmd_kill_op(struct command_ctx *cx);
enum op_status cmd_get_default_rw_concern(struct command_ctx *cx);
enum op_status cmd_set_default_rw_concern(struct command_ctx *cx);

/* What was set before this start. Start-up only; blocks. */
OV_MUST_CHECK int rw_concern_defaults_load(struct server *s, struct err *err);

/* clang-format off */
extern const char *const rename_collection_fields[], *const coll_stats_fields[], *const db_stats_fields[],
    *const data_size_fields[], *const fsync_fields[], *const coll_mod_fields[], *const validate_fields[], *const kill_op_fields[],
    *const get_default_rw_concern_fields[], *const set_default_rw_concern_fields[];
/* clang-format on */

#endif
