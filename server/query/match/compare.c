/* $eq $ne $gt $gte $lt $lte and {path: value}. A comparison holds only within one type class ("type bracketing"), but:
 *   - null equals a missing field, also for $gte and $lte; it does not equal undefined;
 *   - MinKey and MaxKey as operands compare with everything;
 *   - NaN equals NaN (also for $gte and $lte) and is neither above nor below anything. */
#include "server/query/match/match_private.h"

static const struct {
    const char *name;
    enum match_op op;
} ops[] = {{"$eq", MATCH_EQ}, {"$gt", MATCH_GT}, {"$gte", MATCH_GTE}, {"$lt", MATCH_LT}, {"$lte", MATCH_LTE}};

int match_parse_compare(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                        struct match_list *out)
{
    enum match_op op = MATCH_EQ;
    for (size_t i = 0; i < OV_LEN(ops); i++)
        if (strcmp(ops[i].name, e->name) == 0)
            op = ops[i].op;
    if (e->v.type == BSON_TYPE_UNDEFINED)
        return err_set(ps->err, ERR_BAD_VALUE, "cannot compare to undefined");
    if (op != MATCH_EQ && e->v.type == BSON_TYPE_REGEX)
        return err_set(ps->err, ERR_BAD_VALUE, "Can't have RegEx as arg to predicate over field '%.*s'.",
                       MATCH_SHOW_MAX, path ? path : "");
    return match_push(ps, out, match_leaf_value(ps, op, path, e->v));
}

int match_parse_ne(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                   struct match_list *out)
{
    if (e->v.type == BSON_TYPE_REGEX)
        return err_set(ps->err, ERR_BAD_VALUE, "Can't have regex as arg to $ne.");
    if (e->v.type == BSON_TYPE_UNDEFINED)
        return err_set(ps->err, ERR_BAD_VALUE, "cannot compare to undefined");
    return match_push(ps, out, match_not(ps, match_leaf_value(ps, MATCH_EQ, path, e->v)));
}

static bool is_nan(struct bval v)
{
    if (v.type != BSON_TYPE_DOUBLE && v.type != BSON_TYPE_DECIMAL128)
        return false;
    double d = bval_to_f64(v);
    return d != d;
}

/* The operand is MinKey or MaxKey and the value is of another type: only the direction counts. */
static bool beyond(enum match_op op, uint8_t operand)
{
    switch (op) {
    case MATCH_LT:
    case MATCH_LTE:
        return operand == BSON_TYPE_MAXKEY;
    case MATCH_GT:
    case MATCH_GTE:
        return operand == BSON_TYPE_MINKEY;
    default:
        return false;
    }
}

bool match_test_compare(const struct match *m, struct bval v, struct match_result *r)
{
    uint8_t t = m->value.type;
    bool equal_too = m->op != MATCH_GT && m->op != MATCH_LT;
    if (v.type != t && bval_class(v.type) != bval_class(t)) {
        if (t == BSON_TYPE_NULL && v.type == BSON_TYPE_EOD)
            return equal_too;
        return (t == BSON_TYPE_MINKEY || t == BSON_TYPE_MAXKEY) && beyond(m->op, t);
    }
    if (is_nan(m->value) || is_nan(v))
        return equal_too && is_nan(m->value) && is_nan(v);
    int c = bval_cmp(v, m->value);
    switch (m->op) {
    case MATCH_LT:
        return c < 0;
    case MATCH_LTE:
        return c <= 0;
    case MATCH_GT:
        return c > 0;
    case MATCH_GTE:
        return c >= 0;
    default:
        return c == 0;
    }
}

/* Equality is what most filters are made of: types whose equality is that of their bytes need no comparison by value. */
bool match_test_eq(const struct match *m, struct bval v, struct match_result *r)
{
    if (OV_LIKELY(v.type == m->value.type)) {
        switch (v.type) {
        case BSON_TYPE_INT32:
        case BSON_TYPE_INT64:
        case BSON_TYPE_UTF8:
        case BSON_TYPE_OID:
        case BSON_TYPE_BOOL:
        case BSON_TYPE_DATE_TIME:
        case BSON_TYPE_TIMESTAMP:
            return v.n == m->value.n && memcmp(v.p, m->value.p, v.n) == 0;
        default:
            break;
        }
    }
    return match_test_compare(m, v, r);
}
