/* The document model: values as borrowed views of raw BSON, an iterator, a writer, comparison, paths. Documents handed to the
 * iterator and to everything above are valid (bson_check at the border, or written by us). Thread: any; nothing here has state. */
#ifndef OV_BSON_H
#define OV_BSON_H

#include <bson/bson.h> /* BSON_TYPE_*; decimal128 text */

#include "server/base/base.h"
#include "server/base/buf.h"
#include "server/base/err.h"

#define BSON_DOC_MAX   (16u * 1024 * 1024)        /* a stored document */
#define BSON_INPUT_MAX (BSON_DOC_MAX + 16 * 1024) /* a document on the wire */
#define BSON_DEPTH_MAX 200                        /* nesting that bson_check accepts; stored documents: 100 */

/* A value: type (BSON_TYPE_*; BSON_TYPE_EOD = missing) and its raw bytes as they stand in BSON, without type byte and name.
 * Borrowed: as valid as the bytes it points into. */
struct bval {
    uint8_t type;
    uint32_t n;
    const uint8_t *p;
};
struct belem {
    const char *name; /* NUL-terminated, in the document */
    uint32_t name_n;
    struct bval v;
};
struct biter {
    const uint8_t *p, *end;
};

/* Is `doc` one well-formed document of exactly n bytes (lengths, NULs, types, booleans, depth)? No UTF-8 check, as the real server.
 * Errors: ERR_INVALID_BSON; ERR_OVERFLOW past max_depth. */
OV_MUST_CHECK int bson_check(const uint8_t *doc, size_t n, int max_depth, struct err *err);

/* The number of bytes of a value of this type at p. biter_next is the hottest function of the server, hence inline: fixed sizes come from a table,
 * lengths from the bytes; only the rare rest is a call. */
extern const uint8_t
    bson_fixed_size[256]; /* BSON_SIZE_STR: 4 + length; BSON_SIZE_DOC: length; BSON_SIZE_RARE: bson_rare_size */
enum { BSON_SIZE_STR = 0xFD, BSON_SIZE_DOC = 0xFE, BSON_SIZE_RARE = 0xFF };
uint32_t bson_rare_size(uint8_t type, const uint8_t *p);
static inline uint32_t bson_value_size(uint8_t type, const uint8_t *p)
{
    uint32_t n = bson_fixed_size[type];
    if (OV_LIKELY(n < BSON_SIZE_STR))
        return n;
    if (n == BSON_SIZE_STR)
        return 4 + load_le32(p);
    return n == BSON_SIZE_DOC ? load_le32(p) : bson_rare_size(type, p);
}
/* strlen of a name whose document ends before `end`: eight bytes at a time where that stays inside. */
static inline uint32_t bson_name_len(const uint8_t *s, const uint8_t *end)
{
    if (OV_LIKELY(end - s >= 8)) {
        uint64_t w = load_le64(s), zero = (w - 0x0101010101010101u) & ~w & 0x8080808080808080u;
        return OV_LIKELY(zero) ? (uint32_t)__builtin_ctzll(zero) >> 3 : 8 + (uint32_t)strlen((const char *)s + 8);
    }
    return (uint32_t)strlen((const char *)s);
}

static inline uint32_t bdoc_len(const uint8_t *doc) /* the length that the document states */
{
    return load_le32(doc);
}
static inline bool bdoc_empty(const uint8_t *doc)
{
    return load_le32(doc) <= 5;
}
static inline void biter_init(struct biter *it, const uint8_t *doc) /* a document or array, at its length */
{
    it->p = doc + 4;
    it->end = doc + load_le32(doc) - 1;
}
static inline bool biter_next(struct biter *it, struct belem *e) /* false at the end */
{
    const uint8_t *p = it->p;
    if (p >= it->end)
        return false;
    e->v.type = p[0];
    e->name = (const char *)p + 1;
    e->name_n = bson_name_len(p + 1, it->end);
    p += 2 + e->name_n;
    e->v.p = p;
    e->v.n = bson_value_size(e->v.type, p);
    it->p = p + e->v.n;
    return true;
}
struct bval bdoc_getn(const uint8_t *doc, const char *name, size_t name_n); /* the same; name not NUL-terminated */
static inline struct bval bdoc_get(const uint8_t *doc,
                                   const char *name) /* top level; type 0 if missing; the first of equal names */
{
    return bdoc_getn(doc, name, strlen(name));
}
static inline bool bval_is_missing(struct bval v)
{
    return v.type == BSON_TYPE_EOD;
}
static inline bool bval_is_number(struct bval v) /* int, long, double, decimal */
{
    return v.type == BSON_TYPE_INT32 || v.type == BSON_TYPE_DOUBLE || v.type == BSON_TYPE_INT64 ||
           v.type == BSON_TYPE_DECIMAL128;
}
const char *bval_type_name(
    uint8_t type); /* as $type and error messages name it: "int", "long", "object", "array", "missing" … */

