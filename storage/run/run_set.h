/* The runs that make up the database at one time, arranged for reading. Immutable and counted.
 *
 * Runs are arranged in tiers: a tier's fragments do not overlap, so that a key is looked for, and a scan goes on, in one place of each.
 * A run is one tier below the deepest newer run that it overlaps: a key's newer versions are always in a tier further up.
 * Data that was inserted in order ends up in one tier, however many runs it takes. */
#ifndef OV_RUN_SET_H
#define OV_RUN_SET_H

#include "server/base/base.h"
#include "storage/run/cache.h"
#include "storage/run/run.h"

struct tier {
    const struct tier_fragment *fragments; /* ascending */
    size_t n;
};
struct tier_fragment {
    struct run *run;
    const struct fragment *f;
};

struct run_set {
    _Atomic uint32_t refs;
    struct run **runs; /* newest first: by order, then by id, descending */
    size_t n_runs;
    struct tier *tiers;
    size_t n_tiers;
    uint64_t max_ts; /* of all */
};

/* Takes a reference to each run. One reference. */
struct run_set *run_set_new(struct run *const *runs, size_t n);
void run_set_ref(struct run_set *s);
void run_set_unref(struct run_set *s); /* accepts NULL */

/* The newest version with ts <= snapshot: ENG_OK and *out (a deletion is one), or ENG_NOT_FOUND. */
OV_MUST_CHECK enum eng_result run_set_get(const struct run_set *s, struct cache *c, uint64_t hash, uint64_t keyspace,
                                          struct slice key, uint64_t snapshot, struct entry *out,
                                          struct eng_error *err);

/* A place in a tier. With a cache, what it shows is borrowed until the step ends; without, until it moves (merges). */
struct tier_iter {
    const struct tier *tier;
    struct cache *cache;
    size_t fragment;     /* tier->n: at no entry */
    struct block *index; /* of the fragment */
    uint32_t block_at;
    struct block *block;
    uint32_t entry; /* the newest version of its key */
};

void tier_iter_init(struct tier_iter *it, const struct tier *t, struct cache *c);
void tier_iter_deinit(struct tier_iter *it);
static inline bool tier_iter_valid(const struct tier_iter *it)
{
    return it->fragment < it->tier->n;
}
static inline uint64_t tier_iter_keyspace(const struct tier_iter *it)
{
    return it->block->data.keyspace;
}
static inline struct slice tier_iter_key(const struct tier_iter *it)
{
    return data_block_key(&it->block->data, it->entry);
}

/* The first key at or after (keyspace, key); the last one before it. Past the ends: not valid. */
OV_MUST_CHECK enum eng_result tier_iter_seek(struct tier_iter *it, uint64_t keyspace, struct slice key,
                                             struct eng_error *err);
OV_MUST_CHECK enum eng_result tier_iter_seek_before(struct tier_iter *it, uint64_t keyspace, struct slice key,
                                                    struct eng_error *err);
OV_MUST_CHECK enum eng_result tier_iter_next(struct tier_iter *it, struct eng_error *err); /* the next key */
OV_MUST_CHECK enum eng_result tier_iter_prev(struct tier_iter *it, struct eng_error *err);
/* The current key's newest version with ts <= snapshot; false if there is none. */
bool tier_iter_version(const struct tier_iter *it, uint64_t snapshot, struct entry *out);
/* Its n-th version, newest first; false if there are fewer. */
bool tier_iter_nth(const struct tier_iter *it, uint32_t n, struct entry *out);

#endif
