/* A growable byte buffer: replies, records, keys. Thread: one at a time. */
#ifndef OV_BUF_H
#define OV_BUF_H

#include "server/base/base.h"

struct buf {
    uint8_t *p; /* heap; NULL while cap is 0 */
    size_t len; /* bytes in use */
    size_t cap; /* bytes allocated */
};

void buf_init(struct buf *b);                                         /* empty, nothing allocated */
void buf_free(struct buf *b);                                         /* frees and empties; accepts an empty buffer */
void buf_grow(struct buf *b, size_t more);                            /* slow path of buf_reserve; doubles */
void buf_printf(struct buf *b, const char *fmt, ...) OV_PRINTF(2, 3); /* appends text, no NUL */

/* Room for `more` bytes behind len; the pointer to them. Aborts when memory is gone. */
static inline uint8_t *buf_reserve(struct buf *b, size_t more)
{
    if (OV_UNLIKELY(b->cap - b->len < more))
        buf_grow(b, more);
    return b->p + b->len;
}

static inline void buf_append(struct buf *b, const void *p, size_t n)
{
    if (n) {
        memcpy(buf_reserve(b, n), p, n);
        b->len += n;
    }
}

static inline void buf_byte(struct buf *b, uint8_t v)
{
    *buf_reserve(b, 1) = v;
    b->len++;
}
static inline void buf_le32(struct buf *b, uint32_t v)
{
    store_le32(buf_reserve(b, 4), v);
    b->len += 4;
}
static inline void buf_le64(struct buf *b, uint64_t v)
{
    store_le64(buf_reserve(b, 8), v);
    b->len += 8;
}
static inline void buf_be64(struct buf *b, uint64_t v)
{
    store_be64(buf_reserve(b, 8), v);
    b->len += 8;
}
static inline struct slice buf_slice(const struct buf *b)
{
    return (struct slice){b->p, b->len};
}

#endif
