/* Chunks and size classes: every 8 bytes up to 64, then by an eighth of a power of two, so that at most an eighth is wasted. */
#include "storage/memtable/mem_arena.h"

#include <sys/mman.h>

#include "server/base/assert.h"

enum { CHUNK = 1024 * 1024 };

struct mem_chunk { /* at the start of each chunk */
    struct mem_chunk *next;
    size_t bytes;
};

void mem_arena_init(struct mem_arena *a)
{
    *a = (struct mem_arena){0};
}

void mem_arena_deinit(struct mem_arena *a)
{
    while (a->chunks) {
        struct mem_chunk *c = a->chunks;
        a->chunks = c->next;
        munmap(c, c->bytes);
    }
}

void *mem_arena_alloc(struct mem_arena *a, size_t bytes)
{
    bytes = (bytes + 7) & ~(size_t)7;
    if (OV_UNLIKELY((size_t)(a->end - a->at) < bytes)) {
        OV_ASSERT(bytes <= CHUNK / 2);
        /* Mapped, not allocated: pages come when touched, so that an idle server stays small, and go back to the system at once. */
        struct mem_chunk *c = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        OV_ASSERT(c != MAP_FAILED); /* out of memory: stopping is safe, replay is tested */
        *c = (struct mem_chunk){.next = a->chunks, .bytes = CHUNK};
        a->chunks = c;
        a->at = (uint8_t *)(c + 1);
        a->end = (uint8_t *)c + CHUNK;
    }
    void *p = a->at;
    a->at += bytes;
    return p;
}

enum { FINE = 5 }; /* classes of 24, 32, 40, 48, 56 bytes */

/* Class FINE + c holds (8 + c % 8) << (c / 8 + 3) bytes: 64, 72, …, 120, 128, 144, … */
static uint8_t class_of(size_t bytes)
{
    if (bytes <= 56)
        return (uint8_t)(bytes <= 24 ? 0 : (bytes - 24 + 7) / 8);
    if (bytes <= 64)
        return FINE;
    unsigned shift = 63 - (unsigned)__builtin_clzll(bytes - 1) - 3; /* so that bytes - 1 >> shift is 8 .. 15 */
    return (uint8_t)(FINE + (shift - 3) * 8 + ((bytes - 1) >> shift) + 1 - 8);
}

static size_t class_bytes(uint8_t cls)
{
    return cls < FINE ? 24 + (size_t)cls * 8 : (size_t)(8 + (cls - FINE) % 8) << ((cls - FINE) / 8 + 3);
}

void *mem_arena_take(struct mem_arena *a, size_t *bytes, uint8_t *cls)
{
    *cls = class_of(*bytes);
    OV_DASSERT(*cls < MEM_CLASSES && class_bytes(*cls) >= *bytes);
    *bytes = class_bytes(*cls);
    void *p = a->free[*cls];
    if (!p)
        return mem_arena_alloc(a, *bytes);
    memcpy(&a->free[*cls], p, sizeof(p));
    return p;
}

size_t mem_arena_free(struct mem_arena *a, void *p, uint8_t cls)
{
    memcpy(p, &a->free[cls], sizeof(p));
    a->free[cls] = p;
    return class_bytes(cls);
}

size_t mem_arena_bytes(uint8_t cls)
{
    return class_bytes(cls);
}
