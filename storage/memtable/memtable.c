/* The memtable. Happy path of a write: find the node by hash, put a version in front. A new key is linked into the skip list first, from
 * the bottom up, then into its bucket, so that whoever finds it finds it whole.
 *
 * A snapshot's reader may pass a node that is being linked just then: its versions are newer than any snapshot, for `visible` moves only
 * after the whole batch is in. That is why the back pointer, which is set last, may lag. */
#include "storage/memtable/memtable.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "storage/common/key_hash.h"
#include "storage/memtable/mem_arena.h"

enum {
    MAX_HEIGHT = 12, /* a quarter of the nodes goes up a level: 4^12 keys */
    FINGERS = 16,
    MT_LARGE = 255,
    BUCKET_BYTES = 128, /* one bucket for so many bytes of data */
};

/* Where the last new key of a keyspace went: keys that come in order need no search. */
struct finger {
    uint64_t keyspace;
    struct mt_node *last;
    struct mt_node *before[MAX_HEIGHT]; /* before or at `last`, by level */
};

struct large { /* in front of a malloc'd version */
    struct large *next, **at;
    struct mt_version v;
};

struct superseding { /* a version that has taken another's place */
    struct mt_version *version;
    uint32_t bytes; /* of the other */
};

struct memtable {
    _Atomic uint32_t refs;
    _Atomic uint64_t bytes, keys;
    uint64_t min_ts, max_ts;
    _Atomic(struct mt_node *) *buckets;
    size_t n_buckets;
    struct mt_node *head;
    struct mem_arena arena;
    struct large *large;
    uint64_t rand;
    struct finger fingers[FINGERS];
    struct superseding *queue; /* ring, oldest first: what is behind them goes when nobody needs it */
    uint64_t queue_bytes;
    size_t queue_cap, queue_at, queue_n;
};

