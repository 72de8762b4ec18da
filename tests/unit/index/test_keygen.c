/* Keys of documents: arrays, missing values, sparse indexes, unique values, differences. */
#include <stdio.h>

#include "index/index.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

static struct arena *arena;
static struct err err;
static struct index_rt rt;

static void setup(void)
{
    arena = arena_new(0);
    err_init(&err, arena);
}
static void teardown(void)
{
    arena_free(arena);
}

static struct index_def *index_of(const char *key, bool sparse)
{
    struct index_def *def = arena_alloc(arena, sizeof(*def));
    const char *spec = arena_printf(arena, "{v: 2, key: %s, name: 'i', sparse: %s}", key, sparse ? "true" : "false");
    ck_assert_int_eq(index_parse(arena, J(spec), def, &err), 0);
    def->rt = &rt;
    return def;
}

/* The values of all keys in key order, as in (1, 2) (1, 3). */
static const char *keys(const struct index_def *def, const char *doc, uint32_t *multikey)
{
    struct keyset set;
    struct buf b;
    ck_assert_msg(keygen(def, J(doc), arena, &set, &err) == 0, "%s", err.msg ? err.msg : "");
    *multikey = set.multikey;
    buf_init(&b);
    for (size_t i = 0; i < set.n; i++) {
        ck_assert(i == 0 || slice_cmp(set.keys[i - 1], set.keys[i]) < 0);
        struct buf key;
        buf_init(&key);
        buf_printf(&b, "%s(", i ? " " : "");
        for (uint32_t f = 0; f < def->n_fields; f++) {
            struct bval v = set.values[i][f];
            key_encode(&key, v, def->dirs[f] < 0);
            buf_printf(&b, "%s%s", f ? ", " : "", bval_is_missing(v) ? "-" : bval_shell(arena, v));
        }
        ck_assert(slice_eq(buf_slice(&key), set.keys[i]));
        buf_free(&key);
        buf_printf(&b, ")");
    }
    const char *text = arena_strndup(arena, (const char *)b.p, b.len);
    buf_free(&b);
    return text;
}

static const struct {
    const char *key, *doc, *want;
    uint32_t multikey;
    bool sparse;
} cases[] = {
    {"{a: 1}", "{a: 5}", "(5)", 0, false},
    {"{a: 1}", "{b: 5}", "(-)", 0, false},
    {"{a: 1}", "{b: 5}", "", 0, true},
    {"{a: 1}", "{a: null}", "(null)", 0, true},
    {"{a: 1}", "{a: [3, 1, 1, 2]}", "(1) (2) (3)", 1, false},
    {"{a: -1}", "{a: [3, 1, 2]}", "(3) (2) (1)", 1, false},
    {"{a: 1}", "{a: [1, {$numberLong: '1'}]}", "(1)", 1, false},
    {"{a: 1}", "{a: []}", "(undefined)", 1, false},
    {"{a: 1}", "{a: [[1, 2]]}", "([ 1, 2 ])", 1, false},
    {"{a: 1, b: -1}", "{a: 1, b: 'x'}", "(1, \"x\")", 0, false},
    {"{a: 1, b: 1}", "{a: [1, 2], b: 7}", "(1, 7) (2, 7)", 1, false},
    {"{a: 1, b: 1}", "{b: 7}", "(-, 7)", 0, true},
    {"{a: 1, b: 1}", "{c: 7}", "", 0, true},
    {"{'a.b': 1}", "{a: {b: 1}}", "(1)", 0, false},
    {"{'a.b': 1}", "{a: 1}", "(-)", 0, false},
    {"{'a.b': 1}", "{a: [{b: 2}, {b: 1}]}", "(1) (2)", 1, false},
    {"{'a.b': 1}", "{a: [{b: 2}, 5]}", "(-) (2)", 1, false},
    {"{'a.b': 1}", "{a: [{b: 2}, {c: 1}]}", "(2)", 1, true},
    {"{'a.b': 1}", "{a: [{b: [2, 3]}, {b: 1}]}", "(1) (2) (3)", 1, false},
    {"{'a.b': 1}", "{a: []}", "(-)", 1, false},
    {"{'a.b': 1, 'a.c': 1}", "{a: [{b: 1, c: 2}, {b: 3, c: 4}]}", "(1, 2) (3, 4)", 3, false},
    {"{'a.b': 1, 'a.c': 1}", "{a: [{b: [1, 2], c: 5}]}", "(1, 5) (2, 5)", 3, false},
    {"{a: 1, 'a.b': 1}", "{a: [{b: 1}]}", "({ b: 1 }, 1)", 3, false},
    {"{'a.0': 1}", "{a: [7, 8]}", "(7)", 0, false},
    {"{'a.0': 1}", "{a: [[7, 8]]}", "([ 7, 8 ])", 0, false},
    {"{'a.0': 1}", "{a: [[]]}", "(undefined)", 0, false},
    {"{'a.0': 1}", "{a: [{b: 1}, 2, 3]}", "({ b: 1 })", 0, false},
    {"{'a.2': 1}", "{a: [[1, 2, 5]]}", "(-)", 1, false},
    {"{'a.2': 1}", "{a: [[1, 2, 5], [3, 4, 6], [0, 1, 2]]}", "([ 0, 1, 2 ])", 0, false},
    {"{'a.2': 1}", "{a: [[1, 2, 5], {'2': 6}]}", "(-) (6)", 1, false},
    {"{'a.b.2': 1}", "{a: [{b: [[1, 2, 5]]}]}", "(-)", 1, false},
    {"{'a.b.1': 1}", "{a: [{b: [1, 2]}]}", "(2)", 1, false},
    {"{'a.0.b': 1}", "{a: [[{b: 1}]]}", "(1)", 1, false},
    {"{'a.0.b': 1}", "{a: [{b: [1, 2]}]}", "(1) (2)", 1, false},
    {"{'a.0.0.b': 1}", "{a: [[{b: 1}]]}", "(1)", 0, false},
    {"{'a.0.0.b': 1}", "{a: [[{b: [1, 2, 3]}]]}", "(1) (2) (3)", 1, false},
    {"{'a.0.0.b': 1}", "{a: [[[{b: 1}, {b: 2}]]]}", "(1) (2)", 1, false},
    {"{'a.0.0.b': 1}", "{a: [[[[{b: 1}]]]]}", "(-)", 1, false},
    {"{'a.0.b': 1, 'a.c': 1}", "{a: [{b: [1, 2], c: 5}]}", "(1, 5) (2, 5)", 3, false},
    {"{'a.0': 1, 'a.b': 1}", "{a: [{b: 1}, {b: 2}]}", "({ b: 1 }, 1) ({ b: 1 }, 2)", 2, false},
    {"{a: 1, 'a.b': 1, 'a.0.b': 1, 'a.b.0': 1, 'a.0.b.0': 1}", "{a: [{b: [1, 2]}, {b: 3}]}",
     "({ b: 3 }, 3, 1, -, 1) ({ b: 3 }, 3, 2, -, 1) ({ b: [ 1, 2 ] }, 1, 1, 1, 1) ({ b: [ 1, 2 ] }, 2, 2, 1, 1)", 15,
     false},
    {"{'a.1': 1}", "{a: [{'1': 4}]}", "(4)", 1, false},
    {"{'a.0.b': 1}", "{a: [{b: 7}, {b: 8}]}", "(7)", 0, false},
};

