/* What updates are refused, in which words; what was in the buffer stays as it was. */
#include "tests/unit/update/harness.h"

struct row {
    const char *doc, *update;
    int code;
    const char *msg;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct run r;
        run_update(&r, J(rows[i].doc), bval_from_doc(J(rows[i].update)), BVAL_MISSING, -1);
        ck_assert_msg(r.rc == rows[i].code && strcmp(r.err.msg, rows[i].msg) == 0,
                      "%s on %s: got %d \"%s\", want %d \"%s\"", rows[i].update, rows[i].doc, r.rc,
                      r.rc ? r.err.msg : "", rows[i].code, rows[i].msg);
        run_free(&r);
    }
}

START_TEST(at_parse)
{
    static const struct row rows[] = {
        {"{}", "{$foo: {a: 1}}", 9,
         "Unknown modifier: $foo. Expected a valid update modifier or pipeline-style update specified as an array"},
        {"{}", "{$set: {a: 1}, b: 1}", 9,
         "Unknown modifier: b. Expected a valid update modifier or pipeline-style update specified as an array"},
        {"{}", "{$set: 1}", 9,
         "Modifiers operate on fields but we found type int instead. For example: {$mod: {<field>: ...}} not {$set: "
         "1}"},
        {"{}", "{$set: {a: 1}, $inc: {a: 1}}", 40, "Updating the path 'a' would create a conflict at 'a'"},
        {"{}", "{$set: {a: 1, 'a.b': 1}}", 40, "Updating the path 'a.b' would create a conflict at 'a'"},
        {"{}", "{$set: {'a.b': 1, a: 1}}", 40, "Updating the path 'a' would create a conflict at 'a'"},
        {"{}", "{$set: {'a.b.c': 1, 'a.b': 1, x: 1}, $inc: {x: 1}}", 40,
         "Updating the path 'a.b' would create a conflict at 'a.b'"},
        {"{}", "{$set: {'a.$[]': 1, 'a.0': 1}}", 40, "Updating the path 'a.0' would create a conflict at 'a'"},
        {"{}", "{$set: {'a..b': 1}}", 56, "The update path 'a..b' contains an empty field name, which is not allowed."},
        {"{}", "{$set: {'.a': 1}}", 56, "The update path '.a' contains an empty field name, which is not allowed."},
        {"{}", "{$set: {'a.': 1}}", 56, "The update path 'a.' contains an empty field name, which is not allowed."},
        {"{}", "{$set: {'': 1}}", 56, "An empty update path is not valid."},
        {"{}", "{$set: {'$': 1}}", 2, "Cannot have positional (i.e. '$') element in the first position in path '$'"},
        {"{}", "{$set: {'$[].a': 1}}", 2,
         "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '$[].a'"},
        {"{}", "{$set: {'a.$.b.$': 1}}", 2, "Too many positional (i.e. '$') elements found in path 'a.$.b.$'"},
        {"{}", "{$set: {'a.$[x]': 1}}", 2, "No array filter found for identifier 'x' in path 'a.$[x]'"},
        {"{}", "{$inc: {a: 'x'}}", 14, "Cannot increment with non-numeric argument: {a: \"x\"}"},
        {"{}", "{$mul: {a: 'x'}}", 14, "Cannot multiply with non-numeric argument: {a: \"x\"}"},
        {"{}", "{$pop: {a: 'x'}}", 9, "Expected a number in: a: \"x\""},
        {"{}", "{$pop: {a: 2}}", 9, "$pop expects 1 or -1, found: 2"},
        {"{}", "{$pop: {a: 0}}", 9, "$pop expects 1 or -1, found: 0"},
        {"{}", "{$pullAll: {a: 1}}", 2, "$pullAll requires an array argument but was given a int"},
        {"{}", "{$addToSet: {a: {$each: 1}}}", 14,
         "The argument to $each in $addToSet must be an array but it was of type int"},
        {"{}", "{$push: {a: {$each: 1}}}", 2,
         "The argument to $each in $push must be an array but it was of type: int"},
        {"{}", "{$push: {a: {$each: [], $foo: 1}}}", 2, "Unrecognized clause in $push: $foo"},
        {"{}", "{$push: {a: {$each: [], $slice: 'x'}}}", 2,
         "The value for $slice must be an integer value but was given type: string"},
        {"{}", "{$push: {a: {$each: [], $position: 'x'}}}", 2,
         "The value for $position must be an integer value, not of type: string"},
        {"{}", "{$push: {a: {$each: [], $sort: 2}}}", 2, "The $sort element value must be either 1 or -1"},
        {"{}", "{$push: {a: {$each: [], $sort: 'x'}}}", 2,
         "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields"},
        {"{}", "{$push: {a: {$each: [], $sort: {}}}}", 2,
         "The $sort pattern is empty when it should be a set of fields."},
        {"{}", "{$push: {a: {$each: [], $sort: {b: 3}}}}", 2, "The $sort element value must be either 1 or -1"},
        {"{}", "{$push: {a: {$each: [], $sort: {'b..c': 1}}}}", 2,
         "The $sort field is a dotted field but has an empty part: b..c"},
        {"{}", "{$bit: {a: 1}}", 2,
         "The $bit modifier is not compatible with a int. You must pass in an embedded document: {$bit: {field: "
         "{and/or/xor: #}}"},
        {"{}", "{$bit: {a: {}}}", 2,
         "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}"},
        {"{}", "{$bit: {a: {not: 1}}}", 2,
         "The $bit modifier only supports 'and', 'or', and 'xor', not 'not' which is an unknown operator: {not: 1}"},
        {"{}", "{$bit: {a: {or: 1.5}}}", 2,
         "The $bit modifier field must be an Integer(32/64 bit); a 'double' is not supported here: {or: 1.5}"},
        {"{}", "{$currentDate: {a: 1}}", 2,
         "int is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: "
         "'timestamp/date'})."},
        {"{}", "{$currentDate: {a: {~type: 'x'}}}", 2,
         "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}"},
        {"{}", "{$currentDate: {a: {foo: 1}}}", 2, "Unrecognized $currentDate option: foo"},
        {"{}", "{$rename: {a: 1}}", 2, "The 'to' field for $rename must be a string: a: 1"},
        {"{}", "{$rename: {a: 'a'}}", 2, "The source and target field for $rename must differ: a: \"a\""},
        {"{}", "{$rename: {a: 'a.b'}}", 2,
         "The source and target field for $rename must not be on the same path: a: \"a.b\""},
        {"{}", "{$rename: {'a.b': 'a'}}", 2,
         "The source and target field for $rename must not be on the same path: a.b: \"a\""},
        {"{}", "{$rename: {a: ''}}", 56, "An empty update path is not valid."},
        {"{}", "{$rename: {'a.$': 'b'}}", 2, "The source field for $rename may not be dynamic: a.$"},
        {"{}", "{$rename: {a: 'b.$[]'}}", 2, "The destination field for $rename may not be dynamic: b.$[]"},
        {"{}", "{$rename: {a: 'c', b: 'c'}}", 40, "Updating the path 'c' would create a conflict at 'c'"},
        {"{}", "{$rename: {a: 'c'}, $set: {a: 1}}", 40, "Updating the path 'a' would create a conflict at 'a'"},
    };
    check_rows(rows, OV_LEN(rows));
}
END_TEST

