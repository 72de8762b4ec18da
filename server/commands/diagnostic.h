/* Handlers of the handshake, of sessions, parameters and diagnostics, for table.c. */
#ifndef OV_COMMANDS_DIAGNOSTIC_H
#define OV_COMMANDS_DIAGNOSTIC_H

#include "server/commands/command.h"

/* handshake.c */
enum op_status cmd_hello(struct command_ctx *cx); /* hello, isMaster */

/* diagnostic.c */
enum op_status cmd_ping(struct command_ctx *cx);
enum op_status cmd_build_info(struct command_ctx *cx);
enum op_status cmd_get_log(struct command_ctx *cx);
enum op_status cmd_connection_status(struct command_ctx *cx);
enum op_status cmd_whatsmyuri(struct command_ctx *cx);
enum op_status cmd_host_info(struct command_ctx *cx);
enum op_status cmd_get_cmd_line_opts(struct command_ctx *cx);
enum op_status cmd_list_commands(struct command_ctx *cx);
enum op_status cmd_shutdown(struct command_ctx *cx);

/* server_status.c */
enum op_status cmd_server_status(struct command_ctx *cx);

/* parameters.c */
enum op_status cmd_get_parameter(struct command_ctx *cx);
enum op_status cmd_set_parameter(struct command_ctx *cx);

/* sessions.c */
enum op_status cmd_start_session(struct command_ctx *cx);
enum op_status cmd_refresh_sessions(struct command_ctx *cx);
enum op_status cmd_end_sessions(struct command_ctx *cx);

#endif
