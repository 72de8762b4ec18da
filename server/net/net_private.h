/* What the files of server/net share: the loop, the connection, the task.
 *
 * LOOP        one a thread; owns its connections, their memory and their tasks. Others reach it by its queue alone.
 * CONNECTION  reads into the loop's one buffer; only what is left of a message after a read is kept in memory of its own.
 * TASK        a request under way: message, arena, operation, reply. At most one a connection; recycled by the loop.
 *
 * A turn: poll (reads; the first steps run) -> check: queue, hand-over to the kernel, replies -> timers -> prepare: the same -> poll. */
#ifndef OV_NET_PRIVATE_H
#define OV_NET_PRIVATE_H

#include <uv.h>

#include "protocol/wire/wire.h"
#include "server/base/mutex.h"
#include "server/net/net.h"
#include "server/op/pool.h"

#define READ_BYTES (64 * 1024) /* the loop's read buffer */
#define SMALL_MESSAGE \
    4096 /* up to this size a message is copied into its arena: cheaper than to give the read buffer away */
#define LARGE_BODY     (128 * 1024) /* a command larger than this, without its sequences, takes no step on the loop */
#define IN_MAX         (64 * 1024)  /* a connection that is busy is not read beyond this */
#define OUT_MAX        (256 * 1024) /* nor are its further requests run while this much is unsent */
#define SPARE_BYTES    (64 * 1024)  /* larger reply buffers are not kept */
#define SPARES         64
#define FREE_TASKS_MAX 64 /* a loop keeps so many for reuse */
#define LISTEN_MAX     16

struct conn {
    uv_tcp_t tcp;
    uv_write_t write;
    struct loop *loop;
    struct conn *next, **at; /* all of the loop's */
    struct conn *dirty_next;
    struct task *task;  /* the request under way, or the stream */
    struct buf in;      /* received, not yet handled; nothing is allocated while idle */
    struct buf out;     /* replies of this turn */
    struct buf sending; /* with libuv */
    int32_t last_id;    /* of our messages */
    bool dirty;         /* in the loop's list: something to send, to start or to close at the turn's end */
    bool reading, writing, eof, closing, closed, direct;
    bool close_when_sent;
    struct client client;
};

enum task_event { TASK_STEP, TASK_PARK, TASK_FINISH, TASK_ROUND };

struct task {
    struct op_host host; /* first step to the last: operations wake us through it */
    struct loop *loop;
    struct conn *conn;
    struct command_ctx *cx; /* NULL between the rounds of a stream */
    struct arena *arena;
    struct buf reply;
    struct buf own; /* the message, if it has memory of its own */
    struct wire_message msg;
    struct sequence seqs[WIRE_SEQS_MAX];
    struct request req;
    bool between;   /* a stream whose last reply has not left yet: in no queue, no operation */
    int compressor; /* of the request, or -1 */
    int32_t response_to;
    enum task_event event; /* what the loop does with it when it comes out of the queue */
    struct task *queue_next, *free_next;
    size_t heap_at; /* 1 + place in the timer heap; 0: not there */
    int64_t due_us;
};

struct loop {
    struct net *net;
    unsigned id;
    uv_loop_t uv;
    uv_async_t async;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t timer, stop_timer;
    uv_thread_t thread;

    struct mutex lock; /* guards the queues */
    struct task *queue, **queue_tail;
    struct accepted {
        int fd;
        int64_t id;
    } * accepted;
    size_t n_accepted, cap_accepted;

    _Atomic int n_conns; /* with those in `accepted` */
    _Atomic bool posted; /* something is in the queues; set under the lock */
    bool handed;         /* the hand-over that was pending can be asked again; under the lock */
    struct conn *conns;
    struct conn *dirty, **dirty_tail;
    struct task *free_tasks;
    size_t n_free_tasks, n_tasks;
    struct buf rbuf, scratch; /* read buffer; of compression */
    struct buf spare[SPARES]; /* empty reply buffers */
    size_t n_spare;
    struct task **heap; /* by due_us */
    size_t n_heap, cap_heap;
    int64_t timer_us; /* when the timer fires; 0 = not started */
    struct wire_codec codec;
    struct eng_call handover;
    bool handover_pending, read_only, stopping, closed;
    unsigned stop_ticks;
};

struct listener {
    uv_poll_t poll;
    int fd;
    struct sockaddr_storage address;
    struct net *net;
};
struct net {
    struct net_options opt;
    struct loop loops[NET_LOOPS_MAX];
    unsigned n_loops;
    struct listener listeners[LISTEN_MAX];
    unsigned n_listeners;
    uint16_t port;
    int spare_fd;         /* given up to accept and close when descriptors run out */
    int64_t last_conn_id; /* the first loop's */
    uv_signal_t signals[4];
    uv_timer_t tick;
    struct op_pool *pool;
    _Atomic bool stop, stop_loops;
};

/* listener.c */
int listeners_open(struct net *n, const struct net_options *opt, struct err *err);
void listeners_start(struct net *n); /* first loop */
void listeners_stop(struct net *n);  /* first loop, or before it runs */

/* loop.c */
void loop_init(struct loop *l, struct net *n, unsigned id);
void loop_run(struct loop *l); /* until it is stopped and empty */
void loop_deinit(struct loop *l);
void loop_post(struct loop *l, struct task *t, enum task_event e); /* any thread */
void loop_post_accepted(struct loop *l, int fd, int64_t id);       /* any thread */
void loop_mark_dirty(struct loop *l, struct conn *c);
struct buf loop_take_spare(struct loop *l);
void loop_give_spare(struct loop *l, struct buf *b); /* empties b */
void loop_end_if_empty(struct loop *l);

/* timer.c */
void timer_set(struct loop *l, struct task *t, int64_t due_us); /* 0 = none */
void timer_fired(uv_timer_t *h);

/* conn.c */
void conn_open(struct loop *l, int fd, int64_t id);
void conn_close(
    struct conn *c); /* now; what is unsent is lost. The operation under way is interrupted, unless it writes */
void conn_flush(struct conn *c); /* the turn's end: send, then go on */
void conn_go_on(struct conn *c); /* the task has ended: handle what has been received meanwhile */
void conn_interrupt(struct conn *c, int code);
void conn_stop(struct conn *c); /* at shutdown */
void conn_free_if_done(struct conn *c);

/* task.c */
void task_start(struct conn *c, struct task *t, const uint8_t *p, const struct wire_header *h);
void task_run_event(struct task *t);                     /* it came out of the loop's queue */
void task_wake(struct op_host *h, struct operation *op); /* any thread */
void task_on_worker(void *arg, struct operation *op);    /* worker threads: one step */
struct task *task_new(struct conn *c);
void task_free(struct task *t);

#endif
