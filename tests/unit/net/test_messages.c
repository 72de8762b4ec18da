/* What a connection answers to messages that are no plain OP_MSG, and to broken ones. */
#include <malloc.h>

#include "tests/unit/net/harness.h"

static int fd;
static struct buf b;

static void open_one(void)
{
    start(1, 0);
    fd = dial();
    buf_init(&b);
}
static void close_all(void)
{
    close(fd);
    buf_free(&b);
    stop();
}

static void query(const char *ns, const char *name)
{
    b.len = 0;
    buf_le32(&b, 0);
    buf_le32(&b, 9);
    buf_le32(&b, 0);
    buf_le32(&b, WIRE_OP_QUERY);
    buf_le32(&b, 0);
    buf_append(&b, ns, strlen(ns) + 1);
    buf_le64(&b, 0);
    size_t d = bw_begin(&b);
    bw_i32(&b, name, 1);
    bw_end(&b, d);
    store_le32(b.p, (uint32_t)b.len);
    send_buf(fd, &b);
}

/* The next message is an OP_REPLY to 9; returns a number of its document, -1 if it is not there. */
static int32_t expect_op_reply(uint32_t flags, const char *name)
{
    struct reply r;
    ck_assert(hear(fd, &r));
    ck_assert_int_eq(load_le32(r.p + 12), WIRE_OP_REPLY);
    ck_assert_int_eq(r.response_to, 9);
    ck_assert_uint_eq(r.flags, flags);
    r.doc = r.p + WIRE_REPLY_PREFIX;
    int32_t v = field(&r, name);
    free(r.p);
    return v;
}

START_TEST(op_query_is_answered_by_op_reply)
{
    open_one();
    query("admin.$cmd", "isMaster");
    ck_assert_int_eq(expect_op_reply(WIRE_AWAIT_CAPABLE, "code"), 0);
    query("admin.$cmd", "find");
    ck_assert_int_eq(expect_op_reply(WIRE_AWAIT_CAPABLE, "code"), ERR_UNSUPPORTED_OP_QUERY_COMMAND);
    query("test.things", "a");
    ck_assert_int_eq(expect_op_reply(WIRE_AWAIT_CAPABLE | WIRE_QUERY_FAILURE, "code"), WIRE_ERR_QUERY_REMOVED);
    query("admin.$cmd", "hello");
    ck_assert_int_eq(expect_op_reply(WIRE_AWAIT_CAPABLE, "code"), 0);
    close_all();
}
END_TEST

START_TEST(a_compressed_request_gets_a_compressed_reply)
{
    struct wire_codec codec = {0};
    struct buf scratch, plain;
    open_one();
    buf_init(&scratch);
    buf_init(&plain);
    for (int kind = WIRE_NOOP; kind <= WIRE_ZSTD; kind++)
        for (int round = 0; round < 2; round++) {
            put(&b, 50 + kind, 0, round ? "knock" : "big", round ? 10 : 50000, 9000);
            wire_compress(&codec, kind, &b, 0, &scratch);
            send_buf(fd, &b);
            struct reply r;
            struct wire_header h;
            int got;
            struct err err;
            err_init(&err, NULL);
            ck_assert(hear(fd, &r));
            ck_assert_int_eq(r.response_to, 50 + kind);
            ck_assert(wire_header_parse(r.p, &h));
            ck_assert_int_eq(h.opcode, WIRE_OP_COMPRESSED);
            plain.len = 0;
            ck_assert_int_eq(wire_decompress(&codec, r.p, &h, &plain, &got, &err), 0);
            ck_assert_int_eq(got, kind);
            ck_assert_int_eq(bval_i32(bdoc_get(plain.p + WIRE_MSG_PREFIX, "code")), 0);
            free(r.p);
        }
    tell(fd, 60, 0, "ping", 1, 0);
    ck_assert_int_eq(expect(fd, 60, "code"), 0); /* and a plain one a plain reply */
    buf_free(&scratch);
    buf_free(&plain);
    wire_codec_deinit(&codec);
    close_all();
}
END_TEST

START_TEST(a_document_sequence_reaches_the_command)
{
    open_one();
    wire_msg_begin(&b);
    size_t d = bw_begin(&b);
    bw_i32(&b, "insert", 1);
    bw_end(&b, d);
    buf_byte(&b, 1);
    size_t at = b.len;
    buf_le32(&b, 0);
    buf_append(&b, "documents", 10);
    for (int i = 0; i < 3; i++) {
        d = bw_begin(&b);
        bw_i32(&b, "_id", i);
        bw_end(&b, d);
    }
    store_le32(b.p + at, (uint32_t)(b.len - at));
    wire_msg_end(&b, 0, 4, 0, 0);
    send_buf(fd, &b);
    ck_assert_int_eq(expect(fd, 4, "documents"), 3);
    close_all();
}
END_TEST

