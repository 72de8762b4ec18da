/* $, $[], $[id] with arrayFilters; and $pull by query, which needs filters too. */
#include "tests/unit/update/harness.h"

struct row {
    const char *doc, *update, *filters; /* filters: {'0': …} */
    int32_t index;
    const char *want; /* NULL: nothing changes */
};

START_TEST(documents)
{
    static const struct row rows[] = {
        {"{a: [1, 2, 3]}", "{$set: {'a.$': 9}}", NULL, 1, "{a: [1, 9, 3]}"},
        {"{a: [{k: 1, v: 1}, {k: 2, v: 1}]}", "{$inc: {'a.$.v': 5}}", NULL, 1, "{a: [{k: 1, v: 1}, {k: 2, v: 6}]}"},
        {"{a: [1, 2]}", "{$set: {'a.$': 1, b: 1}}", NULL, 0, "{a: [1, 2], b: 1}"},
        {"{a: [1, 2]}", "{$unset: {'a.$': 1}}", NULL, 0, "{a: [null, 2]}"},
        {"{a: [1, 2, 3]}", "{$inc: {'a.$[]': 1}}", NULL, -1, "{a: [2, 3, 4]}"},
        {"{a: []}", "{$inc: {'a.$[]': 1}}", NULL, -1, NULL},
        {"{a: [{b: 1}, {}]}", "{$inc: {'a.$[].b': 1}}", NULL, -1, "{a: [{b: 2}, {b: 1}]}"},
        {"{a: [[1, 2], [3]]}", "{$mul: {'a.$[].$[]': 10}}", NULL, -1, "{a: [[10, 20], [30]]}"},
        {"{a: [1, 5, 9]}", "{$set: {'a.$[x]': 0}}", "{'0': {x: {$gt: 4}}}", -1, "{a: [1, 0, 0]}"},
        {"{a: [1, 5, 9]}", "{$set: {'a.$[x]': 0}}", "{'0': {x: {$gt: 40}}}", -1, NULL},
        {"{a: [{b: 1, c: 1}, {b: 2, c: 1}]}", "{$inc: {'a.$[e].c': 5}}", "{'0': {'e.b': 2}}", -1,
         "{a: [{b: 1, c: 1}, {b: 2, c: 6}]}"},
        {"{a: [1, 5, 9]}", "{$set: {'a.$[x]': 0}}", "{'0': {$or: [{x: 1}, {x: 9}]}}", -1, "{a: [0, 5, 0]}"},
        {"{a: [1, 9], b: [1, 9]}", "{$set: {'a.$[x]': 0, 'b.$[y]': 0}}", "{'0': {x: 1}, '1': {y: 9}}", -1,
         "{a: [0, 9], b: [1, 0]}"},
        {"{a: [{b: [1, 2]}, {b: [2]}]}", "{$set: {'a.$[].b.$[x]': 0}}", "{'0': {x: 2}}", -1,
         "{a: [{b: [1, 0]}, {b: [0]}]}"},
        {"{a: [{b: 1}, {b: 2}]}", "{$set: {'a.$[x].b': 0, 'a.$[y].c': 3}}", "{'0': {'x.b': 1}, '1': {'y.b': 2}}", -1,
         "{a: [{b: 0}, {b: 2, c: 3}]}"},
        {"{a: [0,1,2,3,4,5,6,7,8,9,10,11]}", "{$inc: {'a.$[]': 1}}", NULL, -1, "{a: [1,2,3,4,5,6,7,8,9,10,11,12]}"},
        {"{a: [1, 5, 9]}", "{$pull: {a: {$gt: 4}}}", NULL, -1, "{a: [1]}"},
        {"{a: [1, 5, 9]}", "{$pull: {a: {$gt: 40}}}", NULL, -1, NULL},
        {"{a: [{x: 1, y: 2}, {x: 2}, 1]}", "{$pull: {a: {x: 1}}}", NULL, -1, "{a: [{x: 2}, 1]}"},
        {"{a: [{x: 1, y: 2}, {x: 2}]}", "{$pull: {a: {x: {$gte: 2}}}}", NULL, -1, "{a: [{x: 1, y: 2}]}"},
        {"{a: ['x', 'y']}", "{$pull: {a: {$in: ['x', 'z']}}}", NULL, -1, "{a: ['y']}"},
        {"{a: ['xa', 'y', 'xb']}", "{$pull: {a: {'$regularExpression': {pattern: '^x', options: ''}}}}", NULL, -1,
         "{a: ['y']}"},
        {"{a: [1, 2, 3]}", "{$pull: {a: {$ne: 2}}}", NULL, -1, "{a: [2]}"},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        const uint8_t *doc = J(rows[i].doc);
        struct bval filters = rows[i].filters ? val_of(J(rows[i].filters), BSON_TYPE_ARRAY) : BVAL_MISSING;
        struct run r;
        char what[512];
        snprintf(what, sizeof(what), "%s on %s", rows[i].update, rows[i].doc);
        run_update(&r, doc, bval_from_doc(J(rows[i].update)), filters, rows[i].index);
        check_doc(&r, rows[i].want ? J(rows[i].want) : doc, what);
        ck_assert_msg(r.effect.changed == (rows[i].want != NULL && strcmp(rows[i].want, rows[i].doc) != 0), "%s", what);
        check_edits(&r, doc, what);
        run_free(&r);
    }
}
END_TEST

