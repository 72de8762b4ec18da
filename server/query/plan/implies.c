/* Does every document that matches one filter match another one, too? "Yes" is proven by the trees' shape and by comparing operands; what is
 * not proven is "no", which costs an index and never a document.
 *
 * A condition on a path asks for one value there. So between conditions on the same path it is enough that each value that the one accepts is
 * accepted by the other, arrays or not. */
#include <math.h>

#include "server/query/plan/plan_private.h"

enum { DEPTH_MAX = 50 };

static bool is_nan(struct bval v)
{
    return bval_is_number(v) && isnan(bval_to_f64(v));
}

static bool same(const struct match *x, const struct match *y, int depth)
{
    if (x->op != y->op || depth > DEPTH_MAX)
        return false;
    if (x->n_children || y->n_children) {
        if (x->path.text || y->path.text || x->priv || y->priv || x->n_children != y->n_children)
            return false;
        for (uint32_t i = 0; i < x->n_children; i++)
            if (!same(x->children[i], y->children[i], depth + 1))
                return false;
        return true;
    }
    if (x->op == MATCH_TRUE || x->op == MATCH_FALSE)
        return true;
    if (!x->path.text || !y->path.text || !path_equal(&x->path, &y->path))
        return false;
    switch (x->op) {
    case MATCH_EXISTS:
        return x->flag == y->flag;
    case MATCH_TYPE:
        return (x->n_values & ~y->n_values) == 0;
    case MATCH_EQ:
    case MATCH_LT:
    case MATCH_LTE:
    case MATCH_GT:
    case MATCH_GTE:
        return bval_class(x->value.type) == bval_class(y->value.type) && bval_eq(x->value, y->value);
    case MATCH_IN:
        if (x->n_values != y->n_values)
            return false;
        for (uint32_t i = 0; i < x->n_values; i++)
            if (!bval_eq(x->values[i], y->values[i]))
                return false;
        return true;
    default: /* operands that only their operator knows */
        return false;
    }
}

/* A value that op `x` accepts, with operand v, is accepted by `y` (EQ and the comparisons). */
static bool compares(enum match_op op, struct bval v, const struct match *y)
{
    int c = bval_cmp(v, y->value);
    if (bval_class(v.type) != bval_class(y->value.type))
        return false;
    if (op == y->op && c == 0)
        return true;
    switch (v.type) { /* types whose order is not one of ranges, and null, which a missing value matches */
    case BSON_TYPE_NULL:
    case BSON_TYPE_UNDEFINED:
    case BSON_TYPE_MINKEY:
    case BSON_TYPE_MAXKEY:
    case BSON_TYPE_REGEX:
    case BSON_TYPE_EOD:
        return false;
    default:
        break;
    }
    if (is_nan(v) || is_nan(y->value))
        return false;
    switch (y->op) {
    case MATCH_LT:
        return (op == MATCH_LT && c <= 0) || ((op == MATCH_LTE || op == MATCH_EQ) && c < 0);
    case MATCH_LTE:
        return (op == MATCH_LT || op == MATCH_LTE || op == MATCH_EQ) && c <= 0;
    case MATCH_GT:
        return (op == MATCH_GT && c >= 0) || ((op == MATCH_GTE || op == MATCH_EQ) && c > 0);
    case MATCH_GTE:
        return (op == MATCH_GT || op == MATCH_GTE || op == MATCH_EQ) && c >= 0;
    default:
        return false;
    }
}

static bool in_list(struct bval v, const struct match *list)
{
    for (uint32_t i = 0; i < list->n_values; i++)
        if (bval_class(v.type) == bval_class(list->values[i].type) && bval_eq(v, list->values[i]))
            return true;
    return false;
}

static bool may_be_missing(struct bval v) /* a document without the field matches a condition on this operand */
{
    return v.type == BSON_TYPE_NULL || v.type == BSON_TYPE_UNDEFINED || v.type == BSON_TYPE_EOD;
}

static bool asks_presence(const struct match *m)
{
    switch (m->op) {
    case MATCH_EXISTS:
        return m->flag;
    case MATCH_EQ:
    case MATCH_LT:
    case MATCH_LTE:
    case MATCH_GT:
    case MATCH_GTE: /* beyond MinKey and MaxKey a missing value may count as one */
        return !may_be_missing(m->value) && m->value.type != BSON_TYPE_MINKEY && m->value.type != BSON_TYPE_MAXKEY;
    case MATCH_IN:
        for (uint32_t i = 0; i < m->n_values; i++)
            if (may_be_missing(m->values[i]))
                return false;
        return true;
    case MATCH_TYPE:
    case MATCH_SIZE:
    case MATCH_MOD:
    case MATCH_REGEX:
    case MATCH_BITS:
    case MATCH_ELEM_MATCH:
        return true;
    default:
        return false;
    }
}

static bool leaf_implies(const struct match *x, const struct match *y)
{
    if (!x->path.text || !y->path.text || !path_equal(&x->path, &y->path))
        return false;
    switch (y->op) {
    case MATCH_EXISTS:
        return y->flag && asks_presence(x);
    case MATCH_EQ:
    case MATCH_LT:
    case MATCH_LTE:
    case MATCH_GT:
    case MATCH_GTE:
        if (x->op == MATCH_IN) {
            for (uint32_t i = 0; i < x->n_values; i++)
                if (!compares(MATCH_EQ, x->values[i], y))
                    return false;
            return true;
        }
        return x->op >= MATCH_EQ && x->op <= MATCH_GTE && compares(x->op, x->value, y);
    case MATCH_IN:
        if (x->op == MATCH_EQ)
            return in_list(x->value, y);
        if (x->op != MATCH_IN)
            return false;
        for (uint32_t i = 0; i < x->n_values; i++)
            if (!in_list(x->values[i], y))
                return false;
        return true;
    default:
        return false;
    }
}

static bool implies(const struct match *x, const struct match *y, int depth)
{
    if (depth > DEPTH_MAX)
        return false;
    if (y->op == MATCH_TRUE || x->op == MATCH_FALSE || same(x, y, depth))
        return true;
    if (y->op == MATCH_AND) {
        for (uint32_t i = 0; i < y->n_children; i++)
            if (!implies(x, y->children[i], depth + 1))
                return false;
        return true;
    }
    if (x->op == MATCH_OR) {
        for (uint32_t i = 0; i < x->n_children; i++)
            if (!implies(x->children[i], y, depth + 1))
                return false;
        return true;
    }
    if (x->op == MATCH_AND)
        for (uint32_t i = 0; i < x->n_children; i++)
            if (implies(x->children[i], y, depth + 1))
                return true;
    if (y->op == MATCH_OR) {
        for (uint32_t i = 0; i < y->n_children; i++)
            if (implies(x, y->children[i], depth + 1))
                return true;
        return false;
    }
    return leaf_implies(x, y);
}

bool filter_implies(const struct match *x, const struct match *y)
{
    return implies(x, y, 0);
}
