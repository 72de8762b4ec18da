/* Writes a run. Entries fill a block; a full block, or the end of its keyspace, makes a frame; frames gather in a buffer that is written by
 * the megabyte. A fragment ends with its index: where a big keyspace begins or ends, and where it has grown enough.
 *
 * What can go wrong is the disk: the file is then removed, and the caller may try again under another id. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/crc.h"
#include "storage/common/key_hash.h"
#include "storage/run/block.h"
#include "storage/run/filter.h"
#include "storage/run/run.h"

enum {
    BLOCK_BYTES = 16 * 1024,
    FRAGMENT_BLOCKS = 1024,      /* keeps an index under about 200 KiB */
    FRAGMENT_ALONE = 256 * 1024, /* a keyspace of so many bytes shares its fragment with no other */
    WRITE_BYTES = 1024 * 1024,
};

struct run_writer {
    const struct file_ops *files;
    struct file *file;
    char path[RUN_PATH_MAX];
    uint64_t id;
    enum eng_compression codec;
    bool finished;
    struct buf out;   /* not yet written */
    uint64_t written; /* file offset of out's start */
    /* the block being filled */
    struct buf entries; /* entries, offsets relative to the first */
    uint32_t *starts;
    uint32_t n, cap;
    uint64_t keyspace;
    struct buf last_key;
    uint64_t last_ts;
    /* the fragment */
    struct buf index, index_keys;
    uint64_t *hashes; /* of its keys */
    size_t n_hashes, hashes_cap;
    struct buf first_key; /* of the fragment */
    struct fragment frag;
    uint64_t keyspace_bytes; /* of the current keyspace in this fragment */
    /* the file */
    struct buf directory;
    uint32_t n_fragments;
    uint64_t entries_all, min_ts, max_ts;
    struct buf scratch;
};

enum eng_result run_io_error(struct eng_error *err, int errnum, const char *what, const char *path, uint64_t at)
{
    err->result = errnum == ENOSPC || errnum == EDQUOT ? ENG_DISK_FULL : ENG_IO;
    snprintf(err->msg, sizeof(err->msg), "cannot %s %s at offset %" PRIu64 ": %s", what, path, at, strerror(errnum));
    return err->result;
}

void run_path(uint64_t id, char out[RUN_PATH_MAX])
{
    snprintf(out, RUN_PATH_MAX, "runs/%016" PRIx64 ".run", id);
}

enum eng_result run_writer_new(const struct file_ops *files, uint64_t id, enum eng_compression codec,
                               struct run_writer **out, struct eng_error *err)
{
    struct run_writer *w = ov_calloc(1, sizeof(*w));
    *out = NULL;
    w->files = files;
    w->id = id;
    w->codec = codec;
    run_path(id, w->path);
    int rc = files->open(files, w->path, FILE_CREATE, &w->file);
    if (rc == 0)
        rc = files->truncate(w->file, 0); /* left over from a crash */
    if (rc != 0) {
        run_writer_free(w);
        return run_io_error(err, rc, "create", "a run", 0);
    }
    buf_reserve(&w->out, WRITE_BYTES + 2 * BLOCK_BYTES);
    *out = w;
    return ENG_OK;
}

void run_writer_free(struct run_writer *w)
{
    if (!w)
        return;
    w->files->close(w->file);
    if (!w->finished && w->file)
        (void)w->files->remove(w->files, w->path); /* else the next start does it */
    buf_free(&w->out);
    buf_free(&w->entries);
    buf_free(&w->last_key);
    buf_free(&w->index);
    buf_free(&w->index_keys);
    buf_free(&w->first_key);
    buf_free(&w->directory);
    buf_free(&w->scratch);
    free(w->starts);
    free(w->hashes);
    free(w);
}

static enum eng_result flush_out(struct run_writer *w, size_t at_least, struct eng_error *err)
{
    if (w->out.len < at_least || w->out.len == 0)
        return ENG_OK;
    int rc = w->files->pwrite(w->file, w->out.p, w->out.len, w->written);
    if (rc != 0)
        return run_io_error(err, rc, "write", w->path, w->written);
    w->written += w->out.len;
    w->out.len = 0;
    return ENG_OK;
}

uint64_t run_writer_bytes(const struct run_writer *w)
{
    return w->written + w->out.len + w->entries.len;
}

bool run_writer_same_key(const struct run_writer *w, uint64_t keyspace, struct slice key)
{
    return w->entries_all && key_cmp(w->keyspace, buf_slice(&w->last_key), keyspace, key) == 0;
}

