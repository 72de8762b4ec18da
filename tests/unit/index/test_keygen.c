#include "index/index.h"

#include "server/base/rand.h"
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

static struct index_def parsed(const char *key, const char *more)
{
    struct index_def def;
    const char *spec = arena_printf(arena, "{'key': %s, 'name': 'i'%s}", key, more);
    ck_assert_msg(index_parse(arena, J(spec), &def, &err) == 0, "%s: %s", spec, err.msg);
    return def;
}

/* The values of the keys as one text: "1 2" or "1,x 2,x". */
static const char *keys_text(const struct index_def *def, const char *doc, uint32_t *multikey)
{
    struct keyset set;
    int rc = keygen(def, J(doc), arena, &set, &err);
    if (rc != 0)
        return err.msg;
    const char *text = "";
    for (size_t i = 0; i < set.n; i++)
        for (uint32_t f = 0; f < def->n_fields; f++) {
            const struct bval *v = &set.values[i][f];
            text = arena_printf(arena, "%s%s%s", text,
                                f   ? ","
                                : i ? " "
                                    : "",
                                bval_is_missing(*v)              ? "missing"
                                : v->type == BSON_TYPE_UNDEFINED ? "undefined"
                                                                 : bval_shell(arena, *v));
        }
    for (size_t i = 1; i < set.n; i++)
        ck_assert_int_lt(slice_cmp(set.keys[i - 1], set.keys[i]), 0);
    if (multikey)
        *multikey = set.multikey;
    return text;
}

static const struct {
    const char *key, *more, *doc, *keys;
    uint32_t multikey;
} cases[] = {
    {"{'a': 1}", "", "{'a': 5}", "5", 0},
    {"{'a': 1}", "", "{'b': 5}", "missing", 0},
    {"{'a': 1}", "", "{'a': null}", "null", 0},
    {"{'a': 1}", ", 'sparse': true", "{'b': 5}", "", 0},
    {"{'a': 1}", ", 'sparse': true", "{'a': null}", "null", 0},
    {"{'a': 1}", "", "{'a': [3, 1, 2, 1]}", "1 2 3", 1},
    {"{'a': -1}", "", "{'a': [3, 1, 2]}", "3 2 1", 1},
    {"{'a': 1}", "", "{'a': []}", "undefined", 1},
    {"{'a': 1}", "", "{'a': [[1, 2], 3]}", "3 [ 1, 2 ]", 1},
    {"{'a': 1}", "", "{'a': {'b': 1}}", "{ b: 1 }", 0},
    {"{'a': 1}", "", "{'a': [1, null]}", "null 1", 1},
    {"{'a.b': 1}", "", "{'a': {'b': 7}}", "7", 0},
    {"{'a.b': 1}", "", "{'a': 7}", "missing", 0},
    {"{'a.b': 1}", "", "{'a': [{'b': 1}, {'b': 2}, {'c': 3}]}", "missing 1 2", 1},
    {"{'a.b': 1}", "", "{'a': [{'b': [1, 2]}, {'b': 3}]}", "1 2 3", 1},
    {"{'a.b': 1}", "", "{'a': []}", "missing", 1},
    {"{'a.b': 1}", "", "{'a': [1, 2]}", "missing", 1},
    {"{'a.b': 1}", ", 'sparse': true", "{'a': [1, {'b': 2}]}", "2", 1},
    {"{'a.0': 1}", "", "{'a': [5, 6]}", "5", 0},
    {"{'a.1.b': 1}", "", "{'a': [{'b': 1}, {'b': 2}]}", "2", 0},
    {"{'a.0': 1}", "", "{'a': {'0': 9}}", "9", 0},
    {"{'a': 1, 'b': 1}", "", "{'a': 1, 'b': 'x'}", "1,\"x\"", 0},
    {"{'a': 1, 'b': -1}", "", "{'a': [1, 2], 'b': 3}", "1,3 2,3", 1},
    {"{'b': 1, 'a': 1}", "", "{'a': [1, 2], 'b': 3}", "3,1 3,2", 2},
    {"{'a.x': 1, 'a.y': 1}", "", "{'a': [{'x': 1, 'y': 2}, {'x': 3}]}", "1,2 3,missing", 3},
    {"{'a': 1, 'a.x': 1}", "", "{'a': [{'x': 1}, 5]}", "5,missing { x: 1 },1", 3},
    {"{'a': 1, 'b': 1}", ", 'sparse': true", "{'c': 1}", "", 0},
    {"{'a': 1, 'b': 1}", ", 'sparse': true", "{'b': 1}", "missing,1", 0},
    {"{'a': 1, 'b': 1}", "", "{'a': [1], 'b': [2]}", "cannot index parallel arrays [b] [a]", 0},
    {"{'a.x': 1, 'b.y': 1}", "", "{'a': [{'x': 1}], 'b': [{'y': 2}]}", "cannot index parallel arrays [b] [a]", 0},
    {"{'a.x': 1, 'a.y': 1}", "", "{'a': [{'x': [1, 2], 'y': [1, 2]}]}", "cannot index parallel arrays [y] [x]", 0},
};

START_TEST(documents_have_the_keys_of_the_table)
{
    for (size_t i = 0; i < OV_LEN(cases); i++) {
        struct index_def def = parsed(cases[i].key, cases[i].more);
        uint32_t multikey = 0;
        const char *got = keys_text(&def, cases[i].doc, &multikey);
        ck_assert_msg(strcmp(got, cases[i].keys) == 0, "%s of %s: \"%s\", not \"%s\"", cases[i].key, cases[i].doc, got,
                      cases[i].keys);
        ck_assert_msg(multikey == cases[i].multikey, "%s of %s: multikey %u", cases[i].key, cases[i].doc, multikey);
    }
}
END_TEST

