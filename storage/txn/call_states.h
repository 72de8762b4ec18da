/* What struct eng_call's `state` means to the engine. The journal uses numbers below ENG_CALL_FIRST for its own waits. */
#ifndef OV_CALL_STATES_H
#define OV_CALL_STATES_H

#include "storage/engine.h"

enum eng_call_state {
    ENG_CALL_IDLE = 0,
    ENG_CALL_FIRST = 100,
    ENG_CALL_LOCK_WAITS = ENG_CALL_FIRST, /* in a lock's queue; waiting_on is the lock, need the owner */
    ENG_CALL_LOCK_GRANTED,                /* the lock is its own */
    ENG_CALL_ROOM,                        /* waits for a memtable to be written out */
    ENG_CALL_WATCH,                       /* waits for a commit after `need` */
    ENG_CALL_DEFERRED,                    /* debug_pending made it wait for nothing */
};

/* Changed under the mutex of the queue that the call is in, but looked at by its owner without. */
static inline int call_state(const struct eng_call *c)
{
    return __atomic_load_n(&c->state, __ATOMIC_RELAXED);
}
static inline void call_set_state(struct eng_call *c, enum eng_call_state state)
{
    __atomic_store_n(&c->state, (int)state, __ATOMIC_RELAXED);
}

#endif
