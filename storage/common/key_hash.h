/* The hash of a stored key: memtable buckets, document locks and the filters of runs share it, so that it is computed once.
 * Part of the run format (filters): to change it, raise RUN_VERSION. */
#ifndef OV_KEY_HASH_H
#define OV_KEY_HASH_H

#include "server/base/map.h"

static inline uint64_t key_hash(uint64_t keyspace, struct slice key)
{
    return hash_bytes(key.p, key.n) ^ keyspace * 0x9E3779B97F4A7C15u;
}

/* The order of everything stored: keyspace, then the tuple by memcmp. */
static inline int key_cmp(uint64_t ks_a, struct slice a, uint64_t ks_b, struct slice b)
{
    return ks_a != ks_b ? (ks_a > ks_b ? 1 : -1) : slice_cmp(a, b);
}

#endif
