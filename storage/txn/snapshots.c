/* Registered snapshots: a ring in ascending order. New ones are nearly always the newest, so that insertion looks at one entry. */
#include "storage/txn/snapshots.h"

#include "server/base/arena.h"
#include "server/base/assert.h"

void snapshots_init(struct snapshots *s)
{
    *s = (struct snapshots){0};
    mutex_init(&s->lock, RANK_EPOCH);
    s->all.prev = s->all.next = &s->all;
}

void snapshots_deinit(struct snapshots *s)
{
    OV_ASSERT(s->all.next == &s->all); /* a transaction is still open */
    mutex_destroy(&s->lock);
}

static void insert(struct snapshots *s, struct snapshot *x, uint64_t ts)
{
    OV_DASSERT(!x->open);
    struct snapshot *at = s->all.prev;
    while (at != &s->all && at->ts > ts)
        at = at->prev;
    *x = (struct snapshot){.prev = at, .next = at->next, .ts = ts, .open = true};
    at->next->prev = x;
    at->next = x;
    s->n++;
}

void snapshots_add(struct snapshots *s, struct snapshot *x, uint64_t ts)
{
    mutex_lock(&s->lock);
    insert(s, x, ts);
    mutex_unlock(&s->lock);
}

bool snapshots_add_past(struct snapshots *s, struct snapshot *x, uint64_t ts)
{
    mutex_lock(&s->lock);
    bool ok = ts >= s->lost;
    if (ok)
        insert(s, x, ts);
    mutex_unlock(&s->lock);
    return ok;
}

void snapshots_remove(struct snapshots *s, struct snapshot *x)
{
    if (!x->open)
        return;
    mutex_lock(&s->lock);
    x->prev->next = x->next;
    x->next->prev = x->prev;
    x->open = false;
    s->n--;
    mutex_unlock(&s->lock);
}

uint64_t snapshots_oldest(struct snapshots *s, uint64_t limit, size_t *n)
{
    mutex_lock(&s->lock);
    if (s->all.next != &s->all)
        limit = OV_MIN(limit, s->all.next->ts);
    *n = s->n;
    mutex_unlock(&s->lock);
    return limit;
}

uint64_t snapshots_forget(struct snapshots *s, uint64_t limit)
{
    mutex_lock(&s->lock);
    if (s->all.next != &s->all)
        limit = OV_MIN(limit, s->all.next->ts);
    s->lost = OV_MAX(s->lost, limit);
    mutex_unlock(&s->lock);
    return limit;
}

size_t snapshots_list(struct snapshots *s, uint64_t limit, uint64_t **out)
{
    mutex_lock(&s->lock);
    size_t n = 0;
    *out = ov_malloc((s->n + 1) * sizeof(**out));
    for (struct snapshot *x = s->all.next; x != &s->all; x = x->next)
        if (n == 0 || (*out)[n - 1] != x->ts)
            (*out)[n++] = x->ts;
    s->lost = OV_MAX(s->lost, limit);
    mutex_unlock(&s->lock);
    return n;
}
