/* Bounds of a plan as text, per field: "[5, 10)". A plan holds byte ranges only, so values are read back from encodings. An edge is one of:
 *   a class byte: where a type begins or ends
 *   the beginning of an encoding (the text of a regex), perhaps the whole of it: the value itself, included below and excluded above
 *   the first string above all that begin with an encoding: that value, excluded below and included above. Taking one from its last byte gives
 *     the encoding back, less what was cut off: bytes 0xff. (Of dates and other whole numbers the successor is an encoding, too: it is shown.)
 * Points stand in both edges of an interval alike. The number of a value may have changed its type on the way. */
#include <stdlib.h>

#include "server/base/map.h"
#include "server/query/plan/plan_private.h"

enum { VALUE_TEXT_MAX = 1000, INTERVALS_MAX = 10000 };

struct text {
    struct arena *arena;
    struct buf doc, out;
};

/* Where types begin and end. */
static const struct class_edge {
    uint8_t type;
    const char *low, *high;
    bool high_included;
} class_edges[] = {
    {BSON_TYPE_DOUBLE, "-inf", "inf", true},
    {BSON_TYPE_UTF8, "\"\"", "{}", false},
    {BSON_TYPE_DOCUMENT, "{}", "[]", false},
    {BSON_TYPE_ARRAY, "[]", "BinData(0, '')", false},
    {BSON_TYPE_BINARY, "BinData(0, '')", "ObjectId('000000000000000000000000')", false},
    {BSON_TYPE_OID, "ObjectId('000000000000000000000000')", "ObjectId('ffffffffffffffffffffffff')", true},
    {BSON_TYPE_BOOL, "false", "true", true},
    {BSON_TYPE_DATE_TIME, "new Date(-9223372036854775808)", "new Date(9223372036854775807)", true},
    {BSON_TYPE_TIMESTAMP, "Timestamp(0, 0)", "Timestamp(4294967295, 4294967295)", true},
};

struct edge { /* in ascending order, whatever the field's */
    const char *text;
    bool included;
};

static const char *value_text(struct text *t, size_t doc_at)
{
    bw_end(&t->doc, doc_at);
    t->out.len = 0;
    bval_to_shell(&t->out, bdoc_get(t->doc.p, ""), VALUE_TEXT_MAX);
    return arena_strndup(t->arena, (const char *)t->out.p, t->out.len);
}

static const char *decoded(struct text *t, struct slice s, int pad)
{
    t->doc.len = 0;
    size_t at = bw_begin(&t->doc);
    return bval_keydec(&t->doc, "", s, pad) >= s.n && s.n ? value_text(t, at) : NULL;
}

static bool class_text(struct slice s, bool high, struct edge *out)
{
    uint8_t lo, hi;
    if (s.n != 1)
        return false;
    if (s.p[0] <= 0x01 || s.p[0] >= 0x80) {
        *out = (struct edge){s.p[0] >= 0x80 ? "MaxKey" : "MinKey", true};
        return true;
    }
    for (size_t i = 0; i < OV_LEN(class_edges); i++) {
        const struct class_edge *e = &class_edges[i];
        bval_keyenc_class(e->type, &lo, &hi);
        if (high ? s.p[0] == hi + 1 : s.p[0] == lo) {
            *out = high ? (struct edge){e->high, e->high_included} : (struct edge){e->low, true};
            return true;
        }
    }
    return false;
}

/* `s` in ascending bytes. */
static struct edge edge_text(struct text *t, struct slice s, bool high)
{
    struct edge e = {NULL, !high};
    if (s.n == 0)
        return (struct edge){high ? "MaxKey" : "MinKey", true};
    if (class_text(s, high, &e) || (e.text = decoded(t, s, 0)))
        return e;
    uint8_t *before = arena_dup(t->arena, s.p, s.n);
    if (before[s.n - 1] > 0) {
        before[s.n - 1]--;
        e = (struct edge){decoded(t, slice_of(before, s.n), 0xff), high};
        if (!e.text && (e.text = decoded(t, slice_of(before, s.n), 0)))
            return e;
    }
    if (!e.text)
        e.text = "?"; /* no bound that the planner makes */
    return e;
}

/* ---- fields of an interval ---- */

static struct slice inverted(struct text *t, struct slice s)
{
    uint8_t *p = arena_alloc(t->arena, s.n ? s.n : 1);
    for (size_t i = 0; i < s.n; i++)
        p[i] = (uint8_t)~s.p[i];
    return slice_of(p, s.n);
}

/* Back from the first string above all that begin with ~x to x, less its last bytes if they are 0. */
static struct slice unbehind(struct text *t, struct slice s)
{
    struct slice x = inverted(t, s);
    if (x.n)
        ((uint8_t *)x.p)[x.n - 1]++;
    return x;
}

