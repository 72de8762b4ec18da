/* Filter -> bounds of one field. What is not understood here says nothing, and the fetched documents are matched again, so bounds only have to
 * be wide enough. */
#include "server/query/plan/plan_private.h"

static const uint8_t LOWEST[] = {0x01}, BEYOND[] = {0x80}; /* around all class bytes: README of index/ */

static bool add_point(struct arena *a, struct bounds *out, struct bval v)
{
    struct slice key = key_encode_arena(a, v, false);
    return key.p && bounds_add(a, out, (struct span){.lo = key, .point = true});
}

static bool add_range(struct arena *a, struct bounds *out, struct slice lo, struct slice hi)
{
    return lo.p && hi.p && (slice_cmp(lo, hi) >= 0 || bounds_add(a, out, (struct span){lo, hi, false}));
}

static int full(struct arena *a, struct bounds *out, bool missing)
{
    out->full = true;
    out->missing = missing;
    return add_range(a, out, slice_of(LOWEST, 1), slice_of(BEYOND, 1)) ? 1 : -1;
}

static struct slice class_edge(struct arena *a, uint8_t type, bool high)
{
    uint8_t edge[2], *copy;
    bval_keyenc_class(type, &edge[0], &edge[1]);
    copy = arena_alloc(a, 1);
    if (!copy)
        return slice_of(NULL, 0);
    *copy = high ? (uint8_t)(edge[1] + 1) : edge[0];
    return slice_of(copy, 1);
}

/* The first byte string above all that begin with `s`, in the same bytes; encodings never consist of 0xff alone. */
static struct slice behind(struct arena *a, struct slice s)
{
    uint8_t *p = arena_dup(a, s.p, s.n);
    if (!p)
        return slice_of(NULL, 0);
    while (p[s.n - 1] == 0xff)
        s.n--;
    p[s.n - 1]++;
    return slice_of(p, s.n);
}

/* An array is equal to a whole array, which is in the index by its elements (an empty one as undefined), or to an element. */
static bool add_equal(struct arena *a, struct bounds *out, struct bval v)
{
    out->missing |= v.type == BSON_TYPE_NULL || v.type == BSON_TYPE_EOD;
    if (v.type == BSON_TYPE_ARRAY) {
        struct biter it;
        struct belem e;
        biter_init(&it, bval_doc(v));
        if (!biter_next(&it, &e))
            e.v = (struct bval){BSON_TYPE_UNDEFINED, 0, v.p};
        if (!add_point(a, out, e.v))
            return false;
    }
    return add_point(a, out, v);
}

static int compared(struct arena *a, const struct match *m, struct bounds *out)
{
    struct bval v = m->value;
    switch (v.type) {
    case BSON_TYPE_ARRAY:
        return full(a, out, false);
    case BSON_TYPE_MINKEY:
    case BSON_TYPE_MAXKEY:
        return full(a, out, true);
    case BSON_TYPE_NULL:
        return add_equal(a, out, v) ? 1 : -1;
    default:
        break;
    }
    struct slice key = key_encode_arena(a, v, false), lo, hi;
    if (!key.p)
        return -1;
    bool below = m->op == MATCH_LT || m->op == MATCH_LTE;
    lo = below ? class_edge(a, v.type, false) : m->op == MATCH_GT ? behind(a, key) : key;
    hi = !below ? class_edge(a, v.type, true) : m->op == MATCH_LTE ? behind(a, key) : key;
    return add_range(a, out, lo, hi) ? 1 : -1;
}

static int in_list(struct arena *a, const struct match *m, struct bounds *out)
{
    out->spans = arena_alloc(a, (size_t)m->n_values * sizeof(*out->spans));
    if (!out->spans)
        return -1;
    out->cap = m->n_values;
    for (uint32_t i = 0; i < m->n_values; i++)
        if (!add_equal(a, out, m->values[i]))
            return -1;
    bounds_order(out);
    return 1;
}

/* Strings that begin as the regex demands, and the regex itself as a stored value. */
static int regex(struct arena *a, const struct match *m, struct bounds *out)
{
    struct slice prefix;
    bool exact;
    if (!match_regex_prefix(m, &prefix, &exact) || prefix.n == 0) {
        if (!add_range(a, out, class_edge(a, BSON_TYPE_UTF8, false), class_edge(a, BSON_TYPE_UTF8, true)))
            return -1;
    } else {
        uint8_t *text = arena_alloc(a, prefix.n + 5);
        if (!text)
            return -1;
        store_le32(text, (uint32_t)prefix.n + 1);
        memcpy(text + 4, prefix.p, prefix.n);
        text[4 + prefix.n] = 0;
        struct slice key = key_encode_arena(a, (struct bval){BSON_TYPE_UTF8, (uint32_t)prefix.n + 5, text}, false);
        if (!key.p)
            return -1;
        key.n--; /* without the end of the text */
        if (!add_range(a, out, key, behind(a, key)))
            return -1;
    }
    if (!add_point(a, out, m->value))
        return -1;
    bounds_order(out);
    return 1;
}

