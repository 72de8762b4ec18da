/* The tests' own JSON reader: a table that means something else than it says would prove nothing. */
#include "tests/lib/json.h"
#include "tests/lib/test.h"

#include <bson/bson.h>

static void same(const char *ours, const char *strict)
{
    bson_t a, *b = bson_new_from_json((const uint8_t *)strict, -1, NULL);
    ck_assert_ptr_nonnull(b);
    const uint8_t *p = J(ours);
    ck_assert(bson_init_static(&a, p, (size_t)(p[0] | p[1] << 8 | p[2] << 16)));
    ck_assert_msg(bson_equal(&a, b), "%s is not %s", ours, strict);
    bson_destroy(b);
}

START_TEST(quotes_and_bare_names)
{
    same("{a: 1, 'b.c': ['x', \"y\"], d: true, e: null, _f: {}}",
         "{\"a\": 1, \"b.c\": [\"x\", \"y\"], \"d\": true, \"e\": null, \"_f\": {}}");
    same("{a: 'it\\'s', b: 'say \"x\"', c: 'tab\\t'}",
         "{\"a\": \"it's\", \"b\": \"say \\\"x\\\"\", \"c\": \"tab\\t\"}");
    same("{a: {$numberLong: '5'}, b: 1.5, c: 2.0}", "{\"a\": {\"$numberLong\": \"5\"}, \"b\": 1.5, \"c\": 2.0}");
}
END_TEST

START_TEST(a_tilde_makes_an_operator)
{
    const uint8_t *p = J("{a: [{~regex: 'x', ~options: 'i'}]}");
    bson_t doc;
    bson_iter_t it, at;
    ck_assert(bson_init_static(&doc, p, (size_t)(p[0] | p[1] << 8)));
    ck_assert(bson_iter_init(&it, &doc));
    ck_assert(bson_iter_find_descendant(&it, "a.0.$regex", &at) && BSON_ITER_HOLDS_UTF8(&at));
    ck_assert(bson_iter_init(&it, &doc));
    ck_assert(bson_iter_find_descendant(&it, "a.0.$options", &at));
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, quotes_and_bare_names);
    tcase_add_test(tc, a_tilde_makes_an_operator);
}
TEST_MAIN("lib/json", add_tests)
