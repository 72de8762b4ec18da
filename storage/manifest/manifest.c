/* The manifest on disk: CURRENT names a file of edits, of which the first is the whole state. Every opening, and every
 * file that has grown large, starts a new file and swaps CURRENT by rename; so what was read but perhaps never synced
 * (R5) is durable before it is built upon, and a torn last edit is never written behind.
 * What can go wrong: a full disk, which leaves the file as it was (the next edit goes to the same place); any other
 * failure, after which it is unknown what the disk holds, and nothing is accepted until restart. */
#include "storage/manifest/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/crc.h"
#include "server/base/rand.h"
#include "storage/manifest/manifest_private.h"

#define CURRENT       "CURRENT"
#define CURRENT_TMP   "CURRENT.tmp"
#define CURRENT_BYTES 26

enum { MANIFEST_STEP = 64 * 1024, MANIFEST_SWAP_MIN = 1 << 20, MANIFEST_SWAP_FACTOR = 4 };
#define MANIFEST_MAX ((uint64_t)1 << 32)

struct manifest {
    const struct file_ops *fs;
    struct file *f;
    uint64_t number; /* of the file in force */
    uint32_t seed;
    uint64_t end, allocated; /* the next edit goes to `end` */
    uint64_t first_end;      /* end of the first edit: the size of a state */
    uint64_t n_edits;
    bool failed;
    struct state state;
};

static void manifest_path(uint64_t number, char out[32])
{
    snprintf(out, 32, "MANIFEST-%016" PRIx64, number);
}

static bool parse_name(const char *name, size_t n, uint64_t *number)
{
    *number = 0;
    if (n != 25 || memcmp(name, "MANIFEST-", 9) != 0)
        return false;
    for (int i = 9; i < 25; i++) {
        if (name[i] >= '0' && name[i] <= '9')
            *number = *number << 4 | (uint64_t)(name[i] - '0');
        else if (name[i] >= 'a' && name[i] <= 'f')
            *number = *number << 4 | (uint64_t)(name[i] - 'a' + 10);
        else
            return false;
    }
    return true;
}

static enum eng_result io_failed(struct eng_error *err, int rc, const char *what, const char *path)
{
    err->result = rc == ENOSPC || rc == EDQUOT ? ENG_DISK_FULL : ENG_IO;
    snprintf(err->msg, sizeof(err->msg), "%s %s: %s", what, path, strerror(rc));
    return err->result;
}

static enum eng_result corrupt(struct eng_error *err, const char *path, const char *what, uint64_t offset)
{
    err->result = ENG_CORRUPT;
    snprintf(err->msg, sizeof(err->msg), "%s %s at offset %" PRIu64, path, what, offset);
    return ENG_CORRUPT;
}

/* ---- writing ---- */

/* Room for an edit's header; the payload is appended behind it, then seal_edit is called. */
static size_t begin_edit(struct buf *b)
{
    size_t at = b->len;
    memset(buf_reserve(b, EDIT_HEAD), 0, EDIT_HEAD);
    b->len += EDIT_HEAD;
    return at;
}

static void seal_edit(struct buf *b, size_t at, uint32_t seed, uint64_t number)
{
    size_t n = b->len - at - EDIT_HEAD;

    OV_ASSERT(n <= UINT32_MAX);
    store_le32(b->p + at + 4, (uint32_t)n);
    store_le64(b->p + at + 8, number);
    store_le32(b->p + at, crc32c(seed, b->p + at + 4, EDIT_HEAD - 4 + n));
    while (b->len % 8)
        buf_byte(b, 0);
}

static int write_current(const struct file_ops *fs, uint64_t number)
{
    char text[32];
    struct file *f = NULL;
    int rc;

    manifest_path(number, text);
    text[CURRENT_BYTES - 1] = '\n';
    if ((rc = fs->open(fs, CURRENT_TMP, FILE_CREATE, &f)) == 0 && (rc = fs->truncate(f, 0)) == 0 &&
        (rc = fs->pwrite(f, text, CURRENT_BYTES, 0)) == 0)
        rc = fs->datasync(f);
    fs->close(f);
    return rc;
}

