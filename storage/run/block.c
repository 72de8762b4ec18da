/* Frames, data blocks and fragment indexes: packing, checking, searching. Pure functions over bytes. */
#include "storage/run/block.h"

#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>

#include "server/base/assert.h"
#include "server/base/crc.h"
#include "storage/common/key_hash.h"

enum { ZSTD_LEVEL = 1 };

/* Returns the compressed length, 0 if it failed or does not fit into `room`. */
static size_t pack(enum eng_compression codec, struct slice raw, uint8_t *to, size_t room)
{
    size_t n = room;
    switch (codec) {
    case ENG_COMPRESS_NONE:
        return 0;
    case ENG_COMPRESS_LZ4: {
        int got = LZ4_compress_default((const char *)raw.p, (char *)to, (int)raw.n, (int)room);
        return got > 0 ? (size_t)got : 0;
    }
    case ENG_COMPRESS_ZSTD:
        n = ZSTD_compress(to, room, raw.p, raw.n, ZSTD_LEVEL);
        return ZSTD_isError(n) ? 0 : n;
    case ENG_COMPRESS_SNAPPY:
        return snappy_compress((const char *)raw.p, raw.n, (char *)to, &n) == SNAPPY_OK ? n : 0;
    }
    return 0;
}

static size_t pack_room(enum eng_compression codec, size_t n)
{
    switch (codec) {
    case ENG_COMPRESS_NONE:
        return 0;
    case ENG_COMPRESS_LZ4:
        return (size_t)LZ4_compressBound((int)n);
    case ENG_COMPRESS_ZSTD:
        return ZSTD_compressBound(n);
    case ENG_COMPRESS_SNAPPY:
        return snappy_max_compressed_length(n);
    }
    return 0;
}

void frame_write(struct buf *out, enum frame_kind kind, enum eng_compression codec, struct slice raw)
{
    OV_ASSERT(raw.n <= FRAME_RAW_MAX);
    size_t room = pack_room(codec, raw.n);
    uint8_t *at = buf_reserve(out, FRAME_HEADER + OV_MAX(room, raw.n));
    size_t n = pack(codec, raw, at + FRAME_HEADER, room);
    if (n == 0 || n > raw.n - raw.n / 8) { /* not worth unpacking */
        codec = ENG_COMPRESS_NONE;
        n = raw.n;
        memcpy(at + FRAME_HEADER, raw.p, n);
    }
    store_le32(at + 4, (uint32_t)codec | (uint32_t)kind << 8);
    store_le32(at + 8, (uint32_t)raw.n);
    store_le32(at + 12, (uint32_t)n);
    store_le32(at, crc32c(0, at + 4, FRAME_HEADER - 4 + n));
    out->len += FRAME_HEADER + n;
}

int64_t frame_check(struct slice frame, enum frame_kind kind)
{
    if (frame.n < FRAME_HEADER || load_le32(frame.p + 12) != frame.n - FRAME_HEADER)
        return -1;
    if (crc32c(0, frame.p + 4, frame.n - 4) != load_le32(frame.p))
        return -1;
    uint32_t raw_len = load_le32(frame.p + 8);
    if (frame.p[4] > ENG_COMPRESS_SNAPPY || frame.p[5] != kind || raw_len > FRAME_RAW_MAX)
        return -1;
    return raw_len;
}

bool frame_unpack(struct slice frame, uint8_t *to)
{
    const uint8_t *from = frame.p + FRAME_HEADER;
    size_t n = frame.n - FRAME_HEADER, raw_len = load_le32(frame.p + 8), got = raw_len;
    switch ((enum eng_compression)frame.p[4]) {
    case ENG_COMPRESS_NONE:
        if (n != raw_len)
            return false;
        memcpy(to, from, n);
        return true;
    case ENG_COMPRESS_LZ4:
        return LZ4_decompress_safe((const char *)from, (char *)to, (int)n, (int)raw_len) == (int)raw_len;
    case ENG_COMPRESS_ZSTD:
        return ZSTD_decompress(to, raw_len, from, n) == raw_len;
    case ENG_COMPRESS_SNAPPY:
        return snappy_uncompressed_length((const char *)from, n, &got) == SNAPPY_OK && got == raw_len &&
               snappy_uncompress((const char *)from, n, (char *)to, &got) == SNAPPY_OK && got == raw_len;
    }
    return false;
}

