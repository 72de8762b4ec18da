/* Paths: what filters see of a document. */
#include "protocol/bson/bson.h"

#include "tests/lib/json.h"
#include "tests/lib/test.h"

/* What a walk meets, as text: values in shell form, * for an element of the array at the end, @i for the place in the first array. */
static bool note(void *arg, struct bval v, bool in_array, int32_t first)
{
    struct buf *b = arg;
    if (b->len)
        buf_append(b, " | ", 3);
    if (in_array)
        buf_byte(b, '*');
    if (v.type == BSON_TYPE_EOD)
        buf_append(b, "missing", 7);
    else
        bval_to_shell(b, v, 0);
    if (first >= 0)
        buf_printf(b, " @%d", first);
    return false;
}

static void walk_gives(const char *text, const char *json, bool expand, const char *want)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct bpath path;
    struct buf b;
    err_init(&err, a);
    buf_init(&b);
    ck_assert_int_eq(bpath_parse(a, text, &path, &err), 0);
    ck_assert(!bpath_walk(&path, J(json), expand, note, &b));
    buf_byte(&b, 0);
    ck_assert_msg(strcmp((const char *)b.p, want) == 0, "%s in %s: \"%s\", not \"%s\"", text, json, b.p, want);
    buf_free(&b);
    arena_free(a);
}

static const struct {
    const char *path, *doc, *want;
} WALKS[] = {
    {"a", "{a: 1}", "1"},
    {"a", "{b: 1}", "missing"},
    {"a", "{a: {b: 1}}", "{ b: 1 }"},
    {"a.b", "{a: {b: 1}}", "1"},
    {"a.b", "{a: {}}", "missing"},
    {"a.b", "{a: 5}", "missing"},
    {"a.b", "{a: null}", "missing"},
    {"a.b", "{}", "missing"},
    {"a.b.c", "{a: {b: {c: 'x'}}}", "\"x\""},
    /* the array at the end: elements, then the array */
    {"a", "{a: [1, 2]}", "*1 @0 | *2 @1 | [ 1, 2 ]"},
    {"a", "{a: []}", "[]"},
    {"a", "{a: [[1], {b: 2}]}", "*[ 1 ] @0 | *{ b: 2 } @1 | [ [ 1 ], { b: 2 } ]"},
    {"a.b", "{a: {b: [1]}}", "*1 @0 | [ 1 ]"},
    /* an array on the way: its documents; those without the field give missing, scalars and inner arrays give nothing */
    {"a.b", "{a: [{b: 1}, {b: 2}]}", "1 @0 | 2 @1"},
    {"a.b", "{a: [{b: 1}, {}, 7, [{b: 3}], null]}", "1 @0 | missing @1"},
    {"a.b", "{a: []}", ""},
    {"a.b", "{a: [4]}", ""},
    {"a.b", "{a: [[{b: 1}]]}", ""},
    {"a.b", "{a: [5, {b: 3}, {b: []}, {b: [7, 8]}]}", "3 @1 | [] @2 | *7 @3 | *8 @3 | [ 7, 8 ] @3"},
    {"a.b.c", "{a: [{b: [{c: 1}, {c: 2}]}, {b: {c: 3}}, {b: 4}]}", "1 @0 | 2 @0 | 3 @1 | missing @2"},
    /* numbers: an index, and a name in documents */
    {"a.1", "{a: [5, 7, 3]}", "7"},
    {"a.1", "{a: [5, [2, 4], 3]}", "[ 2, 4 ]"},
    {"a.1", "{a: [5, {'1': 4}, 3]}", "4 @1 | { 1: 4 }"},
    {"a.1", "{a: {'1': 4}}", "4"},
    {"a.01", "{a: [5, 7]}", ""},
    {"a.5", "{a: [5, 7]}", ""},
    {"a.1.b", "{a: [5, {b: 4}, 3]}", "missing @1 | 4"},
    {"a.1.b", "{a: [5, [{b: 4}], 3]}", "4 @0"},
    {"a.1.b", "{a: [5, [{b: [1, 2]}], 3]}", "*1 @0 | *2 @0 | [ 1, 2 ] @0"},
    {"a.0.0", "{a: [[9, 8]]}", "9"},
    {"a.0.b", "{a: [{'0': {b: 'n'}, b: 'i'}]}", "\"n\" @0 | \"i\""},
};

START_TEST(walks_meet_what_filters_see)
{
    for (size_t i = 0; i < OV_LEN(WALKS); i++)
        walk_gives(WALKS[i].path, WALKS[i].doc, true, WALKS[i].want);
}
END_TEST

START_TEST(arrays_at_the_end_stay_whole_unless_asked)
{
    walk_gives("a", "{a: [1, 2]}", false, "[ 1, 2 ]");
    walk_gives("a.b", "{a: [{b: [1, 2]}, {b: 3}]}", false, "[ 1, 2 ] @0 | 3 @1");
}
END_TEST

static bool stop_at_two(void *arg, struct bval v, bool in_array, int32_t first)
{
    ++*(int *)arg;
    return bval_is_number(v) && bval_i64(v) == 2;
}

START_TEST(a_walk_stops_when_told)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct bpath path;
    int calls = 0;
    err_init(&err, a);
    ck_assert_int_eq(bpath_parse(a, "a", &path, &err), 0);
    ck_assert(bpath_walk(&path, J("{a: [1, 2, 3]}"), true, stop_at_two, &calls));
    ck_assert_int_eq(calls, 2);
    arena_free(a);
}
END_TEST

