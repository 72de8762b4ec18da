/* Values as byte strings whose memcmp order is the order of bval_cmp: index keys, sort keys, hashes of numbers.
 *
 * KEY ENCODING, version 1. One value is a class byte and a body; `descending` inverts all bytes of both.
 *   class byte                      body
 *   0x04 MinKey                     -
 *   0x08 undefined                  -
 *   0x0c null, missing              -
 *   0x10 NaN                        -
 *   0x11 number below 0             8 bytes inverted magnitude, then the inverted remainder if there is one
 *   0x12 0                          -
 *   0x13 number above 0             8 bytes magnitude, then the remainder if there is one
 *   0x18 string, symbol             text
 *   0x1c object                     an element each: the lowest class byte of the value's class, the name as text, the value; then 0x00
 *   0x20 array                      an element each: the value; then 0x00
 *   0x24 binary                     length (4, big-endian), subtype (1), bytes
 *   0x28 ObjectId                   12 bytes
 *   0x2c boolean                    0x00 or 0x01
 *   0x30 date                       8 bytes big-endian, sign bit inverted
 *   0x34 timestamp                  8 bytes big-endian
 *   0x38 regular expression         pattern as text, flags as text
 *   0x3c DBPointer                  length of the value in BSON (4, big-endian), the value as in BSON
 *   0x40 code                       text
 *   0x44 code with scope            code as text, the body of an object
 *   0x7f MaxKey                     -
 * text: bytes 0x00 and 0x01 become 0x01 0x01 and 0x01 0x02, others stand for themselves; then 0x00.
 * magnitude: the absolute value cut (toward zero) to a double, whose 63 bits without the sign sort as numbers; shifted left by one, and the low
 *   bit says that something was cut off. So an int, a long and a decimal that are whole doubles encode as that double, and what lies between two
 *   doubles (longs past 2^53, most decimals) sorts between them:
 * remainder: the whole absolute value again, in decimal, which is exact for longs and decimals (and doubles need none): exponent of its first
 *   digit + 0x2000 (2, big-endian), then its digits as an integer of 34 digits, padded with zeros behind (15, big-endian).
 * K1  Equal values (bval_eq) have equal encodings; missing has null's.
 * K2  sign(memcmp(a, b)) is the sign of bval_cmp(a, b), else; no encoding is the prefix of another.
 * K3  The encodings of a type class start with the bytes of one range (bval_keyenc_class); no two classes share a byte.
 * Index entries on disk have this form: a change needs a new version of the format. */
#include "protocol/bson/decimal_private.h"
#include "protocol/bson/number_private.h"

#include <math.h>

enum {
    K_MIN = 0x04,
    K_UNDEFINED = 0x08,
    K_NULL = 0x0c,
    K_NAN = 0x10,
    K_NEGATIVE = 0x11,
    K_ZERO = 0x12,
    K_POSITIVE = 0x13,
    K_STRING = 0x18,
    K_OBJECT = 0x1c,
    K_ARRAY = 0x20,
    K_BINARY = 0x24,
    K_OID = 0x28,
    K_BOOL = 0x2c,
    K_DATE = 0x30,
    K_TIMESTAMP = 0x34,
    K_REGEX = 0x38,
    K_DBPOINTER = 0x3c,
    K_CODE = 0x40,
    K_CODE_SCOPE = 0x44,
    K_MAX = 0x7f,
};

