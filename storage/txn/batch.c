/* Batches as bytes. Reading checks every length against what is left before it is used: the journal's checksums tell rot, not a
 * forged file or a bug of a newer version. */
#include "storage/txn/batch.h"

#include "server/base/assert.h"
#include "server/base/crc.h"

bool batch_open(struct batch_reader *r, struct slice payload, uint64_t first_ts)
{
    *r = (struct batch_reader){0};
    if (payload.n < BATCH_HEADER || payload.p[0] != BATCH_VERSION || payload.p[1] > BATCH_ONE_TS ||
        load_le16(payload.p + 2) != 0)
        return false;
    r->at = payload.p + BATCH_HEADER;
    r->end = payload.p + payload.n;
    r->ts = first_ts;
    r->left = load_le32(payload.p + 4);
    r->one_ts = payload.p[1] & BATCH_ONE_TS;
    return true;
}

int batch_next(struct batch_reader *r, struct mutation *m)
{
    size_t have = (size_t)(r->end - r->at);
    if (r->left == 0)
        return have == 0 ? 0 : -1;
    if (have < MUTATION_HEADER)
        return -1;
    size_t key_len = load_le32(r->at) >> 8, value_len = load_le32(r->at + 4);
    have -= MUTATION_HEADER;
    if (r->at[0] < MUT_INSERT || r->at[0] > MUT_LOG || key_len > have || value_len > have - key_len)
        return -1;
    *m = (struct mutation){
        .type = r->at[0],
        .keyspace = load_le64(r->at + 8),
        .ts = r->ts,
        .key = slice_of(r->at + MUTATION_HEADER, key_len),
        .value = slice_of(r->at + MUTATION_HEADER + key_len, value_len),
    };
    if ((m->type == MUT_DELETE && value_len) || (m->type == MUT_DROP && (key_len || value_len)) ||
        (m->type == MUT_LOG && key_len))
        return -1;
    if (m->type == MUT_SPLICE && value_len < SPLICE_HEADER)
        return -1;
    r->at += MUTATION_HEADER + key_len + value_len;
    r->left--;
    if (!r->one_ts)
        r->ts++;
    return 1;
}

void batch_put_header(uint8_t *at, bool one_ts, uint32_t n)
{
    at[0] = BATCH_VERSION;
    at[1] = one_ts ? BATCH_ONE_TS : 0;
    store_le16(at + 2, 0);
    store_le32(at + 4, n);
}

void batch_put_mutation(uint8_t *at, enum mutation_type type, uint64_t keyspace, size_t key_len, size_t value_len)
{
    OV_ASSERT(key_len < 1u << 24 && value_len <= UINT32_MAX);
    store_le32(at, (uint32_t)key_len << 8 | type);
    store_le32(at + 4, (uint32_t)value_len);
    store_le64(at + 8, keyspace);
}

size_t splice_bytes(const struct eng_edit *edits, size_t n)
{
    size_t bytes = SPLICE_HEADER;
    for (size_t i = 0; i < n; i++)
        bytes += EDIT_HEADER + edits[i].added.n;
    return bytes;
}

void splice_put(uint8_t *at, uint64_t base_ts, struct slice result, const struct eng_edit *edits, size_t n)
{
    store_le64(at, base_ts);
    store_le32(at + 8, crc32c(0, result.p, result.n));
    store_le32(at + 12, (uint32_t)result.n);
    at += SPLICE_HEADER;
    for (size_t i = 0; i < n; i++) {
        store_le32(at, edits[i].offset);
        store_le32(at + 4, edits[i].removed);
        store_le32(at + 8, (uint32_t)edits[i].added.n);
        at += EDIT_HEADER;
        if (edits[i].added.n)
            memcpy(at, edits[i].added.p, edits[i].added.n);
        at += edits[i].added.n;
    }
}

uint64_t splice_base(struct slice splice)
{
    return splice.n < SPLICE_HEADER ? 0 : load_le64(splice.p);
}

bool splice_apply(struct slice splice, struct slice base, size_t max, struct buf *out)
{
    if (splice.n < SPLICE_HEADER)
        return false;
    uint32_t crc = load_le32(splice.p + 8), len = load_le32(splice.p + 12);
    if (len > max)
        return false;
    const uint8_t *at = splice.p + SPLICE_HEADER, *end = splice.p + splice.n;
    size_t start = out->len, copied = 0; /* copied: bytes of the base dealt with */
    buf_reserve(out, (size_t)len + 1);   /* an empty result has a place, too */
    while (at != end) {
        if (end - at < EDIT_HEADER)
            goto bad;
        size_t offset = load_le32(at), removed = load_le32(at + 4), added = load_le32(at + 8);
        at += EDIT_HEADER;
        if (offset < copied || offset > base.n || removed > base.n - offset || added > (size_t)(end - at))
            goto bad;
        if (out->len - start + (offset - copied) + added > len)
            goto bad;
        buf_append(out, base.p + copied, offset - copied);
        buf_append(out, at, added);
        copied = offset + removed;
        at += added;
    }
    if (base.n - copied != len - (out->len - start))
        goto bad;
    buf_append(out, base.p + copied, base.n - copied);
    if (crc32c(0, out->p + start, len) == crc)
        return true;
bad:
    out->len = start;
    return false;
}
