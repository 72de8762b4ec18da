/* $exists and $type: what kind of value a path leads to. */
#include "server/query/match/match_private.h"

int match_parse_exists(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                       struct match_list *out)
{
    struct match *m = match_leaf(ps, MATCH_EXISTS, path);
    if (m)
        m->flag = bval_truthy(e->v);
    return match_push(ps, out, m);
}

/* Whether anything is there; the evaluator compares the answer for the whole path with the flag. */
bool match_test_exists(const struct match *m, struct bval v, struct match_result *r)
{
    return v.type != BSON_TYPE_EOD;
}

/* Types as a set of bits: 0x01 … 0x13, then MinKey and MaxKey. */
#define BIT(type)   (1u << ((type)&0x1f))
#define BIT_MINKEY  (1u << 30)
#define BIT_MAXKEY  (1u << 31)
#define BITS_NUMBER (BIT(BSON_TYPE_DOUBLE) | BIT(BSON_TYPE_INT32) | BIT(BSON_TYPE_INT64) | BIT(BSON_TYPE_DECIMAL128))

static uint32_t type_bit(int64_t code)
{
    if (code == -1)
        return BIT_MINKEY;
    if (code == BSON_TYPE_MAXKEY)
        return BIT_MAXKEY;
    return code >= BSON_TYPE_DOUBLE && code <= BSON_TYPE_DECIMAL128 ? BIT(code) : 0;
}

static const struct {
    const char *name;
    int code;
} aliases[] = {
    {"double", 1},    {"string", 2},     {"object", 3},      {"array", 4},    {"binData", 5},
    {"undefined", 6}, {"objectId", 7},   {"bool", 8},        {"date", 9},     {"null", 10},
    {"regex", 11},    {"dbPointer", 12}, {"javascript", 13}, {"symbol", 14},  {"javascriptWithScope", 15},
    {"int", 16},      {"timestamp", 17}, {"long", 18},       {"decimal", 19}, {"minKey", -1},
    {"maxKey", 127},
};

uint32_t match_type_alias(const char *name, uint32_t n)
{
    if (n == 6 && memcmp(name, "number", 6) == 0)
        return BITS_NUMBER;
    for (size_t i = 0; i < OV_LEN(aliases); i++)
        if (strlen(aliases[i].name) == n && memcmp(aliases[i].name, name, n) == 0)
            return type_bit(aliases[i].code);
    return 0;
}

uint32_t match_type_bit(uint8_t type)
{
    return type == BSON_TYPE_EOD      ? 0
           : type == BSON_TYPE_MINKEY ? BIT_MINKEY
           : type == BSON_TYPE_MAXKEY ? BIT_MAXKEY
                                      : BIT(type);
}

static int parse_one(struct parser *ps, const struct belem *e, uint32_t *bits)
{
    int64_t code;
    if (e->v.type == BSON_TYPE_UTF8) {
        uint32_t n;
        const char *s = bval_str(e->v, &n);
        if (n == 6 && memcmp(s, "number", 6) == 0) {
            *bits |= BITS_NUMBER;
            return 0;
        }
        for (size_t i = 0; i < OV_LEN(aliases); i++) {
            if (strlen(aliases[i].name) == n && memcmp(s, aliases[i].name, n) == 0) {
                *bits |= type_bit(aliases[i].code);
                return 0;
            }
        }
        return err_set(ps->err, ERR_BAD_VALUE, "Unknown type name alias: %.*s", (int)OV_MIN(n, MATCH_SHOW_MAX), s);
    }
    if (!bval_is_number(e->v))
        return err_set(ps->err, ERR_TYPE_MISMATCH, "type must be represented as a number or a string");
    if (!bval_to_i64(e->v, true, &code) || !type_bit(code))
        return err_set(ps->err, ERR_BAD_VALUE, "Invalid numerical type code: %s", bval_shell(ps->a, e->v));
    *bits |= type_bit(code);
    return 0;
}

int match_parse_type(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                     struct match_list *out)
{
    uint32_t bits = 0;
    int rc = 0;
    if (e->v.type == BSON_TYPE_ARRAY) {
        struct biter it;
        struct belem t;
        biter_init(&it, bval_doc(e->v));
        while (rc == 0 && biter_next(&it, &t))
            rc = parse_one(ps, &t, &bits);
    } else {
        rc = parse_one(ps, e, &bits);
    }
    if (rc != 0)
        return rc;
    if (!bits)
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "%.*s must match at least one type", MATCH_SHOW_MAX,
                       path ? path : "");
    struct match *m = match_leaf(ps, MATCH_TYPE, path);
    if (m)
        m->n_values = bits;
    return match_push(ps, out, m);
}

bool match_test_type(const struct match *m, struct bval v, struct match_result *r)
{
    return (m->n_values & match_type_bit(v.type)) != 0;
}
