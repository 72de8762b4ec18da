/* Equality, comparison, $in, $exists: what matches what. */
#include "tests/unit/match/table.h"

START_TEST(equality)
{
    CHECK_ROWS({"{}", "{a: 1}", true}, {"{a: 1}", "{a: 1}", true}, {"{a: 1}", "{a: 2}", false},
               {"{a: 1}", "{a: 1.0}", true}, {"{a: 1}", "{a: {$numberLong: '1'}}", true},
               {"{a: 1}", "{a: {$numberDecimal: '1.0'}}", true}, {"{a: 1}", "{a: '1'}", false},
               {"{a: 1}", "{a: true}", false}, {"{a: 1}", "{b: 1}", false}, {"{a: 'x'}", "{a: 'x'}", true},
               {"{a: 'x'}", "{a: 'X'}", false}, {"{a: 'x'}", "{a: 'xy'}", false}, {"{a: {$eq: 1}}", "{a: 1}", true},
               {"{a: true}", "{a: true}", true}, {"{a: 1, b: 2}", "{a: 1, b: 2}", true},
               {"{a: 1, b: 2}", "{a: 1, b: 3}", false}, {"{a: {b: 1, c: 2}}", "{a: {b: 1, c: 2}}", true},
               {"{a: {b: 1, c: 2}}", "{a: {c: 2, b: 1}}", false}, {"{a: {b: 1}}", "{a: {b: 1, c: 2}}", false},
               {"{a: {}}", "{a: {}}", true}, {"{a: {}}", "{a: {b: 1}}", false},
               {"{a: {$oid: '0123456789abcdef01234567'}}", "{a: {$oid: '0123456789abcdef01234567'}}", true},
               {"{a: {$oid: '0123456789abcdef01234567'}}", "{a: {$oid: '0123456789abcdef01234568'}}", false});
}
END_TEST

START_TEST(equality_and_arrays)
{
    CHECK_ROWS({"{a: 2}", "{a: [1, 2, 3]}", true}, {"{a: 4}", "{a: [1, 2, 3]}", false},
               {"{a: [1, 2]}", "{a: [1, 2]}", true}, {"{a: [1, 2]}", "{a: [2, 1]}", false},
               {"{a: [1, 2]}", "{a: [1, 2, 3]}", false}, {"{a: [1, 2]}", "{a: [[1, 2], 3]}", true},
               {"{a: 1}", "{a: [[1]]}", false}, {"{a: []}", "{a: []}", true}, {"{a: []}", "{a: [[]]}", true},
               {"{a: []}", "{a: [1]}", false}, {"{'a.0': 1}", "{a: [1, 2]}", true},
               {"{'a.1': 1}", "{a: [1, 2]}", false}, {"{'a.b': 1}", "{a: {b: 1}}", true},
               {"{'a.b': 1}", "{a: [{b: 1}]}", true}, {"{'a.b': 2}", "{a: [{b: 1}, {b: 2}]}", true},
               {"{'a.b': 2}", "{a: [{b: [1, 2]}]}", true}, {"{'a.b': 1}", "{a: [[{b: 1}]]}", false},
               {"{'a.0.b': 1}", "{a: [{b: 1}, {b: 2}]}", true}, {"{'a.1.b': 1}", "{a: [{b: 1}, {b: 2}]}", false},
               {"{'a.0': 1}", "{a: {'0': 1}}", true}, {"{'a.0': 1}", "{a: [{'0': 1}]}", true},
               {"{'a.0.b': 1}", "{a: [[{b: 1}]]}", true}, {"{a: {b: 1}}", "{a: [{b: 1}, {b: 2}]}", true},
               {"{'a.b': 1}", "{a: 1}", false});
}
END_TEST

