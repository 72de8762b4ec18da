/* Worker threads and their one queue. A single queue is enough: what comes here runs for milliseconds. */
#include "server/op/pool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/assert.h"
#include "server/base/log.h"
#include "server/base/mutex.h"

struct op_pool {
    struct mutex lock; /* guards all below */
    pthread_cond_t work;
    struct operation *head, **tail;
    unsigned started, idle, queued, max;
    bool stop;
    pthread_t *threads;
    void (*run)(void *arg, struct operation *op);
    void *arg;
};

static void *worker(void *arg)
{
    struct op_pool *p = arg;
    log_set_thread_name("worker");
    mutex_lock(&p->lock);
    for (;;) {
        while (!p->head && !p->stop) {
            p->idle++;
            mutex_wait(&p->lock, &p->work, -1);
            p->idle--;
        }
        struct operation *op = p->head;
        if (!op)
            break;
        if (!(p->head = op->next))
            p->tail = &p->head;
        op->next = NULL;
        p->queued--;
        mutex_unlock(&p->lock);
        p->run(p->arg, op);
        mutex_lock(&p->lock);
    }
    mutex_unlock(&p->lock);
    return NULL;
}

struct op_pool *op_pool_new(unsigned threads, void (*run)(void *arg, struct operation *op), void *arg)
{
    struct op_pool *p = ov_calloc(1, sizeof(*p));
    mutex_init(&p->lock, RANK_WORKER);
    cond_init(&p->work);
    p->tail = &p->head;
    p->max = threads ? threads : 1;
    p->threads = ov_calloc(p->max, sizeof(*p->threads));
    p->run = run;
    p->arg = arg;
    return p;
}

void op_pool_free(struct op_pool *p)
{
    if (!p)
        return;
    mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    OV_ASSERT(!p->head);
    pthread_cond_destroy(&p->work);
    mutex_destroy(&p->lock);
    free(p->threads);
    free(p);
}

/* Signals are the main thread's. */
static void start_one(struct op_pool *p)
{
    ASSERT_HELD(&p->lock);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&p->threads[p->started], NULL, worker, p) == 0)
        p->started++;
    else
        OV_ASSERT(p->started > 0); /* one is enough to go on */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void op_pool_push(struct op_pool *p, struct operation *op, bool may_start)
{
    op->next = NULL;
    mutex_lock(&p->lock);
    *p->tail = op;
    p->tail = &op->next;
    p->queued++;
    if (p->started == 0 || (may_start && p->queued > p->idle && p->started < p->max))
        start_one(p);
    pthread_cond_signal(&p->work);
    mutex_unlock(&p->lock);
}

size_t op_pool_threads(struct op_pool *p)
{
    mutex_lock(&p->lock);
    size_t n = p->started;
    mutex_unlock(&p->lock);
    return n;
}
