/* Lists in shards, by connection: a command that waits is entered and removed once, whatever the number of its steps. */
#include "server/commands/running.h"

#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/mutex.h"

enum { SHARDS = 16 };

struct running {
    _Atomic uint32_t last_id;
    struct shard {
        struct mutex lock;
        struct command_ctx *first;
    } __attribute__((aligned(64))) shards[SHARDS];
};

struct running *running_new(void)
{
    struct running *r = NULL;
    OV_ASSERT(posix_memalign((void **)&r, 64, sizeof(*r)) == 0);
    memset(r, 0, sizeof(*r));
    for (int i = 0; i < SHARDS; i++)
        mutex_init(&r->shards[i].lock, RANK_RUNNING);
    return r;
}

void running_free(struct running *r)
{
    if (!r)
        return;
    for (int i = 0; i < SHARDS; i++) {
        OV_ASSERT(!r->shards[i].first);
        mutex_destroy(&r->shards[i].lock);
    }
    free(r);
}

static struct shard *shard_of(struct command_ctx *cx)
{
    return &cx->server->running->shards[(uint64_t)cx->client->id % SHARDS];
}

void running_add(struct command_ctx *cx)
{
    struct running *r = cx->server->running;
    if (!r || cx->opid)
        return;
    do /* the ids go round, past none */
        cx->opid = (int32_t)(atomic_fetch_add_explicit(&r->last_id, 1, memory_order_relaxed) + 1) & INT32_MAX;
    while (cx->opid == 0);
    cx->start_us = cx->op.slice_end_us - OP_SLICE_US; /* when the first step began */
    struct shard *s = shard_of(cx);
    mutex_lock(&s->lock);
    cx->running_next = s->first;
    cx->running_at = &s->first;
    if (s->first)
        s->first->running_at = &cx->running_next;
    s->first = cx;
    mutex_unlock(&s->lock);
}

void running_remove(struct command_ctx *cx)
{
    if (OV_LIKELY(!cx->opid))
        return;
    struct shard *s = shard_of(cx);
    mutex_lock(&s->lock);
    *cx->running_at = cx->running_next;
    if (cx->running_next)
        cx->running_next->running_at = cx->running_at;
    mutex_unlock(&s->lock);
    cx->opid = 0;
}

bool running_kill(struct running *r, int64_t opid)
{
    bool found = false;
    for (int i = 0; r && i < SHARDS && !found; i++) {
        struct shard *s = &r->shards[i];
        mutex_lock(&s->lock);
        struct command_ctx *cx = s->first;
        while (cx && cx->opid != opid)
            cx = cx->running_next;
        found = cx != NULL;
        if (cx) { /* under the lock: it cannot end before */
            int none = 0;
            atomic_compare_exchange_strong(&cx->op.interrupt, &none, ERR_INTERRUPTED);
            op_wake(&cx->op);
        }
        mutex_unlock(&s->lock);
    }
    return found;
}

void running_each(struct running *r, void (*fn)(void *arg, const struct command_ctx *cx), void *arg)
{
    for (int i = 0; r && i < SHARDS; i++) {
        struct shard *s = &r->shards[i];
        mutex_lock(&s->lock);
        for (struct command_ctx *cx = s->first; cx; cx = cx->running_next)
            fn(arg, cx);
        mutex_unlock(&s->lock);
    }
}