/* Scalars out of values of the right type. */
static inline int32_t bval_i32(struct bval v)
{
    return (int32_t)load_le32(v.p);
}
static inline int64_t bval_i64(struct bval v) /* int32 and int64, date, timestamp */
{
    return v.type == BSON_TYPE_INT32 ? (int32_t)load_le32(v.p) : (int64_t)load_le64(v.p);
}
static inline double bval_f64(struct bval v) /* BSON double only */
{
    double d;
    memcpy(&d, v.p, 8);
    return d;
}
static inline bool bval_bool(struct bval v)
{
    return v.p[0] != 0;
}
static inline const char *bval_str(struct bval v, uint32_t *n) /* string, symbol, code: bytes without the NUL */
{
    *n = load_le32(v.p) - 1;
    return (const char *)v.p + 4;
}
static inline const uint8_t *bval_doc(struct bval v) /* document, array */
{
    return v.p;
}
/* Number of any type as int64: false if it is no number, not integral (when exact), or out of range. */
bool bval_to_i64(struct bval v, bool exact, int64_t *out);
/* As arguments of commands are read: a double is cut, a decimal rounded to the nearest (half to even), beyond the range it is the nearest there
 * is; not a number: 0. */
int64_t bval_to_i64_clamped(struct bval number);
double bval_to_f64(struct bval v); /* any number */
bool bval_truthy(struct bval v);   /* as expressions see it: false, null, undefined, missing and 0 are false */

/* BSON order: type classes MinKey < missing/undefined < null < numbers < string/symbol < object < array < binData < ObjectId < bool < date <
 * timestamp < regex < dbpointer < code < code with scope < MaxKey; numbers by value across types (NaN below all numbers). <0, 0, >0. */
int bval_cmp(struct bval a, struct bval b);
/* Is bval_cmp 0? Types whose equal values have equal bytes are settled without it. */
static inline bool bval_eq(struct bval a, struct bval b)
{
    const uint32_t by_bytes = 1u << BSON_TYPE_UTF8 | 1u << BSON_TYPE_OID | 1u << BSON_TYPE_BOOL |
                              1u << BSON_TYPE_DATE_TIME | 1u << BSON_TYPE_INT32 | 1u << BSON_TYPE_TIMESTAMP |
                              1u << BSON_TYPE_INT64;
    if (a.type == b.type && a.type < 32 && (by_bytes >> a.type & 1))
        return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
    return bval_cmp(a, b) == 0;
}
int bdoc_cmp(const uint8_t *a, const uint8_t *b);
int bval_class(
    uint8_t type); /* rank of the type class in that order: equal for types that compare as one (type bracketing) */
uint64_t bval_hash(struct bval v, uint64_t seed); /* equal values (bval_eq) hash alike */

/* Appends the order-preserving encoding of one value: memcmp of two encodings has the sign of bval_cmp, except that a missing value encodes as
 * null. Self-terminating (a compound key is the concatenation), never a prefix of another; equal values encode equally. `descending` inverts
 * every byte. Format: keyenc.c. Every encoding of a type starts with a byte in [*low, *high] of bval_keyenc_class (before inversion); the ranges
 * of different classes are disjoint, and the byte *high + 1 starts no encoding of a lower class. */
void bval_keyenc(struct buf *out, struct bval v, bool descending);
void bval_keyenc_class(uint8_t type, uint8_t *low, uint8_t *high);
/* The other way: appends to the open document `out` the field `name` with the value whose ascending encoding `key` begins with; the bytes that
 * it took, or 0 (and nothing appended) if there is none. Equal to what was encoded, though perhaps not of its type: keydec.c. `pad`: behind
 * the end of `key` bytes of this value follow, and what is returned may count some of them; -1: none do. */
size_t bval_keydec(struct buf *out, const char *name, struct slice key, int pad);

/* Number arithmetic with the server's widening (int -> long -> error on overflow; double and decimal contaminate).
 * `out16` holds the raw result (8 or 16 bytes). Errors: ERR_BAD_VALUE on int64 overflow (the caller words it). */
