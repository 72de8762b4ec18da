/* Encodings of bval_keyenc (format: keyenc.c) back into values, for those who show bounds of an index. What an encoding does not tell apart
 * comes back as the plainest type: a number as int, long, double or decimal, the first that holds it; a symbol as a string; missing as null.
 * Bounds are often no whole encodings, so bytes behind the end may be taken to be there: see bval_keydec. */
#include "protocol/bson/decimal_private.h"
#include "protocol/bson/number_private.h"

#include <math.h>

enum { DEPTH_MAX = 200, BEHIND_MAX = 64 };

struct reader {
    struct slice key;
    size_t at;
    int pad;         /* of the bytes behind the end; -1: there are none */
    uint8_t inverts; /* 0xff in a number below 0 */
    bool failed;
};

static uint8_t next(struct reader *r)
{
    uint8_t b = 0;
    if (r->at < r->key.n)
        b = r->key.p[r->at];
    else if (r->pad < 0 || r->at - r->key.n >= BEHIND_MAX)
        r->failed = true;
    else
        b = (uint8_t)r->pad;
    r->at++;
    return b ^ r->inverts;
}

static uint64_t next_be(struct reader *r, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | next(r);
    return v;
}

/* ---- numbers ---- */

static void put_integer(struct buf *out, const char *name, int64_t v)
{
    if (v >= INT32_MIN && v <= INT32_MAX)
        bw_i32(out, name, (int32_t)v);
    else
        bw_i64(out, name, v);
}

static void put_decimal(struct buf *out, const char *name, bool negative, unsigned __int128 coefficient, int exponent)
{
    uint8_t bytes[16];
    for (; exponent < 0 && coefficient % 10 == 0; exponent++)
        coefficient /= 10;
    BID_UINT128 d;
    d.w[0] = (uint64_t)coefficient;
    d.w[1] = (uint64_t)negative << 63 | (uint64_t)(exponent + 6176) << 49 | (uint64_t)(coefficient >> 64);
    dec_store(bytes, d);
    bw_val(out, name, (struct bval){BSON_TYPE_DECIMAL128, sizeof(bytes), bytes});
}

/* A number that no double equals. */
static bool put_exact(struct reader *r, struct buf *out, const char *name, bool negative)
{
    const unsigned __int128 ten_33 = (unsigned __int128)1000000000000000u * 1000000000000000000u;
    int exponent = (int)next_be(r, 2) - 0x2000 - 33;
    unsigned __int128 c = (unsigned __int128)next_be(r, 7) << 64;
    c |= next_be(r, 8);
    if (r->failed || c < ten_33 || c / 10 >= ten_33 || exponent > 6111 || exponent + 33 < -6176)
        return false;
    unsigned __int128 whole = c;
    int e = exponent;
    for (; whole % 10 == 0; e++)
        whole /= 10;
    if (e < -6176)
        return false;
    for (; e > 0 && whole <= INT64_MAX; e--)
        whole *= 10;
    if (e == 0 && whole <= (uint64_t)INT64_MAX + negative)
        put_integer(out, name, negative ? (int64_t) - (uint64_t)whole : (int64_t)whole);
    else
        put_decimal(out, name, negative, c, exponent);
    return true;
}

static bool put_number(struct reader *r, struct buf *out, const char *name, bool negative)
{
    r->inverts = negative ? 0xff : 0;
    uint64_t m = next_be(r, 8), bits = m >> 1 | (uint64_t)negative << 63;
    bool ok = !r->failed;
    double d;
    memcpy(&d, &bits, sizeof(d));
    if (ok && m & 1)
        ok = put_exact(r, out, name, negative);
    else if (ok && (isnan(d) || d == 0))
        ok = false;
    else if (ok && d == trunc(d) && (fabs(d) < 9223372036854775808.0 || d == -9223372036854775808.0))
        put_integer(out, name, (int64_t)d);
    else if (ok)
        bw_f64(out, name, d);
    r->inverts = 0;
    return ok;
}

/* ---- text and bytes ---- */

