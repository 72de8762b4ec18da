/* An update applied to a document: one byte of settings, then BSON documents one behind the other: the document, the update, the array
 * filters, the filter of an upsert. The edits must make the new document of the old one. */
#include "server/base/assert.h"
#include "server/query/update/update.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *next_doc(const uint8_t **data, size_t *size)
{
    struct err err;
    const uint8_t *doc = *data;
    err_init(&err, NULL);
    if (*size < 5)
        return NULL;
    uint32_t n = bdoc_len(doc);
    if (n > *size || bson_check(doc, n, BSON_DEPTH_MAX, &err) != 0)
        return NULL;
    *data += n;
    *size -= n;
    return doc;
}

static void check_result(const uint8_t *old, const struct buf *out, const struct update_effect *effect)
{
    struct buf made = {0};
    struct err err;
    uint32_t at = 0, n = bdoc_len(old);

    err_init(&err, NULL);
    OV_ASSERT(bson_check(out->p, out->len, 2 * BSON_DEPTH_MAX, &err) == 0);
    OV_ASSERT(effect->changed == (out->len != n || memcmp(out->p, old, n) != 0));
    if (effect->changed && effect->n_edits == 0)
        return; /* a replacement */
    for (uint32_t i = 0; i < effect->n_edits; i++) {
        const struct update_edit *e = &effect->edits[i];
        OV_ASSERT(e->offset >= at && e->offset + e->removed <= n && e->added_at + e->added <= out->len);
        buf_append(&made, old + at, e->offset - at);
        buf_append(&made, out->p + e->added_at, e->added);
        at = e->offset + e->removed;
    }
    buf_append(&made, old + at, n - at);
    OV_ASSERT(made.len == out->len && memcmp(made.p, out->p, made.len) == 0);
    buf_free(&made);
}

static void try_all(struct arena *a, const uint8_t *doc, const uint8_t *u, const uint8_t *filters,
                    const uint8_t *filter, uint8_t mode)
{
    struct bval fv = filters ? (struct bval){BSON_TYPE_ARRAY, bdoc_len(filters), filters} : BVAL_MISSING, id;
    struct update_effect effect;
    struct update *up;
    struct match *m;
    struct err err;
    struct buf out = {0};
    bool same;

    err_init(&err, a);
    if (insert_prepare(doc, 1, &out, &same, &err) == 0 && !same)
        OV_ASSERT(bson_check(out.p, out.len, BSON_DEPTH_MAX, &err) == 0);
    out.len = 0;
    if (update_parse(a, bval_from_doc(u), fv, mode & 1, &up, &err) == 0) {
        if (update_apply(up, doc, (int32_t)(mode >> 2) - 1, a, &out, &effect, &err) == 0)
            check_result(doc, &out, &effect);
        else
            OV_ASSERT(out.len == 0);
        update_may_touch(up, "a.b");
        out.len = 0;
        if (filter && match_parse(a, filter, &m, &err) == 0 && update_upsert(up, m, a, &out, &id, &err) == 0)
            OV_ASSERT(bson_check(out.p, out.len, 2 * BSON_DEPTH_MAX, &err) == 0 &&
                      !bval_is_missing(bdoc_get(out.p, "_id")));
    }
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    uint8_t mode = *data++;
    size--;
    const uint8_t *doc = next_doc(&data, &size), *u = doc ? next_doc(&data, &size) : NULL;
    if (!u)
        return 0;
    const uint8_t *filters = next_doc(&data, &size), *filter = filters ? next_doc(&data, &size) : NULL;
    struct arena *a = arena_new(64 << 20);
    try_all(a, doc, u, filters && !bdoc_empty(filters) ? filters : NULL, filter, mode);
    arena_free(a);
    return 0;
}