START_TEST(when_applied)
{
    static const struct row rows[] = {
        {"{_id: 1, a: 1}", "{$set: {'a.b': 1}}", 28, "Cannot create field 'b' in element {a: 1}"},
        {"{_id: 1, a: null}", "{$set: {'a.b.c': 1}}", 28, "Cannot create field 'b' in element {a: null}"},
        {"{_id: 1, a: {b: 'x'}}", "{$inc: {'a.b.c': 1}}", 28, "Cannot create field 'c' in element {b: \"x\"}"},
        {"{_id: 1, a: 1}", "{$unset: {'a.b': 1}, $set: {'a.c': 1}}", 28, "Cannot create field 'c' in element {a: 1}"},
        {"{_id: 1, a: [1]}", "{$set: {'a.1500002': 1}}", 34, "can't backfill more than 1500000 elements"},
        {"{_id: 1, a: [1]}", "{$set: {'a.99999999999999999999': 1}}", 34, "can't backfill more than 1500000 elements"},
        {"{_id: 1, a: 'x'}", "{$inc: {a: 1}}", 14,
         "Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 'a' of non-numeric type string"},
        {"{_id: 'k', a: {b: null}}", "{$mul: {'a.b': 1}}", 14,
         "Cannot apply $mul to a value of non-numeric type. {_id: \"k\"} has the field 'b' of non-numeric type null"},
        {"{_id: 1, a: 'x'}", "{$bit: {a: {or: 1}}}", 2,
         "Cannot apply $bit to a value of non-integral type._id: 1 has the field a of non-integer type string"},
        {"{_id: 1, a: 1}", "{$push: {a: 1}}", 2,
         "The field 'a' must be an array but is of type int in document {_id: 1}"},
        {"{_id: 1, a: {b: 1}}", "{$push: {'a.b': 1}}", 2,
         "The field 'a.b' must be an array but is of type int in document {_id: 1}"},
        {"{_id: 1, a: 1}", "{$addToSet: {a: 1}}", 2,
         "Cannot apply $addToSet to non-array field. Field named 'a' has non-array type int"},
        {"{_id: 1, a: 1}", "{$pull: {a: 1}}", 2, "Cannot apply $pull to a non-array value"},
        {"{_id: 1, a: 1}", "{$pullAll: {a: [1]}}", 2, "Cannot apply $pull to a non-array value"},
        {"{_id: 1, a: {b: 1}}", "{$pop: {'a.b': 1}}", 14, "Path 'a.b' contains an element of non-array type 'int'"},
        {"{_id: 1, a: 1}", "{$set: {'a.$': 1}}", 2,
         "The positional operator did not find the match needed from the query."},
        {"{_id: 1}", "{$set: {_id: 2}}", 66,
         "Performing an update on the path '_id' would modify the immutable field '_id'"},
        {"{_id: 1}", "{$unset: {_id: 2}}", 66,
         "Performing an update on the path '_id' would modify the immutable field '_id'"},
        {"{_id: 1}", "{$rename: {_id: 'x'}}", 66,
         "Performing an update on the path '_id' would modify the immutable field '_id'"},
        {"{_id: {x: 1}}", "{$inc: {'_id.x': 2}}", 66,
         "Performing an update on the path '_id.x' would modify the immutable field '_id'"},
        {"{_id: {x: 1}}", "{$set: {'_id.y': 2}}", 66,
         "Performing an update on the path '_id.y' would modify the immutable field '_id'"},
        {"{_id: 1}", "{$set: {$a: 2}}", 52,
         "The dollar ($) prefixed field '$a' in '$a' is not allowed in the context of an update's replacement "
         "document. Consider using an "
         "aggregation pipeline with $replaceWith."},
        {"{_id: 1}", "{$inc: {'$a.b': 2}}", 52,
         "The dollar ($) prefixed field '$a' in '$a' is not allowed in the context of an update's replacement "
         "document. Consider using an "
         "aggregation pipeline with $replaceWith."},
        {"{_id: 1, a: 1}", "{$pop: {'a.b': 1}}", 28,
         "Cannot use the part (b) of (a.b) to traverse the element ({a: 1})"},
        {"{_id: 1, a: [ 1 ]}", "{$pull: {'a.b.c': 1}}", 28,
         "Cannot use the part (b) of (a.b.c) to traverse the element ({a: [ 1 ]})"},
        {"{_id: 1, a: 'x'}", "{$pullAll: {'a.0': [1]}}", 28,
         "Cannot use the part (0) of (a.0) to traverse the element ({a: \"x\"})"},
        {"{_id: 1, a: [{b: 1}]}", "{$rename: {'a.0.b': 'c'}}", 2,
         "The source field cannot be an array element, 'a.0.b' in doc with _id: 1 has an array field called 'a'"},
        {"{_id: 1, a: 1, b: [1]}", "{$rename: {a: 'b.0'}}", 2,
         "The destination field cannot be an array element, 'b.0' in doc with _id: 1 has an array field called 'b'"},
        {"{_id: 1, a: [{b: 1}]}", "{$rename: {'a.b': 'c'}}", 28,
         "cannot use the part (a of a.b) to traverse the element ({a: [ { b: 1 } ]})"},
        {"{_id: 1, a: 1, b: 2}", "{$rename: {a: 'b.c'}}", 28, "Cannot create field 'c' in element {b: 2}"},
        {"{_id: 1, a: 1}", "{$rename: {'a.b': 'c'}}", 28,
         "cannot use the part (a of a.b) to traverse the element ({a: 1})"},
        {"{_id: 1, a: {'$numberLong': '9223372036854775807'}}", "{$inc: {a: 1}}", 2,
         "Failed to apply $inc operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}"},
        {"{_id: 1, a: {'$numberLong': '9223372036854775807'}}", "{$mul: {a: 2}}", 2,
         "Failed to apply $mul operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}"},
        /* replacements */
        {"{_id: 1, a: 1}", "{_id: 2, a: 1}", 66,
         "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2"},
        {"{_id: 1, a: 1}", "{b: 1, $set: {a: 1}}", 52,
         "The dollar ($) prefixed field '$set' in '$set' is not allowed in the context of an update's replacement "
         "document. Consider using "
         "an aggregation pipeline with $replaceWith."},
    };
    check_rows(rows, OV_LEN(rows));
}
END_TEST

