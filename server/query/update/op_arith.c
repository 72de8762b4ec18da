/* $inc $mul $min $max $bit: a new value from the old one and an operand. */
#include "server/query/update/operators.h"

/* ---- $inc, $mul ---- */

static int parse_number(struct parse *p, struct leaf *l, const char *verb, struct err *err)
{
    if (bval_is_number(l->arg))
        return 0;
    return err_set(err, ERR_TYPE_MISMATCH, "Cannot %s with non-numeric argument: {%s}", verb,
                   elem_text(p->a, l->path, l->arg));
}

int inc_parse(struct parse *p, struct leaf *l, struct err *err)
{
    return parse_number(p, l, "increment", err);
}

int mul_parse(struct parse *p, struct leaf *l, struct err *err)
{
    return parse_number(p, l, "multiply", err);
}

static int arith(struct apply *ap, const struct leaf *l, const struct target *t,
                 int (*fn)(struct bval, struct bval, uint8_t *, struct bval *))
{
    uint8_t raw[16];
    struct bval v;

    if (!bval_is_number(t->old))
        return err_set(
            ap->err, ERR_TYPE_MISMATCH,
            "Cannot apply %s to a value of non-numeric type. {%s} has the field '%.*s' of non-numeric type %s",
            l->op->name, apply_id_text(ap), (int)t->name_n, t->name, bval_type_name(t->old.type));
    if (fn(t->old, l->arg, raw, &v) != 0) {
        bool narrow = t->old.type == BSON_TYPE_INT32;
        return err_set(ap->err, ERR_BAD_VALUE,
                       "Failed to apply %s operations to current value ((%s)%lld) for document {%s}", l->op->name,
                       narrow ? "NumberInt" : "NumberLong", (long long)bval_i64(t->old), apply_id_text(ap));
    }
    return target_set(ap, t, v);
}

int inc_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    if (bval_is_missing(t->old))
        return target_set(ap, t, l->arg);
    return arith(ap, l, t, bval_add);
}

int mul_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    if (bval_is_missing(t->old)) { /* a zero of the operand's type; -0 or NaN where arithmetic says so */
        uint8_t zero[8], raw[16];
        struct bval v;
        if (bval_mul(l->arg, bval_from_i32(0, zero), raw, &v) != 0)
            return err_set(ap->err, ERR_BAD_VALUE, "Failed to apply $mul operations to a missing value");
        return target_set(ap, t, v);
    }
    return arith(ap, l, t, bval_mul);
}

/* ---- $min, $max ---- */

int min_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    return bval_is_missing(t->old) || bval_cmp(l->arg, t->old) < 0 ? target_set(ap, t, l->arg) : 0;
}

int max_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    return bval_is_missing(t->old) || bval_cmp(l->arg, t->old) > 0 ? target_set(ap, t, l->arg) : 0;
}

/* ---- $bit ---- */

static bool is_integer(struct bval v)
{
    return v.type == BSON_TYPE_INT32 || v.type == BSON_TYPE_INT64;
}

int bit_parse(struct parse *p, struct leaf *l, struct err *err)
{
    struct biter it;
    struct belem e;

    if (l->arg.type != BSON_TYPE_DOCUMENT)
        return err_set(err, ERR_BAD_VALUE,
                       "The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: "
                       "{field: {and/or/xor: #}}",
                       bval_type_name(l->arg.type));
    biter_init(&it, bval_doc(l->arg));
    while (biter_next(&it, &e)) {
        if (strcmp(e.name, "and") != 0 && strcmp(e.name, "or") != 0 && strcmp(e.name, "xor") != 0)
            return err_set(
                err, ERR_BAD_VALUE,
                "The $bit modifier only supports 'and', 'or', and 'xor', not '%s' which is an unknown operator: {%s}",
                e.name, elem_text(p->a, e.name, e.v));
        if (!is_integer(e.v))
            return err_set(err, ERR_BAD_VALUE,
                           "The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%s}",
                           bval_type_name(e.v.type), elem_text(p->a, e.name, e.v));
    }
    if (bdoc_empty(bval_doc(l->arg)))
        return err_set(
            err, ERR_BAD_VALUE,
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}");
    return 0;
}

int bit_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    struct biter it;
    struct belem e;
    uint8_t raw[8];
    int64_t v = 0;
    bool wide = false;

    if (!bval_is_missing(t->old)) {
        if (!is_integer(t->old))
            return err_set(
                ap->err, ERR_BAD_VALUE,
                "Cannot apply $bit to a value of non-integral type.%s has the field %.*s of non-integer type %s",
                apply_id_text(ap), (int)t->name_n, t->name, bval_type_name(t->old.type));
        v = bval_i64(t->old);
        wide = t->old.type == BSON_TYPE_INT64;
    }
    biter_init(&it, bval_doc(l->arg));
    while (biter_next(&it, &e)) {
        int64_t arg = bval_i64(e.v);
        wide |= e.v.type == BSON_TYPE_INT64;
        v = e.name[0] == 'a' ? v & arg : e.name[0] == 'o' ? v | arg : v ^ arg;
    }
    return target_set(ap, t, wide ? bval_from_i64(v, raw) : bval_from_i32((int32_t)v, raw));
}
