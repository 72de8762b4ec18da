/* From memory to the kernel, from the kernel to the disk. One thread at a time writes all that is pending; the journal
 * thread syncs for everybody who waits (group commit), or after commit_interval_ms when nobody asks.
 *   appended --journal_write--> written --sync_now--> synced
 * R2: `synced` moves only after a successful fdatasync, and only to what had been written before it began.
 * R3: when no record has followed a sync for an interval, a MARK carries the news.
 * What can go wrong: a write or sync fails, and the journal with it, for good (J4). */
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "storage/journal/journal_private.h"

enum { PENDING_KEEP = 1 << 20, SYNC_SEGMENTS_INLINE = 8 };

/* Rounds the last write up to a whole page with zeros: the kernel then need not read the rest of a page that is not in
 * memory. Nothing lies beyond the tail. pending_room (append.c) has left space for it. */
static void pad_to_page(struct pending *p)
{
    struct piece *last = &p->pieces[p->n - 1];
    size_t end = (size_t)((last->at + last->len) & (JOURNAL_PAGE - 1)); /* segments start on page boundaries */

    if (end == 0)
        return;
    memset(p->p + p->len, 0, JOURNAL_PAGE - end);
    last->len += JOURNAL_PAGE - end;
}

static void pending_empty(struct pending *p)
{
    p->len = 0;
    p->n = 0;
    if (p->cap > PENDING_KEEP) {
        free(p->p);
        p->p = NULL;
        p->cap = 0;
    }
}

/* Writes what is pending. Lock held on entry and return, not meanwhile; nobody else is writing. Errors: the journal has
 * failed. */
static bool write_pending(struct journal *j)
{
    struct pending *p = &j->pend[j->cur];
    struct segment *bad = NULL;
    lsn_t end = journal_load(&j->tail);
    int rc = 0;

    OV_ASSERT(!j->writing);
    if (!p->len)
        return true;
    j->writing = true;
    j->cur ^= 1;
    mutex_unlock(&j->lock);

    pad_to_page(p);
    for (size_t i = 0; i < p->n && rc == 0; i++) {
        struct piece *q = &p->pieces[i];
        bad = q->seg;
        rc = j->fs->pwrite(q->seg->f, p->p + q->off, q->len, q->at - q->seg->first);
    }
    pending_empty(p);

    mutex_lock(&j->lock);
    j->writing = false;
    if (rc != 0) {
        journal_fail(j, rc, "cannot write to", bad);
        return false;
    }
    j->n_writes++;
    journal_store(&j->written, end);
    wait_wake(j, &j->wait_write, UINT64_MAX); /* who needs more asks again, and one of them writes */
    return true;
}

enum eng_result journal_write(struct journal *j, lsn_t upto, struct eng_call *c)
{
    enum eng_result res = ENG_OK;

    if (journal_load(&j->written) >= upto)
        return ENG_OK;
    mutex_lock(&j->lock);
    if (atomic_load(&j->failed))
        res = ENG_READ_ONLY;
    else if (journal_load(&j->written) < upto && j->writing)
        res = wait_for(j, &j->wait_write, c, upto);
    else if (journal_load(&j->written) < upto && !write_pending(j))
        res = ENG_READ_ONLY;
    mutex_unlock(&j->lock);
    return res;
}

/* Those that hold bytes in synced .. upto. They stay: only what is synced is ever released. */
static struct segment **collect_unsynced(struct journal *j, lsn_t upto, struct segment **some, size_t *n)
{
    struct segment **list = some, *s;
    size_t have = 0;

    for (s = j->segments; s; s = s->next)
        have += segment_end(s) > journal_load(&j->synced) && s->first < upto;
    if (have > SYNC_SEGMENTS_INLINE)
        list = ov_malloc(have * sizeof(struct segment *));
    *n = 0;
    for (s = j->segments; s; s = s->next) {
        if (segment_end(s) > journal_load(&j->synced) && s->first < upto)
            list[(*n)++] = s;
    }
    return list;
}

enum eng_result sync_now(struct journal *j)
{
    struct segment *some[SYNC_SEGMENTS_INLINE], **list, *bad = NULL;
    int64_t began;
    lsn_t upto;
    size_t n;
    int rc = 0;

    while (j->writing || j->syncing)
        (void)mutex_wait(&j->lock, &j->done, -1);
    if (atomic_load(&j->failed) || !write_pending(j))
        return ENG_READ_ONLY;
    upto = journal_load(&j->written);
    j->dirty_since_us = 0;
    if (upto == journal_load(&j->synced))
        return ENG_OK;
    list = collect_unsynced(j, upto, some, &n);
    j->syncing = true;
    mutex_unlock(&j->lock);

