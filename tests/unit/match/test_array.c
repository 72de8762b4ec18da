/* $size, $all, $elemMatch, the positional index, and conditions on bare values ($pull). */
#include "tests/unit/match/table.h"

START_TEST(size)
{
    CHECK_ROWS({"{a: {$size: 2}}", "{a: [1, 2]}", true}, {"{a: {$size: 2}}", "{a: [1]}", false},
               {"{a: {$size: 2}}", "{a: [1, 2, 3]}", false}, {"{a: {$size: 0}}", "{a: []}", true},
               {"{a: {$size: 0}}", "{}", false}, {"{a: {$size: 1}}", "{a: 1}", false},
               {"{a: {$size: 2}}", "{a: [[1, 2]]}", false}, {"{a: {$size: 1}}", "{a: [[1, 2]]}", true},
               {"{a: {$size: 2.0}}", "{a: [1, 2]}", true}, {"{'a.b': {$size: 1}}", "{a: [{b: [1]}, {b: 2}]}", true},
               {"{'a.0': {$size: 2}}", "{a: [[1, 2]]}", true});
    CHECK_BAD({"{a: {$size: 'x'}}", 2, "Failed to parse $size. Expected a number in: $size: \"x\""},
              {"{a: {$size: 2.5}}", 2, "Failed to parse $size. Expected an integer: $size: 2.5"},
              {"{a: {$size: -1}}", 2, "Failed to parse $size. Expected a non-negative number in: $size: -1"},
              {"{a: {$size: {$gt: 1}}}", 2, "Failed to parse $size. Expected a number in: $size: { $gt: 1 }"});
}
END_TEST

START_TEST(all)
{
    CHECK_ROWS({"{a: {$all: [1, 2]}}", "{a: [2, 1, 3]}", true}, {"{a: {$all: [1, 2]}}", "{a: [1]}", false},
               {"{a: {$all: [1]}}", "{a: 1}", true}, {"{a: {$all: []}}", "{a: []}", false},
               {"{a: {$all: [[1, 2]]}}", "{a: [1, 2]}", true}, {"{a: {$all: [[1]]}}", "{a: [1]}", true},
               {"{a: {$all: [null]}}", "{}", true},
               {"{a: {$all: [{$ref: 'c', $id: 1}]}}", "{a: [{$ref: 'c', $id: 1}]}", true},
               {"{a: {$all: [{$regularExpression: {pattern: '^x', options: ''}}, 'yy']}}", "{a: ['xx', 'yy']}", true},
               {"{a: {$all: [{$regularExpression: {pattern: '^x', options: ''}}, 'yy']}}", "{a: ['zx', 'yy']}", false},
               {"{a: {$all: [{$elemMatch: {b: 1}}, {$elemMatch: {b: 2}}]}}", "{a: [{b: 1}, {b: 2}]}", true},
               {"{a: {$all: [{$elemMatch: {b: 1}}, {$elemMatch: {b: 2}}]}}", "{a: [{b: 1}]}", false});
    CHECK_BAD({"{a: {$all: 1}}", 2, "$all needs an array"}, {"{a: {$all: [{$gt: 1}]}}", 2, "no $ expressions in $all"},
              {"{a: {$all: [{$elemMatch: {b: 1}}, 2]}}", 2, "$all/$elemMatch has to be consistent"},
              {"{a: {$all: [{$elemMatch: 1}]}}", 2, "$elemMatch needs an Object"});
}
END_TEST