static int parse(struct bval u, struct bval filters, bool multi, char msg[256])
{
    struct arena *a = arena_new(0);
    struct update *up;
    struct err err;
    err_init(&err, a);
    int rc = update_parse(a, u, filters, multi, &up, &err);
    snprintf(msg, 256, "%s", rc ? err.msg : "");
    ck_assert(rc == 0 || up == NULL);
    arena_free(a);
    return rc;
}

START_TEST(other_shapes)
{
    char msg[256];
    uint8_t raw[8];
    ck_assert_int_eq(parse(bval_from_doc(J("{a: 1}")), BVAL_MISSING, true, msg), 9);
    ck_assert_str_eq(msg, "multi update is not supported for replacement-style update");
    ck_assert_int_eq(parse(bval_from_doc(J("{}")), BVAL_MISSING, true, msg), 9);
    ck_assert_int_eq(parse(bval_from_doc(J("{$set: {a: 1}}")), BVAL_MISSING, true, msg), 0);
    ck_assert_int_eq(parse(bval_from_i32(1, raw), BVAL_MISSING, false, msg), 9);
    ck_assert_str_eq(msg, "Update argument must be either an object or an array");
    ck_assert_int_eq(parse(val_of(J("{'0': {$set: {a: 1}}}"), BSON_TYPE_ARRAY), BVAL_MISSING, false, msg),
                     ERR_NOT_IMPLEMENTED);
}
END_TEST

