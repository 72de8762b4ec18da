/* Fields of a projection that do more than include or exclude: {a: {$slice: 2}}, {a: {$elemMatch: {…}}}, {"a.$": 1}, {a: "$b"}. In find a $slice
 * that is not the projection operator may still be the expression of that name: its errors tell both. */
#include "server/query/project/parse_private.h"

/* ---- what computes ---- */

/* The first error of this sort is told if nothing else is wrong. */
static int fail_later(struct parse *p, int code, const char *msg)
{
    if (p->later.code == 0)
        err_set(&p->later, code, "%s", msg);
    return 0;
}

/* A leaf that would be computed. */
static int add_computed(struct parse *p, struct node *at, const struct belem *e)
{
    struct node *leaf;
    int rc = project_add(p, at, e->name, &leaf);
    if (rc == 0 && p->kind == KIND_OPEN)
        p->kind = KIND_INCLUSION;
    return rc;
}

int project_parse_literal(struct parse *p, struct node *at, const struct belem *e)
{
    struct node *leaf;
    int rc = project_add(p, at, e->name, &leaf);
    if (rc != 0)
        return rc;
    if (p->kind == KIND_EXCLUSION)
        return err_set(p->err, 31310, "Cannot use an expression %s: %s in an exclusion projection", e->name,
                       bval_shell(p->a, e->v));
    p->kind = KIND_INCLUSION;
    return fail_later(p, ERR_NOT_IMPLEMENTED,
                      arena_printf(p->a, "A %s as the value of '%s' in a projection is not implemented",
                                   bval_type_name(e->v.type), e->name));
}

static int check_inclusion(struct parse *p)
{
    if (p->kind == KIND_EXCLUSION)
        return err_set(p->err, 31252, "Cannot use expression other than $meta in exclusion projection");
    return 0;
}

static int parse_expression(struct parse *p, struct node *at, const struct belem *e, const struct belem *op)
{
    if (!project_is_expression(op->name))
        return err_set(p->err, 31325, "Unknown expression %s", op->name);
    int rc = check_inclusion(p);
    if (rc == 0)
        rc = add_computed(p, at, e);
    if (rc != 0)
        return rc;
    return fail_later(p, ERR_NOT_IMPLEMENTED,
                      arena_printf(p->a, "%s in the projection of '%s' is not implemented", op->name, e->name));
}

/* ---- $slice ---- */

/* Any number as an int, the nearest one where it is out of range; NaN is 0. */
static int32_t to_int(struct bval v)
{
    double d = bval_to_f64(v);
    if (d != d)
        return 0;
    if (d >= INT32_MAX)
        return INT32_MAX;
    return d <= INT32_MIN ? INT32_MIN : (int32_t)d;
}

static int slice_pair(struct parse *p, const uint8_t *array, struct node *leaf)
{
    struct biter it;
    struct belem skip, limit, third;
    biter_init(&it, array);
    if (!biter_next(&it, &skip) || !biter_next(&it, &limit) || biter_next(&it, &third))
        return err_set(p->err, 31272, "$slice array argument should be of form [skip, limit]");
    if (!bval_is_number(skip.v))
        return err_set(p->err, 31257, "$slice expects the skip argument to be a number, got %s",
                       bval_type_name(skip.v.type));
    if (!bval_is_number(limit.v))
        return err_set(p->err, 31258, "$slice expects the limit argument to be a number, got %s",
                       bval_type_name(limit.v.type));
    *leaf = (struct node){.has_skip = true, .skip = to_int(skip.v), .limit = to_int(limit.v)};
    if (leaf->limit <= 0)
        return err_set(p->err, 31259, "$slice limit must be positive, got %d", (int)leaf->limit);
    return 0;
}

/* As the operator of find. */
static int slice_operator(struct parse *p, struct node *at, const struct belem *e, const struct belem *op)
{
    struct node told = {0}, *leaf;
    int rc = 0;
    if (bval_is_number(op->v))
        told.limit = to_int(op->v);
    else if (op->v.type == BSON_TYPE_ARRAY)
        rc = slice_pair(p, bval_doc(op->v), &told);
    else
        rc = err_set(p->err, 31273, "$slice only supports numbers and [skip, limit] arrays");
    if (rc == 0)
        rc = project_add(p, at, e->name, &leaf);
    if (rc != 0)
        return rc;
    leaf->op = NODE_SLICE;
    leaf->has_skip = told.has_skip;
    leaf->skip = told.skip;
    leaf->limit = told.limit;
    p->has_slice = true;
    return 0;
}

static bool is_constant(struct bval v)
{
    uint32_t n;
    struct biter it;
    struct belem e;
    if (v.type == BSON_TYPE_DOCUMENT || v.type == BSON_TYPE_ARRAY) {
        for (biter_init(&it, bval_doc(v)); biter_next(&it, &e);)
            if (e.name[0] == '$' || !is_constant(e.v))
                return false;
        return true;
    }
    return v.type != BSON_TYPE_UTF8 || bval_str(v, &n)[0] != '$';
}

