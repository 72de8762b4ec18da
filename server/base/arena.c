/* The arena: a list of chunks, the newest first, and a bump pointer into the newest. The arena's own struct lies in its first
 * chunk, so a new arena is one malloc and a reset arena needs none. A request that would waste much of the rest of a chunk
 * gets a chunk of its own, linked behind the current one, which goes on being filled.
 *
 * Under AddressSanitizer all that is not handed out is poisoned, with a gap behind each allocation, so that overruns and uses
 * after a reset are found although malloc knows nothing of them. */
#include "server/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena_private.h"
#include "server/base/assert.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#endif

#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#define GAP 16 /* bytes behind each allocation that nobody may touch */
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define GAP                               0
#endif

#define CHUNK_BYTES     ((size_t)64 << 10)
#define OWN_CHUNK_BYTES (CHUNK_BYTES / 4) /* from here on a request gets its own chunk if the current one is too full */
#define ALIGN_UP(n)     (((n) + 15) & ~(size_t)15)

struct chunk {
    struct chunk *next; /* the chunk before this one in time; NULL in the first */
    size_t bytes;       /* all of it, this header included */
};

struct on_reset {
    struct on_reset *next;
    void (*fn)(void *);
    void *arg;
};

struct arena {
    struct chunk *chunks; /* newest first, except that chunks of single requests lie second */
    uint8_t *pos, *end;   /* what is free of chunks[0] */
    size_t used, limit;
    struct on_reset *callbacks;
};

#define FIRST_BYTES ALIGN_UP(sizeof(struct chunk))
#define FIRST_POS   (FIRST_BYTES + ALIGN_UP(sizeof(struct arena)))

void *ov_malloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (OV_UNLIKELY(!p)) {
        fprintf(stderr, "octavod: out of memory: %zu bytes\n", n);
        abort();
    }
    return p;
}

void *ov_calloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (OV_UNLIKELY(!p)) {
        fprintf(stderr, "octavod: out of memory: %zu times %zu bytes\n", n, size);
        abort();
    }
    return p;
}

void *ov_realloc(void *p, size_t n)
{
    void *q = realloc(p, n ? n : 1);
    if (OV_UNLIKELY(!q)) {
        fprintf(stderr, "octavod: out of memory: %zu bytes\n", n);
        abort();
    }
    return q;
}

char *ov_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(ov_malloc(n), s, n);
}

static struct chunk *chunk_new(size_t bytes)
{
    struct chunk *c = ov_malloc(bytes);
    c->next = NULL;
    c->bytes = bytes;
    return c;
}

static void chunk_free(struct chunk *c)
{
    ASAN_UNPOISON_MEMORY_REGION(c, c->bytes);
    free(c);
}

/* Makes the first chunk as new behind the arena's struct. */
static void start_first_chunk(struct arena *a, struct chunk *first)
{
    a->chunks = first;
    a->pos = (uint8_t *)first + FIRST_POS;
    a->end = (uint8_t *)first + first->bytes;
    a->used = 0;
    a->callbacks = NULL;
    ASAN_POISON_MEMORY_REGION(a->pos, (size_t)(a->end - a->pos));
}

struct arena *arena_new(size_t limit)
{
    struct chunk *first = chunk_new(CHUNK_BYTES);
    struct arena *a = (struct arena *)((uint8_t *)first + FIRST_BYTES);
    a->limit = limit;
    start_first_chunk(a, first);
    return a;
}

/* Runs the callbacks and frees every chunk but the first, which it returns. */
static struct chunk *run_down(struct arena *a)
{
    while (a->callbacks) {
        struct on_reset *cb = a->callbacks;
        a->callbacks = cb->next; /* first, so that a callback may register another */
        cb->fn(cb->arg);
    }
    struct chunk *c = a->chunks;
    while (c->next) {
        struct chunk *next = c->next;
        chunk_free(c);
        c = next;
    }
    return c;
}

