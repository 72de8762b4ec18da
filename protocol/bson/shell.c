/* Values as text, in the form that the server's error messages have: clients parse some of these (E11000), so long strings are shortened just
 * as there, decimals stand bare, and a double without a fraction gets ".0" whatever it looks like ("1e+20.0", "inf.0"). */
#include "protocol/bson/bson.h"

#include <stdio.h>

struct shell {
    struct buf *b;
    size_t limit; /* length of b at which writing stops */
};

static bool full(const struct shell *s)
{
    return s->b->len >= s->limit;
}

static void text(struct shell *s, const char *t)
{
    buf_append(s->b, t, strlen(t));
}

/* The first `cut` bytes, or fewer to end between two characters, when there are `longest` or more. */
static bool shorten(const char *t, uint32_t *n, uint32_t longest, uint32_t cut)
{
    if (*n < longest)
        return false;
    while (cut > 0 && ((uint8_t)t[cut] & 0xc0) == 0x80)
        cut--;
    *n = cut;
    return true;
}

static void put_f64(struct shell *s, double d)
{
    char t[40];
    snprintf(t, sizeof(t), "%.16g", d);
    text(s, t);
    if (!strchr(t, '.'))
        text(s, ".0");
}

static void put_decimal(struct shell *s, const uint8_t *p)
{
    char t[BSON_DECIMAL128_STRING];
    bson_decimal128_t d = {.low = load_le64(p), .high = load_le64(p + 8)};
    bson_decimal128_to_string(&d, t);
    text(s, t);
}

static void put_hex(struct shell *s, const uint8_t *p, size_t n, bool upper)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    uint8_t *at = buf_reserve(s->b, 2 * n);
    for (size_t i = 0; i < n; i++) {
        *at++ = (uint8_t)digits[p[i] >> 4];
        *at++ = (uint8_t)digits[p[i] & 15];
    }
    s->b->len += 2 * n;
}

static void put_oid(struct shell *s, const char *before, const uint8_t *oid)
{
    text(s, before);
    put_hex(s, oid, 12, false);
}

static void put_binary(struct shell *s, const uint8_t *p)
{
    uint32_t n = load_le32(p);
    uint8_t subtype = p[4];
    p += 5;
    if (subtype == BSON_SUBTYPE_UUID && n == 16) {
        static const uint8_t groups[] = {4, 2, 2, 2, 6};
        text(s, "UUID(\"");
        for (size_t i = 0; i < OV_LEN(groups); p += groups[i++]) {
            if (i)
                text(s, "-");
            put_hex(s, p, groups[i], false);
        }
        text(s, "\")");
        return;
    }
    if (subtype == BSON_SUBTYPE_BINARY_DEPRECATED && n >= 4) { /* skips the length inside */
        p += 4;
        n -= 4;
    }
    buf_printf(s->b, "BinData(%u, ", subtype);
    put_hex(s, p, n > 80 ? 70 : n, true);
    text(s, n > 80 ? "...)" : ")");
}

static void put_string(struct shell *s, struct bval v)
{
    uint32_t n;
    const char *t = bval_str(v, &n);
    bool cut = shorten(t, &n, 160, 150);
    buf_byte(s->b, '"');
    buf_append(s->b, t, n);
    text(s, cut ? "...\"" : "\"");
}

static void put_code(struct shell *s, struct bval v)
{
    uint32_t n;
    const char *t = bval_str(v, &n);
    bool cut = shorten(t, &n, 80, 70);
    buf_append(s->b, t, n);
    if (cut)
        text(s, "...");
}

static void put_value(struct shell *s, struct bval v);

static void put_doc(struct shell *s, const uint8_t *doc, bool array)
{
    struct biter it;
    struct belem e;
    if (bdoc_empty(doc)) {
        text(s, array ? "[]" : "{}");
        return;
    }
    text(s, array ? "[" : "{");
    biter_init(&it, doc);
    for (const char *before = " "; biter_next(&it, &e) && !full(s); before = ", ") {
        text(s, before);
        if (!array) {
            buf_append(s->b, e.name, e.name_n);
            text(s, ": ");
        }
        put_value(s, e.v);
    }
    text(s, array ? " ]" : " }");
}

static void put_regex(struct shell *s, const uint8_t *p)
{
    buf_byte(s->b, '/');
    text(s, (const char *)p);
    buf_byte(s->b, '/');
    text(s, (const char *)p + strlen((const char *)p) + 1);
}

static void put_code_with_scope(struct shell *s, const uint8_t *p)
{
    uint32_t n = load_le32(p + 4);
    text(s, "CodeWScope( ");
    buf_append(s->b, p + 8, n - 1);
    text(s, ", ");
    put_doc(s, p + 8 + n, false);
    text(s, ")");
}

static void put_value(struct shell *s, struct bval v)
{
    switch (v.type) {
    case BSON_TYPE_EOD:
        text(s, "EOO");
        return;
    case BSON_TYPE_DOUBLE:
        put_f64(s, bval_f64(v));
        return;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
        put_string(s, v);
        return;
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        put_doc(s, v.p, v.type == BSON_TYPE_ARRAY);
        return;
    case BSON_TYPE_BINARY:
        put_binary(s, v.p);
        return;
    case BSON_TYPE_UNDEFINED:
        text(s, "undefined");
        return;
    case BSON_TYPE_OID:
        put_oid(s, "ObjectId('", v.p);
        text(s, "')");
        return;
    case BSON_TYPE_BOOL:
        text(s, bval_bool(v) ? "true" : "false");
        return;
    case BSON_TYPE_DATE_TIME:
        buf_printf(s->b, "new Date(%lld)", (long long)bval_i64(v));
        return;
    case BSON_TYPE_NULL:
        text(s, "null");
        return;
    case BSON_TYPE_REGEX:
        put_regex(s, v.p);
        return;
    case BSON_TYPE_DBPOINTER:
        text(s, "DBRef('");
        text(s, (const char *)v.p + 4);
        put_oid(s, "',", v.p + v.n - 12);
        text(s, ")");
        return;
    case BSON_TYPE_CODE:
        put_code(s, v);
        return;
    case BSON_TYPE_CODEWSCOPE:
        put_code_with_scope(s, v.p);
        return;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        buf_printf(s->b, "%lld", (long long)bval_i64(v));
        return;
    case BSON_TYPE_TIMESTAMP:
        buf_printf(s->b, "Timestamp(%u, %u)", load_le32(v.p + 4), load_le32(v.p));
        return;
    case BSON_TYPE_DECIMAL128:
        put_decimal(s, v.p);
        return;
    case BSON_TYPE_MAXKEY:
        text(s, "MaxKey");
        return;
    case BSON_TYPE_MINKEY:
        text(s, "MinKey");
        return;
    default:
        buf_printf(s->b, "?type=%d", v.type);
        return;
    }
}

void bval_to_shell(struct buf *b, struct bval v, size_t max)
{
    size_t start = b->len;
    struct shell s = {b, max == 0 || max > SIZE_MAX - start ? SIZE_MAX : start + max};
    put_value(&s, v);
    if (b->len <= s.limit)
        return;
    b->len = s.limit;
    while (b->len > start && (b->p[b->len] & 0xc0) == 0x80)
        b->len--; /* never half a character */
    buf_append(b, "...", 3);
}

const char *bval_shell(struct arena *a, struct bval v)
{
    struct buf b;
    buf_init(&b);
    buf_reserve(&b, 64);
    bval_to_shell(&b, v, 0);
    const char *out = arena_strndup(a, (const char *)b.p, b.len);
    buf_free(&b);
    return out ? out : "...";
}
