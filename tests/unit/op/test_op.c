/* The scheduling state, interrupts, slices and the worker pool. */
#include "server/base/clock.h"
#include "server/op/pool.h"
#include "server/op/sched.h"
#include "tests/lib/test.h"

#include <pthread.h>
#include <unistd.h>

START_TEST(a_wake_up_of_a_waiting_operation_queues_it_once)
{
    struct operation op = {0};
    op_sched_run(&op);
    ck_assert(op_sched_park(&op));
    ck_assert(op_sched_wake(&op));
    ck_assert(!op_sched_wake(&op));
    ck_assert_int_eq(op.sched, OP_SCHED_QUEUED);
}
END_TEST

START_TEST(a_wake_up_while_a_step_runs_is_not_lost)
{
    struct operation op = {0};
    op_sched_run(&op);
    ck_assert(!op_sched_wake(&op));
    ck_assert(!op_sched_wake(&op));
    ck_assert(!op_sched_park(&op));
    op_sched_run(&op);
    ck_assert(op_sched_park(&op));
}
END_TEST

#define ROUNDS 20000
static struct operation raced;
static _Atomic int tokens, done; /* of the event that the operation waits for */
static _Atomic int runnable;

static void *waker(void *arg)
{
    while (!atomic_load(&done)) {
        while (atomic_load(&tokens) && !atomic_load(&done))
            ;
        atomic_store(&tokens, 1);
        if (op_sched_wake(&raced))
            atomic_store(&runnable, 1);
    }
    return NULL;
}

START_TEST(two_threads_never_lose_a_wake_up)
{
    pthread_t t;
    op_sched_run(&raced);
    ck_assert_int_eq(pthread_create(&t, NULL, waker, NULL), 0);
    for (int taken = 0; taken < ROUNDS;) {
        if (atomic_exchange(&tokens, 0)) {
            taken++;
        } else if (op_sched_park(&raced)) {
            int64_t end = clock_mono_us() + 10000000;
            while (!atomic_exchange(&runnable, 0))
                ck_assert_msg(clock_mono_us() < end, "lost a wake-up after %d", taken);
            op_sched_run(&raced);
        } else {
            op_sched_run(&raced);
        }
    }
    atomic_store(&done, 1);
    pthread_join(t, NULL);
}
END_TEST

START_TEST(interrupts_give_their_code_and_words)
{
    struct operation op = {0};
    err_init(&op.err, NULL);
    ck_assert_int_eq(op_check_interrupt(&op), 0);
    op.deadline_us = clock_mono_us() + 10000000;
    ck_assert_int_eq(op_check_interrupt(&op), 0);
    op.arena = arena_new(0);
    err_init(&op.err, op.arena);
    op.deadline_us = clock_mono_us() - 1;
    ck_assert_int_eq(op_check_interrupt(&op), 50);
    ck_assert_str_eq(op.err.msg, "operation exceeded time limit");
    op.interrupt = 11600;
    ck_assert_int_eq(op_check_interrupt(&op), 11600);
    ck_assert_str_eq(op.err.msg, "interrupted at shutdown");
    op.interrupt = 11601;
    ck_assert_int_eq(op_check_interrupt(&op), 11601);
    ck_assert_str_eq(op.err.msg, "operation was interrupted");
    op.interrupt = 279;
    ck_assert_int_eq(op_check_interrupt(&op), 279);
    arena_free(op.arena);
}
END_TEST

START_TEST(a_slice_ends_within_sixteen_looks)
{
    struct operation op = {.slice_end_us = clock_mono_us() + 1000000};
    for (int i = 0; i < 100; i++)
        ck_assert(!op_slice_over(&op));
    op.slice_end_us = clock_mono_us() - 1;
    int looks = 1;
    while (!op_slice_over(&op))
        looks++;
    ck_assert_int_le(looks, 16);
}
END_TEST

static _Atomic int ran, at_once, most_at_once;
static void count(void *arg, struct operation *op)
{
    int n = atomic_fetch_add(&at_once, 1) + 1, most = atomic_load(&most_at_once);
    while (n > most && !atomic_compare_exchange_weak(&most_at_once, &most, n))
        ;
    usleep(1000);
    atomic_fetch_sub(&at_once, 1);
    if (op->deadline_us-- > 0)
        op_pool_push(arg ? *(struct op_pool **)arg : NULL, op, true);
    else
        atomic_fetch_add(&ran, 1);
}

START_TEST(the_pool_starts_threads_as_work_comes_and_runs_everything)
{
    static struct op_pool *pool;
    struct operation ops[40] = {0};
    pool = op_pool_new(4, count, &pool);
    ck_assert_uint_eq(op_pool_threads(pool), 0);
    for (size_t i = 0; i < OV_LEN(ops); i++) {
        ops[i].deadline_us = 3; /* comes back three times */
        op_pool_push(pool, &ops[i], true);
    }
    int64_t end = clock_mono_us() + 20000000;
    while (ran < (int)OV_LEN(ops) && clock_mono_us() < end)
        usleep(1000);
    ck_assert_int_eq(ran, OV_LEN(ops));
    ck_assert_uint_eq(op_pool_threads(pool), 4);
    ck_assert_int_eq(most_at_once, 4);
    op_pool_free(pool);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_wake_up_of_a_waiting_operation_queues_it_once);
    tcase_add_test(tc, a_wake_up_while_a_step_runs_is_not_lost);
    tcase_add_test(tc, two_threads_never_lose_a_wake_up);
    tcase_add_test(tc, interrupts_give_their_code_and_words);
    tcase_add_test(tc, a_slice_ends_within_sixteen_looks);
    tcase_add_test(tc, the_pool_starts_threads_as_work_comes_and_runs_everything);
}
TEST_MAIN("op", add_tests)