    began = clock_mono_us();
    for (size_t i = 0; i < n && rc == 0; i++) {
        bad = list[i];
        rc = j->fs->datasync(bad->f);
    }
    if (list != some)
        free(list);

    mutex_lock(&j->lock);
    j->syncing = false;
    j->synced_at_us = clock_mono_us();
    if (atomic_load(&j->failed) || rc != 0) { /* a write may have failed meanwhile: then nothing is promised any more */
        journal_fail(j, rc, "cannot sync", bad);
        return ENG_READ_ONLY;
    }
    j->n_syncs++;
    j->sync_us += (uint64_t)(j->synced_at_us - began);
    journal_store(&j->synced, upto);
    wait_wake(j, &j->wait_sync, upto);
    return ENG_OK;
}

/* R3: tells the disk what the last sync achieved. Needs no sync of its own. */
static void write_mark(struct journal *j)
{
    if (!append_mark_fits(j)) {
        j->marked = journal_load(&j->synced); /* a full disk: the next record tells it */
        return;
    }
    append_record(j, JOURNAL_MARK, 0);
    while (j->writing)
        (void)mutex_wait(&j->lock, &j->done, -1);
    (void)write_pending(j); /* a failure is noted in there */
}

/* What is due now? 's'ync, 'm'ark, or 0, and then in *wait_us until when to sleep (-1: until something happens). */
static int due(struct journal *j, int64_t *wait_us)
{
    int64_t interval = (int64_t)j->opt.commit_interval_ms * 1000, now;
    lsn_t synced = journal_load(&j->synced);

    *wait_us = -1;
    if (atomic_load(&j->failed))
        return 0;
    if (j->wait_sync.first || j->blocking_need > synced)
        return 's';
    if (j->data_end <= synced && j->marked >= synced)
        return 0;
    if (j->opt.manual)
        return j->data_end > synced ? 's' : 'm';
    now = clock_mono_us();
    if (j->data_end > synced) {
        if (!j->dirty_since_us) /* somewhere between the last sync and now; after a long silence, just now */
            j->dirty_since_us = now - j->synced_at_us > 2 * interval ? now : j->synced_at_us;
        *wait_us = j->dirty_since_us + interval - now;
        return *wait_us <= 0 ? 's' : 0;
    }
    *wait_us = j->synced_at_us + interval - now;
    return *wait_us <= 0 ? 'm' : 0;
}

bool sync_step(struct journal *j)
{
    int64_t wait_us;

    switch (due(j, &wait_us)) {
    case 's':
        return sync_now(j) == ENG_OK;
    case 'm':
        write_mark(j);
        return true;
    default:
        return false;
    }
}

void *sync_thread_main(void *arg)
{
    struct journal *j = arg;
    int64_t wait_us;

    log_set_thread_name("journal");
    mutex_lock(&j->lock);
    while (!j->stop) {
        if (sync_step(j))
            continue;
        if (due(j, &wait_us))
            continue;          /* came up meanwhile */
        j->idle = wait_us < 0; /* the next append then wakes us */
        (void)mutex_wait(&j->lock, &j->work, wait_us);
        j->idle = false;
    }
    mutex_unlock(&j->lock);
    return NULL;
}

enum eng_result journal_sync(struct journal *j, lsn_t upto, struct eng_call *c)
{
    enum eng_result res;

    if (journal_load(&j->synced) >= upto)
        return ENG_OK;
    mutex_lock(&j->lock);
    if (journal_load(&j->synced) >= upto) {
        res = ENG_OK;
    } else if (atomic_load(&j->failed)) {
        res = ENG_READ_ONLY;
    } else {
        res = wait_for(j, &j->wait_sync, c, upto);
        pthread_cond_signal(&j->work);
    }
    mutex_unlock(&j->lock);
    return res;
}

enum eng_result journal_sync_blocking(struct journal *j, lsn_t upto)
{
    enum eng_result res = ENG_OK;

    if (journal_load(&j->synced) >= upto)
        return ENG_OK;
    mutex_lock(&j->lock);
    while (res == ENG_OK && journal_load(&j->synced) < upto) {
        if (atomic_load(&j->failed)) {
            res = ENG_READ_ONLY;
        } else if (j->opt.manual) {
            res = sync_now(j);
        } else {
            j->blocking_need = OV_MAX(j->blocking_need, upto);
            pthread_cond_signal(&j->work);
            (void)mutex_wait(&j->lock, &j->done, -1);
        }
    }
    mutex_unlock(&j->lock);
    return res;
}
