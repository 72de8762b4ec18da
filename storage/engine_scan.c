/* Scans: a merge of the transaction's own writes, the memtables and the runs, newest source first; of a key that several hold, the
 * newest source's version counts, and a deletion there hides the others.
 *
 * Within one step a scan keeps its place in every source. In a later step, or after its transaction's snapshot has moved without the
 * scan's being kept, it finds its place again by the last key. */
#include <stdlib.h>

#include "storage/engine_private.h"

enum { PAGE_ROWS = 128, PAGE_BYTES = 256 * 1024, POOL_MAX = 32, KEEP_ROWS = 4096 };

enum source_kind { SOURCE_OWN, SOURCE_MEMTABLE, SOURCE_RUNS };

struct source {
    enum source_kind kind;
    bool valid; /* holds an entry of the range */
    bool deleted;
    struct slice key, value;
    uint64_t ts;
    const struct memtable *table;
    const struct mt_node *node;
    size_t at;             /* SOURCE_OWN: position in the write set's order */
    struct tier_iter iter; /* SOURCE_RUNS */
};

struct eng_scan {
    struct eng_txn *txn;
    struct eng_scan *next, **back; /* in the transaction's list; the pool */
    uint64_t keyspace;
    struct buf from, to; /* the range */
    bool to_end, reverse, keys_only;
    uint32_t page_rows, page_bytes;
    struct buf place;       /* where to go on: a key */
    bool placed, inclusive; /* has it moved from the range's start? is `place` itself still to come? */
    bool done;
    uint64_t snapshot;
    struct snapshot held;    /* its own registration, if it differs from the transaction's */
    struct epoch_slot *slot; /* the step it was last used in */
    uint64_t step;
    uint64_t own_changes; /* write_set.changes then */
    bool ready;           /* the sources stand where the last page ended */
    struct source *sources;
    size_t n, cap;
    struct eng_row *rows;
    size_t rows_cap;
    uint8_t *
        copied; /* debug_pending: the page's bytes, freed by the next call, so that sanitizers see who keeps them longer */
};

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

/* ---- sources ---- */

/* Is the key still in the range, seen in scan order? */
static bool in_range(const struct eng_scan *s, struct slice key)
{
    if (s->reverse)
        return slice_cmp(key, buf_slice(&s->from)) >= 0;
    return s->to_end || slice_cmp(key, buf_slice(&s->to)) < 0;
}

/* From the node on, the first one with a version that the snapshot sees. */
static void load_node(const struct eng_scan *s, struct source *src, const struct mt_node *n)
{
    for (; n && n->keyspace == s->keyspace; n = s->reverse ? mt_prev(n) : mt_next(n)) {
        struct slice key = mt_key(n);
        if (!in_range(s, key))
            break;
        const struct mt_version *v = mt_version_at(n, s->snapshot);
        if (!v)
            continue;
        src->node = n;
        src->key = key;
        src->value = mt_value(v);
        src->ts = v->ts;
        src->deleted = v->kind == VERSION_DELETE;
        src->valid = true;
        return;
    }
    src->valid = false;
}

static void load_own(const struct eng_scan *s, struct source *src, size_t at)
{
    const struct write_set *w = &s->txn->ws;
    src->at = at;
    src->valid = false;
    if (at >= w->n_order) /* past the end, or before the start by wrapping */
        return;
    const struct ws_op *o = &w->ops[w->order[at]];
    struct slice key = ws_key(w, o);
    if (o->keyspace != s->keyspace || !in_range(s, key))
        return;
    src->key = key;
    src->value = o->type == MUT_DELETE ? slice_of(NULL, 0) : ws_value(w, o);
    src->ts = 0;
    src->deleted = o->type == MUT_DELETE;
    src->valid = true;
}

/* From the iterator's place on, the first key with a version that the snapshot sees. */
static enum eng_result load_runs(const struct eng_scan *s, struct source *src, struct eng_error *err)
{
    struct tier_iter *it = &src->iter;
    struct entry e;
    src->valid = false;
    while (tier_iter_valid(it) && tier_iter_keyspace(it) == s->keyspace && in_range(s, tier_iter_key(it))) {
        if (tier_iter_version(it, s->snapshot, &e)) {
            src->key = e.key;
            src->value = e.value;
            src->ts = e.ts;
            src->deleted = e.kind == VERSION_DELETE;
            src->valid = true;
            return ENG_OK;
        }
        enum eng_result r = s->reverse ? tier_iter_prev(it, err) : tier_iter_next(it, err);
        if (r != ENG_OK)
            return r;
    }
    return ENG_OK;
}

