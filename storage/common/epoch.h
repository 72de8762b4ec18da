/* Who is inside a step, and since when: what lets readers go without locks. Two questions are answered from the same slots:
 *   - may memory that was unlinked be freed?   (layers, cached blocks: epoch_retire)
 *   - may a version that was superseded go?    (epoch_floor: no step began before that timestamp was published)
 * Slots are the process's, one a thread, and are handed on when a thread ends; engines in one process share them. */
#ifndef OV_EPOCH_H
#define OV_EPOCH_H

#include <stdatomic.h>

#include "server/base/base.h"
#include "server/base/mutex.h"

struct epoch_slot {                      /* a thread's; written by it alone, read by all */
    _Alignas(64) _Atomic uint64_t epoch; /* 0: outside a step */
    _Atomic uint64_t floor;              /* what was visible when the step began; 0 while it is being looked up */
    _Atomic(const void *) domain;        /* the engine whose step it is */
    uint64_t steps;                      /* counts this thread's steps: tells one from the next */
    uint32_t index;                      /* small number, for spreading counters */
    void *txns, *scans;                  /* free lists of handles, kept for this thread's next use */
    uint32_t n_txns, n_scans;
    bool taken;
    struct epoch_slot *next;
};

/* Memory that waits until no step can still see it. One list an engine. */
struct epoch_limbo {
    struct mutex lock; /* RANK_EPOCH */
    struct epoch_garbage *head, **tail;
    _Atomic size_t n; /* how many wait; read without the lock by whoever only wants to know if any do */
};
struct epoch_garbage { /* put it first in what is to be freed */
    struct epoch_garbage *next;
    void (*free)(struct epoch_garbage *g);
    uint64_t epoch;
};

extern _Thread_local struct epoch_slot *epoch_mine; /* NULL before this thread's first step */
extern _Atomic uint64_t epoch_now;

struct epoch_slot *epoch_slot_new(void); /* slow path of epoch_slot_get */
static inline struct epoch_slot *epoch_slot_get(void)
{
    return OV_LIKELY(epoch_mine != NULL) ? epoch_mine : epoch_slot_new();
}

/* Opens a step of `domain`; `visible` is read after the slot is taken, so that floor <= every snapshot taken inside.
 * Thread: any, outside a step. */
static inline struct epoch_slot *epoch_enter(const void *domain, const _Atomic uint64_t *visible)
{
    struct epoch_slot *s = epoch_slot_get();
    atomic_store_explicit(&s->domain, domain, memory_order_relaxed);
    atomic_store_explicit(&s->floor, 0, memory_order_relaxed);
    /* Sequentially consistent, against the fence in epoch_oldest and epoch_floor: either they see this step, or this step sees
     * everything that was unlinked or published before they looked. */
    atomic_store(&s->epoch, atomic_load_explicit(&epoch_now, memory_order_acquire));
    atomic_store_explicit(&s->floor, atomic_load(visible), memory_order_release);
    s->steps++;
    return s;
}

static inline void epoch_leave(void)
{
    atomic_store_explicit(&epoch_mine->epoch, 0, memory_order_release);
}

static inline bool epoch_inside(const void *domain)
{
    return epoch_mine && atomic_load_explicit(&epoch_mine->epoch, memory_order_relaxed) != 0 &&
           atomic_load_explicit(&epoch_mine->domain, memory_order_relaxed) == domain;
}

/* The smallest `visible` any running step of `domain` began with, at most `now`. Every later step begins at or above `now` if `now`
 * was read from `visible` before the call. Thread: any. */
uint64_t epoch_floor(const void *domain, uint64_t now);

void epoch_limbo_init(struct epoch_limbo *l);
void epoch_limbo_deinit(struct epoch_limbo *l); /* frees all; no step of this engine may run */
/* Frees `g` by g->free once every step that runs now has ended. It must be unlinked already. Thread: any. */
void epoch_retire(struct epoch_limbo *l, struct epoch_garbage *g, void (*fn)(struct epoch_garbage *));
void epoch_collect(struct epoch_limbo *l); /* frees what can be freed. Thread: any, holding no mutex of a higher rank */

#endif
