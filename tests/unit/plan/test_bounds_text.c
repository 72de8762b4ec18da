/* Bounds of plans as explain shows them. */
#include "server/query/plan/plan.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

static struct arena *arena;
static struct err err;
static struct index_def defs[4];
static struct index_rt rts[4];
static struct collection coll;

static void add_index(const char *spec, uint32_t multikey)
{
    uint32_t i = coll.n_indexes++;
    ck_assert_int_eq(index_parse(arena, J(spec), &defs[i], &err), 0);
    defs[i].is_id = i == 0;
    defs[i].state = INDEX_READY;
    defs[i].rt = &rts[i];
    rts[i].multikey = multikey;
}

static void setup(void)
{
    arena = arena_new(0);
    err_init(&err, arena);
    coll.n_indexes = 0;
    coll.indexes = defs;
    add_index("{key: {_id: 1}, name: '_id_'}", 0);
    add_index("{key: {a: 1, b: -1}, name: 'ab'}", 0);
    add_index("{key: {d: -1}, name: 'd'}", 0);
    add_index("{key: {u: 1}, name: 'u', unique: true}", 0);
}

static void teardown(void)
{
    arena_free(arena);
}

static const struct {
    const char *filter, *sort, *want;
} rows[] = {
    {"{a: 5}", NULL, "{ a: [ \"[5, 5]\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~gt: 5}}", NULL, "{ a: [ \"(5, inf]\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~gt: -5}}", NULL, "{ a: [ \"(-5, inf]\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~gt: 0}}", NULL, "{ a: [ \"(0, inf]\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~gte: 0, ~lte: 2.5}}", NULL, "{ a: [ \"[0, 2.5]\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~lt: -300}}", NULL, "{ a: [ \"[-inf, -300)\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~gt: 'x', ~lte: 'y'}}", NULL, "{ a: [ \"(\"x\", \"y\"]\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~gte: 'x'}}", NULL, "{ a: [ \"[\"x\", {})\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~gt: 5}}", "{a: -1}", "{ a: [ \"[inf, 5)\" ], b: [ \"[MinKey, MaxKey]\" ] }"},
    {"{a: 5, b: {~gt: 1, ~lte: 9}}", NULL, "{ a: [ \"[5, 5]\" ], b: [ \"[9, 1)\" ] }"},
    {"{a: 5, b: {~gte: 'a', ~lt: 'c'}}", NULL, "{ a: [ \"[5, 5]\" ], b: [ \"(\"c\", \"a\"]\" ] }"},
    {"{a: {~in: [3, null, 'x', 1]}, b: {~in: [7, 8]}}", NULL,
     "{ a: [ \"[null, null]\", \"[1, 1]\", \"[3, 3]\", \"[\"x\", \"x\"]\" ], b: [ \"[8, 8]\", \"[7, 7]\" ] }"},
    {"{a: {~in: [1, 3]}}", "{a: -1}", "{ a: [ \"[3, 3]\", \"[1, 1]\" ], b: [ \"[MinKey, MaxKey]\" ] }"},
    {"{a: {~regex: '^ab'}}", NULL, "{ a: [ \"[\"ab\", \"ac\")\", \"[/^ab/, /^ab/]\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{a: {~gt: true}}", NULL, NULL},
    {"{a: {~ne: 3, ~exists: true}}", NULL, NULL},
    {"{d: {~gt: 5}}", NULL, "{ d: [ \"[inf, 5)\" ] }"},
    {"{d: {~lte: 5.5, ~gte: -2}}", NULL, "{ d: [ \"[5.5, -2]\" ] }"},
    {"{d: {~lt: ''}}", NULL, NULL},
    {"{d: {~gte: {'$date': {'$numberLong': '7'}}}}", NULL,
     "{ d: [ \"[new Date(9223372036854775807), new Date(7)]\" ] }"},
    {"{d: {~gt: 'it'}}", "{d: 1}", "{ d: [ \"(\"it\", {})\" ] }"},
    {"{}", "{a: 1}", "{ a: [ \"[MinKey, MaxKey]\" ], b: [ \"[MaxKey, MinKey]\" ] }"},
    {"{}", "{a: -1}", "{ a: [ \"[MaxKey, MinKey]\" ], b: [ \"[MinKey, MaxKey]\" ] }"},
    {"{u: 5}", NULL, "{ u: [ \"[5, 5]\" ] }"},
    {"{u: {~in: ['b', 2]}}", NULL, "{ u: [ \"[2, 2]\", \"[\"b\", \"b\"]\" ] }"},
    {"{_id: {'$oid': '0102030405060708090a0b0c'}}", NULL,
     "{ _id: [ \"[ObjectId('0102030405060708090a0b0c'), ObjectId('0102030405060708090a0b0c')]\" ] }"},
};

static const char *bounds_of(const char *filter, const char *sort)
{
    struct match *m;
    struct sort_spec s = {0};
    struct plan p;
    struct buf out = {0};
    ck_assert_int_eq(match_parse(arena, J(filter), &m, &err), 0);
    if (sort)
        ck_assert_int_eq(sort_parse(arena, J(sort), &s, &err), 0);
    ck_assert_int_eq(plan_make(arena, &coll, m, sort ? &s : NULL, BVAL_MISSING, 50, &p, &err), 0);
    if (!p.index)
        return "none";
    size_t at = bw_begin(&out);
    ck_assert(plan_put_bounds(arena, &p, &out));
    bw_end(&out, at);
    const char *text = bval_shell(arena, bdoc_get(out.p, "indexBounds"));
    buf_free(&out);
    return text;
}

START_TEST(bounds_are_shown)
{
    setup();
    const char *text = bounds_of(rows[_i].filter, rows[_i].sort);
    if (rows[_i].want)
        ck_assert_str_eq(text, rows[_i].want);
    else
        ck_assert_msg(!strchr(text, '?'), "%s: %s", rows[_i].filter, text);
    teardown();
}
END_TEST

/* Every value, as the edge of a range of either direction, is found again. */
START_TEST(edges_of_all_kinds_are_read_back)
{
    static const char *const values[] = {"0",
                                         "1",
                                         "-1",
                                         "256",
                                         "-65536",
                                         "0.1",
                                         "1e300",
                                         "-1e-300",
                                         "'a'",
                                         "''",
                                         "'\\u0001'",
                                         "'zz'",
                                         "{'$oid': '0102030405060708090aff00'}",
                                         "{x: 1}",
                                         "{x: {y: 'z'}}",
                                         "{'$numberLong': '9007199254740993'}",
                                         "{'$timestamp': {t: 5, i: 1}}"};
    static const char *const ops[] = {"~gt", "~gte", "~lt", "~lte"};
    setup();
    for (size_t i = 0; i < OV_LEN(values); i++)
        for (size_t k = 0; k < OV_LEN(ops); k++)
            for (int down = 0; down < 2; down++) {
                const char *filter = arena_printf(arena, "{%s: {%s: %s}}", down ? "d" : "a", ops[k], values[i]);
                ck_assert_msg(!strstr(bounds_of(filter, NULL), "?"), "%s: %s", filter, bounds_of(filter, NULL));
            }
    teardown();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, bounds_are_shown, 0, OV_LEN(rows));
    tcase_add_test(tc, edges_of_all_kinds_are_read_back);
}
TEST_MAIN("plan/bounds_text", add_tests)
