/* What struct eng_call's `state` means to the engine. The journal uses numbers below ENG_CALL_FIRST for its own waits. */
#ifndef OV_CALL_STATES_H
#define OV_CALL_STATES_H

enum eng_call_state {
    ENG_CALL_IDLE = 0,
    ENG_CALL_FIRST = 100,
    ENG_CALL_LOCK_WAITS = ENG_CALL_FIRST, /* in a lock's queue; waiting_on is the lock, need the owner */
    ENG_CALL_LOCK_GRANTED,                /* the lock is its own */
    ENG_CALL_ROOM,                        /* waits for a memtable to be written out */
    ENG_CALL_WATCH,                       /* waits for a commit after `need` */
    ENG_CALL_DEFERRED,                    /* debug_pending made it wait for nothing */
};

#endif
