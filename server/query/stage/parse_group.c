/* $group: a constant _id, and accumulators that add constants up ({$sum: 1}, {$count: {}}), as clients send them to count. */
#include "server/query/stage/parse_private.h"

static const char *const accumulators[] = {
    "$accumulator", "$addToSet", "$avg",       "$bottom",     "$bottomN", "$count",        "$first", "$firstN",
    "$last",        "$lastN",    "$max",       "$maxN",       "$median",  "$mergeObjects", "$min",   "$minN",
    "$percentile",  "$push",     "$stdDevPop", "$stdDevSamp", "$sum",     "$top",          "$topN",
};

static struct bval copy(struct parse *p, struct bval v)
{
    return (struct bval){v.type, v.n, arena_dup(p->arena, v.p, v.n)};
}

/* Values that mean themselves; documents, arrays and paths would have to be evaluated. */
static bool is_constant(struct bval v)
{
    uint32_t n;
    if (v.type == BSON_TYPE_UTF8)
        return *bval_str(v, &n) != '$' || n == 0;
    if (v.type == BSON_TYPE_DOCUMENT || v.type == BSON_TYPE_ARRAY)
        return bdoc_empty(bval_doc(v));
    return true;
}

static int parse_id(struct parse *p, struct bval v, struct stage_spec *out)
{
    if (!is_constant(v))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "an _id of $group that is not a constant is not implemented");
    out->id = copy(p, v);
    return 0;
}

static bool is_accumulator(const char *name)
{
    for (size_t i = 0; i < OV_LEN(accumulators); i++)
        if (strcmp(accumulators[i], name) == 0)
            return true;
    return false;
}

static int parse_operand(struct parse *p, const struct belem *acc, struct group_field *f)
{
    static const uint8_t one[4] = {1};
    if (strcmp(acc->name, "$count") == 0) {
        if (acc->v.type != BSON_TYPE_DOCUMENT || !bdoc_empty(bval_doc(acc->v)))
            return err_set(p->err, ERR_TYPE_MISMATCH, "$count takes no arguments, i.e. $count:{}");
        f->add = (struct bval){BSON_TYPE_INT32, sizeof(one), one};
        return 0;
    }
    if (strcmp(acc->name, "$sum") != 0)
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "the accumulator %s is not implemented", acc->name);
    if (acc->v.type != BSON_TYPE_INT32 && acc->v.type != BSON_TYPE_INT64 && acc->v.type != BSON_TYPE_DOUBLE)
        return err_set(p->err, ERR_NOT_IMPLEMENTED,
                       "$sum of anything but a constant int, long or double is not implemented");
    f->add = copy(p, acc->v);
    return 0;
}

static int parse_field(struct parse *p, const struct belem *e, struct group_field *f)
{
    struct biter it;
    struct belem acc, second;
    if (strchr(e->name, '.'))
        return err_set(p->err, 40235, "The field name '%s' cannot contain '.'", e->name);
    if (e->name[0] == '$')
        return err_set(p->err, 40236, "The field name '%s' cannot be an operator name", e->name);
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, 40234, "The field '%s' must be an accumulator object", e->name);
    biter_init(&it, bval_doc(e->v));
    if (!biter_next(&it, &acc) || acc.name[0] != '$')
        return err_set(p->err, 40234, "The field '%s' must be an accumulator object", e->name);
    if (biter_next(&it, &second))
        return err_set(p->err, 40238, "The field '%s' must specify one accumulator", e->name);
    if (!is_accumulator(acc.name))
        return err_set(p->err, 15952, "unknown group operator '%s'", acc.name);
    f->name = arena_strndup(p->arena, e->name, e->name_n);
    return parse_operand(p, &acc, f);
}

int parse_group(struct parse *p, struct bval v, struct stage_spec *out)
{
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    bool has_id = false;
    out->kind = STAGE_GROUP;
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, 15947, "a group's fields must be specified in an object");
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e);)
        n++;
    out->fields = arena_zalloc(p->arena, n * sizeof(*out->fields));
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e);) {
        int rc;
        if (strcmp(e.name, "_id") == 0) {
            if (has_id)
                return err_set(p->err, 15948, "a group's _id may only be specified once");
            has_id = true;
            rc = parse_id(p, e.v, out);
        } else {
            for (uint32_t i = 0; i < out->n_fields; i++)
                if (strcmp(out->fields[i].name, e.name) == 0)
                    return err_set(p->err, 16406, "duplicate field: %s", e.name);
            rc = parse_field(p, &e, &out->fields[out->n_fields++]);
        }
        if (rc != 0)
            return rc;
    }
    return has_id ? 0 : err_set(p->err, 15955, "a group specification must include an _id");
}
