/* Documents by record id, many at a time: the ids come from an index, the documents from one multi-get. */
#include "server/query/exec/exec_private.h"

struct fetch *fetch_of(struct exec *x)
{
    if (OV_UNLIKELY(!x->fetch)) {
        uint64_t rows = x->sorter || !x->limit ? FETCH_ROWS : x->limit + x->skip;
        struct fetch *b = x->fetch = arena_alloc(x->arena, sizeof(*b));
        if (!b)
            return NULL;
        b->n = b->at = 0;
        b->want = (size_t)OV_MIN(OV_MAX(rows, (uint64_t)8), (uint64_t)FETCH_ROWS);
        b->fetched = false;
    }
    return x->fetch;
}

void fetch_add(struct exec *x, uint64_t rid)
{
    struct fetch *b = x->fetch;
    if (x->dedup && !rid_set_add(&x->seen, rid))
        return;
    store_be64(b->bytes[b->n], rid);
    b->keys[b->n] = slice_of(b->bytes[b->n], 8);
    b->rids[b->n++] = rid;
}

/* An execution that goes on at newer snapshots may come upon the first arrays of an index. Their bits are set before they can be seen, so that
 * from here on each record is given once. One that has been given already comes again only if it was changed meanwhile, like any that moves
 * ahead of a scan. (Nor does one that stays as it is get lost, whatever the bounds: its keys are those that the plan was made for.) */
static void look_for_arrays(struct exec *x)
{
    if (!x->dedup && x->plan->index)
        x->dedup = atomic_load_explicit(&x->plan->index->rt->multikey, memory_order_acquire) & ~x->plan->multikey;
}

enum exec_status fetch_next(struct exec *x, struct eng_call *call, struct exec_row *row, struct err *err)
{
    struct fetch *b = fetch_of(x);
    if (OV_UNLIKELY(!b)) {
        err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "the query exceeds its memory limit");
        return EXEC_ERROR;
    }
    for (;;) {
        if (b->at == b->n) { /* all given, or none collected yet */
            b->n = b->at = 0;
            b->fetched = false;
        }
        if (!b->fetched) {
            if (b->at == 0)
                look_for_arrays(x);
            enum exec_status s = b->at > 0 ? EXEC_ROW : x->fill(x, call, err);
            if (s != EXEC_ROW)
                return s;
            enum eng_result r = eng_multi_get(x->txn, x->coll->records, b->keys + b->at, b->n - b->at, ENG_GET_SNAPSHOT,
                                              b->rows + b->at, call);
            if (OV_UNLIKELY(r != ENG_OK))
                return exec_engine(r, err);
            b->fetched = true;
        }
        size_t i = b->at++;
        if (OV_UNLIKELY(!b->rows[i].value.p))
            continue; /* deleted since its index entry was read, at a newer snapshot */
        x->docs_examined++;
        *row = (struct exec_row){b->rids[i], b->rows[i].ts, b->rows[i].value.p, -1};
        return EXEC_ROW;
    }
}

void fetch_unget(struct exec *x)
{
    x->fetch->at--;
}
