/* $and $or $nor, constants, folding, the depth limit, what an upsert takes over. */
#include "tests/unit/match/table.h"

START_TEST(trees)
{
    CHECK_ROWS({"{$and: [{a: 1}, {b: 2}]}", "{a: 1, b: 2}", true}, {"{$and: [{a: 1}, {b: 2}]}", "{a: 1}", false},
               {"{$or: [{a: 1}, {b: 2}]}", "{b: 2}", true}, {"{$or: [{a: 1}, {b: 2}]}", "{b: 1}", false},
               {"{$nor: [{a: 1}, {b: 2}]}", "{b: 1}", true}, {"{$nor: [{a: 1}, {b: 2}]}", "{b: 2}", false},
               {"{$nor: [{a: 1}]}", "{a: 1}", false}, {"{$nor: [{}]}", "{}", false}, {"{$or: [{}]}", "{}", true},
               {"{$or: [{a: {$in: []}}]}", "{}", false}, {"{$and: [{}]}", "{}", true},
               {"{$comment: {x: 1}}", "{}", true}, {"{$comment: 'c', a: 1}", "{a: 2}", false},
               {"{$alwaysTrue: 1}", "{}", true}, {"{$alwaysFalse: 1.0}", "{}", false},
               {"{$or: [{a: 1}, {$and: [{b: 1}, {$nor: [{c: 1}]}]}]}", "{b: 1}", true},
               {"{$or: [{a: 1}, {$and: [{b: 1}, {$nor: [{c: 1}]}]}]}", "{b: 1, c: 1}", false},
               {"{x: 1, $or: [{a: 1}, {b: 1}], y: 1}", "{x: 1, y: 1, b: 1}", true},
               {"{x: 1, $or: [{a: 1}, {b: 1}], y: 1}", "{x: 1, b: 1}", false},
               {"{$and: [{a: {$gt: 1}}, {a: {$lt: 3}}]}", "{a: 2}", true});
}
END_TEST

START_TEST(words_of_the_errors)
{
    CHECK_BAD(
        {"{$and: 1}", 2, "$and argument must be an array"}, {"{$or: []}", 2, "$and/$or/$nor must be a nonempty array"},
        {"{$nor: [1]}", 2, "$or/$and/$nor entries need to be full objects"},
        {"{a: {$or: [{b: 1}]}}", 2, "unknown operator: $or"}, {"{$or: [{a: {$bad: 1}}]}", 2, "unknown operator: $bad"},
        {"{$alwaysTrue: 2}", 9, "$alwaysTrue must be an integer value of 1"},
        {"{$alwaysTrue: 'x'}", 9, "Expected a number in: $alwaysTrue: \"x\""},
        {"{$expr: {$eq: ['$a', 1]}}", 238, "the query operator $expr is not implemented"},
        {"{$text: {$search: 'x'}}", 238, "the query operator $text is not implemented"});
}
END_TEST

