/* Partial and hidden indexes: for which questions they will do. */
#include "server/query/plan/plan_private.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

static struct arena *arena;
static struct err err;

static void setup(void)
{
    arena = arena_new(0);
    err_init(&err, arena);
}
static void teardown(void)
{
    arena_free(arena);
}

static const struct match *parse(const char *filter)
{
    struct match *m;
    ck_assert_int_eq(match_parse(arena, J(filter), &m, &err), 0);
    return m;
}

static const struct {
    const char *query, *filter;
    bool implied;
} cases[] = {
    {"{a: 1}", "{}", true},
    {"{}", "{a: 1}", false},
    {"{a: 1}", "{a: 1}", true},
    {"{a: 1, b: 2}", "{a: 1}", true},
    {"{a: 1}", "{a: 1, b: 2}", false},
    {"{b: 2, c: 3, a: 1}", "{a: 1, b: 2}", true},
    {"{a: 6}", "{a: {~gt: 5}}", true},
    {"{a: 5}", "{a: {~gt: 5}}", false},
    {"{a: 5.5}", "{a: {~gte: 5}}", true},
    {"{a: {~gt: 5}}", "{a: {~gt: 5}}", true},
    {"{a: {~gte: 5}}", "{a: {~gt: 5}}", false},
    {"{a: {~gt: 5}}", "{a: {~gte: 5}}", true},
    {"{a: {~gt: 6}}", "{a: {~gte: 5}}", true},
    {"{a: {~gt: 4}}", "{a: {~gte: 5}}", false},
    {"{a: {~lt: 5}}", "{a: {~lte: 5}}", true},
    {"{a: {~lte: 5}}", "{a: {~lt: 5}}", false},
    {"{a: {~lt: 5}}", "{a: {~gt: 5}}", false},
    {"{a: {~gt: 'x'}}", "{a: {~gt: 5}}", false},
    {"{a: {$numberDouble: 'NaN'}}", "{a: {~lt: 5}}", false},
    {"{a: {$numberDouble: 'NaN'}}", "{a: {$numberDouble: 'NaN'}}", true},
    {"{a: {~in: [6, 7]}}", "{a: {~gt: 5}}", true},
    {"{a: {~in: [5, 7]}}", "{a: {~gt: 5}}", false},
    {"{a: {~in: [5, 7]}}", "{a: {~in: [7, 5, 3]}}", true},
    {"{a: {~in: [5, 8]}}", "{a: {~in: [7, 5, 3]}}", false},
    {"{a: 5}", "{a: {~in: [7, 5, 3]}}", true},
    {"{a: 5}", "{a: {~exists: true}}", true},
    {"{a: null}", "{a: {~exists: true}}", false},
    {"{a: {~in: [1, null]}}", "{a: {~exists: true}}", false},
    {"{a: {~gte: null}}", "{a: {~exists: true}}", false},
    {"{a: {~exists: false}}", "{a: {~exists: true}}", false},
    {"{a: {~gte: {$minKey: 1}}}", "{a: {~exists: true}}", false},
    {"{a: {~type: 'string'}}", "{a: {~exists: true}}", true},
    {"{a: {~ne: 5}}", "{a: {~exists: true}}", false},
    {"{a: {~type: 'string'}}", "{a: {~type: ['string', 'int']}}", true},
    {"{a: {~type: ['string', 'int']}}", "{a: {~type: 'string'}}", false},
    {"{a: 1}", "{~or: [{a: 1}, {b: 1}]}", true},
    {"{~or: [{a: 1}, {a: 2}]}", "{a: {~lt: 3}}", true},
    {"{~or: [{a: 1}, {b: 2}]}", "{a: {~lt: 3}}", false},
    {"{~or: [{a: 1}, {b: 2}]}", "{~or: [{b: {~gt: 1}}, {a: {~exists: true}}]}", true},
    {"{~nor: [{a: 1}]}", "{a: 1}", false},
    {"{'a.b': 1}", "{a: {~exists: true}}", false},
    {"{a: {~elemMatch: {a: 1}}}", "{a: 1}", false},
    {"{a: {~elemMatch: {~gt: 5}}}", "{a: {~exists: true}}", true},
};

START_TEST(a_filter_implies_another)
{
    bool got = filter_implies(parse(cases[_i].query), parse(cases[_i].filter));
    ck_assert_msg(got == cases[_i].implied, "%s => %s: %d", cases[_i].query, cases[_i].filter, got);
}
END_TEST

