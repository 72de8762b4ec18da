/* Sort specifications and keys. */
#include "server/query/project/project.h"

#include "tests/lib/json.h"
#include "tests/lib/test.h"

static int key_order(const char *spec, const char *x, const char *y)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct sort_spec s;
    struct buf kx, ky;
    err_init(&err, a);
    buf_init(&kx);
    buf_init(&ky);
    ck_assert_msg(sort_parse(a, J(spec), &s, &err) == 0, "%s: %s", spec, err.msg);
    sort_key(&s, J(x), &kx);
    sort_key(&s, J(y), &ky);
    int c = slice_cmp(buf_slice(&kx), buf_slice(&ky));
    buf_free(&kx);
    buf_free(&ky);
    arena_free(a);
    return (c > 0) - (c < 0);
}

static const struct {
    const char *spec, *x, *y;
    int want;
} ORDERS[] = {
    {"{a: 1}", "{a: 1}", "{a: 2}", -1},
    {"{a: -1}", "{a: 1}", "{a: 2}", 1},
    {"{a: 1}", "{a: 1}", "{a: {'$numberDouble': '1'}}", 0},
    {"{a: 1}", "{b: 1}", "{a: null}", 0},
    {"{a: 1}", "{}", "{a: 0}", -1},
    {"{a: -1}", "{}", "{a: 0}", 1},
    {"{a: 1, b: -1}", "{a: 1, b: 1}", "{a: 1, b: 2}", 1},
    {"{a: 1, b: -1}", "{a: 0, b: 1}", "{a: 1, b: 2}", -1},
    {"{a: 1, b: 1}", "{a: 'x', b: 2}", "{a: 'x', b: 1}", 1},
    {"{a: 1, b: 1}", "{a: 'x', b: 2}", "{a: 'xy', b: 1}", -1},
    {"{a: -1, b: 1}", "{a: 'x', b: 2}", "{a: 'xy', b: 1}", 1},
    /* arrays: the smallest for 1, the largest for -1 */
    {"{a: 1}", "{a: [5, 1, 3]}", "{a: 1}", 0},
    {"{a: -1}", "{a: [5, 1, 3]}", "{a: 5}", 0},
    {"{a: 1}", "{a: [5, 1]}", "{a: 2}", -1},
    {"{a: 1}", "{a: []}", "{a: null}", -1},
    {"{a: 1}", "{a: []}", "{a: {'$minKey': 1}}", 1},
    {"{a: 1}", "{a: [[1], [0]]}", "{a: [[0, 0]]}", -1}, /* inner arrays as a whole */
    {"{a: 1}", "{a: [{'$undefined': true}]}", "{a: []}", 0},
    /* paths */
    {"{'a.b': 1}", "{a: {b: 1}}", "{a: {b: 2}}", -1},
    {"{'a.b': 1}", "{a: [{b: 3}, {b: 1}]}", "{a: {b: 1}}", 0},
    {"{'a.b': -1}", "{a: [{b: 3}, {b: 1}]}", "{a: {b: 3}}", 0},
    {"{'a.b': 1}", "{a: [{b: 3}, {}]}", "{a: {}}", 0},
    {"{'a.b': 1}", "{a: [{b: 3}, 7]}", "{a: {b: null}}", 0},
    {"{'a.b': 1}", "{a: []}", "{}", 0},
    {"{'a.b': 1}", "{a: 5}", "{}", 0},
    {"{'a.b': 1}", "{a: [{b: [4, 2]}, {b: 3}]}", "{a: {b: 2}}", 0},
    {"{'a.b': 1}", "{a: [[{b: 1}]]}", "{}", 0},
    {"{'a.1': 1}", "{a: [9, 2]}", "{a: {'1': 2}}", 0},
    {"{'a.1': 1}", "{a: [9, [4, 3]]}", "{a: {'1': 3}}", 0},
    {"{'a.1.b': 1}", "{a: [9, {b: 5}]}", "{a: {'1': {b: 5}}}", 0},
    {"{'a.7': 1}", "{a: [9]}", "{}", 0},
    /* fields below one array: of the same element */
    {"{'a.b': 1, 'a.c': 1}", "{a: [{b: 2, c: 0}, {b: 1, c: 9}]}", "{a: {b: 1, c: 9}}", 0},
    {"{'a.b': 1, 'a.c': -1}", "{a: [{b: 1, c: 3}, {b: 1, c: 9}]}", "{a: {b: 1, c: 9}}", 0},
    {"{'a.b': -1, 'a.c': 1}", "{a: [{b: 1, c: 3}, {b: 2, c: 9}, {b: 2, c: 8}]}", "{a: {b: 2, c: 8}}", 0},
    {"{x: 1, 'a.b': 1, 'a.c': 1}", "{x: 5, a: [{b: 2, c: 0}, {b: 1, c: 9}, 7]}", "{x: 5, a: {}}", 0},
    {"{'a.b.x': 1, 'a.b.y': 1, 'a.c': 1}", "{a: [{c: 1, b: [{x: 1, y: 5}, {x: 1, y: 4}]}, {c: 0, b: {x: 2}}]}",
     "{a: {b: {x: 1, y: 4}, c: 1}}", 0},
    {"{a: 1, 'a.b': 1}", "{a: [{b: 2}, {b: 1}]}", "{a: {b: 1}}", 0},
    {"{a: 1, 'a.b': 1}", "{a: []}", "{a: null}", -1},
    {"{a: 1, b: 1}", "{a: [2, 1], b: 7}", "{a: 1, b: 7}", 0},
    {"{a: 1, b: -1}", "{a: [2, 1], b: [3, 4]}", "{a: 1, b: 4}", 0}, /* parallel: each by itself */
};