static const uint8_t key_class[256] = {
    [BSON_TYPE_MINKEY] = K_MIN,
    [BSON_TYPE_UNDEFINED] = K_UNDEFINED,
    [BSON_TYPE_EOD] = K_NULL,
    [BSON_TYPE_NULL] = K_NULL,
    [BSON_TYPE_DOUBLE] = K_NAN,
    [BSON_TYPE_INT32] = K_NAN,
    [BSON_TYPE_INT64] = K_NAN,
    [BSON_TYPE_DECIMAL128] = K_NAN,
    [BSON_TYPE_UTF8] = K_STRING,
    [BSON_TYPE_SYMBOL] = K_STRING,
    [BSON_TYPE_DOCUMENT] = K_OBJECT,
    [BSON_TYPE_ARRAY] = K_ARRAY,
    [BSON_TYPE_BINARY] = K_BINARY,
    [BSON_TYPE_OID] = K_OID,
    [BSON_TYPE_BOOL] = K_BOOL,
    [BSON_TYPE_DATE_TIME] = K_DATE,
    [BSON_TYPE_TIMESTAMP] = K_TIMESTAMP,
    [BSON_TYPE_REGEX] = K_REGEX,
    [BSON_TYPE_DBPOINTER] = K_DBPOINTER,
    [BSON_TYPE_CODE] = K_CODE,
    [BSON_TYPE_CODEWSCOPE] = K_CODE_SCOPE,
    [BSON_TYPE_MAXKEY] = K_MAX,
};

void bval_keyenc_class(uint8_t type, uint8_t *low, uint8_t *high)
{
    *low = key_class[type];
    *high = *low == K_NAN ? K_POSITIVE : *low;
}

/* ---- numbers ---- */

static uint64_t f64_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}

static size_t put_simple(uint8_t *out, double d) /* a double that is neither NaN nor 0 */
{
    uint64_t bits = f64_bits(d), m = bits << 1;
    out[0] = bits >> 63 ? K_NEGATIVE : K_POSITIVE;
    store_be64(out + 1, bits >> 63 ? ~m : m);
    return 9;
}

/* A number that no double equals: `cut` is its absolute value's lower neighbour, the number itself is coefficient * 10^exponent. */
static size_t put_rest(uint8_t *out, bool negative, double cut, unsigned __int128 coefficient, int exponent)
{
    const unsigned __int128 ten_33 = (unsigned __int128)1000000000000000u * 1000000000000000000u;
    out[0] = negative ? K_NEGATIVE : K_POSITIVE;
    store_be64(out + 1, f64_bits(cut) << 1 | 1);
    int first = exponent + 33;
    for (; coefficient < ten_33; first--)
        coefficient *= 10;
    first += 0x2000;
    out[9] = (uint8_t)(first >> 8);
    out[10] = (uint8_t)first;
    for (int i = 0; i < 15; i++)
        out[11 + i] = (uint8_t)(coefficient >> (8 * (14 - i)));
    if (negative)
        for (int i = 1; i < NUMBER_KEY_MAX; i++)
            out[i] = (uint8_t)~out[i];
    return NUMBER_KEY_MAX;
}

static size_t put_f64(uint8_t *out, double d)
{
    if (OV_UNLIKELY(d == 0 || isnan(d))) {
        out[0] = d == 0 ? K_ZERO : K_NAN;
        return 1;
    }
    return put_simple(out, d);
}

static size_t put_i64(uint8_t *out, int64_t v)
{
    uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
    if (OV_LIKELY(u <= 1ull << 53))
        return put_f64(out, (double)v);
    int extra = 64 - __builtin_clzll(u) - 53; /* bits that a double has no room for */
    uint64_t cut = extra > 0 ? u >> extra << extra : u;
    if (cut == u)
        return put_simple(out, v < 0 ? -(double)u : (double)u);
    return put_rest(out, v < 0, (double)cut, u, 0);
}

static size_t put_dec(uint8_t *out, BID_UINT128 d)
{
    if (dec_is_nan(d)) {
        out[0] = K_NAN;
        return 1;
    }
    struct dec_parts parts = dec_unpack(d);
    if (dec_is_inf(d))
        return put_simple(out, parts.negative ? -INFINITY : INFINITY);
    if (parts.coefficient == 0) {
        out[0] = K_ZERO;
        return 1;
    }
    unsigned flags = 0;
    double cut = __bid128_to_binary64(d, DEC_TOWARD_ZERO, &flags);
    if (!(flags & DEC_INEXACT))
        return put_simple(out, cut);
    return put_rest(out, parts.negative, fabs(cut), parts.coefficient, parts.exponent);
}

