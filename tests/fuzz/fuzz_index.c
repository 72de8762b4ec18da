/* An index specification and a document, one behind the other: a specification that is taken is kept as it parses again; keys are sorted, each
 * once, and are the encodings of their values; two sets differ from themselves by nothing. */
#include "index/index.h"
#include "server/base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_kept(struct arena *a, const struct index_def *def)
{
    struct index_def again;
    struct err err;
    err_init(&err, a);
    int rc = index_parse(a, def->spec, &again, &err);
    OV_ASSERT(rc == 0);
    OV_ASSERT(bdoc_cmp(def->spec, again.spec) == 0);
}

static void check_keys(struct arena *a, const struct index_def *def, const struct keyset *set)
{
    struct keyset gone, come;
    struct buf key;
    buf_init(&key);
    for (size_t i = 0; i < set->n; i++) {
        OV_ASSERT(i == 0 || slice_cmp(set->keys[i - 1], set->keys[i]) < 0);
        key.len = 0;
        for (uint32_t f = 0; f < def->n_fields; f++)
            key_encode(&key, set->values[i][f], def->dirs[f] < 0);
        OV_ASSERT(slice_eq(buf_slice(&key), set->keys[i]));
    }
    buf_free(&key);
    keyset_diff(set, set, a, &gone, &come);
    OV_ASSERT(gone.n == 0 && come.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(8 << 20);
    struct index_def def;
    struct keyset set;
    struct err err;
    err_init(&err, a);
    if (size < 4)
        goto out;
    size_t n = load_le32(data);
    if (n > size || bson_check(data, n, BSON_DEPTH_MAX, &err) != 0)
        goto out;
    const uint8_t *doc = data + n;
    if (size - n < 4 || bson_check(doc, size - n, BSON_DEPTH_MAX, &err) != 0)
        goto out;
    if (index_parse(a, data, &def, &err) != 0)
        goto out;
    check_kept(a, &def);
    if (keygen(&def, doc, a, &set, &err) == 0)
        check_keys(a, &def, &set);
out:
    arena_free(a);
    return 0;
}
