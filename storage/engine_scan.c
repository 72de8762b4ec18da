/* Scans: a merge of the transaction's own writes, the memtables and the runs, newest source first; of a key that several hold, the
 * newest source's version counts, and a deletion there hides the others.
 *
 * Within one step a scan keeps its place in every source. In a later step, or after its transaction's snapshot has moved without the
 * scan's being kept, it finds its place again by the last key. */
#include <stdlib.h>

#include "storage/scan_private.h"

enum { PAGE_ROWS = 128, PAGE_BYTES = 256 * 1024, POOL_MAX = 32, KEEP_ROWS = 4096, SKIP_MAX = 20000 };

/* ---- life ---- */

static void copy_page(struct eng_scan *s, size_t n)
{
    size_t bytes = 1;
    for (size_t i = 0; i < n; i++)
        bytes += s->rows[i].key.n + s->rows[i].value.n;
    uint8_t *at = s->copied = ov_malloc(bytes);
    for (size_t i = 0; i < n; i++) {
        struct slice *both[] = {&s->rows[i].key, &s->rows[i].value};
        for (size_t k = 0; k < 2; k++) {
            if (both[k]->n)
                memcpy(at, both[k]->p, both[k]->n);
            both[k]->p = at;
            at += both[k]->n;
        }
    }
}

static void free_copy(struct eng_scan *s)
{
    free(s->copied);
    s->copied = NULL;
}

struct eng_scan *eng_scan_open(struct eng_txn *t, const struct eng_range *range)
{
    struct epoch_slot *slot = epoch_slot_get();
    struct eng_scan *s = slot->scans;
    if (s) {
        slot->scans = s->next;
        slot->n_scans--;
    } else {
        s = ov_calloc(1, sizeof(*s));
    }
    txn_use(t);
    s->txn = t;
    s->keyspace = range->keyspace;
    s->from.len = s->to.len = s->place.len = 0;
    buf_append(&s->from, range->from.p, range->from.n);
    buf_append(&s->to, range->to.p, range->to.n);
    s->to_end = range->to.p == NULL;
    s->reverse = range->reverse;
    s->keys_only = range->keys_only;
    s->page_rows = range->page_rows ? range->page_rows : PAGE_ROWS;
    s->page_bytes = range->page_bytes ? range->page_bytes : PAGE_BYTES;
    s->placed = s->inclusive = s->ready = false;
    s->done = !s->to_end && slice_cmp(buf_slice(&s->from), buf_slice(&s->to)) >= 0;
    s->snapshot = t->snapshot;
    s->slot = t->slot;
    s->step = t->step;
    s->next = t->scans;
    s->back = &t->scans;
    if (s->next)
        s->next->back = &s->next;
    t->scans = s;
    atomic_fetch_add_explicit(&t->e->stats[slot->index % STAT_SHARDS].scans, 1, memory_order_relaxed);
    return s;
}

void eng_scan_close(struct eng_scan *s)
{
    if (!s)
        return;
    struct epoch_slot *slot = epoch_slot_get();
    *s->back = s->next;
    if (s->next)
        s->next->back = s->back;
    snapshots_remove(&s->txn->e->snapshots, &s->held);
    if (OV_UNLIKELY(s->copied != NULL))
        free_copy(s);
    if (slot->n_scans < POOL_MAX && s->rows_cap <= KEEP_ROWS) {
        s->next = slot->scans;
        slot->scans = s;
        slot->n_scans++;
        return;
    }
    buf_free(&s->from);
    buf_free(&s->to);
    buf_free(&s->place);
    free(s->sources);
    free(s->rows);
    free(s);
}

void scan_keep_snapshots(struct eng_txn *t)
{
    for (struct eng_scan *s = t->scans; s; s = s->next) {
        /* Is its snapshot still whole? By this step's floor, or by the transaction's registration. */
        bool whole = (s->slot == t->slot && s->step == t->step) || (t->held.open && s->snapshot == t->held.ts);
        if (whole && !s->held.open)
            snapshots_add(&t->e->snapshots, &s->held, s->snapshot);
    }
}

void scan_release_snapshots(struct eng_txn *t)
{
    for (struct eng_scan *s = t->scans; s; s = s->next)
        snapshots_remove(&t->e->snapshots, &s->held);
}

/* ---- pages ---- */

static struct eng_row *row_at(struct eng_scan *s, size_t n)
{
    if (n == s->rows_cap) {
        s->rows_cap = OV_MIN((size_t)s->page_rows, OV_MAX((size_t)16, s->rows_cap * 2));
        if (s->rows_cap <= n)
            s->rows_cap = n + 1;
        s->rows = ov_realloc(s->rows, s->rows_cap * sizeof(*s->rows));
    }
    return &s->rows[n];
}

/* The source with the next key; of equal keys the newest source's. NULL at the end. */
static struct source *next_source(struct eng_scan *s)
{
    struct source *best = NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct source *src = &s->sources[i];
        if (!src->valid)
            continue;
        int c = best ? slice_cmp(src->key, best->key) : -1;
        if (!best || (s->reverse ? c > 0 : c < 0))
            best = src;
    }
    return best;
}

static enum eng_result advance_past(struct eng_scan *s, struct source *best, struct eng_error *err)
{
    struct slice key = best->key;
    enum eng_result r = ENG_OK;
    for (size_t i = 0; i < s->n && r == ENG_OK; i++) {
        struct source *src = &s->sources[i];
        if (src != best && src->valid && slice_eq(src->key, key))
            r = scan_advance(s, src, err);
    }
    return r == ENG_OK ? scan_advance(s, best, err) : r;
}

