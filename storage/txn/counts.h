/* What is known of each keyspace in memory: its exact number of keys (R17), and whether it was dropped. Written by one thread at a time
 * (holding RANK_COMMIT), read by any without a lock. Entries stay until the end. */
#ifndef OV_COUNTS_H
#define OV_COUNTS_H

#include <stdatomic.h>

#include "server/base/base.h"

struct count {
    _Atomic(struct count *) chain;
    uint64_t keyspace;
    _Atomic int64_t n;        /* keys at visible */
    int64_t delta;            /* what the active memtable changed in it; the writer's */
    _Atomic uint64_t dropped; /* timestamp of its drop; 0 */
    struct count *next_dirty;
    bool dirty; /* in the list of those whose delta is to be taken */
};

struct counts {
    _Atomic(struct count *) *buckets;
    struct count *dirty;
    size_t n_dirty;
};

struct count_delta {
    uint64_t keyspace;
    int64_t delta;
};

void counts_init(struct counts *c);
void counts_deinit(struct counts *c);
struct count *counts_find(const struct counts *c, uint64_t keyspace); /* NULL if never heard of */
struct count *counts_get(struct counts *c, uint64_t keyspace);        /* the writer's; makes one */
void counts_add(struct counts *c, struct count *k, int64_t delta);    /* the writer's */
/* Takes the deltas since the last time: *out is malloc'd. The writer's. */
size_t counts_take(struct counts *c, struct count_delta **out);

#endif