START_TEST(a_message_that_is_no_request_is_refused_and_others_go_on)
{
    open_one();
    put(&b, 5, 0, "ping", 1, 0);
    b.p[WIRE_HEADER + 4] = 7; /* the kind of its section */
    send_buf(fd, &b);
    ck_assert_int_eq(expect(fd, 5, "code"), 40432);
    put(&b, 6, WIRE_MORE_TO_COME, "ping", 1, 0);
    b.p[WIRE_HEADER + 4] = 7;
    send_buf(fd, &b); /* not even an error is answered */
    tell(fd, 7, 0, "ping", 1, 0);
    ck_assert_int_eq(expect(fd, 7, "code"), 0);
    close_all();
}
END_TEST

START_TEST(an_unknown_required_flag_is_answered_then_closed)
{
    open_one();
    put(&b, 5, 4, "ping", 1, 0);
    put(&b, 6, 0, "ping", 1, 0);
    send_buf(fd, &b);
    ck_assert_int_eq(expect(fd, 5, "code"), ERR_ILLEGAL_OP_MSG_FLAG);
    ck_assert(is_closed(fd));
    close_all();
}
END_TEST

START_TEST(what_cannot_be_a_message_closes_the_connection)
{
    static const struct {
        int32_t length, opcode;
    } rows[] = {{15, 2013}, {48000001, 2013}, {-1, 2013}, {40, 2001}, {40, 2002},
                {40, 2010}, {16, 2013},       {24, 2012}, {16, 2004}};
    open_one();
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        int one = dial();
        put(&b, 1, 0, "ping", 1, 0);
        store_le32(b.p, (uint32_t)rows[i].length);
        store_le32(b.p + 12, (uint32_t)rows[i].opcode);
        send_buf(one, &b);
        ck_assert_msg(is_closed(one), "row %zu", i);
        close(one);
    }
    tell(fd, 1, 0, "ping", 1, 0);
    ck_assert_int_eq(expect(fd, 1, "code"), 0);
    close_all();
}
END_TEST

START_TEST(an_announced_size_takes_no_memory)
{
    int fds[20];
    open_one();
    for (size_t i = 0; i < OV_LEN(fds); i++) {
        fds[i] = dial();
        put(&b, 1, 0, "ping", 1, 70000);
        store_le32(b.p, WIRE_MESSAGE_MAX);
        send_buf(fds[i], &b);
    }
    for (int i = 0; i < 500 && server.bytes_in < 70000 * (int64_t)OV_LEN(fds); i++)
        usleep(10000);
    ck_assert_int_ge(server.bytes_in, 70000 * (int64_t)OV_LEN(fds));
    struct mallinfo2 m = mallinfo2();
    ck_assert_uint_lt(m.uordblks + m.hblkhd, 200u * 1024 * 1024); /* the sum of what was announced is 960 MB */
    for (size_t i = 0; i < OV_LEN(fds); i++)
        close(fds[i]);
    tell(fd, 1, 0, "ping", 1, 0);
    ck_assert_int_eq(expect(fd, 1, "code"), 0);
    close_all();
}
END_TEST

START_TEST(connections_over_the_limit_are_refused)
{
    most_connections = 3;
    open_one();
    int more[2] = {dial(), dial()};
    for (int i = 0; i < 2; i++) {
        tell(more[i], 1, 0, "ping", 1, 0);
        ck_assert_int_eq(expect(more[i], 1, "code"), 0);
    }
    int over = dial();
    ck_assert(is_closed(over));
    close(over);
    close(more[0]);
    for (int i = 0; i < 500 && server.connections > 2; i++)
        usleep(10000);
    over = dial();
    tell(over, 1, 0, "ping", 1, 0);
    ck_assert_int_eq(expect(over, 1, "code"), 0);
    close(over);
    close(more[1]);
    close_all();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, op_query_is_answered_by_op_reply);
    tcase_add_test(tc, a_compressed_request_gets_a_compressed_reply);
    tcase_add_test(tc, a_document_sequence_reaches_the_command);
    tcase_add_test(tc, a_message_that_is_no_request_is_refused_and_others_go_on);
    tcase_add_test(tc, an_unknown_required_flag_is_answered_then_closed);
    tcase_add_test(tc, what_cannot_be_a_message_closes_the_connection);
    tcase_add_test(tc, an_announced_size_takes_no_memory);
    tcase_add_test(tc, connections_over_the_limit_are_refused);
}
TEST_MAIN("net/messages", add_tests)
