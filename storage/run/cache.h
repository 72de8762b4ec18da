/* The block cache: unpacked, checked blocks and fragment indexes of runs, up to a hard limit.
 *
 * What cache_read returns is borrowed until the step ends: an evicted block waits in the engine's limbo until no step can see it, so that
 * nothing is counted or pinned on the way. A block larger than half a shard is not kept: it goes with the step that read it.
 * Thread: any, inside a step. */
#ifndef OV_RUN_CACHE_H
#define OV_RUN_CACHE_H

#include <stdatomic.h>

#include "server/base/base.h"
#include "storage/common/epoch.h"
#include "storage/run/block.h"
#include "storage/run/run.h"

struct cache;

struct block { /* one loaded piece of a run */
    struct epoch_garbage garbage;
    struct block *chain;       /* in the shard's bucket */
    struct block *prev, *next; /* in the shard's clock */
    uint64_t run, offset;
    size_t bytes;         /* that it counts for */
    _Atomic bool touched; /* since the clock's hand came by */
    union {
        struct data_block data;
        struct index_view index;
    };
    uint8_t space[];
};

struct cache *cache_new(uint64_t bytes, struct epoch_limbo *limbo);
void cache_free(struct cache *c); /* accepts NULL */

/* The piece of `kind` at `offset`, read, checked and unpacked if it is not here. raw_len 0: not known beforehand.
 * Errors: ENG_IO, ENG_CORRUPT (names file and offset). */
OV_MUST_CHECK enum eng_result cache_read(struct cache *c, struct run *r, uint64_t offset, uint32_t frame_len,
                                         uint32_t raw_len, enum frame_kind kind, struct block **out,
                                         struct eng_error *err);
/* The same without any cache, for merges: the caller owns the block (free). */
OV_MUST_CHECK enum eng_result block_read(struct run *r, uint64_t offset, uint32_t frame_len, uint32_t raw_len,
                                         enum frame_kind kind, struct block **out, struct eng_error *err);

struct cache_stats {
    uint64_t bytes, hits, misses, evictions;
};
void cache_stats(struct cache *c, struct cache_stats *out);

#endif
