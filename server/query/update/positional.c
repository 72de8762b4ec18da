/* Positional parts: $, $[] and $[id] with arrayFilters. They are resolved before the update is applied: each path becomes the plain paths
 * that it stands for in this document, and the tree is built anew from those. */
#include "server/query/update/update_private.h"

#include "server/base/map.h"

/* ---- arrayFilters ---- */

struct top_names {
    const char *name;
    uint32_t n;
};

static int find_id(const uint8_t *filter, int depth, struct top_names *top, struct err *err)
{
    struct biter it, inner;
    struct belem e, branch;
    int rc;

    if (depth > BSON_DEPTH_MAX)
        return err_set(err, ERR_OVERFLOW, "arrayFilters are nested too deeply");
    biter_init(&it, filter);
    while (biter_next(&it, &e)) {
        if (strcmp(e.name, "$and") == 0 || strcmp(e.name, "$or") == 0 || strcmp(e.name, "$nor") == 0) {
            if (e.v.type != BSON_TYPE_ARRAY)
                continue; /* the filter's own parser words that */
            biter_init(&inner, bval_doc(e.v));
            while (biter_next(&inner, &branch))
                if (branch.v.type == BSON_TYPE_DOCUMENT && (rc = find_id(bval_doc(branch.v), depth + 1, top, err)) != 0)
                    return rc;
            continue;
        }
        if (e.name[0] == '$')
            continue;
        uint32_t n = (uint32_t)strcspn(e.name, ".");
        if (top->name && (top->n != n || memcmp(top->name, e.name, n) != 0))
            return err_set(err, ERR_FAILED_TO_PARSE,
                           "Error parsing array filter :: caused by :: Expected a single top-level field name, found "
                           "'%.*s' and '%.*s'",
                           (int)top->n, top->name, (int)n, e.name);
        *top = (struct top_names){e.name, n};
    }
    return 0;
}

static bool id_is_valid(const char *s, uint32_t n)
{
    if (n == 0 || s[0] < 'a' || s[0] > 'z')
        return false;
    for (uint32_t i = 1; i < n; i++)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= '0' && s[i] <= '9')))
            return false;
    return true;
}

static struct array_filter *filter_find(const struct update *u, const char *id, uint32_t n)
{
    return u->filters_by_id ? map_get(u->filters_by_id, slice_of(id, n)) : NULL;
}

static void free_map(void *map)
{
    map_free(map);
}

static int filter_parse(struct parse *p, struct bval v, struct array_filter *f, struct err *err)
{
    struct top_names top = {0};
    const uint8_t *copy;
    int rc;

    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(err, ERR_TYPE_MISMATCH, "Array filter must be an object but was of type %s",
                       bval_type_name(v.type));
    if (!(copy = arena_dup(p->a, v.p, v.n)))
        return out_of_memory(err);
    if ((rc = find_id(copy, 0, &top, err)) != 0)
        return rc;
    if (!top.name)
        return err_set(err, ERR_FAILED_TO_PARSE,
                       "Cannot use an expression without a top-level field name in arrayFilters");
    if (!id_is_valid(top.name, top.n))
        return err_set(err, ERR_BAD_VALUE,
                       "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric "
                       "string beginning with a "
                       "lowercase letter, found '%.*s'",
                       (int)top.n, top.name);
    if (filter_find(p->u, top.name, top.n))
        return err_set(err, ERR_FAILED_TO_PARSE, "Found multiple array filters with the same top-level field name %.*s",
                       (int)top.n, top.name);
    if ((rc = match_parse(p->a, copy, &f->match, err)) != 0) {
        err_prefix(err, "Error parsing array filter :: caused by :: ");
        return rc;
    }
    f->id = arena_strndup(p->a, top.name, top.n);
    f->id_n = top.n;
    return f->id ? 0 : out_of_memory(err);
}