static enum eng_result advance_runs(const struct eng_scan *s, struct source *src, struct eng_error *err)
{
    enum eng_result r = s->reverse ? tier_iter_prev(&src->iter, err) : tier_iter_next(&src->iter, err);
    return r == ENG_OK ? load_runs(s, src, err) : r;
}

static enum eng_result advance(const struct eng_scan *s, struct source *src, struct eng_error *err)
{
    switch (src->kind) {
    case SOURCE_OWN:
        load_own(s, src, s->reverse ? src->at - 1 : src->at + 1);
        break;
    case SOURCE_MEMTABLE:
        load_node(s, src, s->reverse ? mt_prev(src->node) : mt_next(src->node));
        break;
    case SOURCE_RUNS:
        return advance_runs(s, src, err);
    }
    return ENG_OK;
}

/* Where a scan (re)starts: forwards at or behind `key`; backwards before it or at it, or at the keyspace's end. */
struct start {
    struct slice key;
    bool inclusive, end;
};

static struct start start_of(const struct eng_scan *s)
{
    if (s->placed)
        return (struct start){buf_slice(&s->place), s->inclusive, false};
    if (!s->reverse)
        return (struct start){buf_slice(&s->from), true, false};
    return (struct start){buf_slice(&s->to), false, s->to_end};
}

static void seek_memtable(const struct eng_scan *s, struct source *src, const struct start *at)
{
    const struct mt_node *n;
    if (at->end) {
        n = memtable_seek_before(src->table, s->keyspace + 1, slice_of(NULL, 0));
    } else if (!s->reverse || at->inclusive) {
        n = memtable_seek(src->table, s->keyspace, at->key);
        bool hit = n && n->keyspace == s->keyspace && slice_eq(mt_key(n), at->key);
        if (s->reverse && !hit)
            n = memtable_seek_before(src->table, s->keyspace, at->key);
        else if (!s->reverse && hit && !at->inclusive)
            n = mt_next(n);
    } else {
        n = memtable_seek_before(src->table, s->keyspace, at->key);
    }
    load_node(s, src, n);
}

static enum eng_result seek_runs(const struct eng_scan *s, struct source *src, const struct start *at,
                                 struct eng_error *err)
{
    struct tier_iter *it = &src->iter;
    enum eng_result r;
    if (at->end) {
        r = tier_iter_seek_before(it, s->keyspace + 1, slice_of(NULL, 0), err);
    } else if (!s->reverse || at->inclusive) {
        r = tier_iter_seek(it, s->keyspace, at->key, err);
        if (r != ENG_OK)
            return r;
        bool hit = tier_iter_valid(it) && tier_iter_keyspace(it) == s->keyspace && slice_eq(tier_iter_key(it), at->key);
        if (s->reverse && !hit)
            r = tier_iter_seek_before(it, s->keyspace, at->key, err);
        else if (!s->reverse && hit && !at->inclusive)
            r = tier_iter_next(it, err);
    } else {
        r = tier_iter_seek_before(it, s->keyspace, at->key, err);
    }
    return r == ENG_OK ? load_runs(s, src, err) : r;
}

static void seek_own(const struct eng_scan *s, struct source *src, const struct start *at)
{
    struct write_set *w = &s->txn->ws;
    ws_sort(w);
    size_t i =
        at->end ? ws_lower_bound(w, s->keyspace + 1, slice_of(NULL, 0)) : ws_lower_bound(w, s->keyspace, at->key);
    bool hit = false;
    if (!at->end && i < w->n_order) {
        const struct ws_op *o = &w->ops[w->order[i]];
        hit = o->keyspace == s->keyspace && slice_eq(ws_key(w, o), at->key);
    }
    if (s->reverse ? !(hit && at->inclusive) : (hit && !at->inclusive))
        i += s->reverse ? (size_t)-1 : 1;
    load_own(s, src, i);
}

