/* Statement ids are the places in the command unless it numbers them itself (stmtId: the first one; stmtIds: each). */
#include "server/commands/write_retry.h"

#include "server/commands/failpoint.h"
#include "server/commands/write_args.h"

static int read_ids(struct command_ctx *cx, struct write_retry *r, uint32_t statements)
{
    struct bval list = bdoc_get(cx->req->body, "stmtIds");
    struct biter it;
    struct belem e;
    int64_t first;
    uint32_t n = 0;
    int rc = arg_i64(cx, "stmtId", 0, INT32_MIN, &first);
    if (rc != 0)
        return rc;
    if (first > INT32_MAX)
        return err_set(&cx->op.err, ERR_BAD_VALUE, "stmtId is out of range: %lld", (long long)first);
    r->first = (int32_t)first;
    r->ids = list;
    if (bval_is_missing(list))
        return 0;
    e = (struct belem){.name = "stmtIds", .v = list};
    if (list.type != BSON_TYPE_ARRAY)
        return write_arg_type(cx, cx->cmd->name, &e, " 'array'");
    for (biter_init(&it, bval_doc(list)); biter_next(&it, &e); n++)
        if (e.v.type != BSON_TYPE_INT32)
            return write_arg_type(cx, cx->cmd->name, &e, " 'int'");
    if (n != statements)
        return err_set(&cx->op.err, ERR_INVALID_LENGTH,
                       "Number of statement ids must match the number of batch entries. Got %u statement ids but %u "
                       "operations.",
                       n, statements);
    biter_init(&r->next_id, bval_doc(list));
    return 0;
}

int write_retry_new(struct command_ctx *cx, uint32_t statements, struct write_retry **out)
{
    *out = NULL;
    if (OV_LIKELY(!cx->has_txn_number))
        return 0;
    struct write_retry *r = arena_zalloc(cx->op.arena, sizeof(*r));
    int rc = read_ids(cx, r, statements);
    if (rc != 0)
        return rc;
    r->cx = cx;
    r->retry.e = cx->server->engine;
    r->retry.call = &cx->call;
    r->retry.arena = cx->op.arena;
    r->retry.txn_number = cx->txn_number;
    r->retry.many = statements > 1;
    memcpy(r->retry.lsid, cx->lsid, sizeof(r->retry.lsid));
    buf_init(&r->retried);
    *out = r;
    return 0;
}

static bool put_unless_failed(struct write_outcomes *o, struct eng_txn *t)
{
    struct write_retry *r = OV_CONTAINER(o, struct write_retry, retry.outcomes);
    if (!r->retry.n_pending || !failpoint_fails_commit(r->cx))
        return r->put(o, t);
    retry_drop_batch(&r->retry);
    return false;
}

bool write_retry_begin(struct command_ctx *cx, struct write_retry *r, enum op_status *status)
{
    enum eng_result er = ENG_OK;
    *status = OP_DONE;
    switch (retry_begin(&r->retry, &er, &cx->op.err)) {
    case RETRY_READY:
        if (OV_UNLIKELY(failpoint_on_commit(cx))) {
            r->put = r->retry.outcomes.put;
            r->retry.outcomes.put = put_unless_failed;
        }
        return true;
    case RETRY_WAIT:
        *status = OP_WAIT;
        break;
    case RETRY_FAILED:
        break;
    case RETRY_ENGINE:
        *status = command_engine_error(cx, er);
        break;
    }
    return false;
}

const struct retry_statement *write_retry_next(struct write_retry *r, uint32_t index)
{
    struct belem e;
    char scratch[12];
    r->retry.statement = (int32_t)((uint32_t)r->first + index);
    if (!bval_is_missing(r->ids) && biter_next(&r->next_id, &e))
        r->retry.statement = bval_i32(e.v);
    const struct retry_statement *done = retry_find(&r->retry, r->retry.statement);
    if (done)
        bw_i32(&r->retried, bw_index(r->n_retried++, scratch), done->id);
    return done;
}

void write_retry_reply(const struct write_retry *r, struct buf *reply)
{
    if (!r || !r->n_retried)
        return;
    size_t at = bw_arr(reply, "retriedStmtIds");
    buf_append(reply, r->retried.p, r->retried.len);
    bw_end(reply, at);
}

void write_retry_end(struct write_retry *r)
{
    if (!r)
        return;
    retry_end(&r->retry);
    buf_free(&r->retried);
}
