/* Projections: specification, document, result. */
#include "server/query/project/project.h"

#include "tests/lib/json.h"
#include "tests/lib/test.h"

#include <stdio.h>

/* In the language of find; of a filter that matches everything. */
static int parse(struct arena *a, const uint8_t *spec, struct project **p, struct err *err)
{
    struct match *all;
    err_init(err, a);
    ck_assert_int_eq(match_parse(a, J("{}"), &all, err), 0);
    return project_parse_find(a, spec, all, p, err);
}

static const struct {
    const char *spec, *doc, *want;
} CASES[] = {
    /* inclusion */
    {"{a: 1}", "{_id: 1, a: 2, b: 3}", "{_id: 1, a: 2}"},
    {"{b: 1, a: true}", "{_id: 1, a: 2, b: 3, c: 4}", "{_id: 1, a: 2, b: 3}"}, /* the document's order */
    {"{a: 1}", "{b: 1}", "{}"},
    {"{a: 1}", "{}", "{}"},
    {"{a: 1, _id: 0}", "{_id: 1, a: 2, b: 3}", "{a: 2}"},
    {"{_id: 0, a: 1}", "{_id: 1, a: 2, b: 3}", "{a: 2}"},
    {"{_id: 1}", "{_id: 1, a: 2}", "{_id: 1}"},
    {"{a: 1}", "{a: 2, _id: 1}", "{a: 2, _id: 1}"},
    {"{'_id.x': 1}", "{_id: {x: 1, y: 2}, a: 2}", "{_id: {x: 1}}"},
    {"{a: {'$numberDecimal': '0.1'}}", "{a: 2, b: 3}", "{a: 2}"},
    /* dotted paths and arrays */
    {"{'a.b': 1}", "{a: {b: 1, c: 2}, d: 3}", "{a: {b: 1}}"},
    {"{'a.b': 1}", "{a: 5, d: 3}", "{}"},
    {"{'a.b': 1}", "{a: {c: 5}}", "{a: {}}"},
    {"{'a.b': 1}", "{a: [{b: 1, c: 2}, 5, {c: 3}, [{b: 4}, 6], null]}", "{a: [{b: 1}, {}, [{b: 4}]]}"},
    {"{'a.b': 1}", "{a: []}", "{a: []}"},
    {"{'a.b': 1}", "{a: [1, 2]}", "{a: []}"},
    {"{'a.b.c': 1, 'a.d': 1}", "{a: [{b: [{c: 1, x: 2}], d: 3, e: 4}]}", "{a: [{b: [{c: 1}], d: 3}]}"},
    {"{'a.0': 1}", "{a: [7, {'0': 8, x: 9}]}", "{a: [{'0': 8}]}"}, /* no index in projections */
    {"{a: {b: 1}}", "{a: {b: 1, c: 2}}", "{a: {b: 1}}"},
    {"{a: {b: 1, c: {d: 1}}, 'a.e': 1}", "{a: {b: 1, c: {d: 2, x: 3}, e: 4, f: 5}}", "{a: {b: 1, c: {d: 2}, e: 4}}"},
    {"{'a.b': {c: 1}}", "{a: {b: {c: 1, d: 2}}}", "{a: {b: {c: 1}}}"},
    /* exclusion */
    {"{a: 0}", "{_id: 1, a: 2, b: 3}", "{_id: 1, b: 3}"},
    {"{a: false, c: 0}", "{_id: 1, a: 2, b: 3, c: 4, d: 5}", "{_id: 1, b: 3, d: 5}"},
    {"{_id: 0}", "{_id: 1, a: 2}", "{a: 2}"},
    {"{a: 0, _id: 0}", "{_id: 1, a: 2, b: 3}", "{b: 3}"},
    {"{a: 0, _id: 1}", "{_id: 1, a: 2, b: 3}", "{_id: 1, b: 3}"},
    {"{_id: 1, a: 0}", "{_id: 1, a: 2, b: 3}", "{_id: 1, b: 3}"},
    {"{a: 0}", "{b: 3}", "{b: 3}"},
    {"{a: 0}", "{}", "{}"},
    {"{'a.b': 0}", "{x: 0, a: {b: 1, c: 2}, d: 3}", "{x: 0, a: {c: 2}, d: 3}"},
    {"{'a.b': 0}", "{a: 5, d: 3}", "{a: 5, d: 3}"},
    {"{'a.b': 0}", "{a: [{b: 1, c: 2}, 5, {b: 3}, [{b: 4, e: 1}, 6]], z: 1}",
     "{a: [{c: 2}, 5, {}, [{e: 1}, 6]], z: 1}"},
    {"{a: {b: 0, c: 0}}", "{a: {b: 1, c: 2, d: 3}}", "{a: {d: 3}}"},
    {"{'_id.x': 0}", "{_id: {x: 1, y: 2}, a: 2}", "{_id: {y: 2}, a: 2}"},
    /* more fields than a list is good for */
    {"{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, _id: 0}",
     "{_id: 1, k: 1, z: 2, a: 3, h: 4, i: 5, ij: 6}", "{k: 1, a: 3, h: 4, i: 5}"},
    {"{_id: 1, a: 0, b: 0, c: 0, d: 0, e: 0, f: 0, g: 0, h: 0, i: 0, j: 0, k: 0}",
     "{_id: 1, k: 1, z: 2, a: 3, h: 4, i: 5, ij: 6}", "{_id: 1, z: 2, ij: 6}"},
    /* any number or boolean is a flag */
    {"{a: {'$numberDouble': '1.0'}}", "{_id: 1, a: 2, b: 3}", "{_id: 1, a: 2}"},
    {"{a: {'$numberDouble': '0.5'}}", "{_id: 1, a: 2, b: 3}", "{_id: 1, a: 2}"},
    {"{a: {'$numberDouble': 'NaN'}}", "{_id: 1, a: 2, b: 3}", "{_id: 1, a: 2}"},
    {"{a: {'$numberLong': '0'}}", "{_id: 1, a: 2, b: 3}", "{_id: 1, b: 3}"},
    {"{a: {'$numberDecimal': '0E+3'}}", "{_id: 1, a: 2, b: 3}", "{_id: 1, b: 3}"},
    {"{a: {'$numberDouble': '-0.0'}}", "{_id: 1, a: 2, b: 3}", "{_id: 1, b: 3}"},
    {"{a: -1}", "{_id: 1, a: 2, b: 3}", "{_id: 1, a: 2}"},
    /* $slice: alone it keeps the other fields */
    {"{a: {~slice: 2}}", "{_id: 1, a: [1, 2, 3], b: 4}", "{_id: 1, a: [1, 2], b: 4}"},
    {"{a: {~slice: -2}}", "{_id: 1, a: [1, 2, 3], b: 4}", "{_id: 1, a: [2, 3], b: 4}"},
    {"{a: {~slice: 0}}", "{a: [1, 2]}", "{a: []}"},
    {"{a: {~slice: 9}}", "{a: [1, 2]}", "{a: [1, 2]}"},
    {"{a: {~slice: -9}}", "{a: [1, 2]}", "{a: [1, 2]}"},
    {"{a: {~slice: {'$numberDouble': '1.9'}}}", "{a: [1, 2]}", "{a: [1]}"},
    {"{a: {~slice: {'$numberDouble': '-1.9'}}}", "{a: [1, 2]}", "{a: [2]}"},
    {"{a: {~slice: {'$numberDouble': 'NaN'}}}", "{a: [1, 2]}", "{a: []}"},
    {"{a: {~slice: {'$numberDouble': 'Infinity'}}}", "{a: [1, 2]}", "{a: [1, 2]}"},
    {"{a: {~slice: {'$numberLong': '-9223372036854775808'}}}", "{a: [1, 2]}", "{a: [1, 2]}"},
    {"{a: {~slice: {'$numberDecimal': '1'}}}", "{a: [1, 2]}", "{a: [1]}"},
    {"{a: {~slice: [1, 2]}}", "{a: [1, 2, 3, 4]}", "{a: [2, 3]}"},
    {"{a: {~slice: [-3, 2]}}", "{a: [1, 2, 3, 4]}", "{a: [2, 3]}"},
    {"{a: {~slice: [-9, 1]}}", "{a: [1, 2, 3, 4]}", "{a: [1]}"},
    {"{a: {~slice: [9, 1]}}", "{a: [1, 2, 3, 4]}", "{a: []}"},
    {"{a: {~slice: [3, 9]}}", "{a: [1, 2, 3, 4]}", "{a: [4]}"},
    {"{a: {~slice: [2147483647, 2147483647]}}", "{a: [1]}", "{a: []}"},
    {"{a: {~slice: [-2147483648, 2147483647]}}", "{a: [1]}", "{a: [1]}"},
    {"{a: {~slice: 1}}", "{a: {b: 1}, c: 'x'}", "{a: {b: 1}, c: 'x'}"},
    {"{a: {~slice: 1}}", "{c: 'x'}", "{c: 'x'}"},
    {"{a: {~slice: 1}, _id: 0}", "{_id: 1, a: [1, 2], b: 3}", "{a: [1], b: 3}"},
    {"{a: {~slice: 1}, _id: 1}", "{_id: 1, a: [1, 2], b: 3}", "{_id: 1, a: [1]}"},
    {"{a: {~slice: 1}, b: 1}", "{b: 3, _id: 1, a: [1, 2], c: 4}", "{b: 3, _id: 1, a: [1]}"},
    {"{a: {~slice: 1}, b: 1, _id: 0}", "{b: 3, _id: 1, a: [1, 2], c: 4}", "{b: 3, a: [1]}"},
    {"{a: {~slice: 1}, b: 0}", "{_id: 1, a: [1, 2], b: 3, c: 4}", "{_id: 1, a: [1], c: 4}"},
    {"{a: {~slice: 1}, b: 0, _id: 1}", "{_id: 1, a: [1, 2], b: 3, c: 4}", "{_id: 1, a: [1], c: 4}"},
    {"{'a.b': {~slice: 1}}", "{a: {b: [1, 2], c: 3}, d: 4}", "{a: {b: [1], c: 3}, d: 4}"},
    {"{a: {b: {~slice: 1}}}", "{a: {b: [1, 2], c: 3}, d: 4}", "{a: {b: [1], c: 3}, d: 4}"},
    {"{'a.b': {~slice: 1}, d: 1}", "{a: {b: [1, 2], c: 3}, d: 4}", "{a: {b: [1]}, d: 4}"},
    {"{'a.b': {~slice: 1}}", "{a: [{b: [1, 2]}, 5, {b: 6}, [{b: [1, 2]}]]}",
     "{a: [{b: [1]}, 5, {b: 6}, [{b: [1, 2]}]]}"}, /* not within an array in an array */
    {"{'a.b': {~slice: 1}, c: 1}", "{a: [{b: [1, 2]}, 5, [{b: [1, 2], d: 1}]]}", "{a: [{b: [1]}, [{b: [1, 2]}]]}"},
    {"{a: {~slice: 1}}", "{a: [[1, 2], [3]]}", "{a: [[1, 2]]}"},
    {"{a: {~slice: 1}, b: {~slice: -1}}", "{a: [1, 2], b: [3, 4]}", "{a: [1], b: [4]}"},
    /* $elemMatch: alone it is an inclusion */
    {"{a: {~elemMatch: {~gt: 1}}}", "{_id: 1, a: [1, 2, 3], b: 4}", "{_id: 1, a: [2]}"},
    {"{a: {~elemMatch: {~gt: 9}}}", "{_id: 1, a: [1, 2, 3], b: 4}", "{_id: 1}"},
    {"{a: {~elemMatch: {~gt: 1}}}", "{_id: 1, a: 2}", "{_id: 1}"},
    {"{a: {~elemMatch: {x: 2}}}", "{_id: 1, a: [{x: 1}, {x: 2, y: [3]}, {x: 2}]}", "{_id: 1, a: [{x: 2, y: [3]}]}"},
    {"{a: {~elemMatch: {}}}", "{_id: 1, a: [1, [2], {x: 1}]}", "{_id: 1, a: [[2]]}"},
    {"{a: {~elemMatch: {~or: [{x: 2}, {x: 3}]}}}", "{a: [{x: 1}, {x: 3}]}", "{a: [{x: 3}]}"},
    {"{a: {~elemMatch: {~gt: 1}}, _id: 0}", "{_id: 1, a: [1, 2, 3], b: 4}", "{a: [2]}"},
    {"{_id: {~elemMatch: {~gt: 1}}}", "{_id: 1, a: 2}", "{}"},
    {"{a: {~elemMatch: {~gt: 1}}, b: 1, c: 1}", "{a: [1, 2], c: 3, _id: 1, b: 4, d: 5}",
     "{c: 3, _id: 1, b: 4, a: [2]}"}, /* last */
    {"{b: {~elemMatch: {~gt: 1}}, a: {~elemMatch: {~gt: 1}}}", "{a: [2], b: [3]}", "{b: [3], a: [2]}"},
    {"{a: {~elemMatch: {~gt: 1}}, c: 0}", "{_id: 1, a: [1, 2], b: 3, c: 4}", "{_id: 1, a: [2], b: 3}"},
    {"{a: {~elemMatch: {~gt: 9}}, c: 0}", "{_id: 1, a: [1, 2], b: 3, c: 4}", "{_id: 1, b: 3}"},
    {"{a: {~elemMatch: {~gt: 1}}, b: {~slice: 1}}", "{_id: 1, a: [1, 2], b: [3, 4], c: 5}",
     "{_id: 1, a: [2], b: [3], c: 5}"},
    {"{a: {~elemMatch: {~gt: 1}}, b: {~slice: 1}, _id: 1}", "{_id: 1, a: [1, 2], b: [3, 4], c: 5}",
     "{_id: 1, b: [3], a: [2]}"},
};

