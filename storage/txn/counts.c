/* A hash table that only grows, with a fixed number of buckets: mapped, so that those of a small database cost nothing. */
#include "storage/txn/counts.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "server/base/arena.h"
#include "server/base/assert.h"

enum { BUCKETS = 1 << 16 };

static size_t bucket_of(uint64_t keyspace)
{
    return keyspace * 0x9E3779B97F4A7C15u >> 48;
}

void counts_init(struct counts *c)
{
    *c = (struct counts){0};
    c->buckets = mmap(NULL, BUCKETS * sizeof(*c->buckets), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OV_ASSERT(c->buckets != MAP_FAILED);
}

void counts_deinit(struct counts *c)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct count *k = c->buckets[i], *next; k; k = next) {
            next = k->chain;
            free(k);
        }
    munmap(c->buckets, BUCKETS * sizeof(*c->buckets));
}

struct count *counts_find(const struct counts *c, uint64_t keyspace)
{
    struct count *k = atomic_load_explicit(&c->buckets[bucket_of(keyspace)], memory_order_acquire);
    while (k && k->keyspace != keyspace)
        k = atomic_load_explicit(&k->chain, memory_order_relaxed);
    return k;
}

struct count *counts_get(struct counts *c, uint64_t keyspace)
{
    struct count *k = counts_find(c, keyspace);
    if (!k) {
        k = ov_calloc(1, sizeof(*k));
        k->keyspace = keyspace;
        _Atomic(struct count *) *b = &c->buckets[bucket_of(keyspace)];
        atomic_store_explicit(&k->chain, atomic_load_explicit(b, memory_order_relaxed), memory_order_relaxed);
        atomic_store_explicit(b, k, memory_order_release);
    }
    return k;
}

void counts_add(struct counts *c, struct count *k, int64_t delta)
{
    atomic_store_explicit(&k->n, atomic_load_explicit(&k->n, memory_order_relaxed) + delta, memory_order_relaxed);
    k->delta += delta;
    if (!k->dirty) {
        k->dirty = true;
        k->next_dirty = c->dirty;
        c->dirty = k;
        c->n_dirty++;
    }
}

size_t counts_take(struct counts *c, struct count_delta **out)
{
    size_t n = 0;
    *out = ov_malloc((c->n_dirty + 1) * sizeof(**out));
    for (struct count *k = c->dirty; k; k = k->next_dirty) {
        if (k->delta)
            (*out)[n++] = (struct count_delta){k->keyspace, k->delta};
        k->delta = 0;
        k->dirty = false;
    }
    c->dirty = NULL;
    c->n_dirty = 0;
    return n;
}
