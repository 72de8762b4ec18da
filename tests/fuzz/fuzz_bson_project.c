/* Specifications of projections and sorts from the wire, applied to a document: two documents one behind the other. Whatever is accepted gives a
 * well-formed document, and again the same when projected once more. */
#include "server/query/project/project.h"

#include "server/base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void project(struct arena *a, const uint8_t *spec, const uint8_t *doc)
{
    struct project *p;
    struct err err;
    struct buf once, twice;
    err_init(&err, a);
    if (project_parse(a, spec, &p, &err) != 0 || !p)
        return;
    buf_init(&once);
    buf_init(&twice);
    project_apply(p, doc, &once);
    OV_ASSERT(bson_check(once.p, once.len, BSON_DEPTH_MAX, &err) == 0);
    project_apply(p, once.p, &twice);
    OV_ASSERT(slice_eq(buf_slice(&once), buf_slice(&twice)));
    buf_free(&once);
    buf_free(&twice);
}

static void sort(struct arena *a, const uint8_t *spec, const uint8_t *doc)
{
    struct sort_spec s;
    struct err err;
    struct buf key;
    err_init(&err, a);
    if (sort_parse(a, spec, &s, &err) != 0)
        return;
    buf_init(&key);
    sort_key(&s, doc, &key);
    OV_ASSERT(key.len >= s.n);
    buf_free(&key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    err_init(&err, NULL);
    if (size < 10)
        return 0;
    uint32_t n = load_le32(data);
    if (n > size || bson_check(data, n, BSON_DEPTH_MAX, &err) != 0 ||
        bson_check(data + n, size - n, BSON_DEPTH_MAX, &err) != 0)
        return 0;
    struct arena *a = arena_new(1 << 20);
    project(a, data, data + n);
    sort(a, data, data + n);
    arena_free(a);
    return 0;
}
