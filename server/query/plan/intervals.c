/* Bounds of fields -> byte ranges of compound keys, in key order. A descending field's bytes are inverted: lo <= e < hi then is
 * behind(~hi) <= ~e < behind(~lo), where behind(x) is the first string above all that begin with x. */
#include "server/query/plan/plan_private.h"

static size_t invert(uint8_t *to, struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        to[i] = (uint8_t)~s.p[i];
    return s.n;
}

/* In place; the length left. No key consists of 0xff alone. */
static size_t step_behind(uint8_t *p, size_t n)
{
    while (p[n - 1] == 0xff)
        n--;
    p[n - 1]++;
    return n;
}

static size_t put(uint8_t *to, struct slice s, bool descending)
{
    if (descending)
        return invert(to, s);
    memcpy(to, s.p, s.n);
    return s.n;
}

static bool one_interval(struct arena *a, const struct choice *c, const uint32_t *at, struct plan_interval *out)
{
    const struct span *last = NULL;
    size_t n = 0, room = 0;
    for (uint32_t f = 0; f < c->n_bounded; f++) {
        last = &c->fields[f].spans[at[f]];
        room += last->lo.n + (last->point ? 0 : last->hi.n);
    }
    uint8_t *from = arena_alloc(a, 2 * room);
    if (!from)
        return false;
    uint8_t *to = from + room;
    out->prefix = 0;
    for (uint32_t f = 0; f < c->n_points; f++) {
        if (c->merge && f == c->merge_field)
            out->prefix = (uint32_t)n;
        n += put(from + n, c->fields[f].spans[at[f]].lo, c->def->dirs[f] < 0);
    }
    if (c->merge && c->merge_field >= c->n_points)
        out->prefix = (uint32_t)n;
    if (c->n_points < c->n_bounded && last->point) /* among ranges */
        n += put(from + n, last->lo, c->def->dirs[c->n_points] < 0);
    memcpy(to, from, n);
    size_t from_n = n, to_n = n;
    if (last->point) {
        to_n = step_behind(to, n);
    } else if (c->def->dirs[c->n_points] < 0) {
        from_n += step_behind(from + n, invert(from + n, last->hi));
        to_n += step_behind(to + n, invert(to + n, last->lo));
    } else {
        from_n += put(from + n, last->lo, false);
        to_n += put(to + n, last->hi, false);
    }
    out->from = slice_of(from, from_n);
    out->to = slice_of(to, to_n);
    return true;
}

bool choice_intervals(struct arena *a, const struct choice *c, struct plan *out)
{
    uint32_t step[INDEX_FIELDS_MAX] = {0}, at[INDEX_FIELDS_MAX] = {0};
    uint32_t n = c->n_bounded ? c->n_intervals : 1;
    out->intervals = arena_zalloc(a, n * sizeof(*out->intervals));
    if (!out->intervals)
        return false;
    out->n_intervals = n;
    if (c->n_bounded == 0) /* the whole index */
        return true;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t f = 0; f < c->n_bounded; f++)
            at[f] = c->def->dirs[f] < 0 ? c->fields[f].n - 1 - step[f] : step[f];
        if (!one_interval(a, c, at, &out->intervals[i]))
            return false;
        for (uint32_t f = c->n_bounded; f-- > 0;) {
            if (++step[f] < c->fields[f].n)
                break;
            step[f] = 0;
        }
    }
    return true;
}
