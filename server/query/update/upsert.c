/* Upserts: a document of the filter's equalities, then the update, then an _id in front. */
#include "server/query/update/operators.h"

#include "server/base/rand.h"

static const struct update_op equality_op = {"$set", true, false, any_parse, set_apply, NULL};

struct equalities {
    struct arena *a;
    struct err *err;
    struct place *places;
    struct leaf *leaves;
    uint32_t n, cap;
    int rc;
    bool only_id; /* a replacement takes over nothing else */
};

static void count_one(void *arg, const struct bpath *path, struct bval v)
{
    ((struct equalities *)arg)->cap++;
}

static void take(void *arg, const struct bpath *path, struct bval v)
{
    struct equalities *eq = arg;
    struct part *parts;
    uint32_t n;

    if (eq->rc || eq->n == eq->cap)
        return;
    if (eq->only_id) {
        if (strncmp(path->text, "_id.", 4) == 0)
            eq->rc = err_set(eq->err, ERR_NOT_EXACT_VALUE_FIELD,
                             "field at '_id' must be exactly specified, field at sub-path '%s'found", path->text);
        if (strcmp(path->text, "_id") != 0 || eq->rc)
            return;
    }
    if ((eq->rc = parse_path(eq->a, path->text, &parts, &n, eq->err)) != 0)
        return;
    struct leaf *l = &eq->leaves[eq->n];
    *l = (struct leaf){.op = &equality_op, .path = path->text, .parts = parts, .n_parts = n, .arg = v};
    eq->places[eq->n] = (struct place){.leaf = l, .path = path->text, .parts = parts, .n_parts = n, .order = eq->n};
    eq->n++;
}

/* Neighbours in the sorted list show every conflict (tree.c), but an upsert has words of its own for it. */
static int name_conflict(struct equalities *eq)
{
    for (uint32_t i = 0; i + 1 < eq->n; i++) {
        const char *a = eq->places[i].path, *b = eq->places[i + 1].path;
        size_t n = strlen(a);
        if (strcmp(a, b) == 0)
            return err_set(eq->err, ERR_NOT_SINGLE_VALUE_FIELD,
                           "cannot infer query fields to set, path '%s' is matched twice", a);
        if (strncmp(a, b, n) == 0 && b[n] == '.')
            return err_set(eq->err, ERR_NOT_SINGLE_VALUE_FIELD,
                           "cannot infer query fields to set, both paths '%s' and '%s' are matched", b, a);
    }
    return eq->err->code;
}

/* Appends the document that the filter alone describes. */
static int base_document(const struct update *u, const struct match *filter, struct arena *a, struct buf *out,
                         struct err *err)
{
    static const uint8_t empty[5] = {5};
    struct equalities eq = {.a = a, .err = err, .only_id = u->replacement};
    struct update seed = {0};
    struct update_effect effect;

    match_equalities(filter, count_one, &eq);
    eq.places = arena_alloc(a, eq.cap * sizeof(*eq.places));
    eq.leaves = arena_alloc(a, eq.cap * sizeof(*eq.leaves));
    if (!eq.places || !eq.leaves)
        return out_of_memory(err);
    match_equalities(filter, take, &eq);
    if (eq.rc)
        return eq.rc;
    int rc = tree_build(a, eq.places, eq.n, &seed.root, err);
    if (rc == ERR_CONFLICTING_UPDATE_OPERATORS)
        return name_conflict(&eq);
    if (rc)
        return rc;
    return apply_operators(&seed, empty, -1, true, a, out, &effect, err);
}

/* Appends `doc` with _id in front. */
static void put_id_first(const uint8_t *doc, struct bval id, struct buf *out)
{
    struct biter it;
    struct belem e;

    buf_reserve(out, bdoc_len(doc) + 32);
    size_t start = bw_begin(out);
    if (bval_is_missing(id)) {
        uint8_t oid[12];
        oid_generate(oid);
        bw_oid(out, "_id", oid);
    } else {
        bw_val(out, "_id", id);
    }
    biter_init(&it, doc);
    while (biter_next(&it, &e))
        if (e.v.p != id.p)
            bw_valn(out, e.name, e.name_n, e.v);
    bw_end(out, start);
}

static int build(const struct update *u, const struct match *filter, struct arena *a, struct buf *base,
                 struct buf *made, struct buf *out, struct err *err)
{
    struct update_effect effect;
    struct bval id;
    int rc = base_document(u, filter, a, base, err);

    if (rc)
        return rc;
    if (u->replacement)
        rc = apply_replacement(u, bdoc_get(base->p, "_id"), made, err);
    else
        rc = apply_operators(u, base->p, -1, true, a, made, &effect, err);
    if (rc)
        return rc;
    id = bdoc_get(made->p, "_id");
    if ((rc = id_check(id, err)) != 0)
        return rc;
    size_t start = out->len;
    put_id_first(made->p, id, out);
    if (out->len - start > BSON_DOC_MAX) {
        out->len = start;
        return err_set(err, 17420, "Document to upsert is larger than %u", BSON_DOC_MAX);
    }
    return 0;
}

int update_upsert(const struct update *u, const struct match *filter, struct arena *a, struct buf *out, struct bval *id,
                  struct err *err)
{
    struct buf base, made;
    size_t start = out->len;

    *id = BVAL_MISSING;
    buf_init(&base);
    buf_init(&made);
    int rc = build(u, filter, a, &base, &made, out, err);
    buf_free(&made);
    buf_free(&base);
    if (rc)
        return rc;
    *id = bdoc_get(out->p + start, "_id");
    id->p = arena_dup(a, id->p, id->n);
    return id->p ? 0 : out_of_memory(err);
}