/* Own writes are copied: the next write moves their buffer. */
static void emit(struct eng_scan *s, const struct source *src, struct eng_row *row)
{
    *row = (struct eng_row){src->key, src->value, src->ts};
    if (src->kind == SOURCE_OWN) {
        struct eng_txn *t = s->txn;
        if (!t->borrowed)
            t->borrowed = arena_new(0);
        row->key = arena_slice(t->borrowed, src->key);
        row->value = s->keys_only ? slice_of(NULL, 0) : arena_slice(t->borrowed, src->value);
    }
}

/* ENG_PENDING: nothing but deletions so far, and there have been many (only if `patient` is false). */
static enum eng_result fill(struct eng_scan *s, size_t *n, bool patient, struct eng_error *err)
{
    size_t bytes = 0, skipped = 0;
    *n = 0;
    while (*n < s->page_rows && bytes < s->page_bytes) {
        struct source *src = s->n == 1 ? (s->sources[0].valid ? &s->sources[0] : NULL) : next_source(s);
        if (!src) {
            s->done = true;
            break;
        }
        if (!src->deleted) {
            emit(s, src, row_at(s, *n));
            bytes += src->key.n + (s->keys_only ? 0 : src->value.n);
            ++*n;
        } else if (OV_UNLIKELY(++skipped == SKIP_MAX) && !patient) {
            return *n ? ENG_OK : ENG_PENDING;
        }
        enum eng_result r = s->n == 1 ? scan_advance(s, src, err) : advance_past(s, src, err);
        if (r != ENG_OK)
            return r;
    }
    return ENG_OK;
}

static void remember_place(struct eng_scan *s, struct slice key, bool inclusive)
{
    s->place.len = 0;
    buf_append(&s->place, key.p, key.n);
    s->placed = true;
    s->inclusive = inclusive;
}

/* Is it still the step in which the sources were set up? Else they are set up again, at the place that was remembered. */
static void notice_step(struct eng_scan *s)
{
    const struct eng_txn *t = s->txn;
    if (s->slot == t->slot && s->step == t->step)
        return;
    if (!s->held.open)
        s->snapshot = t->snapshot; /* not kept: moves on by key to what the transaction reads at now (R19) */
    s->slot = t->slot;
    s->step = t->step;
    s->ready = false;
}

static enum eng_result next_page(struct eng_scan *s, struct eng_page *page, bool patient)
{
    struct eng_txn *t = s->txn;
    struct eng_error err;
    err.result = ENG_OK;
    enum eng_result r = ENG_OK;
    size_t n = 0;
    txn_use(t);
    if (OV_UNLIKELY(t->lost))
        return ENG_SNAPSHOT_TOO_OLD;
    if (s->done)
        return ENG_OK;
    notice_step(s);
    if (!s->ready || ((t->flags & ENG_TXN_MULTI) && s->own_changes != t->ws.changes))
        r = scan_set_up(s, &err);
    if (r == ENG_OK)
        r = fill(s, &n, patient, &err);
    if (r == ENG_PENDING) {
        remember_place(s, next_source(s)->key, true);
        return r;
    }
    if (r != ENG_OK) {
        engine_read_failed(t->e, &err);
        s->ready = false;
        return r;
    }
    if (OV_UNLIKELY(t->e->opt.debug_pending != 0))
        copy_page(s, n);
    if (n)
        remember_place(s, s->rows[n - 1].key, false);
    atomic_fetch_add_explicit(&t->e->stats[t->slot->index % STAT_SHARDS].scan_rows, n, memory_order_relaxed);
    *page = (struct eng_page){.rows = s->rows, .n = n, .more = !s->done};
    return ENG_OK;
}

enum eng_result eng_scan_next(struct eng_scan *s, struct eng_page *page, struct eng_call *c)
{
    *page = (struct eng_page){0};
    if (OV_UNLIKELY(s->copied != NULL))
        free_copy(s);
    if (eng_defer(s->txn->e, c))
        return ENG_PENDING;
    enum eng_result r = next_page(s, page, c == NULL);
    if (OV_UNLIKELY(r == ENG_PENDING))
        c->wake(c); /* lets others run before it goes on */
    return r;
}

void eng_scan_seek(struct eng_scan *s, struct slice key)
{
    struct slice limit = s->reverse ? buf_slice(&s->to) : buf_slice(&s->from);
    int beyond = s->reverse ? (s->to_end ? -1 : slice_cmp(key, limit)) : slice_cmp(limit, key);
    if (beyond > 0)
        return; /* before the range's start in scan order: it begins there anyway */
    s->place.len = 0;
    buf_append(&s->place, key.p, key.n);
    s->placed = true;
    s->inclusive = !(s->reverse && beyond == 0 && !s->to_end); /* `to` itself is outside */
    s->ready = false;
}

enum eng_result eng_last_key(struct eng_txn *t, uint64_t keyspace, uint8_t *out, size_t out_bytes, size_t *n,
                             struct eng_call *c)
{
    struct eng_range all = {.keyspace = keyspace, .reverse = true, .keys_only = true, .page_rows = 1};
    struct eng_page page = {0};
    *n = 0;
    if (eng_defer(t->e, c))
        return ENG_PENDING;
    struct eng_scan *s = eng_scan_open(t, &all);
    enum eng_result r = next_page(s, &page, true);
    if (r == ENG_OK && page.n == 0)
        r = ENG_NOT_FOUND;
    else if (r == ENG_OK && page.rows[0].key.n > out_bytes)
        r = ENG_TOO_LARGE;
    if (r == ENG_OK) {
        *n = page.rows[0].key.n;
        memcpy(out, page.rows[0].key.p, *n);
    }
    eng_scan_close(s);
    return r;
}