OV_MUST_CHECK int bval_add(struct bval a, struct bval b, uint8_t out16[16], struct bval *out);
OV_MUST_CHECK int bval_mul(struct bval a, struct bval b, uint8_t out16[16], struct bval *out);

/* ---- writing: straight into a buf, no intermediate tree ---- */

/* Opens a document (returns its start, for bw_end). bw_doc / bw_arr: as a field of the open one. */
size_t bw_begin(struct buf *b);
size_t bw_doc(struct buf *b, const char *name);
size_t bw_arr(struct buf *b, const char *name);
void bw_end(struct buf *b, size_t start);                    /* writes the NUL and the length */
void bw_val(struct buf *b, const char *name, struct bval v); /* copies; a missing value writes nothing */
void bw_valn(struct buf *b, const char *name, size_t name_n, struct bval v); /* name not NUL-terminated */
void bw_i32(struct buf *b, const char *name, int32_t v);
void bw_i64(struct buf *b, const char *name, int64_t v);
void bw_f64(struct buf *b, const char *name, double v);
void bw_bool(struct buf *b, const char *name, bool v);
void bw_null(struct buf *b, const char *name);
void bw_date(struct buf *b, const char *name, int64_t ms);
void bw_ts(struct buf *b, const char *name, uint64_t ts); /* seconds << 32 | counter */
void bw_oid(struct buf *b, const char *name, const uint8_t oid[12]);
void bw_bin(struct buf *b, const char *name, uint8_t subtype, const void *p, size_t n);
void bw_str(struct buf *b, const char *name, const char *s);
void bw_strn(struct buf *b, const char *name, const char *s, size_t n);
void bw_rawdoc(struct buf *b, const char *name, const uint8_t *doc); /* an embedded copy of a document */
const char *bw_index(uint32_t i, char scratch[12]);                  /* "0", "1", … for array elements */

/* Values from C data; the pointed-to storage is the caller's (scratch of 8 bytes for scalars). */
struct bval bval_from_i32(int32_t v, uint8_t scratch[8]);
struct bval bval_from_i64(int64_t v, uint8_t scratch[8]);
struct bval bval_from_f64(double v, uint8_t scratch[8]);
struct bval bval_from_doc(const uint8_t *doc); /* BSON_TYPE_DOCUMENT */
extern const struct bval BVAL_NULL, BVAL_MISSING;

/* Text as the server shows it in error messages and E11000: { a: 1, b: "x" }, ObjectId('…'), new Date(1), null … Cut with "..." at `max`. */
void bval_to_shell(struct buf *b, struct bval v, size_t max);
const char *bval_shell(struct arena *a, struct bval v); /* the same as a C string in an arena */

/* ---- dotted paths ---- */

struct bpath { /* compiled; parts borrowed from `text` */
    const char *text;
    uint32_t n_parts;
    struct bpath_part {
        const char *s;
        uint32_t n;
        int32_t index; /* the part as an array index, or -1 */
    } * parts;
};
/* Copies text. Errors, as of field paths: 40352 empty, 40353 ends with a dot, 15998 an empty part, ERR_OVERFLOW too many parts. */
OV_MUST_CHECK int bpath_parse(struct arena *a, const char *text, struct bpath *out, struct err *err);
/* The same for filters, where empty parts name fields called "". Errors: ERR_OVERFLOW. */
OV_MUST_CHECK int bpath_parse_any(struct arena *a, const char *text, struct bpath *out, struct err *err);

/* Walks `path` in doc by the query's rules (arrays: each element one level, and a numeric part also as an index) and calls fn for each value
 * reached. At a leaf array fn gets the array's elements first (in_array true, index) and then the array itself, when expand_leaf.
 * A path that leads nowhere gives one call with a missing value (none where some array element leads nowhere beside others that do: each
 * element DOCUMENT without the field gives a missing call). Stops when fn returns true, and returns true then. */
typedef bool (*bpath_fn)(void *arg, struct bval v, bool in_array, int32_t first_array_index);
bool bpath_walk(const struct bpath *path, const uint8_t *doc, bool expand_leaf, bpath_fn fn, void *arg);

/* Calls fn for each value at `path`, in order; an array at its end as it is, nothing for what is not there. At an array a numeric part is an
 * index and nothing else (as distinct reads paths), so the time is linear in the document. Stops when fn returns true, and returns true then. */
typedef bool (*bpath_value_fn)(void *arg, struct bval v);
bool bpath_values(const struct bpath *path, const uint8_t *doc, bpath_value_fn fn, void *arg);

#endif