int array_filters_parse(struct parse *p, struct bval filters, struct err *err)
{
    struct biter it;
    struct belem e;
    int rc;

    if (filters.type != BSON_TYPE_ARRAY)
        return err_set(err, ERR_TYPE_MISMATCH, "arrayFilters must be an array but was of type %s",
                       bval_type_name(filters.type));
    uint32_t n = array_count(bval_doc(filters));
    p->u->filters = arena_zalloc(p->a, n * sizeof(*p->u->filters));
    if (!p->u->filters)
        return out_of_memory(err);
    p->u->filters_by_id = map_new();
    arena_on_reset(p->a, free_map, p->u->filters_by_id);
    biter_init(&it, bval_doc(filters));
    while (biter_next(&it, &e)) {
        if ((rc = filter_parse(p, e.v, &p->u->filters[p->u->n_filters], err)) != 0)
            return rc;
        struct array_filter *f = &p->u->filters[p->u->n_filters++];
        map_put(p->u->filters_by_id, slice_of(f->id, f->id_n), f);
    }
    return 0;
}

int array_filters_check(struct parse *p, struct err *err)
{
    struct update *u = p->u;
    for (uint32_t i = 0; i < u->n_leaves; i++) {
        const struct leaf *l = &u->leaves[i];
        for (uint32_t k = 0; l->positional && k < l->n_parts; k++) {
            if (l->parts[k].kind != PART_FILTER)
                continue;
            struct array_filter *f = filter_find(u, l->parts[k].s + 2, l->parts[k].n - 3);
            if (!f)
                return err_set(err, ERR_BAD_VALUE, "No array filter found for identifier '%.*s' in path '%s'",
                               (int)l->parts[k].n - 3, l->parts[k].s + 2, l->path);
            f->used = true;
        }
    }
    for (uint32_t i = 0; i < u->n_filters; i++)
        if (!u->filters[i].used)
            return err_set(err, ERR_FAILED_TO_PARSE,
                           "The array filter for identifier '%s' was not used in the update %s", u->filters[i].id,
                           value_text(p->a, bval_from_doc(u->doc)));
    return 0;
}

/* ---- expansion ---- */

struct expand {
    struct apply *ap;
    const struct leaf *leaf;
    struct place *places;
    uint32_t n, cap;
    size_t bytes; /* taken so far */
    struct part parts[UPDATE_PARTS_MAX];
    struct buf wrap; /* {id: element} for a filter */
};

static int add_place(struct expand *x)
{
    struct arena *a = x->ap->a;
    if (x->n == x->cap) {
        struct place *more = arena_alloc(a, 2 * x->cap * sizeof(*more));
        if (!more)
            return out_of_memory(x->ap->err);
        memcpy(more, x->places, x->n * sizeof(*more));
        x->places = more;
        x->cap *= 2;
    }
    uint32_t n = x->leaf->n_parts, bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += x->parts[i].n + 1;
    x->bytes += n * sizeof(struct part) + bytes + sizeof(struct place);
    if (x->bytes > UPDATE_EXPAND_MAX)
        return out_of_memory(x->ap->err);
    struct part *parts = arena_alloc(a, n * sizeof(*parts));
    char *path = arena_alloc(a, bytes);
    if (!parts || !path)
        return out_of_memory(x->ap->err);
    char *w = path;
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = x->parts[i];
        parts[i].s = w; /* the walk's own text of an index does not last */
        memcpy(w, x->parts[i].s, x->parts[i].n);
        w += x->parts[i].n;
        *w++ = i + 1 < n ? '.' : '\0';
    }
    x->places[x->n] = (struct place){.leaf = x->leaf, .path = path, .parts = parts, .n_parts = n, .order = x->n};
    x->n++;
    return 0;
}

static bool passes_filter(struct expand *x, const struct part *part, struct bval v)
{
    const struct array_filter *f = filter_find(x->ap->u, part->s + 2, part->n - 3);
    if (!f)
        return false;
    x->wrap.len = 0;
    size_t start = bw_begin(&x->wrap);
    bw_val(&x->wrap, f->id, v);
    bw_end(&x->wrap, start);
    return match_doc(f->match, x->wrap.p, NULL);
}

