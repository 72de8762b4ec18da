/* Specifications of projections and sorts from the wire, applied to a document: two documents one behind the other. Whatever is accepted gives a
 * well-formed document; without the operators of find it gives the same again when projected once more. */
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
    OV_ASSERT(project_apply(p, doc, &once, &err) == 0);
    OV_ASSERT(bson_check(once.p, once.len, BSON_DEPTH_MAX, &err) == 0);
    OV_ASSERT(project_apply(p, once.p, &twice, &err) == 0);
    OV_ASSERT(slice_eq(buf_slice(&once), buf_slice(&twice)));
    buf_free(&once);
    buf_free(&twice);
}

/* As find does, with the document's own field `q` as the filter, so that the positional operator finds something. */
static void project_find(struct arena *a, const uint8_t *spec, const uint8_t *doc)
{
    static const uint8_t none[] = {5, 0, 0, 0, 0};
    struct bval q = bdoc_get(doc, "q");
    struct project *p;
    struct match *filter;
    struct err err;
    struct buf out;
    err_init(&err, a);
    if (match_parse(a, q.type == BSON_TYPE_DOCUMENT ? bval_doc(q) : none, &filter, &err) != 0 ||
        project_parse_find(a, spec, filter, &p, &err) != 0 || !p)
        return;
    buf_init(&out);
    if (project_apply(p, doc, &out, &err) == 0)
        OV_ASSERT(bson_check(out.p, out.len, BSON_DEPTH_MAX, &err) == 0);
    else
        OV_ASSERT(out.len == 0 && (err.code == 51246 || err.code == 51247));
    buf_free(&out);
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
    project_find(a, data, data + n);
    sort(a, data, data + n);
    arena_free(a);
    return 0;
}
