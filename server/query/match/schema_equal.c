/* Equality of $jsonSchema: documents are sets of fields, so {a: 1, b: 2} equals {b: 2, a: 1}. */
#include <stdlib.h>

#include "server/query/match/schema.h"

static uint32_t count(const uint8_t *doc)
{
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    for (biter_init(&it, doc); biter_next(&it, &e);)
        n++;
    return n;
}

static bool arrays_equal(const uint8_t *a, const uint8_t *b)
{
    struct biter ia, ib;
    struct belem x, y;
    biter_init(&ia, a);
    biter_init(&ib, b);
    while (biter_next(&ia, &x))
        if (!biter_next(&ib, &y) || !schema_equal(x.v, y.v))
            return false;
    return !biter_next(&ib, &y);
}

/* Fields that stand in the same order are found at once. */
static bool documents_equal(const uint8_t *a, const uint8_t *b)
{
    struct biter ia, ib;
    struct belem x, y;
    if (count(a) != count(b))
        return false;
    biter_init(&ia, a);
    biter_init(&ib, b);
    while (biter_next(&ia, &x)) {
        bool same = biter_next(&ib, &y) && x.name_n == y.name_n && memcmp(x.name, y.name, x.name_n) == 0;
        struct bval other = same ? y.v : bdoc_getn(b, x.name, x.name_n);
        if (bval_is_missing(other) || !schema_equal(x.v, other))
            return false;
    }
    return true;
}

bool schema_equal(struct bval a, struct bval b)
{
    if (a.type == BSON_TYPE_DOCUMENT && b.type == BSON_TYPE_DOCUMENT)
        return documents_equal(bval_doc(a), bval_doc(b));
    if (a.type == BSON_TYPE_ARRAY && b.type == BSON_TYPE_ARRAY)
        return arrays_equal(bval_doc(a), bval_doc(b));
    return bval_eq(a, b);
}

/* Equal values have equal hashes. */
static uint64_t hash(struct bval v, uint64_t seed)
{
    struct biter it;
    struct belem e;
    uint64_t h = seed ^ v.type;
    if (v.type != BSON_TYPE_DOCUMENT && v.type != BSON_TYPE_ARRAY)
        return bval_hash(v, seed);
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e);) {
        uint64_t name = 14695981039346656037u;
        for (uint32_t i = 0; i < e.name_n; i++)
            name = (name ^ (uint8_t)e.name[i]) * 1099511628211u;
        h += hash(e.v, name);
    }
    return h;
}

struct hashed {
    uint64_t hash;
    struct bval v;
};

static int by_hash(const void *a, const void *b)
{
    uint64_t x = ((const struct hashed *)a)->hash, y = ((const struct hashed *)b)->hash;
    return (x > y) - (x < y);
}

bool schema_has_duplicates(const uint8_t *array)
{
    struct biter it;
    struct belem e;
    uint32_t n = count(array), i = 0;
    bool found = false;
    if (n < 2)
        return false;
    struct hashed *h = ov_malloc(n * sizeof *h);
    for (biter_init(&it, array); biter_next(&it, &e); i++)
        h[i] = (struct hashed){hash(e.v, 0), e.v};
    qsort(h, n, sizeof *h, by_hash);
    for (i = 1; i < n && !found; i++)
        for (uint32_t k = i; k > 0 && h[k - 1].hash == h[i].hash && !found; k--)
            found = schema_equal(h[k - 1].v, h[i].v);
    free(h);
    return found;
}
