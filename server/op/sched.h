/* The scheduling state of an operation: who may run its next step. For hosts; operations never look at it.
 *
 *              op_sched_wake            op_sched_run
 *   WAITING ------------------> QUEUED --------------> RUNNING --op_sched_wake--> WOKEN
 *      ^                          ^                    |     |                      |
 *      |                          +--- AGAIN, or WAIT and woken meanwhile ----------+
 *      +------- op_sched_park, nobody called meanwhile +
 *
 * A wake-up that comes while a step runs is kept (WOKEN): the WAIT that follows does not wait. Whoever moves an operation to QUEUED
 * puts it into a queue, once; nobody else touches it until it is taken out. Thread: as each function says. */
#ifndef OV_SCHED_H
#define OV_SCHED_H

#include "server/op/operation.h"

enum op_sched_state { OP_SCHED_QUEUED, OP_SCHED_RUNNING, OP_SCHED_WOKEN, OP_SCHED_WAITING };

/* Before a step. Thread: the one that took it out of its queue, or made it. */
static inline void op_sched_run(struct operation *op)
{
    atomic_store_explicit(&op->sched, OP_SCHED_RUNNING, memory_order_seq_cst);
}
/* After a step that goes on (AGAIN), or that was woken: the caller puts it into a queue. */
static inline void op_sched_queue(struct operation *op)
{
    atomic_store_explicit(&op->sched, OP_SCHED_QUEUED, memory_order_seq_cst);
}
/* After a step that answered WAIT. True: it waits now, and may run elsewhere already: hands off. False: a wake-up came meanwhile, the
 * caller goes on with it. */
bool op_sched_park(struct operation *op);
/* A wake-up. True: the caller puts it into a queue. False: it runs, or is queued already. Thread: any. */
bool op_sched_wake(struct operation *op);

#endif
