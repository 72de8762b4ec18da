/* The block cache: shards, each a hash table and a clock (second chance) under its mutex, which is never held across a read. Two threads
 * that miss the same block read it twice; the first to come back with it wins. */
#include "storage/run/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/mutex.h"

enum { SHARDS = 8, BUCKETS_MIN = 256 };

struct shard {
    _Alignas(64) struct mutex m; /* RANK_CACHE */
    struct block **buckets;
    size_t n_buckets, n;
    struct block *hand; /* of the clock; NULL when empty */
    uint64_t bytes, hits, misses, evictions;
};

struct cache {
    struct shard shards[SHARDS];
    uint64_t shard_bytes;
    struct epoch_limbo *limbo;
};

struct cache *cache_new(uint64_t bytes, struct epoch_limbo *limbo)
{
    struct cache *c = aligned_alloc(64, (sizeof(*c) + 63) / 64 * 64);
    OV_ASSERT(c);
    memset(c, 0, sizeof(*c));
    c->shard_bytes = bytes / SHARDS;
    c->limbo = limbo;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &c->shards[i];
        mutex_init(&s->m, RANK_CACHE);
        s->n_buckets = BUCKETS_MIN;
        s->buckets = ov_calloc(s->n_buckets, sizeof(struct block *));
    }
    return c;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &c->shards[i];
        for (size_t k = 0; k < s->n_buckets; k++)
            for (struct block *b = s->buckets[k], *next; b; b = next) {
                next = b->chain;
                free(b);
            }
        free(s->buckets);
        mutex_destroy(&s->m);
    }
    free(c);
}

/* ---- reading ---- */

static enum eng_result damaged(const struct run *r, uint64_t offset, struct eng_error *err)
{
    char path[RUN_PATH_MAX];
    run_path(r->id, path);
    err->result = ENG_CORRUPT;
    snprintf(err->msg, sizeof(err->msg), "%s at offset %" PRIu64 ": a block is damaged", path, offset);
    return ENG_CORRUPT;
}

static struct block *block_alloc(const struct run *r, uint64_t offset, size_t space)
{
    struct block *b = ov_malloc(sizeof(*b) + space);
    memset(b, 0, sizeof(*b));
    b->run = r->id;
    b->offset = offset;
    b->bytes = sizeof(*b) + space;
    return b;
}

static bool block_open(struct block *b, enum frame_kind kind, struct slice raw)
{
    return kind == FRAME_DATA ? data_block_open(raw, &b->data) : index_open(raw, &b->index);
}

enum eng_result block_read(struct run *r, uint64_t offset, uint32_t frame_len, uint32_t raw_len, enum frame_kind kind,
                           struct block **out, struct eng_error *err)
{
    char path[RUN_PATH_MAX];
    *out = NULL;
    if (offset > r->bytes || frame_len > r->bytes - offset)
        return damaged(r, offset, err);
    /* A frame that is stored as it is gets unpacked where it was read to. */
    struct block *b = block_alloc(r, offset, frame_len);
    size_t got = 0;
    int rc = r->files->pread(r->file, b->space, frame_len, offset, &got);
    run_path(r->id, path);
    if (rc != 0) {
        free(b);
        return run_io_error(err, rc, "read", path, offset);
    }
    struct slice frame = slice_of(b->space, frame_len);
    int64_t raw = got == frame_len ? frame_check(frame, kind) : -1;
    if (raw < 0 || (raw_len && raw != raw_len))
        goto bad;
    if (frame.p[4] == ENG_COMPRESS_NONE) {
        if ((uint64_t)raw != frame_len - FRAME_HEADER ||
            !block_open(b, kind, slice_of(b->space + FRAME_HEADER, (size_t)raw)))
            goto bad;
    } else {
        struct block *packed = b;
        b = block_alloc(r, offset, (size_t)raw);
        bool ok = frame_unpack(frame, b->space);
        free(packed);
        if (!ok || !block_open(b, kind, slice_of(b->space, (size_t)raw)))
            goto bad;
    }
    *out = b;
    return ENG_OK;
bad:
    free(b);
    return damaged(r, offset, err);
}

/* ---- the table ---- */

static uint64_t place_hash(uint64_t run, uint64_t offset)
{
    uint64_t h = (run * 0x9E3779B97F4A7C15u ^ offset) * 0xD6E8FEB86659FD93u;
    return h ^ h >> 32;
}

