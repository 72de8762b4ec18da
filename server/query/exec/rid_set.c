/* A set of record ids: open addressing, linear probing. */
#include <stdlib.h>

#include "server/query/exec/exec_private.h"

static size_t slot_of(const struct rid_set *s, uint64_t rid)
{
    uint64_t h = rid * 0x9E3779B97F4A7C15u; /* Fibonacci hashing: ids come in runs */
    size_t i = (size_t)(h >> 20) & (s->cap - 1);
    while (s->slots[i] && s->slots[i] != rid)
        i = (i + 1) & (s->cap - 1);
    return i;
}

static void grow(struct rid_set *s)
{
    struct rid_set old = *s;
    s->cap = OV_MAX((size_t)64, old.cap * 2);
    s->slots = ov_calloc(s->cap, sizeof(*s->slots));
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i])
            s->slots[slot_of(s, old.slots[i])] = old.slots[i];
    free(old.slots);
}

bool rid_set_add(struct rid_set *s, uint64_t rid)
{
    if (s->n * 2 >= s->cap)
        grow(s);
    size_t i = slot_of(s, rid);
    if (s->slots[i])
        return false;
    s->slots[i] = rid;
    s->n++;
    return true;
}

void rid_set_free(struct rid_set *s)
{
    free(s->slots);
    *s = (struct rid_set){0};
}
