/* The worker pool: threads for operations that outlast a slice. First in, first out; a thread is started when there is work and none is idle. */
#ifndef OV_POOL_H
#define OV_POOL_H

#include "server/op/operation.h"

struct op_pool;

/* At most `threads` of them, none yet. Each calls run(arg, op) for what is pushed. */
struct op_pool *op_pool_new(unsigned threads, void (*run)(void *arg, struct operation *op), void *arg);
void op_pool_free(struct op_pool *p); /* the queue is empty and stays so; joins the threads. Accepts NULL */

/* Queues an operation (state QUEUED, in no other queue). may_start: start a thread if all are busy; false under mutexes of others, in
 * wake-ups. Thread: any. */
void op_pool_push(struct op_pool *p, struct operation *op, bool may_start);
size_t op_pool_threads(struct op_pool *p); /* started so far */

#endif
