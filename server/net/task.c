/* The task: one request from its bytes to its reply.
 *
 *   task_start: message -> request -> command_start -> first step, on the loop
 *     DONE -> reply                                       (the usual way: no queue, no allocation)
 *     AGAIN -> worker pool, which repeats steps; DONE and WAIT come back to the loop by its queue (FINISH, PARK)
 *     WAIT -> parked; a wake-up queues the next step, on a worker if it has been there
 *   reply -> the connection, which sends it at the turn's end -> for a stream the next round
 *
 * The loop alone makes, parks, finishes and frees tasks; a worker only steps. So nothing here needs a lock. */
#include <stdlib.h>

#include "protocol/bson/bson.h"
#include "server/base/assert.h"
#include "server/base/clock.h"
#include "server/net/net_private.h"
#include "server/op/sched.h"

#define WOKEN_STEPS \
    4 /* an operation that is woken while it steps goes on at once so often before others get their turn */

struct task *task_new(struct conn *c)
{
    struct loop *l = c->loop;
    struct task *t = l->free_tasks;
    if (t) {
        l->free_tasks = t->free_next;
        l->n_free_tasks--;
    } else {
        t = ov_calloc(1, sizeof(*t));
        t->host.wake = task_wake;
        t->arena = arena_new(0);
    }
    if (t->reply.cap == 0)
        t->reply = loop_take_spare(l);
    t->loop = l;
    t->conn = c;
    t->compressor = -1;
    t->between = false;
    t->req.continued = false;
    c->task = t;
    l->n_tasks++;
    return t;
}

void task_free(struct task *t)
{
    struct loop *l = t->loop;
    timer_set(l, t, 0);
    t->cx = NULL;
    buf_free(&t->own);
    t->reply.len = 0;
    if (t->reply.cap > SPARE_BYTES)
        buf_free(&t->reply);
    l->n_tasks--;
    if (l->n_free_tasks < FREE_TASKS_MAX) {
        arena_reset(t->arena);
        t->free_next = l->free_tasks;
        l->free_tasks = t;
        l->n_free_tasks++;
    } else {
        arena_free(t->arena);
        buf_free(&t->reply);
        free(t);
    }
}

/* ---- replies ---- */

static bool is_query(const struct task *t)
{
    return t->msg.h.opcode == WIRE_OP_QUERY;
}

static void begin_reply(struct task *t)
{
    t->reply.len = 0;
    if (is_query(t))
        wire_reply_begin(&t->reply);
    else
        wire_msg_begin(&t->reply);
}

/* Hands the finished reply to the connection. */
static void queue_reply(struct task *t, uint32_t flags, bool compress)
{
    struct conn *c = t->conn;
    int32_t id = ++c->last_id;
    if (is_query(t))
        wire_reply_end(&t->reply, 0, id, t->response_to, flags | WIRE_AWAIT_CAPABLE);
    else
        wire_msg_end(&t->reply, 0, id, t->response_to, flags);
    if (compress && t->compressor >= 0)
        wire_compress(&t->loop->codec, t->compressor, &t->reply, 0, &t->loop->scratch);
    t->response_to = id;
    if (c->out.len == 0) {
        struct buf empty = c->out;
        c->out = t->reply;
        t->reply = empty;
    } else {
        buf_append(&c->out, t->reply.p, t->reply.len);
    }
    loop_mark_dirty(c->loop, c);
}

/* The message was no request: answers the error, or closes. */
static void refuse(struct task *t, const struct err *err)
{
    struct conn *c = t->conn;
    char scratch[32];
    bool answer = !t->msg.fatal || err->code == ERR_ILLEGAL_OP_MSG_FLAG || err->code == ERR_CHECKSUM_MISMATCH;
    if (answer && !(t->msg.flags & WIRE_MORE_TO_COME && !is_query(t))) {
        bool query_removed = err->code == WIRE_ERR_QUERY_REMOVED;
        begin_reply(t);
        size_t doc = bw_begin(&t->reply);
        if (query_removed) {
            bw_str(&t->reply, "$err", err->msg);
            bw_i32(&t->reply, "code", err->code);
        } else {
            bw_f64(&t->reply, "ok", 0);
            bw_str(&t->reply, "errmsg", err->msg);
            bw_i32(&t->reply, "code", err->code);
            bw_str(&t->reply, "codeName", err_code_name(err->code, scratch));
        }
        bw_end(&t->reply, doc);
        queue_reply(t, query_removed ? WIRE_QUERY_FAILURE : 0, true);
    }
    bool fatal = t->msg.fatal;
    c->task = NULL;
    task_free(t);
    if (fatal) {
        c->close_when_sent = true;
        loop_mark_dirty(c->loop, c);
    }
}