/* As the expression. Its arguments are looked at as far as an error of theirs can be told without computing. */
static int slice_expression(struct parse *p, struct node *at, const struct belem *e, const struct belem *op)
{
    struct biter it;
    struct belem first = {0}, arg;
    uint32_t n = 0, n_constant = 0;
    int rc = check_inclusion(p);
    if (rc != 0)
        return rc;
    if (op->v.type == BSON_TYPE_ARRAY)
        for (biter_init(&it, bval_doc(op->v)); biter_next(&it, &arg); n++) {
            if (n == 0)
                first = arg;
            n_constant += is_constant(arg.v);
        }
    else
        n = 1;
    if (n < 2 || n > 3)
        return err_set(p->err, 28667,
                       "Expression $slice takes at least 2 arguments, and at most 3, but %u were passed in.", n);
    if ((rc = add_computed(p, at, e)) != 0)
        return rc;
    bool fits =
        first.v.type == BSON_TYPE_ARRAY || first.v.type == BSON_TYPE_NULL || first.v.type == BSON_TYPE_UNDEFINED;
    if (n_constant == n && !fits)
        return fail_later(p, 28724,
                          arena_printf(p->a,
                                       "Failed to optimize expression :: caused by :: First argument to $slice must be "
                                       "an array, but is of type: %s",
                                       bval_type_name(first.v.type)));
    return fail_later(
        p, ERR_NOT_IMPLEMENTED,
        arena_printf(p->a, "the expression $slice in the projection of '%s' is not implemented", e->name));
}

static int parse_slice(struct parse *p, struct node *at, const struct belem *e, const struct belem *op)
{
    char scratch[24];
    if (!p->find)
        return slice_expression(p, at, e, op);
    int rc = slice_operator(p, at, e, op);
    if (rc == 0 || rc == ERR_EXCEEDED_MEMORY_LIMIT)
        return rc;
    const char *why = arena_printf(p->a, "%s: %s", err_code_name(p->err->code, scratch), p->err->msg);
    err_clear(p->err);
    rc = slice_expression(p, at, e, op);
    if (rc != 0)
        err_prefix(p->err,
                   arena_printf(p->a,
                                "Invalid $slice syntax. The given syntax %s did not match the find() syntax because :: "
                                "%s :: The given syntax did not match the expression $slice syntax. :: caused by :: ",
                                bval_shell(p->a, e->v), why));
    return rc;
}

/* ---- $elemMatch ---- */

static int parse_elem_match(struct parse *p, struct node *at, const struct belem *e, const struct belem *op)
{
    struct node *leaf;
    struct match *m;
    struct buf b;
    if (!p->find)
        return err_set(p->err, ERR_INVALID_PIPELINE_OPERATOR, "Cannot use $elemMatch in this context");
    if (op->v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, 31274, "elemMatch: Invalid argument, object required, but got %s",
                       bval_type_name(op->v.type));
    if (p->has_positional)
        return err_set(p->err, 31255, "Cannot specify positional operator and $elemMatch.");
    if (at != &p->out->root || strchr(e->name, '.'))
        return err_set(p->err, 31275, "Cannot use $elemMatch projection on a nested field.");
    buf_init(&b);
    size_t start = bw_begin(&b);
    bw_val(&b, e->name, e->v);
    bw_end(&b, start);
    int rc = match_parse_plain(p->a, b.p, &m, p->err);
    buf_free(&b);
    if (rc == 0)
        rc = project_add(p, at, e->name, &leaf);
    if (rc != 0)
        return rc;
    leaf->op = NODE_ELEM_MATCH;
    leaf->elem = m;
    p->has_elem = true;
    return 0;
}

/* ---- $meta ---- */

static int parse_meta(struct parse *p, struct node *at, const struct belem *e, const struct belem *op)
{
    static const char *const names[] = {
        "textScore",         "randVal",  "searchScore",  "searchHighlights", "geoNearDistance",
        "geoNearPoint",      "recordId", "indexKey",     "sortKey",          "searchScoreDetails",
        "vectorSearchScore", "score",    "scoreDetails", "stream",           "searchSequenceToken",
    };
    struct node *leaf;
    uint32_t n;
    if (op->v.type != BSON_TYPE_UTF8)
        return err_set(p->err, 17307, "$meta only supports string arguments");
    const char *name = bval_str(op->v, &n);
    size_t i = 0;
    while (i < OV_LEN(names) && (strlen(names[i]) != n || memcmp(names[i], name, n) != 0))
        i++;
    if (i == OV_LEN(names))
        return err_set(p->err, 17308, "Unsupported argument to $meta: %.*s", (int)OV_MIN(n, 1000u), name);
    int rc = project_add(p, at, e->name, &leaf);
    if (rc != 0)
        return rc;
    p->has_meta = true;
    return fail_later(
        p, ERR_NOT_IMPLEMENTED,
        arena_printf(p->a, "{$meta: '%s'} in the projection of '%s' is not implemented", names[i], e->name));
}

/* ---- the table ---- */

static const struct row {
    const char *name;
    int (*parse)(struct parse *p, struct node *at, const struct belem *e, const struct belem *op);
} table[] = {
    {"$elemMatch", parse_elem_match},
    {"$meta", parse_meta},
    {"$slice", parse_slice},
};

int project_parse_operator(struct parse *p, struct node *at, const struct belem *e, const struct belem *op)
{
    for (size_t i = 0; i < OV_LEN(table); i++)
        if (strcmp(table[i].name, op->name) == 0)
            return table[i].parse(p, at, e, op);
    return parse_expression(p, at, e, op);
}

/* ---- the positional operator ---- */

int project_parse_positional(struct parse *p, struct node *at, const struct belem *e)
{
    struct node *leaf;
    if (!bval_truthy(e->v))
        return err_set(p->err, 31395, "positional projection cannot be used with exclusion");
    if (p->has_positional)
        return err_set(p->err, 31276, "Cannot specify more than one positional projection per query.");
    if (p->has_elem)
        return err_set(p->err, 31256, "Cannot specify positional operator and $elemMatch.");
    const char *path = arena_strndup(p->a, e->name, e->name_n - 2);
    if (!path)
        return project_no_memory(p->err);
    int rc = project_add(p, at, path, &leaf);
    if (rc != 0)
        return rc;
    leaf->op = NODE_POSITIONAL;
    for (struct node *n = leaf; n; n = n->up)
        n->positional = true;
    p->has_positional = true;
    return project_agree(p, KIND_INCLUSION, e->name);
}
