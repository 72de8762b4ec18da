/* $addToSet $pull $pullAll $pop: operators on arrays as sets and ends. ($push: op_push.c) */
#include "server/query/update/operators.h"

static const uint8_t *first_field(struct bval v, struct belem *e)
{
    struct biter it;
    if (v.type != BSON_TYPE_DOCUMENT)
        return NULL;
    biter_init(&it, bval_doc(v));
    return biter_next(&it, e) ? bval_doc(v) : NULL;
}

/* ---- $addToSet ---- */

struct each {
    struct bval *values;
    uint32_t n;
};

static int add_to_set_each(struct parse *p, struct leaf *l, struct each *out, struct err *err)
{
    struct belem e;

    if (!first_field(l->arg, &e) || strcmp(e.name, "$each") != 0) {
        out->values = arena_dup(p->a, &l->arg, sizeof(l->arg));
        out->n = 1;
        return out->values ? 0 : out_of_memory(err);
    }
    if (e.v.type != BSON_TYPE_ARRAY)
        return err_set(err, ERR_TYPE_MISMATCH,
                       "The argument to $each in $addToSet must be an array but it was of type %s",
                       bval_type_name(e.v.type));
    if (array_count(bval_doc(l->arg)) > 1)
        return err_set(err, ERR_BAD_VALUE, "Found unexpected fields after $each in $addToSet: %s",
                       value_text(p->a, l->arg));
    out->values = array_items(p->a, bval_doc(e.v), 0, &out->n);
    return out->values ? 0 : out_of_memory(err);
}

int add_to_set_parse(struct parse *p, struct leaf *l, struct err *err)
{
    struct each all = {0}, *each = arena_zalloc(p->a, sizeof(*each));
    struct value_set seen;
    int rc = add_to_set_each(p, l, &all, err);

    if (rc)
        return rc;
    if (!each || !(each->values = arena_alloc(p->a, all.n * sizeof(*all.values))) ||
        !value_set_init(&seen, p->a, all.n))
        return out_of_memory(err);
    for (uint32_t i = 0; i < all.n; i++)
        if (value_set_add(&seen, all.values[i]))
            each->values[each->n++] = all.values[i];
    l->priv = each;
    return 0;
}

/* Those of `each` that the array lacks. Comparing all with all is quickest for few; a set serves the rest. */
static int missing_values(struct apply *ap, const struct each *each, const uint8_t *arr, uint32_t *count,
                          struct bval **out, uint32_t *n)
{
    struct biter it;
    struct belem e;
    struct value_set set = {0};
    uint8_t *there = arena_zalloc(ap->a, each->n);

    *n = *count = 0;
    *out = arena_alloc(ap->a, each->n * sizeof(**out));
    if (!there || !*out)
        return out_of_memory(ap->err);
    if (each->n > 8 && !value_set_init(&set, ap->a, array_count(arr)))
        return out_of_memory(ap->err);
    biter_init(&it, arr);
    for (; biter_next(&it, &e); (*count)++) {
        if (set.slots)
            value_set_add(&set, e.v);
        for (uint32_t i = 0; !set.slots && i < each->n; i++)
            there[i] |= !there[i] && bval_eq(e.v, each->values[i]);
    }
    for (uint32_t i = 0; i < each->n; i++)
        if (set.slots ? !value_set_has(&set, each->values[i]) : !there[i])
            (*out)[(*n)++] = each->values[i];
    return 0;
}

int add_to_set_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    const struct each *each = l->priv;
    struct bval *items;
    uint32_t count, n;

    if (bval_is_missing(t->old))
        return target_set_array(ap, t, each->values, each->n);
    if (t->old.type != BSON_TYPE_ARRAY)
        return err_set(ap->err, ERR_BAD_VALUE,
                       "Cannot apply $addToSet to non-array field. Field named '%.*s' has non-array type %s",
                       (int)t->name_n, t->name, bval_type_name(t->old.type));
    int rc = missing_values(ap, each, bval_doc(t->old), &count, &items, &n);
    if (rc)
        return rc;
    return n ? target_append(ap, t, count, items, n) : 0;
}

