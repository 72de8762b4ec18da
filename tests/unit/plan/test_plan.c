/* Which plan for which question. */
#include "server/query/plan/plan.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

static struct arena *arena;
static struct err err;
static struct index_def defs[16];
static struct index_rt rts[16];
static struct collection coll;
static bool none; /* no collection */

static void add_index(const char *spec, uint32_t multikey)
{
    uint32_t i = coll.n_indexes++;
    ck_assert_int_eq(index_parse(arena, J(spec), &defs[i], &err), 0);
    defs[i].is_id = i == 0;
    defs[i].state = INDEX_READY;
    defs[i].rt = &rts[i];
    rts[i].multikey = multikey;
    rts[i].ready_ts = 10;
}

static void setup(void)
{
    arena = arena_new(0);
    err_init(&err, arena);
    none = false;
    coll.n_indexes = 0;
    coll.indexes = defs;
    add_index("{key: {_id: 1}, name: '_id_'}", 0);
    add_index("{key: {a: 1, b: -1}, name: 'ab'}", 0);
    add_index("{key: {u: 1}, name: 'u', unique: true}", 0);
    add_index("{key: {s: 1}, name: 's', sparse: true}", 0);
    add_index("{key: {m: 1}, name: 'm'}", 1);
    add_index("{key: {'x.p': 1, 'x.q': 1}, name: 'pq'}", 3);
    add_index("{key: {c: 1}, name: 'c'}", 0);
    rts[6].ready_ts = 99;
    add_index("{key: {tags: 1, date: 1}, name: 'td'}", 1);
    add_index("{key: {'y.p': 1}, name: 'yp', sparse: true}", 1);
    add_index("{key: {'v.p': 1, w: 1, 'v.q': 1}, name: 'vwv'}", 5);
}
static void teardown(void)
{
    arena_free(arena);
}

static int make(const char *filter, const char *sort, struct bval hint, struct plan *p)
{
    struct match *m;
    struct sort_spec *s = arena_zalloc(arena, sizeof(*s));
    ck_assert_int_eq(match_parse(arena, J(filter), &m, &err), 0);
    if (sort)
        ck_assert_int_eq(sort_parse(arena, J(sort), s, &err), 0);
    return plan_make(arena, none ? NULL : &coll, m, sort ? s : NULL, hint, 50, p, &err);
}