static void make_file_head(struct manifest *next, struct buf *b)
{
    uint8_t *p = buf_reserve(b, MANIFEST_HEAD);

    memset(p, 0, MANIFEST_HEAD);
    memcpy(p, MANIFEST_MAGIC, 8);
    store_le32(p + 8, MANIFEST_VERSION);
    store_le32(p + 12, next->seed);
    store_le64(p + 16, next->number);
    store_le32(p + 28, crc32c(0, p, 28));
    b->len += MANIFEST_HEAD;
}

/* Writes the whole state to a new file and makes it the one in force. *swapped: CURRENT may already name it, so after a
 * failure the old one must not be written to any more. */
static int start_file(struct manifest *m, bool *swapped, const char **what, char path[32])
{
    struct manifest next = {.number = m->number + 1, .n_edits = 1};
    const struct file_ops *fs = m->fs;
    char old[32];
    struct buf b;
    size_t at;
    int rc;

    *swapped = false;
    buf_init(&b);
    rand_secure(&next.seed, sizeof(next.seed));
    make_file_head(&next, &b);
    at = begin_edit(&b);
    state_encode(&m->state, &b);
    seal_edit(&b, at, next.seed, 0);
    next.end = next.first_end = b.len;
    next.allocated = (b.len / MANIFEST_STEP + 1) * MANIFEST_STEP;

    manifest_path(next.number, path);
    *what = "cannot write";
    if ((rc = fs->open(fs, path, FILE_CREATE, &next.f)) == 0 && (rc = fs->truncate(next.f, 0)) == 0 &&
        (rc = fs->allocate(next.f, next.allocated)) == 0 && (rc = fs->pwrite(next.f, b.p, b.len, 0)) == 0 &&
        (rc = fs->datasync(next.f)) == 0 && (rc = fs->sync_dir(fs, "")) == 0 &&
        (rc = write_current(fs, next.number)) == 0) {
        *what = "cannot make current";
        *swapped = true;
        if ((rc = fs->rename(fs, CURRENT_TMP, CURRENT)) == 0)
            rc = fs->sync_dir(fs, "");
    }
    buf_free(&b);
    if (rc != 0) {
        fs->close(next.f);
        if (!*swapped)
            (void)!fs->remove(fs, path);
        return rc;
    }
    fs->close(m->f);
    if (m->number) {
        manifest_path(m->number, old);
        (void)!fs->remove(fs, old); /* if it stays, the next opening removes it */
    }
    m->f = next.f;
    m->number = next.number;
    m->seed = next.seed;
    m->end = next.end;
    m->allocated = next.allocated;
    m->first_end = next.first_end;
    m->n_edits = 1;
    return 0;
}

static int append_edit(struct manifest *m, const struct buf *b)
{
    uint64_t need = m->end + b->len;
    int rc = 0;

    if (need > m->allocated) { /* a full disk shows here, before anything is written */
        uint64_t size = (need / MANIFEST_STEP + 1) * MANIFEST_STEP;
        if ((rc = m->fs->allocate(m->f, size)) != 0)
            return rc;
        m->allocated = size;
    }
    if ((rc = m->fs->pwrite(m->f, b->p, b->len, m->end)) != 0)
        return rc;
    rc = m->fs->datasync(m->f);
    if (rc != 0)
        m->failed = true; /* whatever the reason: what the disk holds is unknown */
    return rc;
}

enum eng_result manifest_apply(struct manifest *m, const struct manifest_edit *edit, struct eng_error *err)
{
    char path[32];
    const char *what;
    struct buf b;
    size_t at;
    int rc;

