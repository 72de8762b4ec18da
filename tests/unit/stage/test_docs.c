/* Pipelines over documents that are in memory already. */
#include "server/query/stage/stage.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

static struct slice three(struct arena *a)
{
    static const char *const docs[] = {"{a: 1}", "{a: 2, b: 'x'}", "{a: 3}"};
    struct buf b;
    buf_init(&b);
    for (size_t i = 0; i < OV_LEN(docs); i++)
        buf_append(&b, J(docs[i]), bdoc_len(J(docs[i])));
    struct slice out = slice_of(arena_dup(a, b.p, b.len), b.len);
    buf_free(&b);
    return out;
}

static int32_t next_a(struct pipeline *p, const struct pull *pull)
{
    const uint8_t *doc;
    return pipeline_next(p, pull, &doc) == EXEC_ROW ? bval_i32(bdoc_get(doc, "a")) : 0;
}

START_TEST(documents_come_in_their_order)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct pull pull = {.err = &err};
    const uint8_t *doc;
    err_init(&err, a);
    struct pipeline *p = pipeline_of_docs(a, three(a), NULL, NULL);
    ck_assert(!pipeline_at_end(p));
    ck_assert_ptr_null(pipeline_exec(p));
    ck_assert_int_eq(next_a(p, &pull), 1);
    ck_assert_int_eq(pipeline_next(p, &pull, &doc), EXEC_ROW);
    pipeline_unget(p, doc);
    pipeline_suspend(p);
    ck_assert_int_eq(next_a(p, &pull), 2);
    ck_assert(!pipeline_at_end(p));
    ck_assert_int_eq(next_a(p, &pull), 3);
    ck_assert_msg(pipeline_at_end(p), "known without asking for more");
    ck_assert_int_eq(pipeline_next(p, &pull, &doc), EXEC_EOF);
    ck_assert_int_eq(pipeline_next(p, &pull, &doc), EXEC_EOF);
    pipeline_close(p);
    arena_free(a);
}
END_TEST

START_TEST(none_at_all_is_the_end)
{
    struct arena *a = arena_new(0);
    struct pipeline *p = pipeline_of_docs(a, slice_of("", 0), NULL, NULL);
    ck_assert(pipeline_at_end(p));
    pipeline_close(p);
    arena_free(a);
}
END_TEST

START_TEST(stages_stand_above_them)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct pull pull = {.err = &err};
    struct pipeline_spec spec;
    err_init(&err, a);
    const uint8_t *array = bval_doc(bdoc_get(J("{p: [{~sort: {a: -1}}, {~match: {a: {~ne: 2}}}, {~skip: 1}]}"), "p"));
    ck_assert_int_eq(pipeline_parse(a, array, &spec, &err), 0);
    struct pipeline *p = pipeline_of_docs(a, three(a), &spec, NULL);
    ck_assert_int_eq(next_a(p, &pull), 1);
    ck_assert_int_eq(next_a(p, &pull), 0);
    pipeline_close(p);
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, documents_come_in_their_order);
    tcase_add_test(tc, none_at_all_is_the_end);
    tcase_add_test(tc, stages_stand_above_them);
}
TEST_MAIN("stage/docs", add_tests)
