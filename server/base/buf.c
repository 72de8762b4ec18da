/* The slow paths of the byte buffer: growing, and formatted text. */
#include "server/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"

#define FIRST_CAP 256

void buf_init(struct buf *b)
{
    *b = (struct buf){0};
}

void buf_free(struct buf *b)
{
    free(b->p);
    *b = (struct buf){0};
}

void buf_grow(struct buf *b, size_t more)
{
    OV_ASSERT(more <= SIZE_MAX / 4 && b->len <= SIZE_MAX / 4);
    size_t cap = OV_MAX(b->cap * 2, (size_t)FIRST_CAP);
    while (cap < b->len + more)
        cap *= 2;
    b->p = ov_realloc(b->p, cap);
    b->cap = cap;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t room = b->cap - b->len;
    int n = vsnprintf(room ? (char *)b->p + b->len : NULL, room, fmt, ap);
    OV_ASSERT(n >= 0);
    if ((size_t)n >= room) { /* vsnprintf wants a place for its NUL, which is not kept */
        buf_reserve(b, (size_t)n + 1);
        vsnprintf((char *)b->p + b->len, (size_t)n + 1, fmt, again);
    }
    b->len += (size_t)n;
    va_end(again);
    va_end(ap);
}
