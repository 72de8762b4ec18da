/* The total order of values, and the hash that goes with its equality. Recursion is as deep as documents nest, which bson_check bounds. */
#include "protocol/bson/bson.h"
#include "protocol/bson/number_private.h"

#include <xxhash.h>

/* Ranks as the real server numbers them; keyenc.c makes its class bytes of them. */
static const uint8_t class_of[256] = {
    [BSON_TYPE_MINKEY] = 1,      [BSON_TYPE_EOD] = 5,     [BSON_TYPE_UNDEFINED] = 5,  [BSON_TYPE_NULL] = 10,
    [BSON_TYPE_DOUBLE] = 15,     [BSON_TYPE_INT32] = 15,  [BSON_TYPE_INT64] = 15,     [BSON_TYPE_DECIMAL128] = 15,
    [BSON_TYPE_UTF8] = 20,       [BSON_TYPE_SYMBOL] = 20, [BSON_TYPE_DOCUMENT] = 25,  [BSON_TYPE_ARRAY] = 30,
    [BSON_TYPE_BINARY] = 35,     [BSON_TYPE_OID] = 40,    [BSON_TYPE_BOOL] = 45,      [BSON_TYPE_DATE_TIME] = 50,
    [BSON_TYPE_TIMESTAMP] = 55,  [BSON_TYPE_REGEX] = 60,  [BSON_TYPE_DBPOINTER] = 65, [BSON_TYPE_CODE] = 70,
    [BSON_TYPE_CODEWSCOPE] = 75, [BSON_TYPE_MAXKEY] = 80,
};

int bval_class(uint8_t type)
{
    return class_of[type];
}

static int cmp_bytes(const void *a, size_t na, const void *b, size_t nb)
{
    return slice_cmp(slice_of(a, na), slice_of(b, nb));
}

static int cmp_binary(struct bval a, struct bval b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return memcmp(a.p + 4, b.p + 4, a.n - 4); /* subtype, then the bytes */
}

static int cmp_regex(struct bval a, struct bval b)
{
    int c = strcmp((const char *)a.p, (const char *)b.p);
    return c ? c
             : strcmp((const char *)a.p + strlen((const char *)a.p) + 1,
                      (const char *)b.p + strlen((const char *)b.p) + 1);
}

static int cmp_docs(const uint8_t *a, const uint8_t *b, bool names)
{
    struct biter ia, ib;
    struct belem ea, eb;
    biter_init(&ia, a);
    biter_init(&ib, b);
    for (;;) {
        bool more_a = biter_next(&ia, &ea), more_b = biter_next(&ib, &eb);
        if (!more_a || !more_b)
            return more_a - more_b;
        int c = class_of[ea.v.type] - class_of[eb.v.type];
        if (c == 0 && names)
            c = cmp_bytes(ea.name, ea.name_n, eb.name, eb.name_n);
        if (c == 0)
            c = bval_cmp(ea.v, eb.v);
        if (c != 0)
            return c;
    }
}

int bdoc_cmp(const uint8_t *a, const uint8_t *b)
{
    return cmp_docs(a, b, true);
}

/* Length, string with its length, document. */
static int cmp_code_with_scope(struct bval a, struct bval b)
{
    uint32_t na = load_le32(a.p + 4), nb = load_le32(b.p + 4);
    int c = cmp_bytes(a.p + 8, na - 1, b.p + 8, nb - 1);
    return c ? c : bdoc_cmp(a.p + 8 + na, b.p + 8 + nb);
}

int bval_cmp(struct bval a, struct bval b)
{
    int c = class_of[a.type] - class_of[b.type];
    if (c != 0)
        return c;
    switch (a.type) {
    case BSON_TYPE_INT32:
        if (b.type == BSON_TYPE_INT32)
            return (bval_i32(a) > bval_i32(b)) - (bval_i32(a) < bval_i32(b));
        return number_cmp(a, b);
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DECIMAL128:
        return number_cmp(a, b);
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
    case BSON_TYPE_CODE:
        return cmp_bytes(a.p + 4, a.n - 5, b.p + 4, b.n - 5);
    case BSON_TYPE_DOCUMENT:
        return cmp_docs(a.p, b.p, true);
    case BSON_TYPE_ARRAY:
        return cmp_docs(a.p, b.p, false);
    case BSON_TYPE_BINARY:
        return cmp_binary(a, b);
    case BSON_TYPE_OID:
        return memcmp(a.p, b.p, 12);
    case BSON_TYPE_BOOL:
        return a.p[0] - b.p[0];
    case BSON_TYPE_DATE_TIME:
        return (bval_i64(a) > bval_i64(b)) - (bval_i64(a) < bval_i64(b));
    case BSON_TYPE_TIMESTAMP:
        return (load_le64(a.p) > load_le64(b.p)) - (load_le64(a.p) < load_le64(b.p));
    case BSON_TYPE_REGEX:
        return cmp_regex(a, b);
    case BSON_TYPE_DBPOINTER:
        return a.n != b.n ? (a.n < b.n ? -1 : 1) : memcmp(a.p, b.p, a.n);
    case BSON_TYPE_CODEWSCOPE:
        return cmp_code_with_scope(a, b);
    default: /* null, undefined, missing, the ends: one value each */
        return 0;
    }
}

static uint64_t hash_doc(const uint8_t *doc, bool names, uint64_t seed)
{
    struct biter it;
    struct belem e;
    uint64_t h = seed ^ 0x9e3779b97f4a7c15u;
    biter_init(&it, doc);
    while (biter_next(&it, &e)) {
        if (names)
            h = XXH3_64bits_withSeed(e.name, e.name_n, h);
        h = bval_hash(e.v, h);
    }
    return h;
}

uint64_t bval_hash(struct bval v, uint64_t seed)
{
    seed += class_of[v.type] * 0xff51afd7ed558ccdu; /* 1 and "1" and true are three */
    switch (v.type) {
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DECIMAL128: {
        uint8_t key[NUMBER_KEY_MAX];
        return XXH3_64bits_withSeed(key, number_key(key, v), seed);
    }
    case BSON_TYPE_DOCUMENT:
        return hash_doc(v.p, true, seed);
    case BSON_TYPE_ARRAY:
        return hash_doc(v.p, false, seed);
    case BSON_TYPE_CODEWSCOPE: {
        uint32_t n = load_le32(v.p + 4);
        return hash_doc(v.p + 8 + n, true, XXH3_64bits_withSeed(v.p + 8, n, seed));
    }
    default:
        return XXH3_64bits_withSeed(v.p, v.n, seed);
    }
}
