/* The timers of a loop's waiting operations: a binary heap by time over one uv_timer. Times are of clock_mono_us; a stale entry of an
 * operation that runs meanwhile costs one needless wake-up. */
#include <stdlib.h>

#include "server/base/clock.h"
#include "server/net/net_private.h"

static void put(struct loop *l, size_t i, struct task *t)
{
    l->heap[i] = t;
    t->heap_at = i + 1;
}

static void sift_up(struct loop *l, size_t i)
{
    struct task *t = l->heap[i];
    while (i > 0 && l->heap[(i - 1) / 2]->due_us > t->due_us) {
        put(l, i, l->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(l, i, t);
}

static void sift_down(struct loop *l, size_t i)
{
    struct task *t = l->heap[i];
    for (size_t child; (child = 2 * i + 1) < l->n_heap; i = child) {
        if (child + 1 < l->n_heap && l->heap[child + 1]->due_us < l->heap[child]->due_us)
            child++;
        if (l->heap[child]->due_us >= t->due_us)
            break;
        put(l, i, l->heap[child]);
    }
    put(l, i, t);
}

/* The uv_timer fires at the first entry's time, or earlier and in vain: it is not moved back when that entry goes. */
static void restart(struct loop *l, int64_t now)
{
    if (l->n_heap == 0 || (l->timer_us && l->timer_us <= l->heap[0]->due_us))
        return;
    l->timer_us = l->heap[0]->due_us;
    int64_t wait_us = l->timer_us > now ? l->timer_us - now : 0;
    uv_update_time(&l->uv);
    uv_timer_start(&l->timer, timer_fired, (uint64_t)(wait_us + 999) / 1000, 0);
}

static void take_out(struct loop *l, struct task *t)
{
    size_t i = t->heap_at - 1;
    struct task *last = l->heap[--l->n_heap];
    t->heap_at = 0;
    if (last == t)
        return;
    put(l, i, last);
    sift_up(l, i);
    sift_down(l, last->heap_at - 1);
}

void timer_set(struct loop *l, struct task *t, int64_t due_us)
{
    if (t->heap_at) {
        if (t->due_us == due_us)
            return;
        take_out(l, t);
    }
    if (due_us == 0)
        return;
    if (l->n_heap == l->cap_heap) {
        l->cap_heap = l->cap_heap ? 2 * l->cap_heap : 16;
        l->heap = ov_realloc(l->heap, l->cap_heap * sizeof(*l->heap));
    }
    t->due_us = due_us;
    put(l, l->n_heap++, t);
    sift_up(l, l->n_heap - 1);
    restart(l, clock_mono_us());
}

void timer_fired(uv_timer_t *h)
{
    struct loop *l = h->data;
    int64_t now = clock_mono_us();
    l->timer_us = 0;
    while (l->n_heap && l->heap[0]->due_us <= now) {
        struct task *t = l->heap[0];
        take_out(l, t);
        if (t->cx)
            op_wake(&t->cx->op);
    }
    restart(l, now);
}
