/* Keys: values as they stand in index entries. The encoding is the one of protocol/bson/keyenc.c; here are the decisions of an index. */
#include "index/index.h"
#include "server/base/assert.h"

#define KEY_SMALL 240 /* bytes of a value that is encoded on the stack */

void key_encode(struct buf *out, struct bval v, bool descending)
{
    bval_keyenc(out, v, descending);
}

static bool is_small(struct bval v)
{
    const uint32_t scalar = 1u << BSON_TYPE_EOD | 1u << BSON_TYPE_DOUBLE | 1u << BSON_TYPE_UTF8 | 1u << BSON_TYPE_OID |
                            1u << BSON_TYPE_BOOL | 1u << BSON_TYPE_DATE_TIME | 1u << BSON_TYPE_NULL |
                            1u << BSON_TYPE_INT32 | 1u << BSON_TYPE_TIMESTAMP | 1u << BSON_TYPE_INT64 |
                            1u << BSON_TYPE_DECIMAL128;
    return v.n <= KEY_SMALL && v.type < 32 && (scalar >> v.type & 1);
}

struct slice key_encode_arena(struct arena *a, struct bval v, bool descending)
{
    uint8_t scratch[2 * KEY_SMALL + 64]; /* text at most doubles */
    struct buf b = {NULL, 0, 0};
    bool small = is_small(v);
    if (small)
        b = (struct buf){scratch, 0, sizeof(scratch)};
    bval_keyenc(&b, v, descending);
    OV_DASSERT(!small || b.p == scratch);
    struct slice key = arena_slice(a, buf_slice(&b));
    if (!small)
        buf_free(&b);
    return key;
}

void key_class_low(struct buf *out, uint8_t type, bool descending)
{
    uint8_t low, high;
    bval_keyenc_class(type, &low, &high);
    buf_byte(out, descending ? (uint8_t)~high : low);
}

/* The byte past the class: the classes' ranges are disjoint, and no value of another class starts with it. */
void key_class_high(struct buf *out, uint8_t type, bool descending)
{
    uint8_t low, high;
    bval_keyenc_class(type, &low, &high);
    buf_byte(out, descending ? (uint8_t)(~low + 1) : (uint8_t)(high + 1));
}