START_TEST(elem_match)
{
    CHECK_ROWS({"{a: {$elemMatch: {b: 1, c: 2}}}", "{a: [{b: 1, c: 1}, {b: 1, c: 2}]}", true},
               {"{a: {$elemMatch: {b: 1, c: 2}}}", "{a: [{b: 1, c: 1}, {b: 2, c: 2}]}", false},
               {"{a: {$elemMatch: {b: 1}}}", "{a: {b: 1}}", false}, {"{a: {$elemMatch: {}}}", "{a: [{}]}", true},
               {"{a: {$elemMatch: {}}}", "{a: [1]}", false},
               {"{a: {$elemMatch: {$gt: 1, $lt: 3}}}", "{a: [0, 2, 5]}", true},
               {"{a: {$elemMatch: {$gt: 1, $lt: 3}}}", "{a: [1, 3]}", false},
               {"{a: {$elemMatch: {$gt: 1}}}", "{a: 2}", false}, {"{a: {$elemMatch: {$gt: 1}}}", "{a: [[2]]}", false},
               {"{a: {$elemMatch: {$elemMatch: {$gt: 1}}}}", "{a: [[2]]}", true},
               {"{a: {$elemMatch: {'0': 5}}}", "{a: [[5]]}", true},
               {"{a: {$elemMatch: {$size: 2}}}", "{a: [[1], [1, 2]]}", true},
               {"{a: {$elemMatch: {$ne: 1}}}", "{a: [1]}", false}, {"{a: {$elemMatch: {$ne: 1}}}", "{a: [1, 2]}", true},
               {"{a: {$elemMatch: {$not: {$gt: 1}}}}", "{a: [1]}", true},
               {"{a: {$elemMatch: {$or: [{b: 1}, {b: 2}]}}}", "{a: [{b: 2}]}", true},
               {"{a: {$elemMatch: {$in: [1, null]}}}", "{a: [null]}", true},
               {"{a: {$elemMatch: {$exists: false}}}", "{a: [1]}", false},
               {"{a: {$elemMatch: {$exists: true}}}", "{a: [1]}", true},
               {"{'a.b': {$elemMatch: {$gt: 1}}}", "{a: [{b: [0]}, {b: [2]}]}", true},
               {"{a: {$elemMatch: {b: {$elemMatch: {c: 1}}}}}", "{a: [{b: [{c: 1}]}]}", true},
               {"{a: {$elemMatch: {$ref: 'c', $id: 5}}}", "{a: [{$ref: 'c', $id: 5}]}", true},
               {"{a: {$elemMatch: {$ref: 'c', $id: 5}}}", "{a: [{$ref: 'c', $id: 6}]}", false},
               {"{a: {$not: {$elemMatch: {b: 1}}}}", "{a: [{b: 2}]}", true});
    CHECK_BAD({"{a: {$elemMatch: 1}}", 2, "$elemMatch needs an Object"},
              {"{a: {$elemMatch: []}}", 2, "$elemMatch needs an Object"},
              {"{a: {$elemMatch: {$gt: 1, b: 2}}}", 2, "unknown operator: b"},
              {"{a: {$elemMatch: {$gt: 1, $or: [{a: 1}]}}}", 2, "unknown operator: $or"});
}
END_TEST

START_TEST(positional_index)
{
    static const struct {
        const char *filter, *doc;
        int want;
    } rows[] = {
        {"{a: 5}", "{a: [3, 5]}", 1},
        {"{a: 5}", "{a: 5}", -1},
        {"{a: [3, 5]}", "{a: [3, 5]}", -1},
        {"{'a.b': 2}", "{a: [{b: 1}, {b: 2}]}", 1},
        {"{'a.0.b': 2}", "{a: [{b: 2}]}", -1},
        {"{a: {$gt: 3}}", "{a: [1, 2, 9]}", 2},
        {"{a: {$in: [9, 2]}}", "{a: [1, 2, 9]}", 1},
        {"{a: {$in: [9, {$regularExpression: {pattern: 'x', options: ''}}]}}", "{a: [1, 'x', 9]}", 1},
        {"{a: {$elemMatch: {b: 2}}}", "{a: [{b: 1}, {b: 2}]}", 1},
        {"{a: {$elemMatch: {$gt: 1}}}", "{a: [1, 1, 2]}", 2},
        {"{a: 2, b: 7}", "{a: [1, 2], b: [7]}", 0}, /* the last leaf decides, */
        {"{b: 7, a: 2}", "{a: [1, 2], b: [7]}", 0}, /* sorted by operator and path */
        {"{b: {~gt: 6}, a: 2}", "{a: [1, 2], b: [7]}", 0},
        {"{a: {~gt: 6}, b: 2}", "{b: [1, 2], a: [7]}", 0},
        {"{a: {~lt: 9, ~gt: 6}}", "{a: [1, 7]}", 1},
        {"{a: {~gt: 6, ~lt: 9}}", "{a: [1, 7]}", 1},
        {"{a: 2, c: 1}", "{a: [1, 2], c: 1}", 1},
        {"{$or: [{a: 2}, {b: 1}]}", "{a: [1, 2]}", -1},
        {"{a: {$ne: 2}}", "{a: [1]}", -1},
        {"{$and: [{$or: [{a: 2}]}]}", "{a: [1, 2]}", 1},
        {"{'a.b': {$elemMatch: {$gt: 1}}}", "{a: [{b: [0]}, {b: [0, 2]}]}", 1},
        {"{a: {~type: 'string'}}", "{a: [1, 'x']}", 1},
        {"{a: {$size: 2}}", "{a: [1, 2]}", -1},
    };
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct match_result r = {.array_index = 99};
        ck_assert_msg(match_doc(must_parse(a, rows[i].filter), J(rows[i].doc), &r), "%s", rows[i].filter);
        ck_assert_msg(r.array_index == rows[i].want, "%s on %s: %d", rows[i].filter, rows[i].doc, r.array_index);
    }
    struct match_result r = {.array_index = 99};
    ck_assert(!match_doc(must_parse(a, "{a: 2, b: 1}"), J("{a: [1, 2]}"), &r));
    ck_assert_int_eq(r.array_index, -1);
    arena_free(a);
}
END_TEST

