/* count. Without a query it is a number that the engine keeps. */
#include "server/commands/crud_read_private.h"

const char *const count_fields[] = {"query",  "limit",       "skip",    "hint",      "collation",
                                    "fields", "readConcern", "comment", "maxTimeMS", NULL};

static enum op_status reply_count(struct command_ctx *cx, int64_t n)
{
    if (n <= INT32_MAX)
        bw_i32(cx->reply, "n", (int32_t)n);
    else
        bw_i64(cx->reply, "n", n);
    return OP_DONE;
}

static int64_t clipped(int64_t n, int64_t skip, int64_t limit)
{
    n = n > skip ? n - skip : 0;
    return limit ? OV_MIN(n, limit) : n;
}

/* True: *out is the command's answer now. Else cx->state is a reading. */
static bool start(struct command_ctx *cx, enum op_status *out)
{
    const char *coll;
    const uint8_t *query;
    int64_t limit, skip;
    struct bval hint;
    struct match *filter;
    *out = OP_DONE;
    if (arg_collection(cx, &coll) != 0 || arg_doc(cx, "query", &query) != 0 ||
        arg_i64(cx, "limit", 0, -INT64_MAX, &limit) != 0 || arg_i64(cx, "skip", 0, 0, &skip) != 0 ||
        arg_hint(cx, &hint) != 0 || arg_simple_collation(cx) != 0 || arg_read_concern(cx) != 0)
        return true;
    limit = limit < 0 ? -limit : limit; /* a negative one once meant: in one batch */
    struct reading *r = read_new(cx, false);
    if (match_parse(r->cur->arena, query, &filter, &cx->op.err) != 0)
        return true;
    read_begin(cx, r, coll);
    if (filter->op == MATCH_TRUE && bval_is_missing(hint)) {
        int64_t n = r->cur->coll ? eng_count(cx->server->engine, r->cur->coll->records) : 0;
        *out = reply_count(cx, clipped(n, skip, limit));
        return true;
    }
    if (read_open(cx, r, filter, NULL, hint, (uint64_t)skip, (uint64_t)limit) != 0)
        return true;
    r->cur->pipe = pipeline_new(r->cur->arena, r->exec, NULL, NULL);
    r->during = "Executor error during count command";
    return false;
}

enum op_status cmd_count(struct command_ctx *cx)
{
    enum op_status st;
    enum exec_status s;
    struct exec_row row;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!cx->state) {
        if (!read_caught_up(cx))
            return OP_WAIT;
        if (start(cx, &st))
            return st;
    } else if (read_still_there(cx, cx->state) != 0) {
        return OP_DONE;
    }
    struct reading *r = cx->state;
    while ((s = exec_next(r->exec, &cx->op, &cx->call, &row, &cx->op.err)) == EXEC_ROW)
        r->counted++;
    return s == EXEC_EOF ? reply_count(cx, r->counted) : read_stopped(cx, r, s);
}
