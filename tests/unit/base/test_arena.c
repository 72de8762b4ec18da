#include "server/base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

START_TEST(memory_is_aligned_and_apart)
{
    struct arena *a = arena_new(0);
    uint8_t *last = NULL;
    for (size_t n = 0; n < 3000; n++) { /* 4.5 MB: crosses many chunks */
        uint8_t *p = arena_alloc(a, n);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % 16, 0);
        memset(p, (int)n, n);
        if (n > 1)
            ck_assert_uint_eq(last[n - 2], (uint8_t)(n - 1)); /* the one before was not overwritten */
        last = p;
    }
    arena_free(a);
}
END_TEST

START_TEST(a_large_request_leaves_the_current_chunk_in_use)
{
    struct arena *a = arena_new(0);
    for (int round = 0; round < 2; round++) { /* in the first chunk, then in a later one */
        uint8_t *small = arena_alloc(a, 16), *large = arena_alloc(a, 1 << 20), *next = arena_alloc(a, 16);
        memset(large, 1, 1 << 20);
        ck_assert_int_lt(next - small, 256);
        ck_assert_int_gt(next - small, 0);
        for (int i = 0; i < 7; i++)
            arena_alloc(a, 12000);
    }
    arena_free(a);
}
END_TEST

START_TEST(the_limit_refuses_and_counts)
{
    struct arena *a = arena_new(1000);
    ck_assert_ptr_null(arena_alloc(a, 1001));
    ck_assert_ptr_null(arena_alloc(a, SIZE_MAX));
    ck_assert_uint_eq(arena_used(a), 0);
    ck_assert_ptr_nonnull(arena_alloc(a, 900));
    ck_assert_ptr_null(arena_zalloc(a, 200));
    ck_assert_ptr_null(arena_printf(a, "%0200d", 1));
    ck_assert_ptr_null(arena_strndup(a,
                                     "0123456789012345678901234567890123456789012345678901234567890123456789"
                                     "012345678901234567890123456789",
                                     100));
    ck_assert_uint_ge(arena_used(a), 900);
    arena_reset(a);
    ck_assert_uint_eq(arena_used(a), 0);
    ck_assert_ptr_nonnull(arena_alloc(a, 1000));
    arena_free(a);
}
END_TEST

static char order[8];

static void note(void *arg)
{
    strcat(order, arg);
}

START_TEST(callbacks_run_last_in_first_out_and_once)
{
    struct arena *a = arena_new(0);
    arena_on_reset(a, note, "a");
    arena_on_reset(a, note, "b");
    arena_reset(a);
    ck_assert_str_eq(order, "ba");
    arena_on_reset(a, note, "c");
    arena_free(a);
    ck_assert_str_eq(order, "bac");
    arena_free(NULL);
}
END_TEST

START_TEST(copies_are_copies)
{
    struct arena *a = arena_new(0);
    char from[] = "octopus";
    char *s = arena_strndup(a, from, 4);
    struct slice copy = arena_slice(a, slice_str(from));
    uint8_t *dup = arena_dup(a, from, 3);
    memset(from, 'x', 7);
    ck_assert_str_eq(s, "octo");
    ck_assert(slice_eq(copy, slice_str("octopus")));
    ck_assert_mem_eq(dup, "oct", 3);
    ck_assert_str_eq(arena_printf(a, "%d-%s", 42, "z"), "42-z");
    ck_assert_uint_eq(strlen(arena_printf(a, "%0100000d", 1)), 100000);
    uint8_t *z = arena_zalloc(a, 100);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(z[i], 0);
    arena_free(a);
}
END_TEST

START_TEST(a_reset_arena_serves_again)
{
    struct arena *a = arena_new(0);
    void *first = arena_alloc(a, 64);
    for (int i = 0; i < 100; i++)
        arena_alloc(a, 10000);
    arena_reset(a);
    ck_assert_ptr_eq(arena_alloc(a, 64), first); /* the first chunk is kept */
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, memory_is_aligned_and_apart);
    tcase_add_test(tc, a_large_request_leaves_the_current_chunk_in_use);
    tcase_add_test(tc, the_limit_refuses_and_counts);
    tcase_add_test(tc, callbacks_run_last_in_first_out_and_once);
    tcase_add_test(tc, copies_are_copies);
    tcase_add_test(tc, a_reset_arena_serves_again);
}

TEST_MAIN("base/arena", add_tests)
