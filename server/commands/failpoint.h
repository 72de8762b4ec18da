/* Fail points: what driver tests turn on to see errors. Only with setParameter enableTestCommands=1. */
#ifndef OV_FAILPOINT_H
#define OV_FAILPOINT_H

#include "server/commands/command.h"

struct failpoints;
struct failpoints *failpoints_new(void);
void failpoints_free(struct failpoints *f); /* accepts NULL */

/* What failCommand wants of one command. Lives in the operation's arena. */
struct failpoint_hit {
    bool close_connection;
    int error_code;   /* 0: none */
    int64_t block_ms; /* wait so long first; 0: not */
    bool has_labels;
    const uint8_t *labels;              /* the array of errorLabels, which replaces the server's own */
    const uint8_t *write_concern_error; /* document, or NULL */
};

/* Is a fail point on for this command? NULL (by one atomic load when none is set), or what is to be done; counts it. Thread: any. */
const struct failpoint_hit *failpoint_check(struct command_ctx *cx);

/* For dispatch, of a command with a hit. Before each step: waits out the block, closes the connection, fails. True: the step ends with *out. */
bool failpoint_acts(struct command_ctx *cx, enum op_status *out);
/* Writes errorLabels as asked for; true: the server's own are left out. Without a hit: false. */
bool failpoint_labels(struct command_ctx *cx);
/* Adds the writeConcernError asked for to the reply of a write that succeeded, and returns it; NULL: none. */
const uint8_t *failpoint_write_concern(struct command_ctx *cx);

/* onPrimaryTransactionalWrite. Is it on at all? */
bool failpoint_on_commit(const struct command_ctx *cx);
/* A batch of a retryable write is about to be committed: may close the connection, counts. True: it must not be, op.err tells. */
bool failpoint_fails_commit(struct command_ctx *cx);

enum op_status cmd_configure_fail_point(struct command_ctx *cx);
extern const char *const configure_fail_point_fields[];

#endif