/* The operation is done and command_finish has closed the reply. */
static void finish(struct task *t)
{
    struct conn *c = t->conn;
    struct command_ctx *cx = t->cx;
    bool more = cx->exhaust_more && t->req.exhaust_allowed && !c->close_when_sent && cx->op.err.code == 0;
    bool compress = !(cx->cmd && cx->cmd->flags & CMD_NO_COMPRESS);
    if (cx->close_connection) {
        c->close_when_sent = true;
        loop_mark_dirty(c->loop, c);
    } else if (!t->req.no_reply && !c->closing) {
        queue_reply(t, more ? WIRE_MORE_TO_COME : 0, compress);
    }
    t->cx = NULL;
    if (more && !c->closing && !cx->close_connection) {
        timer_set(t->loop, t, 0);
        arena_reset(t->arena);
        t->between = true;
        return;
    }
    c->task = NULL;
    task_free(t);
}

/* After a finish that no feed() waits for: the connection goes on at the turn's end. */
static void finish_later(struct task *t)
{
    struct conn *c = t->conn;
    finish(t);
    if (c->closing)
        conn_free_if_done(c);
    else
        loop_mark_dirty(c->loop, c);
}

/* ---- steps ---- */

void task_wake(struct op_host *h, struct operation *op)
{
    struct task *t = OV_CONTAINER(h, struct task, host);
    if (!op_sched_wake(op))
        return;
    if (op->on_worker)
        op_pool_push(t->loop->net->pool, op, false);
    else
        loop_post(t->loop, t, TASK_STEP);
}

static enum op_status step(struct operation *op)
{
    op_sched_run(op);
    op->wake_at_us = 0;
    op->slice_end_us = clock_mono_us() + OP_SLICE_US;
    return op->step(op);
}

static void to_worker(struct task *t)
{
    struct operation *op = &t->cx->op;
    op->on_worker = true;
    op_sched_queue(op);
    op_pool_push(t->loop->net->pool, op, true);
}

/* Reading a large filter or pipeline takes longer than a slice and cannot stop within: other connections must not wait for it. Documents
 * in sequences do not count, since writes go through them in slices. */
static bool starts_on_worker(const struct task *t)
{
    const struct command_ctx *cx = t->cx;
    return load_le32(t->req.body) > LARGE_BODY && !cx->refused && cx->cmd->flags & (CMD_READ | CMD_WRITE);
}

/* A step answered WAIT. True: it waits, or is queued; false: it was woken meanwhile and is the caller's to run. */
static bool park(struct task *t)
{
    struct operation *op = &t->cx->op;
    int64_t due = op->deadline_us;
    if (op->wake_at_us && (due == 0 || op->wake_at_us < due))
        due = op->wake_at_us;
    if (due || t->heap_at)
        timer_set(t->loop, t, due);
    return op_sched_park(op);
}

/* Runs steps on the loop until the operation is done (true; its reply is closed) or goes elsewhere (false). `fresh`: its context is not
 * made yet, which happens within the first step's guard. */
static bool run_on_loop(struct task *t, bool fresh)
{
    struct server *s = t->loop->net->opt.server;
    for (int i = 0;; i++) {
        eng_step_enter(s->engine);
        if (fresh) {
            begin_reply(t);
            t->cx = command_start(s, &t->conn->client, &t->req, t->arena, &t->reply);
            t->cx->op.host = &t->host;
            t->cx->op.on_worker = false;
            fresh = false;
            if (starts_on_worker(t)) {
                eng_step_leave(s->engine);
                to_worker(t);
                return false;
            }
        }
        enum op_status st = step(&t->cx->op);
        if (st == OP_DONE)
            command_finish(t->cx);
        eng_step_leave(s->engine);
        switch (st) {
        case OP_DONE:
            return true;
        case OP_AGAIN:
            to_worker(t);
            return false;
        case OP_WAIT:
            if (park(t))
                return false;
            if (i == WOKEN_STEPS) {
                op_sched_queue(&t->cx->op);
                loop_post(t->loop, t, TASK_STEP);
                return false;
            }
        }
    }
}