START_TEST(paths_have_parts_and_indexes)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct bpath path;
    err_init(&err, a);
    ck_assert_int_eq(bpath_parse(a, "ab.0.12.007.x1.999999999.1234567890", &path, &err), 0);
    static const int32_t index[] = {-1, 0, 12, -1, -1, 999999999, -1};
    ck_assert_uint_eq(path.n_parts, OV_LEN(index));
    for (size_t i = 0; i < OV_LEN(index); i++)
        ck_assert_int_eq(path.parts[i].index, index[i]);
    ck_assert_uint_eq(path.parts[0].n, 2);
    ck_assert_int_eq(memcmp(path.parts[4].s, "x1", 2), 0);
    arena_free(a);
}
END_TEST

START_TEST(bad_paths_are_refused)
{
    static const struct {
        const char *text;
        int code;
    } bad[] = {{"", 40352}, {".", 40353}, {"a.", 40353}, {".a", 15998}, {"a..b", 15998}};
    struct arena *a = arena_new(0);
    struct err err;
    struct bpath path;
    err_init(&err, a);
    for (size_t i = 0; i < OV_LEN(bad); i++) {
        ck_assert_int_eq(bpath_parse(a, bad[i].text, &path, &err), bad[i].code);
        ck_assert_int_eq(bpath_parse_any(a, bad[i].text, &path, &err), 0);
    }
    char deep[2 * BSON_DEPTH_MAX + 2];
    for (size_t i = 0; i < sizeof(deep) - 1; i++)
        deep[i] = i % 2 ? '.' : 'a';
    deep[sizeof(deep) - 1] = 0;
    ck_assert_int_eq(bpath_parse(a, deep, &path, &err), ERR_OVERFLOW);
    deep[2 * BSON_DEPTH_MAX - 1] = 0;
    ck_assert_int_eq(bpath_parse(a, deep, &path, &err), 0);
    ck_assert_uint_eq(path.n_parts, BSON_DEPTH_MAX);
    arena_free(a);
}
END_TEST

/* ---- values ---- */

static bool collect(void *arg, struct bval v)
{
    struct buf *b = arg;
    if (b->len)
        buf_append(b, ", ", 2);
    bval_to_shell(b, v, 1000);
    return false;
}

static const char *values_at(struct arena *a, const char *path, const uint8_t *doc)
{
    struct err err;
    struct bpath p;
    struct buf b;
    err_init(&err, a);
    ck_assert_int_eq(bpath_parse(a, path, &p, &err), 0);
    buf_init(&b);
    bpath_values(&p, doc, collect, &b);
    const char *s = arena_strndup(a, (const char *)b.p, b.len);
    buf_free(&b);
    return s;
}

START_TEST(values_take_numbers_at_arrays_as_indexes)
{
    static const struct {
        const char *path, *doc, *values;
    } rows[] = {
        {"a", "{a: 1}", "1"},
        {"a", "{b: 1}", ""},
        {"a", "{a: [1, [2]]}", "[ 1, [ 2 ] ]"},
        {"a.b", "{a: {b: null}}", "null"},
        {"a.b", "{a: [{b: 1}, {c: 2}, 3, {b: [4]}, [{b: 5}]]}", "1, [ 4 ]"},
        {"a.b.c", "{a: [{b: [{c: 1}, {c: 2}]}, {b: {c: 3}}]}", "1, 2, 3"},
        {"a.0", "{a: [{'0': 1}, {'0': 2}]}", "{ 0: 1 }"},
        {"a.0", "{a: {'0': 1}}", "1"},
        {"a.1", "{a: [0, 1]}", "1"},
        {"a.2", "{a: [0, 1]}", ""},
        {"a.00", "{a: [0, {'00': 1}]}", ""},
        {"a.0.b", "{a: [{b: 1}, {b: 2}]}", "1"},
        {"a.b.0", "{a: [{b: [1, 2]}, {b: {'0': 3}}]}", "1, 3"},
        {"a.0.0", "{a: [[7]]}", "7"},
        {"a.0.b", "{a: [[{b: 1}, {b: 2}]]}", "1, 2"},
        {"a.b", "{a: 5}", ""},
    };
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < OV_LEN(rows); i++)
        ck_assert_msg(strcmp(values_at(a, rows[i].path, J(rows[i].doc)), rows[i].values) == 0, "%s of %s: %s",
                      rows[i].path, rows[i].doc, values_at(a, rows[i].path, J(rows[i].doc)));
    arena_free(a);
}
END_TEST

/* Arrays and documents by turns, each of which could take a number by name or by index: 2^40 ways. */
START_TEST(values_of_deep_numbers_take_no_time)
{
    struct arena *a = arena_new(0);
    struct buf path, doc;
    buf_init(&path);
    buf_init(&doc);
    buf_printf(&path, "a");
    buf_printf(&doc, "{a: ");
    for (int i = 0; i < 40; i++) {
        buf_printf(&path, ".0.0");
        buf_printf(&doc, "[{'0': ");
    }
    buf_byte(&path, 0);
    buf_printf(&doc, "7");
    for (int i = 0; i < 40; i++)
        buf_printf(&doc, "}]");
    buf_printf(&doc, "}");
    buf_byte(&doc, 0);
    ck_assert_str_eq(values_at(a, (const char *)path.p, J((const char *)doc.p)), "7");
    buf_free(&path);
    buf_free(&doc);
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, walks_meet_what_filters_see);
    tcase_add_test(tc, arrays_at_the_end_stay_whole_unless_asked);
    tcase_add_test(tc, a_walk_stops_when_told);
    tcase_add_test(tc, paths_have_parts_and_indexes);
    tcase_add_test(tc, bad_paths_are_refused);
    tcase_add_test(tc, values_take_numbers_at_arrays_as_indexes);
    tcase_add_test(tc, values_of_deep_numbers_take_no_time);
}

TEST_MAIN("bson/walk", add_tests)