bool data_block_open(struct slice raw, struct data_block *b)
{
    if (raw.n < DATA_HEADER)
        return false;
    *b = (struct data_block){.p = raw.p, .len = raw.n, .keyspace = load_le64(raw.p), .n = load_le32(raw.p + 8)};
    if (b->n == 0 || b->n > (raw.n - DATA_HEADER) / (4 + ENTRY_HEADER))
        return false;
    size_t at = DATA_HEADER + 4 * (size_t)b->n;
    struct entry last = {0};
    for (uint32_t i = 0; i < b->n; i++) { /* entries lie one behind the other, without gaps */
        if (load_le32(raw.p + DATA_HEADER + 4 * (size_t)i) != at || raw.n - at < ENTRY_HEADER)
            return false;
        size_t key_len = load_le32(raw.p + at) >> 8, value_len = load_le32(raw.p + at + 4),
               have = raw.n - at - ENTRY_HEADER;
        if (key_len > have || value_len > have - key_len)
            return false;
        struct entry e = data_block_entry(b, i);
        if (e.kind < 1 || e.kind > 3)
            return false;
        if (i > 0) {
            int c = slice_cmp(last.key, e.key);
            if (c > 0 || (c == 0 && last.ts <= e.ts)) /* D1 */
                return false;
        }
        last = e;
        at += ENTRY_HEADER + key_len + value_len;
    }
    return at == raw.n;
}

uint32_t data_block_lower_bound(const struct data_block *b, struct slice key)
{
    uint32_t lo = 0, hi = b->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (slice_cmp(data_block_key(b, mid), key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct index_entry index_get(const struct index_view *v, uint32_t i)
{
    const uint8_t *e = v->p + INDEX_HEADER + INDEX_ENTRY * (size_t)i;
    return (struct index_entry){
        .offset = load_le64(e),
        .keyspace = load_le64(e + 8),
        .frame_len = load_le32(e + 16),
        .raw_len = load_le32(e + 20),
        .entries = load_le32(e + 24),
        .key = slice_of(v->p + load_le32(e + 28), load_le32(e + 32)),
    };
}

bool index_open(struct slice raw, struct index_view *v)
{
    if (raw.n < INDEX_HEADER)
        return false;
    *v = (struct index_view){.p = raw.p, .len = raw.n, .n = load_le32(raw.p)};
    size_t filter_len = load_le32(raw.p + 4), have = raw.n - INDEX_HEADER;
    if (v->n == 0 || v->n > have / INDEX_ENTRY || filter_len > have - INDEX_ENTRY * (size_t)v->n ||
        filter_len % 64 != 0)
        return false;
    v->filter = slice_of(raw.p + raw.n - filter_len, filter_len);
    size_t keys_from = INDEX_HEADER + INDEX_ENTRY * (size_t)v->n, keys_to = raw.n - filter_len;
    struct index_entry last = {0};
    for (uint32_t i = 0; i < v->n; i++) {
        const uint8_t *p = raw.p + INDEX_HEADER + INDEX_ENTRY * (size_t)i;
        size_t key_at = load_le32(p + 28), key_len = load_le32(p + 32);
        if (key_at < keys_from || key_at > keys_to || key_len > keys_to - key_at)
            return false;
        struct index_entry e = index_get(v, i);
        if (e.raw_len > FRAME_RAW_MAX || e.frame_len < FRAME_HEADER || e.frame_len > FRAME_RAW_MAX ||
            e.offset > INT64_MAX)
            return false;
        if (i > 0 && key_cmp(last.keyspace, last.key, e.keyspace, e.key) >= 0)
            return false;
        last = e;
    }
    return true;
}

uint32_t index_find(const struct index_view *v, uint64_t keyspace, struct slice key)
{
    uint32_t lo = 0, hi = v->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        struct index_entry e = index_get(v, mid);
        if (key_cmp(e.keyspace, e.key, keyspace, key) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