void task_on_worker(void *arg, struct operation *op)
{
    struct task *t = OV_CONTAINER(op->host, struct task, host);
    struct engine *e = t->loop->net->opt.server->engine;
    eng_step_enter(e);
    enum op_status st = step(op);
    eng_step_leave(e);
    if (st == OP_AGAIN) {
        op_sched_queue(op);
        op_pool_push(t->loop->net->pool, op, true);
    } else {
        loop_post(t->loop, t, st == OP_DONE ? TASK_FINISH : TASK_PARK);
    }
}

void task_run_event(struct task *t)
{
    struct engine *e = t->loop->net->opt.server->engine;
    switch (t->event) {
    case TASK_STEP:
        if (run_on_loop(t, false))
            finish_later(t);
        break;
    case TASK_PARK:
        if (!park(t))
            to_worker(t);
        break;
    case TASK_FINISH:
        eng_step_enter(e);
        command_finish(t->cx);
        eng_step_leave(e);
        finish_later(t);
        break;
    case TASK_ROUND:
        if (t->conn->closing || t->conn->close_when_sent) {
            struct conn *c = t->conn;
            c->task = NULL;
            task_free(t);
            if (c->closing)
                conn_free_if_done(c);
            else
                loop_mark_dirty(c->loop, c);
            break;
        }
        t->req.continued = true;
        if (run_on_loop(t, true))
            finish_later(t);
    }
}

/* ---- from the message to the request ---- */

/* The database's name out of $db; a name with a NUL in it is none. */
static const char *db_of_body(const uint8_t *body)
{
    struct bval v = bdoc_get(body, "$db");
    uint32_t n;
    if (v.type != BSON_TYPE_UTF8)
        return NULL;
    const char *s = bval_str(v, &n);
    return memchr(s, 0, n) ? NULL : s;
}

static void make_request(struct task *t)
{
    struct wire_message *m = &t->msg;
    struct request *r = &t->req;
    struct biter it;
    struct belem e;
    biter_init(&it, m->body);
    r->name = biter_next(&it, &e) ? e.name : "";
    r->body = m->body;
    r->op_query = is_query(t);
    r->no_reply = !r->op_query && m->flags & WIRE_MORE_TO_COME;
    r->exhaust_allowed = !r->op_query && m->flags & WIRE_EXHAUST_ALLOWED;
    r->request_id = m->h.request_id;
    if (r->op_query) {
        const char *dot = strchr(m->ns, '.');
        r->db = arena_strndup(t->arena, m->ns, (size_t)(dot - m->ns));
    } else {
        r->db = db_of_body(m->body);
    }
    r->n_seqs = m->n_seqs;
    r->seqs = t->seqs;
    for (uint32_t i = 0; i < m->n_seqs; i++)
        t->seqs[i] = (struct sequence){m->seqs[i].name, m->seqs[i].p, m->seqs[i].n, m->seqs[i].count};
}

/* Where the message's bytes stay until the reply: what is small is copied, and so is what is run again and again. */
static const uint8_t *keep(struct task *t, const uint8_t *p, const struct wire_header *h)
{
    size_t n = (size_t)h->length;
    if (h->opcode == WIRE_OP_MSG && n >= WIRE_HEADER + 4 && load_le32(p + WIRE_HEADER) & WIRE_EXHAUST_ALLOWED) {
        buf_append(&t->own, p, n);
        return t->own.p;
    }
    return n <= SMALL_MESSAGE ? arena_dup(t->arena, p, n) : p;
}

static int parse(struct task *t, const uint8_t *p, struct wire_header h, struct err *err)
{
    int rc;
    t->msg.h = h;
    t->msg.flags = 0;
    t->msg.fatal = true;
    if (h.opcode == WIRE_OP_COMPRESSED) {
        if ((rc = wire_decompress(&t->loop->codec, p, &h, &t->own, &t->compressor, err)) != 0)
            return rc;
        p = t->own.p;
        wire_header_parse(p, &h);
    } else {
        p = keep(t, p, &h);
    }
    return h.opcode == WIRE_OP_MSG ? wire_msg_parse(p, &h, &t->msg, err) : wire_query_parse(p, &h, &t->msg, err);
}

void task_start(struct conn *c, struct task *t, const uint8_t *p, const struct wire_header *h)
{
    struct err err;
    atomic_fetch_add_explicit(&c->loop->net->opt.server->requests, 1, memory_order_relaxed);
    t->response_to = h->request_id;
    err_init(&err, t->arena);
    if (parse(t, p, *h, &err) != 0) {
        refuse(t, &err);
        return;
    }
    make_request(t);
    if (run_on_loop(t, true))
        finish(t);
}
