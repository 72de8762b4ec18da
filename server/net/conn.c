/* The connection: bytes in, whole messages to task.c, replies out. Requests of one connection run one after the other.
 *
 * Reading goes into the loop's buffer. What a read leaves over (the beginning of a message, or requests behind one that is under way) is copied to
 * `in`; the rest of a large message is then read straight into it, which grows with what has arrived, never with what was announced.
 * A connection that is busy and has IN_MAX bytes waiting, or whose replies are not taken, is not read.
 *
 *   open --EOF--> eof (requests received before still run) --nothing left--> closing --libuv, task--> freed */
#include <stdlib.h>
#include <unistd.h>

#include "server/base/assert.h"
#include "server/base/log.h"
#include "server/net/net_private.h"

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf);
static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf);

static bool may_start(const struct conn *c)
{
    return !c->task && !c->closing && !c->close_when_sent && !c->writing && c->out.len < OUT_MAX && !c->loop->stopping;
}

/* Reads exactly while there is room for what comes. */
static void set_reading(struct conn *c)
{
    bool want = !c->closing && !c->eof && !c->writing && !c->close_when_sent && (may_start(c) || c->in.len < IN_MAX);
    if (want == c->reading)
        return;
    c->reading = want;
    if (!want)
        uv_read_stop((uv_stream_t *)&c->tcp);
    else if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0)
        conn_close(c);
}

/* ---- messages ---- */

/* Handles the whole messages in src while it may; src is c->in or the loop's buffer, and what is left of it is then in c->in. A message that is
 * still needed takes src's memory with it. */
static void feed(struct conn *c, struct buf *src)
{
    size_t at = 0;
    while (may_start(c) && src->len - at >= WIRE_HEADER) {
        struct wire_header h;
        if (!wire_header_parse(src->p + at, &h)) {
            conn_close(c);
            return;
        }
        if (src->len - at < (size_t)h.length)
            break;
        struct task *t = task_new(c);
        task_start(c, t, src->p + at, &h);
        at += (size_t)h.length;
        if (c->task == t && t->own.cap == 0 && h.length > SMALL_MESSAGE) {
            t->own = *src;
            buf_init(src);
            buf_append(&c->in, t->own.p + at, t->own.len - at);
            return;
        }
    }
    if (c->closing)
        return;
    if (src != &c->in) {
        buf_append(&c->in, src->p + at, src->len - at);
    } else if (at == src->len) {
        buf_free(src);
    } else if (at) {
        memmove(src->p, src->p + at, src->len - at);
        src->len -= at;
    }
}

void conn_go_on(struct conn *c)
{
    if (c->closing)
        return;
    if (c->in.len)
        feed(c, &c->in);
    if (c->closing)
        return;
    if (c->eof && !c->task && !c->writing && !c->dirty)
        conn_close(c);
    else
        set_reading(c);
}

/* ---- reading ---- */

/* How much of the message that begins c->in is missing, if it is one that is read in place. */
static size_t missing_of_large(const struct conn *c)
{
    if (c->in.len < WIRE_HEADER)
        return 0;
    int32_t n = (int32_t)load_le32(c->in.p);
    return n > READ_BYTES && n <= WIRE_MESSAGE_MAX && (size_t)n > c->in.len ? (size_t)n - c->in.len : 0;
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct conn *c = h->data;
    struct loop *l = c->loop;
    size_t missing = missing_of_large(c);
    c->direct = missing > 0;
    if (c->direct) {
        size_t room = OV_MIN(missing, OV_MAX(c->in.len, (size_t)READ_BYTES));
        if (c->in.cap - c->in.len <
            OV_MIN(room, (size_t)READ_BYTES / 4)) { /* not by buf_reserve: never more than the message */
            c->in.cap = c->in.len + room;
            c->in.p = ov_realloc(c->in.p, c->in.cap);
        }
        *buf = uv_buf_init((char *)c->in.p + c->in.len, (unsigned)OV_MIN(c->in.cap - c->in.len, missing));
        return;
    }
    if (l->rbuf.cap == 0)
        buf_reserve(&l->rbuf, READ_BYTES);
    *buf = uv_buf_init((char *)l->rbuf.p, (unsigned)l->rbuf.cap);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct conn *c = s->data;
    struct loop *l = c->loop;
    if (n == 0)
        return;
    if (n < 0) {
        c->reading = false; /* libuv has stopped, too */
        uv_read_stop(s);
        c->eof = true;
        if (n != UV_EOF) {
            conn_close(c);
            return;
        }
        conn_interrupt(c, ERR_CLIENT_DISCONNECT);
        conn_go_on(c);
        return;
    }
    atomic_fetch_add_explicit(&l->net->opt.server->bytes_in, n, memory_order_relaxed);
    if (c->direct) {
        c->in.len += (size_t)n;
        feed(c, &c->in);
    } else if (c->in.len) {
        buf_append(&c->in, l->rbuf.p, (size_t)n);
        feed(c, &c->in);
    } else {
        l->rbuf.len = (size_t)n;
        feed(c, &l->rbuf);
    }
    if (!c->closing)
        set_reading(c);
}

/* ---- writing ---- */

static void sent(struct conn *c)
{
    loop_give_spare(c->loop, &c->sending);
    if (c->close_when_sent && !(c->task && c->task->cx)) {
        conn_close(c);
        return;
    }
    if (c->task && c->task->between) {
        c->task->between = false;
        loop_post(c->loop, c->task, TASK_ROUND);
    }
    conn_go_on(c);
}

