/* The hash map: one array of slots, linear probing, at most three quarters full. A removal moves the entries behind it back
 * instead of leaving a marker, so a map that is filled and emptied for ever does not slow down. */
#include "server/base/map.h"

#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define FIRST_SLOTS 16

struct slot {
    uint64_t hash;
    uint8_t *key;
    size_t key_len;
    void *value; /* NULL: the slot is free */
};

struct map {
    struct slot *slots;
    size_t mask; /* slots - 1; the number of slots is a power of two */
    size_t count;
};

uint64_t hash_bytes(const void *p, size_t n)
{
    return XXH3_64bits(p, n);
}

struct map *map_new(void)
{
    struct map *m = ov_malloc(sizeof(*m));
    m->slots = ov_calloc(FIRST_SLOTS, sizeof(*m->slots));
    m->mask = FIRST_SLOTS - 1;
    m->count = 0;
    return m;
}

void map_free(struct map *m)
{
    if (!m)
        return;
    for (size_t i = 0; i <= m->mask; i++)
        if (m->slots[i].value)
            free(m->slots[i].key);
    free(m->slots);
    free(m);
}

/* The slot that holds the key, or the free one where it belongs. There is always a free slot, so this ends. */
static size_t find(const struct map *m, uint64_t hash, struct slice key)
{
    size_t i = hash & m->mask;
    for (;; i = (i + 1) & m->mask) {
        const struct slot *s = &m->slots[i];
        if (!s->value || (s->hash == hash && slice_eq(slice_of(s->key, s->key_len), key)))
            return i;
    }
}

static void grow(struct map *m)
{
    struct slot *old = m->slots;
    size_t n = m->mask + 1;
    m->slots = ov_calloc(n * 2, sizeof(*m->slots));
    m->mask = n * 2 - 1;
    for (size_t i = 0; i < n; i++)
        if (old[i].value)
            m->slots[find(m, old[i].hash, slice_of(old[i].key, old[i].key_len))] = old[i];
    free(old);
}

void *map_get(const struct map *m, struct slice key)
{
    return m->slots[find(m, hash_bytes(key.p, key.n), key)].value;
}

void *map_put(struct map *m, struct slice key, void *value)
{
    OV_ASSERT(value);
    uint64_t hash = hash_bytes(key.p, key.n);
    struct slot *s = &m->slots[find(m, hash, key)];
    void *old = s->value;
    if (old) {
        s->value = value;
        return old;
    }
    if ((m->count + 1) * 4 > (m->mask + 1) * 3) {
        grow(m);
        s = &m->slots[find(m, hash, key)];
    }
    uint8_t *copy = ov_malloc(key.n);
    if (key.n)
        memcpy(copy, key.p, key.n);
    *s = (struct slot){.hash = hash, .key = copy, .key_len = key.n, .value = value};
    m->count++;
    return NULL;
}

void *map_remove(struct map *m, struct slice key)
{
    size_t hole = find(m, hash_bytes(key.p, key.n), key);
    void *value = m->slots[hole].value;
    if (!value)
        return NULL;
    free(m->slots[hole].key);
    m->count--;
    /* Move back every entry of the run behind that may lie in the hole: one whose home is not between hole and entry. */
    for (size_t i = (hole + 1) & m->mask; m->slots[i].value; i = (i + 1) & m->mask) {
        size_t home = m->slots[i].hash & m->mask;
        if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct slot){0};
    return value;
}

size_t map_count(const struct map *m)
{
    return m->count;
}

bool map_next(const struct map *m, size_t *pos, struct slice *key, void **value)
{
    for (; *pos <= m->mask; ++*pos) {
        const struct slot *s = &m->slots[*pos];
        if (s->value) {
            *key = slice_of(s->key, s->key_len);
            *value = s->value;
            ++*pos;
            return true;
        }
    }
    return false;
}
