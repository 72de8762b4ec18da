/* Sets of keys: order and difference. */
#include <stdlib.h>

#include "index/index_private.h"

static int by_bytes(const void *a, const void *b)
{
    const struct keygen_key *x = a, *y = b;
    return slice_cmp(slice_of(x->p, x->n), slice_of(y->p, y->n));
}

void keygen_sort(struct keygen_key *list, size_t n)
{
    if (n > 1)
        qsort(list, n, sizeof(*list), by_bytes);
}

static void take(struct keyset *to, const struct keyset *from, size_t i)
{
    to->keys[to->n] = from->keys[i];
    to->values[to->n++] = from->values[i];
}

static void room(struct keyset *s, const struct keyset *from, struct arena *a)
{
    *s = (struct keyset){.multikey = from->multikey};
    if (from->n) {
        s->keys = arena_alloc(a, from->n * sizeof(*s->keys));
        s->values = arena_alloc(a, from->n * sizeof(*s->values));
    }
}

void keyset_diff(const struct keyset *before, const struct keyset *after, struct arena *a, struct keyset *removed,
                 struct keyset *added)
{
    size_t i = 0, j = 0;
    room(removed, before, a);
    room(added, after, a);
    while (i < before->n || j < after->n) {
        int c = i == before->n ? 1 : j == after->n ? -1 : slice_cmp(before->keys[i], after->keys[j]);
        if (c < 0) {
            take(removed, before, i++);
        } else if (c > 0) {
            take(added, after, j++);
        } else {
            i++;
            j++;
        }
    }
}
