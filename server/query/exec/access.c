/* The access paths of a plan: what documents are looked at, in which order. */
#include "server/query/exec/exec_private.h"

/* ---- all records ---- */

static enum exec_status collscan_next(struct exec *x, struct eng_call *call, struct exec_row *out, struct err *err)
{
    const struct eng_row *row;
    enum exec_status s = range_scan_peek(&x->scans[0], x->txn, call, &row, err);
    if (s != EXEC_ROW)
        return s;
    range_scan_take(&x->scans[0]);
    x->docs_examined++;
    *out = (struct exec_row){load_be64(row->key.p), row->ts, row->value.p, -1};
    return EXEC_ROW;
}

static void collscan_unget(struct exec *x)
{
    x->scans[0].at--;
}

/* ---- one whole key: the hottest operation of a server, without scans and batches ---- */

enum point { POINT_KEY, POINT_RECORD, POINT_DONE };

static enum exec_status point_next(struct exec *x, struct eng_call *call, struct exec_row *out, struct err *err)
{
    struct eng_row row;
    enum eng_result r;
    if (x->point == POINT_KEY) {
        r = eng_get(x->txn, x->plan->index->keyspace, x->plan->intervals[0].from, ENG_GET_SNAPSHOT, &row, call);
        if (r == ENG_PENDING)
            return EXEC_WAIT;
        x->keys_examined++;
        x->point = r == ENG_OK ? POINT_RECORD : POINT_DONE;
        if (r != ENG_OK)
            return r == ENG_NOT_FOUND ? EXEC_EOF : exec_engine(r, err);
        x->rid = load_be64(row.value.p);
    }
    if (x->point == POINT_DONE)
        return EXEC_EOF;
    uint8_t key[8];
    store_be64(key, x->rid);
    r = eng_get(x->txn, x->coll->records, slice_of(key, 8), ENG_GET_SNAPSHOT, &row, call);
    if (r == ENG_PENDING)
        return EXEC_WAIT;
    x->point = POINT_DONE;
    if (r != ENG_OK)
        return r == ENG_NOT_FOUND ? EXEC_EOF : exec_engine(r, err);
    x->docs_examined++;
    *out = (struct exec_row){x->rid, row.ts, row.value.p, -1};
    return EXEC_ROW;
}

static void point_unget(struct exec *x)
{
    x->point = POINT_RECORD;
}

/* ---- many whole keys ---- */

static enum exec_status points_fill(struct exec *x, struct eng_call *call, struct err *err)
{
    const struct plan *p = x->plan;
    struct fetch *b = x->fetch;
    while (b->n == 0 && x->next < p->n_intervals) {
        struct slice keys[FETCH_ROWS];
        size_t n = OV_MIN((size_t)(p->n_intervals - x->next), b->want);
        for (size_t i = 0; i < n; i++) {
            size_t k = x->next + i;
            keys[i] = p->intervals[p->reverse ? p->n_intervals - 1 - k : k].from;
        }
        enum eng_result r = eng_multi_get(x->txn, p->index->keyspace, keys, n, ENG_GET_SNAPSHOT, b->rows, call);
        if (OV_UNLIKELY(r != ENG_OK))
            return exec_engine(r, err);
        for (size_t i = 0; i < n; i++)
            if (b->rows[i].value.p)
                fetch_add(x, load_be64(b->rows[i].value.p));
        x->next += (uint32_t)n;
        x->keys_examined += n;
    }
    return b->n ? EXEC_ROW : EXEC_EOF;
}

/* ---- intervals of an index, one after the other ---- */

static struct eng_range interval_range(const struct exec *x, uint32_t i)
{
    const struct plan *p = x->plan;
    uint64_t rows = x->sorter || !x->limit ? FETCH_ROWS : x->limit + x->skip;
    return (struct eng_range){
        .keyspace = p->index->keyspace,
        .from = p->intervals[i].from,
        .to = p->intervals[i].to,
        .reverse = p->reverse,
        .keys_only = !p->index->unique && !p->index->is_id, /* unique ones hold the record id in the value */
        .page_rows = (uint32_t)OV_MIN(OV_MAX(rows, (uint64_t)8), (uint64_t)FETCH_ROWS),
    };
}

