/* Runs in tiers: building, point reads, walking. */
#include "storage/run/run_set.h"

#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "storage/common/key_hash.h"
#include "storage/run/filter.h"

/* ---- building ---- */

static int newest_first(const void *a, const void *b)
{
    const struct run *x = *(struct run *const *)a, *y = *(struct run *const *)b;
    if (x->order != y->order)
        return x->order > y->order ? -1 : 1;
    return x->id > y->id ? -1 : 1;
}

static int by_key(const void *a, const void *b)
{
    const struct fragment *x = ((const struct tier_fragment *)a)->f, *y = ((const struct tier_fragment *)b)->f;
    return key_cmp(x->first_keyspace, x->first, y->first_keyspace, y->first);
}

static void fill_tier(struct run_set *s, size_t t, const size_t *tier_of)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_runs; i++)
        n += tier_of[i] == t ? s->runs[i]->n_fragments : 0;
    struct tier_fragment *all = ov_malloc((n + 1) * sizeof(*all));
    n = 0;
    for (size_t i = 0; i < s->n_runs; i++)
        for (size_t k = 0; tier_of[i] == t && k < s->runs[i]->n_fragments; k++)
            all[n++] = (struct tier_fragment){s->runs[i], &s->runs[i]->fragments[k]};
    qsort(all, n, sizeof(*all), by_key);
    s->tiers[t] = (struct tier){all, n};
}

struct run_set *run_set_new(struct run *const *runs, size_t n)
{
    struct run_set *s = ov_calloc(1, sizeof(*s));
    s->refs = 1;
    s->runs = ov_malloc((n + 1) * sizeof(struct run *));
    s->n_runs = n;
    for (size_t i = 0; i < n; i++) {
        s->runs[i] = runs[i];
        run_ref(runs[i]);
        s->max_ts = OV_MAX(s->max_ts, runs[i]->max_ts);
    }
    qsort(s->runs, n, sizeof(struct run *), newest_first);
    size_t *tier_of = ov_calloc(n + 1, sizeof(*tier_of));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            if (tier_of[k] >= tier_of[i] && run_overlap(s->runs[k], s->runs[i]))
                tier_of[i] = tier_of[k] + 1;
        s->n_tiers = OV_MAX(s->n_tiers, tier_of[i] + 1);
    }
    s->tiers = ov_calloc(s->n_tiers + 1, sizeof(*s->tiers));
    for (size_t t = 0; t < s->n_tiers; t++)
        fill_tier(s, t, tier_of);
    free(tier_of);
    return s;
}

void run_set_ref(struct run_set *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void run_set_unref(struct run_set *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t t = 0; t < s->n_tiers; t++)
        free((void *)s->tiers[t].fragments);
    for (size_t i = 0; i < s->n_runs; i++)
        run_unref(s->runs[i]);
    free(s->tiers);
    free(s->runs);
    free(s);
}

