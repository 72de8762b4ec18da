/* Reading the journal back. One pass from the starting point: records are handed out while all is well. At the first
 * position that holds no valid record the search begins: the rest of the journal is looked through at every 8th byte
 * for headers, because without a sync the disk may have kept later pages and lost earlier ones (J3). Only the headers
 * count there: they tell S, how far bytes were known durable.
 *   walk --(valid record)--> walk --(anything else at B)--> search --(end)--> B >= S: torn tail, cut at B
 *                                                                            B <  S: ENG_CORRUPT
 * What can go wrong: a read error (ENG_IO: nothing is concluded from what could not be read), and what fn answers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/buf.h"
#include "server/base/crc.h"
#include "storage/journal/journal_private.h"

enum { WINDOW = 1 << 20 };

struct reader { /* a window on one segment */
    const struct file_ops *fs;
    const struct segment *seg;
    uint8_t *p;
    size_t cap, n;
    lsn_t at;
    int rc; /* errno of a failed read */
};

struct walk {
    struct replay *r;
    struct reader in;
    struct buf parts; /* of an unfinished batch */
    struct journal_record batch;
    bool in_batch;
};

/* As many bytes from `lsn` on as one read gives, at least `want` if the file has them: *got. Borrowed until the next
 * call. */
static const uint8_t *reader_span(struct reader *in, const struct segment *s, lsn_t lsn, size_t want, size_t *got)
{
    uint64_t there = OV_MIN(s->size, s->file_size), offset = lsn - s->first; /* what a short file lacks counts as bad */
    size_t n = offset < there ? (size_t)OV_MIN(there - offset, (uint64_t)OV_MAX(want, (size_t)WINDOW)) : 0;

    if (in->seg != s || lsn < in->at || lsn - in->at > in->n || in->n - (lsn - in->at) < want) {
        if (n > in->cap || !in->p) {
            free(in->p);
            in->p = ov_malloc(n + 1);
            in->cap = n;
        }
        in->seg = s;
        in->at = lsn;
        in->n = 0;
        in->rc = in->fs->pread(s->f, in->p, n, offset, &in->n);
        if (in->rc != 0)
            in->n = 0;
    }
    *got = in->n - (size_t)(lsn - in->at);
    return in->p + (lsn - in->at);
}

/* Exactly n bytes; NULL if the file ends before, or cannot be read (in->rc). */
static const uint8_t *reader_get(struct reader *in, const struct segment *s, lsn_t lsn, size_t n)
{
    size_t got;
    const uint8_t *p = reader_span(in, s, lsn, n, &got);
    return got >= n ? p : NULL;
}

static enum eng_result read_failed(struct reader *in, struct eng_error *err)
{
    return journal_io_error(err, in->rc, "cannot read", in->seg->first);
}

/* The segment in which a record may lie at `pos`, or NULL. */
static struct segment *find_segment(struct segment *s, lsn_t pos)
{
    for (; s; s = s->next) {
        if (!s->broken && pos >= s->first + SEGMENT_HEAD && pos < segment_end(s) && segment_end(s) - pos >= RECORD_HEAD)
            return s;
    }
    return NULL;
}

/* Where the record behind position `lsn` starts (J1), lsn being the end of another or a segment's end. */
static lsn_t normal_position(struct segment *s, lsn_t lsn)
{
    if (lsn == 0)
        return SEGMENT_HEAD;
    for (; s; s = s->next) {
        if (!s->broken && lsn >= s->first && lsn <= segment_end(s) &&
            !(lsn == segment_end(s) && s->next && s->next->first == lsn))
            return OV_MAX(record_next(s, lsn), s->first + SEGMENT_HEAD);
    }
    return lsn;
}

/* The segment with the starting point was whole and synced before it was used: without it nothing may be concluded. */
static bool start_exists(const struct replay *r)
{
    if (r->from % 8)
        return false;
    if (r->from == 0 && !r->segments && r->synced == 0)
        return true; /* a new journal */
    for (const struct segment *s = r->segments; s; s = s->next) {
        if (!s->broken && r->from >= s->first && r->from <= segment_end(s))
            return true;
    }
    return false;
}

/* What a valid header tells, be its payload whole or not, be it cut or not (R4, R11). */
static void note_head(struct replay *r, const struct record_head *h)
{
    uint64_t last = h->first_ts + (h->count ? h->count - 1 : 0);

    r->synced = OV_MAX(r->synced, h->synced_lsn);
    r->epoch = OV_MAX(r->epoch, h->epoch);
    r->index = OV_MAX(r->index, h->index + 1);
    r->last_ts = OV_MAX(r->last_ts, last);
}

