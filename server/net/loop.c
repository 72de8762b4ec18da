/* The loop: its queue, and the end of a turn, where everything published in the turn is handed to the kernel once and then all
 * replies of the turn leave. The queue is emptied before the replies, so that what finished elsewhere goes out in the same turn. */
#include <stdlib.h>
#include <unistd.h>

#include "server/base/assert.h"
#include "server/base/log.h"
#include "server/net/net_private.h"

#define STOP_TICKS 100 /* tenths of a second that operations get to end after a stop */
#define FLUSH_ROUNDS \
    16 /* replies make room for further requests of the same connection: so often a turn before others get theirs */

static _Thread_local struct loop *this_loop;

/* The wake-up is sent under the lock: what was posted cannot be taken, run and freed, and with it the last reason for the loop to be there,
 * before it is out. */
static void posted(struct loop *l)
{
    ASSERT_HELD(&l->lock);
    atomic_store(&l->posted, true);
    if (this_loop != l) /* its own thread looks at the queue before it polls */
        uv_async_send(&l->async);
}

void loop_post(struct loop *l, struct task *t, enum task_event e)
{
    t->event = e;
    t->queue_next = NULL;
    mutex_lock(&l->lock);
    bool first = !l->queue;
    *l->queue_tail = t;
    l->queue_tail = &t->queue_next;
    if (first)
        posted(l);
    mutex_unlock(&l->lock);
}

void loop_post_accepted(struct loop *l, int fd, int64_t id)
{
    mutex_lock(&l->lock);
    if (l->n_accepted == l->cap_accepted) {
        l->cap_accepted = l->cap_accepted ? 2 * l->cap_accepted : 16;
        l->accepted = ov_realloc(l->accepted, l->cap_accepted * sizeof(*l->accepted));
    }
    l->accepted[l->n_accepted++] = (struct accepted){fd, id};
    posted(l);
    mutex_unlock(&l->lock);
}

void loop_mark_dirty(struct loop *l, struct conn *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->dirty_next = NULL;
    *l->dirty_tail = c;
    l->dirty_tail = &c->dirty_next;
}

struct buf loop_take_spare(struct loop *l)
{
    return l->n_spare ? l->spare[--l->n_spare] : (struct buf){0};
}

void loop_give_spare(struct loop *l, struct buf *b)
{
    if (b->cap && b->cap <= SPARE_BYTES && l->n_spare < SPARES) {
        b->len = 0;
        l->spare[l->n_spare++] = *b;
        buf_init(b);
    } else {
        buf_free(b);
    }
}

/* ---- the end of a turn ---- */

static void handover_wake(struct eng_call *call)
{
    struct loop *l = OV_CONTAINER(call, struct loop, handover);
    mutex_lock(&l->lock);
    l->handed = true;
    posted(l);
    mutex_unlock(&l->lock);
}

/* The engine has just turned read-only: whether this turn's writes are with the kernel is not known, so none is acknowledged. */
static void drop_write_replies(struct loop *l)
{
    log_line(LOG_ERROR, "STORAGE", 6000001,
             "Writes can no longer be handed to the kernel; connections with unacknowledged replies are closed", NULL);
    for (struct conn *c = l->dirty; c; c = c->dirty_next)
        conn_close(c);
}

/* True once everything published is with the kernel. */
static bool hand_over(struct loop *l)
{
    if (l->handover_pending) {
        mutex_lock(&l->lock);
        bool handed = l->handed;
        l->handed = false;
        mutex_unlock(&l->lock);
        if (!handed)
            return false;
    }
    enum eng_result r = eng_handover(l->net->opt.server->engine, &l->handover);
    l->handover_pending = r == ENG_PENDING;
    if (l->handover_pending)
        return false;
    if (r != ENG_OK && !l->read_only) {
        l->read_only = true; /* from here on each write gets its own error */
        drop_write_replies(l);
    }
    return true;
}

static void flush(struct loop *l)
{
    for (int round = 0; l->dirty; round++) {
        if (round == FLUSH_ROUNDS) {
            uv_async_send(&l->async);
            return;
        }
        if (!hand_over(l))
            return;
        struct conn *c = l->dirty, *next;
        l->dirty = NULL;
        l->dirty_tail = &l->dirty;
        for (; c; c = next) {
            next = c->dirty_next;
            c->dirty = false;
            conn_flush(c);
        }
    }
}

static void take_accepted(struct loop *l)
{
    for (;;) {
        mutex_lock(&l->lock);
        struct accepted a = {-1, 0};
        if (l->n_accepted)
            a = l->accepted[--l->n_accepted];
        mutex_unlock(&l->lock);
        if (a.fd < 0)
            return;
        if (l->stopping) {
            close(a.fd);
            atomic_fetch_sub(&l->n_conns, 1);
        } else {
            conn_open(l, a.fd, a.id);
        }
    }
}