size_t number_key(uint8_t out[NUMBER_KEY_MAX], struct bval v)
{
    switch (v.type) {
    case BSON_TYPE_DOUBLE:
        return put_f64(out, bval_f64(v));
    case BSON_TYPE_DECIMAL128:
        return put_dec(out, dec_load(v.p));
    default:
        return put_i64(out, bval_i64(v));
    }
}

/* ---- everything else ---- */

static void put_text(struct buf *out, const uint8_t *s, size_t n)
{
    uint8_t *start = buf_reserve(out, 2 * n + 1), *p = start;
    const uint8_t *end = s + n;
    while (s < end) {
        if (end - s >= 8) { /* eight bytes without a 0 or 1 among them stand for themselves */
            uint64_t w = load_le64(s);
            if (OV_LIKELY(((w - 0x0202020202020202u) & ~w & 0x8080808080808080u) == 0)) {
                store_le64(p, w);
                p += 8;
                s += 8;
                continue;
            }
        }
        if (OV_UNLIKELY(*s <= 1))
            *p++ = 1;
        *p++ = (uint8_t)(*s + (*s <= 1));
        s++;
    }
    *p++ = 0;
    out->len += (size_t)(p - start);
}

static void put_be32(struct buf *out, uint32_t v)
{
    store_be32(buf_reserve(out, 4), v);
    out->len += 4;
}

static void put_value(struct buf *out, struct bval v);

static void put_doc(struct buf *out, const uint8_t *doc, bool names)
{
    struct biter it;
    struct belem e;
    biter_init(&it, doc);
    while (biter_next(&it, &e)) {
        if (names) {
            buf_byte(out, key_class[e.v.type]);
            put_text(out, (const uint8_t *)e.name, e.name_n);
        }
        put_value(out, e.v);
    }
    buf_byte(out, 0);
}

static void put_value(struct buf *out, struct bval v)
{
    uint8_t class = key_class[v.type];
    if (class == K_NAN) {
        out->len += number_key(buf_reserve(out, NUMBER_KEY_MAX), v);
        return;
    }
    buf_byte(out, class);
    switch (v.type) {
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
    case BSON_TYPE_CODE:
        put_text(out, v.p + 4, v.n - 5);
        return;
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        put_doc(out, v.p, v.type == BSON_TYPE_DOCUMENT);
        return;
    case BSON_TYPE_BINARY:
        put_be32(out, v.n - 5);
        buf_append(out, v.p + 4, v.n - 4);
        return;
    case BSON_TYPE_OID:
    case BSON_TYPE_BOOL:
        buf_append(out, v.p, v.n);
        return;
    case BSON_TYPE_DATE_TIME:
        buf_be64(out, load_le64(v.p) ^ 1ull << 63);
        return;
    case BSON_TYPE_TIMESTAMP:
        buf_be64(out, load_le64(v.p));
        return;
    case BSON_TYPE_REGEX: {
        size_t n = strlen((const char *)v.p);
        put_text(out, v.p, n);
        put_text(out, v.p + n + 1, v.n - n - 2);
        return;
    }
    case BSON_TYPE_DBPOINTER:
        put_be32(out, v.n);
        buf_append(out, v.p, v.n);
        return;
    case BSON_TYPE_CODEWSCOPE: {
        uint32_t n = load_le32(v.p + 4);
        put_text(out, v.p + 8, n - 1);
        put_doc(out, v.p + 8 + n, true);
        return;
    }
    default:
        return;
    }
}

void bval_keyenc(struct buf *out, struct bval v, bool descending)
{
    size_t start = out->len;
    put_value(out, v);
    if (descending)
        for (size_t i = start; i < out->len; i++)
            out->p[i] = (uint8_t)~out->p[i];
}
