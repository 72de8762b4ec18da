/* A filter and a document, one behind the other: parsing gives a tree or an error with words, matching reads only what it was
 * given, and the filter under $nor says the opposite. The filter is also tried as a condition on each value of the document. */
#include "server/base/assert.h"
#include "server/query/match/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void negated(struct arena *a, const uint8_t *filter, const uint8_t *doc, bool matches)
{
    struct buf b;
    struct match *m;
    struct err err;
    buf_init(&b);
    err_init(&err, a);
    size_t start = bw_begin(&b), list = bw_arr(&b, "$nor");
    bw_rawdoc(&b, "0", filter);
    bw_end(&b, list);
    bw_end(&b, start);
    if (match_parse(a, b.p, &m, &err) == 0)
        OV_ASSERT(match_doc(m, doc, NULL) == !matches);
    buf_free(&b);
}

static void on_values(struct arena *a, const uint8_t *cond, const uint8_t *doc)
{
    struct match *m;
    struct err err;
    struct biter it;
    struct belem e;
    err_init(&err, a);
    if (match_parse_value(a, bval_from_doc(cond), &m, &err) != 0)
        return;
    biter_init(&it, doc);
    while (biter_next(&it, &e))
        (void)match_value(m, e.v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(8 << 20);
    struct match *m;
    struct match_result r;
    struct err err;
    err_init(&err, a);
    if (size < 4)
        goto out;
    size_t n = load_le32(data);
    if (n > size || bson_check(data, n, BSON_DEPTH_MAX, &err) != 0)
        goto out;
    const uint8_t *doc = data + n;
    if (bson_check(doc, size - n, BSON_DEPTH_MAX, &err) != 0)
        goto out;
    err_clear(&err);
    if (match_parse(a, data, &m, &err) == 0) {
        bool matches = match_doc(m, doc, &r);
        OV_ASSERT(matches || r.array_index == -1);
        OV_ASSERT(match_doc(m, doc, NULL) == matches);
        negated(a, data, doc, matches);
    } else {
        OV_ASSERT(err.code != 0 && err.msg && err.msg[0]);
    }
    on_values(a, data, doc);
out:
    arena_free(a);
    return 0;
}