/* What others have posted so far; what is posted meanwhile comes with the next turn. */
static void take_queue(struct loop *l)
{
    mutex_lock(&l->lock);
    struct task *t = l->queue, *next;
    l->queue = NULL;
    l->queue_tail = &l->queue;
    mutex_unlock(&l->lock);
    for (; t; t = next) {
        next = t->queue_next;
        task_run_event(t);
    }
}

/* A second after the stop: clients that do not read are not waited for. Operations are, but not for ever: the journal survives. */
static void on_stop_timer(uv_timer_t *h)
{
    struct loop *l = h->data;
    struct conn *next;
    for (struct conn *c = l->conns; c; c = next) {
        next = c->next;
        if (c->task && c->task->cx) {
            atomic_store(&c->task->cx->op.interrupt, ERR_INTERRUPTED_AT_SHUTDOWN);
            op_wake(&c->task->cx->op);
        }
        conn_close(c);
    }
    if (++l->stop_ticks > STOP_TICKS) {
        log_line(LOG_ERROR, "CONTROL", 6000002, "Operations did not end in time; exiting without them",
                 "\"operations\":%zu", l->n_tasks);
        _exit(1);
    }
    uv_timer_start(h, on_stop_timer, 100, 0);
}

static void begin_stop(struct loop *l)
{
    struct conn *next;
    l->stopping = true;
    uv_timer_start(&l->stop_timer, on_stop_timer, 900, 0);
    for (struct conn *c = l->conns; c; c = next) {
        next = c->next;
        conn_stop(c);
    }
}

static void turn(struct loop *l)
{
    struct net *n = l->net;
    if (OV_UNLIKELY(atomic_load_explicit(&n->stop_loops, memory_order_relaxed)) && !l->stopping)
        begin_stop(l);
    if (atomic_load_explicit(&l->posted, memory_order_relaxed)) {
        atomic_store(&l->posted, false);
        take_accepted(l);
        take_queue(l);
    }
    flush(l);
    if (atomic_load_explicit(&l->posted, memory_order_relaxed))
        uv_async_send(&l->async);
    loop_end_if_empty(l);
}

static void on_prepare(uv_prepare_t *h)
{
    turn(h->data);
}

static void on_check(uv_check_t *h)
{
    turn(h->data);
}

/* ---- start and stop ---- */

static void on_async(uv_async_t *h)
{
    struct loop *l = h->data;
    struct net *n = l->net;
    if (l->id == 0 && atomic_load(&n->stop) && !atomic_load(&n->stop_loops)) {
        atomic_store(&n->opt.server->shutting_down, true);
        listeners_stop(n);
        atomic_store(&n->stop_loops, true);
        for (unsigned i = 0; i < n->n_loops; i++)
            uv_async_send(&n->loops[i].async);
    }
}

static void close_handle(uv_handle_t *h, void *arg)
{
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

void loop_end_if_empty(struct loop *l)
{
    if (!l->stopping || l->conns || l->closed)
        return;
    OV_ASSERT(l->n_tasks == 0);
    l->closed = true;
    uv_walk(&l->uv, close_handle, NULL);
}

void loop_init(struct loop *l, struct net *n, unsigned id)
{
    l->net = n;
    l->id = id;
    mutex_init(&l->lock, RANK_LOOP);
    l->queue_tail = &l->queue;
    l->dirty_tail = &l->dirty;
    eng_call_init(&l->handover, handover_wake);
    OV_ASSERT(uv_loop_init(&l->uv) == 0);
    OV_ASSERT(uv_async_init(&l->uv, &l->async, on_async) == 0);
    uv_prepare_init(&l->uv, &l->prepare);
    uv_check_init(&l->uv, &l->check);
    uv_timer_init(&l->uv, &l->timer);
    uv_timer_init(&l->uv, &l->stop_timer);
    l->async.data = l->prepare.data = l->check.data = l->timer.data = l->stop_timer.data = l;
    uv_prepare_start(&l->prepare, on_prepare);
    uv_check_start(&l->check, on_check);
}

void loop_run(struct loop *l)
{
    char name[16];
    snprintf(name, sizeof(name), "loop%u", l->id);
    log_set_thread_name(name);
    this_loop = l;
    uv_run(&l->uv, UV_RUN_DEFAULT);
    this_loop = NULL;
}

void loop_deinit(struct loop *l)
{
    if (!l->closed) { /* never ran */
        uv_walk(&l->uv, close_handle, NULL);
        uv_run(&l->uv, UV_RUN_DEFAULT);
    }
    OV_ASSERT(uv_loop_close(&l->uv) == 0);
    while (l->free_tasks) {
        struct task *t = l->free_tasks;
        l->free_tasks = t->free_next;
        arena_free(t->arena);
        buf_free(&t->reply);
        free(t);
    }
    for (size_t i = 0; i < l->n_spare; i++)
        buf_free(&l->spare[i]);
    buf_free(&l->rbuf);
    buf_free(&l->scratch);
    free(l->heap);
    free(l->accepted);
    wire_codec_deinit(&l->codec);
    mutex_destroy(&l->lock);
}