START_TEST(errors)
{
    static const struct {
        const char *doc, *update, *filters;
        int code;
        const char *msg;
    } rows[] = {
        {"{_id: 1}", "{$set: {'a.$[]': 1}}", NULL, 2,
         "The path 'a' must exist in the document in order to apply array updates."},
        {"{_id: 1, a: [{b: [1]}, {}]}", "{$set: {'a.$[].b.$[]': 1}}", NULL, 2,
         "The path 'a.1.b' must exist in the document in order to apply array updates."},
        {"{_id: 1, a: {b: 1}}", "{$set: {'a.b.$[]': 1}}", NULL, 2,
         "Cannot apply array updates to non-array element b: 1"},
        {"{a: [1]}", "{$set: {'a.$[y]': 1}}", "{'0': {x: 1}}", 2,
         "No array filter found for identifier 'y' in path 'a.$[y]'"},
        {"{a: [1]}", "{$set: {'a.0': 1}}", "{'0': {x: 1}}", 9,
         "The array filter for identifier 'x' was not used in the update { $set: { a.0: 1 } }"},
        {"{a: [1]}", "{$set: {'a.$[x]': 1}}", "{'0': {x: 1}, '1': {x: 2}}", 9,
         "Found multiple array filters with the same top-level field name x"},
        {"{a: [1]}", "{$set: {'a.$[x]': 1}}", "{'0': {x: 1, y: 2}}", 9,
         "Error parsing array filter :: caused by :: Expected a single top-level field name, found 'x' and 'y'"},
        {"{a: [1]}", "{$set: {'a.$[x]': 1}}", "{'0': {}}", 9,
         "Cannot use an expression without a top-level field name in arrayFilters"},
        {"{a: [1]}", "{$set: {'a.$[X]': 1}}", "{'0': {X: 1}}", 2,
         "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning "
         "with a lowercase "
         "letter, found 'X'"},
        {"{a: [1]}", "{$set: {'a.$[x]': 1}}", "{'0': 5}", 14, "Array filter must be an object but was of type int"},
        {"{a: [1, 1]}", "{$set: {'a.$[x]': 1, 'a.$[y]': 2}}", "{'0': {x: 1}, '1': {y: 1}}", 40,
         "Updating the path 'a.0' would create a conflict at 'a.0'"},
        {"{a: [{b: 1}]}", "{$inc: {'a.$[].b.c': 2}}", NULL, 28, "Cannot create field 'c' in element {b: 1}"},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct bval filters = rows[i].filters ? val_of(J(rows[i].filters), BSON_TYPE_ARRAY) : BVAL_MISSING;
        struct run r;
        run_update(&r, J(rows[i].doc), bval_from_doc(J(rows[i].update)), filters, -1);
        ck_assert_msg(r.rc == rows[i].code && strcmp(r.err.msg, rows[i].msg) == 0, "%s: got %d \"%s\"", rows[i].update,
                      r.rc, r.rc ? r.err.msg : "");
        run_free(&r);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, documents);
    tcase_add_test(tc, errors);
}

TEST_MAIN("update/positional", add_tests)
