/* Journal payloads: parsing never reads outside, and what is accepted, written again, is the same bytes. Splices are applied to a base
 * from the input. */
#include "server/base/assert.h"
#include "storage/txn/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rewrite(struct buf *out, const struct mutation *m)
{
    uint8_t *at = buf_reserve(out, MUTATION_HEADER);
    batch_put_mutation(at, m->type, m->keyspace, m->key.n, m->value.n);
    out->len += MUTATION_HEADER;
    buf_append(out, m->key.p, m->key.n);
    buf_append(out, m->value.p, m->value.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch_reader r;
    struct mutation m;
    struct buf again, result;
    buf_init(&again);
    buf_init(&result);
    if (batch_open(&r, slice_of(data, size), 1000)) {
        uint32_t n = r.left;
        int more;
        batch_put_header(buf_reserve(&again, BATCH_HEADER), r.one_ts, n);
        again.len = BATCH_HEADER;
        while ((more = batch_next(&r, &m)) == 1) {
            rewrite(&again, &m);
            if (m.type == MUT_SPLICE && splice_apply(m.value, slice_of(data, size), 1 << 20, &result))
                OV_ASSERT(result.len <= 1 << 20);
            result.len = 0;
        }
        if (more == 0)
            OV_ASSERT(slice_eq(buf_slice(&again), slice_of(data, size)));
    }
    buf_free(&again);
    buf_free(&result);
    return 0;
}
