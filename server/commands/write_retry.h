/* Retryable writes, as the commands that write see them: session and statement ids out of the request, answers to retries. */
#ifndef OV_WRITE_RETRY_H
#define OV_WRITE_RETRY_H

#include "server/commands/command.h"
#include "server/session/retry.h"

struct write_retry {
    struct retry retry; /* first */
    struct command_ctx *cx;
    bool (*put)(struct write_outcomes *o, struct eng_txn *t); /* retry's own, while a fail point stands before it */
    struct bval ids;                                          /* stmtIds; BSON_TYPE_EOD: they count up from `first` */
    struct biter next_id;
    int32_t first;
    struct buf retried; /* elements of the reply's retriedStmtIds */
    uint32_t n_retried;
};

/* Sets *out: NULL unless the command carries a txnNumber. `statements`: how many there are. Nonzero: op.err is set. */
OV_MUST_CHECK int write_retry_new(struct command_ctx *cx, uint32_t statements, struct write_retry **out);
/* Takes the session. True: go on; else the handler returns *status. */
OV_MUST_CHECK bool write_retry_begin(struct command_ctx *cx, struct write_retry *r, enum op_status *status);
/* The next statement, number `index` of the command, comes in hand. What it did when it was first sent, listed as retried; NULL: run it. */
const struct retry_statement *write_retry_next(struct write_retry *r, uint32_t index);
void write_retry_reply(const struct write_retry *r,
                       struct buf *reply);   /* retriedStmtIds, if there are any. Accepts NULL */
void write_retry_end(struct write_retry *r); /* as retry_end; accepts NULL */

#endif
