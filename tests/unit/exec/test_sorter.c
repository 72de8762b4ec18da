/* The blocking sort: order, ties, the first few, the limit of its memory. */
#include "server/query/exec/sorter.h"

#include <stdlib.h>

#include "server/base/rand.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

static struct arena *arena;
static struct err err;

static const struct sort_spec *by_k(const char *json)
{
    struct sort_spec *s = arena_zalloc(arena, sizeof(*s));
    ck_assert_int_eq(sort_parse(arena, J(json), s, &err), 0);
    return s;
}

static void setup(void)
{
    arena = arena_new(0);
    err_init(&err, arena);
}

static void teardown(void)
{
    arena_free(arena);
}

static int add(struct sorter *s, int k, uint64_t rid, size_t pad)
{
    struct buf doc;
    buf_init(&doc);
    size_t at = bw_begin(&doc);
    bw_i32(&doc, "k", k);
    if (pad) {
        char *text = calloc(1, pad);
        bw_bin(&doc, "pad", 0, text, pad);
        free(text);
    }
    bw_end(&doc, at);
    struct exec_row row = {.rid = rid, .ts = rid * 2, .doc = doc.p, .array_index = (int32_t)(rid % 5)};
    int rc = sorter_add(s, &row, &err);
    buf_free(&doc);
    return rc;
}

/* `n` rows with keys below `keys`, in random order: the sorter gives them by key, equal ones as they came. */
static void check_order(int n, int keys, uint64_t top)
{
    struct sorter *s = sorter_new(by_k("{k: 1}"), top);
    struct rand_gen g;
    struct exec_row row;
    int last = -1, given = 0;
    uint64_t last_rid = 0;
    rand_seed(&g, (uint64_t)n);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(add(s, (int)rand_below(&g, (uint64_t)keys), (uint64_t)i + 1, i % 7 * 30), 0);
    sorter_finish(s);
    for (; (!top || given < (int)top) && sorter_next(s, &row); given++) {
        int k = bval_i32(bdoc_get(row.doc, "k"));
        ck_assert(k > last || (k == last && row.rid > last_rid));
        ck_assert_uint_eq(row.ts, row.rid * 2);
        ck_assert_int_eq(row.array_index, (int)(row.rid % 5));
        last = k;
        last_rid = row.rid;
        if (given % 11 == 0) {
            sorter_unget(s);
            ck_assert(sorter_next(s, &row));
            ck_assert_uint_eq(row.rid, last_rid);
        }
    }
    ck_assert_int_eq(given, top ? OV_MIN(n, (int)top) : n);
    if (top && (uint64_t)n > top) { /* the very ones that a full sort gives: the sum of keys tells */
        ck_assert_int_le(last, keys);
        rand_seed(&g, (uint64_t)n);
        int smaller = 0;
        for (int i = 0; i < n; i++)
            smaller += (int)rand_below(&g, (uint64_t)keys) < last;
        ck_assert_int_lt(smaller, (int)top);
    }
    sorter_free(s);
}

START_TEST(all_rows_come_in_order)
{
    check_order(0, 1, 0);
    check_order(1, 1, 0);
    check_order(100, 10, 0);
    check_order(4096, 100000, 0);
    check_order(20000, 3000, 0);
}
END_TEST

START_TEST(the_first_few_are_kept)
{
    check_order(0, 1, 5);
    check_order(3, 10, 5);
    check_order(5000, 1000, 1);
    check_order(5000, 1000, 100);
    check_order(5000, 20, 300);
    check_order(20000, 1000000, 17000); /* too many for a heap */
}
END_TEST

START_TEST(the_memory_is_limited)
{
    struct sorter *s = sorter_new(by_k("{k: 1}"), 0);
    int rc = 0, n = 0;
    while (n < 200 && (rc = add(s, n, (uint64_t)n + 1, 1000000)) == 0)
        n++;
    ck_assert_int_eq(rc, 292);
    ck_assert_str_eq(err.msg, "Sort exceeded memory limit of 104857600 bytes, but did not opt in to external sorting.");
    ck_assert_int_eq(n, 104);
    sorter_free(s);
    s = sorter_new(by_k("{k: 1}"), 10); /* what is thrown out again does not count */
    for (n = 0; n < 300; n++)
        ck_assert_int_eq(add(s, -n, (uint64_t)n + 1, 1000000), 0);
    sorter_free(s);
    s = sorter_new(by_k("{k: 1}"), 150);
    for (n = 0; n < 150 && (rc = add(s, n, (uint64_t)n + 1, 1000000)) == 0; n++)
        ;
    ck_assert_int_eq(rc, 292);
    sorter_free(s);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, all_rows_come_in_order);
    tcase_add_test(tc, the_first_few_are_kept);
    tcase_add_test(tc, the_memory_is_limited);
}
TEST_MAIN("exec/sorter", add_tests)
