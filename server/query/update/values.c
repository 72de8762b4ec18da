/* Elements of arrays as lists and as sets. */
#include "server/query/update/update_private.h"

uint32_t array_count(const uint8_t *arr)
{
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    biter_init(&it, arr);
    while (biter_next(&it, &e))
        n++;
    return n;
}

struct bval *array_items(struct arena *a, const uint8_t *arr, uint32_t more, uint32_t *n)
{
    struct biter it;
    struct belem e;
    uint32_t count = arr ? array_count(arr) : 0, i = 0;
    struct bval *items = arena_alloc(a, ((size_t)count + more) * sizeof(*items));

    *n = count;
    if (!items || !arr)
        return items;
    biter_init(&it, arr);
    while (biter_next(&it, &e))
        items[i++] = e.v;
    return items;
}

bool value_set_init(struct value_set *s, struct arena *a, uint32_t max)
{
    uint32_t slots = 16;
    while (slots < 2 * (uint64_t)max)
        slots *= 2;
    *s = (struct value_set){.slots = arena_zalloc(a, slots * sizeof(*s->slots)), .mask = slots - 1};
    s->seed = (uint64_t)(uintptr_t)s->slots; /* where memory lies is what a client does not know */
    return s->slots != NULL;
}

/* Its slot, or the free one where it would go (a free slot has type 0: missing). */
static struct bval *find_slot(const struct value_set *s, struct bval v)
{
    uint32_t i = (uint32_t)bval_hash(v, s->seed) & s->mask;
    while (s->slots[i].type && !bval_eq(s->slots[i], v))
        i = (i + 1) & s->mask;
    return &s->slots[i];
}

bool value_set_add(struct value_set *s, struct bval v)
{
    struct bval *slot = find_slot(s, v);
    if (slot->type)
        return false;
    *slot = v;
    s->n++;
    return true;
}

bool value_set_has(const struct value_set *s, struct bval v)
{
    return find_slot(s, v)->type != 0;
}
