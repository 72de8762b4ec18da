/* The merge: tiers of the input are walked side by side; of one key, a tier further up has the newer versions. Blocks are read past the
 * cache, so that a merge does not push out what readers need. */
#include "storage/compact/merge.h"

#include <stdlib.h>

#include "server/base/arena.h"
#include "storage/common/key_hash.h"
#include "storage/memtable/memtable.h"

struct merger {
    const struct merge *m;
    struct tier_iter *its;
    size_t n;
    struct entry *versions; /* of the current key, that stay; they lie in blocks that the iterators hold */
    size_t n_versions, cap;
};

static void add_version(struct merger *g, const struct entry *e)
{
    if (g->n_versions == g->cap) {
        g->cap = OV_MAX(16, g->cap * 2);
        g->versions = ov_realloc(g->versions, g->cap * sizeof(*g->versions));
    }
    g->versions[g->n_versions++] = *e;
}

/* The iterator at the smallest key, the newest of several; -1 at the end. */
static int first_of(const struct merger *g)
{
    int best = -1;
    for (size_t i = 0; i < g->n; i++) {
        if (!tier_iter_valid(&g->its[i]))
            continue;
        if (best < 0 || key_cmp(tier_iter_keyspace(&g->its[i]), tier_iter_key(&g->its[i]),
                                tier_iter_keyspace(&g->its[best]), tier_iter_key(&g->its[best])) < 0)
            best = (int)i;
    }
    return best;
}

static bool hides_something(const struct merge *m, uint64_t keyspace, struct slice key)
{
    for (size_t i = 0; i < m->n_below; i++)
        if (run_covers(m->below[i], keyspace, key))
            return true;
    return false;
}

/* Gathers the key's versions that stay, newest first. */
static void gather(struct merger *g, uint64_t keyspace, struct slice key)
{
    uint64_t until = UINT64_MAX;
    g->n_versions = 0;
    for (size_t i = 0; i < g->n; i++) {
        struct tier_iter *it = &g->its[i];
        struct entry e;
        if (!tier_iter_valid(it) || tier_iter_keyspace(it) != keyspace || !slice_eq(tier_iter_key(it), key))
            continue;
        for (uint32_t k = 0; tier_iter_nth(it, k, &e); k++) {
            if (until == UINT64_MAX || keep_needs(g->m->keep, e.ts, until))
                add_version(g, &e);
            until = e.ts;
        }
    }
    /* A deletion with nothing older behind it, which all snapshots see, says the same as no entry at all. */
    while (g->n_versions > 0 && g->versions[g->n_versions - 1].kind == VERSION_DELETE &&
           g->versions[g->n_versions - 1].ts <= keep_oldest(g->m->keep) && !hides_something(g->m, keyspace, key))
        g->n_versions--;
}

static enum eng_result step_over(struct merger *g, uint64_t keyspace, struct slice key, struct eng_error *err)
{
    enum eng_result r = ENG_OK;
    for (size_t i = 0; i < g->n && r == ENG_OK; i++) {
        struct tier_iter *it = &g->its[i];
        if (tier_iter_valid(it) && tier_iter_keyspace(it) == keyspace && slice_eq(tier_iter_key(it), key))
            r = tier_iter_next(it, err);
    }
    return r;
}

static enum eng_result skip_keyspace(struct merger *g, uint64_t keyspace, struct eng_error *err)
{
    enum eng_result r = ENG_OK;
    for (size_t i = 0; i < g->n && r == ENG_OK; i++)
        if (tier_iter_valid(&g->its[i]) && tier_iter_keyspace(&g->its[i]) == keyspace)
            r = tier_iter_seek(&g->its[i], keyspace + 1, slice_of(NULL, 0), err);
    return r;
}

static enum eng_result run(struct merger *g, struct output *out, struct buf *key, struct eng_error *err)
{
    enum eng_result r = ENG_OK;
    uint64_t looked_at = 0;
    bool any = false;
    for (size_t i = 0; i < g->n && r == ENG_OK; i++)
        r = tier_iter_seek(&g->its[i], 0, slice_of(NULL, 0), err);
    for (int at; r == ENG_OK && (at = first_of(g)) >= 0;) {
        uint64_t keyspace = tier_iter_keyspace(&g->its[at]);
        if ((!any || keyspace != looked_at) && g->m->gone(g->m->arg, keyspace)) {
            r = skip_keyspace(g, keyspace, err);
            continue;
        }
        any = true;
        looked_at = keyspace;
        struct slice k = tier_iter_key(&g->its[at]);
        key->len = 0;
        buf_append(key, k.p, k.n); /* the iterators' blocks go as they move */
        gather(g, keyspace, buf_slice(key));
        for (size_t i = 0; i < g->n_versions && r == ENG_OK; i++) {
            const struct entry *e = &g->versions[i];
            r = output_add(out, keyspace, e->key, e->ts, e->kind, e->value, err);
        }
        if (r == ENG_OK)
            r = step_over(g, keyspace, buf_slice(key), err);
    }
    return r;
}

enum eng_result merge_runs(const struct merge *m, struct output *out, struct eng_error *err)
{
    struct merger g = {.m = m, .n = m->from->n_tiers};
    struct buf key;
    buf_init(&key);
    g.its = ov_calloc(g.n + 1, sizeof(*g.its));
    for (size_t i = 0; i < g.n; i++)
        tier_iter_init(&g.its[i], &m->from->tiers[i], NULL);
    enum eng_result r = run(&g, out, &key, err);
    for (size_t i = 0; i < g.n; i++)
        tier_iter_deinit(&g.its[i]);
    buf_free(&key);
    free(g.its);
    free(g.versions);
    return r;
}
