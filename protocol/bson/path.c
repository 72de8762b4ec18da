/* Dotted paths: parsing, and the walk that filters and index keys are built on.
 *
 * The walk goes down documents by name. The first array on the way is entered: each of its elements that is a document is gone on with by the
 * whole rest of the path, and, when the next part is a number, the element of that index by the rest behind it (which may again be an
 * array). Arrays directly inside arrays are entered by an index alone. So {a: [[{b: 1}]]} has nothing at a.b, but 1 at a.0.b. *
 * By two ways for a numeric part, a node can be met once for each way to it: what takes paths for a walk limits their numeric parts. Who reads
 * the values at a path takes the simpler bpath_values, which meets each node once. */
#include "protocol/bson/bson.h"

static int32_t part_index(const char *s, uint32_t n)
{
    if (n == 0 || n > 9 || (s[0] == '0' && n > 1))
        return -1;
    int32_t index = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        index = index * 10 + (s[i] - '0');
    }
    return index;
}

int bpath_parse_any(struct arena *a, const char *text, struct bpath *out, struct err *err)
{
    size_t n = strlen(text);
    uint32_t parts = 1;
    for (size_t i = 0; i < n; i++)
        parts += text[i] == '.';
    if (parts > BSON_DEPTH_MAX || n > UINT32_MAX)
        return err_set(err, ERR_OVERFLOW, "FieldPath is too long");
    char *copy = arena_strndup(a, text, n);
    struct bpath_part *p = copy ? arena_alloc(a, parts * sizeof(*p)) : NULL;
    if (!p)
        return err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "no memory left for the path of %zu bytes", n);
    *out = (struct bpath){copy, parts, p};
    const char *s = copy;
    for (uint32_t i = 0; i < parts; i++) {
        const char *dot = strchrnul(s, '.');
        p[i].s = s;
        p[i].n = (uint32_t)(dot - s);
        p[i].index = part_index(s, p[i].n);
        s = dot + 1;
    }
    return 0;
}

int bpath_parse(struct arena *a, const char *text, struct bpath *out, struct err *err)
{
    size_t n = strlen(text);
    if (n == 0)
        return err_set(err, 40352, "FieldPath cannot be constructed with empty string");
    if (text[n - 1] == '.')
        return err_set(err, 40353, "FieldPath must not end with a '.'.");
    if (text[0] == '.' || strstr(text, ".."))
        return err_set(err, 15998, "FieldPath field names may not be empty strings.");
    return bpath_parse_any(a, text, out, err);
}

struct walk {
    const struct bpath *path;
    bool expand_leaf;
    bpath_fn fn;
    void *arg;
};

static bool walk_array(const struct walk *w, struct bval array, uint32_t part, int32_t outer);

/* `outer`: index in the outermost array gone through element by element, or -1. */
static bool walk_doc(const struct walk *w, const uint8_t *doc, uint32_t part, int32_t outer)
{
    for (;; part++) {
        const struct bpath_part *p = &w->path->parts[part];
        struct bval v = bdoc_getn(doc, p->s, p->n);
        if (v.type == BSON_TYPE_ARRAY)
            return walk_array(w, v, part + 1, outer);
        if (part + 1 == w->path->n_parts)
            return w->fn(w->arg, v, false, outer);
        if (v.type != BSON_TYPE_DOCUMENT)
            return w->fn(w->arg, BVAL_MISSING, false, outer);
        doc = v.p;
    }
}

static bool walk_leaf_array(const struct walk *w, struct bval array, int32_t outer)
{
    struct biter it;
    struct belem e;
    if (w->expand_leaf) {
        biter_init(&it, array.p);
        for (int32_t i = 0; biter_next(&it, &e); i++)
            if (w->fn(w->arg, e.v, true, outer < 0 ? i : outer))
                return true;
    }
    return w->fn(w->arg, array, false, outer);
}

/* The element that a numeric part names; `part` is the one behind it. */
static bool walk_indexed(const struct walk *w, struct bval v, uint32_t part, int32_t outer)
{
    if (part == w->path->n_parts)
        return w->fn(w->arg, v, false, outer); /* as it is, an array too */
    if (v.type == BSON_TYPE_DOCUMENT)
        return walk_doc(w, v.p, part, outer);
    return v.type == BSON_TYPE_ARRAY && walk_array(w, v, part, outer);
}

static bool walk_array(const struct walk *w, struct bval array, uint32_t part, int32_t outer)
{
    if (part == w->path->n_parts)
        return walk_leaf_array(w, array, outer);
    int32_t index = w->path->parts[part].index;
    struct biter it;
    struct belem e;
    biter_init(&it, array.p);
    for (int32_t i = 0; biter_next(&it, &e); i++) {
        if (e.v.type == BSON_TYPE_DOCUMENT && walk_doc(w, e.v.p, part, outer < 0 ? i : outer))
            return true;
        if (i == index && walk_indexed(w, e.v, part + 1, outer))
            return true;
    }
    return false;
}

bool bpath_walk(const struct bpath *path, const uint8_t *doc, bool expand_leaf, bpath_fn fn, void *arg)
{
    struct walk w = {path, expand_leaf, fn, arg};
    return walk_doc(&w, doc, 0, -1);
}

/* ---- values ---- */

static bool all_digits(const struct bpath_part *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->s[i] < '0' || p->s[i] > '9')
            return false;
    return p->n > 0;
}

static struct bval element_at(struct bval array, int32_t index)
{
    struct biter it;
    struct belem e;
    biter_init(&it, array.p);
    for (int32_t i = 0; i <= index && biter_next(&it, &e); i++)
        if (i == index)
            return e.v;
    return BVAL_MISSING;
}

static bool values_from(const struct bpath *path, const uint8_t *doc, uint32_t part, bpath_value_fn fn, void *arg)
{
    for (;;) {
        struct bval v = bdoc_getn(doc, path->parts[part].s, path->parts[part].n);
        part++;
        while (v.type == BSON_TYPE_ARRAY && part < path->n_parts && all_digits(&path->parts[part]))
            v = element_at(v, path->parts[part++].index);
        if (part == path->n_parts)
            return !bval_is_missing(v) && fn(arg, v);
        if (v.type == BSON_TYPE_ARRAY) {
            struct biter it;
            struct belem e;
            for (biter_init(&it, v.p); biter_next(&it, &e);)
                if (e.v.type == BSON_TYPE_DOCUMENT && values_from(path, e.v.p, part, fn, arg))
                    return true;
            return false;
        }
        if (v.type != BSON_TYPE_DOCUMENT)
            return false;
        doc = v.p;
    }
}

bool bpath_values(const struct bpath *path, const uint8_t *doc, bpath_value_fn fn, void *arg)
{
    return values_from(path, doc, 0, fn, arg);
}