static int walk(struct expand *x, uint32_t depth, struct bval v);

static int no_array(struct expand *x, uint32_t depth, struct bval v)
{
    struct arena *a = x->ap->a;
    const struct part *last = &x->parts[depth - 1]; /* no path starts with a positional part */
    if (!bval_is_missing(v))
        return err_set(x->ap->err, ERR_BAD_VALUE, "Cannot apply array updates to non-array element %s",
                       elem_text(a, arena_strndup(a, last->s, last->n), v));
    const char *path = "";
    for (uint32_t i = 0; i < depth; i++)
        path = arena_printf(a, "%s%s%.*s", path, i ? "." : "", (int)x->parts[i].n, x->parts[i].s);
    return err_set(x->ap->err, ERR_BAD_VALUE,
                   "The path '%s' must exist in the document in order to apply array updates.", path);
}

static int walk_array(struct expand *x, uint32_t depth, struct bval v)
{
    const struct part *part = &x->leaf->parts[depth];
    char scratch[12];
    struct biter it;
    struct belem e;
    uint32_t i = 0;

    if (v.type != BSON_TYPE_ARRAY)
        return no_array(x, depth, v);
    biter_init(&it, bval_doc(v));
    for (; biter_next(&it, &e); i++) {
        if (part->kind == PART_FILTER && !passes_filter(x, part, e.v))
            continue;
        const char *s = bw_index(i, scratch);
        x->parts[depth] = part_of(s, (uint32_t)strlen(s));
        int rc = walk(x, depth + 1, e.v);
        if (rc)
            return rc;
    }
    return 0;
}

static struct bval step(struct bval v, const struct part *part)
{
    struct biter it;
    struct belem e;
    uint32_t i = 0;

    if (v.type != BSON_TYPE_DOCUMENT && v.type != BSON_TYPE_ARRAY)
        return BVAL_MISSING;
    biter_init(&it, bval_doc(v));
    for (; biter_next(&it, &e); i++)
        if (v.type == BSON_TYPE_ARRAY ? i == part->index : e.name_n == part->n && memcmp(e.name, part->s, part->n) == 0)
            return e.v;
    return BVAL_MISSING;
}

static int walk(struct expand *x, uint32_t depth, struct bval v)
{
    if (depth == x->leaf->n_parts)
        return add_place(x);
    const struct part *part = &x->leaf->parts[depth];
    if (part->kind == PART_ALL || part->kind == PART_FILTER)
        return walk_array(x, depth, v);
    char scratch[12];
    x->parts[depth] = *part;
    if (part->kind == PART_POSITIONAL) {
        if (x->ap->array_index < 0)
            return err_set(x->ap->err, ERR_BAD_VALUE,
                           "The positional operator did not find the match needed from the query.");
        const char *s = bw_index((uint32_t)x->ap->array_index, scratch);
        x->parts[depth] = part_of(s, (uint32_t)strlen(s));
    }
    return walk(x, depth + 1, step(v, &x->parts[depth]));
}

int positional_expand(struct apply *ap, struct node *root)
{
    struct expand x = {.ap = ap, .cap = ap->u->n_leaves + 8};
    int rc = 0;

    x.places = arena_alloc(ap->a, x.cap * sizeof(*x.places));
    if (!x.places)
        return out_of_memory(ap->err);
    for (uint32_t i = 0; i < ap->u->n_leaves && rc == 0; i++) {
        x.leaf = &ap->u->leaves[i];
        if (x.leaf->op->idle && x.leaf->op->idle(ap, x.leaf))
            continue;
        rc = walk(&x, 0, bval_from_doc(ap->doc));
    }
    buf_free(&x.wrap);
    return rc ? rc : tree_build(ap->a, x.places, x.n, root, ap->err);
}
