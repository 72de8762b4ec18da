/* The pieces of a run file, as bytes and in memory. Whatever is read may be damaged or forged: nothing is used before it was checked, and
 * it is checked once, when it is loaded.
 *
 * FRAME: every piece of the file but the trailer; little-endian
 *   offset  size  field
 *      0      4   crc32c of all that follows
 *      4      1   codec: 0 none, 1 lz4, 2 zstd, 3 snappy (enum eng_compression)
 *      5      1   kind: 1 data, 2 index, 3 directory
 *      6      2   0
 *      8      4   raw_len, uncompressed
 *     12      4   stored_len
 *     16      .   stored_len bytes
 * DATA, uncompressed: entries of one keyspace
 *      0      8   keyspace
 *      8      4   n: entries, at least 1
 *     12      4   0
 *     16     4n   where each entry starts, from the block's start
 *      .      .   entries: kind (1; enum version_kind), key_len (3), value_len (4), timestamp (8), key, value
 * INDEX of a fragment
 *      0      4   n: blocks
 *      4      4   filter_len, a multiple of 64
 *      8      8   0
 *     16    40n   for each block: offset (8), keyspace (8), frame_len (4), raw_len (4), entries (4), key_at (4), key_len (4), 0 (4);
 *                 the key is the block's first
 *      .      .   keys, then the filter
 * D1  Entries are in ascending order of key; of one key in descending order of timestamp.
 * D2  All versions of a key are in one block. */
#ifndef OV_RUN_BLOCK_H
#define OV_RUN_BLOCK_H

#include "server/base/base.h"
#include "server/base/buf.h"
#include "storage/engine.h"

enum { FRAME_HEADER = 16, DATA_HEADER = 16, ENTRY_HEADER = 16, INDEX_HEADER = 16, INDEX_ENTRY = 40 };
enum frame_kind { FRAME_DATA = 1, FRAME_INDEX, FRAME_DIRECTORY };
#define FRAME_RAW_MAX (1024u * 1024 * 1024) /* larger is no frame of ours */

struct data_block { /* a view of checked bytes */
    const uint8_t *p;
    size_t len;
    uint64_t keyspace;
    uint32_t n;
};
struct entry {
    uint8_t kind;
    uint64_t ts;
    struct slice key, value;
};
struct index_view {
    const uint8_t *p;
    size_t len;
    uint32_t n;
    struct slice filter;
};
struct index_entry {
    uint64_t offset, keyspace;
    uint32_t frame_len, raw_len, entries;
    struct slice key;
};

/* Appends a frame around `raw` to *out; stored as it is when compressing gains too little. */
void frame_write(struct buf *out, enum frame_kind kind, enum eng_compression codec, struct slice raw);
/* Checks a frame's header and checksum: returns raw_len, or -1. */
int64_t frame_check(struct slice frame, enum frame_kind kind);
/* Unpacks a checked frame into raw_len bytes at `to`. */
OV_MUST_CHECK bool frame_unpack(struct slice frame, uint8_t *to);

/* Check a whole block; false if anything does not fit. */
OV_MUST_CHECK bool data_block_open(struct slice raw, struct data_block *b);
OV_MUST_CHECK bool index_open(struct slice raw, struct index_view *v);

static inline struct entry data_block_entry(const struct data_block *b, uint32_t i)
{
    const uint8_t *e = b->p + load_le32(b->p + DATA_HEADER + 4 * (size_t)i);
    uint32_t head = load_le32(e);
    size_t key_len = head >> 8;
    return (struct entry){
        .kind = (uint8_t)head,
        .ts = load_le64(e + 8),
        .key = slice_of(e + ENTRY_HEADER, key_len),
        .value = slice_of(e + ENTRY_HEADER + key_len, load_le32(e + 4)),
    };
}
static inline struct slice data_block_key(const struct data_block *b, uint32_t i)
{
    const uint8_t *e = b->p + load_le32(b->p + DATA_HEADER + 4 * (size_t)i);
    return slice_of(e + ENTRY_HEADER, load_le32(e) >> 8);
}
uint32_t data_block_lower_bound(const struct data_block *b,
                                struct slice key); /* the first entry with a key >= key; n if none */

struct index_entry index_get(const struct index_view *v, uint32_t i);
/* The last block whose first key is <= (keyspace, key), as i + 1; 0 if there is none. */
uint32_t index_find(const struct index_view *v, uint64_t keyspace, struct slice key);

#endif
