/* Loops, connections and tasks: order, pieces, wake-ups, timers, streams, slow readers, ends. */
#include "tests/unit/net/harness.h"

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
    fd = dial();
    tell(fd, 1, 0, "bye", 1, 0); /* with nothing else to send */
    ck_assert(is_closed(fd));
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
TEST_MAIN("net/connections", add_tests)
