/* Who waits for a write, a sync or space, and how they are told. Callers are taken off a list under the lock but woken
 * without it: a wake-up posts to a loop, and who waits for our lock need not wait for that, too. journal_cancel therefore also waits for
 * wake-ups that are under way. */
#include <errno.h>
#include <stdio.h>

#include "server/base/assert.h"
#include "server/base/log.h"
#include "storage/journal/journal_private.h"

static bool listed(const struct waiters *w, const struct eng_call *c)
{
    const struct eng_call *at = w->first;

    while (at && at != c)
        at = at->next;
    return at != NULL;
}

/* waiting_on stays set until the owner asks again or cancels: nobody but the owner's thread touches it, so it can tell,
 * without a lock, whether a wake-up may still be under way. */
enum eng_result wait_for(struct journal *j, struct waiters *w, struct eng_call *c, uint64_t need)
{
    ASSERT_HELD(&j->lock);
    OV_DASSERT(!listed(w, c)); /* asked again before it was woken */
    c->next = NULL;
    c->need = need;
    c->waiting_on = w;
    if (w->last)
        w->last->next = c;
    else
        w->first = c;
    w->last = c;
    return ENG_PENDING;
}

/* Takes those who need at most `upto` off the list, in order. */
static struct eng_call *take(struct waiters *w, uint64_t upto)
{
    struct eng_call *taken = NULL, **end = &taken, **at = &w->first;

    w->last = NULL;
    while (*at) {
        struct eng_call *c = *at;
        if (c->need <= upto) {
            *at = c->next;
            c->next = NULL;
            *end = c;
            end = &c->next;
        } else {
            w->last = c;
            at = &c->next;
        }
    }
    return taken;
}

void wait_wake(struct journal *j, struct waiters *w, uint64_t upto)
{
    struct eng_call *c = take(w, upto);

    pthread_cond_broadcast(&j->done);
    if (!c)
        return;
    j->waking++;
    mutex_unlock(&j->lock);
    while (c) {
        struct eng_call *next = c->next; /* once woken, c is its owner's again */
        c->next = NULL;
        c->wake(c);
        c = next;
    }
    mutex_lock(&j->lock);
    j->waking--;
    pthread_cond_broadcast(&j->done);
}

static bool drop(struct waiters *w, struct eng_call *c)
{
    struct eng_call **at = &w->first, *before = NULL;

    for (; *at && *at != c; at = &(*at)->next)
        before = *at;
    if (!*at)
        return false;
    *at = c->next;
    if (w->last == c)
        w->last = before;
    c->next = NULL;
    return true;
}

void journal_cancel(struct journal *j, struct eng_call *c)
{
    mutex_lock(&j->lock);
    if (!drop(&j->wait_sync, c) && !drop(&j->wait_write, c) && !drop(&j->wait_space, c)) {
        while (j->waking > 0)
            (void)mutex_wait(&j->lock, &j->done, -1);
    }
    c->waiting_on = NULL;
    mutex_unlock(&j->lock);
}

bool journal_disk_full(int rc)
{
    return rc == ENOSPC || rc == EDQUOT;
}

enum eng_result journal_io_error(struct eng_error *err, int rc, const char *what, lsn_t segment)
{
    char path[SEGMENT_PATH_BYTES];

    segment_path(segment, path);
    err->result = journal_disk_full(rc) ? ENG_DISK_FULL : ENG_IO;
    snprintf(err->msg, sizeof(err->msg), "%s %s: %s", what, path, strerror(rc));
    return err->result;
}

void journal_fail(struct journal *j, int rc, const char *what, const struct segment *s)
{
    char quoted[sizeof(j->error.msg) + 64];

    if (!atomic_load(&j->failed)) {
        (void)journal_io_error(&j->error, rc, what, s->first);
        j->error.result = ENG_READ_ONLY;
        atomic_store(&j->failed, true);
        log_line(LOG_ERROR, "STORAGE", 5210001, "The journal failed; writes are refused until restart", "\"error\":%s",
                 log_quote(j->error.msg, strlen(j->error.msg), quoted, sizeof(quoted)));
    }
    wait_wake(j, &j->wait_write, UINT64_MAX);
    wait_wake(j, &j->wait_sync, UINT64_MAX);
    wait_wake(j, &j->wait_space, UINT64_MAX);
}
