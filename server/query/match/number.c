/* $mod: on whole numbers; fractions are cut off, values beyond 64 bits match nothing. */
#include "server/query/match/match_private.h"

struct mod {
    int64_t divisor, remainder;
};

static int parse_operand(struct parser *ps, struct bval v, const char *what, int64_t *out)
{
    if (!bval_is_number(v))
        return err_set(ps->err, ERR_BAD_VALUE, "malformed mod, %s not a number", what);
    if (bval_to_i64(v, false, out))
        return 0;
    double d = bval_to_f64(v);
    if (v.type == BSON_TYPE_DOUBLE && (d != d || d - d != 0))
        return err_set(ps->err, ERR_BAD_VALUE,
                       "malformed mod, %s value is invalid :: caused by :: Unable to coerce NaN/Inf to integral type",
                       what);
    return err_set(ps->err, ERR_BAD_VALUE,
                   "malformed mod, %s value is invalid :: caused by :: Out of bounds coercing to integral value", what);
}

int match_parse_mod(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                    struct match_list *out)
{
    struct biter it;
    struct belem d, q, more;
    struct mod mod = {0, 0};
    int rc;
    if (e->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_BAD_VALUE, "malformed mod, needs to be an array");
    biter_init(&it, bval_doc(e->v));
    if (!biter_next(&it, &d))
        return err_set(ps->err, ERR_BAD_VALUE, "malformed mod, not enough elements");
    if ((rc = parse_operand(ps, d.v, "divisor", &mod.divisor)) != 0)
        return rc;
    if (!biter_next(&it, &q))
        return err_set(ps->err, ERR_BAD_VALUE, "malformed mod, not enough elements");
    if ((rc = parse_operand(ps, q.v, "remainder", &mod.remainder)) != 0)
        return rc;
    if (biter_next(&it, &more))
        return err_set(ps->err, ERR_BAD_VALUE, "malformed mod, too many elements");
    if (mod.divisor == 0)
        return err_set(ps->err, ERR_BAD_VALUE, "divisor cannot be 0");
    struct match *m = match_leaf(ps, MATCH_MOD, path);
    if (m && !(m->priv = arena_dup(ps->a, &mod, sizeof mod)))
        return match_full(ps);
    return match_push(ps, out, m);
}

bool match_test_mod(const struct match *m, struct bval v, struct match_result *r)
{
    const struct mod *mod = m->priv;
    int64_t n;
    if (!bval_is_number(v) || !bval_to_i64(v, false, &n))
        return false;
    return (mod->divisor == -1 ? 0 : n % mod->divisor) == mod->remainder; /* INT64_MIN % -1 traps */
}
