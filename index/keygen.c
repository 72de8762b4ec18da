/* Document -> keys of one index. A field that leads through an array gives a key for each element; several fields may lead through the same
 * array, never through different ones. How far each field has come is kept in a struct walk; an array is left to a deeper level of the
 * recursion, where each element in turn stands for it.
 *
 * Arrays: at the end of a path its elements are the values (one level; an empty one is undefined), before it only elements that are documents
 * lead on, all else is missing there. A numeric part takes the element at that place if it is there, whichever element stands for the array, and
 * so without making the index multikey; if it is an array itself and the end of the path, it is the value as a whole. */
#include "index/index_private.h"

struct walk {
    const uint8_t *doc; /* where the rest of the path starts; NULL: nowhere */
    uint32_t part;      /* first part not yet walked */
    bool done;          /* value is final */
    bool placed;        /* by a number the path has left the array that is gone through, for `value` */
    bool nested;        /* the element at that number is an array */
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

/* From v, the value in front of *part, along documents: the value at the end or an array on the way, missing if neither is there. */
static struct bval along(const struct bpath *path, struct bval v, uint32_t *part)
{
    while (v.type == BSON_TYPE_DOCUMENT && *part < path->n_parts)
        v = get(bval_doc(v), &path->parts[(*part)++]);
    return *part == path->n_parts || v.type == BSON_TYPE_ARRAY ? v : BVAL_MISSING;
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
                   (int)part->n, part->s, bval_shell(g->arena, bval_from_doc(bval_doc(array))));
}

/* If the next part is the number of an element, leaves the array by it. */
static int place(struct gen *g, const struct bpath *path, struct walk *w, struct bval array)
{
    const struct bpath_part *part = &path->parts[w->part];
    struct bval v = part->index >= 0 ? element_at(bval_doc(array), part->index) : BVAL_MISSING;
    if (bval_is_missing(v))
        return 0;
    if (has_field(bval_doc(array), part))
        return ambiguous(g, part, array);
    w->part++;
    w->placed = true;
    w->nested = v.type == BSON_TYPE_ARRAY;
    w->value = along(path, v, &w->part);
    return 0;
}

/* Walks until the value is final, or an array has to be gone through: that one, and w->part is what follows it. */
static struct bval advance(const struct bpath *path, struct walk *w)
{
    struct bval v = BVAL_MISSING;
    if (w->placed)
        v = w->value;
    else if (w->doc)
        v = along(path, bval_from_doc(w->doc), &w->part);
    w->nested &= w->placed;
    w->placed = false;
    if (v.type == BSON_TYPE_ARRAY)
        return v;
    finish(w, v);
    return BVAL_MISSING;
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

/* One element stands for the array in the fields of `through`; of type EOD: the array is empty. */
static int stand_for(struct gen *g, const struct walk *walks, struct bval array, struct bval element, uint32_t through,
                     bool whole)
{
    struct walk next[INDEX_FIELDS_MAX];
    memcpy(next, walks, g->def->n_fields * sizeof(*next));
    for (uint32_t i = 0; i < g->def->n_fields; i++) {
        struct walk *w = &next[i];
        if (!(through >> i & 1) || w->placed)
            continue;
        if (w->part < g->def->paths[i].n_parts)
            w->doc = element.type == BSON_TYPE_DOCUMENT ? bval_doc(element) : NULL;
        else if (element.type == BSON_TYPE_EOD)
            finish(w, (struct bval){BSON_TYPE_UNDEFINED, 0, array.p});
        else
            finish(w, whole ? array : element);
    }
    return gen(g, next);
}

/* Each element of `array` in turn stands for it, in the fields of `through`. `whole`: where a path ends the array is the value. */
static int go_through(struct gen *g, struct walk *walks, struct bval array, uint32_t through, bool whole)
{
    struct biter it;
    struct belem e;
    uint32_t each = 0; /* fields that differ by element */
    int rc = 0;
    biter_init(&it, bval_doc(array));
    if (!biter_next(&it, &e)) {
        g->multikey |= whole ? 0 : through;
        return stand_for(g, walks, array, BVAL_MISSING, through, whole);
    }
    for (uint32_t i = 0; i < g->def->n_fields; i++) {
        if (!(through >> i & 1))
            continue;
        bool end = walks[i].part == g->def->paths[i].n_parts;
        if (!end && (rc = place(g, &g->def->paths[i], &walks[i], array)) != 0)
            return rc;
        if (end ? !whole : !walks[i].placed)
            each |= 1u << i;
    }
    g->multikey |= each;
    do
        rc = stand_for(g, walks, array, e.v, through, whole);
    while (rc == 0 && each && biter_next(&it, &e));
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
    bool whole = false;
    for (uint32_t i = 0; i < g->def->n_fields; i++) {
        struct walk *w = &walks[i];
        if (w->done)
            continue;
        struct bval v = advance(&g->def->paths[i], w);
        if (bval_is_missing(v))
            continue;
        if (through && v.p != array.p)
            return err_set(g->err, ERR_CANNOT_INDEX_PARALLEL_ARRAYS, "cannot index parallel arrays [%s] [%s]",
                           name_before(g, w, i), name_before(g, &walks[first], first));
        if (!through)
            first = i;
        array = v;
        through |= 1u << i;
        whole |= w->nested;
    }
    if (through)
        return go_through(g, walks, array, through, whole);
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
    if (def->partial && !def->partial->wanted(def->partial->arg, doc))
        return 0;
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
