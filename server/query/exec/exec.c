/* An execution: access path, filter, sort, skip and limit, in this order. */
#include "server/query/exec/exec_private.h"

struct exec *exec_open(struct arena *a, const struct plan *plan, const struct collection *coll, struct eng_txn *t,
                       uint64_t skip, uint64_t limit)
{
    struct exec *x = arena_zalloc(a, sizeof(*x));
    x->plan = plan;
    x->coll = coll;
    x->txn = t;
    x->arena = a;
    x->skip = skip;
    x->limit = limit;
    x->dedup = plan->dedup;
    if (plan->sort && plan->sort->n && !plan->sorted && plan->kind != PLAN_EMPTY) {
        uint64_t top = limit && skip <= UINT64_MAX - limit ? skip + limit : 0;
        x->sorter = sorter_new(plan->sort, top);
    }
    access_open(x);
    return x;
}

enum exec_status exec_engine(enum eng_result r, struct err *err)
{
    switch (r) {
    case ENG_PENDING:
        return EXEC_WAIT;
    case ENG_SNAPSHOT_TOO_OLD:
        err_set(err, ERR_SNAPSHOT_TOO_OLD, "Read timestamp is older than the oldest available timestamp.");
        return EXEC_ERROR;
    case ENG_CORRUPT:
        err_set(err, ERR_DATA_CORRUPTION_DETECTED,
                "a block of the data files has a wrong checksum; the server log names it");
        return EXEC_ERROR;
    default:
        err_set(err, ERR_UNKNOWN_ERROR, "reading the data files failed (%s); the server log says more",
                eng_result_name(r));
        return EXEC_ERROR;
    }
}

/* The next document that matches. */
static enum exec_status matching(struct exec *x, struct operation *op, struct eng_call *call, struct exec_row *row,
                                 struct err *err)
{
    const struct match *filter = x->plan->filter;
    for (;;) {
        struct match_result found = {.array_index = -1};
        if (op && op_slice_over(op) && x->examined) {
            x->examined = false;
            return EXEC_AGAIN;
        }
        enum exec_status s = x->access(x, call, row, err);
        if (s != EXEC_ROW)
            return s;
        x->examined = true;
        if (!filter || filter->op == MATCH_TRUE) {
            x->matched++;
            return EXEC_ROW;
        }
        if (match_doc(filter, row->doc, &found)) {
            row->array_index = found.array_index;
            x->matched++;
            return EXEC_ROW;
        }
    }
}

static enum exec_status sorted(struct exec *x, struct operation *op, struct eng_call *call, struct exec_row *row,
                               struct err *err)
{
    while (!x->collected) {
        enum exec_status s = matching(x, op, call, row, err);
        if (s == EXEC_ROW) {
            if (sorter_add(x->sorter, row, err) != 0)
                return EXEC_ERROR;
        } else if (s == EXEC_EOF) {
            x->collected = true;
            access_close(x);
            sorter_finish(x->sorter);
        } else {
            return s;
        }
    }
    return sorter_next(x->sorter, row) ? EXEC_ROW : EXEC_EOF;
}

enum exec_status exec_next(struct exec *x, struct operation *op, struct eng_call *call, struct exec_row *row,
                           struct err *err)
{
    if (x->eof || (x->limit && x->given == x->limit))
        return EXEC_EOF;
    for (;;) {
        enum exec_status s = x->sorter ? sorted(x, op, call, row, err) : matching(x, op, call, row, err);
        if (s == EXEC_ROW) {
            if (x->skipped < x->skip) {
                x->skipped++;
                continue;
            }
            x->given++;
            return EXEC_ROW;
        }
        if (s == EXEC_EOF) {
            x->eof = true;
        } else if (s != EXEC_ERROR) {
            exec_suspend(x);
            eng_txn_hold(x->txn);
        }
        return s;
    }
}

void exec_unget(struct exec *x)
{
    OV_ASSERT(x->given > 0);
    x->given--;
    if (x->sorter)
        sorter_unget(x->sorter);
    else
        x->access_unget(x);
}

void exec_suspend(struct exec *x)
{
    if (!x->collected)
        access_suspend(x);
}

bool exec_at_end(const struct exec *x)
{
    if (x->eof || (x->limit && x->given == x->limit))
        return true;
    return x->sorter ? x->collected && sorter_at_end(x->sorter) : access_at_end(x);
}

void exec_close(struct exec *x)
{
    if (!x)
        return;
    access_close(x);
    sorter_free(x->sorter);
    x->sorter = NULL;
}

uint64_t exec_keys_examined(const struct exec *x)
{
    return x->keys_examined;
}

uint64_t exec_docs_examined(const struct exec *x)
{
    return x->docs_examined;
}

void exec_counts(const struct exec *x, struct exec_counts *out)
{
    *out = (struct exec_counts){x->keys_examined, x->docs_examined, x->matched, x->skipped, x->given};
}