START_TEST(parallel_arrays_have_their_code)
{
    struct index_def def = parsed("{'a': 1, 'b': 1}", "");
    struct keyset set;
    ck_assert_int_eq(keygen(&def, J("{'a': [1], 'b': [2]}"), arena, &set, &err), ERR_CANNOT_INDEX_PARALLEL_ARRAYS);
}
END_TEST

START_TEST(differences_are_what_one_set_has_and_the_other_has_not)
{
    struct index_def def = parsed("{'t': 1}", "");
    struct keyset before, after, removed, added;
    ck_assert_int_eq(keygen(&def, J("{'t': [1, 2, 3, 5]}"), arena, &before, &err), 0);
    ck_assert_int_eq(keygen(&def, J("{'t': [2, 3, 4, 6, 7]}"), arena, &after, &err), 0);
    keyset_diff(&before, &after, arena, &removed, &added);
    ck_assert_uint_eq(removed.n, 2);
    ck_assert_int_eq(bval_i32(removed.values[0][0]), 1);
    ck_assert_int_eq(bval_i32(removed.values[1][0]), 5);
    ck_assert_uint_eq(added.n, 3);
    ck_assert_int_eq(bval_i32(added.values[0][0]), 4);
    ck_assert_int_eq(bval_i32(added.values[2][0]), 7);
    keyset_diff(&before, &before, arena, &removed, &added);
    ck_assert_uint_eq(removed.n + added.n, 0);
}
END_TEST

START_TEST(compound_keys_sort_as_their_values)
{
    static const char *const docs[] = {
        "{'a': null, 'b': 1}",        "{'a': 1, 'b': 9}",           "{'a': 1, 'b': 2}",
        "{'a': 1.5, 'b': null}",      "{'a': 'x', 'b': 'y'}",       "{'a': 'x', 'b': ''}",
        "{'a': 'x\\u0000', 'b': 1}",  "{'a': {'c': 1}, 'b': true}", "{'a': true, 'b': false}",
        "{'a': 10000000000, 'b': 0}",
    };
    struct index_def def = parsed("{'a': 1, 'b': -1}", "");
    for (size_t i = 0; i < OV_LEN(docs); i++)
        for (size_t j = 0; j < OV_LEN(docs); j++) {
            struct keyset x, y;
            ck_assert_int_eq(keygen(&def, J(docs[i]), arena, &x, &err), 0);
            ck_assert_int_eq(keygen(&def, J(docs[j]), arena, &y, &err), 0);
            int want = bval_cmp(x.values[0][0], y.values[0][0]);
            if (want == 0)
                want = -bval_cmp(x.values[0][1], y.values[0][1]);
            int got = slice_cmp(x.keys[0], y.keys[0]);
            ck_assert_msg((want > 0) - (want < 0) == (got > 0) - (got < 0), "%s and %s", docs[i], docs[j]);
        }
}
END_TEST

START_TEST(class_bounds_enclose_their_class_and_nothing_else)
{
    static const char *const docs[] = {"{'v': null}", "{'v': -1e300}", "{'v': 0}",  "{'v': 5}",   "{'v': 'x'}",
                                       "{'v': ''}",   "{'v': {}}",     "{'v': []}", "{'v': true}"};
    for (int desc = 0; desc < 2; desc++)
        for (size_t i = 0; i < OV_LEN(docs); i++)
            for (size_t j = 0; j < OV_LEN(docs); j++) {
                struct bval a = bdoc_get(J(docs[i]), "v"), b = bdoc_get(J(docs[j]), "v");
                struct buf key = {0}, low = {0}, high = {0};
                key_encode(&key, b, desc);
                key_class_low(&low, a.type, desc);
                key_class_high(&high, a.type, desc);
                bool inside = slice_cmp(buf_slice(&low), buf_slice(&key)) <= 0 &&
                              slice_cmp(buf_slice(&key), buf_slice(&high)) < 0;
                ck_assert_msg(inside == (bval_class(a.type) == bval_class(b.type)), "%s %s %d", docs[i], docs[j], desc);
                buf_free(&key);
                buf_free(&low);
                buf_free(&high);
            }
}
END_TEST

/* Random documents with one array at most on the way: the keys are those of a naive expansion. */
START_TEST(random_arrays_give_each_element_once)
{
    struct rand_gen r;
    rand_seed(&r, 7);
    struct index_def def = parsed("{'a.b': 1, 'c': -1}", "");
    for (int round = 0; round < 300; round++) {
        int n = 1 + (int)rand_below(&r, 6), c = (int)rand_below(&r, 100);
        bool seen[10] = {0};
        const char *doc = "";
        for (int i = 0; i < n; i++) {
            int v = (int)rand_below(&r, 10);
            seen[v] = true;
            doc = arena_printf(arena, "%s%s{'b': %d}", doc, i ? ", " : "", v);
        }
        const char *want = "";
        for (int v = 0; v < 10; v++)
            if (seen[v])
                want = arena_printf(arena, "%s%s%d,%d", want, *want ? " " : "", v, c);
        ck_assert_str_eq(keys_text(&def, arena_printf(arena, "{'a': [%s], 'c': %d}", doc, c), NULL), want);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, documents_have_the_keys_of_the_table);
    tcase_add_test(tc, parallel_arrays_have_their_code);
    tcase_add_test(tc, differences_are_what_one_set_has_and_the_other_has_not);
    tcase_add_test(tc, compound_keys_sort_as_their_values);
    tcase_add_test(tc, class_bounds_enclose_their_class_and_nothing_else);
    tcase_add_test(tc, random_arrays_give_each_element_once);
}

TEST_MAIN("index/keygen", add_tests)