static enum eng_result hand_out(struct walk *w, const struct record_head *h, struct slice payload, lsn_t end,
                                struct eng_error *err)
{
    struct journal_record *b = &w->batch;

    if (h->type != JOURNAL_BATCH || (w->in_batch && (h->flags & JOURNAL_FIRST)))
        w->in_batch = false; /* R8: whatever is not the next part voids an unfinished batch */
    if (h->type != JOURNAL_BATCH)
        return ENG_OK;
    if (h->flags & JOURNAL_FIRST) {
        *b = (struct journal_record){.lsn = h->lsn, .first_ts = h->first_ts, .count = h->count};
        w->parts.len = 0;
        w->in_batch = true;
    } else if (!w->in_batch || b->first_ts != h->first_ts || payload.n > JOURNAL_BATCH_MAX - w->parts.len) {
        w->in_batch = false;
        return ENG_OK;
    }
    if (!(h->flags & JOURNAL_LAST)) {
        buf_append(&w->parts, payload.p, payload.n);
        return ENG_OK;
    }
    if (w->parts.len) {
        buf_append(&w->parts, payload.p, payload.n);
        payload = buf_slice(&w->parts);
    }
    b->end = end;
    b->payload = payload;
    w->in_batch = false;
    return w->r->fn ? w->r->fn(w->r->arg, b, err) : ENG_OK;
}

/* One record at *pos. ENG_NOT_FOUND: there is no whole valid one. */
static enum eng_result walk_record(struct walk *w, lsn_t *pos, struct eng_error *err)
{
    struct replay *r = w->r;
    struct segment *s = find_segment(r->segments, *pos);
    struct record_head h;
    struct slice payload = {0};
    const uint8_t *p = s ? reader_get(&w->in, s, *pos, RECORD_HEAD) : NULL;
    enum eng_result res;
    lsn_t end;

    if (!p)
        return w->in.rc ? read_failed(&w->in, err) : ENG_NOT_FOUND;
    memcpy(&h, p, sizeof(h));
    if (!record_head_valid(&h, s, *pos) || h.epoch < r->epoch) /* R1: a lower epoch is a cut tail's */
        return ENG_NOT_FOUND;
    note_head(r, &h);
    end = *pos + record_bytes(h.len);
    if (h.type != JOURNAL_PAD) {
        p = reader_get(&w->in, s, *pos, RECORD_HEAD + (size_t)h.len);
        if (!p)
            return w->in.rc ? read_failed(&w->in, err) : ENG_NOT_FOUND;
        payload = slice_of(p + RECORD_HEAD, h.len);
        if (crc32c(0, payload.p, payload.n) != h.payload_crc)
            return ENG_NOT_FOUND;
    }
    if ((res = hand_out(w, &h, payload, end, err)) != ENG_OK)
        return res == ENG_NOT_FOUND ? ENG_CORRUPT : res;
    *pos = record_next(s, end);
    return ENG_OK;
}

/* J3: headers behind the first damage, in one segment from `pos` on. */
static enum eng_result search_segment(struct walk *w, const struct segment *s, lsn_t pos, struct eng_error *err)
{
    struct replay *r = w->r;
    struct record_head h;
    size_t got, i;

    for (;;) {
        const uint8_t *p = reader_span(&w->in, s, pos, RECORD_HEAD, &got);
        if (w->in.rc)
            return read_failed(&w->in, err);
        if (got < RECORD_HEAD)
            return ENG_OK;
        for (i = 0; i + RECORD_HEAD <= got; i += 8) {
            if (OV_LIKELY(load_le64(p + i + offsetof(struct record_head, lsn)) != pos + i))
                continue;
            memcpy(&h, p + i, sizeof(h));
            if (!record_head_valid(&h, s, pos + i))
                continue;
            r->last_ts = OV_MAX(r->last_ts, h.first_ts + (h.count ? h.count - 1 : 0));
            if (h.epoch < r->epoch)
                continue; /* R1: stale, gives no S */
            note_head(r, &h);
            i += record_bytes(h.len);
            break;
        }
        pos += i; /* a record ends within its segment: record_head_valid */
        if (segment_end(s) - pos < RECORD_HEAD)
            return ENG_OK;
    }
}

static enum eng_result search_rest(struct walk *w, lsn_t pos, struct eng_error *err)
{
    enum eng_result res = ENG_OK;

    for (struct segment *s = w->r->segments; s && res == ENG_OK; s = s->next) {
        if (!s->broken && segment_end(s) > pos && segment_end(s) - pos >= RECORD_HEAD)
            res = search_segment(w, s, OV_MAX(pos, s->first + SEGMENT_HEAD), err);
    }
    return res;
}

static enum eng_result judge(struct replay *r, lsn_t start, struct eng_error *err)
{
    const struct segment *s, *at = NULL;
    char path[SEGMENT_PATH_BYTES];