START_TEST(null_and_missing)
{
    CHECK_ROWS({"{a: null}", "{a: null}", true}, {"{a: null}", "{b: 1}", true}, {"{a: null}", "{}", true},
               {"{a: null}", "{a: 0}", false}, {"{a: null}", "{a: []}", false}, {"{a: null}", "{a: [null]}", true},
               {"{a: null}", "{a: [1]}", false}, {"{a: null}", "{a: {$undefined: true}}", false},
               {"{'a.b': null}", "{a: 1}", true}, {"{'a.b': null}", "{a: {}}", true}, {"{'a.b': null}", "{}", true},
               {"{'a.b': null}", "{a: []}", false}, {"{'a.b': null}", "{a: [1]}", false},
               {"{'a.b': null}", "{a: [{b: 1}, {c: 1}]}", true}, {"{'a.b': null}", "{a: [{b: 1}, 5]}", false},
               {"{a: {$ne: null}}", "{a: 1}", true}, {"{a: {$ne: null}}", "{}", false},
               {"{a: {$gte: null}}", "{}", true}, {"{a: {$lte: null}}", "{a: null}", true},
               {"{a: {$gt: null}}", "{a: null}", false}, {"{a: {$lt: null}}", "{}", false},
               {"{a: {$gte: null}}", "{a: 1}", false}, {"{a: {$in: [null, 5]}}", "{}", true},
               {"{a: {$in: [null, 5]}}", "{a: {$undefined: true}}", false}, {"{a: {$nin: [null, 5]}}", "{}", false},
               {"{a: {$nin: [null, 5]}}", "{a: 6}", true}, {"{'a.b': {$exists: false}}", "{a: []}", true},
               {"{'a.b': {$exists: true}}", "{a: [{b: 1}, {}]}", true},
               {"{'a.b': {$exists: false}}", "{a: [{b: 1}, {}]}", false});
}
END_TEST

START_TEST(order_within_a_type_class)
{
    CHECK_ROWS({"{a: {$gt: 1}}", "{a: 2}", true}, {"{a: {$gt: 1}}", "{a: 1}", false},
               {"{a: {$gte: 1}}", "{a: 1.0}", true}, {"{a: {$lt: 1}}", "{a: 0.5}", true},
               {"{a: {$lte: 1}}", "{a: 1}", true}, {"{a: {$lt: 1}}", "{a: 'x'}", false},
               {"{a: {$gt: 1}}", "{a: 'x'}", false}, {"{a: {$gt: 1}}", "{}", false}, {"{a: {$lt: 1}}", "{}", false},
               {"{a: {$gt: 'a'}}", "{a: 'b'}", true}, {"{a: {$gt: 1, $lt: 3}}", "{a: 2}", true},
               {"{a: {$gt: 1, $lt: 3}}", "{a: 3}", false}, {"{a: {$gt: 2, $lt: 2}}", "{a: [1, 3]}", true},
               {"{a: {$gt: 5}}", "{a: [1, 6]}", true}, {"{a: {$gt: [1, 2]}}", "{a: [1, 3]}", true},
               {"{a: {$gt: [1, 2]}}", "{a: [1, 1]}", false}, {"{a: {$gt: [1]}}", "{a: 5}", false},
               {"{a: {$lt: true}}", "{a: false}", true}, {"{a: {$lt: true}}", "{a: 0}", false},
               {"{a: {$lt: {b: 2}}}", "{a: {b: 1}}", true}, {"{a: {$lte: {$date: 5}}}", "{a: {$date: 5}}", true},
               {"{a: {$lte: {$date: 5}}}", "{a: {$timestamp: {t: 0, i: 1}}}", false});
}
END_TEST

