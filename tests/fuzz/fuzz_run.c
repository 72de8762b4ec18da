/* The pieces of a run file. The first byte says what the rest is: a frame, a data block, an index, a directory, or the middle of a whole
 * run file whose checksums are made right, so that what lies behind them is reached. */
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/crc.h"
#include "storage/run/block.h"
#include "storage/run/filter.h"
#include "storage/run/run_set.h"
#include "tests/lib/file_mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_data(struct slice in)
{
    struct data_block b;
    if (!data_block_open(in, &b))
        return;
    for (uint32_t i = 0; i < b.n; i++) {
        struct entry e = data_block_entry(&b, i);
        OV_ASSERT(data_block_lower_bound(&b, e.key) <= i);
        OV_ASSERT(e.value.n == 0 || e.value.p + e.value.n <= in.p + in.n);
    }
}

static void try_index(struct slice in)
{
    struct index_view v;
    if (!index_open(in, &v))
        return;
    for (uint32_t i = 0; i < v.n; i++) {
        struct index_entry e = index_get(&v, i);
        OV_ASSERT(index_find(&v, e.keyspace, e.key) == i + 1);
        (void)filter_may_have(v.filter, e.offset);
    }
}

static void try_directory(struct slice in)
{
    struct fragment *f;
    size_t n;
    if (run_parse_directory(in, 1 << 20, &f, &n))
        free(f);
}

static void try_frame(struct slice in)
{
    for (int kind = FRAME_DATA; kind <= FRAME_DIRECTORY; kind++) {
        uint8_t *copy = ov_malloc(in.n + 1);
        memcpy(copy, in.p, in.n);
        if (in.n >= FRAME_HEADER) {
            copy[5] = (uint8_t)kind;
            store_le32(copy + 12, (uint32_t)(in.n - FRAME_HEADER));
            store_le32(copy, crc32c(0, copy + 4, in.n - 4));
        }
        int64_t raw = frame_check(slice_of(copy, in.n), (enum frame_kind)kind);
        if (raw >= 0 && raw < 1 << 22) {
            uint8_t *to = ov_malloc((size_t)raw + 1);
            if (frame_unpack(slice_of(copy, in.n), to)) {
                try_data(slice_of(to, (size_t)raw));
                try_index(slice_of(to, (size_t)raw));
            }
            free(to);
        }
        free(copy);
    }
}

/* Puts right the checksums of one data block, one index and a directory of one fragment around the input's bytes, and reads the run. */
static void try_file(struct slice in)
{
    size_t data_len = in.n / 3, index_len = in.n / 3, dir_len = in.n - data_len - index_len;
    struct buf out;
    buf_init(&out);
    frame_write(&out, FRAME_DATA, ENG_COMPRESS_NONE, slice_of(in.p, data_len));
    frame_write(&out, FRAME_INDEX, ENG_COMPRESS_NONE, slice_of(in.p + data_len, index_len));
    size_t dir_at = out.len;
    frame_write(&out, FRAME_DIRECTORY, ENG_COMPRESS_NONE, slice_of(in.p + data_len + index_len, dir_len));
    uint8_t t[RUN_TRAILER] = "OVRUN";
    store_le32(t + 8, RUN_VERSION);
    store_le32(t + 12, (uint32_t)(out.len - dir_at));
    store_le64(t + 16, 1);
    store_le64(t + 24, dir_at);
    store_le32(t + 60, crc32c(0, t, RUN_TRAILER - 4));
    buf_append(&out, t, sizeof(t));
    struct file_mem *disk = file_mem_new();
    const struct file_ops *files = file_mem_ops(disk);
    struct eng_error err;
    struct run *r;
    OV_ASSERT(files->mkdir(files, "runs") == 0);
    file_mem_put(disk, "runs/0000000000000001.run", out.p, out.len);
    if (run_open(files, 1, 1, &r, &err) == ENG_OK) {
        struct run_set *s = run_set_new(&r, 1);
        run_unref(r);
        for (size_t i = 0; i < s->n_tiers; i++) {
            struct tier_iter it;
            tier_iter_init(&it, &s->tiers[i], NULL);
            int steps = 0;
            if (tier_iter_seek(&it, 0, slice_of(NULL, 0), &err) == ENG_OK)
                while (tier_iter_valid(&it) && tier_iter_next(&it, &err) == ENG_OK && ++steps < 1000)
                    ;
            if (tier_iter_seek_before(&it, UINT64_MAX, slice_of(NULL, 0), &err) == ENG_OK)
                while (tier_iter_valid(&it) && tier_iter_prev(&it, &err) == ENG_OK && ++steps < 2000)
                    ;
            tier_iter_deinit(&it);
        }
        run_set_unref(s);
    }
    file_mem_free(disk);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct slice in = slice_of(data + 1, size - 1);
    switch (data[0] % 5) {
    case 0:
        try_frame(in);
        break;
    case 1:
        try_data(in);
        break;
    case 2:
        try_index(in);
        break;
    case 3:
        try_directory(in);
        break;
    default:
        try_file(in);
    }
    return 0;
}