    *err = (struct eng_error){0};
    manifest_path(m->number, path);
    if (m->failed) {
        err->result = ENG_READ_ONLY;
        snprintf(err->msg, sizeof(err->msg), "%s is not written to any more after an earlier failure", path);
        return ENG_READ_ONLY;
    }
    OV_ASSERT(edit_fits(&m->state, edit));
    buf_init(&b);
    at = begin_edit(&b);
    edit_encode(edit, m->state.s.next_run_id, &b);
    seal_edit(&b, at, m->seed, m->n_edits);
    rc = append_edit(m, &b);
    if (rc == 0) {
        m->end += b.len;
        m->n_edits++;
        OV_ASSERT(state_apply(&m->state, slice_of(b.p + at + EDIT_HEAD, load_le32(b.p + at + 4))));
    }
    buf_free(&b);
    if (rc != 0) {
        enum eng_result res = io_failed(err, rc, "cannot write", path);
        if (res != ENG_DISK_FULL || m->failed) {
            m->failed = true;
            err->result = res = ENG_IO;
        }
        return res;
    }
    if (m->end > MANIFEST_SWAP_MIN && m->end > MANIFEST_SWAP_FACTOR * m->first_end) {
        bool swapped;
        if (start_file(m, &swapped, &what, path) != 0 && swapped)
            m->failed = true; /* the edit itself is done; the next one is refused */
    }
    return ENG_OK;
}

/* ---- opening ---- */

struct leftovers {
    uint64_t *v;
    size_t n;
};

static void note_leftover(void *arg, const char *name)
{
    struct leftovers *l = arg;
    uint64_t number;

    if (parse_name(name, strlen(name), &number)) {
        l->v = ov_realloc(l->v, (l->n + 1) * sizeof(*l->v));
        l->v[l->n++] = number;
    }
}

static bool edit_valid(const uint8_t *p, uint64_t at, uint64_t size, uint32_t seed, uint64_t *number)
{
    uint64_t len;

    if (size - at < EDIT_HEAD)
        return false;
    len = load_le32(p + at + 4);
    *number = load_le64(p + at + 8);
    return len >= EDIT_FIXED && len <= size - at - EDIT_HEAD &&
           load_le32(p + at) == crc32c(seed, p + at + 4, (size_t)(EDIT_HEAD - 4 + len));
}

/* M2: an edit is synced before the next one is written, so a valid one behind a bad one means rot. */
static bool any_edit_behind(const uint8_t *p, uint64_t at, uint64_t size, uint32_t seed, uint64_t above)
{
    uint64_t number;

    for (; size - at >= EDIT_HEAD; at += 8) {
        uint64_t n = load_le64(p + at + 8);
        if (n < above || n > above + size / EDIT_HEAD) /* cheap, before the checksum of perhaps very many bytes */
            continue;
        if (edit_valid(p, at, size, seed, &number))
            return true;
    }
    return false;
}

static enum eng_result parse(struct manifest *m, const uint8_t *p, uint64_t size, const char *path,
                             struct eng_error *err)
{
    uint64_t at = MANIFEST_HEAD, number, n = 0;

    if (size < MANIFEST_HEAD || memcmp(p, MANIFEST_MAGIC, 8) != 0 || load_le32(p + 28) != crc32c(0, p, 28) ||
        load_le64(p + 16) != m->number)
        return corrupt(err, path, "is damaged", 0);
    if (load_le32(p + 8) != MANIFEST_VERSION)
        return corrupt(err, path, "is of a newer format; see the version", 8);
    m->seed = load_le32(p + 12);
    while (edit_valid(p, at, size, m->seed, &number) && number == n) {
        uint32_t len = load_le32(p + at + 4);
        if (!state_apply(&m->state, slice_of(p + at + EDIT_HEAD, len)))
            return corrupt(err, path, "holds an edit that does not fit the ones before it,", at);
        at = OV_MIN(size, at + ((EDIT_HEAD + (uint64_t)len + 7) & ~(uint64_t)7));
        n++;
    }
    if (n == 0 || any_edit_behind(p, at, size, m->seed, n))
        return corrupt(err, path, "is damaged", at);
    return ENG_OK;
}

static enum eng_result read_file(struct manifest *m, struct eng_error *err)
{
    const struct file_ops *fs = m->fs;
    struct file *f = NULL;
    char path[32];
    uint8_t *p = NULL;
    uint64_t size = 0;
    size_t got = 0;
    enum eng_result res;
    int rc;