START_TEST(nan_and_the_ends)
{
    CHECK_ROWS({"{a: {$numberDouble: 'NaN'}}", "{a: {$numberDouble: 'NaN'}}", true},
               {"{a: {$numberDouble: 'NaN'}}", "{a: {$numberDecimal: 'NaN'}}", true},
               {"{a: {$numberDouble: 'NaN'}}", "{a: 1}", false},
               {"{a: {$lt: 1}}", "{a: {$numberDouble: 'NaN'}}", false},
               {"{a: {$lte: 1}}", "{a: {$numberDouble: 'NaN'}}", false},
               {"{a: {$gte: 1}}", "{a: {$numberDouble: 'NaN'}}", false},
               {"{a: {$gte: {$numberDouble: 'NaN'}}}", "{a: {$numberDouble: 'NaN'}}", true},
               {"{a: {$lte: {$numberDouble: 'NaN'}}}", "{a: {$numberDouble: 'NaN'}}", true},
               {"{a: {$gt: {$numberDouble: 'NaN'}}}", "{a: 5}", false},
               {"{a: {$in: [{$numberDouble: 'NaN'}, 3]}}", "{a: {$numberDouble: 'NaN'}}", true},
               {"{a: {$gt: {$minKey: 1}}}", "{a: 1}", true}, {"{a: {$gt: {$minKey: 1}}}", "{a: 'x'}", true},
               {"{a: {$gt: {$minKey: 1}}}", "{}", true}, {"{a: {$gt: {$minKey: 1}}}", "{a: {$minKey: 1}}", false},
               {"{a: {$gte: {$minKey: 1}}}", "{a: {$minKey: 1}}", true}, {"{a: {$lt: {$maxKey: 1}}}", "{a: {}}", true},
               {"{a: {$lt: {$maxKey: 1}}}", "{a: {$maxKey: 1}}", false}, {"{a: {$gt: {$maxKey: 1}}}", "{a: 1}", false},
               {"{a: {$lt: {$minKey: 1}}}", "{a: 1}", false}, {"{a: {$minKey: 1}}", "{a: {$minKey: 1}}", true},
               {"{a: {$minKey: 1}}", "{a: 1}", false});
}
END_TEST

START_TEST(in_and_nin)
{
    CHECK_ROWS({"{a: {$in: [1, 2]}}", "{a: 2}", true}, {"{a: {$in: [1, 2]}}", "{a: 3}", false},
               {"{a: {$in: [1, 2]}}", "{a: 2.0}", true}, {"{a: {$in: []}}", "{a: 1}", false},
               {"{a: {$in: []}}", "{}", false}, {"{a: {$nin: []}}", "{}", true},
               {"{a: {$in: [1, 'x', true]}}", "{a: 'x'}", true}, {"{a: {$in: [9, 7, 5, 3, 1, 3]}}", "{a: 7}", true},
               {"{a: {$in: [9, 7, 5, 3, 1]}}", "{a: 4}", false}, {"{a: {$in: [1, 2]}}", "{a: [5, 1]}", true},
               {"{a: {$in: [[1, 2], 9]}}", "{a: [1, 2]}", true}, {"{a: {$in: [[1, 2], 9]}}", "{a: [1]}", false},
               {"{a: {$nin: [1, 2]}}", "{a: [5, 1]}", false}, {"{a: {$nin: [1, 2]}}", "{}", true},
               {"{a: {$nin: [1, 2]}}", "{a: 3}", true}, {"{a: {$in: [{b: 1}, {c: 1}]}}", "{a: {b: 1}}", true},
               {"{a: {$in: [3]}}", "{a: [3]}", true},
               {"{a: {$in: [{$regularExpression: {pattern: '^x', options: ''}}, 5]}}", "{a: 'xy'}", true},
               {"{a: {$in: [{$regularExpression: {pattern: '^x', options: ''}}, 5]}}", "{a: 5}", true},
               {"{a: {$in: [{$regularExpression: {pattern: '^x', options: ''}}, 5]}}", "{a: 'y'}", false},
               {"{a: {$nin: [{$regularExpression: {pattern: '^x', options: ''}}, 5]}}", "{a: 'xy'}", false},
               {"{a: {$nin: [{$regularExpression: {pattern: '^x', options: ''}}, 5]}}", "{a: 'y'}", true},
               {"{a: {$in: [{$ref: 'c', $id: 1}]}}", "{a: {$ref: 'c', $id: 1}}", true});
}
END_TEST