static struct index_rt rts[3];
static struct index_def defs[3];
static struct collection coll = {.indexes = defs};

static void add(const char *spec)
{
    uint32_t i = coll.n_indexes++;
    ck_assert_int_eq(index_parse(arena, J(spec), &defs[i], &err), 0);
    ck_assert_int_eq(catalog_index_filter(arena, &defs[i], &err), 0);
    defs[i].is_id = i == 0;
    defs[i].state = INDEX_READY;
    defs[i].rt = &rts[i];
}

static const struct plan *plan_of(const char *filter, const char *sort, const char *hint)
{
    struct plan *p = arena_zalloc(arena, sizeof(*p));
    struct sort_spec *s = arena_zalloc(arena, sizeof(*s));
    ck_assert_int_eq(sort_parse(arena, J(sort), s, &err), 0);
    struct bval h = hint ? bdoc_get(J(hint), "h") : BVAL_MISSING;
    return plan_make(arena, &coll, parse(filter), s, h, 50, p, &err) == 0 ? p : NULL;
}

START_TEST(a_partial_index_serves_what_it_holds)
{
    coll.n_indexes = 0;
    add("{key: {_id: 1}, name: '_id_'}");
    add("{key: {a: 1}, name: 'a', partialFilterExpression: {b: {~gt: 5}}}");
    ck_assert_ptr_eq(plan_of("{a: 1, b: 6}", "{}", NULL)->index, &defs[1]);
    ck_assert_ptr_null(plan_of("{a: 1}", "{}", NULL)->index);
    ck_assert_ptr_null(plan_of("{a: 1, b: 5}", "{}", NULL)->index);
    ck_assert_ptr_null(plan_of("{}", "{a: 1}", NULL)->index); /* the order alone is no reason */
    ck_assert_int_eq(plan_of("{a: {~gt: 5, ~lt: 3}}", "{}", NULL)->kind, PLAN_COLLSCAN); /* arrays may be outside */
    ck_assert_ptr_eq(plan_of("{a: 1}", "{}", "{h: 'a'}")->index, &defs[1]);
}
END_TEST

START_TEST(a_hidden_index_serves_nothing)
{
    coll.n_indexes = 0;
    add("{key: {_id: 1}, name: '_id_'}");
    add("{key: {a: 1}, name: 'a', hidden: true}");
    ck_assert_ptr_null(plan_of("{a: 1}", "{}", NULL)->index);
    ck_assert_ptr_null(plan_of("{a: 1}", "{}", "{h: 'a'}"));
    ck_assert_str_eq(err.msg, "hint provided does not correspond to an existing index");
}
END_TEST

static const struct {
    const char *filter, *msg;
} refused[] = {
    {"{a: {~exists: false}}", "Expression not supported in partial index: ~not\n    a exists\n"},
    {"{a: {~ne: 5}}", "Expression not supported in partial index: ~not\n    a ~eq 5\n"},
    {"{~nor: [{a: 1}]}", "Expression not supported in partial index: ~n"},
    {"{b: 1, a: {~regex: 'x'}}", "Expression not supported in partial index: a regex "},
    {"{a: {~size: 1}}", "Expression not supported in partial index: a ~size"},
    {"{a: {~mod: [2, 1]}}", "Expression not supported in partial index: a ~mod"},
};

START_TEST(some_filters_are_none_for_an_index)
{
    struct index_def def;
    ck_assert_int_eq(index_parse(arena, J("{key: {a: 1}, name: 'a'}"), &def, &err), 0);
    def.filter = J(refused[_i].filter);
    ck_assert_int_eq(catalog_index_filter(arena, &def, &err), ERR_CANNOT_CREATE_INDEX);
    char *want = arena_strndup(arena, refused[_i].msg, strlen(refused[_i].msg));
    for (char *p = want; (p = strchr(p, '~'));)
        *p = '$';
    ck_assert_msg(strncmp(err.msg, want, strlen(want)) == 0, "%s", err.msg);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_filter_implies_another, 0, OV_LEN(cases));
    tcase_add_test(tc, a_partial_index_serves_what_it_holds);
    tcase_add_test(tc, a_hidden_index_serves_nothing);
    tcase_add_loop_test(tc, some_filters_are_none_for_an_index, 0, OV_LEN(refused));
}
TEST_MAIN("plan/partial", add_tests)
