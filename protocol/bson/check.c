/* The border: bytes from a client become a document only here. One pass without recursion; every bound is checked before the read that needs it,
 * so that nothing above checks again. What the real server lets in, we let in: names of array elements, UTF-8 and the inner length of old
 * binary are not looked at. */
#include "protocol/bson/bson.h"

#define STACK_MAX 256

struct level {
    const uint8_t *end; /* behind the NUL of the document */
};

struct checker {
    struct level stack[STACK_MAX];
    int depth; /* of the document being read; the outermost is 0 */
    int max_depth;
    const uint8_t *p;
};

static int bad(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID_BSON, "Invalid BSON: %s", what);
}

/* Opens the document at c->p, whose bytes end at or before `limit`. */
static int open_doc(struct checker *c, const uint8_t *limit, struct err *err)
{
    if (limit - c->p < 5)
        return bad(err, "a document needs at least 5 bytes");
    uint32_t n = load_le32(c->p);
    if (n < 5 || n > (size_t)(limit - c->p))
        return bad(err, "the length of a document runs past what encloses it");
    if (c->p[n - 1] != 0)
        return bad(err, "a document does not end with a zero byte");
    if (c->depth + 1 > c->max_depth || c->depth + 1 >= STACK_MAX)
        return err_set(err, ERR_OVERFLOW, "BSONObj exceeds maximum nested object depth");
    c->stack[++c->depth].end = c->p + n;
    c->p += 4;
    return 0;
}

/* The bytes of a string with its length before it, or 0 if it does not fit below end. */
static uint32_t string_size(const uint8_t *p, const uint8_t *end)
{
    if (end - p < 5)
        return 0;
    uint32_t n = load_le32(p);
    if (n < 1 || n > (size_t)(end - p) - 4 || p[4 + n - 1] != 0)
        return 0;
    return 4 + n;
}

/* A cstring's bytes with its NUL, or 0. Most are short: the first eight bytes in one load. */
static inline size_t cstring_size(const uint8_t *p, const uint8_t *end)
{
    if (OV_LIKELY(end - p >= 8)) {
        uint64_t w = load_le64(p), zero = (w - 0x0101010101010101u) & ~w & 0x8080808080808080u;
        if (OV_LIKELY(zero))
            return ((size_t)__builtin_ctzll(zero) >> 3) + 1;
    }
    const uint8_t *nul = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
    return nul ? (size_t)(nul - p) + 1 : 0;
}

static int check_rare(struct checker *c, uint8_t type, const uint8_t *end, struct err *err)
{
    const uint8_t *p = c->p;
    size_t n, m;
    switch (type) {
    case BSON_TYPE_BINARY:
        if (end - p < 5 || load_le32(p) > (size_t)(end - p) - 5)
            return bad(err, "binary data runs past its document");
        c->p += 5 + (size_t)load_le32(p);
        return 0;
    case BSON_TYPE_REGEX:
        if ((n = cstring_size(p, end)) == 0 || (m = cstring_size(p + n, end)) == 0)
            return bad(err, "a regular expression runs past its document");
        c->p += n + m;
        return 0;
    default: /* dbPointer */
        if ((n = string_size(p, end)) == 0 || (size_t)(end - p) - n < 12)
            return bad(err, "a DBPointer runs past its document");
        c->p += n + 12;
        return 0;
    }
}

/* Code with scope: its own length, a string, a document that ends exactly where the whole does. */
static int open_scope(struct checker *c, const uint8_t *end, struct err *err)
{
    const uint8_t *p = c->p;
    if (end - p < 4 + 5 + 5)
        return bad(err, "code with scope runs past its document");
    uint32_t n = load_le32(p), code;
    if (n > (size_t)(end - p) || n < 4 + 5 + 5)
        return bad(err, "the length of code with scope is wrong");
    const uint8_t *inner = p + n;
    if ((code = string_size(p + 4, inner)) == 0 || inner - (p + 4 + code) < 5 ||
        load_le32(p + 4 + code) != inner - (p + 4 + code))
        return bad(err, "the parts of code with scope do not fill it");
    c->p = p + 4 + code;
    return open_doc(c, inner, err);
}

/* One element; c->p is at its type byte and `end` at the NUL of its document. */
static inline int check_element(struct checker *c, const uint8_t *end, struct err *err)
{
    uint8_t type = *c->p++;
    size_t name = cstring_size(c->p, end);
    if (name == 0)
        return bad(err, "a field name does not end within its document");
    c->p += name;
    uint32_t size = bson_fixed_size[type];
    switch (size) {
    case BSON_SIZE_STR:
        if ((size = string_size(c->p, end)) == 0)
            return bad(err, "a string runs past its document or has no zero byte at its end");
        c->p += size;
        return 0;
    case BSON_SIZE_DOC:
        return type == BSON_TYPE_CODEWSCOPE ? open_scope(c, end, err) : open_doc(c, end, err);
    case BSON_SIZE_RARE:
        return check_rare(c, type, end, err);
    case 0:
        if (type != BSON_TYPE_NULL && type != BSON_TYPE_UNDEFINED && type != BSON_TYPE_MINKEY &&
            type != BSON_TYPE_MAXKEY)
            return err_set(err, ERR_INVALID_BSON, "Unrecognized BSON type %d in field '%s'", (int)(int8_t)type,
                           (const char *)c->p - name);
        return 0;
    default:
        if ((size_t)(end - c->p) < size)
            return bad(err, "a value runs past its document");
        if (type == BSON_TYPE_BOOL && *c->p > 1)
            return bad(err, "a boolean is neither 0 nor 1");
        c->p += size;
        return 0;
    }
}

int bson_check(const uint8_t *doc, size_t n, int max_depth, struct err *err)
{
    struct checker c;
    c.depth = -1;
    c.max_depth = max_depth;
    c.p = doc;
    int rc = n > UINT32_MAX / 2 ? bad(err, "a document is too long") : open_doc(&c, doc + n, err);
    if (rc != 0)
        return rc;
    if (load_le32(doc) != n)
        return bad(err, "the length of the document is not that of its bytes");
    while (c.depth >= 0) {
        const uint8_t *end = c.stack[c.depth].end - 1;
        int depth = c.depth;
        while (c.p < end && c.depth == depth)
            if ((rc = check_element(&c, end, err)) != 0)
                return rc;
        if (c.depth != depth)
            continue; /* a document inside was opened */
        c.p = end + 1;
        c.depth--;
    }
    return 0;
}
