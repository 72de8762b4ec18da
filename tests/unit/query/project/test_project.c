/* Projections: specification, document, result. */
#include "server/query/project/project.h"

#include "tests/lib/json.h"
#include "tests/lib/test.h"

#include <stdio.h>

static int parse(struct arena *a, const uint8_t *spec, struct project **p, struct err *err)
{
    err_init(err, a);
    return project_parse(a, spec, p, err);
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
        project_apply(p, J(CASES[i].doc), &out);
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
    {"{a: {~slice: 1}}", 238, "$slice in the projection of 'a' is not implemented"},
    {"{a: {~elemMatch: {b: 1}}}", 238, "$elemMatch in the projection of 'a' is not implemented"},
    {"{a: {~meta: 'textScore'}}", 238, "$meta in the projection of 'a' is not implemented"},
    {"{a: {~add: [1, 2]}}", 238, "$add in the projection of 'a' is not implemented"},
    {"{'a.$': 1}", 238, "The positional projection 'a.$' is not implemented"},
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
    project_apply(p, spec.p, &out);
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
    tcase_add_test(tc, an_empty_projection_is_none);
    tcase_add_test(tc, many_fields_make_no_quadratic_work);
}

TEST_MAIN("query/project", add_tests)
