/* Index specifications: what is taken, what is refused and how. */
#include "index/index.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

static const struct {
    const char *spec;
    int code;
    const char *msg; /* its beginning */
} cases[] = {
    {"{key: {a: 1}, name: 'x'}", 0, NULL},
    {"{key: {a: 1.5, b: -7, c: {$numberLong: '3'}}, name: 'x', unique: true, sparse: 1, background: true}", 0, NULL},
    {"{v: 1, key: {'a.b': -1}, name: 'x', ns: 'db.c'}", 0, NULL},
    {"{key: {a: 1}, name: 'x', hidden: false, collation: {locale: 'simple'}}", 0, NULL},
    {"{key: {_id: 1}, name: '_id_'}", 0, NULL},
    {"{key: {}, name: 'x'}", 67, "Index keys cannot be empty."},
    {"{key: {a: 0}, name: 'x'}", 67, "Values in the index key pattern cannot be 0."},
    {"{key: {a: true}, name: 'x'}", 67, "Values in v:2 index key pattern cannot be of type bool."},
    {"{key: {a: ''}, name: 'x'}", 67, "Values in the index key pattern cannot be empty strings."},
    {"{key: {a: 'what'}, name: 'x'}", 67, "Unknown index plugin 'what'"},
    {"{key: {'': 1}, name: 'x'}", 67, "Index keys cannot be an empty field."},
    {"{key: {'a..b': 1}, name: 'x'}", 67, "Index keys cannot contain an empty field."},
    {"{key: {'a.~b': 1}, name: 'x'}", 0, NULL}, /* only a leading ~ stands for $ */
    {"{key: {'~a': 1}, name: 'x'}", 67, "Index key contains an illegal field name"},
    {"{key: {a: 'hashed'}, name: 'x'}", 238, "hashed indexes"},
    {"{key: {a: 'text'}, name: 'x'}", 238, "text indexes"},
    {"{key: {a: '2dsphere'}, name: 'x'}", 238, "2dsphere indexes"},
    {"{key: {'~**': 1}, name: 'x'}", 238, "wildcard indexes"},
    {"{key: {a: 1}, name: 'x', expireAfterSeconds: 5}", 0, NULL},
    {"{key: {a: 1}, name: 'x', expireAfterSeconds: 2147483647.5}", 0, NULL},
    {"{key: {a: 1}, name: 'x', expireAfterSeconds: -1}", 67,
     "TTL index 'expireAfterSeconds' option cannot be less than 0. Index spec: "},
    {"{key: {a: 1}, name: 'x', expireAfterSeconds: 2147483648}", 67,
     "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number than "
     "2147483648"},
    {"{key: {a: 1}, name: 'x', expireAfterSeconds: 'x'}", 67,
     "TTL index 'expireAfterSeconds' option must be numeric, but received a type of 'string'. Index spec: "},
    {"{key: {a: 1, b: 1}, name: 'x', expireAfterSeconds: 5}", 67,
     "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: "},
    {"{key: {_id: -1}, name: 'x', expireAfterSeconds: 5}", 67, "The field '_id' cannot be used for a TTL index."},
    {"{key: {a: 1}, name: 'x', partialFilterExpression: {a: 1}}", 0, NULL},
    {"{key: {a: 1}, name: 'x', partialFilterExpression: 5}", 14,
     "The field 'partialFilterExpression' must be an object, but got int"},
    {"{key: {a: 1}, name: 'x', partialFilterExpression: {a: 1}, sparse: true}", 67,
     "cannot mix \"partialFilterExpression\" and \"sparse\" options"},
    {"{key: {a: 1}, name: 'x', collation: {locale: 'de'}}", 238, "the index option 'collation'"},
    {"{key: {a: 1}, name: 'x', hidden: true}", 0, NULL},
    {"{key: {_id: 1}, name: '_id_', hidden: true}", 2, "can't hide _id index"},
    {"{key: {a: 1}, name: 'x', what: 1}", 197,
     "The field 'what' is not valid for an index specification. Specification: { key: { a: 1 }, name: \"x\", what: 1 "
     "}"},
    {"{key: {_id: 1}, name: '_id_', sparse: true}", 197,
     "The field 'sparse' is not valid for an _id index specification."},
    {"{key: {a: 1}}", 9, "The 'name' field is a required property of an index specification"},
    {"{name: 'x'}", 9, "The 'key' field is a required property of an index specification"},
    {"{key: 1, name: 'x'}", 14, "The field 'key' must be an object, but got int"},
    {"{key: {a: 1}, name: 1}", 14, "The field 'name' must be a string, but got int"},
    {"{key: {a: 1}, name: ''}", 67, "index name cannot be empty"},
    {"{key: {a: 1}, name: 'x', v: 'x'}", 14, "The field 'v' must be a number, but got string"},
    {"{key: {a: 1}, name: 'x', v: 3}", 67, "Invalid index specification"},
    {"{key: {a: 1}, name: 'x', unique: 'yes'}", 14, "The field 'unique' has value"},
};

START_TEST(specifications_are_judged)
{
    struct arena *a = arena_new(0);
    struct index_def def;
    struct err err;
    err_init(&err, a);
    int rc = index_parse(a, J(cases[_i].spec), &def, &err);
    ck_assert_msg(rc == cases[_i].code, "%s: %d %s", cases[_i].spec, rc, err.msg ? err.msg : "");
    if (rc)
        ck_assert_msg(strncmp(err.msg, cases[_i].msg, strlen(cases[_i].msg)) == 0, "%s: %s", cases[_i].spec, err.msg);
    arena_free(a);
}
END_TEST

START_TEST(what_is_parsed_is_kept)
{
    struct arena *a = arena_new(0);
    struct index_def def, again;
    struct err err;
    err_init(&err, a);
    ck_assert_int_eq(index_parse(a, J("{unique: 1, name: 'x', key: {a: 1, 'b.c': -1}, sparse: false}"), &def, &err), 0);
    ck_assert(def.unique && !def.sparse);
    ck_assert_uint_eq(def.n_fields, 2);
    ck_assert_int_eq(def.dirs[1], -1);
    ck_assert_uint_eq(def.paths[1].n_parts, 2);
    ck_assert_str_eq(bval_shell(a, bval_from_doc(def.spec)),
                     "{ v: 2, key: { a: 1, b.c: -1 }, name: \"x\", unique: true }");
    ck_assert_int_eq(index_parse(a, def.spec, &again, &err), 0); /* as the catalog does */
    ck_assert_int_eq(bdoc_cmp(def.spec, again.spec), 0);
    arena_free(a);
}
END_TEST

START_TEST(thirty_two_fields_are_the_limit)
{
    struct arena *a = arena_new(0);
    struct err err;
    err_init(&err, a);
    for (uint32_t n = 31; n <= 33; n++) {
        struct index_def def;
        struct buf b;
        buf_init(&b);
        size_t doc = bw_begin(&b), key = bw_doc(&b, "key");
        for (uint32_t i = 0; i < n; i++) {
            char name[12];
            bw_i32(&b, arena_printf(a, "f%s", bw_index(i, name)), 1);
        }
        bw_end(&b, key);
        bw_str(&b, "name", "x");
        bw_end(&b, doc);
        ck_assert_int_eq(index_parse(a, b.p, &def, &err), n > 32 ? 13103 : 0);
        buf_free(&b);
    }
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, specifications_are_judged, 0, OV_LEN(cases));
    tcase_add_test(tc, what_is_parsed_is_kept);
    tcase_add_test(tc, thirty_two_fields_are_the_limit);
}
TEST_MAIN("index/parse", add_tests)