static void on_written(uv_write_t *w, int status)
{
    struct conn *c = w->data;
    c->writing = false;
    if (c->closing)
        return;
    if (status < 0)
        conn_close(c);
    else if (c->out.len)
        loop_mark_dirty(c->loop, c); /* finished meanwhile: after its hand-over */
    else
        sent(c);
}

void conn_flush(struct conn *c)
{
    if (c->closing) {
        conn_free_if_done(c);
        return;
    }
    if (c->writing)
        return;
    if (c->out.len == 0) {
        sent(c);
        return;
    }
    loop_give_spare(c->loop, &c->sending);
    c->sending = c->out;
    buf_init(&c->out);
    atomic_fetch_add_explicit(&c->loop->net->opt.server->bytes_out, (int64_t)c->sending.len, memory_order_relaxed);
    uv_buf_t b = uv_buf_init((char *)c->sending.p, (unsigned)c->sending.len);
    int n = uv_try_write((uv_stream_t *)&c->tcp, &b, 1);
    if (n == (int)c->sending.len) {
        sent(c);
        return;
    }
    if (n < 0 && n != UV_EAGAIN) {
        conn_close(c);
        return;
    }
    n = OV_MAX(n, 0);
    b = uv_buf_init((char *)c->sending.p + n, (unsigned)(c->sending.len - (size_t)n));
    c->write.data = c;
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &b, 1, on_written) != 0) {
        conn_close(c);
        return;
    }
    c->writing = true;
    set_reading(c);
}

/* ---- life ---- */

static void address_text(const struct sockaddr_storage *a, char *out, size_t n)
{
    char ip[INET6_ADDRSTRLEN] = "";
    if (a->ss_family == AF_INET6) {
        const struct sockaddr_in6 *s = (const struct sockaddr_in6 *)a;
        uv_ip6_name(s, ip, sizeof(ip));
        snprintf(out, n, "[%s]:%u", ip, ntohs(s->sin6_port));
    } else {
        const struct sockaddr_in *s = (const struct sockaddr_in *)a;
        uv_ip4_name(s, ip, sizeof(ip));
        snprintf(out, n, "%s:%u", ip, ntohs(s->sin_port));
    }
}

void conn_open(struct loop *l, int fd, int64_t id)
{
    struct server *s = l->net->opt.server;
    struct conn *c = ov_calloc(1, sizeof(*c));
    struct sockaddr_storage a;
    int n;
    c->loop = l;
    c->client.id = id;
    uv_tcp_init(&l->uv, &c->tcp);
    c->tcp.data = c;
    if ((c->next = l->conns) != NULL)
        c->next->at = &c->next;
    c->at = &l->conns;
    l->conns = c;
    int64_t count = atomic_fetch_add(&s->connections, 1) + 1;
    atomic_fetch_add(&s->connections_total, 1);
    if (uv_tcp_open(&c->tcp, fd) != 0) {
        close(fd);
        conn_close(c);
        return;
    }
    uv_tcp_nodelay(&c->tcp, 1);
    uv_tcp_keepalive(&c->tcp, 1, 120);
    n = sizeof(a);
    if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&a, &n) == 0)
        address_text(&a, c->client.addr, sizeof(c->client.addr));
    n = sizeof(a);
    if (uv_tcp_getsockname(&c->tcp, (struct sockaddr *)&a, &n) == 0)
        address_text(&a, c->client.local, sizeof(c->client.local));
    log_line(LOG_DEBUG1, "NETWORK", 22943, "Connection accepted",
             "\"remote\":\"%s\",\"connectionId\":%lld,\"connectionCount\":%lld", c->client.addr, (long long)id,
             (long long)count);
    set_reading(c);
}

static void on_closed(uv_handle_t *h)
{
    struct conn *c = h->data;
    c->closed = true;
    conn_free_if_done(c);
}

void conn_interrupt(struct conn *c, int code)
{
    struct task *t = c->task;
    if (!t || !t->cx)
        return;
    /* A write goes on without its client, as the real server's do: only a stop of the daemon ends it. */
    if (code == ERR_CLIENT_DISCONNECT && (t->req.no_reply || (t->cx->cmd && t->cx->cmd->flags & CMD_WRITE)))
        return;
    atomic_store(&t->cx->op.interrupt, code);
    op_wake(&t->cx->op);
}

void conn_close(struct conn *c)
{
    if (c->closing)
        return;
    c->closing = true;
    c->reading = false;
    log_line(LOG_DEBUG1, "NETWORK", 22944, "Connection ended", "\"remote\":\"%s\",\"connectionId\":%lld",
             c->client.addr, (long long)c->client.id);
    conn_interrupt(c, ERR_CLIENT_DISCONNECT);
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

void conn_stop(struct conn *c)
{
    if (c->task && c->task->cx)
        conn_interrupt(c, ERR_INTERRUPTED_AT_SHUTDOWN);
    c->close_when_sent = true;
    loop_mark_dirty(c->loop, c);
}

void conn_free_if_done(struct conn *c)
{
    struct loop *l = c->loop;
    if (!c->closed || c->dirty)
        return;
    if (c->task && c->task->between) {
        task_free(c->task);
        c->task = NULL;
    }
    if (c->task)
        return;
    if (c->next)
        c->next->at = c->at;
    *c->at = c->next;
    buf_free(&c->in);
    buf_free(&c->out);
    buf_free(&c->sending);
    atomic_fetch_sub(&l->net->opt.server->connections, 1);
    atomic_fetch_sub(&l->n_conns, 1);
    free(c);
}