static int condition(struct arena *a, const struct match *m, struct bounds *out)
{
    switch (m->op) {
    case MATCH_EQ:
        if (!add_equal(a, out, m->value))
            return -1;
        bounds_order(out);
        return 1;
    case MATCH_LT:
    case MATCH_LTE:
    case MATCH_GT:
    case MATCH_GTE:
        return compared(a, m, out);
    case MATCH_IN:
        return in_list(a, m, out);
    case MATCH_REGEX:
        return regex(a, m, out);
    case MATCH_EXISTS:
        if (m->flag)
            return full(a, out, false);
        return add_equal(a, out, BVAL_NULL) ? 1 : -1;
    default:
        return 0;
    }
}

/* Long lists are encoded once for all indexes: nothing changes the spans of a condition. */
static int leaf(struct bounds_ctx *cx, const struct match *m, struct bounds *out)
{
    if (m->op != MATCH_IN || m->n_values < BOUNDS_KEEP_MIN)
        return condition(cx->arena, m, out);
    for (const struct bounds_kept *k = cx->kept; k; k = k->next)
        if (k->m == m) {
            *out = k->bounds;
            return 1;
        }
    int rc = condition(cx->arena, m, out);
    if (rc <= 0 || cx->n_kept == BOUNDS_KEEP_MAX)
        return rc;
    struct bounds_kept *k = arena_alloc(cx->arena, sizeof(*k));
    if (!k)
        return -1;
    *k = (struct bounds_kept){m, *out, cx->kept};
    cx->kept = k;
    cx->n_kept++;
    return rc;
}

static bool better(const struct bounds *x, const struct bounds *y)
{
    if (x->full != y->full)
        return y->full;
    if (x->points != y->points)
        return x->points;
    return x->n < y->n;
}

/* Of two lists that cannot be intersected. Whether documents without the field can match is known only of the list that is kept: each
 * condition may be met by another element, and one of a sparse index has no key. Two lists of all values are the same list. */
static void choose_bounds(struct bounds *out, const struct bounds *b)
{
    if (out->full && b->full)
        out->missing &= b->missing;
    else if (better(b, out))
        *out = *b;
}

static int all_of(struct bounds_ctx *cx, const struct match *m, const struct bpath *path, bool multikey,
                  struct bounds *out)
{
    int found = 0;
    for (uint32_t i = 0; i < m->n_children; i++) {
        struct bounds b, both;
        int rc = bounds_of(cx, m->children[i], path, multikey, &b);
        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        if (!found) {
            *out = b;
        } else if (!multikey) {
            if (!bounds_intersect(cx->arena, out, &b, &both))
                return -1;
            *out = both;
        } else {
            choose_bounds(out, &b);
        }
        found = 1;
    }
    return found;
}

static int any_of(struct bounds_ctx *cx, const struct match *m, const struct bpath *path, bool multikey,
                  struct bounds *out)
{
    bool missing = false, all = false;
    for (uint32_t i = 0; i < m->n_children; i++) {
        struct bounds b;
        int rc = bounds_of(cx, m->children[i], path, multikey, &b);
        if (rc <= 0)
            return rc;
        missing |= b.missing;
        all |= b.full;
        for (uint32_t k = 0; k < b.n; k++)
            if (!bounds_add(cx->arena, out, b.spans[k]))
                return -1;
    }
    out->missing = missing;
    out->full = all;
    bounds_order(out);
    return m->n_children > 0;
}

int bounds_of(struct bounds_ctx *cx, const struct match *m, const struct bpath *path, bool multikey, struct bounds *out)
{
    *out = (struct bounds){0};
    if (m->op == MATCH_AND)
        return all_of(cx, m, path, multikey, out);
    if (m->op == MATCH_OR)
        return any_of(cx, m, path, multikey, out);
    if (!m->path.text || !path_equal(&m->path, path))
        return 0;
    int rc = leaf(cx, m, out);
    /* By a number a filter also looks into documents of an array, and may find nothing there; the index holds the array's element. */
    return rc > 0 && out->missing && path_numeric(path) ? 0 : rc;
}
