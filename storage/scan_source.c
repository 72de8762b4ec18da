/* The sources of a scan: its transaction's own writes, memtables, tiers of runs. Each finds a place by key, and shows one entry after
 * another: the version that the snapshot sees, deletions too. What can go wrong is reading a run. */
#include "storage/scan_private.h"

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

enum eng_result scan_advance(const struct eng_scan *s, struct source *src, struct eng_error *err)
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

enum eng_result scan_set_up(struct eng_scan *s, struct eng_error *err)
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
