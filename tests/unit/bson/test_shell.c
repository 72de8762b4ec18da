/* Values as error messages show them. */
#include "protocol/bson/bson.h"

#include "tests/lib/test.h"
#include "tests/unit/bson/values.h"

static const struct {
    const char *json, *want;
} TEXTS[] = {
    {"{x: {}}", "{}"},
    {"{x: []}", "[]"},
    {"{x: {a: 1, b: 'x', c: {d: []}}}", "{ a: 1, b: \"x\", c: { d: [] } }"},
    {"{x: [1, [2], {a: null}]}", "[ 1, [ 2 ], { a: null } ]"},
    {"{x: {'$oid': '507f1f77bcf86cd799439011'}}", "ObjectId('507f1f77bcf86cd799439011')"},
    {"{x: {'$date': {'$numberLong': '-5'}}}", "new Date(-5)"},
    {"{x: {'$timestamp': {'t': 7, 'i': 3}}}", "Timestamp(7, 3)"},
    {"{x: true}", "true"},
    {"{x: {'$numberLong': '-9223372036854775808'}}", "-9223372036854775808"},
    {"{x: {'$numberDouble': '1'}}", "1.0"},
    {"{x: {'$numberDouble': '1.5'}}", "1.5"},
    {"{x: {'$numberDouble': '-0.0'}}", "-0.0"},
    {"{x: {'$numberDouble': '0.1'}}", "0.1"},
    {"{x: {'$numberDouble': '1e20'}}", "1e+20.0"},
    {"{x: {'$numberDouble': '1.5e-7'}}", "1.5e-07"},
    {"{x: {'$numberDouble': 'Infinity'}}", "inf.0"},
    {"{x: {'$numberDouble': '-Infinity'}}", "-inf.0"},
    {"{x: {'$numberDecimal': '1.50'}}", "1.50"},
    {"{x: {'$numberDecimal': '1E+20'}}", "1E+20"},
    {"{x: {'$numberDecimal': 'NaN'}}", "NaN"},
    {"{x: {'$regularExpression': {'pattern': '^a/b', 'options': 'im'}}}", "/^a/b/im"},
    {"{x: {'$binary': {'base64': '/6s=', 'subType': '00'}}}", "BinData(0, FFAB)"},
    {"{x: {'$binary': {'base64': '/6s=', 'subType': '80'}}}", "BinData(128, FFAB)"},
    {"{x: {'$binary': {'base64': '/6s=', 'subType': '02'}}}", "BinData(2, FFAB)"},
    {"{x: {'$binary': {'base64': 'ASNFZ4mrze8BI0VniavN7w==', 'subType': '04'}}}",
     "UUID(\"01234567-89ab-cdef-0123-456789abcdef\")"},
    {"{x: {'$binary': {'base64': 'ASNF', 'subType': '04'}}}", "BinData(4, 012345)"},
    {"{x: {'$minKey': 1}}", "MinKey"},
    {"{x: {'$maxKey': 1}}", "MaxKey"},
    {"{x: {'$undefined': true}}", "undefined"},
    {"{x: {'$symbol': 's'}}", "\"s\""},
    {"{x: {'$code': 'f()'}}", "f()"},
    {"{x: {'$code': 'f()', '$scope': {a: 1}}}", "CodeWScope( f(), { a: 1 })"},
    {"{x: {'$dbPointer': {'$ref': 'b', '$id': {'$oid': '507f1f77bcf86cd799439011'}}}}",
     "DBRef('b',507f1f77bcf86cd799439011)"},
};

START_TEST(every_type_has_its_form)
{
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < OV_LEN(TEXTS); i++)
        ck_assert_str_eq(bval_shell(a, first_value(TEXTS[i].json)), TEXTS[i].want);
    arena_free(a);
}
END_TEST

static const char *string_of(struct arena *a, const char *character, size_t times)
{
    struct buf b;
    buf_init(&b);
    size_t start = bw_begin(&b), n = strlen(character);
    char *s = arena_zalloc(a, n * times + 1);
    for (size_t i = 0; i < times; i++)
        memcpy(s + i * n, character, n);
    bw_str(&b, "x", s);
    bw_end(&b, start);
    const char *out = bval_shell(a, bdoc_get(b.p, "x"));
    buf_free(&b);
    return out;
}

START_TEST(long_strings_are_shortened_as_the_server_does)
{
    struct arena *a = arena_new(0);
    ck_assert_uint_eq(strlen(string_of(a, "a", 159)), 159 + 2);
    const char *cut = string_of(a, "a", 160);
    ck_assert_uint_eq(strlen(cut), 150 + strlen("\"...\""));
    ck_assert_str_eq(cut + 149, "aa...\"");
    cut = string_of(a, "\xe2\x82\xac", 60); /* 150 bytes are 50 characters of 3 */
    ck_assert_uint_eq(strlen(cut), 150 + strlen("\"...\""));
    cut = string_of(a, "\xf0\x9f\x98\x80", 60); /* of 4: 148 */
    ck_assert_uint_eq(strlen(cut), 148 + strlen("\"...\""));
    arena_free(a);
}
END_TEST

START_TEST(text_is_cut_at_its_maximum)
{
    struct buf b;
    buf_init(&b);
    buf_append(&b, "value ", 6);
    bval_to_shell(&b, first_value("{x: {a: 'abcdefghijkl', b: 1}}"), 10);
    buf_byte(&b, 0);
    ck_assert_str_eq((const char *)b.p, "value { a: \"abcd...");
    b.len = 0;
    bval_to_shell(&b, first_value("{x: 'ééé'}"), 4);
    buf_byte(&b, 0);
    ck_assert_str_eq((const char *)b.p, "\"é...");
    b.len = 0;
    bval_to_shell(&b, first_value("{x: 'abc'}"), 5);
    buf_byte(&b, 0);
    ck_assert_str_eq((const char *)b.p, "\"abc\"");
    buf_free(&b);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, every_type_has_its_form);
    tcase_add_test(tc, long_strings_are_shortened_as_the_server_does);
    tcase_add_test(tc, text_is_cut_at_its_maximum);
}

TEST_MAIN("bson/shell", add_tests)
