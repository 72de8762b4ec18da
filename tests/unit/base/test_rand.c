#include "server/base/rand.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "server/base/clock.h"
#include "tests/lib/test.h"

START_TEST(xoshiro_gives_the_published_sequence) /* of the authors' code, for the state 1, 2, 3, 4 */
{
    struct rand_gen g = {{1, 2, 3, 4}};
    const uint64_t want[] = {11520, 0, 1509978240, 1215971899390074240};
    for (size_t i = 0; i < OV_LEN(want); i++)
        ck_assert_uint_eq(rand_next(&g), want[i]);
}
END_TEST

START_TEST(a_seed_repeats_and_another_differs)
{
    struct rand_gen a, b, c;
    rand_seed(&a, 7);
    rand_seed(&b, 7);
    rand_seed(&c, 8);
    int same = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t x = rand_next(&a);
        ck_assert_uint_eq(x, rand_next(&b));
        same += x == rand_next(&c);
    }
    ck_assert_int_eq(same, 0);
}
END_TEST

START_TEST(below_is_below_and_even)
{
    struct rand_gen g;
    int seen[10] = {0};
    rand_seed(&g, 3);
    for (int i = 0; i < 100000; i++) {
        uint64_t x = rand_below(&g, 10);
        ck_assert_uint_lt(x, 10);
        seen[x]++;
    }
    for (int i = 0; i < 10; i++)
        ck_assert(seen[i] > 9500 && seen[i] < 10500);
    ck_assert_uint_eq(rand_below(&g, 1), 0);
    ck_assert_uint_lt(rand_below(&g, UINT64_MAX), UINT64_MAX);
}
END_TEST

START_TEST(secure_bytes_are_not_constant)
{
    uint8_t a[64] = {0}, b[64] = {0};
    rand_secure(a, sizeof(a));
    rand_secure(b, sizeof(b));
    ck_assert_mem_ne(a, b, sizeof(a));
}
END_TEST

#define EACH 10000

static void *make_oids(void *out)
{
    for (int i = 0; i < EACH; i++)
        oid_generate((uint8_t *)out + 12 * i);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, 12);
}

START_TEST(object_ids_are_unique_across_threads_and_carry_the_time)
{
    uint8_t *ids = malloc(12 * 2 * EACH);
    pthread_t t;
    uint32_t now = (uint32_t)time(NULL);
    pthread_create(&t, NULL, make_oids, ids);
    make_oids(ids + 12 * EACH);
    pthread_join(t, NULL);
    ck_assert(load_be32(ids) - now <= 5);
    ck_assert_mem_eq(ids + 4, ids + 12 * EACH + 4, 5); /* one process */
    qsort(ids, 2 * EACH, 12, compare);
    for (int i = 1; i < 2 * EACH; i++)
        ck_assert_mem_ne(ids + 12 * i, ids + 12 * (i - 1), 12);
    free(ids);
}
END_TEST

START_TEST(the_clocks_agree_with_the_system)
{
    int64_t a = clock_mono_us(), b = clock_mono_us();
    ck_assert_int_ge(b, a);
    ck_assert_int_le(llabs(clock_wall_ms() / 1000 - (int64_t)time(NULL)), 1);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, xoshiro_gives_the_published_sequence);
    tcase_add_test(tc, a_seed_repeats_and_another_differs);
    tcase_add_test(tc, below_is_below_and_even);
    tcase_add_test(tc, secure_bytes_are_not_constant);
    tcase_add_test(tc, object_ids_are_unique_across_threads_and_carry_the_time);
    tcase_add_test(tc, the_clocks_agree_with_the_system);
}

TEST_MAIN("base/rand", add_tests)
