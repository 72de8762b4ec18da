/* For server/base alone: memory that an arena's limit does not refuse. */
#ifndef OV_ARENA_PRIVATE_H
#define OV_ARENA_PRIVATE_H

#include <stdarg.h>

#include "server/base/arena.h"

/* As arena_alloc, but never NULL: the error that says "the limit is reached" must still find room for its text. */
void *arena_alloc_past_limit(struct arena *a, size_t bytes);

/* Formats into memory of arena_alloc_past_limit; never NULL. */
char *arena_vprintf_past_limit(struct arena *a, const char *fmt, va_list ap);

#endif
