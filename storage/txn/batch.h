/* The payload of a journal batch: bytes <-> mutations. Pure functions; whatever they read may be damaged or hostile.
 *
 * BATCH: little-endian
 *   offset  size  field
 *      0      1   version: 1
 *      1      1   flags: 1 = all mutations share the batch's first timestamp (a multi-document transaction)
 *      2      2   0
 *      4      4   n: mutations
 *      8      .   n mutations, one behind the other, to the payload's end
 * MUTATION
 *      0      1   type: 1 insert, 2 update, 3 delete, 4 splice (an update), 5 drop of a keyspace, 6 log record
 *      1      3   key_len
 *      4      4   value_len
 *      8      8   keyspace (0 for a log record)
 *     16      .   key, then value
 * SPLICE, the value of a mutation of type 4
 *      0      8   base_ts: the version that the edits change
 *      8      4   crc32c of the result
 *     12      4   result_len
 *     16      .   edits to the value's end: offset in the base (4), bytes removed (4), bytes added (4), the bytes added;
 *                 ascending by offset, without overlap
 * B1  Mutation j has the timestamp first_ts + j, whatever its type; or first_ts, by the flag.
 * B2  A batch holds a key once, so that (key, timestamp) names one version (R24).
 * B3  The base of a splice is the newest version before it. Replay refuses a missing base or another result (R24). */
#ifndef OV_BATCH_H
#define OV_BATCH_H

#include "server/base/base.h"
#include "server/base/buf.h"
#include "storage/engine.h"

enum { BATCH_VERSION = 1, BATCH_HEADER = 8, MUTATION_HEADER = 16, SPLICE_HEADER = 16, EDIT_HEADER = 12 };
enum batch_flags { BATCH_ONE_TS = 1 };
enum mutation_type {
    MUT_INSERT = 1,
    MUT_UPDATE,
    MUT_DELETE,
    MUT_SPLICE,
    MUT_DROP,
    MUT_LOG,
};

struct mutation { /* points into the payload */
    enum mutation_type type;
    uint64_t keyspace, ts;
    struct slice key, value;
};

struct batch_reader {
    const uint8_t *at, *end;
    uint64_t ts;
    uint32_t left;
    bool one_ts;
};

/* Starts to read a payload; false if it is no batch of this version. */
OV_MUST_CHECK bool batch_open(struct batch_reader *r, struct slice payload, uint64_t first_ts);
/* The next mutation: 1; 0 at the end; -1 if the bytes make no sense. */
OV_MUST_CHECK int batch_next(struct batch_reader *r, struct mutation *m);

void batch_put_header(uint8_t *at, bool one_ts, uint32_t n);
void batch_put_mutation(uint8_t *at, enum mutation_type type, uint64_t keyspace, size_t key_len, size_t value_len);

/* Bytes that `edits` take as a splice. */
size_t splice_bytes(const struct eng_edit *edits, size_t n);
void splice_put(uint8_t *at, uint64_t base_ts, struct slice result, const struct eng_edit *edits, size_t n);
uint64_t splice_base(struct slice splice); /* 0 if too short to be one */
/* Applies a splice to its base; the result is appended to *out. False if it does not fit or the result's checksum differs;
 * then *out is as it was. Results above `max` are refused before memory is taken. */
OV_MUST_CHECK bool splice_apply(struct slice splice, struct slice base, size_t max, struct buf *out);

#endif
