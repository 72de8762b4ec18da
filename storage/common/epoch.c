/* Epoch slots and the limbo of unlinked memory (after Fraser, "Practical lock-freedom", 2004; ours has one global counter that moves at
 * every retirement instead of three generations, since we retire rarely). */
#include "storage/common/epoch.h"

#include <pthread.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"

_Thread_local struct epoch_slot *epoch_mine;
_Atomic uint64_t epoch_now = 1;

static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct epoch_slot *) slots; /* grows only; slots of ended threads are taken again */
static pthread_key_t slot_key;
static pthread_once_t slot_once = PTHREAD_ONCE_INIT;

static void slot_release(void *arg)
{
    struct epoch_slot *s = arg;
    OV_ASSERT(atomic_load(&s->epoch) == 0); /* a thread ended inside a step */
    pthread_mutex_lock(&slots_lock);
    s->taken = false;
    pthread_mutex_unlock(&slots_lock);
    epoch_mine = NULL;
}

static void slot_key_init(void)
{
    OV_ASSERT(pthread_key_create(&slot_key, slot_release) == 0);
}

struct epoch_slot *epoch_slot_new(void)
{
    pthread_once(&slot_once, slot_key_init);
    pthread_mutex_lock(&slots_lock);
    struct epoch_slot *s = atomic_load(&slots);
    while (s && s->taken)
        s = s->next;
    if (!s) {
        s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
        OV_ASSERT(s);
        *s = (struct epoch_slot){.next = atomic_load(&slots)};
        s->index = s->next ? s->next->index + 1 : 0;
        atomic_store_explicit(&slots, s, memory_order_release);
    }
    s->taken = true;
    pthread_mutex_unlock(&slots_lock);
    pthread_setspecific(slot_key, s);
    return epoch_mine = s;
}

uint64_t epoch_floor(const void *domain, uint64_t now)
{
    uint64_t min = now;
    atomic_thread_fence(memory_order_seq_cst);
    for (struct epoch_slot *s = atomic_load_explicit(&slots, memory_order_acquire); s; s = s->next) {
        if (atomic_load(&s->epoch) == 0 || atomic_load_explicit(&s->domain, memory_order_relaxed) != domain)
            continue;
        uint64_t f = atomic_load_explicit(&s->floor, memory_order_acquire);
        min = OV_MIN(min, f); /* 0 while the step is being opened: nothing goes, for once */
    }
    return min;
}

/* The smallest epoch of a running step, of any engine. */
static uint64_t epoch_oldest(void)
{
    uint64_t min = UINT64_MAX;
    atomic_thread_fence(memory_order_seq_cst);
    for (struct epoch_slot *s = atomic_load_explicit(&slots, memory_order_acquire); s; s = s->next) {
        uint64_t at = atomic_load(&s->epoch);
        if (at)
            min = OV_MIN(min, at);
    }
    return min;
}

void epoch_limbo_init(struct epoch_limbo *l)
{
    memset(l, 0, sizeof(*l));
    mutex_init(&l->lock, RANK_EPOCH);
    l->tail = &l->head;
}

void epoch_limbo_deinit(struct epoch_limbo *l)
{
    for (struct epoch_garbage *g = l->head, *next; g; g = next) {
        next = g->next;
        g->free(g);
    }
    mutex_destroy(&l->lock);
}

void epoch_retire(struct epoch_limbo *l, struct epoch_garbage *g, void (*fn)(struct epoch_garbage *))
{
    g->next = NULL;
    g->free = fn;
    mutex_lock(&l->lock);
    g->epoch = atomic_fetch_add(&epoch_now, 1); /* steps that begin later have a larger epoch, and cannot see it */
    *l->tail = g;
    l->tail = &g->next;
    l->n++;
    mutex_unlock(&l->lock);
}

void epoch_collect(struct epoch_limbo *l)
{
    uint64_t oldest = epoch_oldest();
    struct epoch_garbage *done = NULL, **end = &done;
    mutex_lock(&l->lock);
    while (l->head && l->head->epoch < oldest) {
        *end = l->head;
        end = &l->head->next;
        l->head = l->head->next;
        l->n--;
    }
    if (!l->head)
        l->tail = &l->head;
    mutex_unlock(&l->lock);
    *end = NULL;
    while (done) { /* outside the lock: freeing a memtable takes long, and frees what it held in turn */
        struct epoch_garbage *g = done;
        done = g->next;
        g->free(g);
    }
}
