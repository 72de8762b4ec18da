#include "server/base/mutex.h"

#include <signal.h>

#include "server/base/clock.h"
#include "tests/lib/test.h"

static struct mutex low, high;
static pthread_cond_t cond;
static int counter, ready;

static void init(void)
{
    mutex_init(&low, RANK_CATALOG);
    mutex_init(&high, RANK_LOG);
    cond_init(&cond);
}

static void *count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        mutex_lock(&low);
        mutex_lock(&high);
        counter++;
        mutex_unlock(&low); /* unlocking in any order is fine */
        mutex_unlock(&high);
    }
    return NULL;
}

START_TEST(two_threads_count_exactly)
{
    pthread_t t[2];
    init();
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, count_up, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    ck_assert_int_eq(counter, 40000);
    mutex_assert_none_held();
    mutex_destroy(&low);
    mutex_destroy(&high);
}
END_TEST

START_TEST(a_wait_ends_by_time)
{
    init();
    mutex_lock(&low);
    int64_t start = clock_mono_us();
    ck_assert(!mutex_wait(&low, &cond, 20000));
    ck_assert_int_ge(clock_mono_us() - start, 19000);
    ck_assert(mutex_held(&low));
    mutex_unlock(&low);
}
END_TEST

static void *set_ready(void *arg)
{
    (void)arg;
    mutex_lock(&low);
    ready = 1;
    pthread_cond_signal(&cond);
    mutex_unlock(&low);
    return NULL;
}

START_TEST(a_wait_ends_by_a_signal)
{
    pthread_t t;
    init();
    mutex_lock(&low);
    pthread_create(&t, NULL, set_ready, NULL);
    while (!ready)
        ck_assert(mutex_wait(&low, &cond, -1));
    mutex_unlock(&low);
    pthread_join(t, NULL);
}
END_TEST

#ifdef OV_DEBUG
START_TEST(the_wrong_order_aborts)
{
    init();
    mutex_lock(&high);
    mutex_lock(&low);
}
END_TEST

START_TEST(the_same_rank_twice_aborts)
{
    struct mutex other;
    init();
    mutex_init(&other, RANK_CATALOG);
    mutex_lock(&low);
    mutex_lock(&other);
}
END_TEST

START_TEST(unlocking_what_is_not_held_aborts)
{
    init();
    mutex_unlock(&low);
}
END_TEST

START_TEST(holding_where_none_may_be_held_aborts)
{
    init();
    mutex_lock(&low);
    mutex_assert_none_held();
}
END_TEST

START_TEST(held_means_by_this_thread)
{
    init();
    ck_assert(!mutex_held(&low));
    mutex_lock(&low);
    ck_assert(mutex_held(&low));
    ck_assert(!mutex_held(&high));
    mutex_unlock(&low);
    ck_assert(!mutex_held(&low));
}
END_TEST
#endif

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, two_threads_count_exactly);
    tcase_add_test(tc, a_wait_ends_by_time);
    tcase_add_test(tc, a_wait_ends_by_a_signal);
#ifdef OV_DEBUG
    tcase_add_test_raise_signal(tc, the_wrong_order_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, the_same_rank_twice_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, unlocking_what_is_not_held_aborts, SIGABRT);
    tcase_add_test_raise_signal(tc, holding_where_none_may_be_held_aborts, SIGABRT);
    tcase_add_test(tc, held_means_by_this_thread);
#endif
}

TEST_MAIN("base/mutex", add_tests)
