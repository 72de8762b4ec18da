/* Appending: the hot path, under the engine's commit lock. A batch that fits into the active segment costs a header crc
 * and a copy into the pending buffer. Otherwise the segment's rest is filled, with a PAD or with a first part of the
 * batch, and the prepared segments take the rest. Nothing here can fail: journal_fits was asked under the same commit
 * lock, and only a MARK (64 bytes, at most one between two batches, for which journal_fits allows) can come between. */
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/crc.h"
#include "storage/journal/journal_private.h"

enum { PENDING_MIN = 64 * 1024 };

/* Room for n more pending bytes, and for a page of zeros behind them (write_pending rounds up). */
static uint8_t *pending_room(struct pending *p, size_t n)
{
    if (OV_UNLIKELY(p->cap < p->len + n + JOURNAL_PAGE)) {
        size_t cap = p->cap ? p->cap : PENDING_MIN;
        while (cap < p->len + n + JOURNAL_PAGE)
            cap *= 2;
        p->p = ov_realloc(p->p, cap);
        p->cap = cap;
    }
    return p->p + p->len;
}

static struct piece *pending_piece(struct journal *j, struct pending *p, lsn_t at)
{
    struct piece *last = p->n ? &p->pieces[p->n - 1] : NULL;

    if (OV_LIKELY(last && last->seg == j->active))
        return last;
    if (p->n == p->pieces_cap) {
        p->pieces_cap = p->pieces_cap ? p->pieces_cap * 2 : 8;
        p->pieces = ov_realloc(p->pieces, p->pieces_cap * sizeof(*p->pieces));
    }
    last = &p->pieces[p->n++];
    *last = (struct piece){.seg = j->active, .at = at, .off = p->len};
    return last;
}

/* Puts one record at the tail. copy: of the payload's bytes, all of them except in a PAD. */
static void put_record(struct journal *j, struct record_head *h, const void *payload, size_t copy)
{
    struct pending *p = &j->pend[j->cur];
    lsn_t lsn = journal_load(&j->tail);
    uint64_t room = journal_load(&j->room), bytes = record_bytes(h->len);
    size_t padded = RECORD_HEAD + ((copy + 7) & ~(size_t)7);
    uint8_t *to = pending_room(p, padded);
    struct piece *piece = pending_piece(j, p, lsn);

    OV_ASSERT(bytes <= room);
    h->version = JOURNAL_VERSION;
    h->lsn = lsn;
    h->synced_lsn = j->marked = journal_load(&j->synced); /* R2: the last published value */
    h->index = j->index++;
    h->epoch = j->epoch;
    record_seal(h, j->active->seed);
    memcpy(to, h, RECORD_HEAD);
    if (copy) {
        memset(to + padded - 8, 0, 8);
        memcpy(to + RECORD_HEAD, payload, copy);
    }
    p->len += padded;
    piece->len += padded;
    journal_store(&j->tail, lsn + bytes);
    journal_store(&j->room, room - bytes);
}

void append_activate(struct journal *j, struct segment *s, lsn_t tail)
{
    j->active = s;
    j->prepare_below = s->size - s->size / 8;
    journal_store(&j->tail, tail);
    journal_store(&j->room, segment_end(s) - tail);
}

/* To the next prepared segment. A reader without the lock sees less room meanwhile, never more. */
static void roll(struct journal *j)
{
    struct segment *next = j->active->next;

    OV_ASSERT(next);
    if (journal_load(&j->room) >= RECORD_HEAD) {
        struct record_head h = {.type = JOURNAL_PAD, .len = (uint32_t)(journal_load(&j->room) - RECORD_HEAD)};
        put_record(j, &h, NULL, 0);
    }
    journal_store(&j->room, 0);
    journal_store(&j->next_room, journal_load(&j->next_room) - segment_room(next));
    append_activate(j, next, next->first + SEGMENT_HEAD);
}

/* In parts, each as long as its segment allows (R8). */
static void append_parts(struct journal *j, struct slice payload, uint64_t first_ts, uint32_t count)
{
    uint8_t flags = JOURNAL_FIRST;
    size_t done = 0;

    while (done < payload.n) {
        size_t n = payload.n - done;
        struct record_head h = {.type = JOURNAL_BATCH, .flags = flags, .first_ts = first_ts, .count = count};

        if (journal_load(&j->room) < RECORD_HEAD + 8) {
            OV_ASSERT(flags == JOURNAL_FIRST ||
                      journal_load(&j->room) == 0); /* a part fills its segment: no PAD inside a batch */
            roll(j);
        }
        if (record_bytes(n) > journal_load(&j->room))
            n = (size_t)(journal_load(&j->room) - RECORD_HEAD);
        if (done + n == payload.n)
            h.flags |= JOURNAL_LAST;
        h.len = (uint32_t)n;
        h.payload_crc = crc32c(0, payload.p + done, n);
        put_record(j, &h, payload.p + done, n);
        done += n;
        flags = 0;
    }
}

static void append_batch(struct journal *j, struct slice payload, uint32_t payload_crc, uint64_t first_ts,
                         uint32_t count)
{
    struct segment *next = j->active->next;
    uint64_t bytes = record_bytes(payload.n);

    /* A small batch moves to the next segment whole: no second checksum, and no more than an eighth of a segment is
     * wasted. */
    if (bytes > journal_load(&j->room) && next && bytes <= segment_room(next) / 8)
        roll(j);
    if (bytes <= journal_load(&j->room)) {
        struct record_head h = {.type = JOURNAL_BATCH,
                                .flags = JOURNAL_FIRST | JOURNAL_LAST,
                                .len = (uint32_t)payload.n,
                                .payload_crc = payload_crc,
                                .first_ts = first_ts,
                                .count = count};
        put_record(j, &h, payload.p, payload.n);
    } else {
        append_parts(j, payload, first_ts, count);
    }
}

void journal_append(struct journal *j, struct slice payload, uint32_t payload_crc, uint64_t first_ts, uint32_t count,
                    lsn_t *end)
{
    mutex_lock(&j->lock);
    append_batch(j, payload, payload_crc, first_ts, count);
    j->data_end = *end = journal_load(&j->tail);
    if (OV_UNLIKELY(journal_load(&j->room) < j->prepare_below))
        prepare_want(j);
    if (OV_UNLIKELY(j->idle)) {
        j->idle = false;
        pthread_cond_signal(&j->work);
    }
    mutex_unlock(&j->lock);
}

bool append_mark_fits(const struct journal *j)
{
    return journal_load(&j->room) >= RECORD_HEAD || journal_load(&j->next_room) > 0;
}

void append_record(struct journal *j, enum journal_type type, uint64_t first_ts)
{
    struct record_head h = {.type = (uint8_t)type, .first_ts = first_ts};

    ASSERT_HELD(&j->lock);
    if (journal_load(&j->room) < RECORD_HEAD)
        roll(j);
    put_record(j, &h, NULL, 0);
}
