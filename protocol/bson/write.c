/* Writing BSON straight into a buffer. */
#include "protocol/bson/bson.h"

#include "server/base/assert.h"

size_t bw_begin(struct buf *b)
{
    size_t start = b->len;
    buf_le32(b, 0);
    return start;
}

void bw_end(struct buf *b, size_t start)
{
    buf_byte(b, 0);
    OV_ASSERT(b->len - start <= INT32_MAX);
    store_le32(b->p + start, (uint32_t)(b->len - start));
}

/* Type byte and name, with room for `more` bytes behind; where these go. */
static inline uint8_t *put_head(struct buf *b, uint8_t type, const char *name, size_t name_n, size_t more)
{
    uint8_t *p = buf_reserve(b, 2 + name_n + more);
    p[0] = type;
    memcpy(p + 1, name, name_n);
    p[1 + name_n] = 0;
    b->len += 2 + name_n + more;
    return p + 2 + name_n;
}

size_t bw_doc(struct buf *b, const char *name)
{
    put_head(b, BSON_TYPE_DOCUMENT, name, strlen(name), 0);
    return bw_begin(b);
}

size_t bw_arr(struct buf *b, const char *name)
{
    put_head(b, BSON_TYPE_ARRAY, name, strlen(name), 0);
    return bw_begin(b);
}

void bw_valn(struct buf *b, const char *name, size_t name_n, struct bval v)
{
    if (v.type == BSON_TYPE_EOD)
        return;
    uint8_t *p = put_head(b, v.type, name, name_n, v.n);
    if (v.n)
        memcpy(p, v.p, v.n);
}

void bw_val(struct buf *b, const char *name, struct bval v)
{
    bw_valn(b, name, strlen(name), v);
}

void bw_i32(struct buf *b, const char *name, int32_t v)
{
    store_le32(put_head(b, BSON_TYPE_INT32, name, strlen(name), 4), (uint32_t)v);
}

void bw_i64(struct buf *b, const char *name, int64_t v)
{
    store_le64(put_head(b, BSON_TYPE_INT64, name, strlen(name), 8), (uint64_t)v);
}

void bw_f64(struct buf *b, const char *name, double v)
{
    memcpy(put_head(b, BSON_TYPE_DOUBLE, name, strlen(name), 8), &v, 8);
}

void bw_bool(struct buf *b, const char *name, bool v)
{
    *put_head(b, BSON_TYPE_BOOL, name, strlen(name), 1) = v;
}

void bw_null(struct buf *b, const char *name)
{
    put_head(b, BSON_TYPE_NULL, name, strlen(name), 0);
}

void bw_date(struct buf *b, const char *name, int64_t ms)
{
    store_le64(put_head(b, BSON_TYPE_DATE_TIME, name, strlen(name), 8), (uint64_t)ms);
}

void bw_ts(struct buf *b, const char *name, uint64_t ts)
{
    store_le64(put_head(b, BSON_TYPE_TIMESTAMP, name, strlen(name), 8), ts);
}

void bw_oid(struct buf *b, const char *name, const uint8_t oid[12])
{
    memcpy(put_head(b, BSON_TYPE_OID, name, strlen(name), 12), oid, 12);
}

void bw_bin(struct buf *b, const char *name, uint8_t subtype, const void *p, size_t n)
{
    uint8_t *at = put_head(b, BSON_TYPE_BINARY, name, strlen(name), 5 + n);
    store_le32(at, (uint32_t)n);
    at[4] = subtype;
    if (n)
        memcpy(at + 5, p, n);
}

void bw_strn(struct buf *b, const char *name, const char *s, size_t n)
{
    uint8_t *at = put_head(b, BSON_TYPE_UTF8, name, strlen(name), 5 + n);
    store_le32(at, (uint32_t)n + 1);
    if (n)
        memcpy(at + 4, s, n);
    at[4 + n] = 0;
}

void bw_str(struct buf *b, const char *name, const char *s)
{
    bw_strn(b, name, s, strlen(s));
}

void bw_rawdoc(struct buf *b, const char *name, const uint8_t *doc)
{
    uint32_t n = bdoc_len(doc);
    memcpy(put_head(b, BSON_TYPE_DOCUMENT, name, strlen(name), n), doc, n);
}

const char *bw_index(uint32_t i, char scratch[12])
{
    char *p = scratch + 11;
    *p = 0;
    do
        *--p = (char)('0' + i % 10);
    while ((i /= 10) != 0);
    return p;
}

struct bval bval_from_i32(int32_t v, uint8_t scratch[8])
{
    store_le32(scratch, (uint32_t)v);
    return (struct bval){BSON_TYPE_INT32, 4, scratch};
}

struct bval bval_from_i64(int64_t v, uint8_t scratch[8])
{
    store_le64(scratch, (uint64_t)v);
    return (struct bval){BSON_TYPE_INT64, 8, scratch};
}

struct bval bval_from_f64(double v, uint8_t scratch[8])
{
    memcpy(scratch, &v, 8);
    return (struct bval){BSON_TYPE_DOUBLE, 8, scratch};
}

struct bval bval_from_doc(const uint8_t *doc)
{
    return (struct bval){BSON_TYPE_DOCUMENT, bdoc_len(doc), doc};
}