START_TEST(keys_sort_as_the_documents_do)
{
    for (size_t i = 0; i < OV_LEN(ORDERS); i++) {
        int c = key_order(ORDERS[i].spec, ORDERS[i].x, ORDERS[i].y);
        ck_assert_msg(c == ORDERS[i].want, "%s: %s and %s: %d", ORDERS[i].spec, ORDERS[i].x, ORDERS[i].y, c);
        ck_assert_int_eq(key_order(ORDERS[i].spec, ORDERS[i].y, ORDERS[i].x), -ORDERS[i].want);
    }
}
END_TEST

static const struct {
    const char *spec;
    int code;
    const char *msg;
} REFUSED[] = {
    {"{a: 2}", 15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)"},
    {"{a: 0}", 15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)"},
    {"{a: 'x'}", 15974, "Illegal key in $sort specification: a: \"x\""},
    {"{a: true}", 15974, "Illegal key in $sort specification: a: true"},
    {"{a: {b: 1}}", 17312, "$meta is the only expression supported by $sort right now"},
    {"{a: {~meta: 'textScore'}}", 238, "$meta in the sort of 'a' is not implemented"},
    {"{'': 1}", 40352, "FieldPath cannot be constructed with empty string"},
    {"{'a.': 1}", 40353, "FieldPath must not end with a '.'."},
    {"{'a..b': 1}", 15998, "FieldPath field names may not be empty strings."},
    {"{~a: 1}", 16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField."},
    {"{a: 1, a: -1}", 7472500, "$sort key must not contain duplicate keys (duplicate: 'a')"},
    {"{a: 1, ~natural: 1}", 2, "$natural sort cannot be set to a value other than -1 or 1."},
    {"{~natural: 1.9}", 2, "$natural sort cannot be set to a value other than -1 or 1."},
    {"{~natural: 2}", 2, "$natural sort cannot be set to a value other than -1 or 1."},
};

START_TEST(bad_sorts_are_refused)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct sort_spec s;
    for (size_t i = 0; i < OV_LEN(REFUSED); i++) {
        err_init(&err, a);
        ck_assert_msg(sort_parse(a, J(REFUSED[i].spec), &s, &err) == REFUSED[i].code, "%s: %d %s", REFUSED[i].spec,
                      err.code, err.msg);
        ck_assert_str_eq(err.msg, REFUSED[i].msg);
    }
    struct buf b;
    buf_init(&b);
    size_t start = bw_begin(&b);
    for (int i = 0; i < 33; i++)
        bw_i32(&b, (char[]){(char)('@' + i), 0}, 1);
    bw_end(&b, start);
    ck_assert_int_eq(sort_parse(a, b.p, &s, &err), 13103);
    buf_free(&b);
    arena_free(a);
}
END_TEST

START_TEST(parallel_arrays_are_refused_when_asked)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct sort_spec s;
    struct buf key, plain;
    err_init(&err, a);
    buf_init(&key);
    buf_init(&plain);
    ck_assert_int_eq(sort_parse(a, J("{a: 1, b: 1}"), &s, &err), 0);
    ck_assert_int_eq(sort_key_checked(&s, J("{a: [1], b: [2]}"), &key, &err), ERR_BAD_VALUE);
    ck_assert_str_eq(err.msg, "cannot sort with keys that are parallel arrays");
    ck_assert_uint_eq(key.len, 0);
    ck_assert_int_eq(sort_key_checked(&s, J("{a: [1], b: 2}"), &key, &err), 0);
    sort_key(&s, J("{a: 1, b: 2}"), &plain);
    ck_assert(slice_eq(buf_slice(&key), buf_slice(&plain)));
    buf_free(&key);
    buf_free(&plain);
    arena_free(a);
}
END_TEST

START_TEST(natural_and_empty_sorts_have_no_fields)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct sort_spec s;
    err_init(&err, a);
    ck_assert_int_eq(sort_parse(a, J("{}"), &s, &err), 0);
    ck_assert(s.n == 0 && s.natural == 0);
    ck_assert_int_eq(sort_parse(a, J("{~natural: -1}"), &s, &err), 0);
    ck_assert(s.n == 0 && s.natural == -1);
    ck_assert_int_eq(sort_parse(a, J("{a: {'$numberDouble': '1'}, 'b.c': {'$numberLong': '-1'}}"), &s, &err), 0);
    ck_assert(s.n == 2 && s.natural == 0 && s.dirs[0] == 1 && s.dirs[1] == -1 && s.paths[1].n_parts == 2);
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, keys_sort_as_the_documents_do);
    tcase_add_test(tc, bad_sorts_are_refused);
    tcase_add_test(tc, parallel_arrays_are_refused_when_asked);
    tcase_add_test(tc, natural_and_empty_sorts_have_no_fields);
}

TEST_MAIN("query/sort", add_tests)