START_TEST(negations_are_of_the_whole_path)
{
    CHECK_ROWS({"{a: {$ne: 1}}", "{a: 2}", true}, {"{a: {$ne: 1}}", "{a: [1, 2]}", false},
               {"{a: {$ne: 1}}", "{}", true}, {"{'a.b': {$ne: 1}}", "{a: [{b: 1}, {b: 2}]}", false},
               {"{a: {$not: {$gt: 5}}}", "{a: 3}", true}, {"{a: {$not: {$gt: 5}}}", "{}", true},
               {"{a: {$not: {$gt: 5}}}", "{a: 'x'}", true}, {"{a: {$not: {$gt: 5}}}", "{a: [1, 6]}", false},
               {"{a: {$not: {$gt: 1, $lt: 5}}}", "{a: 7}", true}, {"{a: {$not: {$gt: 1, $lt: 5}}}", "{a: 3}", false},
               {"{a: {$not: {$not: {$eq: 1}}}}", "{a: 1}", true},
               {"{a: {$not: {$regularExpression: {pattern: 'x', options: ''}}}}", "{a: 'y'}", true},
               {"{a: {$not: {$regularExpression: {pattern: 'x', options: ''}}}}", "{a: 'x'}", false});
}
END_TEST

START_TEST(exists)
{
    CHECK_ROWS({"{a: {$exists: true}}", "{a: null}", true}, {"{a: {$exists: true}}", "{}", false},
               {"{a: {$exists: false}}", "{}", true}, {"{a: {$exists: 0}}", "{a: 1}", false},
               {"{a: {$exists: 1}}", "{a: []}", true}, {"{a: {$exists: null}}", "{}", true},
               {"{a: {$exists: 'no'}}", "{a: 1}", true}, {"{'a.0': {$exists: true}}", "{a: [1]}", true},
               {"{'a.1': {$exists: true}}", "{a: [1]}", false});
}
END_TEST

START_TEST(words_of_the_errors)
{
    CHECK_BAD(
        {"{a: {$foo: 1}}", 2, "unknown operator: $foo"}, {"{a: {$gt: 1, b: 2}}", 2, "unknown operator: b"},
        {"{$foo: 1}", 2,
         "unknown top level operator: $foo. If you have a field name that starts with a '$' symbol, consider using "
         "$getField or $setField."},
        {"{a: {$in: 1}}", 2, "$in needs an array"}, {"{a: {$nin: {}}}", 2, "$nin needs an array"},
        {"{a: {$in: [{$gt: 1}]}}", 2, "cannot nest $ under $in"},
        {"{a: {$in: [{$undefined: true}]}}", 2, "InMatchExpression equality cannot be undefined"},
        {"{a: {$undefined: true}}", 2, "cannot compare to undefined"},
        {"{a: {$ne: {$undefined: true}}}", 2, "cannot compare to undefined"},
        {"{a: {$gt: {$regularExpression: {pattern: 'x', options: ''}}}}", 2,
         "Can't have RegEx as arg to predicate over field 'a'."},
        {"{a: {$ne: {$regularExpression: {pattern: 'x', options: ''}}}}", 2, "Can't have regex as arg to $ne."},
        {"{a: {$not: 1}}", 2, "$not needs a regex or a document"}, {"{a: {$not: {}}}", 2, "$not cannot be empty"},
        {"{a: {$not: {b: 1}}}", 2, "unknown operator: b"},
        {"{a: {$where: '1'}}", 2, "$where cannot be applied to a field"},
        {"{$where: '1'}", 238, "the query operator $where is not implemented"},
        {"{a: {$near: [1, 2]}}", 238, "the query operator $near is not implemented"});
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, equality);
    tcase_add_test(tc, equality_and_arrays);
    tcase_add_test(tc, null_and_missing);
    tcase_add_test(tc, order_within_a_type_class);
    tcase_add_test(tc, nan_and_the_ends);
    tcase_add_test(tc, in_and_nin);
    tcase_add_test(tc, negations_are_of_the_whole_path);
    tcase_add_test(tc, exists);
    tcase_add_test(tc, words_of_the_errors);
}
TEST_MAIN("match/compare", add_tests)
