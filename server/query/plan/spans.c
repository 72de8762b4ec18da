/* Lists of spans: union and intersection. Encodings are never prefixes of each other, so a point is below `hi` exactly if all that begins with
 * it is. */
#include <stdlib.h>

#include "server/query/plan/plan_private.h"

bool bounds_add(struct arena *a, struct bounds *b, struct span s)
{
    if (b->n == b->cap) {
        uint32_t cap = b->cap ? 2 * b->cap : 2;
        struct span *p = arena_alloc(a, cap * sizeof(*p));
        if (!p)
            return false;
        if (b->n)
            memcpy(p, b->spans, b->n * sizeof(*p));
        b->spans = p;
        b->cap = cap;
    }
    if (b->n == 0)
        b->points = true;
    b->points &= s.point;
    b->spans[b->n++] = s;
    return true;
}

static int by_low(const void *x, const void *y)
{
    const struct span *a = x, *b = y;
    return slice_cmp(a->lo, b->lo);
}

static bool in_order(const struct bounds *b)
{
    for (uint32_t i = 1; i < b->n; i++)
        if (slice_cmp(b->spans[i - 1].lo, b->spans[i].lo) > 0)
            return false;
    return true;
}

void bounds_order(struct bounds *b)
{
    uint32_t n = 0;
    if (b->n < 2)
        return;
    if (!in_order(b))
        qsort(b->spans, b->n, sizeof(*b->spans), by_low);
    for (uint32_t i = 1; i < b->n; i++) {
        struct span *last = &b->spans[n], *s = &b->spans[i];
        if (slice_cmp(last->lo, s->lo) == 0) {
            if (last->point || (!s->point && slice_cmp(last->hi, s->hi) < 0))
                *last = *s;
        } else if (!last->point && slice_cmp(s->lo, last->hi) < 0) {
            if (!s->point && slice_cmp(last->hi, s->hi) < 0)
                last->hi = s->hi;
        } else {
            b->spans[++n] = *s;
        }
    }
    b->n = n + 1;
    b->points = true;
    for (uint32_t i = 0; i < b->n; i++)
        b->points &= b->spans[i].point;
}

static bool holds(const struct span *s, struct slice point)
{
    return s->point ? slice_cmp(s->lo, point) == 0 : slice_cmp(s->lo, point) <= 0 && slice_cmp(point, s->hi) < 0;
}

static bool ends_first(const struct span *x, const struct span *y)
{
    if (x->point)
        return slice_cmp(x->lo, y->point ? y->lo : y->hi) < 0;
    return slice_cmp(x->hi, y->point ? y->lo : y->hi) <= 0;
}

bool bounds_intersect(struct arena *a, const struct bounds *x, const struct bounds *y, struct bounds *out)
{
    *out = (struct bounds){.missing = x->missing && y->missing, .full = x->full && y->full};
    for (uint32_t i = 0, j = 0; i < x->n && j < y->n;) {
        const struct span *s = &x->spans[i], *t = &y->spans[j];
        bool ok = true;
        if (s->point || t->point) {
            if (s->point ? holds(t, s->lo) : holds(s, t->lo))
                ok = bounds_add(a, out, s->point ? *s : *t);
        } else {
            struct span both = {slice_cmp(s->lo, t->lo) < 0 ? t->lo : s->lo,
                                slice_cmp(s->hi, t->hi) < 0 ? s->hi : t->hi, false};
            if (slice_cmp(both.lo, both.hi) < 0)
                ok = bounds_add(a, out, both);
        }
        if (!ok)
            return false;
        if (ends_first(s, t))
            i++;
        else
            j++;
    }
    return true;
}