/* Appends the text. False: there is no end, or a byte that no encoding has. */
static bool read_text(struct reader *r, struct buf *out)
{
    for (;;) {
        uint8_t b = next(r);
        if (r->failed)
            return false;
        if (b == 0)
            return true;
        if (b == 1) {
            b = (uint8_t)(next(r) - 1);
            if (r->failed || b > 1)
                return false;
        }
        buf_byte(out, b);
    }
}

static bool put_text(struct reader *r, struct buf *out, uint8_t type, const char *name)
{
    struct buf value;
    buf_init(&value);
    buf_le32(&value, 0);
    bool ok = read_text(r, &value);
    if (ok) {
        buf_byte(&value, 0);
        store_le32(value.p, (uint32_t)value.len - 4);
        bw_val(out, name, (struct bval){type, (uint32_t)value.len, value.p});
    }
    buf_free(&value);
    return ok;
}

static bool put_regex(struct reader *r, struct buf *out, const char *name)
{
    struct buf value;
    buf_init(&value);
    bool ok = read_text(r, &value);
    buf_byte(&value, 0);
    size_t pattern = value.len;
    ok = ok && read_text(r, &value);
    buf_byte(&value, 0);
    if (ok && strlen((const char *)value.p) + 1 == pattern &&
        strlen((const char *)value.p + pattern) + 1 == value.len - pattern)
        bw_val(out, name, (struct bval){BSON_TYPE_REGEX, (uint32_t)value.len, value.p});
    else
        ok = false;
    buf_free(&value);
    return ok;
}

/* Appends `n` bytes as they are. */
static bool read_bytes(struct reader *r, struct buf *out, uint32_t n)
{
    if (r->failed || n > r->key.n + BEHIND_MAX) /* before memory is taken */
        return false;
    for (; n && !r->failed; n--)
        buf_byte(out, next(r));
    return !r->failed;
}

static bool put_binary(struct reader *r, struct buf *out, const char *name)
{
    struct buf value;
    uint32_t n = (uint32_t)next_be(r, 4);
    uint8_t subtype = next(r);
    buf_init(&value);
    bool ok = read_bytes(r, &value, n);
    if (ok)
        bw_bin(out, name, subtype, value.p, value.len);
    buf_free(&value);
    return ok;
}

static bool put_pointer(struct reader *r, struct buf *out, const char *name)
{
    struct buf value;
    uint32_t n = (uint32_t)next_be(r, 4);
    buf_init(&value);
    bool ok = read_bytes(r, &value, n) && n >= 4 + 1 + 12 && load_le32(value.p) == n - 16 && value.p[n - 13] == 0;
    if (ok)
        bw_val(out, name, (struct bval){BSON_TYPE_DBPOINTER, n, value.p});
    buf_free(&value);
    return ok;
}

/* ---- the whole ---- */

static bool put_value(struct reader *r, struct buf *out, const char *name, int depth);

static bool put_fields(struct reader *r, struct buf *out, bool names, int depth)
{
    struct buf name;
    char scratch[12];
    uint32_t n = 0;
    bool ok = true;
    buf_init(&name);
    for (uint8_t class; ok && (class = next(r)) != 0 && !r->failed;) {
        name.len = 0;
        if (names)
            ok = read_text(r, &name);
        else
            r->at--;
        buf_byte(&name, 0);
        ok = ok && (!names || strlen((const char *)name.p) + 1 == name.len) &&
             put_value(r, out, names ? (const char *)name.p : bw_index(n++, scratch), depth);
    }
    buf_free(&name);
    return ok && !r->failed;
}

static bool put_doc(struct reader *r, struct buf *out, bool array, const char *name, int depth)
{
    size_t at = array ? bw_arr(out, name) : bw_doc(out, name);
    bool ok = depth < DEPTH_MAX && put_fields(r, out, !array, depth + 1);
    bw_end(out, at);
    return ok;
}

