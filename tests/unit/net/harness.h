/* What the test programs of this folder share: commands made for the purpose, in the place of dispatch; a daemon on threads of the
 * test; clients. Included once by each program. */
#ifndef OV_TEST_NET_HARNESS_H
#define OV_TEST_NET_HARNESS_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/wire/wire.h"
#include "server/base/clock.h"
#include "server/net/net.h"
#include "tests/lib/db.h"
#include "tests/lib/test.h"

#define OV_UNUSED __attribute__((unused))

/* ---- commands ---- */

static _Atomic int interrupted_by, steps_on_workers, writes_done;

/* A thread that wakes what asks for it, over and over. */
static _Atomic(struct operation *) knocks[64];
static _Atomic bool stop_knocking;
static void *knock_back(void *arg)
{
    while (!stop_knocking) {
        for (size_t i = 0; i < OV_LEN(knocks); i++) {
            struct operation *op = atomic_exchange(&knocks[i], NULL);
            if (op)
                op_wake(op);
        }
    }
    return NULL;
}

static enum op_status done(struct command_ctx *cx)
{
    bw_i32(cx->reply, "steps", (int32_t)(intptr_t)cx->state);
    return OP_DONE;
}

/* {knock: n}: waits n times for the other thread, and uses up a slice every third time. */
static enum op_status knock(struct command_ctx *cx, int32_t n)
{
    intptr_t so_far = (intptr_t)cx->state;
    if (so_far >= n)
        return done(cx);
    cx->state = (void *)(so_far + 1);
    if (so_far % 3 == 2)
        return OP_AGAIN;
    struct operation *none = NULL;
    while (!atomic_compare_exchange_weak(&knocks[(size_t)rand() % OV_LEN(knocks)], &none, &cx->op))
        none = NULL;
    return OP_WAIT;
}

static enum op_status nap(struct command_ctx *cx, int32_t ms)
{
    if (!cx->state)
        cx->state = (void *)(intptr_t)(clock_mono_us() + ms * 1000);
    if (op_check_interrupt(&cx->op) != 0) {
        interrupted_by = cx->op.err.code;
        return OP_DONE;
    }
    if (clock_mono_us() >= (intptr_t)cx->state) {
        writes_done++;
        return OP_DONE;
    }
    cx->op.wake_at_us = (intptr_t)cx->state;
    return OP_WAIT;
}

static enum op_status big(struct command_ctx *cx, int32_t n)
{
    uint8_t *p = ov_malloc((size_t)n);
    memset(p, 'x', (size_t)n);
    bw_bin(cx->reply, "big", 0, p, (size_t)n);
    free(p);
    return OP_DONE;
}

static enum op_status stream(struct command_ctx *cx, int32_t n)
{
    intptr_t round = cx->req->continued ? (intptr_t)cx->client->awaiting_hello + 1 : 1;
    cx->client->awaiting_hello = (void *)round;
    bw_i32(cx->reply, "round", (int32_t)round);
    cx->exhaust_more = cx->req->exhaust_allowed && round < n;
    return OP_DONE;
}

static const struct command other_command = {.name = "other"};
static const struct command write_command = {.name = "write", .flags = CMD_WRITE};

static enum op_status run(struct operation *op)
{
    struct command_ctx *cx = (struct command_ctx *)op;
    const char *name = cx->req->name;
    struct bval v = bdoc_get(cx->req->body, name);
    int32_t n = v.type == BSON_TYPE_INT32 ? bval_i32(v) : 0;
    if (op->on_worker)
        steps_on_workers++;
    if (strcmp(name, "knock") == 0)
        return knock(cx, n);
    if (strcmp(name, "nap") == 0 || strcmp(name, "write") == 0)
        return nap(cx, n);
    if (strcmp(name, "big") == 0)
        return big(cx, n);
    if (strcmp(name, "stream") == 0)
        return stream(cx, n);
    if (strcmp(name, "bye") == 0)
        cx->close_connection = true;
    for (uint32_t i = 0; i < cx->req->n_seqs; i++)
        bw_i32(cx->reply, cx->req->seqs[i].name, (int32_t)cx->req->seqs[i].count);
    return OP_DONE;
}

struct command_ctx *command_start(struct server *s, struct client *c, const struct request *req, struct arena *a,
                                  struct buf *reply)
{
    struct command_ctx *cx = arena_zalloc(a, sizeof(*cx));
    cx->op.step = run;
    cx->op.arena = a;
    err_init(&cx->op.err, a);
    cx->server = s;
    cx->client = c;
    cx->req = req;
    cx->reply = reply;
    cx->cmd = strcmp(req->name, "write") == 0 ? &write_command : &other_command;
    cx->cleanup = (void (*)(struct command_ctx *))(uintptr_t)bw_begin(reply);
    return cx;
}