START_TEST(projections_keep_what_they_say)
{
    for (size_t i = 0; i < OV_LEN(CASES); i++) {
        struct arena *a = arena_new(0);
        struct project *p;
        struct err err;
        struct buf out;
        const uint8_t *want = J(CASES[i].want);
        ck_assert_msg(parse(a, J(CASES[i].spec), &p, &err) == 0, "%s: %s", CASES[i].spec, err.msg);
        buf_init(&out);
        buf_append(&out, "before", 6); /* appends */
        ck_assert_int_eq(project_apply(p, J(CASES[i].doc), &out, &err), 0);
        const uint8_t *got = out.p + 6;
        ck_assert_uint_eq(bdoc_len(got), out.len - 6);
        ck_assert_int_eq(bson_check(got, out.len - 6, 100, &err), 0);
        ck_assert_msg(bdoc_cmp(got, want) == 0 && bdoc_len(got) == bdoc_len(want), "%s of %s: %s", CASES[i].spec,
                      CASES[i].doc, bval_shell(a, bval_from_doc(got)));
        buf_free(&out);
        arena_free(a);
    }
}
END_TEST

static const struct {
    const char *spec;
    int code;
    const char *msg;
} REFUSED[] = {
    {"{a: 1, b: 0}", 31254, "Cannot do exclusion on field b in inclusion projection"},
    {"{a: 0, b: 1}", 31253, "Cannot do inclusion on field b in exclusion projection"},
    {"{a: 0, '_id.x': 1}", 31253, "Cannot do inclusion on field _id.x in exclusion projection"},
    {"{a: {b: 1, c: 0}}", 31254, "Cannot do exclusion on field c in inclusion projection"},
    {"{'a.b': 1, a: 1}", 31250, "Path collision at a"},
    {"{a: 1, 'a.b': 1}", 31249, "Path collision at a.b remaining portion b"},
    {"{a: 0, 'a.b.c': 0}", 31249, "Path collision at a.b.c remaining portion b.c"},
    {"{a: 1, a: 1}", 31250, "Path collision at a"},
    {"{a: 1, a: {b: 1}}", 31250, "Path collision at a"},
    {"{a: {b: 1}, 'a.b': 1}", 31250, "Path collision at a.b"},
    {"{'': 1}", 40352, "FieldPath cannot be constructed with empty string"},
    {"{'a.': 1}", 40353, "FieldPath must not end with a '.'."},
    {"{'a..b': 1}", 15998, "FieldPath field names may not be empty strings."},
    {"{'.a': 1}", 15998, "FieldPath field names may not be empty strings."},
    {"{~a: 1}", 16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField."},
    {"{'a.$b': 1}", 16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField."},
    {"{a: {}}", 51270, "An empty sub-projection is not a valid value. Found empty object at path"},
    {"{'a.b': {~elemMatch: {b: 1}}}", 31275, "Cannot use $elemMatch projection on a nested field."},
    {"{a: {b: {~elemMatch: {b: 1}}}}", 31275, "Cannot use $elemMatch projection on a nested field."},
    {"{a: {~elemMatch: 1}}", 31274, "elemMatch: Invalid argument, object required, but got int"},
    {"{a: {~elemMatch: {b: 1}}, 'c.$': 1}", 31256, "Cannot specify positional operator and $elemMatch."},
    {"{'c.$': 1, a: {~elemMatch: {b: 1}}}", 31255, "Cannot specify positional operator and $elemMatch."},
    {"{a: {~elemMatch: {b: 1}, c: 1}}", 16410,
     "FieldPath field names may not start with '$'. Consider using $getField or $setField."},
    {"{a: {~elemMatch: {~where: '1'}}}", 2, "$where is not allowed in this context"},
    {"{a: {~elemMatch: {~foo: '1'}}}", 2, "unknown operator: $foo"},
    {"{a: {~elemMatch: {~jsonSchema: {}}}}", 224, "$jsonSchema is not allowed in this context"},
    {"{a: {~elemMatch: {b: {~near: [0, 0]}}}}", 5626500,
     "$geoNear, $near, and $nearSphere are not allowed in this context"},
    {"{'a.$': 0}", 31395, "positional projection cannot be used with exclusion"},
    {"{'a.$': {~slice: 1}}", 31271, "positional projection cannot be used with an expression or sub object"},
    {"{'a.$': 'x'}", 31308, "positional projection cannot be used with a literal"},
    {"{'a.$': 1, 'b.$': 1}", 31276, "Cannot specify more than one positional projection per query."},
    {"{'a.$': 1, b: 0}", 31254, "Cannot do exclusion on field b in inclusion projection"},
    {"{b: 0, 'a.$': 1}", 31253, "Cannot do inclusion on field a.$ in exclusion projection"},
    {"{a: 1, 'a.$': 1}", 31250, "Path collision at a"},
    {"{'a.$': 1, 'a.b': 1}", 31249, "Path collision at a.b remaining portion b"},
    {"{'$': 1}", 16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField."},
    {"{a: {~slice: 1}, 'a.b': 1}", 31249, "Path collision at a.b remaining portion b"},
    {"{a: {~slice: 'x'}}", 28667,
     "Invalid $slice syntax. The given syntax { $slice: \"x\" } did not match the find() syntax because :: "
     "Location31273: $slice only supports numbers and [skip, limit] arrays :: The given syntax did not match the "
     "expression $slice syntax. :: caused by :: Expression $slice takes at least 2 arguments, and at most 3, but 1 "
     "were passed in."},
    {"{a: {~slice: [1]}}", 28667,
     "Invalid $slice syntax. The given syntax { $slice: [ 1 ] } did not match the find() syntax because :: "
     "Location31272: $slice array argument should be of form [skip, limit] :: The given syntax did not match the "
     "expression $slice syntax. :: caused by :: Expression $slice takes at least 2 arguments, and at most 3, but 1 "
     "were passed in."},
    {"{a: {~slice: [0, 0]}}", 28724,
     "Failed to optimize expression :: caused by :: First argument to $slice must be an array, but is of type: int"},
    {"{a: {~slice: ['x', 1]}}", 28724,
     "Failed to optimize expression :: caused by :: First argument to $slice must be an array, but is of type: string"},
    {"{a: {~slice: [{b: [1]}, 1]}}", 28724,
     "Failed to optimize expression :: caused by :: First argument to $slice must be an array, but is of type: object"},
    {"{a: {~slice: [[1, 2], 1]}}", 238, "the expression $slice in the projection of 'a' is not implemented"},
    {"{a: {~slice: [{b: '$x'}, 1]}}", 238, "the expression $slice in the projection of 'a' is not implemented"},
    {"{a: {~slice: ['$x', 1]}}", 238, "the expression $slice in the projection of 'a' is not implemented"},
    {"{a: {~meta: 'textScore'}}", 238, "{$meta: 'textScore'} in the projection of 'a' is not implemented"},
    {"{a: {~meta: 'x'}}", 17308, "Unsupported argument to $meta: x"},
    {"{a: {~meta: 1}}", 17307, "$meta only supports string arguments"},
    {"{a: {~foo: 1}}", 31325, "Unknown expression $foo"},
    {"{b: 0, a: {~add: [1, 2]}}", 31252, "Cannot use expression other than $meta in exclusion projection"},
    {"{b: 0, a: 'x'}", 31310, "Cannot use an expression a: \"x\" in an exclusion projection"},
    {"{a: 'x', b: 0}", 31254, "Cannot do exclusion on field b in inclusion projection"}, /* before the refusal */
    {"{a: {~add: [1, 2]}}", 238, "$add in the projection of 'a' is not implemented"},
    {"{a: '$b'}", 238, "A string as the value of 'a' in a projection is not implemented"},
    {"{a: null}", 238, "A null as the value of 'a' in a projection is not implemented"},
};

START_TEST(bad_projections_are_refused)
{
    for (size_t i = 0; i < OV_LEN(REFUSED); i++) {
        struct arena *a = arena_new(0);
        struct project *p;
        struct err err;
        ck_assert_msg(parse(a, J(REFUSED[i].spec), &p, &err) == REFUSED[i].code, "%s: %d %s", REFUSED[i].spec, err.code,
                      err.msg);
        ck_assert_str_eq(err.msg, REFUSED[i].msg);
        ck_assert_ptr_null(p);
        arena_free(a);
    }
    struct arena *a = arena_new(0);
    struct project *p;
    struct err err;
    ck_assert_int_eq(parse(a, J("{'a.$.b': 1}"), &p, &err), 31394);
    arena_free(a);
}
END_TEST

static const struct {
    const char *filter, *spec, *doc, *want; /* want NULL: `code` */
    int code;
} POSITIONAL[] = {
    {"{a: 2}", "{'a.$': 1}", "{_id: 1, a: [1, 2, 3], b: 4}", "{_id: 1, a: [2]}", 0},
    {"{a: {~gt: 1}}", "{'a.$': true, _id: 0}", "{_id: 1, a: [1, 2, 3], b: 4}", "{a: [2]}", 0},
    {"{a: 2}", "{'a.$': 1, b: 1}", "{b: 4, a: [1, 2, 3], _id: 1}", "{b: 4, a: [2], _id: 1}", 0},
    {"{'a.x': 2}", "{'a.$': 1}", "{a: [{x: 1}, {x: 2, y: 'long enough to move'}]}",
     "{a: [{x: 2, y: 'long enough to move'}]}", 0},
    {"{a: {~elemMatch: {x: 2}}}", "{'a.$': 1}", "{a: [{x: 1}, {x: 2, y: 3}]}", "{a: [{x: 2, y: 3}]}", 0},
    {"{'a.b': 2}", "{'a.b.$': 1}", "{a: {b: [1, 2], c: 3}}", "{a: {b: [2]}}", 0},
    {"{'a.b': 2}", "{a: {'b.$': 1}}", "{a: {b: [1, 2], c: 3}}", "{a: {b: [2]}}", 0},
    {"{'a.b': 2}", "{'a.b.$': 1}", "{a: [{b: 1}, {b: [2, 3], c: 1}]}", "{a: [{b: [2, 3]}]}", 0}, /* the first array */
    {"{'a.b': 2}", "{'a.b.$': 1}", "{a: [5, {b: 2}]}", NULL, 51247},                             /* 5 is gone by then */
    {"{b: 30}", "{'a.$': 1}", "{a: [1, 2, 3], b: [10, 20, 30]}", "{a: [3]}", 0},
    {"{b: 30}", "{'a.$': 1}", "{a: [1, 2], b: [10, 20, 30]}", NULL, 51247},
    {"{_id: 1}", "{'a.$': 1}", "{_id: 1, a: [1, 2]}", NULL, 51246},
    {"{}", "{'a.$': 1}", "{_id: 1, a: []}", NULL, 51246},
    {"{_id: 1}", "{'a.$': 1}", "{_id: 1, a: 5}", "{_id: 1, a: 5}", 0}, /* no array */
    {"{_id: 1}", "{'a.b.$': 1}", "{_id: 1, a: {c: 1}}", "{_id: 1, a: {}}", 0},
    {"{_id: 1}", "{'a.b.$': 1}", "{_id: 1}", "{_id: 1}", 0},
    {"{a: 2}", "{'a.$': 1, b: {~slice: -1}}", "{_id: 1, a: [1, 2], b: [3, 4]}", "{_id: 1, a: [2], b: [4]}", 0},
    {"{~and: [{a: {~gt: 1}}, {a: {~lt: 5}}]}", "{'a.$': 1}", "{a: [1, 2, 3]}", "{a: [2]}", 0}, /* $gt is asked last */
    {"{a: {~all: [3, 5]}}", "{'a.$': 1}", "{a: [5, 4, 3]}", "{a: [5]}", 0},
    {"{~or: [{a: 9}, {a: 4}]}", "{'a.$': 1}", "{a: [5, 4, 3]}", "{a: [4]}", 0},
    {"{~nor: [{a: 9}]}", "{'a.$': 1}", "{a: [5, 4, 3]}", NULL, 51246},
    {"{~or: [{a: 5}, {b: 1}]}", "{'a.$': 1}", "{a: [5, 4, 3]}", NULL, 51246},
};

START_TEST(the_positional_operator_gives_the_element_that_the_filter_matched)
{
    for (size_t i = 0; i < OV_LEN(POSITIONAL); i++) {
        struct arena *a = arena_new(0);
        struct project *p;
        struct match *m;
        struct err err;
        struct buf out;
        err_init(&err, a);
        buf_init(&out);
        buf_append(&out, "before", 6);
        int rc = match_parse(a, J(POSITIONAL[i].filter), &m, &err);
        if (rc == 0)
            rc = project_parse_find(a, J(POSITIONAL[i].spec), m, &p, &err);
        if (rc == 0) {
            ck_assert(project_is_positional(p));
            rc = project_apply(p, J(POSITIONAL[i].doc), &out, &err);
        }
        ck_assert_msg(rc == POSITIONAL[i].code, "%s: %d %s", POSITIONAL[i].spec, rc, rc ? err.msg : "");
        if (POSITIONAL[i].want) {
            const uint8_t *got = out.p + 6;
            ck_assert_int_eq(bson_check(got, out.len - 6, 100, &err), 0);
            ck_assert_msg(bdoc_cmp(got, J(POSITIONAL[i].want)) == 0, "%s of %s: %s", POSITIONAL[i].spec,
                          POSITIONAL[i].doc, bval_shell(a, bval_from_doc(got)));
        } else {
            ck_assert_uint_eq(out.len, 6);
        }
        buf_free(&out);
        arena_free(a);
    }
}
END_TEST

/* What a $project stage says to the operators of find. */
static const struct {
    const char *spec;
    int code;
    const char *msg;
} STAGE[] = {
    {"{'a.$': 1}", 31324, "Cannot use positional projection in aggregation projection"},
    {"{a: {~elemMatch: {b: 1}}}", 168, "Cannot use $elemMatch in this context"},
    {"{a: {~slice: 1}}", 28667, "Expression $slice takes at least 2 arguments, and at most 3, but 1 were passed in."},
    {"{a: {~slice: ['$a', 1]}}", 238, "the expression $slice in the projection of 'a' is not implemented"},
    {"{a: {~foo: 1}}", 31325, "Unknown expression $foo"},
};

START_TEST(a_stage_has_no_operators_of_find)
{
    for (size_t i = 0; i < OV_LEN(STAGE); i++) {
        struct arena *a = arena_new(0);
        struct project *p;
        struct err err;
        err_init(&err, a);
        ck_assert_msg(project_parse(a, J(STAGE[i].spec), &p, &err) == STAGE[i].code, "%s: %d", STAGE[i].spec, err.code);
        ck_assert_str_eq(err.msg, STAGE[i].msg);
        arena_free(a);
    }
}
END_TEST

START_TEST(an_empty_projection_is_none)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct project *p = (struct project *)1;
    ck_assert_int_eq(parse(a, J("{}"), &p, &err), 0);
    ck_assert_ptr_null(p);
    arena_free(a);
}
END_TEST

/* A specification of very many fields is parsed and applied in no time, and one past the arena's limit is an error. */
START_TEST(many_fields_make_no_quadratic_work)
{
    struct arena *a = arena_new(0), *small = arena_new(1 << 20);
    struct project *p;
    struct err err;
    struct buf spec, out;
    char name[16];
    buf_init(&spec);
    buf_init(&out);
    size_t start = bw_begin(&spec);
    for (int i = 0; i < 200000; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        bw_i32(&spec, name, 1);
    }
    bw_end(&spec, start);
    ck_assert_int_eq(parse(a, spec.p, &p, &err), 0);
    ck_assert_int_eq(project_apply(p, spec.p, &out, &err), 0);
    ck_assert_int_eq(bdoc_cmp(out.p, spec.p), 0);
    ck_assert_int_eq(parse(small, spec.p, &p, &err), ERR_EXCEEDED_MEMORY_LIMIT);
    buf_free(&spec);
    buf_free(&out);
    arena_free(a);
    arena_free(small);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, projections_keep_what_they_say);
    tcase_add_test(tc, bad_projections_are_refused);
    tcase_add_test(tc, the_positional_operator_gives_the_element_that_the_filter_matched);
    tcase_add_test(tc, a_stage_has_no_operators_of_find);
    tcase_add_test(tc, an_empty_projection_is_none);
    tcase_add_test(tc, many_fields_make_no_quadratic_work);
}

TEST_MAIN("query/project", add_tests)