/* {a: {a: {… n levels}}} */
static void nested(struct buf *b, int levels)
{
    size_t start[512];
    for (int i = 0; i < levels; i++)
        start[i] = i ? bw_doc(b, "a") : bw_begin(b);
    bw_i32(b, "x", 1);
    while (levels--)
        bw_end(b, start[levels]);
}

START_TEST(levels_and_sizes_are_limited)
{
    struct buf deep = {0}, u = {0}, path = {0};
    struct run r;

    nested(&deep, 98); /* $push puts an array around them */
    size_t start = bw_begin(&u), op = bw_doc(&u, "$push");
    bw_rawdoc(&u, "v", deep.p);
    bw_end(&u, op);
    bw_end(&u, start);
    run_update(&r, J("{_id: 1}"), bval_from_doc(u.p), BVAL_MISSING, -1);
    ck_assert_int_eq(r.rc, 0);
    run_free(&r);

    u.len = deep.len = 0;
    nested(&deep, 99);
    start = bw_begin(&u), op = bw_doc(&u, "$push");
    bw_rawdoc(&u, "v", deep.p);
    bw_end(&u, op);
    bw_end(&u, start);
    run_update(&r, J("{_id: 1}"), bval_from_doc(u.p), BVAL_MISSING, -1);
    ck_assert_int_eq(r.rc, ERR_OVERFLOW);
    ck_assert_str_eq(r.err.msg, "Document exceeds maximum nesting depth of 100");
    run_free(&r);

    for (int i = 0; i < 5000; i++)
        buf_printf(&path, "a.");
    buf_append(&path, "a", 2);
    u.len = 0;
    start = bw_begin(&u), op = bw_doc(&u, "$set");
    bw_i32(&u, (char *)path.p, 1);
    bw_end(&u, op);
    bw_end(&u, start);
    run_update(&r, J("{_id: 1}"), bval_from_doc(u.p), BVAL_MISSING, -1);
    ck_assert_int_eq(r.rc, ERR_OVERFLOW);
    run_free(&r);

    char *text = malloc(9 << 20), *more = malloc(9 << 20);
    memset(text, 'x', 9 << 20);
    memset(more, 'y', 9 << 20);
    deep.len = u.len = 0;
    start = bw_begin(&deep);
    bw_i32(&deep, "_id", 1);
    bw_strn(&deep, "a", text, 9 << 20);
    bw_end(&deep, start);
    start = bw_begin(&u), op = bw_doc(&u, "$set");
    bw_strn(&u, "b", more, 9 << 20);
    bw_end(&u, op);
    bw_end(&u, start);
    run_update(&r, deep.p, bval_from_doc(u.p), BVAL_MISSING, -1);
    ck_assert_int_eq(r.rc, 17419);
    ck_assert_str_eq(r.err.msg, "Resulting document after update is larger than 16777216");
    run_free(&r);
    /* padding can make it too large as well, and must stop early */
    run_update(
        &r, J("{_id: 1, a: [], b: []}"),
        bval_from_doc(J("{$set: {'a.1000000': 1, 'a.2400000': 1, 'a.3800000': 1, 'b.1400000': 1, 'b.2000000': 1}}")),
        BVAL_MISSING, -1);
    ck_assert_int_eq(r.rc, 17419);
    run_free(&r);
    free(text);
    free(more);
    buf_free(&deep);
    buf_free(&u);
    buf_free(&path);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, at_parse);
    tcase_add_test(tc, when_applied);
    tcase_add_test(tc, other_shapes);
    tcase_add_test(tc, levels_and_sizes_are_limited);
}

TEST_MAIN("update/errors", add_tests)