    r->bytes = r->cut - OV_MIN(start, r->cut);
    if (r->cut >= r->synced)
        return ENG_OK;
    for (s = r->segments; s; s = s->next) {
        if (s->first <= r->cut)
            at = s;
    }
    err->result = ENG_CORRUPT;
    if (at && (at->broken || r->cut < segment_end(at))) {
        segment_path(at->first, path);
        snprintf(err->msg, sizeof(err->msg),
                 "%s is damaged at offset %" PRIu64 " (journal position %" PRIu64
                 "), though the journal was known durable up to position %" PRIu64,
                 path, r->cut - at->first, r->cut, r->synced);
    } else {
        snprintf(err->msg, sizeof(err->msg),
                 "the journal segment that holds position %" PRIu64
                 " is missing, though the journal was known durable up to position %" PRIu64,
                 r->cut, r->synced);
    }
    return ENG_CORRUPT;
}

enum eng_result replay_run(struct replay *r, struct eng_error *err)
{
    struct walk w = {.r = r, .in = {.fs = r->fs}};
    lsn_t start = normal_position(r->segments, r->from);
    enum eng_result res;

    r->cut = start;
    if (!start_exists(r)) {
        err->result = ENG_CORRUPT;
        snprintf(err->msg, sizeof(err->msg),
                 "the journal segment that holds position %" PRIu64
                 ", where recovery starts, is missing or has lost its header",
                 r->from);
        return ENG_CORRUPT;
    }
    buf_init(&w.parts);
    while ((res = walk_record(&w, &r->cut, err)) == ENG_OK)
        ;
    if (res == ENG_NOT_FOUND)
        res = search_rest(&w, r->cut, err);
    if (res == ENG_OK)
        res = judge(r, start, err);
    buf_free(&w.parts);
    free(w.in.p);
    return res;
}

/* ---- R5 ---- */

static enum eng_result rewrite_flush(struct replay *r, struct segment *s, struct buf *b, lsn_t at,
                                     struct eng_error *err)
{
    int rc = b->len ? r->fs->pwrite(s->f, b->p, b->len, at - s->first) : 0;

    b->len = 0;
    return rc == 0 ? ENG_OK : journal_io_error(err, rc, "cannot rewrite the tail of", s->first);
}

static enum eng_result rewrite_sync(struct replay *r, struct segment *s, struct eng_error *err)
{
    int rc = s ? r->fs->datasync(s->f) : 0;
    return rc == 0 ? ENG_OK : journal_io_error(err, rc, "cannot sync the tail of", s->first);
}

static enum eng_result rewrite_changed(lsn_t pos, struct eng_error *err)
{
    err->result = ENG_IO;
    snprintf(err->msg, sizeof(err->msg), "the journal at position %" PRIu64 " changed between two reads of it", pos);
    return ENG_IO;
}

/* Records are judged once more: a page whose write failed may have been dropped from memory since the walk and be old
 * bytes now. */
enum eng_result replay_rewrite(struct replay *r, struct eng_error *err)
{
    struct reader in = {.fs = r->fs};
    struct segment *s = NULL;
    struct buf b;
    enum eng_result res = ENG_OK;
    lsn_t pos = normal_position(r->segments, OV_MAX(r->synced, r->from)), from = pos;

    buf_init(&b);
    while (res == ENG_OK && pos < r->cut) {
        struct segment *now = find_segment(r->segments, pos);
        const uint8_t *p = now ? reader_get(&in, now, pos, RECORD_HEAD) : NULL;
        struct record_head h;
        size_t n = RECORD_HEAD;

        if (p) {
            memcpy(&h, p, sizeof(h));
            if (!record_head_valid(&h, now, pos))
                p = NULL;
            else if (h.type != JOURNAL_PAD)
                p = reader_get(&in, now, pos, n = (size_t)record_bytes(h.len));
        }
        if (!p || (h.type != JOURNAL_PAD && crc32c(0, p + RECORD_HEAD, h.len) != h.payload_crc)) {
            res = in.rc ? read_failed(&in, err) : rewrite_changed(pos, err);
            break;
        }
        if (now != s || b.len >= WINDOW) {
            if (s)
                res = rewrite_flush(r, s, &b, from, err);
            if (res == ENG_OK && now != s)
                res = rewrite_sync(r, s, err);
            s = now;
            from = pos;
        }
        buf_append(&b, p, n);
        pos = record_next(now, pos + record_bytes(h.len));
    }
    if (res == ENG_OK && s && (res = rewrite_flush(r, s, &b, from, err)) == ENG_OK)
        res = rewrite_sync(r, s, err);
    buf_free(&b);
    free(in.p);
    return res;
}
