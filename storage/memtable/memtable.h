/* The memtable: the newest data, in memory, every version of it that a reader may need. One node a key, its versions newest first; a
 * hash index for points, a skip list for order (Pugh 1990; ours has a level-0 back pointer, for scans backwards).
 *
 * One writer at a time (it holds RANK_COMMIT); readers take no lock: everything is linked by release stores, and nothing that a reader
 * can reach is freed while its step or snapshot may need it (memtable_trim). Nodes are never removed.
 * A full memtable is sealed: no more writes. Then the flush thread reads it into a run. */
#ifndef OV_MEMTABLE_H
#define OV_MEMTABLE_H

#include <stdatomic.h>

#include "server/base/base.h"

struct memtable;

enum version_kind { VERSION_INSERT = 1, VERSION_UPDATE, VERSION_DELETE }; /* numbers as in the journal and in runs */

struct mt_version {
    _Atomic(struct mt_version *) older;
    uint64_t ts;
    uint32_t len;
    uint8_t kind; /* enum version_kind */
    uint8_t cls;  /* size class; MT_LARGE: malloc'd */
    uint8_t data[];
};

struct mt_node {
    _Atomic(struct mt_version *) newest; /* NULL only in the head */
    _Atomic(struct mt_node *) chain;     /* in the hash bucket */
    _Atomic(struct mt_node *) prev;      /* in key order; the head before the first */
    uint64_t keyspace;
    uint64_t prefix; /* the first 8 bytes of the tuple, big-endian: most comparisons end here */
    uint32_t hash;
    uint32_t key_len;
    uint8_t height;
    _Atomic(struct mt_node *) next[]; /* height links, then the tuple's bytes */
};

static inline struct slice mt_key(const struct mt_node *n)
{
    return slice_of((const uint8_t *)(n->next + n->height), n->key_len);
}
static inline struct slice mt_value(const struct mt_version *v)
{
    return slice_of(v->data, v->len);
}

/* A new one for about `bytes` of data (sizes the hash index); reference count 1. */
struct memtable *memtable_new(uint64_t bytes);
void memtable_ref(struct memtable *m);
void memtable_unref(struct memtable *m); /* frees with the last one; accepts NULL */

/* Writer's. Puts a version in front of the key's others; ts is larger than theirs. `large`, if not NULL, is a version from
 * memtable_large for the same value. */
struct mt_version *memtable_large(
    struct slice value);                        /* a copy made before the commit lock; value.n >= MEM_LARGE / 2 or so */
void memtable_large_free(struct mt_version *v); /* one that was not used after all; accepts NULL */
bool memtable_wants_large(size_t value_bytes);  /* is it too big to be copied under the lock? */
void memtable_add(struct memtable *m, uint64_t hash, uint64_t keyspace, struct slice key, uint64_t ts,
                  enum version_kind kind, struct slice value, struct mt_version *large);
/* Writer's. Frees versions that were superseded by one with ts <= limit: no reader may need what was before `limit`. Large ones are not
 * freed but put on *large (linked by `older`) for memtable_large_free outside the lock. */
void memtable_trim(struct memtable *m, uint64_t limit, struct mt_version **large);
/* Writer's. The limit that leaves about keep_bytes of superseded versions, dealing with at most `max`; 0: there are no more. */
uint64_t memtable_trim_target(const struct memtable *m, uint64_t keep_bytes, size_t max);
uint64_t memtable_superseded(const struct memtable *m); /* bytes of superseded versions that are still here; writer's */

uint64_t memtable_bytes(const struct memtable *m); /* in use now; any thread */
uint64_t memtable_keys(const struct memtable *m);  /* nodes; any thread */
uint64_t memtable_min_ts(const struct memtable *m);
uint64_t memtable_max_ts(const struct memtable *m); /* 0 when empty */

/* Readers'. */
struct mt_node *memtable_find(const struct memtable *m, uint64_t hash, uint64_t keyspace,
                              struct slice key);                 /* NULL: no such node */
void memtable_prefetch(const struct memtable *m, uint64_t hash); /* the bucket of a key that will be looked for soon */
/* The newest version with ts <= snapshot, a deletion included; NULL if there is none here. */
static inline struct mt_version *mt_version_at(const struct mt_node *n, uint64_t snapshot)
{
    struct mt_version *v = atomic_load_explicit(&n->newest, memory_order_acquire);
    while (v && v->ts > snapshot)
        v = atomic_load_explicit(&v->older, memory_order_acquire);
    return v;
}
/* The first node at or after (keyspace, key); the last one before it. NULL at the ends. */
struct mt_node *memtable_seek(const struct memtable *m, uint64_t keyspace, struct slice key);
struct mt_node *memtable_seek_before(const struct memtable *m, uint64_t keyspace, struct slice key);
struct mt_node *memtable_first(const struct memtable *m);
static inline struct mt_node *mt_next(const struct mt_node *n)
{
    return atomic_load_explicit(&n->next[0], memory_order_acquire);
}
static inline struct mt_node *mt_prev(const struct mt_node *n)
{
    struct mt_node *p = atomic_load_explicit(&n->prev, memory_order_acquire);
    return p && atomic_load_explicit(&p->newest, memory_order_relaxed) ? p : NULL; /* the head has no version */
}

#endif