START_TEST(keys_are_those_of_the_rules)
{
    uint32_t multikey;
    const char *got = keys(index_of(cases[_i].key, cases[_i].sparse), cases[_i].doc, &multikey);
    ck_assert_msg(strcmp(got, cases[_i].want) == 0, "%s of %s: %s", cases[_i].key, cases[_i].doc, got);
    ck_assert_uint_eq(multikey, cases[_i].multikey);
}
END_TEST

START_TEST(parallel_arrays_are_refused)
{
    struct keyset set;
    ck_assert_int_eq(keygen(index_of("{a: 1, b: 1}", false), J("{a: [1], b: [2]}"), arena, &set, &err), 171);
    ck_assert_str_eq(err.msg, "cannot index parallel arrays [b] [a]");
    ck_assert_int_eq(keygen(index_of("{'a.x': 1, 'a.y': 1}", false), J("{a: {x: [1], y: [2]}}"), arena, &set, &err),
                     171);
    /* a number leaves an array, but it has been there */
    ck_assert_int_eq(keygen(index_of("{a: 1, 'b.0': 1}", false), J("{a: [1], b: [2]}"), arena, &set, &err), 171);
    ck_assert_int_eq(keygen(index_of("{'a.0.b': 1, 'a.c': 1}", false), J("{a: [{b: [1], c: [2]}]}"), arena, &set, &err),
                     171);
}
END_TEST

START_TEST(numbers_that_could_mean_two_things_are_refused)
{
    struct keyset set;
    ck_assert_int_eq(keygen(index_of("{'a.0': 1}", false), J("{a: [{'0': 1}]}"), arena, &set, &err), 16746);
    ck_assert_str_eq(err.msg, "Ambiguous field name found in array (do not use numeric field names in embedded "
                              "elements in an array), field: '0' for array: { 0: { 0: 1 } }");
    ck_assert_int_eq(keygen(index_of("{'a.0': 1}", false), J("{a: [1, {'0': 5}]}"), arena, &set, &err), 16746);
}
END_TEST

START_TEST(a_full_arena_is_an_error)
{
    const struct index_def *one = index_of("{a: 1}", false), *two = index_of("{a: 1, b: 1}", false);
    const uint8_t *doc = J("{a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18], b: 1}");
    for (size_t limit = 1; limit < 3000; limit += 7) {
        struct arena *small = arena_new(limit);
        struct keyset set;
        int rc = keygen(one, doc, small, &set, &err);
        ck_assert(rc == 0 ? set.n == 18 : rc == ERR_EXCEEDED_MEMORY_LIMIT);
        rc = keygen(two, doc, small, &set, &err);
        ck_assert(rc == 0 ? set.n == 18 : rc == ERR_EXCEEDED_MEMORY_LIMIT);
        arena_free(small);
    }
}
END_TEST

START_TEST(differences_are_what_to_remove_and_to_add)
{
    const struct index_def *def = index_of("{a: 1}", false);
    struct keyset before, after, gone, come;
    ck_assert_int_eq(keygen(def, J("{a: [1, 2, 4]}"), arena, &before, &err), 0);
    ck_assert_int_eq(keygen(def, J("{a: [2, 3, 4, 5]}"), arena, &after, &err), 0);
    keyset_diff(&before, &after, arena, &gone, &come);
    ck_assert_uint_eq(gone.n, 1);
    ck_assert_int_eq(bval_i32(gone.values[0][0]), 1);
    ck_assert_uint_eq(come.n, 2);
    ck_assert_int_eq(bval_i32(come.values[0][0]), 3);
    ck_assert_int_eq(bval_i32(come.values[1][0]), 5);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, keys_are_those_of_the_rules, 0, OV_LEN(cases));
    tcase_add_test(tc, parallel_arrays_are_refused);
    tcase_add_test(tc, numbers_that_could_mean_two_things_are_refused);
    tcase_add_test(tc, a_full_arena_is_an_error);
    tcase_add_test(tc, differences_are_what_to_remove_and_to_add);
}
TEST_MAIN("index/keygen", add_tests)