/* ---- $pull, $pullAll ---- */

int pull_parse(struct parse *p, struct leaf *l, struct err *err)
{
    struct match *m = NULL;
    if (l->arg.type == BSON_TYPE_DOCUMENT || l->arg.type == BSON_TYPE_REGEX) {
        int rc = match_parse_value(p->a, l->arg, &m, err);
        if (rc)
            return rc;
    }
    l->priv = m; /* NULL: a plain value */
    return 0;
}

int pull_all_parse(struct parse *p, struct leaf *l, struct err *err)
{
    if (l->arg.type != BSON_TYPE_ARRAY)
        return err_set(err, ERR_BAD_VALUE, "$pullAll requires an array argument but was given a %s",
                       bval_type_name(l->arg.type));
    struct value_set *set = arena_alloc(p->a, sizeof(*set));
    uint32_t n;
    struct bval *items = array_items(p->a, bval_doc(l->arg), 0, &n);
    if (!set || !items || !value_set_init(set, p->a, n))
        return out_of_memory(err);
    for (uint32_t i = 0; i < n; i++)
        value_set_add(set, items[i]);
    l->priv = set;
    return 0;
}

static bool pulls_matching(const struct leaf *l, struct bval v)
{
    return l->priv ? match_value(l->priv, v) : bval_eq(v, l->arg);
}

static bool pulls_listed(const struct leaf *l, struct bval v)
{
    return value_set_has(l->priv, v);
}

static int pull(struct apply *ap, const struct leaf *l, const struct target *t,
                bool (*pulls)(const struct leaf *, struct bval))
{
    struct bval *items = NULL;
    struct biter it;
    struct belem e;
    uint32_t n = 0, i = 0;

    if (bval_is_missing(t->old))
        return 0;
    if (t->old.type != BSON_TYPE_ARRAY)
        return err_set(ap->err, ERR_BAD_VALUE, "Cannot apply $pull to a non-array value");
    biter_init(&it, bval_doc(t->old));
    for (; biter_next(&it, &e); i++) {
        if (pulls(l, e.v)) {
            if (!items && !(items = array_items(ap->a, bval_doc(t->old), 0, &n)))
                return out_of_memory(ap->err);
            if (n > i)
                n = i; /* the first that goes: those before it stay */
            continue;
        }
        if (items)
            items[n++] = e.v; /* n never passes i */
    }
    return items ? target_set_array(ap, t, items, n) : 0;
}

int pull_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    return pull(ap, l, t, pulls_matching);
}

int pull_all_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    return pull(ap, l, t, pulls_listed);
}

/* ---- $pop ---- */

int pop_parse(struct parse *p, struct leaf *l, struct err *err)
{
    static const bool first = true;
    int64_t n;

    if (!bval_is_number(l->arg))
        return err_set(err, ERR_FAILED_TO_PARSE, "Expected a number in: %s", elem_text(p->a, l->path, l->arg));
    if (!bval_to_i64(l->arg, true, &n))
        return err_set(err, ERR_FAILED_TO_PARSE, "Expected an integer: %s", elem_text(p->a, l->path, l->arg));
    if (n != 1 && n != -1)
        return err_set(err, ERR_FAILED_TO_PARSE, "$pop expects 1 or -1, found: %lld", (long long)n);
    l->priv = n < 0 ? &first : NULL;
    return 0;
}

int pop_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    struct bval *items;
    uint32_t n;

    if (bval_is_missing(t->old))
        return 0;
    if (t->old.type != BSON_TYPE_ARRAY)
        return err_set(ap->err, ERR_TYPE_MISMATCH, "Path '%s' contains an element of non-array type '%s'", t->path,
                       bval_type_name(t->old.type));
    if (!(items = array_items(ap->a, bval_doc(t->old), 0, &n)))
        return out_of_memory(ap->err);
    if (n == 0)
        return 0;
    return target_set_array(ap, t, items + (l->priv ? 1 : 0), n - 1);
}