    manifest_path(m->number, path);
    rc = fs->open(fs, path, FILE_READONLY, &f);
    if (rc == ENOENT) {
        err->result = ENG_CORRUPT;
        snprintf(err->msg, sizeof(err->msg), "%s, which CURRENT names, is missing", path);
        return ENG_CORRUPT;
    }
    if (rc == 0 && (rc = fs->size(f, &size)) == 0 && size <= MANIFEST_MAX) {
        p = ov_malloc((size_t)size + 1);
        rc = fs->pread(f, p, (size_t)size, 0, &got);
    }
    if (rc != 0)
        res = io_failed(err, rc, "cannot read", path);
    else if (size > MANIFEST_MAX)
        res = corrupt(err, path, "is too large; it was made by somebody else,", MANIFEST_MAX);
    else
        res = parse(m, p, got, path, err);
    free(p);
    fs->close(f);
    return res;
}

/* Sets m->number: 0 if there is no database yet. */
static enum eng_result read_current(struct manifest *m, struct leftovers *left, struct eng_error *err)
{
    const struct file_ops *fs = m->fs;
    char text[CURRENT_BYTES + 1];
    struct file *f = NULL;
    size_t got = 0;
    int rc = fs->open(fs, CURRENT, FILE_READONLY, &f);

    if (rc == ENOENT) {
        for (size_t i = 0; i < left->n; i++) {
            if (left->v[i] > 1) { /* the very first one may be the trace of a start that was interrupted */
                err->result = ENG_CORRUPT;
                snprintf(err->msg, sizeof(err->msg), "the file CURRENT is missing, but there are manifests");
                return ENG_CORRUPT;
            }
        }
        return ENG_OK;
    }
    if (rc == 0)
        rc = fs->pread(f, text, sizeof(text), 0, &got);
    fs->close(f);
    if (rc != 0)
        return io_failed(err, rc, "cannot read", CURRENT);
    if (got != CURRENT_BYTES || text[CURRENT_BYTES - 1] != '\n' || !parse_name(text, CURRENT_BYTES - 1, &m->number) ||
        m->number == 0 || m->number >> 63)
        return corrupt(err, CURRENT, "is damaged", 0);
    return ENG_OK;
}

static enum eng_result open_all(struct manifest *m, struct leftovers *left, struct eng_error *err)
{
    enum eng_result res;
    const char *what;
    char path[32];
    bool swapped;
    int rc;

    if ((rc = m->fs->list(m->fs, "", note_leftover, left)) != 0)
        return io_failed(err, rc, "cannot list", "the data directory");
    if ((res = read_current(m, left, err)) != ENG_OK || (m->number && (res = read_file(m, err)) != ENG_OK))
        return res;
    if ((rc = start_file(m, &swapped, &what, path)) != 0)
        return io_failed(err, rc, what, path);
    for (size_t i = 0; i < left->n; i++) {
        if (left->v[i] != m->number) {
            manifest_path(left->v[i], path);
            (void)!m->fs->remove(m->fs, path);
        }
    }
    return ENG_OK;
}

enum eng_result manifest_open(const struct file_ops *files, struct manifest **out, struct eng_error *err)
{
    struct manifest *m = ov_calloc(1, sizeof(*m));
    struct leftovers left = {0};
    enum eng_result res;

    *out = NULL;
    *err = (struct eng_error){0};
    m->fs = files;
    m->state.s.next_run_id = 1;
    res = open_all(m, &left, err);
    free(left.v);
    if (res != ENG_OK) {
        manifest_close(m);
        return res;
    }
    *out = m;
    return ENG_OK;
}

void manifest_close(struct manifest *m)
{
    if (!m)
        return;
    m->fs->close(m->f);
    state_deinit(&m->state);
    free(m);
}

const struct manifest_state *manifest_state(const struct manifest *m)
{
    return &m->state.s;
}

uint64_t manifest_new_run_id(struct manifest *m)
{
    return m->state.s.next_run_id++;
}