/* The first fragment that ends at or after the key; t->n if none. */
static size_t find_fragment(const struct tier *t, uint64_t keyspace, struct slice key)
{
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const struct fragment *f = t->fragments[mid].f;
        if (key_cmp(f->last_keyspace, f->last, keyspace, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ---- points ---- */

static enum eng_result read_index(struct cache *c, const struct tier_fragment *tf, struct block **out,
                                  struct eng_error *err)
{
    if (c)
        return cache_read(c, tf->run, tf->f->index_offset, tf->f->index_len, 0, FRAME_INDEX, out, err);
    return block_read(tf->run, tf->f->index_offset, tf->f->index_len, 0, FRAME_INDEX, out, err);
}

static enum eng_result read_block(struct cache *c, struct run *r, const struct index_entry *e, struct block **out,
                                  struct eng_error *err)
{
    if (c)
        return cache_read(c, r, e->offset, e->frame_len, e->raw_len, FRAME_DATA, out, err);
    return block_read(r, e->offset, e->frame_len, e->raw_len, FRAME_DATA, out, err);
}

static bool version_at(const struct data_block *b, uint32_t first, struct slice key, uint64_t snapshot,
                       struct entry *out)
{
    for (uint32_t i = first; i < b->n; i++) {
        *out = data_block_entry(b, i);
        if (i != first && !slice_eq(out->key, key))
            return false;
        if (out->ts <= snapshot)
            return true;
    }
    return false;
}

static enum eng_result get_in_fragment(struct cache *c, const struct tier_fragment *tf, uint64_t hash,
                                       uint64_t keyspace, struct slice key, uint64_t snapshot, struct entry *out,
                                       struct eng_error *err)
{
    struct block *index, *b;
    enum eng_result r = read_index(c, tf, &index, err);
    if (r != ENG_OK)
        return r;
    if (!filter_may_have(index->index.filter, hash))
        return ENG_NOT_FOUND;
    uint32_t at = index_find(&index->index, keyspace, key);
    if (at == 0)
        return ENG_NOT_FOUND;
    struct index_entry e = index_get(&index->index, at - 1);
    if (e.keyspace != keyspace)
        return ENG_NOT_FOUND;
    if ((r = read_block(c, tf->run, &e, &b, err)) != ENG_OK)
        return r;
    uint32_t i = data_block_lower_bound(&b->data, key);
    if (i == b->data.n || !slice_eq(data_block_key(&b->data, i), key))
        return ENG_NOT_FOUND;
    return version_at(&b->data, i, key, snapshot, out) ? ENG_OK : ENG_NOT_FOUND;
}

enum eng_result run_set_get(const struct run_set *s, struct cache *c, uint64_t hash, uint64_t keyspace,
                            struct slice key, uint64_t snapshot, struct entry *out, struct eng_error *err)
{
    for (size_t t = 0; t < s->n_tiers; t++) {
        size_t at = find_fragment(&s->tiers[t], keyspace, key);
        if (at == s->tiers[t].n)
            continue;
        const struct tier_fragment *tf = &s->tiers[t].fragments[at];
        if (key_cmp(tf->f->first_keyspace, tf->f->first, keyspace, key) > 0 || tf->f->min_ts > snapshot)
            continue;
        enum eng_result r = get_in_fragment(c, tf, hash, keyspace, key, snapshot, out, err);
        if (r != ENG_NOT_FOUND)
            return r;
    }
    return ENG_NOT_FOUND;
}

/* ---- walking ---- */

void tier_iter_init(struct tier_iter *it, const struct tier *t, struct cache *c)
{
    *it = (struct tier_iter){.tier = t, .cache = c, .fragment = t->n};
}

static void let_go(struct tier_iter *it, struct block **b)
{
    if (!it->cache)
        free(*b);
    *b = NULL;
}

void tier_iter_deinit(struct tier_iter *it)
{
    let_go(it, &it->block);
    let_go(it, &it->index);
    it->fragment = it->tier->n;
}

static enum eng_result open_fragment(struct tier_iter *it, size_t at, struct eng_error *err)
{
    let_go(it, &it->block);
    let_go(it, &it->index);
    it->fragment = at;
    if (at >= it->tier->n) {
        it->fragment = it->tier->n;
        return ENG_OK;
    }
    return read_index(it->cache, &it->tier->fragments[at], &it->index, err);
}

static enum eng_result open_block(struct tier_iter *it, uint32_t at, struct eng_error *err)
{
    struct index_entry e = index_get(&it->index->index, at);
    let_go(it, &it->block);
    it->block_at = at;
    return read_block(it->cache, it->tier->fragments[it->fragment].run, &e, &it->block, err);
}

/* Backwards to the newest version of the entry's key. */
static void to_newest(struct tier_iter *it)
{
    struct slice key = tier_iter_key(it);
    while (it->entry > 0 && slice_eq(data_block_key(&it->block->data, it->entry - 1), key))
        it->entry--;
}

static enum eng_result next_block(struct tier_iter *it, struct eng_error *err)
{
    enum eng_result r;
    it->entry = 0;
    if (it->block_at + 1 < it->index->index.n)
        return open_block(it, it->block_at + 1, err);
    if ((r = open_fragment(it, it->fragment + 1, err)) != ENG_OK || !tier_iter_valid(it))
        return r;
    return open_block(it, 0, err);
}

static enum eng_result prev_block(struct tier_iter *it, struct eng_error *err)
{
    enum eng_result r = ENG_OK;
    uint32_t at = it->block_at;
    if (at == 0) {
        if (it->fragment == 0)
            return open_fragment(it, it->tier->n, err);
        if ((r = open_fragment(it, it->fragment - 1, err)) != ENG_OK)
            return r;
        OV_ASSERT(it->index);
        at = it->index->index.n;
    }
    if ((r = open_block(it, at - 1, err)) != ENG_OK)
        return r;
    it->entry = it->block->data.n - 1;
    to_newest(it);
    return ENG_OK;
}

/* To the block that may hold the key: the last one that starts at or before it, else the fragment's first. */
static enum eng_result seek_block(struct tier_iter *it, uint64_t keyspace, struct slice key, struct eng_error *err)
{
    enum eng_result r = open_fragment(it, find_fragment(it->tier, keyspace, key), err);
    if (r != ENG_OK || !tier_iter_valid(it))
        return r;
    uint32_t at = index_find(&it->index->index, keyspace, key);
    return open_block(it, at ? at - 1 : 0, err);
}

enum eng_result tier_iter_seek(struct tier_iter *it, uint64_t keyspace, struct slice key, struct eng_error *err)
{
    enum eng_result r = seek_block(it, keyspace, key, err);
    if (r != ENG_OK || !tier_iter_valid(it))
        return r;
    const struct data_block *b = &it->block->data;
    it->entry = b->keyspace == keyspace ? data_block_lower_bound(b, key) : b->keyspace < keyspace ? b->n : 0;
    return it->entry == b->n ? next_block(it, err) : ENG_OK;
}

enum eng_result tier_iter_seek_before(struct tier_iter *it, uint64_t keyspace, struct slice key, struct eng_error *err)
{
    enum eng_result r = seek_block(it, keyspace, key, err);
    if (r != ENG_OK)
        return r;
    if (!tier_iter_valid(it)) { /* all fragments end before the key: the last entry of the last one */
        if (it->tier->n == 0)
            return ENG_OK;
        if ((r = open_fragment(it, it->tier->n - 1, err)) != ENG_OK)
            return r;
        OV_ASSERT(it->index);
        if ((r = open_block(it, it->index->index.n - 1, err)) != ENG_OK)
            return r;
        it->entry = it->block->data.n;
    } else {
        const struct data_block *b = &it->block->data;
        it->entry = b->keyspace == keyspace ? data_block_lower_bound(b, key) : b->keyspace < keyspace ? b->n : 0;
    }
    return tier_iter_prev(it, err);
}

enum eng_result tier_iter_next(struct tier_iter *it, struct eng_error *err)
{
    const struct data_block *b = &it->block->data;
    struct slice key = tier_iter_key(it);
    do
        it->entry++;
    while (it->entry < b->n && slice_eq(data_block_key(b, it->entry), key));
    return it->entry == b->n ? next_block(it, err) : ENG_OK;
}

enum eng_result tier_iter_prev(struct tier_iter *it, struct eng_error *err)
{
    if (it->entry == 0)
        return prev_block(it, err);
    it->entry--;
    to_newest(it);
    return ENG_OK;
}

bool tier_iter_version(const struct tier_iter *it, uint64_t snapshot, struct entry *out)
{
    return version_at(&it->block->data, it->entry, tier_iter_key(it), snapshot, out);
}

bool tier_iter_nth(const struct tier_iter *it, uint32_t n, struct entry *out)
{
    const struct data_block *b = &it->block->data;
    if (n >= b->n - it->entry)
        return false;
    *out = data_block_entry(b, it->entry + n);
    return n == 0 || slice_eq(out->key, tier_iter_key(it));
}