START_TEST(conditions_on_bare_values)
{
    static const struct row rows[] = {
        /* cond and value are the field v */
        {"{v: 5}", "{v: 5}", true},
        {"{v: 5}", "{v: 5.0}", true},
        {"{v: 5}", "{v: [5]}", false}, /* an equality is about the element itself */
        {"{v: [5]}", "{v: [5]}", true},
        {"{v: null}", "{v: null}", true},
        {"{v: null}", "{v: 0}", false},
        {"{v: {$gt: 3}}", "{v: 4}", true},
        {"{v: {$gt: 3}}", "{v: 2}", false},
        {"{v: {$gt: 3}}", "{v: [1, 4]}", true}, /* operators as on a field that holds the element */
        {"{v: {$in: [1, 2]}}", "{v: 2}", true},
        {"{v: {$ne: 1}}", "{v: 1}", false},
        {"{v: {$elemMatch: {$gt: 1}}}", "{v: [2]}", true},
        {"{v: {$regularExpression: {pattern: '^x', options: ''}}}", "{v: 'xy'}", true},
        {"{v: {$regularExpression: {pattern: '^x', options: ''}}}", "{v: 'yx'}", false},
        {"{v: {a: 1}}", "{v: {a: 1, b: 2}}", true}, /* a filter, not an equality */
        {"{v: {a: {$gt: 1}}}", "{v: {a: 2}}", true},
        {"{v: {a: 1}}", "{v: [1]}", false},
        {"{v: {}}", "{v: {a: 1}}", true},
        {"{v: {}}", "{v: 1}", false},
        {"{v: {$or: [{a: 1}]}}", "{v: {a: 1}}", false},
    };
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < OV_LEN(rows) - 1; i++) {
        struct match *m;
        struct err err;
        err_init(&err, a);
        ck_assert_msg(match_parse_value(a, bdoc_get(J(rows[i].filter), "v"), &m, &err) == 0, "%s: %s", rows[i].filter,
                      err.msg);
        bool got = match_value(m, bdoc_get(J(rows[i].doc), "v"));
        ck_assert_msg(got == rows[i].want, "%s on %s: %d", rows[i].filter, rows[i].doc, got);
    }
    struct match *m;
    struct err err;
    err_init(&err, a);
    ck_assert_int_eq(match_parse_value(a, bdoc_get(J(rows[OV_LEN(rows) - 1].filter), "v"), &m, &err), ERR_BAD_VALUE);
    ck_assert_str_eq(err.msg, "unknown operator: $or");
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, size);
    tcase_add_test(tc, all);
    tcase_add_test(tc, elem_match);
    tcase_add_test(tc, positional_index);
    tcase_add_test(tc, conditions_on_bare_values);
}
TEST_MAIN("match/array", add_tests)
