/* The operation: a resumable object that runs in slices. step() is called until DONE. Knows nothing of commands, sockets, engine. */
#ifndef OV_OPERATION_H
#define OV_OPERATION_H

#include <stdatomic.h>

#include "server/base/arena.h"
#include "server/base/err.h"

enum op_status {
    OP_DONE,  /* finished: reply or error is set */
    OP_AGAIN, /* slice used up: goes on in the worker pool */
    OP_WAIT,  /* op_wake will be called (it may have been already) */
};
#define OP_SLICE_US 2000

struct operation;
struct op_host { /* who runs it: net/ on loops and workers; tests run it by hand */
    void (*wake)(struct op_host *h, struct operation *op); /* schedule another step; any thread */
};
struct operation {
    enum op_status (*step)(struct operation *op);
    void (*done)(struct operation *op); /* the host's: called on the loop after DONE */
    struct op_host *host;
    struct arena *arena; /* freed by the host after the reply */
    struct err err;
    int64_t deadline_us; /* clock_mono_us; 0 = none (maxTimeMS): the host wakes a waiting operation when it passes */
    int64_t
        wake_at_us; /* set by a step that answers WAIT: wake me then at the latest; 0 = no timer. Cleared by the host */
    int64_t slice_end_us;   /* set by the host before each step */
    _Atomic int interrupt;  /* 0, or the code: 11601 killOp, 279 client gone, 11600 shutdown, 50 */
    _Atomic int sched;      /* the host's scheduling state */
    struct operation *next; /* in queues */
    bool on_worker;
};
static inline void op_wake(struct operation *op)
{
    op->host->wake(op->host, op);
}
bool op_slice_over(struct operation *op);                   /* looks at the clock every 16th call */
OV_MUST_CHECK int op_check_interrupt(struct operation *op); /* sets op->err: 50, 11601, 11600, 279; 0 if none */

#endif