static struct block *find(const struct shard *s, uint64_t hash, uint64_t run, uint64_t offset)
{
    struct block *b = s->buckets[hash / SHARDS & (s->n_buckets - 1)];
    while (b && (b->run != run || b->offset != offset))
        b = b->chain;
    return b;
}

static void grow(struct shard *s)
{
    size_t n = s->n_buckets * 2;
    struct block **buckets = ov_calloc(n, sizeof(struct block *));
    for (size_t k = 0; k < s->n_buckets; k++)
        for (struct block *b = s->buckets[k], *next; b; b = next) {
            next = b->chain;
            struct block **at = &buckets[place_hash(b->run, b->offset) / SHARDS & (n - 1)];
            b->chain = *at;
            *at = b;
        }
    free(s->buckets);
    s->buckets = buckets;
    s->n_buckets = n;
}

static void add(struct shard *s, uint64_t hash, struct block *b)
{
    if (s->n >= s->n_buckets)
        grow(s);
    struct block **at = &s->buckets[hash / SHARDS & (s->n_buckets - 1)];
    b->chain = *at;
    *at = b;
    if (s->hand) { /* behind the hand: it comes by last */
        b->next = s->hand;
        b->prev = s->hand->prev;
        b->prev->next = b;
        b->next->prev = b;
    } else {
        b->prev = b->next = s->hand = b;
    }
    s->n++;
    s->bytes += b->bytes;
}

static void take_out(struct shard *s, struct block *b)
{
    struct block **at = &s->buckets[place_hash(b->run, b->offset) / SHARDS & (s->n_buckets - 1)];
    while (*at != b)
        at = &(*at)->chain;
    *at = b->chain;
    if (b->next == b) {
        s->hand = NULL;
    } else {
        b->prev->next = b->next;
        b->next->prev = b->prev;
        if (s->hand == b)
            s->hand = b->next;
    }
    s->n--;
    s->bytes -= b->bytes;
}

static void block_free(struct epoch_garbage *g)
{
    free(OV_CONTAINER(g, struct block, garbage));
}

/* Makes room for `more`; what goes is linked by `chain`. */
static struct block *evict(struct cache *c, struct shard *s, size_t more)
{
    struct block *gone = NULL;
    while (s->hand && s->bytes + more > c->shard_bytes) {
        struct block *b = s->hand;
        if (atomic_exchange_explicit(&b->touched, false, memory_order_relaxed)) {
            s->hand = b->next;
            continue;
        }
        take_out(s, b);
        b->chain = gone;
        gone = b;
        s->evictions++;
    }
    return gone;
}

enum eng_result cache_read(struct cache *c, struct run *r, uint64_t offset, uint32_t frame_len, uint32_t raw_len,
                           enum frame_kind kind, struct block **out, struct eng_error *err)
{
    uint64_t hash = place_hash(r->id, offset);
    struct shard *s = &c->shards[hash % SHARDS];
    mutex_lock(&s->m);
    struct block *b = find(s, hash, r->id, offset);
    if (b)
        s->hits++;
    else
        s->misses++;
    mutex_unlock(&s->m);
    if (b) { /* stays until the step ends, evicted or not */
        if (!atomic_load_explicit(&b->touched, memory_order_relaxed))
            atomic_store_explicit(&b->touched, true, memory_order_relaxed);
        *out = b;
        return ENG_OK;
    }
    enum eng_result res = block_read(r, offset, frame_len, raw_len, kind, &b, err);
    *out = b;
    if (res != ENG_OK)
        return res;
    OV_ASSERT(b);
    if (b->bytes > c->shard_bytes / 2) {
        epoch_retire(c->limbo, &b->garbage, block_free);
        epoch_collect(c->limbo);
        return ENG_OK;
    }
    mutex_lock(&s->m);
    struct block *other = find(s, hash, r->id, offset), *gone = NULL;
    if (!other) {
        gone = evict(c, s, b->bytes);
        add(s, hash, b);
    }
    mutex_unlock(&s->m);
    if (other) {
        free(b);
        *out = other;
    }
    if (gone) {
        while (gone) {
            struct block *next = gone->chain;
            epoch_retire(c->limbo, &gone->garbage, block_free);
            gone = next;
        }
        epoch_collect(c->limbo);
    }
    return ENG_OK;
}

void cache_stats(struct cache *c, struct cache_stats *out)
{
    *out = (struct cache_stats){0};
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &c->shards[i];
        mutex_lock(&s->m);
        out->bytes += s->bytes;
        out->hits += s->hits;
        out->misses += s->misses;
        out->evictions += s->evictions;
        mutex_unlock(&s->m);
    }
}