/* kind, index, number of intervals, then: s sorted, r reverse, m merge, d dedup */
static const struct {
    const char *filter, *sort, *want;
} cases[] = {
    {"{}", NULL, "COLLSCAN s"},
    {"{}", "{a: 1}", "IXSCAN ab 1 s"},
    {"{}", "{a: -1}", "IXSCAN ab 1 sr"},
    {"{}", "{a: -1, b: 1}", "IXSCAN ab 1 sr"},
    {"{}", "{a: 1, b: 1}", "COLLSCAN "},
    {"{}", "{~natural: -1}", "COLLSCAN sr"},
    {"{}", "{s: 1}", "COLLSCAN "},
    {"{}", "{m: 1}", "IXSCAN m 1 sd"},
    {"{~alwaysFalse: 1}", NULL, "EMPTY s"},
    {"{_id: 5}", NULL, "POINTS _id_ 1 s"},
    {"{_id: 5, z: 1}", "{q: 1}", "POINTS _id_ 1 s"},
    {"{_id: {~in: [3, 1, 2, 1]}}", NULL, "POINTS _id_ 3 s"},
    {"{_id: {~in: [3, 1]}}", "{_id: -1}", "POINTS _id_ 2 sr"},
    {"{_id: {~in: [3, 1]}}", "{z: 1}", "POINTS _id_ 2 "},
    {"{_id: {~gt: 5}}", "{_id: 1}", "IXSCAN _id_ 1 s"},
    {"{u: 5}", NULL, "POINTS u 1 s"},
    {"{u: {~gt: 5}}", NULL, "IXSCAN u 1 s"},
    {"{a: 5}", NULL, "IXSCAN ab 1 s"},
    {"{a: 5}", "{b: 1}", "IXSCAN ab 1 sr"},
    {"{a: 5}", "{a: 1, b: 1}", "IXSCAN ab 1 sr"},
    {"{a: 5}", "{b: -1, a: 1}", "IXSCAN ab 1 s"},
    {"{a: 5}", "{z: 1}", "IXSCAN ab 1 "},
    {"{a: {~in: [1, 2, 3]}}", "{b: -1}", "IXSCAN ab 3 sm"},
    {"{a: {~in: [1, 2, 3]}}", "{b: 1}", "IXSCAN ab 3 srm"},
    {"{a: {~in: [1, 2, 3]}}", "{a: 1}", "IXSCAN ab 3 s"},
    {"{a: {~in: [1, 2]}, b: {~in: [7, 8, 9]}}", NULL, "IXSCAN ab 6 s"},
    {"{a: {~gt: 1}}", "{b: 1}", "IXSCAN ab 1 "},
    {"{a: {~gt: 1, ~lt: 0}}", NULL, "EMPTY s"},
    {"{a: {~ne: 1}}", NULL, "COLLSCAN s"},
    {"{b: 1}", NULL, "COLLSCAN s"},
    {"{~or: [{a: 1}, {a: {~gt: 5}}]}", NULL, "IXSCAN ab 2 s"},
    {"{~or: [{a: 1}, {z: 1}]}", NULL, "COLLSCAN s"},
    {"{a: {~regex: '^abc'}}", NULL, "IXSCAN ab 2 s"},
    {"{s: 1}", NULL, "IXSCAN s 1 s"},
    {"{s: null}", NULL, "COLLSCAN s"},
    {"{s: {~exists: true}}", NULL, "IXSCAN s 1 s"},
    {"{s: {~exists: true}}", "{s: -1}", "IXSCAN s 1 sr"},
    {"{s: {~exists: false}}", NULL, "COLLSCAN s"},
    {"{m: 1}", NULL, "IXSCAN m 1 s"},
    {"{m: {~gt: 5, ~lt: 3}}", NULL, "IXSCAN m 1 sd"},
    {"{m: {~gt: 5}}", "{m: 1}", "IXSCAN m 1 d"},
    {"{'x.p': 1, 'x.q': 2}", NULL, "IXSCAN pq 1 sd"},
    {"{tags: 'x'}", NULL, "IXSCAN td 1 s"},
    {"{tags: 'x', date: {~gt: 5}}", "{date: 1}", "IXSCAN td 1 s"},
    {"{tags: {~in: ['x', 'y']}}", NULL, "IXSCAN td 2 sd"},
    {"{tags: {~in: ['x', 'y']}, date: 3}", NULL, "IXSCAN td 2 sd"},
    {"{tags: {~gt: 'x'}}", NULL, "IXSCAN td 1 sd"},
    {"{'v.p': 1, w: 2}", NULL, "IXSCAN vwv 1 sd"}, /* v.q may differ */
    {"{'v.p': 1, w: 2, 'v.q': 3}", NULL, "IXSCAN vwv 1 sd"},
    {"{'y.p': 1}", NULL, "IXSCAN yp 1 s"},
    {"{~and: [{'y.p': null}, {'y.p': {~exists: true}}]}", NULL, "COLLSCAN s"}, /* {y: [{p: 1}, {}]} matches */
    {"{~and: [{'y.p': {~exists: true}}, {'y.p': null}]}", NULL, "COLLSCAN s"},
    {"{~and: [{'y.p': {~exists: true}}, {'y.p': {~gt: 1}}]}", NULL, "IXSCAN yp 1 sd"},
    {"{~and: [{'y.p': {~lte: {$maxKey: 1}}}, {'y.p': {~exists: true}}]}", NULL, "IXSCAN yp 1 sd"},
    {"{c: 1}", NULL, "COLLSCAN s"}, /* ready after the snapshot */
};

static const char *name_of(const struct plan *p)
{
    static const char *const kinds[] = {"EMPTY", "COLLSCAN", "POINTS", "IXSCAN"};
    const char *what = p->index ? arena_printf(arena, "%s %u ", p->index->name, p->n_intervals) : "";
    return arena_printf(arena, "%s %s%s%s%s%s", kinds[p->kind], what, p->sorted ? "s" : "", p->reverse ? "r" : "",
                        p->merge ? "m" : "", p->dedup ? "d" : "");
}

START_TEST(questions_get_their_plans)
{
    struct plan p;
    ck_assert_int_eq(make(cases[_i].filter, cases[_i].sort, BVAL_MISSING, &p), 0);
    ck_assert_msg(strcmp(name_of(&p), cases[_i].want) == 0, "%s by %s: %s", cases[_i].filter,
                  cases[_i].sort ? cases[_i].sort : "-", name_of(&p));
}
END_TEST

static struct bval hint(const char *json)
{
    return bdoc_get(J(json), "h");
}

START_TEST(hints_are_obeyed)
{
    struct plan p;
    ck_assert_int_eq(make("{a: 1}", NULL, hint("{h: 'm'}"), &p), 0);
    ck_assert_str_eq(name_of(&p), "IXSCAN m 1 sd");
    ck_assert_int_eq(make("{_id: 1}", NULL, hint("{h: {a: 1, b: -1}}"), &p), 0);
    ck_assert_str_eq(name_of(&p), "IXSCAN ab 1 s");
    ck_assert_int_eq(make("{_id: 1}", NULL, hint("{h: {'~natural': -1}}"), &p), 0);
    ck_assert_str_eq(name_of(&p), "COLLSCAN sr");
    ck_assert_int_eq(make("{_id: 1}", NULL, hint("{h: {}}"), &p), 0);
    ck_assert_str_eq(name_of(&p), "POINTS _id_ 1 s");
    ck_assert_int_eq(make("{}", NULL, hint("{h: 'none'}"), &p), ERR_BAD_VALUE);
    ck_assert_str_eq(err.msg, "hint provided does not correspond to an existing index");
    ck_assert_int_eq(make("{}", NULL, hint("{h: {a: 1}}"), &p), ERR_BAD_VALUE);
    ck_assert_int_eq(make("{}", NULL, hint("{h: 'c'}"), &p), ERR_BAD_VALUE); /* not there yet for this snapshot */
}
END_TEST