void command_finish(struct command_ctx *cx)
{
    bw_f64(cx->reply, "ok", cx->op.err.code == 0);
    bw_i32(cx->reply, "code", cx->op.err.code);
    bw_end(cx->reply, (size_t)(uintptr_t)cx->cleanup);
}

/* ---- the daemon under test, and its clients ---- */

static struct db db;
static struct server server;
static struct net *net;
static int64_t most_connections;
static pthread_t net_thread, knock_thread;

static void *run_net(void *arg)
{
    net_run(net);
    return NULL;
}

OV_UNUSED static void start(unsigned loops, int debug_pending)
{
    static const char *const bind[] = {"127.0.0.1", "localhost"}; /* one address twice */
    struct err err;
    err_init(&err, NULL);
    db.opt.debug_pending = debug_pending;
    db_new(&db);
    server.engine = db.e;
    struct net_options opt = {.bind = bind,
                              .n_bind = 2,
                              .loops = loops,
                              .workers = 3,
                              .max_connections = most_connections,
                              .server = &server};
    ck_assert_int_eq(net_open(&opt, &net, &err), 0);
    ck_assert_int_eq(pthread_create(&net_thread, NULL, run_net, NULL), 0);
    ck_assert_int_eq(pthread_create(&knock_thread, NULL, knock_back, NULL), 0);
}

OV_UNUSED static void stop(void)
{
    int64_t from = clock_mono_us();
    net_stop(net);
    pthread_join(net_thread, NULL);
    ck_assert_int_lt(clock_mono_us() - from, 5000000);
    stop_knocking = true;
    pthread_join(knock_thread, NULL);
    net_close(net);
    ck_assert_int_eq(server.connections, 0);
    db_free(&db);
}

OV_UNUSED static int dial(void)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(net_port(net)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval limit = {20, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

OV_UNUSED static void put(struct buf *b, int32_t id, uint32_t flags, const char *name, int32_t v, size_t padding)
{
    size_t at = b->len;
    wire_msg_begin(b);
    size_t d = bw_begin(b);
    bw_i32(b, name, v);
    if (padding) {
        uint8_t *p = ov_calloc(1, padding);
        bw_bin(b, "padding", 0, p, padding);
        free(p);
    }
    bw_str(b, "$db", "test");
    bw_end(b, d);
    wire_msg_end(b, at, id, 0, flags);
}

OV_UNUSED static void send_buf(int fd, struct buf *b)
{
    size_t at = 0;
    while (at < b->len) {
        ssize_t n = send(fd, b->p + at, b->len - at, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        at += (size_t)n;
    }
    b->len = 0;
}

OV_UNUSED static void tell(int fd, int32_t id, uint32_t flags, const char *name, int32_t v, size_t padding)
{
    struct buf b;
    buf_init(&b);
    put(&b, id, flags, name, v, padding);
    send_buf(fd, &b);
    buf_free(&b);
}

struct reply {
    uint8_t *p;
    int32_t response_to, id;
    uint32_t flags;
    const uint8_t *doc;
};

static bool read_exactly(int fd, uint8_t *p, size_t n)
{
    while (n) {
        ssize_t got = recv(fd, p, n, 0);
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

OV_UNUSED static bool hear(int fd, struct reply *r)
{
    uint8_t head[WIRE_HEADER];
    if (!read_exactly(fd, head, sizeof(head)))
        return false;
    size_t n = load_le32(head);
    ck_assert_uint_ge(n, WIRE_MSG_PREFIX + 5);
    r->p = ov_malloc(n);
    memcpy(r->p, head, sizeof(head));
    ck_assert(read_exactly(fd, r->p + sizeof(head), n - sizeof(head)));
    r->id = (int32_t)load_le32(head + 4);
    r->response_to = (int32_t)load_le32(head + 8);
    r->flags = load_le32(r->p + WIRE_HEADER);
    r->doc = r->p + WIRE_MSG_PREFIX;
    return true;
}

OV_UNUSED static int32_t field(const struct reply *r, const char *name)
{
    struct bval v = bdoc_get(r->doc, name);
    return v.type == BSON_TYPE_INT32 ? bval_i32(v) : -1;
}

/* The next reply is to `id`; returns one of its fields. */
OV_UNUSED static int32_t expect(int fd, int32_t id, const char *name)
{
    struct reply r;
    ck_assert_msg(hear(fd, &r), "closed instead of a reply to %d", id);
    ck_assert_int_eq(r.response_to, id);
    int32_t v = field(&r, name);
    free(r.p);
    return v;
}

OV_UNUSED static bool is_closed(int fd)
{
    uint8_t b;
    ssize_t n = recv(fd, &b, 1, 0);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}

#endif
