/* An update's text into leaves and a tree. All that is kept points into one copy of the update document. */
#include "server/query/update/update_private.h"

static int check_part(const char *path, const struct part *part, uint32_t i, bool *positional, struct err *err)
{
    if (part->n == 0)
        return err_set(err, ERR_EMPTY_FIELD_NAME,
                       "The update path '%s' contains an empty field name, which is not allowed.", path);
    if (part->kind == PART_NAME)
        return 0;
    if (i == 0 && part->kind == PART_POSITIONAL)
        return err_set(err, ERR_BAD_VALUE,
                       "Cannot have positional (i.e. '$') element in the first position in path '%s'", path);
    if (i == 0)
        return err_set(
            err, ERR_BAD_VALUE,
            "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '%s'", path);
    if (part->kind == PART_POSITIONAL && *positional)
        return err_set(err, ERR_BAD_VALUE, "Too many positional (i.e. '$') elements found in path '%s'", path);
    *positional |= part->kind == PART_POSITIONAL;
    return 0;
}

int parse_path(struct arena *a, const char *path, struct part **parts, uint32_t *n, struct err *err)
{
    uint32_t count = 1;
    bool positional = false;

    *parts = NULL;
    *n = 0;
    if (!*path)
        return err_set(err, ERR_EMPTY_FIELD_NAME, "An empty update path is not valid.");
    for (const char *s = path; *s; s++)
        count += *s == '.';
    if (count > UPDATE_PARTS_MAX)
        return err_set(err, ERR_OVERFLOW, "The update path has %u parts, the limit is %d", count, UPDATE_PARTS_MAX);
    struct part *out = arena_alloc(a, count * sizeof(*out));
    if (!out)
        return out_of_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        size_t len = strcspn(path, ".");
        out[i] = part_of(path, (uint32_t)len);
        int rc = check_part(i ? out[0].s : path, &out[i], i, &positional, err);
        if (rc)
            return rc;
        path += len + 1;
    }
    *parts = out;
    *n = count;
    return 0;
}

static bool may_nest(const struct leaf *l)
{
    int levels = UPDATE_NEST_MAX - (int)l->n_parts - 2; /* $push makes an array around its values */
    if (levels <= 0)
        return true;
    return (l->arg.type == BSON_TYPE_DOCUMENT || l->arg.type == BSON_TYPE_ARRAY) &&
           nests_deeper(bval_doc(l->arg), levels);
}

int parse_add_leaf(struct parse *p, const struct update_op *op, const char *path, struct bval arg, struct leaf **out,
                   struct err *err)
{
    struct update *u = p->u;
    *out = NULL;
    if (u->n_leaves == p->cap_leaves) {
        uint32_t cap = p->cap_leaves ? 2 * p->cap_leaves : 4;
        struct leaf *more = arena_alloc(p->a, cap * sizeof(*more));
        if (!more)
            return out_of_memory(err);
        if (u->n_leaves)
            memcpy(more, u->leaves, u->n_leaves * sizeof(*more));
        u->leaves = more;
        p->cap_leaves = cap;
    }
    struct leaf *l = &u->leaves[u->n_leaves];
    *l = (struct leaf){.op = op, .path = path, .arg = arg};
    int rc = parse_path(p->a, path, &l->parts, &l->n_parts, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < l->n_parts; i++)
        l->positional |= l->parts[i].kind != PART_NAME;
    l->dollar_name = op->creates && path[0] == '$';
    u->positional |= l->positional;
    u->may_nest |= may_nest(l);
    u->n_leaves++;
    *out = l;
    return 0;
}

static int parse_operator(struct parse *p, const struct belem *mod, struct err *err)
{
    const struct update_op *op = update_op_find(mod->name);
    struct biter it;
    struct belem e;

    if (!op)
        return err_set(
            err, ERR_FAILED_TO_PARSE,
            "Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array",
            mod->name);
    if (mod->v.type != BSON_TYPE_DOCUMENT)
        return err_set(
            err, ERR_FAILED_TO_PARSE,
            "Modifiers operate on fields but we found type %s instead. For example: {$mod: {<field>: ...}} not {%s}",
            bval_type_name(mod->v.type), elem_text(p->a, mod->name, mod->v));
    biter_init(&it, bval_doc(mod->v));
    while (biter_next(&it, &e)) {
        struct leaf *l;
        int rc = parse_add_leaf(p, op, e.name, e.v, &l, err);
        if (rc || (rc = op->parse(p, l, err)) != 0)
            return rc;
    }
    return 0;
}

static int build_tree(struct parse *p, struct err *err)
{
    struct update *u = p->u;
    struct place *places = arena_alloc(p->a, u->n_leaves * sizeof(*places));
    if (!places)
        return out_of_memory(err);
    for (uint32_t i = 0; i < u->n_leaves; i++) {
        const struct leaf *l = &u->leaves[i];
        places[i] = (struct place){.leaf = l, .path = l->path, .parts = l->parts, .n_parts = l->n_parts, .order = i};
    }
    return tree_build(p->a, places, u->n_leaves, &u->root, err);
}

static int parse_operators(struct parse *p, struct err *err)
{
    struct biter it;
    struct belem mod;
    int rc;

    biter_init(&it, p->u->doc);
    while (biter_next(&it, &mod))
        if ((rc = parse_operator(p, &mod, err)) != 0)
            return rc;
    if ((rc = array_filters_check(p, err)) != 0)
        return rc;
    return build_tree(p, err);
}

int update_parse(struct arena *a, struct bval u, struct bval array_filters, bool multi, struct update **out,
                 struct err *err)
{
    struct parse p = {.a = a};
    int rc;

    *out = NULL;
    if (u.type == BSON_TYPE_ARRAY)
        return err_set(err, ERR_NOT_IMPLEMENTED, "Updates by an aggregation pipeline are not implemented yet");
    if (u.type != BSON_TYPE_DOCUMENT)
        return err_set(err, ERR_FAILED_TO_PARSE, "Update argument must be either an object or an array");
    struct update *up = p.u = arena_zalloc(a, sizeof(*up));
    if (!up || !(up->doc = arena_dup(a, u.p, u.n)))
        return out_of_memory(err);
    if (!bval_is_missing(array_filters) && (rc = array_filters_parse(&p, array_filters, err)) != 0)
        return rc;

    struct biter it;
    struct belem first;
    biter_init(&it, up->doc);
    up->replacement = !biter_next(&it, &first) || first.name[0] != '$';
    if (up->replacement) {
        if (multi)
            return err_set(err, ERR_FAILED_TO_PARSE, "multi update is not supported for replacement-style update");
        if ((rc = array_filters_check(&p, err)) != 0)
            return rc;
    } else if ((rc = parse_operators(&p, err)) != 0) {
        return rc;
    }
    *out = up;
    return 0;
}

bool update_is_replacement(const struct update *u)
{
    return u->replacement;
}
