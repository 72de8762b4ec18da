#include "index/index.h"

#include "tests/lib/json.h"
#include "tests/lib/test.h"

static struct arena *arena;
static struct err err;

static void setup(void)
{
    arena = arena_new(0);
    err_init(&err, arena);
}

static void teardown(void)
{
    arena_free(arena);
}

static const struct {
    const char *given, *shown;
} good[] = {
    {"{'key': {'a': 1}, 'name': 'a_1'}", "{ v: 2, key: { a: 1 }, name: \"a_1\" }"},
    {"{'name': 'n', 'unique': true, 'key': {'a': 1, 'b': -1}}",
     "{ v: 2, key: { a: 1, b: -1 }, name: \"n\", unique: true }"},
    {"{'key': {'a': -1.5}, 'name': 'n', 'sparse': 1, 'unique': false, 'ns': 'x.y', 'background': true}",
     "{ v: 2, key: { a: -1.5 }, name: \"n\", sparse: true, background: true }"},
    {"{'v': 1, 'key': {'a.b.c': 1}, 'name': 'n', 'hidden': false}", "{ v: 1, key: { a.b.c: 1 }, name: \"n\" }"},
    {"{'v': 2, 'key': {'_id': 1}, 'name': '_id_'}", "{ v: 2, key: { _id: 1 }, name: \"_id_\" }"},
    {"{'key': {'r.$id': 1}, 'name': 'n'}", "{ v: 2, key: { r.$id: 1 }, name: \"n\" }"},
    {"{'key': {'a': 1}, 'name': 'n', 'collation': {'locale': 'simple'}}", "{ v: 2, key: { a: 1 }, name: \"n\" }"},
};

START_TEST(specifications_are_shown_as_the_real_server_does)
{
    for (size_t i = 0; i < OV_LEN(good); i++) {
        struct index_def def, again;
        ck_assert_msg(index_parse(arena, J(good[i].given), &def, &err) == 0, "%s: %s", good[i].given, err.msg);
        ck_assert_str_eq(bval_shell(arena, bval_from_doc(def.spec)), good[i].shown);
        ck_assert_int_eq(index_parse(arena, def.spec, &again, &err), 0);
        ck_assert_int_eq(memcmp(def.spec, again.spec, bdoc_len(def.spec)), 0);
    }
}
END_TEST

static const struct {
    const char *spec;
    int code;
    const char *msg; /* what it starts with */
} bad[] = {
    {"{'name': 'n'}", 9, "The 'key' field is a required property of an index specification"},
    {"{'key': {'a': 1}}", 9, "The 'name' field is a required property of an index specification"},
    {"{'key': 1, 'name': 'n'}", 14, "The field 'key' must be an object, but got int"},
    {"{'key': {'a': 1}, 'name': 1}", 14, "The field 'name' must be a string, but got int"},
    {"{'key': {}, 'name': 'n'}", 67, "Index keys cannot be empty."},
    {"{'key': {'': 1}, 'name': 'n'}", 67, "Index keys cannot be an empty field."},
    {"{'key': {'a..b': 1}, 'name': 'n'}", 67, "Index keys cannot contain an empty field."},
    {"{'key': {'$a': 1}, 'name': 'n'}", 67, "Index key contains an illegal field name: field name starts with '$'."},
    {"{'key': {'a': 0}, 'name': 'n'}", 67, "Values in the index key pattern cannot be 0."},
    {"{'key': {'a': true}, 'name': 'n'}", 67, "Values in v:2 index key pattern cannot be of type bool."},
    {"{'key': {'a': ''}, 'name': 'n'}", 67, "Values in the index key pattern cannot be empty strings."},
    {"{'key': {'a': 'foo'}, 'name': 'n'}", 67, "Unknown index plugin 'foo'"},
    {"{'key': {'a': 'text'}, 'name': 'n'}", 238, "text indexes are not implemented"},
    {"{'key': {'a': 'hashed'}, 'name': 'n'}", 238, "hashed indexes are not implemented"},
    {"{'key': {'$**': 1}, 'name': 'n'}", 238, "wildcard indexes are not implemented"},
    {"{'key': {'a': 1}, 'name': ''}", 67, "index name cannot be empty"},
    {"{'key': {'a': 1}, 'name': '*'}", 2, "The index name '*' is not valid."},
    {"{'key': {'a': 1}, 'name': 'n', 'v': 3}", 67, "Invalid index specification"},
    {"{'key': {'a': 1}, 'name': 'n', 'foo': 3}", 197, "The field 'foo' is not valid for an index specification."},
    {"{'key': {'_id': 1}, 'name': 'n', 'unique': true}", 197,
     "The field 'unique' is not valid for an _id index specification."},
    {"{'key': {'a': 1}, 'name': 'n', 'unique': 'yes'}", 14, "The field 'unique' has value unique: \"yes\""},
    {"{'key': {'a': 1}, 'name': 'n', 'hidden': true}", 238, "the index option 'hidden' is not implemented"},
};

START_TEST(bad_specifications_are_refused_in_its_words)
{
    for (size_t i = 0; i < OV_LEN(bad); i++) {
        struct index_def def;
        ck_assert_msg(index_parse(arena, J(bad[i].spec), &def, &err) == bad[i].code, "%s: %d %s", bad[i].spec, err.code,
                      err.msg ? err.msg : "");
        ck_assert_msg(strncmp(err.msg, bad[i].msg, strlen(bad[i].msg)) == 0, "%s: %s", bad[i].spec, err.msg);
    }
}
END_TEST

START_TEST(a_key_has_32_fields_at_most)
{
    for (int n = 32; n <= 33; n++) {
        struct index_def def;
        const char *key = "";
        for (int i = 0; i < n; i++)
            key = arena_printf(arena, "%s%s'f%d': 1", key, i ? ", " : "", i);
        int rc = index_parse(arena, J(arena_printf(arena, "{'key': {%s}, 'name': 'n'}", key)), &def, &err);
        ck_assert_int_eq(rc, n == 32 ? 0 : 13103);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, specifications_are_shown_as_the_real_server_does);
    tcase_add_test(tc, bad_specifications_are_refused_in_its_words);
    tcase_add_test(tc, a_key_has_32_fields_at_most);
}

TEST_MAIN("index/parse", add_tests)
