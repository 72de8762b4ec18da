/* Journal files from anywhere: opening never crashes, and what it accepts it shows again, unchanged, when opened a
 * second time.
 * First byte even: the rest is the first segment file as it is. Odd: the rest describes records, 16 bytes each, which
 * are sealed with the right checksums and laid out over two segments, so that the fuzzer gets behind the checksums:
 *   type, flags, epoch, damage (1: payload, 2: header, 4: to the second segment, 8: skip 8 bytes), payload length (2),
 *   synced_lsn as an offset before the record (2), first_ts (4), count (4) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/assert.h"
#include "server/base/crc.h"
#include "storage/journal/journal_private.h"
#include "tests/lib/file_mem.h"

enum { SEGMENT = 16 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum;

static enum eng_result add_up(void *arg, const struct journal_record *r, struct eng_error *err)
{
    sum = sum * 31 + crc32c((uint32_t)r->first_ts, r->payload.p, r->payload.n) + r->count;
    return ENG_OK;
}

static void make_segment(uint8_t *p, lsn_t first)
{
    memset(p, 0, SEGMENT);
    memcpy(p, SEGMENT_MAGIC, 8);
    store_le32(p + 8, JOURNAL_VERSION);
    store_le64(p + 16, first);
    store_le64(p + 24, SEGMENT);
    store_le32(p + 60, crc32c(0, p, 60));
}

static void lay_out(struct file_mem *disk, const uint8_t *d, size_t n)
{
    static uint8_t file[2][SEGMENT];
    struct segment s = {.size = SEGMENT};
    size_t at = SEGMENT_HEAD;
    int k = 0;

    make_segment(file[0], 0);
    make_segment(file[1], SEGMENT);
    for (; n >= 16; d += 16, n -= 16) {
        struct record_head h = {
            .type = d[0] % 5, .flags = d[1], .epoch = d[2], .version = JOURNAL_VERSION, .len = load_le16(d + 4)};
        if ((d[3] & 4) && k == 0) {
            k = 1;
            at = SEGMENT_HEAD;
        }
        at += d[3] & 8;
        if (h.type == JOURNAL_PAD && at + RECORD_HEAD <= SEGMENT)
            h.len = (uint32_t)(SEGMENT - at - RECORD_HEAD);
        if (at > SEGMENT || record_bytes(h.len) > SEGMENT - at)
            continue;
        h.lsn = (lsn_t)k * SEGMENT + at;
        h.synced_lsn = h.lsn - OV_MIN(h.lsn, (uint64_t)load_le16(d + 6));
        h.first_ts = load_le32(d + 8);
        h.count = load_le32(d + 12);
        memset(file[k] + at + RECORD_HEAD, d[0], h.len);
        h.payload_crc = crc32c(0, file[k] + at + RECORD_HEAD, h.len);
        record_seal(&h, s.seed);
        memcpy(file[k] + at, &h, RECORD_HEAD);
        if (d[3] & 1)
            file[k][at + record_bytes(h.len) - 1] ^= 1;
        if (d[3] & 2)
            file[k][at + 20] ^= 1;
        at += record_bytes(h.len);
    }
    file_mem_put(disk, "journal/0000000000000000.oj", file[0], SEGMENT);
    file_mem_put(disk, "journal/0000000000004000.oj", file[1], SEGMENT);
}

static enum eng_result open_once(struct file_mem *disk, uint64_t *last_ts)
{
    struct journal_options o = {
        .files = file_mem_ops(disk), .segment_bytes = SEGMENT, .commit_interval_ms = 100, .manual = true};
    struct journal *j;
    struct eng_error err;
    enum eng_result r;

    sum = 0;
    r = journal_open(&o, add_up, NULL, &j, last_ts, &err);
    journal_close(j);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct file_mem *disk;
    const struct file_ops *fs;
    uint64_t before, ts, ts2;

    if (size == 0 || size > 256 * 1024)
        return 0;
    disk = file_mem_new();
    fs = file_mem_ops(disk);
    OV_ASSERT(fs->mkdir(fs, "journal") == 0);
    if (data[0] & 1)
        lay_out(disk, data + 1, size - 1);
    else
        file_mem_put(disk, "journal/0000000000000000.oj", data + 1, size - 1);
    file_mem_set_capacity(disk, 4 << 20); /* a forged size must not cost real space */
    if (open_once(disk, &ts) == ENG_OK) {
        before = sum;
        OV_ASSERT(open_once(disk, &ts2) == ENG_OK);
        OV_ASSERT(sum == before);
        OV_ASSERT(ts2 >= ts); /* R11 */
    }
    file_mem_free(disk);
    return 0;
}
