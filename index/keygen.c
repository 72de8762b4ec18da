/* Document -> keys of one index. A field that leads through an array gives a key for each element; several fields may lead through the same
 * array, never through different ones. How far each field has come is kept in a struct walk; an array is left to a deeper level of the
 * recursion, where each element in turn stands for it.
 *
 * Arrays: at the end of a path its elements are the values (one level; an empty one is undefined), before it only elements that are documents
 * lead on, all else is missing there. A numeric part takes the element at that place if it is there, without making the index multikey. */
#include "index/index_private.h"

struct walk {
    const uint8_t *doc; /* where the rest of the path starts; NULL: nowhere */
    uint32_t part;      /* first part not yet walked */
    bool done;          /* value is final */
    struct bval value;
};
struct gen {
    const struct index_def *def;
    struct arena *arena;
    struct err *err;
    struct buf keys; /* encodings back to back */
    struct keygen_key *list;
    size_t n, cap;
    uint32_t multikey;
};

static struct bval get(const uint8_t *doc, const struct bpath_part *part)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, doc); biter_next(&it, &e);)
        if (e.name_n == part->n && memcmp(e.name, part->s, part->n) == 0)
            return e.v;
    return BVAL_MISSING;
}

static struct bval element_at(const uint8_t *array, int32_t index)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, array); biter_next(&it, &e);)
        if (index-- == 0)
            return e.v;
    return BVAL_MISSING;
}

static void finish(struct walk *w, struct bval v)
{
    w->done = true;
    w->value = v;
}

/* Is there a document with a field of this name in the array? */
static bool has_field(const uint8_t *array, const struct bpath_part *part)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, array); biter_next(&it, &e);)
        if (e.v.type == BSON_TYPE_DOCUMENT && !bval_is_missing(get(bval_doc(e.v), part)))
            return true;
    return false;
}

static int ambiguous(struct gen *g, const struct bpath_part *part, struct bval array)
{
    return err_set(g->err, 16746,
                   "Ambiguous field name found in array (do not use numeric field names in embedded elements in an "
                   "array), field: '%.*s' for array: %s",
                   (int)part->n, part->s, bval_shell(g->arena, array));
}

/* Walks until the value is final, or an array has to be gone through (*array; w->part is what follows it). */
static int advance(struct gen *g, const struct bpath *path, struct walk *w, struct bval *array)
{
    *array = BVAL_MISSING;
    while (w->doc && w->part < path->n_parts) {
        struct bval v = get(w->doc, &path->parts[w->part]);
        w->part++;
        while (v.type == BSON_TYPE_ARRAY && w->part < path->n_parts && path->parts[w->part].index >= 0) {
            struct bval at = element_at(bval_doc(v), path->parts[w->part].index);
            if (bval_is_missing(at))
                break;
            if (has_field(bval_doc(v), &path->parts[w->part]))
                return ambiguous(g, &path->parts[w->part], v);
            v = at;
            w->part++;
        }
        if (v.type == BSON_TYPE_ARRAY) {
            *array = v;
            return 0;
        }
        if (w->part == path->n_parts) {
            finish(w, v);
            return 0;
        }
        w->doc = v.type == BSON_TYPE_DOCUMENT ? bval_doc(v) : NULL;
    }
    finish(w, BVAL_MISSING);
    return 0;
}

static int full(struct gen *g)
{
    return err_set(g->err, ERR_EXCEEDED_MEMORY_LIMIT, "no memory left for the keys of index %s", g->def->name);
}

static int emit(struct gen *g, const struct walk *walks)
{
    uint32_t n = g->def->n_fields;
    bool all_missing = true;
    for (uint32_t i = 0; i < n; i++)
        all_missing &= bval_is_missing(walks[i].value);
    if (all_missing && g->def->sparse)
        return 0;
    if (g->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 16;
        struct keygen_key *list = arena_alloc(g->arena, cap * sizeof(*list));
        if (!list)
            return full(g);
        if (g->n)
            memcpy(list, g->list, g->n * sizeof(*list));
        g->list = list;
        g->cap = cap;
    }
    struct keygen_key *k = &g->list[g->n++];
    struct bval *values = arena_alloc(g->arena, n * sizeof(*values));
    if (!values)
        return full(g);
    k->at = g->keys.len;
    for (uint32_t i = 0; i < n; i++) {
        values[i] = walks[i].value;
        key_encode(&g->keys, values[i], g->def->dirs[i] < 0);
    }
    k->n = g->keys.len - k->at;
    k->values = values;
    return 0;
}

static int gen(struct gen *g, struct walk *walks);

