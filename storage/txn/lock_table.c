/* The table of document locks. A stripe is a mutex and a list of the locks held whose hash falls there: with 1024 stripes the list has
 * one entry nearly always. Lock objects are kept by their stripe for the next use, so that taking a lock allocates nothing.
 * Life of a waiting call:  IDLE --acquire--> LOCK_WAITS --release by the holder--> LOCK_GRANTED --lock_granted--> IDLE;
 * lock_cancel leads back to IDLE from both. */
#include "storage/txn/lock_table.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/mutex.h"
#include "storage/txn/call_states.h"

enum { STRIPES = 1024 };

struct lock {
    struct lock *next; /* in the stripe's list, held or free */
    uint64_t hash;
    const void *owner;
    struct eng_call *first, **last; /* who waits */
};

struct stripe {
    _Alignas(64) struct mutex m; /* RANK_DOCLOCK */
    struct lock *held, *free;
};

struct lock_table {
    struct stripe stripes[STRIPES];
    _Atomic uint64_t waits;
};

struct lock_table *lock_table_new(void)
{
    struct lock_table *t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
    OV_ASSERT(t);
    memset(t, 0, sizeof(*t));
    for (size_t i = 0; i < STRIPES; i++)
        mutex_init(&t->stripes[i].m, RANK_DOCLOCK);
    return t;
}

void lock_table_free(struct lock_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *s = &t->stripes[i];
        OV_ASSERT(!s->held);
        while (s->free) {
            struct lock *l = s->free;
            s->free = l->next;
            free(l);
        }
        mutex_destroy(&s->m);
    }
    free(t);
}

static struct stripe *stripe_of(struct lock_table *t, uint64_t hash)
{
    return &t->stripes[(hash >> 40) % STRIPES]; /* not the bits that the memtable's buckets use */
}

static struct lock *take_new(struct stripe *s, uint64_t hash, const void *owner)
{
    struct lock *l = s->free;
    if (l)
        s->free = l->next;
    else
        l = ov_malloc(sizeof(*l));
    *l = (struct lock){.next = s->held, .hash = hash, .owner = owner};
    l->last = &l->first;
    s->held = l;
    return l;
}

enum lock_answer lock_acquire(struct lock_table *t, uint64_t hash, const void *owner, struct eng_call *c,
                              struct lock **out)
{
    struct stripe *s = stripe_of(t, hash);
    enum lock_answer a;
    *out = NULL;
    mutex_lock(&s->m);
    struct lock *l = s->held;
    while (l && l->hash != hash)
        l = l->next;
    if (!l) {
        *out = take_new(s, hash, owner);
        a = LOCK_GOT;
    } else if (l->owner == owner) {
        a = LOCK_MINE_ALREADY;
    } else {
        a = LOCK_WAIT;
        if (c) {
            c->next = NULL;
            c->waiting_on = l;
            c->need = (uint64_t)(uintptr_t)owner;
            call_set_state(c, ENG_CALL_LOCK_WAITS);
            *l->last = c;
            l->last = &c->next;
            atomic_fetch_add_explicit(&t->waits, 1, memory_order_relaxed);
        }
    }
    mutex_unlock(&s->m);
    return a;
}

bool lock_granted(struct lock_table *t, struct eng_call *c, struct lock **out)
{
    struct lock *l = c->waiting_on; /* stays valid: somebody holds it until it is ours */
    struct stripe *s = stripe_of(t, l->hash);
    mutex_lock(&s->m);
    bool granted = call_state(c) == ENG_CALL_LOCK_GRANTED;
    if (granted) {
        OV_ASSERT(l->owner == (const void *)(uintptr_t)c->need);
        call_set_state(c, ENG_CALL_IDLE);
        c->waiting_on = NULL;
    }
    mutex_unlock(&s->m);
    *out = granted ? l : NULL;
    return granted;
}

/* Hands `l` on, or takes it out of the list. */
static void hand_on(struct stripe *s, struct lock *l)
{
    ASSERT_HELD(&s->m);
    struct eng_call *c = l->first;
    if (c) {
        l->first = c->next;
        if (!l->first)
            l->last = &l->first;
        c->next = NULL;
        l->owner = (const void *)(uintptr_t)c->need;
        call_set_state(c, ENG_CALL_LOCK_GRANTED);
        c->wake(c); /* under the mutex: after lock_cancel has returned no wake-up may come */
        return;
    }
    struct lock **at = &s->held;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->next = s->free;
    s->free = l;
}

void lock_release(struct lock_table *t, struct lock *l)
{
    struct stripe *s = stripe_of(t, l->hash);
    mutex_lock(&s->m);
    hand_on(s, l);
    mutex_unlock(&s->m);
}

void lock_cancel(struct lock_table *t, struct eng_call *c)
{
    struct lock *l = c->waiting_on;
    struct stripe *s = stripe_of(t, l->hash);
    mutex_lock(&s->m);
    if (call_state(c) == ENG_CALL_LOCK_GRANTED) {
        hand_on(s, l);
    } else {
        struct eng_call **at = &l->first;
        while (*at != c)
            at = &(*at)->next;
        *at = c->next;
        if (l->last == &c->next)
            l->last = at;
    }
    c->next = NULL;
    c->waiting_on = NULL;
    call_set_state(c, ENG_CALL_IDLE);
    mutex_unlock(&s->m);
}

uint64_t lock_waits(const struct lock_table *t)
{
    return atomic_load_explicit(&t->waits, memory_order_relaxed);
}
