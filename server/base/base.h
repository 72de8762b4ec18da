/* What every file uses: attributes, sizes, byte order, slices. No state, no functions that can fail. */
#ifndef OV_BASE_H
#define OV_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OV_MUST_CHECK                   __attribute__((warn_unused_result))
#define OV_PRINTF(fmt, args)            __attribute__((format(printf, fmt, args)))
#define OV_NORETURN                     __attribute__((noreturn))
#define OV_LIKELY(x)                    __builtin_expect(!!(x), 1)
#define OV_UNLIKELY(x)                  __builtin_expect(!!(x), 0)
#define OV_LEN(array)                   (sizeof(array) / sizeof((array)[0]))
#define OV_MIN(a, b)                    ((a) < (b) ? (a) : (b))
#define OV_MAX(a, b)                    ((a) > (b) ? (a) : (b))
#define OV_CONTAINER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Borrowed bytes. Whoever hands one out says how long it stays valid. {NULL, 0} is the empty slice. */
struct slice {
    const uint8_t *p;
    size_t n;
};

static inline struct slice slice_of(const void *p, size_t n)
{
    return (struct slice){(const uint8_t *)p, n};
}

static inline struct slice slice_str(const char *s)
{
    return (struct slice){(const uint8_t *)s, strlen(s)};
}

/* memcmp order; a prefix sorts before what it is a prefix of. */
static inline int slice_cmp(struct slice a, struct slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Unaligned loads and stores, little-endian (the wire, BSON, files) and big-endian (keys). */
static inline uint16_t load_le16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}
static inline uint32_t load_le32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static inline uint64_t load_le64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
static inline void store_le16(void *p, uint16_t v)
{
    memcpy(p, &v, 2);
}
static inline void store_le32(void *p, uint32_t v)
{
    memcpy(p, &v, 4);
}
static inline void store_le64(void *p, uint64_t v)
{
    memcpy(p, &v, 8);
}
static inline uint32_t load_be32(const void *p)
{
    return __builtin_bswap32(load_le32(p));
}
static inline uint64_t load_be64(const void *p)
{
    return __builtin_bswap64(load_le64(p));
}
static inline void store_be32(void *p, uint32_t v)
{
    store_le32(p, __builtin_bswap32(v));
}
static inline void store_be64(void *p, uint64_t v)
{
    store_le64(p, __builtin_bswap64(v));
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files and the wire are little-endian; loads are plain copies");

#endif
