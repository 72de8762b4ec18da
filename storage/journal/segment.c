/* Segment files: names, headers, making and recycling. A segment is made under a temporary name and gets its own only
 * when it is whole and synced, so a file with a segment's name and a bad header is damage, never an interrupted start.
 * What can go wrong: ENOSPC while making one; the file is removed again, and the caller may try later (R10). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/crc.h"
#include "server/base/rand.h"
#include "storage/journal/journal_private.h"

enum { ZERO_CHUNK = 256 * 1024, ZERO_SYNC = 8 << 20 };

void segment_path(lsn_t first, char out[SEGMENT_PATH_BYTES])
{
    snprintf(out, SEGMENT_PATH_BYTES, "journal/%016" PRIx64 ".oj", first);
}

bool segment_parse_name(const char *name, lsn_t *first)
{
    *first = 0;
    for (int i = 0; i < 16; i++) {
        char c = name[i];
        if (c >= '0' && c <= '9')
            *first = *first << 4 | (lsn_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *first = *first << 4 | (lsn_t)(c - 'a' + 10);
        else
            return false;
    }
    return strcmp(name + 16, ".oj") == 0;
}

static void head_write(uint8_t *p, const struct segment *s, uint32_t epoch)
{
    memcpy(p, SEGMENT_MAGIC, 8);
    store_le32(p + 8, JOURNAL_VERSION);
    store_le64(p + 16, s->first);
    store_le64(p + 24, s->size);
    store_le32(p + 32, s->seed);
    store_le32(p + 36, epoch);
    store_le32(p + 60, crc32c(0, p, 60));
}

/* 0 and fills s; EPROTO: a newer format; EBADMSG: damaged. */
static int head_read(const uint8_t *p, struct segment *s)
{
    if (memcmp(p, SEGMENT_MAGIC, 8) != 0 || load_le32(p + 60) != crc32c(0, p, 60))
        return EBADMSG;
    if (load_le32(p + 8) != JOURNAL_VERSION)
        return EPROTO;
    if (load_le64(p + 16) != s->first)
        return EBADMSG; /* made over, then its renaming was lost: not this segment any more */
    s->size = load_le64(p + 24);
    s->seed = load_le32(p + 32);
    if (s->size < 4 * SEGMENT_HEAD || s->size > SEGMENT_MAX || s->size % JOURNAL_PAGE || s->first % JOURNAL_PAGE ||
        s->first > INT64_MAX - s->size)
        return EBADMSG;
    return 0;
}

int segment_zero(const struct file_ops *fs, struct segment *s, uint64_t from)
{
    static uint8_t zeros[ZERO_CHUNK]; /* never written to: takes neither memory nor room in the program */
    uint64_t unsynced = 0;
    int rc = 0;

    while (rc == 0 && from < s->size) {
        size_t n = (size_t)OV_MIN(s->size - from, (uint64_t)ZERO_CHUNK);
        rc = fs->pwrite(s->f, zeros, n, from);
        from += n;
        unsynced += n;
        if (rc == 0 &&
            unsynced >= ZERO_SYNC) { /* little by little: one big sync would hold up the ones that clients wait for */
            rc = fs->datasync(s->f);
            unsynced = 0;
        }
    }
    return rc;
}

static int head_store(const struct file_ops *fs, struct segment *s, uint32_t epoch)
{
    uint8_t *page = ov_calloc(1, SEGMENT_HEAD);
    int rc;

    head_write(page, s, epoch);
    memcpy(page + SEGMENT_HEAD_COPY, page, RECORD_HEAD);
    rc = fs->pwrite(s->f, page, SEGMENT_HEAD, 0);
    free(page);
    return rc;
}

int segment_make(const struct file_ops *fs, lsn_t first, uint64_t size, uint32_t epoch, struct segment *old,
                 struct segment **out, uint64_t *zeroed)
{
    struct segment *s = old ? old : ov_calloc(1, sizeof(*s));
    char path[SEGMENT_PATH_BYTES];
    int rc;

    *out = NULL;
    *zeroed = 0;
    if (old) {
        OV_ASSERT(old->size == size);
        segment_path(old->first, path);
        rc = fs->rename(fs, path, SEGMENT_TMP);
    } else {
        s->size = size;
        (void)!fs->remove(fs, SEGMENT_TMP); /* left by an attempt whose own clean-up failed */
        rc = fs->open(fs, SEGMENT_TMP, FILE_CREATE | FILE_EXCL, &s->f);
    }
    s->first = first;
    s->next = NULL;
    s->broken = false;
    rand_secure(&s->seed, sizeof(s->seed));
    if (rc == 0 && !old) {
        if ((rc = fs->allocate(s->f, size)) == 0 && (rc = segment_zero(fs, s, SEGMENT_HEAD)) == 0)
            *zeroed = size;
    }
    segment_path(first, path);
    if (rc == 0 && (rc = head_store(fs, s, epoch)) == 0 && (rc = fs->datasync(s->f)) == 0 &&
        (rc = fs->rename(fs, SEGMENT_TMP, path)) == 0) {
        if ((rc = fs->sync_dir(fs, "journal")) == 0) {
            s->file_size = size;
            *out = s;
            return 0;
        }
        (void)!fs->remove(fs, path);
    }
    segment_close(fs, s);
    (void)!fs->remove(fs, SEGMENT_TMP);
    return rc;
}

int segment_open(const struct file_ops *fs, lsn_t first, struct segment **out)
{
    struct segment *s = ov_calloc(1, sizeof(*s));
    uint8_t page[SEGMENT_HEAD];
    char path[SEGMENT_PATH_BYTES];
    size_t got;
    int rc;

    *out = NULL;
    s->first = first;
    segment_path(first, path);
    memset(page, 0, sizeof(page));
    if ((rc = fs->open(fs, path, 0, &s->f)) != 0 || (rc = fs->size(s->f, &s->file_size)) != 0 ||
        (rc = fs->pread(s->f, page, sizeof(page), 0, &got)) != 0)
        goto fail;
    rc = head_read(page, s);
    if (rc == EBADMSG)
        rc = head_read(page + SEGMENT_HEAD_COPY, s);
    if (rc == EBADMSG) {
        s->broken = true;
        s->size = 0;
        rc = 0;
    }
    if (rc == 0) {
        *out = s;
        return 0;
    }
fail:
    segment_close(fs, s);
    return rc;
}

void segment_close(const struct file_ops *fs, struct segment *s)
{
    if (!s)
        return;
    fs->close(s->f);
    free(s);
}

void segment_remove(const struct file_ops *fs, struct segment *s)
{
    char path[SEGMENT_PATH_BYTES];

    segment_path(s->first, path);
    segment_close(fs, s);
    (void)!fs->remove(fs, path); /* if it stays, the next start finds it below its starting point and tries again */
}