static enum eng_result end_block(struct run_writer *w, struct eng_error *err)
{
    if (w->n == 0)
        return ENG_OK;
    size_t head = DATA_HEADER + 4 * (size_t)w->n;
    w->scratch.len = 0;
    uint8_t *p = buf_reserve(&w->scratch, head + w->entries.len);
    memset(p, 0, DATA_HEADER);
    store_le64(p, w->keyspace);
    store_le32(p + 8, w->n);
    for (uint32_t i = 0; i < w->n; i++)
        store_le32(p + DATA_HEADER + 4 * (size_t)i, (uint32_t)head + w->starts[i]);
    memcpy(p + head, w->entries.p, w->entries.len);
    w->scratch.len = head + w->entries.len;

    uint64_t offset = w->written + w->out.len;
    frame_write(&w->out, FRAME_DATA, w->codec, buf_slice(&w->scratch));
    uint64_t frame_len = w->written + w->out.len - offset;
    size_t key_len = load_le32(w->entries.p) >> 8;
    buf_le64(&w->index, offset);
    buf_le64(&w->index, w->keyspace);
    buf_le32(&w->index, (uint32_t)frame_len);
    buf_le32(&w->index, (uint32_t)w->scratch.len);
    buf_le32(&w->index, w->n);
    buf_le32(&w->index, (uint32_t)w->index_keys.len); /* made absolute when the number of blocks is known */
    buf_le32(&w->index, (uint32_t)key_len);
    buf_le32(&w->index, 0);
    buf_append(&w->index_keys, w->entries.p + ENTRY_HEADER, key_len);
    w->frag.n_blocks++;
    w->frag.disk_bytes += frame_len;
    w->frag.raw_bytes += w->scratch.len;
    w->entries.len = 0;
    w->n = 0;
    return flush_out(w, WRITE_BYTES, err);
}

static void write_index(struct run_writer *w)
{
    struct buf *b = &w->scratch;
    size_t filter_len = filter_bytes(w->n_hashes), keys_at = INDEX_HEADER + w->index.len;
    b->len = 0;
    buf_le32(b, w->frag.n_blocks);
    buf_le32(b, (uint32_t)filter_len);
    buf_le64(b, 0);
    for (uint32_t i = 0; i < w->frag.n_blocks; i++) {
        uint8_t *key_at = w->index.p + INDEX_ENTRY * (size_t)i + 28;
        store_le32(key_at, load_le32(key_at) + (uint32_t)keys_at);
    }
    buf_append(b, w->index.p, w->index.len);
    buf_append(b, w->index_keys.p, w->index_keys.len);
    uint8_t *filter = buf_reserve(b, filter_len);
    memset(filter, 0, filter_len);
    for (size_t i = 0; i < w->n_hashes; i++)
        filter_add(filter, filter_len, w->hashes[i]);
    b->len += filter_len;
    frame_write(&w->out, FRAME_INDEX, ENG_COMPRESS_NONE, buf_slice(b)); /* filters do not compress */
}

static enum eng_result end_fragment(struct run_writer *w, struct eng_error *err)
{
    enum eng_result r = end_block(w, err);
    if (r != ENG_OK || w->frag.n_blocks == 0)
        return r;
    struct fragment *f = &w->frag;
    f->index_offset = w->written + w->out.len;
    write_index(w);
    f->index_len = (uint32_t)(w->written + w->out.len - f->index_offset);
    f->disk_bytes += f->index_len;
    struct buf *d = &w->directory;
    buf_le64(d, f->index_offset);
    buf_le32(d, f->index_len);
    buf_le32(d, f->n_blocks);
    buf_le64(d, f->first_keyspace);
    buf_le64(d, w->keyspace);
    buf_le32(d, (uint32_t)w->first_key.len);
    buf_le32(d, (uint32_t)w->last_key.len);
    buf_le64(d, f->entries);
    buf_le64(d, f->deletions);
    buf_le64(d, f->raw_bytes);
    buf_le64(d, f->disk_bytes);
    buf_le64(d, f->min_ts);
    buf_le64(d, f->max_ts);
    buf_append(d, w->first_key.p, w->first_key.len);
    buf_append(d, w->last_key.p, w->last_key.len);
    w->n_fragments++;
    w->index.len = w->index_keys.len = 0;
    w->n_hashes = 0;
    *f = (struct fragment){0};
    return flush_out(w, WRITE_BYTES, err);
}

