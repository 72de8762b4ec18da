/* A bump allocator freed in one step: one for a command, a second for a cursor. Chunks are 64 KiB; larger requests get a
 * chunk of their own. Thread: one at a time. */
#ifndef OV_ARENA_H
#define OV_ARENA_H

#include "server/base/base.h"

struct arena;

/* A new arena that hands out at most `limit` bytes in all (0 = no limit). Aborts when memory is gone. */
struct arena *arena_new(size_t limit);
void arena_free(struct arena *a);  /* runs the callbacks of arena_on_reset, frees everything; accepts NULL */
void arena_reset(struct arena *a); /* as arena_free, but keeps the first chunk and the arena for the next use */

/* 16-byte aligned, not cleared; NULL only past the arena's limit. `bytes` of 0 gives a valid pointer. */
void *arena_alloc(struct arena *a, size_t bytes);
void *arena_zalloc(struct arena *a, size_t bytes);             /* the same, zeroed */
void *arena_dup(struct arena *a, const void *p, size_t n);     /* a copy of n bytes */
char *arena_strndup(struct arena *a, const char *s, size_t n); /* a copy with a NUL behind it */
char *arena_printf(struct arena *a, const char *fmt, ...) OV_PRINTF(2, 3);
struct slice arena_slice(struct arena *a, struct slice s); /* a copy; p is NULL past the limit */

/* Runs fn(arg) when the arena is reset or freed; last in, first out. */
void arena_on_reset(struct arena *a, void (*fn)(void *), void *arg);

size_t arena_used(const struct arena *a); /* bytes handed out since the last reset */

/* Plain allocation that aborts when memory is gone (replay is tested: stopping is safe). */
void *ov_malloc(size_t n);
void *ov_calloc(size_t n, size_t size);
void *ov_realloc(void *p, size_t n);
char *ov_strdup(const char *s);

#endif
