/* The two transitions of the scheduling state that race: an operation goes to sleep, somebody wakes it. */
#include "server/op/sched.h"

bool op_sched_park(struct operation *op)
{
    int was = OP_SCHED_RUNNING;
    return atomic_compare_exchange_strong(&op->sched, &was, OP_SCHED_WAITING);
}

bool op_sched_wake(struct operation *op)
{
    int was = atomic_load(&op->sched);
    for (;;) {
        int to = was == OP_SCHED_WAITING ? OP_SCHED_QUEUED : OP_SCHED_WOKEN;
        if (was == OP_SCHED_QUEUED || was == OP_SCHED_WOKEN)
            return false;
        if (atomic_compare_exchange_weak(&op->sched, &was, to))
            return to == OP_SCHED_QUEUED;
    }
}