/* A key that the current block does not hold: closes what is full. */
static enum eng_result start_key(struct run_writer *w, uint64_t keyspace, struct slice key, struct eng_error *err)
{
    enum eng_result r = ENG_OK;
    bool other = w->n && w->keyspace != keyspace;
    if (other && w->keyspace_bytes >= FRAGMENT_ALONE)
        r = end_fragment(w, err);
    else if (other || w->entries.len >= BLOCK_BYTES)
        r = w->frag.n_blocks + 1 >= FRAGMENT_BLOCKS ? end_fragment(w, err) : end_block(w, err);
    if (r != ENG_OK)
        return r;
    if (other || w->entries_all == 0)
        w->keyspace_bytes = 0;
    w->keyspace = keyspace;
    if (w->frag.entries == 0) {
        w->frag.first_keyspace = keyspace;
        w->first_key.len = 0;
        buf_append(&w->first_key, key.p, key.n);
        w->frag.min_ts = UINT64_MAX;
    }
    if (w->n_hashes == w->hashes_cap) {
        w->hashes_cap = OV_MAX(1024, w->hashes_cap * 2);
        w->hashes = ov_realloc(w->hashes, w->hashes_cap * sizeof(*w->hashes));
    }
    w->hashes[w->n_hashes++] = key_hash(keyspace, key);
    return ENG_OK;
}

enum eng_result run_writer_add(struct run_writer *w, uint64_t keyspace, struct slice key, uint64_t ts, uint8_t kind,
                               struct slice value, struct eng_error *err)
{
    int c = w->entries_all ? key_cmp(w->keyspace, buf_slice(&w->last_key), keyspace, key) : -1;
    OV_ASSERT(c < 0 || (c == 0 && ts < w->last_ts)); /* D1 */
    if (c < 0) {
        enum eng_result r = start_key(w, keyspace, key, err);
        if (r != ENG_OK)
            return r;
        w->last_key.len = 0;
        buf_append(&w->last_key, key.p, key.n);
    }
    w->last_ts = ts;
    if (w->n == w->cap) {
        w->cap = OV_MAX(256, w->cap * 2);
        w->starts = ov_realloc(w->starts, w->cap * sizeof(*w->starts));
    }
    w->starts[w->n++] = (uint32_t)w->entries.len;
    uint8_t *e = buf_reserve(&w->entries, ENTRY_HEADER);
    store_le32(e, (uint32_t)kind | (uint32_t)key.n << 8);
    store_le32(e + 4, (uint32_t)value.n);
    store_le64(e + 8, ts);
    w->entries.len += ENTRY_HEADER;
    buf_append(&w->entries, key.p, key.n);
    buf_append(&w->entries, value.p, value.n);
    struct fragment *f = &w->frag;
    f->entries++;
    f->deletions += kind == 3;
    f->min_ts = OV_MIN(f->min_ts, ts);
    f->max_ts = OV_MAX(f->max_ts, ts);
    w->min_ts = w->entries_all ? OV_MIN(w->min_ts, ts) : ts;
    w->max_ts = OV_MAX(w->max_ts, ts);
    w->entries_all++;
    w->keyspace_bytes += ENTRY_HEADER + key.n + value.n;
    return ENG_OK;
}

enum eng_result run_writer_finish(struct run_writer *w, uint64_t *bytes, uint64_t *min_ts, uint64_t *max_ts,
                                  struct eng_error *err)
{
    enum eng_result r = end_fragment(w, err);
    if (r != ENG_OK)
        return r;
    uint64_t offset = w->written + w->out.len;
    w->scratch.len = 0;
    buf_le32(&w->scratch, w->n_fragments);
    buf_le32(&w->scratch, 0);
    buf_append(&w->scratch, w->directory.p, w->directory.len);
    frame_write(&w->out, FRAME_DIRECTORY, w->codec, buf_slice(&w->scratch));
    uint8_t *t = buf_reserve(&w->out, RUN_TRAILER);
    uint32_t dir_len = (uint32_t)(w->written + w->out.len - offset);
    memset(t, 0, RUN_TRAILER);
    memcpy(t, "OVRUN", 5);
    store_le32(t + 8, RUN_VERSION);
    store_le32(t + 12, dir_len);
    store_le64(t + 16, w->id);
    store_le64(t + 24, offset);
    store_le64(t + 32, w->entries_all);
    store_le64(t + 40, w->min_ts);
    store_le64(t + 48, w->max_ts);
    store_le32(t + 60, crc32c(0, t, RUN_TRAILER - 4));
    w->out.len += RUN_TRAILER;
    if ((r = flush_out(w, 0, err)) != ENG_OK)
        return r;
    int rc = w->files->datasync(w->file);
    if (rc != 0)
        return run_io_error(err, rc, "sync", w->path, w->written);
    w->finished = true;
    *bytes = w->written;
    *min_ts = w->min_ts;
    *max_ts = w->max_ts;
    return ENG_OK;
}
