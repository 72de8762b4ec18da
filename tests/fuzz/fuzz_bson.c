/* Documents from the wire: the check reads nothing outside, and what it lets in can be walked, compared, hashed, printed and encoded. The
 * document is in two halves' roles at once: its values are compared with each other, and keys must agree with that. */
#include "protocol/bson/bson.h"

#include "server/base/assert.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VALUES_MAX 8

static bool touch(void *arg, struct bval v, bool in_array, int32_t first)
{
    uint64_t *sum = arg;
    *sum += bval_hash(v, (uint64_t)first) + in_array;
    return false;
}

static void walk(const uint8_t *doc)
{
    static const char *const paths[] = {"a", "a.b", "a.0", "a.0.b", "a.b.c", "0.0.0", "_id"};
    struct arena *a = arena_new(0);
    struct err err;
    struct bpath path;
    uint64_t sum = 0;
    err_init(&err, a);
    for (size_t i = 0; i < OV_LEN(paths); i++) {
        OV_ASSERT(bpath_parse(a, paths[i], &path, &err) == 0);
        bpath_walk(&path, doc, true, touch, &sum);
    }
    arena_free(a);
}

static void compare(const struct bval *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            struct buf a, b;
            int c = bval_cmp(v[i], v[j]);
            OV_ASSERT((c > 0) == (bval_cmp(v[j], v[i]) < 0));
            OV_ASSERT(c != 0 || bval_hash(v[i], 1) == bval_hash(v[j], 1));
            buf_init(&a);
            buf_init(&b);
            bval_keyenc(&a, v[i], false);
            bval_keyenc(&b, v[j], false);
            int k = slice_cmp(buf_slice(&a), buf_slice(&b));
            OV_ASSERT((c > 0) - (c < 0) == (k > 0) - (k < 0));
            buf_free(&a);
            buf_free(&b);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    struct biter it;
    struct belem e;
    struct bval v[VALUES_MAX];
    struct buf copy;
    size_t n = 0;
    err_init(&err, NULL);
    int rc = bson_check(data, size, BSON_DEPTH_MAX, &err);
    OV_ASSERT(rc == err.code);
    if (rc != 0)
        return 0;
    buf_init(&copy);
    size_t start = bw_begin(&copy);
    biter_init(&it, data);
    while (biter_next(&it, &e)) {
        int64_t whole;
        OV_ASSERT(e.v.p + e.v.n < data + size);
        bw_valn(&copy, e.name, e.name_n, e.v);
        if (bval_is_number(e.v) && bval_to_i64(e.v, true, &whole) && e.v.type != BSON_TYPE_DECIMAL128)
            OV_ASSERT(bval_to_f64(e.v) == (double)whole);
        if (n < VALUES_MAX)
            v[n++] = e.v;
    }
    bw_end(&copy, start);
    OV_ASSERT(slice_eq(buf_slice(&copy), slice_of(data, size)));
    copy.len = 0;
    bval_to_shell(&copy, bval_from_doc(data), 200);
    OV_ASSERT(copy.len <= 203);
    compare(v, n);
    walk(data);
    buf_free(&copy);
    return 0;
}