/* What the page at hand gives; a further page only if that was nothing. */
static enum exec_status intervals_fill(struct exec *x, struct eng_call *call, struct err *err)
{
    struct fetch *b = x->fetch;
    const struct eng_row *row;
    while (b->n == 0) {
        enum exec_status s = x->next ? range_scan_peek(x->scans, x->txn, call, &row, err) : EXEC_EOF;
        if (s == EXEC_EOF) {
            if (x->next == x->plan->n_intervals)
                return EXEC_EOF;
            uint32_t i = x->plan->reverse ? x->plan->n_intervals - 1 - x->next : x->next;
            struct eng_range range = interval_range(x, i);
            if (x->next++)
                range_scan_close(x->scans);
            range_scan_init(x->scans, &range);
            continue;
        }
        if (s != EXEC_ROW)
            return s;
        for (struct range_scan *r = x->scans; r->at < r->page.n && b->n < FETCH_ROWS; r->at++) {
            fetch_add(x, index_entry_rid(x->plan->index, &r->page.rows[r->at]));
            x->keys_examined++;
        }
    }
    return EXEC_ROW;
}

/* ---- all of them ---- */

static enum exec_status empty_next(struct exec *x, struct eng_call *call, struct exec_row *row, struct err *err)
{
    (void)x, (void)call, (void)row, (void)err;
    return EXEC_EOF;
}

static void open_collscan(struct exec *x)
{
    struct eng_range all = {.keyspace = x->coll->records, .reverse = x->plan->reverse};
    uint64_t few = x->limit + x->skip;
    if (x->limit && !x->sorter && few < FETCH_ROWS)
        all.page_rows = (uint32_t)OV_MAX(few, (uint64_t)8);
    x->scans = arena_zalloc(x->arena, sizeof(*x->scans));
    x->n_scans = 1;
    range_scan_init(x->scans, &all);
    x->access = collscan_next;
    x->access_unget = collscan_unget;
}

static void open_ixscan(struct exec *x)
{
    enum { MERGED_ROWS = 2048 };
    const struct plan *p = x->plan;
    bool merged = p->merge && p->n_intervals > 1;
    x->n_scans = merged ? p->n_intervals : 1;
    x->scans = arena_zalloc(x->arena, x->n_scans * sizeof(*x->scans));
    x->access = fetch_next;
    x->access_unget = fetch_unget;
    x->fill = merged ? merge_fill : intervals_fill;
    if (!merged)
        return;
    x->heap = arena_alloc(x->arena, x->n_scans * sizeof(*x->heap));
    for (uint32_t i = 0; i < x->n_scans; i++) {
        struct eng_range range = interval_range(x, i);
        uint32_t share = MERGED_ROWS / x->n_scans; /* pages of many scans are in memory at once */
        range.page_rows = OV_MIN(range.page_rows, OV_MAX(share, 8u));
        range_scan_init(&x->scans[i], &range);
        x->scans[i].keeps_head = true;
    }
}

void access_open(struct exec *x)
{
    const struct plan *p = x->plan;
    x->access = empty_next;
    if (!x->coll || p->kind == PLAN_EMPTY)
        return;
    if (p->kind == PLAN_COLLSCAN) {
        open_collscan(x);
        return;
    }
    OV_ASSERT(p->index);
    atomic_fetch_add_explicit(&p->index->rt->accesses, 1, memory_order_relaxed);
    if (p->kind == PLAN_IXSCAN) {
        open_ixscan(x);
    } else if (p->n_intervals == 1) {
        x->access = point_next;
        x->access_unget = point_unget;
    } else {
        x->access = fetch_next;
        x->access_unget = fetch_unget;
        x->fill = points_fill;
    }
}

void access_suspend(struct exec *x)
{
    for (uint32_t i = 0; i < x->n_scans; i++)
        range_scan_suspend(&x->scans[i]);
    if (x->fetch)
        x->fetch->fetched = false;
}

bool access_at_end(const struct exec *x)
{
    if (x->access == point_next)
        return x->point == POINT_DONE;
    if (x->access == fetch_next && x->fill == points_fill)
        return x->next == x->plan->n_intervals && (!x->fetch || x->fetch->at == x->fetch->n);
    return x->access == empty_next;
}

void access_close(struct exec *x)
{
    for (uint32_t i = 0; i < x->n_scans; i++)
        range_scan_close(&x->scans[i]);
    rid_set_free(&x->seen);
}