void arena_free(struct arena *a)
{
    if (a)
        chunk_free(run_down(a)); /* the first chunk holds the struct, so it goes last */
}

void arena_reset(struct arena *a)
{
    start_first_chunk(a, run_down(a));
}

/* What the current chunk cannot serve; `need` is rounded up and includes the gap. */
static uint8_t *alloc_slow(struct arena *a, size_t need)
{
    if (need >= OWN_CHUNK_BYTES) {
        struct chunk *c = chunk_new(FIRST_BYTES + need);
        /* behind the newest, never behind the first: the first must stay last in the list */
        if (a->chunks->next) {
            c->next = a->chunks->next;
            a->chunks->next = c;
            return (uint8_t *)c + FIRST_BYTES;
        }
        c->next = a->chunks;
        a->chunks = c; /* the bump pointer still points into the first chunk: it goes on being filled */
        return (uint8_t *)c + FIRST_BYTES;
    }
    struct chunk *c = chunk_new(CHUNK_BYTES);
    c->next = a->chunks;
    a->chunks = c;
    a->pos = (uint8_t *)c + FIRST_BYTES + need;
    a->end = (uint8_t *)c + CHUNK_BYTES;
    return (uint8_t *)c + FIRST_BYTES;
}

void *arena_alloc_past_limit(struct arena *a, size_t bytes)
{
    OV_ASSERT(bytes <= SIZE_MAX / 2);
    size_t need = ALIGN_UP(bytes ? bytes : 1) + GAP;
    uint8_t *p;
    if (OV_LIKELY((size_t)(a->end - a->pos) >= need)) {
        p = a->pos;
        a->pos += need;
    } else {
        p = alloc_slow(a, need);
        ASAN_POISON_MEMORY_REGION(a->pos, (size_t)(a->end - a->pos));
    }
    a->used += need - GAP;
#ifdef ARENA_POISONS
    ASAN_POISON_MEMORY_REGION(p + (need - GAP), GAP);
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
#endif
    return p;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    if (OV_UNLIKELY(a->limit && (a->used > a->limit || bytes > a->limit - a->used)))
        return NULL;
    return arena_alloc_past_limit(a, bytes);
}

void *arena_zalloc(struct arena *a, size_t bytes)
{
    void *p = arena_alloc(a, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void *arena_dup(struct arena *a, const void *src, size_t n)
{
    void *p = arena_alloc(a, n);
    if (p && n)
        memcpy(p, src, n);
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    if (!p)
        return NULL;
    if (n)
        memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

/* The formatted text's length; -1 (a broken multibyte string) never happens in the C locale. */
static size_t formatted_length(const char *fmt, va_list ap)
{
    va_list copy;
    va_copy(copy, ap);
    int n = vsnprintf(NULL, 0, fmt, copy);
    va_end(copy);
    OV_ASSERT(n >= 0);
    return (size_t)n;
}

char *arena_vprintf_past_limit(struct arena *a, const char *fmt, va_list ap)
{
    size_t n = formatted_length(fmt, ap);
    char *p = arena_alloc_past_limit(a, n + 1);
    vsnprintf(p, n + 1, fmt, ap);
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t n = formatted_length(fmt, ap);
    char *p = arena_alloc(a, n + 1);
    if (p)
        vsnprintf(p, n + 1, fmt, ap);
    va_end(ap);
    return p;
}

struct slice arena_slice(struct arena *a, struct slice s)
{
    return slice_of(arena_dup(a, s.p, s.n), s.n);
}

void arena_on_reset(struct arena *a, void (*fn)(void *), void *arg)
{
    struct on_reset *cb = arena_alloc_past_limit(a, sizeof(*cb)); /* losing a clean-up to the limit would leak */
    cb->next = a->callbacks;
    cb->fn = fn;
    cb->arg = arg;
    a->callbacks = cb;
}

size_t arena_used(const struct arena *a)
{
    return a->used;
}