/* What the planner relies on: constants gone, single children bare, nested nodes of one kind merged. */
START_TEST(trees_are_folded)
{
    struct arena *a = arena_new(0);
    ck_assert_int_eq(must_parse(a, "{}")->op, MATCH_TRUE);
    ck_assert_int_eq(must_parse(a, "{a: 1}")->op, MATCH_EQ);
    ck_assert_int_eq(must_parse(a, "{$or: [{a: 1}]}")->op, MATCH_EQ);
    ck_assert_int_eq(must_parse(a, "{a: {$in: [1]}}")->op, MATCH_EQ);
    ck_assert_int_eq(must_parse(a, "{a: {$in: []}, b: 1}")->op, MATCH_FALSE);
    ck_assert_int_eq(must_parse(a, "{$or: [{a: 1}, {}]}")->op, MATCH_TRUE);
    struct match *m = must_parse(a, "{a: 1, $and: [{b: 1}, {$and: [{c: 1}, {}]}]}");
    ck_assert_int_eq(m->op, MATCH_AND);
    ck_assert_uint_eq(m->n_children, 3);
    m = must_parse(a, "{$or: [{a: 1}, {$or: [{b: 1}, {c: 1}]}]}");
    ck_assert_int_eq(m->op, MATCH_OR);
    ck_assert_uint_eq(m->n_children, 3);
    m = must_parse(a, "{a: {$in: [3, 1, 2, 1.0, 3]}}");
    ck_assert_int_eq(m->op, MATCH_IN);
    ck_assert_uint_eq(m->n_values, 3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(bval_i32(m->values[i]), (int)i + 1);
    m = must_parse(a, "{a: {$exists: false}}");
    ck_assert(m->op == MATCH_EXISTS && !m->flag);
    m = must_parse(a, "{a: {$all: [1, 2]}}");
    ck_assert(m->op == MATCH_AND && m->n_children == 2 && m->children[0]->op == MATCH_EQ);
    arena_free(a);
}
END_TEST

START_TEST(depth_is_limited)
{
    struct arena *a = arena_new(0);
    struct buf b;
    size_t open[1200], n = 0;
    buf_init(&b);
    open[n++] = bw_begin(&b);
    for (int i = 0; i < 250; i++) { /* {$or: [{$or: [… beyond what a checked document could hold */
        open[n++] = bw_arr(&b, "$or");
        open[n++] = bw_doc(&b, "0");
    }
    bw_i32(&b, "a", 1);
    while (n)
        bw_end(&b, open[--n]);
    struct match *m;
    struct err err;
    err_init(&err, a);
    ck_assert_int_eq(match_parse(a, b.p, &m, &err), ERR_BAD_VALUE);
    ck_assert_str_eq(err.msg, "exceeded maximum query tree depth of 200");
    buf_free(&b);
    arena_free(a);
}
END_TEST

START_TEST(a_full_arena_is_an_error)
{
    const char *filters[] = {"{a: 1, b: {$gt: 2}}", "{$or: [{a: 1}, {b: {$in: [1, 2]}}]}",
                             "{a: {~regex: 'x'}}",  "{a: {$elemMatch: {b: 1}}}",
                             "{a: {$mod: [2, 1]}}", "{a: {$bitsAllSet: [1, 5]}}",
                             "{a: {$all: [1, 2]}}", "{a: {$not: {$size: 1}}}"};
    for (size_t i = 0; i < OV_LEN(filters); i++) {
        int failed = 0;
        for (size_t limit = 16; limit < 4096; limit += 16) {
            struct arena *a = arena_new(limit), *words = arena_new(0);
            struct match *m = NULL;
            struct err err;
            err_init(&err, words);
            int rc = match_parse(a, J(filters[i]), &m, &err);
            ck_assert_int_eq(rc, err.code);
            ck_assert((rc == 0) == (m != NULL));
            ck_assert(rc == 0 || rc == ERR_EXCEEDED_MEMORY_LIMIT);
            failed += rc != 0;
            arena_free(a);
            arena_free(words);
        }
        ck_assert_int_gt(failed, 0);
    }
}
END_TEST

static void add_equality(void *arg, const struct bpath *path, struct bval v)
{
    struct buf *b = arg;
    buf_printf(b, "%s=", path->text);
    bval_to_shell(b, v, 100);
    buf_byte(b, ' ');
}

START_TEST(equalities_for_upserts)
{
    static const struct {
        const char *filter, *want;
    } rows[] = {
        {"{a: 1}", "a=1 "},
        {"{a: {$eq: 1}, b: 'x'}", "a=1 b=\"x\" "},
        {"{a: {$gt: 1}, b: 2}", "b=2 "},
        {"{$and: [{a: 1}, {'b.c': 2}]}", "a=1 b.c=2 "},
        {"{$or: [{a: 1}]}", "a=1 "},
        {"{$or: [{a: 1}, {b: 1}]}", ""},
        {"{a: {$in: [5]}}", "a=5 "},
        {"{a: {$in: [5, 6]}}", ""},
        {"{a: {$all: [5]}}", "a=5 "},
        {"{a: {$ne: 5}}", ""},
        {"{$nor: [{a: 1}]}", ""},
        {"{a: {$elemMatch: {b: 1}}}", ""},
    };
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct buf b;
        buf_init(&b);
        match_equalities(must_parse(a, rows[i].filter), add_equality, &b);
        buf_byte(&b, 0);
        ck_assert_str_eq((char *)b.p, rows[i].want);
        buf_free(&b);
    }
    struct bval v;
    ck_assert(match_equality(must_parse(a, "{_id: 7, a: 1}"), "_id", &v) && bval_i32(v) == 7);
    ck_assert(match_equality(must_parse(a, "{$and: [{a: 1}, {_id: {$eq: 7}}]}"), "_id", &v) && bval_i32(v) == 7);
    ck_assert(!match_equality(must_parse(a, "{_id: {$gt: 7}}"), "_id", &v));
    ck_assert(!match_equality(must_parse(a, "{$or: [{_id: 7}, {a: 1}]}"), "_id", &v));
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, trees);
    tcase_add_test(tc, words_of_the_errors);
    tcase_add_test(tc, trees_are_folded);
    tcase_add_test(tc, depth_is_limited);
    tcase_add_test(tc, a_full_arena_is_an_error);
    tcase_add_test(tc, equalities_for_upserts);
}
TEST_MAIN("match/logical", add_tests)
