/* What of walking a document is no inline function: sizes, lookup by name, names of types. */
#include "protocol/bson/bson.h"

const struct bval BVAL_NULL = {BSON_TYPE_NULL, 0, (const uint8_t *)""};
const struct bval BVAL_MISSING = {BSON_TYPE_EOD, 0, (const uint8_t *)""};

/* Types that do not exist have size 0: bson_check lets none through. */
const uint8_t bson_fixed_size[256] = {
    [BSON_TYPE_DOUBLE] = 8,
    [BSON_TYPE_UTF8] = BSON_SIZE_STR,
    [BSON_TYPE_DOCUMENT] = BSON_SIZE_DOC,
    [BSON_TYPE_ARRAY] = BSON_SIZE_DOC,
    [BSON_TYPE_BINARY] = BSON_SIZE_RARE,
    [BSON_TYPE_OID] = 12,
    [BSON_TYPE_BOOL] = 1,
    [BSON_TYPE_DATE_TIME] = 8,
    [BSON_TYPE_REGEX] = BSON_SIZE_RARE,
    [BSON_TYPE_DBPOINTER] = BSON_SIZE_RARE,
    [BSON_TYPE_CODE] = BSON_SIZE_STR,
    [BSON_TYPE_SYMBOL] = BSON_SIZE_STR,
    [BSON_TYPE_CODEWSCOPE] = BSON_SIZE_DOC,
    [BSON_TYPE_INT32] = 4,
    [BSON_TYPE_TIMESTAMP] = 8,
    [BSON_TYPE_INT64] = 8,
    [BSON_TYPE_DECIMAL128] = 16,
};

uint32_t bson_rare_size(uint8_t type, const uint8_t *p)
{
    switch (type) {
    case BSON_TYPE_BINARY:
        return 5 + load_le32(p);
    case BSON_TYPE_DBPOINTER:
        return 4 + load_le32(p) + 12;
    default: { /* regex */
        size_t n = strlen((const char *)p) + 1;
        return (uint32_t)(n + strlen((const char *)p + n) + 1);
    }
    }
}

/* The name as a word, so that a field's name is measured and compared in one load; names of 8 bytes and more by memcmp. */
struct bval bdoc_getn(const uint8_t *doc, const char *name, size_t name_n)
{
    const uint8_t *p = doc + 4, *end = doc + load_le32(doc) - 1;
    uint64_t want = 0;
    if (name_n < 8)
        memcpy(&want, name, name_n);
    int unused = name_n < 8 ? 8 * (7 - (int)name_n) : 0;
    while (p < end) {
        uint8_t type = p[0];
        uint32_t n;
        bool same;
        if (OV_LIKELY(end - p > 8)) {
            uint64_t w = load_le64(p + 1), zero = (w - 0x0101010101010101u) & ~w & 0x8080808080808080u;
            n = OV_LIKELY(zero) ? (uint32_t)__builtin_ctzll(zero) >> 3 : 8 + (uint32_t)strlen((const char *)p + 9);
            same = name_n < 8 ? (w ^ want) << unused == 0 : n == name_n && memcmp(p + 1, name, n) == 0;
        } else {
            n = (uint32_t)strlen((const char *)p + 1);
            same = n == name_n && memcmp(p + 1, name, n) == 0;
        }
        const uint8_t *v = p + 2 + n;
        uint32_t size = bson_value_size(type, v);
        if (same)
            return (struct bval){type, size, v};
        p = v + size;
    }
    return BVAL_MISSING;
}

const char *bval_type_name(uint8_t type)
{
    switch (type) {
    case BSON_TYPE_EOD:
        return "missing";
    case BSON_TYPE_DOUBLE:
        return "double";
    case BSON_TYPE_UTF8:
        return "string";
    case BSON_TYPE_DOCUMENT:
        return "object";
    case BSON_TYPE_ARRAY:
        return "array";
    case BSON_TYPE_BINARY:
        return "binData";
    case BSON_TYPE_UNDEFINED:
        return "undefined";
    case BSON_TYPE_OID:
        return "objectId";
    case BSON_TYPE_BOOL:
        return "bool";
    case BSON_TYPE_DATE_TIME:
        return "date";
    case BSON_TYPE_NULL:
        return "null";
    case BSON_TYPE_REGEX:
        return "regex";
    case BSON_TYPE_DBPOINTER:
        return "dbPointer";
    case BSON_TYPE_CODE:
        return "javascript";
    case BSON_TYPE_SYMBOL:
        return "symbol";
    case BSON_TYPE_CODEWSCOPE:
        return "javascriptWithScope";
    case BSON_TYPE_INT32:
        return "int";
    case BSON_TYPE_TIMESTAMP:
        return "timestamp";
    case BSON_TYPE_INT64:
        return "long";
    case BSON_TYPE_DECIMAL128:
        return "decimal";
    case BSON_TYPE_MAXKEY:
        return "maxKey";
    case BSON_TYPE_MINKEY:
        return "minKey";
    default:
        return "invalid";
    }
}