struct memtable *memtable_new(uint64_t bytes)
{
    struct memtable *m = ov_calloc(1, sizeof(*m));
    m->refs = 1;
    m->rand = 0x2545F4914F6CDD1Du;
    m->n_buckets = 1024;
    while (m->n_buckets < bytes / BUCKET_BYTES)
        m->n_buckets *= 2;
    m->buckets =
        mmap(NULL, m->n_buckets * sizeof(*m->buckets), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OV_ASSERT(m->buckets != MAP_FAILED);
    mem_arena_init(&m->arena);
    size_t size = sizeof(*m->head) + MAX_HEIGHT * sizeof(m->head->next[0]);
    m->head = mem_arena_alloc(&m->arena, size);
    memset(m->head, 0, size);
    m->head->height = MAX_HEIGHT;
    return m;
}

void memtable_ref(struct memtable *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
}

void memtable_unref(struct memtable *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    while (m->large) {
        struct large *l = m->large;
        m->large = l->next;
        free(l);
    }
    munmap(m->buckets, m->n_buckets * sizeof(*m->buckets));
    mem_arena_deinit(&m->arena);
    free(m->queue);
    free(m);
}

static uint64_t prefix_of(struct slice key)
{
    if (key.n >= 8)
        return load_be64(key.p);
    uint8_t b[8] = {0};
    if (key.n)
        memcpy(b, key.p, key.n);
    return load_be64(b);
}

/* node - (keyspace, key) */
static int node_cmp(const struct mt_node *n, uint64_t keyspace, uint64_t prefix, struct slice key)
{
    if (n->keyspace != keyspace)
        return n->keyspace > keyspace ? 1 : -1;
    if (n->prefix != prefix)
        return n->prefix > prefix ? 1 : -1;
    return slice_cmp(mt_key(n), key);
}

struct mt_node *memtable_find(const struct memtable *m, uint64_t hash, uint64_t keyspace, struct slice key)
{
    struct mt_node *n = atomic_load_explicit(&m->buckets[hash & (m->n_buckets - 1)], memory_order_acquire);
    while (n && (n->hash != (uint32_t)(hash >> 32) || n->keyspace != keyspace || !slice_eq(mt_key(n), key)))
        n = atomic_load_explicit(&n->chain, memory_order_acquire);
    return n;
}

void memtable_prefetch(const struct memtable *m, uint64_t hash)
{
    __builtin_prefetch((const void *)&m->buckets[hash & (m->n_buckets - 1)]);
}

static struct mt_node *next_at(const struct mt_node *n, int level)
{
    return atomic_load_explicit(&n->next[level], memory_order_acquire);
}

/* The last node before (keyspace, key), or the head; before[level], if asked for, is the last one at each level. */
static struct mt_node *search(const struct memtable *m, uint64_t keyspace, struct slice key, struct mt_node **before)
{
    uint64_t prefix = prefix_of(key);
    struct mt_node *at = m->head, *bound = NULL;
    for (int level = MAX_HEIGHT - 1; level >= 0; level--) {
        struct mt_node *n;
        while ((n = next_at(at, level)) != bound && n && node_cmp(n, keyspace, prefix, key) < 0)
            at = n;
        bound = n; /* known not to be before the key: needs no second look one level down */
        if (before)
            before[level] = at;
    }
    return at;
}

struct mt_node *memtable_seek(const struct memtable *m, uint64_t keyspace, struct slice key)
{
    return mt_next(search(m, keyspace, key, NULL));
}

struct mt_node *memtable_seek_before(const struct memtable *m, uint64_t keyspace, struct slice key)
{
    struct mt_node *n = search(m, keyspace, key, NULL);
    return n == m->head ? NULL : n;
}

struct mt_node *memtable_first(const struct memtable *m)
{
    return mt_next(m->head);
}

static int random_height(struct memtable *m)
{
    m->rand ^= m->rand << 13;
    m->rand ^= m->rand >> 7;
    m->rand ^= m->rand << 17;
    int h = 1;
    for (uint64_t r = m->rand >> 8; h < MAX_HEIGHT && (r & 3) == 0; r >>= 2)
        h++;
    return h;
}

/* The nodes before the new key, by the keyspace's finger if the key is the next one after the last. */
static void find_place(const struct memtable *m, const struct finger *f, uint64_t keyspace, struct slice key,
                       struct mt_node **before)
{
    uint64_t prefix = prefix_of(key);
    if (f->last && f->keyspace == keyspace && node_cmp(f->last, keyspace, prefix, key) < 0) {
        struct mt_node *n = next_at(f->last, 0);
        if (!n || node_cmp(n, keyspace, prefix, key) > 0) {
            for (int level = 0; level < MAX_HEIGHT; level++) {
                struct mt_node *at = level < f->last->height ? f->last : f->before[level];
                while ((n = next_at(at, level)) && node_cmp(n, keyspace, prefix, key) < 0)
                    at = n;
                before[level] = at;
            }
            return;
        }
    }
    search(m, keyspace, key, before);
}

static void large_link(struct memtable *m, struct large *l)
{
    l->next = m->large;
    l->at = &m->large;
    if (l->next)
        l->next->at = &l->next;
    m->large = l;
}

static struct mt_node *add_node(struct memtable *m, uint64_t hash, uint64_t keyspace, struct slice key,
                                struct mt_version *v)
{
    struct finger *f = &m->fingers[keyspace * 0x9E3779B97F4A7C15u >> 60];
    struct mt_node *before[MAX_HEIGHT];
    find_place(m, f, keyspace, key, before);
    int height = random_height(m);
    size_t size = sizeof(struct mt_node) + (size_t)height * sizeof(before[0]) + key.n;
    struct mt_node *n;
    if (OV_LIKELY(size <= MEM_LARGE)) {
        n = mem_arena_alloc(&m->arena, size);
    } else {
        struct large *l = ov_malloc(sizeof(*l) + size); /* a giant key: kept with the large versions */
        large_link(m, l);
        n = (struct mt_node *)(l + 1);
    }
    n->keyspace = keyspace;
    n->prefix = prefix_of(key);
    n->hash = (uint32_t)(hash >> 32);
    n->key_len = (uint32_t)key.n;
    n->height = (uint8_t)height;
    if (key.n)
        memcpy((uint8_t *)(n->next + height), key.p, key.n);
    atomic_store_explicit(&n->newest, v, memory_order_relaxed);
    atomic_store_explicit(&n->prev, before[0], memory_order_relaxed);
    for (int level = 0; level < height; level++)
        atomic_store_explicit(&n->next[level], next_at(before[level], level), memory_order_relaxed);
    for (int level = 0; level < height; level++)
        atomic_store_explicit(&before[level]->next[level], n, memory_order_release);
    struct mt_node *after = next_at(n, 0);
    if (after)
        atomic_store_explicit(&after->prev, n, memory_order_release);
    _Atomic(struct mt_node *) *bucket = &m->buckets[hash & (m->n_buckets - 1)];
    atomic_store_explicit(&n->chain, atomic_load_explicit(bucket, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(bucket, n, memory_order_release);
    f->keyspace = keyspace;
    f->last = n;
    memcpy(f->before, before, sizeof(before));
    atomic_fetch_add_explicit(&m->keys, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->bytes, size, memory_order_relaxed);
    return n;
}

bool memtable_wants_large(size_t value_bytes)
{
    return value_bytes + sizeof(struct mt_version) > MEM_LARGE;
}

struct mt_version *memtable_large(struct slice value)
{
    struct large *l = ov_malloc(sizeof(*l) + value.n);
    l->v.cls = MT_LARGE;
    l->v.len = (uint32_t)value.n;
    if (value.n)
        memcpy(l->v.data, value.p, value.n);
    return &l->v;
}

void memtable_large_free(struct mt_version *v)
{
    if (v)
        free(OV_CONTAINER(v, struct large, v));
}

static struct mt_version *new_version(struct memtable *m, struct slice value, struct mt_version *large, size_t *bytes)
{
    *bytes = sizeof(struct mt_version) + value.n;
    if (large || OV_UNLIKELY(memtable_wants_large(value.n))) {
        struct large *l = OV_CONTAINER(large ? large : memtable_large(value), struct large, v);
        large_link(m, l);
        return &l->v;
    }
    uint8_t cls;
    struct mt_version *v = mem_arena_take(&m->arena, bytes, &cls);
    v->cls = cls;
    v->len = (uint32_t)value.n;
    if (value.n)
        memcpy(v->data, value.p, value.n);
    return v;
}

static size_t version_bytes(const struct mt_version *v)
{
    return v->cls == MT_LARGE ? sizeof(*v) + v->len : mem_arena_bytes(v->cls);
}

static void queue_add(struct memtable *m, struct mt_version *superseding, const struct mt_version *old)
{
    if (m->queue_n == m->queue_cap) {
        size_t cap = OV_MAX(256, m->queue_cap * 2);
        struct superseding *q = ov_malloc(cap * sizeof(*q));
        for (size_t i = 0; i < m->queue_n; i++)
            q[i] = m->queue[(m->queue_at + i) & (m->queue_cap - 1)];
        free(m->queue);
        m->queue = q;
        m->queue_cap = cap;
        m->queue_at = 0;
    }
    uint32_t bytes = (uint32_t)version_bytes(old);
    m->queue[(m->queue_at + m->queue_n++) & (m->queue_cap - 1)] = (struct superseding){superseding, bytes};
    m->queue_bytes += bytes;
}

void memtable_add(struct memtable *m, uint64_t hash, uint64_t keyspace, struct slice key, uint64_t ts,
                  enum version_kind kind, struct slice value, struct mt_version *large)
{
    size_t bytes;
    struct mt_version *v = new_version(m, value, large, &bytes);
    v->ts = ts;
    v->kind = (uint8_t)kind;
    atomic_fetch_add_explicit(&m->bytes, bytes, memory_order_relaxed);
    if (m->min_ts == 0)
        m->min_ts = ts;
    m->max_ts = OV_MAX(m->max_ts, ts);
    struct mt_node *n = memtable_find(m, hash, keyspace, key);
    if (!n) {
        atomic_store_explicit(&v->older, NULL, memory_order_relaxed);
        add_node(m, hash, keyspace, key, v);
        return;
    }
    struct mt_version *old = atomic_load_explicit(&n->newest, memory_order_relaxed);
    OV_ASSERT(old->ts < ts); /* R24 */
    atomic_store_explicit(&v->older, old, memory_order_relaxed);
    atomic_store_explicit(&n->newest, v, memory_order_release);
    queue_add(m, v, old);
}

static void free_version(struct memtable *m, struct mt_version *v, struct mt_version **large)
{
    size_t bytes;
    if (v->cls == MT_LARGE) {
        struct large *l = OV_CONTAINER(v, struct large, v);
        *l->at = l->next;
        if (l->next)
            l->next->at = l->at;
        bytes = sizeof(*v) + v->len;
        atomic_store_explicit(&v->older, *large, memory_order_relaxed);
        *large = v;
    } else {
        bytes = mem_arena_free(&m->arena, v, v->cls);
    }
    atomic_fetch_sub_explicit(&m->bytes, bytes, memory_order_relaxed);
}

uint64_t memtable_trim_target(const struct memtable *m, uint64_t keep_bytes, size_t max)
{
    uint64_t ts = 0, left = m->queue_bytes;
    for (size_t i = 0; i < max && i < m->queue_n && left > keep_bytes; i++) {
        const struct superseding *s = &m->queue[(m->queue_at + i) & (m->queue_cap - 1)];
        ts = s->version->ts;
        left -= s->bytes;
    }
    return ts;
}

void memtable_trim(struct memtable *m, uint64_t limit, struct mt_version **large)
{
    while (m->queue_n > 0) {
        struct superseding s = m->queue[m->queue_at];
        if (s.version->ts > limit)
            return;
        m->queue_at = (m->queue_at + 1) & (m->queue_cap - 1);
        m->queue_n--;
        m->queue_bytes -= s.bytes;
        /* The queue is in commit order: what the version superseded is the chain's end. */
        struct mt_version *v = atomic_load_explicit(&s.version->older, memory_order_relaxed);
        OV_DASSERT(v && !atomic_load_explicit(&v->older, memory_order_relaxed));
        atomic_store_explicit(&s.version->older, NULL, memory_order_relaxed);
        if (v)
            free_version(m, v, large);
    }
}

uint64_t memtable_superseded(const struct memtable *m)
{
    return m->queue_bytes;
}

uint64_t memtable_bytes(const struct memtable *m)
{
    return atomic_load_explicit(&m->bytes, memory_order_relaxed);
}

uint64_t memtable_keys(const struct memtable *m)
{
    return atomic_load_explicit(&m->keys, memory_order_relaxed);
}

uint64_t memtable_min_ts(const struct memtable *m)
{
    return m->min_ts;
}

uint64_t memtable_max_ts(const struct memtable *m)
{
    return m->max_ts;
}