static const struct {
    const char *hint, *sort, *msg;
} refused[] = {
    {"{h: {'~natural': 1, a: 1}}", NULL, "$natural hint cannot be set to a value other than -1 or 1."},
    {"{h: {a: 1, '~natural': 1}}", NULL, "$natural hint cannot be set to a value other than -1 or 1."},
    {"{h: {'~natural': 2}}", NULL, "$natural hint cannot be set to a value other than -1 or 1."},
    {"{h: {'~natural': '1'}}", NULL, "$natural hint cannot be set to a value other than -1 or 1."},
    {"{h: {'~natural': true}}", NULL, "$natural hint cannot be set to a value other than -1 or 1."},
    {"{h: {'~natural': 1}}", "{~natural: -1}", "$natural hint must be in the same direction as $natural sort order"},
    {"{h: 'm'}", "{~natural: 1}", "index hint not allowed with $natural sort order"},
    {"{h: {m: 1}}", "{~natural: -1}", "index hint not allowed with $natural sort order"},
};

START_TEST(hints_that_cannot_be)
{
    struct plan p;
    ck_assert_int_eq(make("{a: 1}", refused[_i].sort, hint(refused[_i].hint), &p), ERR_BAD_VALUE);
    ck_assert_str_eq(err.msg, refused[_i].msg);
    none = true; /* no collection: refused all the same */
    ck_assert_int_eq(make("{a: 1}", refused[_i].sort, hint(refused[_i].hint), &p), ERR_BAD_VALUE);
}
END_TEST

START_TEST(hints_and_natural_order)
{
    struct plan p;
    ck_assert_int_eq(make("{a: 1}", "{~natural: -1}", hint("{h: {'~natural': -1}}"), &p), 0);
    ck_assert_str_eq(name_of(&p), "COLLSCAN sr");
    ck_assert_int_eq(make("{a: 1}", "{~natural: -1}", hint("{h: {}}"), &p), 0);
    ck_assert_str_eq(name_of(&p), "COLLSCAN sr");
    ck_assert_int_eq(make("{a: 1}", "{a: 1}", hint("{h: {'~natural': -1}}"), &p), 0);
    ck_assert_str_eq(name_of(&p), "COLLSCAN r");
    none = true;
    ck_assert_int_eq(make("{a: 1}", NULL, hint("{h: 'nothing'}"), &p), 0);
    ck_assert_str_eq(name_of(&p), "EMPTY s");
}
END_TEST

/* The limit of intervals is one of products: a long list keeps the equality behind it. */
START_TEST(long_lists_keep_what_follows_them)
{
    struct plan p;
    struct buf b;
    buf_init(&b);
    buf_append(&b, "{a: {~in: [", 11);
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "%s%d", i ? ", " : "", i);
    buf_append(&b, "]}, b: 7}", 10);
    ck_assert_int_eq(make((const char *)b.p, NULL, BVAL_MISSING, &p), 0);
    ck_assert_str_eq(name_of(&p), "IXSCAN ab 5000 s");
    struct buf key;
    buf_init(&key);
    key_encode(&key, bdoc_get(J("{v: 0}"), "v"), false);
    key_encode(&key, bdoc_get(J("{v: 7}"), "v"), true);
    ck_assert(slice_eq(p.intervals[0].from, buf_slice(&key)));
    buf_free(&key);
    buf_free(&b);
}
END_TEST

START_TEST(merged_intervals_know_their_prefix)
{
    struct plan p;
    struct buf key;
    ck_assert_int_eq(make("{a: {~in: ['x', 'long']}}", "{b: -1}", BVAL_MISSING, &p), 0);
    ck_assert(p.merge);
    buf_init(&key);
    key_encode(&key, bdoc_get(J("{v: 'long'}"), "v"), false);
    ck_assert(slice_eq(p.intervals[0].from, buf_slice(&key)));
    ck_assert_uint_eq(p.intervals[0].prefix, key.len);
    buf_free(&key);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, questions_get_their_plans, 0, OV_LEN(cases));
    tcase_add_test(tc, hints_are_obeyed);
    tcase_add_loop_test(tc, hints_that_cannot_be, 0, OV_LEN(refused));
    tcase_add_test(tc, hints_and_natural_order);
    tcase_add_test(tc, long_lists_keep_what_follows_them);
    tcase_add_test(tc, merged_intervals_know_their_prefix);
}
TEST_MAIN("plan/plan", add_tests)
