/* Filters made to cost much: each is refused or answered in a moment. */
#include <stdio.h>
#include <time.h>

#include "tests/unit/match/table.h"

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* {0: [{0: [{0: …, each part of 0.0.0… an index or a name: the ways to try double with each. */
START_TEST(numeric_paths_do_not_explode)
{
    struct arena *a = arena_new(0);
    struct buf doc;
    size_t open[256], n = 0;
    buf_init(&doc);
    open[n++] = bw_begin(&doc);
    for (int i = 0; i < 90; i++) {
        open[n++] = bw_arr(&doc, "0");
        open[n++] = bw_doc(&doc, "0");
    }
    while (n)
        bw_end(&doc, open[--n]);
    CHECK_BAD({"{'0.0.0.0.0.0.0.0.0.0.0': 1}", 2, "the path '0.0.0.0.0.0.0.0.0.0.0' has more than 10 numeric parts"});
    double t = cpu_seconds();
    ck_assert(!match_doc(must_parse(a, "{'0.0.0.0.0.0.0.0.0.0.x': 1}"), doc.p, NULL));
    ck_assert(cpu_seconds() - t < 1);
    buf_free(&doc);
    arena_free(a);
}
END_TEST

START_TEST(repeated_operators_are_read_once)
{
    struct arena *a = arena_new(0);
    struct buf b;
    struct err err;
    struct match *m;
    buf_init(&b);
    size_t top = bw_begin(&b), sub = bw_doc(&b, "a");
    for (int i = 0; i < 100000; i++) {
        bw_i32(&b, "$ne", i);
        bw_str(&b, i % 2 ? "$regex" : "$options", i % 2 ? "x" : "");
    }
    bw_end(&b, sub);
    bw_end(&b, top);
    err_init(&err, a);
    double t = cpu_seconds();
    ck_assert_int_eq(match_parse(a, b.p, &m, &err), 0);
    ck_assert(match_doc(m, J("{a: 'x'}"), NULL));
    ck_assert(cpu_seconds() - t < 5);
    buf_free(&b);
    arena_free(a);
}
END_TEST

START_TEST(regexes_are_counted)
{
    struct arena *a = arena_new(0);
    struct buf b;
    struct err err;
    struct match *m;
    char pattern[2048];
    buf_init(&b);
    memset(pattern, 'x', sizeof pattern);
    pattern[sizeof pattern - 1] = 0;
    size_t top = bw_begin(&b), list = bw_arr(&b, "$and");
    for (uint32_t i = 0; i < 100000; i++) {
        char scratch[12];
        size_t one = bw_doc(&b, bw_index(i, scratch)), sub = bw_doc(&b, "a");
        bw_str(&b, "$regex", pattern);
        bw_end(&b, sub);
        bw_end(&b, one);
    }
    bw_end(&b, list);
    bw_end(&b, top);
    err_init(&err, a);
    ck_assert_int_eq(match_parse(a, b.p, &m, &err), ERR_EXCEEDED_MEMORY_LIMIT);
    buf_free(&b);
    arena_free(a);
}
END_TEST

/* Huge nested trees are not copied at each level. */
START_TEST(deep_and_wide)
{
    struct arena *a = arena_new(64 << 20);
    struct buf b;
    struct err err;
    struct match *m;
    size_t open[256], n = 0;
    char scratch[12];
    buf_init(&b);
    open[n++] = bw_begin(&b);
    for (int i = 0; i < 80; i++) {
        open[n++] = bw_arr(&b, "$and");
        size_t x = bw_doc(&b, "0");
        bw_i32(&b, "x", i);
        bw_end(&b, x);
        open[n++] = bw_doc(&b, "1");
    }
    open[n++] = bw_arr(&b, "$and");
    for (uint32_t i = 0; i < 100000; i++) {
        size_t x = bw_doc(&b, bw_index(i, scratch));
        bw_i32(&b, "y", 1);
        bw_end(&b, x);
    }
    while (n)
        bw_end(&b, open[--n]);
    err_init(&err, a);
    ck_assert_msg(match_parse(a, b.p, &m, &err) == 0, "%s", err.msg);
    ck_assert(!match_doc(m, J("{x: 1}"), NULL));
    buf_free(&b);
    arena_free(a);
}
END_TEST

/* A message quotes what the client sent, not all of it. */
START_TEST(messages_are_bounded)
{
    static char filter[70000];
    static const char *const forms[] = {"{a: {$%s: 1}}",
                                        "{$%s: 1}",
                                        "{a: {$size: '%s'}}",
                                        "{a: {~type: '%s'}}",
                                        "{%s: {~type: []}}",
                                        "{%s: {$bitsAllSet: null}}",
                                        "{a: {$bitsAllSet: {a: '%s'}}}",
                                        "{%s: {$gt: {$regularExpression: {pattern: 'x', options: ''}}}}"};
    static char name[60000];
    memset(name, 'n', sizeof name - 1);
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < OV_LEN(forms); i++) {
        struct match *m;
        struct err err;
        err_init(&err, a);
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(filter, sizeof filter, forms[i], name);
        ck_assert_int_ne(match_parse(a, J(filter), &m, &err), 0);
        ck_assert_msg(strstr(err.msg, "nnnn") && strlen(err.msg) < 4000, "%s: %zu bytes", forms[i], strlen(err.msg));
    }
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, numeric_paths_do_not_explode);
    tcase_add_test(tc, repeated_operators_are_read_once);
    tcase_add_test(tc, regexes_are_counted);
    tcase_add_test(tc, deep_and_wide);
    tcase_add_test(tc, messages_are_bounded);
}
TEST_MAIN("match/limits", add_tests)
