/* Where a memtable's nodes and versions live: mmap'd chunks, given back all at once. Freed versions are kept by size class and used
 * again, so that a load of updates runs in place. Thread: one writer at a time. */
#ifndef OV_MEM_ARENA_H
#define OV_MEM_ARENA_H

#include "server/base/base.h"

enum { MEM_CLASSES = 80, MEM_LARGE = 32 * 1024 /* what is larger does not come from here */ };

struct mem_arena {
    uint8_t *at, *end; /* of the newest chunk */
    struct mem_chunk *chunks;
    void *free[MEM_CLASSES]; /* by size class */
};

void mem_arena_init(struct mem_arena *a);
void mem_arena_deinit(struct mem_arena *a);
void *mem_arena_alloc(struct mem_arena *a, size_t bytes); /* 8-aligned, never freed by itself; at most 64 KiB */
/* By size class: *cls tells it, for mem_arena_free; *bytes becomes what it really takes. At most MEM_LARGE. */
void *mem_arena_take(struct mem_arena *a, size_t *bytes, uint8_t *cls);
size_t mem_arena_bytes(uint8_t cls);
size_t mem_arena_free(struct mem_arena *a, void *p, uint8_t cls); /* returns the bytes that come free */

#endif