static struct source *add_source(struct eng_scan *s, enum source_kind kind)
{
    if (s->n == s->cap) {
        s->cap = OV_MAX(4, s->cap * 2);
        s->sources = ov_realloc(s->sources, s->cap * sizeof(*s->sources));
    }
    struct source *src = &s->sources[s->n++];
    *src = (struct source){.kind = kind};
    return src;
}

static bool reads_own(const struct eng_scan *s)
{
    return (s->txn->flags & ENG_TXN_MULTI) && s->txn->ws.n;
}

/* Sets all sources up; those without an entry in the range are left out. */
static enum eng_result set_up(struct eng_scan *s, struct eng_error *err)
{
    const struct layers *l = layers_now(s->txn->e);
    struct start at = start_of(s);
    s->n = 0;
    if (reads_own(s)) {
        struct source *src = add_source(s, SOURCE_OWN);
        seek_own(s, src, &at);
        s->n -= !src->valid;
    }
    s->own_changes = s->txn->ws.changes;
    for (size_t i = 0; i <= l->n_sealed; i++) {
        struct source *src = add_source(s, SOURCE_MEMTABLE);
        src->table = i ? l->sealed[i - 1] : l->active;
        seek_memtable(s, src, &at);
        s->n -= !src->valid;
    }
    for (size_t i = 0; i < l->runs->n_tiers; i++) {
        struct source *src = add_source(s, SOURCE_RUNS);
        tier_iter_init(&src->iter, &l->runs->tiers[i], s->txn->e->cache);
        enum eng_result r = seek_runs(s, src, &at, err);
        if (r != ENG_OK)
            return r;
        s->n -= !src->valid;
    }
    s->ready = true;
    return ENG_OK;
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
            r = advance(s, src, err);
    }
    return r == ENG_OK ? advance(s, best, err) : r;
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

static enum eng_result fill(struct eng_scan *s, size_t *n, struct eng_error *err)
{
    size_t bytes = 0;
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
        }
        enum eng_result r = s->n == 1 ? advance(s, src, err) : advance_past(s, src, err);
        if (r != ENG_OK)
            return r;
    }
    return ENG_OK;
}

static void remember_place(struct eng_scan *s, struct slice key)
{
    s->place.len = 0;
    buf_append(&s->place, key.p, key.n);
    s->placed = true;
    s->inclusive = false;
}

enum eng_result eng_scan_next(struct eng_scan *s, struct eng_page *page, struct eng_call *c)
{
    struct eng_txn *t = s->txn;
    *page = (struct eng_page){0};
    if (OV_UNLIKELY(s->copied != NULL))
        free_copy(s);
    if (eng_defer(t->e, c))
        return ENG_PENDING;
    txn_use(t);
    if (OV_UNLIKELY(t->lost))
        return ENG_SNAPSHOT_TOO_OLD;
    if (s->done)
        return ENG_OK;
    if (s->slot != t->slot || s->step != t->step) {
        if (!s->held.open)
            s->snapshot = t->snapshot; /* not kept: moves on by key to what the transaction reads at now (R19) */
        s->slot = t->slot;
        s->step = t->step;
        s->ready = false;
    }
    enum eng_result r = ENG_OK;
    struct eng_error err;
    if (!s->ready || ((t->flags & ENG_TXN_MULTI) && s->own_changes != t->ws.changes))
        r = set_up(s, &err);
    size_t n = 0;
    if (r == ENG_OK)
        r = fill(s, &n, &err);
    if (r != ENG_OK) {
        engine_note_error(t->e, &err);
        s->ready = false;
        return r;
    }
    if (OV_UNLIKELY(t->e->opt.debug_pending != 0))
        copy_page(s, n);
    if (n)
        remember_place(s, s->rows[n - 1].key);
    atomic_fetch_add_explicit(&t->e->stats[t->slot->index % STAT_SHARDS].scan_rows, n, memory_order_relaxed);
    *page = (struct eng_page){.rows = s->rows, .n = n, .more = !s->done};
    return ENG_OK;
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
    struct eng_page page;
    *n = 0;
    struct eng_scan *s = eng_scan_open(t, &all);
    enum eng_result r = eng_scan_next(s, &page, c);
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
