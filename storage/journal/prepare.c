/* Space ahead of the tail: the next segment is made (or an old one made over) before it is needed, by a thread of its
 * own, so that zero-filling 64 MiB does not hold up the syncs that clients wait for. This is the only place where a
 * full disk can strike (R10): those who wait for space are told ENG_DISK_FULL, and the next one who asks starts another
 * attempt. Any other failure is the journal's end. */
#include <stdlib.h>

#include "server/base/assert.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "storage/journal/journal_private.h"

#define FULL_REMINDER_US (60 * 1000000LL)

/* With 64 bytes over for a MARK that may come between this question and the append. */
static bool fits(const struct journal *j, size_t n)
{
    uint64_t bytes = record_bytes(n) + RECORD_HEAD;
    /* In this order: whoever rolls takes from `room`, then from `next_room`, then gives to `room`. */
    uint64_t room = journal_load(&j->room), next = journal_load(&j->next_room);
    return bytes <= room || bytes <= next;
}

bool journal_fits(const struct journal *j, size_t n)
{
    return fits(j, n) && !atomic_load_explicit(&j->failed, memory_order_acquire);
}

enum eng_result journal_reserve(struct journal *j, size_t n, struct eng_call *c)
{
    enum eng_result res;

    if (OV_LIKELY(journal_fits(j, n)))
        return ENG_OK;
    if (n > JOURNAL_BATCH_MAX)
        return ENG_TOO_LARGE;
    mutex_lock(&j->lock);
    if (atomic_load(&j->failed)) {
        res = ENG_READ_ONLY;
    } else if (fits(j, n)) {
        res = ENG_OK;
    } else if (j->full > 0) {
        j->full--;
        res = ENG_DISK_FULL;
    } else {
        j->want_room = OV_MAX(j->want_room, record_bytes(n) + RECORD_HEAD);
        j->prepare_wanted = true;
        pthread_cond_signal(&j->prepare_work);
        res = wait_for(j, &j->wait_space, c, 0);
    }
    mutex_unlock(&j->lock);
    return res;
}

void prepare_want(struct journal *j)
{
    j->prepare_below = 0; /* once a segment is enough */
    if (!j->active->next && !j->prepare_wanted) {
        j->prepare_wanted = true;
        pthread_cond_signal(&j->prepare_work);
    }
}

uint64_t prepare_size(const struct journal *j, const struct segment *last, uint64_t room)
{
    uint64_t size = j->opt.first_bytes;

    if (last)
        size = OV_MAX(size, last->size * 2);
    while (size < room + SEGMENT_HEAD + RECORD_HEAD && size < j->opt.segment_bytes)
        size *= 2;
    return OV_MIN(size, j->opt.segment_bytes);
}

/* A released file to make over: one of the right size. If there is one that bears the new segment's own name (it lay
 * beyond a cut), it has to be that one, whatever its size: no two structs may mean the same name. */
static struct segment *take_released(struct journal *j, lsn_t first, uint64_t size)
{
    struct segment **best = NULL, *s;

    for (struct segment **at = &j->released; *at; at = &(*at)->next) {
        if ((*at)->first == first || (!best && (*at)->size == size))
            best = at;
        if ((*at)->first == first)
            break;
    }
    if (!best)
        return NULL;
    s = *best;
    *best = s->next;
    s->next = NULL;
    return s;
}

/* R7: a backup may hold a link to the file; then it is the backup's now. */
static struct segment *recyclable(struct journal *j, struct segment *s, uint64_t size)
{
    uint32_t links;

    if (s && (s->size != size || j->fs->link_count(s->f, &links) != 0 || links != 1)) {
        segment_remove(j->fs, s);
        s = NULL;
    }
    return s;
}

static unsigned count_waiters(const struct waiters *w)
{
    unsigned n = 0;

    for (const struct eng_call *c = w->first; c; c = c->next)
        n++;
    return n;
}

static void prepare_failed(struct journal *j, int rc, lsn_t first)
{
    struct segment there = {.first = first};

    if (!journal_disk_full(rc)) {
        journal_fail(j, rc, "cannot prepare", &there);
        return;
    }
    /* Clients try again all the time: once is enough, and a reminder now and then. */
    int64_t now = clock_mono_us();
    if (j->full_told_us == 0 || now - j->full_told_us > FULL_REMINDER_US) {
        j->full_told_us = now;
        log_line(LOG_WARNING, "STORAGE", 5210002,
                 "No space for the next journal segment: writes are refused until there is", "\"waiting\":%u",
                 count_waiters(&j->wait_space));
    }
    j->prepare_wanted = false;
    j->want_room = 0;
    j->full += count_waiters(&j->wait_space);
    wait_wake(j, &j->wait_space, UINT64_MAX);
}

static bool enough(const struct journal *j)
{
    return j->active->next && journal_load(&j->next_room) >= j->want_room;
}

bool prepare_step(struct journal *j)
{
    struct segment *last = j->active, *made, *old;
    uint64_t size, zeroed;
    lsn_t first;
    int rc;

    if (!j->prepare_wanted || j->preparing || atomic_load(&j->failed))
        return false;
    while (last->next)
        last = last->next;
    first = segment_end(last);
    size = prepare_size(j, last, j->want_room - OV_MIN(j->want_room, journal_load(&j->next_room)));
    old = take_released(j, first, size);
    j->preparing = true;
    mutex_unlock(&j->lock);

    old = recyclable(j, old, size);
    rc = segment_make(j->fs, first, size, j->epoch, old, &made, &zeroed);

    mutex_lock(&j->lock);
    j->preparing = false;
    if (rc != 0) {
        prepare_failed(j, rc, first);
        return true;
    }
    j->zero_bytes += zeroed;
    j->n_recycled += old != NULL;
    last->next = made; /* still the last: nobody else adds any, and what is released is before the active one */
    journal_store(&j->next_room, journal_load(&j->next_room) + segment_room(made));
    j->full = 0;
    if (j->full_told_us) {
        j->full_told_us = 0;
        log_line(LOG_INFO, "STORAGE", 5210005, "Space for the next journal segment again: writes go on", NULL);
    }
    if (enough(j)) {
        j->prepare_wanted = false;
        j->want_room = 0;
        wait_wake(j, &j->wait_space, UINT64_MAX);
    }
    return true;
}

void *prepare_thread_main(void *arg)
{
    struct journal *j = arg;

    log_set_thread_name("journal-prepare");
    mutex_lock(&j->lock);
    while (!j->stop) {
        if (!prepare_step(j) && !j->stop)
            (void)mutex_wait(&j->lock, &j->prepare_work, -1);
    }
    mutex_unlock(&j->lock);
    return NULL;
}

void journal_release(struct journal *j, lsn_t lsn)
{
    struct segment *gone = NULL, *s;
    unsigned kept = 0;

    mutex_lock(&j->lock);
    lsn = OV_MIN(lsn, journal_load(&j->synced));
    for (s = j->released; s; s = s->next)
        kept++;
    while (j->segments != j->active && segment_end(j->segments) <= lsn) {
        s = j->segments;
        j->segments = s->next;
        if (kept < RELEASED_MAX &&
            s->size == j->opt.segment_bytes) { /* smaller ones are the first ones, never needed again */
            s->next = j->released;
            j->released = s;
            kept++;
        } else {
            s->next = gone;
            gone = s;
        }
    }
    mutex_unlock(&j->lock);
    while ((s = gone) != NULL) {
        gone = s->next;
        segment_remove(j->fs, s);
    }
}
