#include "server/base/map.h"

#include <stdio.h>

#include "server/base/rand.h"
#include "tests/lib/test.h"

START_TEST(keys_are_copied_and_values_replaced)
{
    struct map *m = map_new();
    char key[] = "one";
    int a, b;
    ck_assert_ptr_null(map_put(m, slice_str(key), &a));
    key[0] = 'x';
    ck_assert_ptr_eq(map_get(m, slice_str("one")), &a);
    ck_assert_ptr_null(map_get(m, slice_str("xne")));
    ck_assert_ptr_eq(map_put(m, slice_str("one"), &b), &a);
    ck_assert_uint_eq(map_count(m), 1);
    ck_assert_ptr_eq(map_remove(m, slice_str("one")), &b);
    ck_assert_ptr_null(map_remove(m, slice_str("one")));
    ck_assert_uint_eq(map_count(m), 0);
    map_free(m);
    map_free(NULL);
}
END_TEST

START_TEST(keys_may_be_empty_or_hold_zeros)
{
    struct map *m = map_new();
    int a, b, c;
    map_put(m, (struct slice){0}, &a);
    map_put(m, slice_of("\0", 1), &b);
    map_put(m, slice_of("\0\0", 2), &c);
    ck_assert_ptr_eq(map_get(m, slice_str("")), &a);
    ck_assert_ptr_eq(map_get(m, slice_of("\0", 1)), &b);
    ck_assert_ptr_eq(map_get(m, slice_of("\0\0", 2)), &c);
    map_free(m);
}
END_TEST

#define KEYS 500

START_TEST(agrees_with_a_plain_array_through_random_puts_and_removals)
{
    struct map *m = map_new();
    struct rand_gen g;
    static int values[KEYS];
    bool there[KEYS] = {0};
    size_t count = 0;
    rand_seed(&g, 42);
    for (int i = 0; i < 200000; i++) {
        int k = (int)rand_below(&g, KEYS);
        char key[16];
        struct slice s = slice_of(key, (size_t)snprintf(key, sizeof(key), "key%d", k));
        if (rand_next(&g) & 1) {
            ck_assert_ptr_eq(map_put(m, s, &values[k]), there[k] ? &values[k] : NULL);
            count += !there[k];
            there[k] = true;
        } else {
            ck_assert_ptr_eq(map_remove(m, s), there[k] ? &values[k] : NULL);
            count -= there[k];
            there[k] = false;
        }
        ck_assert_uint_eq(map_count(m), count);
    }
    size_t pos = 0, seen = 0;
    struct slice key;
    void *value;
    while (map_next(m, &pos, &key, &value)) {
        ck_assert(there[(int *)value - values]);
        there[(int *)value - values] = false; /* each once */
        seen++;
    }
    ck_assert_uint_eq(seen, count);
    map_free(m);
}
END_TEST

START_TEST(hashes_depend_on_every_byte)
{
    uint8_t p[64] = {0};
    uint64_t h = hash_bytes(p, sizeof(p));
    for (size_t i = 0; i < sizeof(p); i++) {
        p[i] = 1;
        ck_assert_uint_ne(hash_bytes(p, sizeof(p)), h);
        p[i] = 0;
    }
    ck_assert_uint_ne(hash_bytes(p, 63), h);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, keys_are_copied_and_values_replaced);
    tcase_add_test(tc, keys_may_be_empty_or_hold_zeros);
    tcase_add_test(tc, agrees_with_a_plain_array_through_random_puts_and_removals);
    tcase_add_test(tc, hashes_depend_on_every_byte);
}

TEST_MAIN("base/map", add_tests)