/* Each element of `array` in turn stands for it, in the fields of `through`. */
static int go_through(struct gen *g, const struct walk *walks, struct bval array, uint32_t through)
{
    struct walk next[INDEX_FIELDS_MAX];
    struct biter it;
    struct belem e;
    uint32_t n = g->def->n_fields;
    bool any = false;
    int rc = 0;
    g->multikey |= through;
    for (biter_init(&it, bval_doc(array)); rc == 0;) {
        bool more = biter_next(&it, &e);
        if (!more && any)
            break;
        memcpy(next, walks, n * sizeof(*next));
        for (uint32_t i = 0; i < n; i++) {
            if (!(through >> i & 1))
                continue;
            if (next[i].part < g->def->paths[i].n_parts)
                next[i].doc = more && e.v.type == BSON_TYPE_DOCUMENT ? bval_doc(e.v) : NULL;
            else
                finish(&next[i], more ? e.v : (struct bval){BSON_TYPE_UNDEFINED, 0, array.p});
        }
        any = true;
        rc = gen(g, next);
        if (!more)
            break;
    }
    return rc;
}

static const char *name_before(const struct gen *g, const struct walk *w, uint32_t field)
{
    const struct bpath_part *p = &g->def->paths[field].parts[w->part - 1];
    return arena_strndup(g->arena, p->s, p->n);
}

static int gen(struct gen *g, struct walk *walks)
{
    struct bval array = BVAL_MISSING;
    uint32_t through = 0, first = 0;
    for (uint32_t i = 0; i < g->def->n_fields; i++) {
        struct walk *w = &walks[i];
        if (w->done)
            continue;
        struct bval v;
        int rc = advance(g, &g->def->paths[i], w, &v);
        if (rc != 0)
            return rc;
        if (bval_is_missing(v))
            continue;
        if (through && v.p != array.p)
            return err_set(g->err, ERR_CANNOT_INDEX_PARALLEL_ARRAYS, "cannot index parallel arrays [%s] [%s]",
                           name_before(g, w, i), name_before(g, &walks[first], first));
        if (!through)
            first = i;
        array = v;
        through |= 1u << i;
    }
    if (through)
        return go_through(g, walks, array, through);
    return emit(g, walks);
}

/* ---- results ---- */

static int publish(struct gen *g, struct keyset *out)
{
    size_t n = 0;
    const uint8_t *base = arena_dup(g->arena, g->keys.p, g->keys.len);
    out->keys = arena_alloc(g->arena, g->n * sizeof(*out->keys));
    out->values = arena_alloc(g->arena, g->n * sizeof(*out->values));
    if (!base || !out->keys || !out->values)
        return full(g);
    for (size_t i = 0; i < g->n; i++)
        g->list[i].p = base + g->list[i].at;
    keygen_sort(g->list, g->n);
    for (size_t i = 0; i < g->n; i++) {
        struct slice key = slice_of(g->list[i].p, g->list[i].n);
        if (n && slice_cmp(out->keys[n - 1], key) == 0)
            continue;
        out->keys[n] = key;
        out->values[n++] = g->list[i].values;
    }
    out->n = n;
    out->multikey = g->multikey;
    return 0;
}

/* The usual index: one top-level field without an array. True if that is what this is. */
static bool single(struct gen *g, const uint8_t *doc, struct keyset *out, int *rc)
{
    const struct index_def *def = g->def;
    if (def->n_fields != 1 || def->paths[0].n_parts != 1)
        return false;
    struct bval v = get(doc, &def->paths[0].parts[0]);
    if (v.type == BSON_TYPE_ARRAY)
        return false;
    if (bval_is_missing(v) && def->sparse)
        return true;
    struct {
        struct slice key;
        const struct bval *values;
        struct bval value;
    } *one = arena_alloc(g->arena, sizeof(*one));
    struct slice key = key_encode_arena(g->arena, v, def->dirs[0] < 0);
    if (!one || !key.p) {
        *rc = full(g);
        return true;
    }
    one->key = key;
    one->value = v;
    one->values = &one->value;
    out->keys = &one->key;
    out->values = &one->values;
    out->n = 1;
    return true;
}

int keygen(const struct index_def *def, const uint8_t *doc, struct arena *a, struct keyset *out, struct err *err)
{
    struct walk walks[INDEX_FIELDS_MAX];
    struct gen g = {.def = def, .arena = a, .err = err};
    int rc = 0;
    *out = (struct keyset){0};
    if (single(&g, doc, out, &rc))
        return rc;
    for (uint32_t i = 0; i < def->n_fields; i++)
        walks[i] = (struct walk){.doc = doc, .value = BVAL_MISSING};
    buf_init(&g.keys);
    rc = gen(&g, walks);
    if (rc == 0)
        rc = publish(&g, out);
    buf_free(&g.keys);
    return rc;
}