static bool put_code(struct reader *r, struct buf *out, const char *name, int depth)
{
    struct buf value;
    buf_init(&value);
    buf_le64(&value, 0); /* the lengths of the whole and of the text */
    bool ok = read_text(r, &value);
    buf_byte(&value, 0);
    uint32_t text = (uint32_t)value.len - 8;
    size_t scope = bw_begin(&value);
    ok = ok && depth < DEPTH_MAX && put_fields(r, &value, true, depth + 1);
    bw_end(&value, scope);
    store_le32(value.p, (uint32_t)value.len);
    store_le32(value.p + 4, text);
    if (ok)
        bw_val(out, name, (struct bval){BSON_TYPE_CODEWSCOPE, (uint32_t)value.len, value.p});
    buf_free(&value);
    return ok;
}

static bool put_fixed(struct reader *r, struct buf *out, const char *name, uint8_t type, int n)
{
    uint8_t bytes[12];
    for (int i = 0; i < n; i++)
        bytes[i] = next(r);
    if (type == BSON_TYPE_DATE_TIME || type == BSON_TYPE_TIMESTAMP)
        store_le64(bytes, load_be64(bytes) ^ (uint64_t)(type == BSON_TYPE_DATE_TIME) << 63);
    if (r->failed || (type == BSON_TYPE_BOOL && bytes[0] > 1))
        return false;
    bw_val(out, name, (struct bval){type, (uint32_t)n, bytes});
    return true;
}

static bool put_value(struct reader *r, struct buf *out, const char *name, int depth)
{
    uint8_t class = next(r), low, high;
    static const uint8_t types[] = {
        BSON_TYPE_MINKEY,     BSON_TYPE_UNDEFINED, BSON_TYPE_NULL,   BSON_TYPE_DOUBLE,    BSON_TYPE_UTF8,
        BSON_TYPE_DOCUMENT,   BSON_TYPE_ARRAY,     BSON_TYPE_BINARY, BSON_TYPE_OID,       BSON_TYPE_BOOL,
        BSON_TYPE_DATE_TIME,  BSON_TYPE_TIMESTAMP, BSON_TYPE_REGEX,  BSON_TYPE_DBPOINTER, BSON_TYPE_CODE,
        BSON_TYPE_CODEWSCOPE, BSON_TYPE_MAXKEY,
    };
    uint8_t type = BSON_TYPE_EOD;
    for (size_t i = 0; i < OV_LEN(types); i++) {
        bval_keyenc_class(types[i], &low, &high);
        if (class >= low && class <= high) {
            type = types[i];
            class = (uint8_t)(class - low);
            break;
        }
    }
    if (r->failed)
        return false;
    switch (type) {
    case BSON_TYPE_DOUBLE: /* NaN, below 0, 0, above 0 */
        if (class == 1 || class == 3)
            return put_number(r, out, name, class == 1);
        if (class == 0)
            bw_f64(out, name, NAN);
        else
            bw_i32(out, name, 0);
        return true;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_CODE:
        return put_text(r, out, type, name);
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        return put_doc(r, out, type == BSON_TYPE_ARRAY, name, depth);
    case BSON_TYPE_BINARY:
        return put_binary(r, out, name);
    case BSON_TYPE_OID:
        return put_fixed(r, out, name, type, 12);
    case BSON_TYPE_BOOL:
        return put_fixed(r, out, name, type, 1);
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_TIMESTAMP:
        return put_fixed(r, out, name, type, 8);
    case BSON_TYPE_REGEX:
        return put_regex(r, out, name);
    case BSON_TYPE_DBPOINTER:
        return put_pointer(r, out, name);
    case BSON_TYPE_CODEWSCOPE:
        return put_code(r, out, name, depth);
    case BSON_TYPE_EOD:
        return false;
    default:
        bw_val(out, name, (struct bval){type, 0, r->key.p});
        return true;
    }
}

size_t bval_keydec(struct buf *out, const char *name, struct slice key, int pad)
{
    struct reader r = {.key = key, .pad = pad};
    size_t before = out->len;
    if (key.n && put_value(&r, out, name, 0))
        return r.at;
    out->len = before;
    return 0;
}
