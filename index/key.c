/* Keys: values as they stand in index entries. The encoding is the one of protocol/bson/keyenc.c; here are the decisions of an index. */
#include "index/index.h"

void key_encode(struct buf *out, struct bval v, bool descending)
{
    bval_keyenc(out, v, descending);
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
