#include "server/base/err.h"

#include <stdlib.h>

#include "tests/lib/test.h"

START_TEST(filled_and_returned)
{
    struct arena *a = arena_new(0);
    struct err e;
    err_init(&e, a);
    ck_assert_int_eq(err_set(&e, ERR_BAD_VALUE, "limit is %d", 5), 2);
    ck_assert_int_eq(e.code, ERR_BAD_VALUE);
    ck_assert_str_eq(e.msg, "limit is 5");
    ck_assert_ptr_nonnull(strstr(e.where, "test_err.c:"));
    ck_assert_ptr_null(strchr(e.where, '/')); /* no path of the machine that compiled it */
    arena_free(a);
}
END_TEST

START_TEST(a_new_error_replaces_the_old_one_and_may_quote_it)
{
    struct arena *a = arena_new(0);
    struct err e;
    err_init(&e, a);
    err_set(&e, ERR_BAD_VALUE, "inner");
    e.labels = ERR_LABEL_NO_WRITES;
    e.info = slice_str("x");
    err_set(&e, 51024, "outer: %s", e.msg);
    ck_assert_str_eq(e.msg, "outer: inner");
    ck_assert_uint_eq(e.labels, 0);
    ck_assert_ptr_null(e.info.p);
    err_prefix(&e, "Executor error :: caused by :: ");
    ck_assert_str_eq(e.msg, "Executor error :: caused by :: outer: inner");
    err_clear(&e);
    ck_assert_int_eq(e.code, 0);
    ck_assert_ptr_eq(e.arena, a);
    arena_free(a);
}
END_TEST

START_TEST(messages_are_never_cut_not_even_by_the_limit)
{
    struct arena *a = arena_new(100);
    struct err e;
    err_init(&e, a);
    err_set(&e, ERR_EXCEEDED_MEMORY_LIMIT, "%0100000d", 1);
    ck_assert_uint_eq(strlen(e.msg), 100000);
    arena_free(a);
}
END_TEST

START_TEST(without_an_arena_static_text_is_kept)
{
    struct err e;
    err_init(&e, NULL);
    err_set(&e, ERR_SHUTDOWN_IN_PROGRESS, "the server is in quiesce mode and will shut down");
    err_prefix(&e, "x");
    ck_assert_str_eq(e.msg, "the server is in quiesce mode and will shut down");
    ck_assert_str_eq(e.where, "test_err.c");
}
END_TEST

START_TEST(every_row_is_found_by_its_code) /* a row out of order would hide others */
{
    char scratch[24];
#define X(sym, code, name) ck_assert_str_eq(err_code_name(code, scratch), name);
#include "server/base/errcode.def"
#undef X
    ck_assert_str_eq(err_code_name(51024, scratch), "Location51024");
    ck_assert_str_eq(err_code_name(0, scratch), "OK");
    ck_assert_str_eq(err_code_name(-2147483647, scratch), "Location-2147483647");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, filled_and_returned);
    tcase_add_test(tc, a_new_error_replaces_the_old_one_and_may_quote_it);
    tcase_add_test(tc, messages_are_never_cut_not_even_by_the_limit);
    tcase_add_test(tc, without_an_arena_static_text_is_kept);
    tcase_add_test(tc, every_row_is_found_by_its_code);
}

TEST_MAIN("base/err", add_tests)
