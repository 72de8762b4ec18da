/* Manifest files from anywhere: opening never crashes, and what it accepts is the same state when opened a second time.
 * First byte even: the rest is the manifest file as it is. Odd: the rest is payloads, each behind its length (2 bytes),
 * which are sealed with the right checksums, so that the fuzzer gets behind them. */
#include <stdint.h>
#include <stdlib.h>

#include "server/base/assert.h"
#include "server/base/crc.h"
#include "storage/manifest/manifest_private.h"
#include "tests/lib/file_mem.h"

#define NAME "MANIFEST-0000000000000005"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void seal_all(struct buf *b, const uint8_t *d, size_t n)
{
    uint8_t *p = buf_reserve(b, MANIFEST_HEAD);

    memset(p, 0, MANIFEST_HEAD);
    memcpy(p, MANIFEST_MAGIC, 8);
    store_le32(p + 8, MANIFEST_VERSION);
    store_le64(p + 16, 5);
    store_le32(p + 28, crc32c(0, p, 28));
    b->len = MANIFEST_HEAD;
    for (uint64_t number = 0; n >= 2; number++) {
        size_t len = OV_MIN((size_t)load_le16(d), n - 2), at = b->len;
        buf_le32(b, 0);
        buf_le32(b, (uint32_t)len);
        buf_le64(b, number);
        buf_append(b, d + 2, len);
        store_le32(b->p + at, crc32c(0, b->p + at + 4, EDIT_HEAD - 4 + len));
        while (b->len % 8)
            buf_byte(b, 0);
        d += 2 + len;
        n -= 2 + len;
    }
}

/* The state as bytes, or an empty buffer if it is refused. */
static void open_once(struct file_mem *disk, struct buf *out)
{
    struct manifest *m;
    struct eng_error err;

    buf_init(out);
    if (manifest_open(file_mem_ops(disk), &m, &err) != ENG_OK)
        return;
    const struct manifest_state *s = manifest_state(m);
    edit_encode(&(struct manifest_edit){.add = s->runs,
                                        .n_add = s->n_runs,
                                        .counts = s->counts,
                                        .n_counts = s->n_counts,
                                        .drops = s->drops,
                                        .n_drops = s->n_drops,
                                        .replay_from = s->replay_from,
                                        .synced = s->synced,
                                        .max_ts = s->max_ts,
                                        .epoch = s->epoch},
                s->next_run_id, out);
    manifest_close(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct file_mem *disk;
    struct buf file, a, b;

    if (size == 0 || size > 256 * 1024)
        return 0;
    disk = file_mem_new();
    buf_init(&file);
    if (data[0] & 1)
        seal_all(&file, data + 1, size - 1);
    else
        buf_append(&file, data + 1, size - 1);
    file_mem_put(disk, "CURRENT", NAME "\n", sizeof(NAME));
    file_mem_put(disk, NAME, file.p, file.len);
    open_once(disk, &a);
    if (a.len) {
        open_once(disk, &b);
        OV_ASSERT(slice_eq(buf_slice(&a), buf_slice(&b)));
        buf_free(&b);
    }
    buf_free(&a);
    buf_free(&file);
    file_mem_free(disk);
    return 0;
}
