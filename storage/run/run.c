/* Opening a run, and what its directory of fragments tells. */
#include "storage/run/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/crc.h"
#include "storage/common/key_hash.h"
#include "storage/run/block.h"

static enum eng_result corrupt(struct eng_error *err, uint64_t id, uint64_t at, const char *what)
{
    char path[RUN_PATH_MAX];
    run_path(id, path);
    err->result = ENG_CORRUPT;
    snprintf(err->msg, sizeof(err->msg), "%s at offset %" PRIu64 ": %s", path, at, what);
    return ENG_CORRUPT;
}

bool run_parse_directory(struct slice dir, uint64_t limit, struct fragment **out, size_t *n_out)
{
    *out = NULL;
    *n_out = 0;
    if (dir.n < 8)
        return false;
    size_t n = load_le32(dir.p), at = 8;
    if (n > (dir.n - 8) / RUN_FRAGMENT)
        return false;
    struct fragment *all = ov_calloc(n + 1, sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        if (dir.n - at < RUN_FRAGMENT)
            goto bad;
        const uint8_t *p = dir.p + at;
        size_t first_len = load_le32(p + 32), last_len = load_le32(p + 36);
        at += RUN_FRAGMENT;
        if (first_len > dir.n - at || last_len > dir.n - at - first_len)
            goto bad;
        struct fragment *f = &all[i];
        *f = (struct fragment){
            .index_offset = load_le64(p),
            .index_len = load_le32(p + 8),
            .n_blocks = load_le32(p + 12),
            .first_keyspace = load_le64(p + 16),
            .last_keyspace = load_le64(p + 24),
            .first = slice_of(dir.p + at, first_len),
            .last = slice_of(dir.p + at + first_len, last_len),
            .entries = load_le64(p + 40),
            .deletions = load_le64(p + 48),
            .raw_bytes = load_le64(p + 56),
            .disk_bytes = load_le64(p + 64),
            .min_ts = load_le64(p + 72),
            .max_ts = load_le64(p + 80),
        };
        at += first_len + last_len;
        if (f->index_offset > limit || f->index_len > limit - f->index_offset || f->index_len < FRAME_HEADER ||
            key_cmp(f->first_keyspace, f->first, f->last_keyspace, f->last) > 0)
            goto bad;
        if (i > 0 && key_cmp(f[-1].last_keyspace, f[-1].last, f->first_keyspace, f->first) >= 0) /* F1 */
            goto bad;
    }
    if (at != dir.n)
        goto bad;
    *out = all;
    *n_out = n;
    return true;
bad:
    free(all);
    return false;
}

static enum eng_result read_at(struct run *r, uint8_t *to, size_t n, uint64_t at, struct eng_error *err)
{
    size_t got = 0;
    char path[RUN_PATH_MAX];
    int rc = r->files->pread(r->file, to, n, at, &got);
    run_path(r->id, path);
    if (rc != 0)
        return run_io_error(err, rc, "read", path, at);
    return got == n ? ENG_OK : corrupt(err, r->id, at, "the file is too short");
}

static enum eng_result read_directory(struct run *r, struct eng_error *err)
{
    uint8_t t[RUN_TRAILER];
    uint64_t size;
    int rc = r->files->size(r->file, &size);
    if (rc != 0)
        return run_io_error(err, rc, "read the size of", "a run", 0);
    if (size < RUN_TRAILER)
        return corrupt(err, r->id, 0, "the file is too short");
    enum eng_result res = read_at(r, t, sizeof(t), size - RUN_TRAILER, err);
    if (res != ENG_OK)
        return res;
    if (memcmp(t, "OVRUN\0\0\0", 8) != 0 || crc32c(0, t, RUN_TRAILER - 4) != load_le32(t + 60))
        return corrupt(err, r->id, size - RUN_TRAILER, "the trailer is damaged");
    if (load_le32(t + 8) != RUN_VERSION)
        return corrupt(err, r->id, size - RUN_TRAILER, "a version of the format that this program does not know");
    uint64_t at = load_le64(t + 24), len = load_le32(t + 12);
    if (load_le64(t + 16) != r->id || at > size - RUN_TRAILER || len != size - RUN_TRAILER - at)
        return corrupt(err, r->id, size - RUN_TRAILER, "the trailer is another run's, or the file was cut");
    r->bytes = size;
    r->entries = load_le64(t + 32);
    r->min_ts = load_le64(t + 40);
    r->max_ts = load_le64(t + 48);
    uint8_t *frame = ov_malloc(len);
    res = read_at(r, frame, len, at, err);
    if (res == ENG_OK) {
        int64_t raw = frame_check(slice_of(frame, len), FRAME_DIRECTORY);
        if (raw >= 0)
            r->directory = ov_malloc((size_t)raw + 1);
        if (raw < 0 || !frame_unpack(slice_of(frame, len), r->directory) ||
            !run_parse_directory(slice_of(r->directory, (size_t)raw), at, &r->fragments, &r->n_fragments))
            res = corrupt(err, r->id, at, "the directory is damaged");
    }
    free(frame);
    return res;
}

enum eng_result run_open(const struct file_ops *files, uint64_t id, uint64_t order, struct run **out,
                         struct eng_error *err)
{
    char path[RUN_PATH_MAX];
    struct run *r = ov_calloc(1, sizeof(*r));
    *out = NULL;
    *r = (struct run){.id = id, .order = order, .files = files, .refs = 1};
    run_path(id, path);
    int rc = files->open(files, path, FILE_READONLY, &r->file);
    enum eng_result res = rc != 0 ? run_io_error(err, rc, "open", path, 0) : read_directory(r, err);
    if (res != ENG_OK) {
        run_unref(r);
        return res;
    }
    *out = r;
    return ENG_OK;
}

void run_ref(struct run *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
}

void run_unref(struct run *r)
{
    if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    r->files->close(r->file);
    if (atomic_load(&r->doomed)) {
        char path[RUN_PATH_MAX];
        run_path(r->id, path);
        (void)r->files->remove(r->files, path); /* else the next start does it */
    }
    free(r->fragments);
    free(r->directory);
    free(r);
}

bool run_overlap(const struct run *a, const struct run *b)
{
    size_t i = 0, j = 0;
    while (i < a->n_fragments && j < b->n_fragments) {
        const struct fragment *x = &a->fragments[i], *y = &b->fragments[j];
        if (key_cmp(x->last_keyspace, x->last, y->first_keyspace, y->first) < 0)
            i++;
        else if (key_cmp(y->last_keyspace, y->last, x->first_keyspace, x->first) < 0)
            j++;
        else
            return true;
    }
    return false;
}

bool run_covers(const struct run *r, uint64_t keyspace, struct slice key)
{
    size_t lo = 0, hi = r->n_fragments;
    while (lo < hi) { /* the first fragment that ends at or after the key */
        size_t mid = (lo + hi) / 2;
        if (key_cmp(r->fragments[mid].last_keyspace, r->fragments[mid].last, keyspace, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < r->n_fragments && key_cmp(r->fragments[lo].first_keyspace, r->fragments[lo].first, keyspace, key) <= 0;
}
