/* Loops, connections and tasks under commands made for the purpose: they take the place of dispatch here. */
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
    cx->cmd = strcmp(req->name, "write") == 0 ? &write_command : NULL;
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
static pthread_t net_thread, knock_thread;

static void *run_net(void *arg)
{
    net_run(net);
    return NULL;
}

static void start(unsigned loops, int debug_pending)
{
    static const char *const bind[] = {"127.0.0.1", "localhost"}; /* one address twice */
    struct err err;
    err_init(&err, NULL);
    db.opt.debug_pending = debug_pending;
    db_new(&db);
    server.engine = db.e;
    struct net_options opt = {.bind = bind, .n_bind = 2, .loops = loops, .workers = 3, .server = &server};
    ck_assert_int_eq(net_open(&opt, &net, &err), 0);
    ck_assert_int_eq(pthread_create(&net_thread, NULL, run_net, NULL), 0);
    ck_assert_int_eq(pthread_create(&knock_thread, NULL, knock_back, NULL), 0);
}

static void stop(void)
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

static int dial(void)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(net_port(net)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval limit = {20, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void put(struct buf *b, int32_t id, uint32_t flags, const char *name, int32_t v, size_t padding)
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

static void send_buf(int fd, struct buf *b)
{
    size_t at = 0;
    while (at < b->len) {
        ssize_t n = send(fd, b->p + at, b->len - at, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        at += (size_t)n;
    }
    b->len = 0;
}

static void tell(int fd, int32_t id, uint32_t flags, const char *name, int32_t v, size_t padding)
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

static bool hear(int fd, struct reply *r)
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

static int32_t field(const struct reply *r, const char *name)
{
    struct bval v = bdoc_get(r->doc, name);
    return v.type == BSON_TYPE_INT32 ? bval_i32(v) : -1;
}

/* The next reply is to `id`; returns one of its fields. */
static int32_t expect(int fd, int32_t id, const char *name)
{
    struct reply r;
    ck_assert_msg(hear(fd, &r), "closed instead of a reply to %d", id);
    ck_assert_int_eq(r.response_to, id);
    int32_t v = field(&r, name);
    free(r.p);
    return v;
}

static bool is_closed(int fd)
{
    uint8_t b;
    ssize_t n = recv(fd, &b, 1, 0);
    return n == 0 || (n < 0 && errno == ECONNRESET);
}

/* ---- tests ---- */

START_TEST(pipelined_requests_are_answered_in_order)
{
    start(1, 0);
    int fd = dial();
    struct buf b;
    buf_init(&b);
    for (int i = 1; i <= 3000; i++)
        put(&b, i, 0, i % 7 == 0 ? "knock" : "ping", i % 7 == 0 ? i % 10 : 1, i % 50 == 0 ? 20000 : 0);
    send_buf(fd, &b);
    for (int i = 1; i <= 3000; i++)
        ck_assert_int_eq(expect(fd, i, "code"), 0);
    ck_assert_int_gt(steps_on_workers, 0);
    buf_free(&b);
    close(fd);
    stop();
}
END_TEST

START_TEST(a_large_message_comes_in_pieces)
{
    start(1, 0);
    int fd = dial();
    struct buf b, one;
    buf_init(&b);
    buf_init(&one);
    for (int i = 1; i <= 6; i++)
        put(&b, i, 0, i % 2 ? "knock" : "ping", 7, i % 3 ? 1000000 : 100);
    for (size_t at = 0, n; at < b.len; at += n) {
        n = (size_t)(1 + rand() % 100000);
        n = OV_MIN(n, b.len - at);
        buf_append(&one, b.p + at, n);
        send_buf(fd, &one);
        usleep(500);
    }
    for (int i = 1; i <= 6; i++)
        ck_assert_int_eq(expect(fd, i, "code"), 0);
    buf_free(&b);
    buf_free(&one);
    close(fd);
    stop();
}
END_TEST

static void *knocking_client(void *arg)
{
    int fd = dial();
    for (int i = 1; i <= 200; i++) {
        tell(fd, i, 0, "knock", 20, i % 20 == 0 ? 5000 : 0);
        ck_assert_int_eq(expect(fd, i, "steps"), 20);
    }
    close(fd);
    return NULL;
}

/* AGAIN, WAIT and wake-ups from a foreign thread at every moment, over several loops and workers. */
static void knock_from_many(int debug_pending)
{
    pthread_t t[8];
    start(3, debug_pending);
    for (size_t i = 0; i < OV_LEN(t); i++)
        pthread_create(&t[i], NULL, knocking_client, NULL);
    for (size_t i = 0; i < OV_LEN(t); i++)
        pthread_join(t[i], NULL);
    stop();
}
START_TEST(no_wake_up_is_lost)
{
    knock_from_many(0);
}
END_TEST
START_TEST(no_wake_up_is_lost_when_the_engine_answers_late)
{
    knock_from_many(1);
}
END_TEST

START_TEST(operations_wait_for_a_time)
{
    start(1, 0);
    int fd[50];
    int64_t from = clock_mono_us();
    for (int i = 0; i < 50; i++) {
        fd[i] = dial();
        tell(fd[i], 1, 0, "nap", 300 - 5 * i, 0);
    }
    for (int i = 49; i >= 0; i--) {
        ck_assert_int_eq(expect(fd[i], 1, "code"), 0);
        ck_assert_int_ge(clock_mono_us() - from, (300 - 5 * i) * 1000);
        close(fd[i]);
    }
    ck_assert_int_lt(clock_mono_us() - from, 3000000);
    stop();
}
END_TEST

START_TEST(a_client_that_leaves_interrupts_its_operation_but_not_its_write)
{
    start(1, 0);
    int fd = dial();
    tell(fd, 1, 0, "nap", 60000, 0);
    usleep(50000);
    close(fd);
    for (int i = 0; i < 500 && interrupted_by == 0; i++)
        usleep(10000);
    ck_assert_int_eq(interrupted_by, ERR_CLIENT_DISCONNECT);
    interrupted_by = 0;
    fd = dial();
    tell(fd, 1, 0, "write", 200, 0);
    usleep(50000);
    close(fd);
    for (int i = 0; i < 500 && writes_done == 0; i++)
        usleep(10000);
    ck_assert_int_eq(writes_done, 1);
    ck_assert_int_eq(interrupted_by, 0);
    stop();
}
END_TEST

START_TEST(what_was_sent_before_the_end_is_still_done)
{
    start(1, 0);
    int fd = dial();
    for (int i = 1; i <= 20; i++)
        tell(fd, i, WIRE_MORE_TO_COME, "write", 5, 0);
    close(fd);
    for (int i = 0; i < 500 && writes_done < 20; i++)
        usleep(10000);
    ck_assert_int_eq(writes_done, 20);
    stop();
}
END_TEST

START_TEST(more_to_come_gets_no_reply)
{
    start(1, 0);
    int fd = dial();
    tell(fd, 1, WIRE_MORE_TO_COME, "ping", 1, 0);
    tell(fd, 2, WIRE_MORE_TO_COME, "knock", 5, 0);
    tell(fd, 3, 0, "ping", 1, 0);
    ck_assert_int_eq(expect(fd, 3, "code"), 0);
    close(fd);
    stop();
}
END_TEST

START_TEST(a_stream_goes_on_until_its_command_ends_it)
{
    start(1, 0);
    int fd = dial();
    int32_t last = 77;
    tell(fd, 77, WIRE_EXHAUST_ALLOWED, "stream", 5, 0);
    tell(fd, 78, 0, "ping", 1, 0);
    for (int round = 1; round <= 5; round++) {
        struct reply r;
        ck_assert(hear(fd, &r));
        ck_assert_int_eq(r.response_to, last);
        ck_assert_int_eq(field(&r, "round"), round);
        ck_assert_uint_eq(r.flags, round < 5 ? WIRE_MORE_TO_COME : 0);
        last = r.id;
        free(r.p);
    }
    ck_assert_int_eq(expect(fd, 78, "code"), 0);
    tell(fd, 79, 0, "stream", 5, 0);
    ck_assert_int_eq(expect(fd, 79, "round"), 1);
    close(fd);
    fd = dial();
    tell(fd, 1, WIRE_EXHAUST_ALLOWED, "stream", INT32_MAX, 0);
    for (int i = 0; i < 100; i++) {
        struct reply r;
        ck_assert(hear(fd, &r));
        free(r.p);
    }
    close(fd); /* an endless one ends with its client */
    fd = dial();
    tell(fd, 1, WIRE_EXHAUST_ALLOWED, "stream", INT32_MAX, 0);
    stop(); /* or with the daemon */
    close(fd);
}
END_TEST

START_TEST(a_slow_reader_stops_only_itself)
{
    start(1, 0);
    int slow = dial(), fd = dial();
    struct buf b;
    buf_init(&b);
    for (int i = 1; i <= 200; i++)
        put(&b, i, 0, "big", 1000000, 0);
    send_buf(slow, &b);
    for (int i = 1; i <= 100; i++) {
        tell(fd, i, 0, "ping", 1, 0);
        ck_assert_int_eq(expect(fd, i, "code"), 0);
    }
    ck_assert_int_lt(server.bytes_out, 20000000); /* most are not even made yet */
    for (int i = 1; i <= 200; i++)
        ck_assert_int_eq(expect(slow, i, "code"), 0);
    buf_free(&b);
    close(slow);
    close(fd);
    stop();
}
END_TEST

START_TEST(a_command_may_close_its_connection)
{
    start(1, 0);
    int fd = dial();
    struct buf b;
    buf_init(&b);
    put(&b, 1, 0, "ping", 1, 0);
    put(&b, 2, 0, "bye", 1, 0);
    put(&b, 3, 0, "ping", 1, 0);
    send_buf(fd, &b);
    ck_assert_int_eq(expect(fd, 1, "code"), 0);
    ck_assert(is_closed(fd));
    buf_free(&b);
    close(fd);
    stop();
}
END_TEST

START_TEST(a_stop_interrupts_what_waits)
{
    start(2, 0);
    int fd = dial(), idle = dial();
    tell(fd, 1, 0, "nap", 60000, 0);
    usleep(50000);
    net_stop(net);
    ck_assert_int_eq(expect(fd, 1, "code"), ERR_INTERRUPTED_AT_SHUTDOWN);
    ck_assert(is_closed(fd));
    ck_assert(is_closed(idle));
    close(fd);
    close(idle);
    stop();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, pipelined_requests_are_answered_in_order);
    tcase_add_test(tc, a_large_message_comes_in_pieces);
    tcase_add_test(tc, no_wake_up_is_lost);
    tcase_add_test(tc, no_wake_up_is_lost_when_the_engine_answers_late);
    tcase_add_test(tc, operations_wait_for_a_time);
    tcase_add_test(tc, a_client_that_leaves_interrupts_its_operation_but_not_its_write);
    tcase_add_test(tc, what_was_sent_before_the_end_is_still_done);
    tcase_add_test(tc, more_to_come_gets_no_reply);
    tcase_add_test(tc, a_stream_goes_on_until_its_command_ends_it);
    tcase_add_test(tc, a_slow_reader_stops_only_itself);
    tcase_add_test(tc, a_command_may_close_its_connection);
    tcase_add_test(tc, a_stop_interrupts_what_waits);
}
TEST_MAIN("net", add_tests)