static const char *point_text(struct text *t, struct slice s, bool descending, size_t *used)
{
    if (descending)
        s = inverted(t, s);
    t->doc.len = 0;
    size_t at = bw_begin(&t->doc);
    *used = bval_keydec(&t->doc, "", s, -1);
    return *used ? value_text(t, at) : NULL;
}

/* The last field that is bounded: a range of its own bytes. */
static void range_text(struct text *t, struct slice from, struct slice to, bool descending, struct edge *lo,
                       struct edge *hi)
{
    if (descending) {
        *lo = edge_text(t, to.n ? unbehind(t, to) : to, false);
        *hi = edge_text(t, from.n ? unbehind(t, from) : from, true);
    } else {
        *lo = edge_text(t, from, false);
        *hi = edge_text(t, to, true);
    }
}

static struct slice rest(struct slice s, size_t n)
{
    return n < s.n ? slice_of(s.p + n, s.n - n) : slice_of(s.p, 0);
}

/* Is `to` the first string above all that begin with `from`? Then all of from's values are points. */
static bool is_behind(struct slice from, struct slice to)
{
    size_t n = from.n;
    while (n && from.p[n - 1] == 0xff)
        n--;
    return n && to.n == n && memcmp(from.p, to.p, n - 1) == 0 && to.p[n - 1] == from.p[n - 1] + 1;
}

/* Nothing but whole values in `s`? */
static bool are_values(struct text *t, const struct index_def *def, struct slice s)
{
    size_t used;
    for (uint32_t f = 0; f < def->n_fields && s.n; f++) {
        if (!point_text(t, s, def->dirs[f] < 0, &used))
            return false;
        s = rest(s, used);
    }
    return s.n == 0;
}

/* ---- lists ---- */

struct list { /* of one field, each text once, in the order of the scan */
    struct map *seen;
    const char **texts;
    uint32_t n, cap;
};

static void list_add(struct text *t, struct list *l, const struct edge *lo, const struct edge *hi, bool descending)
{
    const struct edge *first = descending ? hi : lo, *last = descending ? lo : hi;
    const char *s = arena_printf(t->arena, "%c%s, %s%c", first->included ? '[' : '(', first->text, last->text,
                                 last->included ? ']' : ')');
    if (map_get(l->seen, slice_str(s)))
        return;
    map_put(l->seen, slice_str(s), l);
    if (l->n == l->cap) {
        uint32_t cap = OV_MAX(4, l->cap * 2);
        const char **more = arena_alloc(t->arena, cap * sizeof(*more));
        if (l->n)
            memcpy(more, l->texts, l->n * sizeof(*more));
        l->texts = more;
        l->cap = cap;
    }
    l->texts[l->n++] = s;
}

static void add_interval(struct text *t, const struct plan *p, const struct plan_interval *v, struct list *lists)
{
    const struct index_def *def = p->index;
    bool points = p->kind == PLAN_POINTS || (is_behind(v->from, v->to) && are_values(t, def, v->from));
    size_t at = 0, used;
    bool ended = false;
    for (uint32_t f = 0; f < def->n_fields; f++) {
        bool down = def->dirs[f] < 0;
        struct slice from = rest(v->from, at), to = rest(v->to, at);
        struct edge lo = {"MinKey", true}, hi = {"MaxKey", true};
        const char *s = ended || !from.n ? NULL : point_text(t, from, down, &used);
        if (s && (points || (to.n >= used && memcmp(from.p, to.p, used) == 0))) {
            lo = hi = (struct edge){s, true};
            at += used;
        } else if (!ended) {
            ended = true;
            if (!points)
                range_text(t, from, to, down, &lo, &hi);
        }
        list_add(t, &lists[f], &lo, &hi, down != p->reverse);
    }
}

bool plan_put_bounds(struct arena *a, const struct plan *p, struct buf *out)
{
    struct text t = {.arena = a};
    struct list lists[INDEX_FIELDS_MAX] = {0};
    char scratch[12];
    uint32_t n = p->index->n_fields;
    if (p->n_intervals > INTERVALS_MAX)
        return false;
    for (uint32_t f = 0; f < n; f++)
        lists[f].seen = map_new();
    for (uint32_t i = 0; i < p->n_intervals; i++)
        add_interval(&t, p, &p->intervals[p->reverse ? p->n_intervals - 1 - i : i], lists);
    size_t at = bw_doc(out, "indexBounds");
    for (uint32_t f = 0; f < n; f++) {
        size_t list = bw_arr(out, p->index->paths[f].text);
        for (uint32_t i = 0; i < lists[f].n; i++)
            bw_str(out, bw_index(i, scratch), lists[f].texts[i]);
        bw_end(out, list);
        map_free(lists[f].seen);
    }
    bw_end(out, at);
    buf_free(&t.doc);
    buf_free(&t.out);
    return true;
}
