/* Which runs are merged: the choice is made on what is known of the runs, so made-up ones do. */
#include "storage/compact/pick.h"

#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/rand.h"
#include "storage/compact/keep.h"
#include "tests/lib/test.h"

enum { RUNS_MAX = 400 };

static struct run runs[RUNS_MAX];
static struct fragment fragments[RUNS_MAX];
static uint8_t keys[RUNS_MAX][8];
static size_t n_runs;
static uint64_t gone_keyspace;

static bool is_gone(void *arg, uint64_t keyspace)
{
    (void)arg;
    return keyspace == gone_keyspace;
}

/* A run of one fragment with the keys from .. to of a keyspace. */
static struct run *add(uint64_t order, uint64_t bytes, uint64_t ks, uint32_t from, uint32_t to)
{
    size_t i = n_runs++;
    store_be32(keys[i], from);
    store_be32(keys[i] + 4, to);
    fragments[i] = (struct fragment){.first_keyspace = ks,
                                     .last_keyspace = ks,
                                     .first = slice_of(keys[i], 4),
                                     .last = slice_of(keys[i] + 4, 4),
                                     .entries = 1000,
                                     .disk_bytes = bytes,
                                     .max_ts = 1};
    runs[i] = (struct run){.id = i + 1,
                           .order = order,
                           .bytes = bytes,
                           .entries = 1000,
                           .fragments = &fragments[i],
                           .n_fragments = 1,
                           .refs = 1000};
    return &runs[i];
}

static struct run *chosen[RUNS_MAX];

static size_t pick(void)
{
    struct run *all[RUNS_MAX];
    for (size_t i = 0; i < n_runs; i++)
        all[i] = &runs[i];
    struct run_set *s = run_set_new(all, n_runs);
    struct pick_options opt = {.width = 4, .tiny_bytes = 100, .oldest = 100, .gone = is_gone};
    size_t n = pick_merge(s, &opt, chosen);
    run_set_unref(s);
    return n;
}

static bool is_chosen(const struct run *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (chosen[i] == r)
            return true;
    return false;
}

static void set_up(void)
{
    n_runs = 0;
    gone_keyspace = UINT64_MAX;
}

START_TEST(what_overlaps_nothing_is_left_alone)
{
    for (uint32_t i = 0; i < 50; i++)
        add(i, 1000 + i, 7, i * 10, i * 10 + 9);
    ck_assert_uint_eq(pick(), 0);
}
END_TEST

START_TEST(four_of_a_size_are_merged)
{
    for (uint32_t i = 0; i < 3; i++)
        add(i + 1, 1000, 7, i, 100 + i);
    ck_assert_uint_eq(pick(), 0);
    add(4, 1000, 7, 50, 60);
    ck_assert_uint_eq(pick(), 4);
}
END_TEST

START_TEST(a_much_larger_one_below_stays)
{
    struct run *big = add(1, 1000000, 7, 0, 1000);
    for (uint32_t i = 0; i < 4; i++)
        add(i + 2, 1000, 7, i, 100 + i);
    ck_assert_uint_eq(pick(), 4);
    ck_assert(!is_chosen(big, 4));
}
END_TEST

START_TEST(c2_a_run_in_between_joins)
{
    add(1, 1000, 7, 0, 100);
    add(2, 1000, 7, 90, 200);
    struct run *between = add(3, 50000, 7, 150, 300); /* overlaps the second one only, and is newer */
    add(4, 1000, 7, 0, 100);
    add(5, 1000, 7, 0, 100);
    add(6, 1000, 7, 0, 100);
    size_t n = pick();
    ck_assert_uint_ge(n, 4);
    ck_assert(!is_chosen(&runs[1], n) || is_chosen(between, n));
}
END_TEST

START_TEST(busy_runs_are_left_alone)
{
    for (uint32_t i = 0; i < 4; i++)
        add(i + 1, 1000, 7, 0, 100)->busy = i == 1;
    ck_assert_uint_eq(pick(), 0);
}
END_TEST

START_TEST(c4_garbage_is_rewritten)
{
    add(1, 1000, 7, 0, 100);
    add(2, 1000, 8, 0, 100);
    gone_keyspace = 8;
    ck_assert_uint_eq(pick(), 1);
    ck_assert_ptr_eq(chosen[0], &runs[1]);
    gone_keyspace = UINT64_MAX;
    struct run *over = add(3, 10, 7, 50, 60);
    over->fragments[0].deletions = 400;
    ck_assert_uint_eq(pick(), 2);
    ck_assert(is_chosen(over, 2) && is_chosen(&runs[0], 2));
    over->fragments[0].max_ts = 101; /* a snapshot still sees what they delete */
    ck_assert_uint_eq(pick(), 0);
}
END_TEST

START_TEST(c4_tiny_runs_are_gathered)
{
    for (uint32_t i = 0; i < 8; i++)
        add(i + 1, 50, 7, i * 10, i * 10 + 5);
    ck_assert_uint_eq(pick(), 8);
}
END_TEST

START_TEST(very_many_runs_become_fewer)
{
    for (uint32_t i = 0; i < 120; i++)
        add(i + 1, 64u << 20, 7, i * 10, i * 10 + 5);
    size_t n = pick();
    ck_assert_uint_eq(n, 16);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_le(chosen[i]->order, 16); /* the oldest ones */
}
END_TEST

/* C2, for whatever lies there. */
START_TEST(c2_every_choice_is_closed)
{
    struct rand_gen g;
    rand_seed(&g, 11);
    for (int round = 0; round < 3000; round++) {
        n_runs = 0;
        size_t want = 5 + rand_below(&g, 40);
        for (size_t i = 0; i < want; i++) {
            uint32_t from = (uint32_t)rand_below(&g, 1000);
            add(i + 1, 10 + rand_below(&g, 2000), 7, from, from + (uint32_t)rand_below(&g, 300))->busy =
                rand_below(&g, 10) == 0;
            if (rand_below(&g, 4) == 0)
                fragments[i].deletions = rand_below(&g, 1000);
        }
        size_t n = pick();
        uint64_t newest = 0;
        for (size_t i = 0; i < n; i++) {
            newest = OV_MAX(newest, chosen[i]->order);
            ck_assert(!chosen[i]->busy);
        }
        for (size_t i = 0; i < n_runs; i++)
            for (size_t k = 0; k < n && !is_chosen(&runs[i], n); k++)
                if (run_overlap(&runs[i], chosen[k]))
                    ck_assert(runs[i].order > newest || runs[i].order < chosen[k]->order);
    }
}
END_TEST

START_TEST(versions_are_kept_for_those_who_see_them)
{
    uint64_t list[] = {10, 50};
    struct keep k = {.floor = 100, .snapshots = list, .n = 2};
    ck_assert(keep_needs(&k, 10, 11));  /* seen at 10 */
    ck_assert(keep_needs(&k, 5, 20));   /* and here */
    ck_assert(!keep_needs(&k, 11, 50)); /* nobody between */
    ck_assert(keep_needs(&k, 11, 51));
    ck_assert(!keep_needs(&k, 51, 100)); /* superseded at the floor: whoever comes sees the newer one */
    ck_assert(keep_needs(&k, 51, 101));
    ck_assert_uint_eq(keep_oldest(&k), 10);
    k.n = 0;
    ck_assert_uint_eq(keep_oldest(&k), 100);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, what_overlaps_nothing_is_left_alone);
    tcase_add_test(tc, four_of_a_size_are_merged);
    tcase_add_test(tc, a_much_larger_one_below_stays);
    tcase_add_test(tc, c2_a_run_in_between_joins);
    tcase_add_test(tc, busy_runs_are_left_alone);
    tcase_add_test(tc, c4_garbage_is_rewritten);
    tcase_add_test(tc, c4_tiny_runs_are_gathered);
    tcase_add_test(tc, very_many_runs_become_fewer);
    tcase_add_test(tc, c2_every_choice_is_closed);
    tcase_add_test(tc, versions_are_kept_for_those_who_see_them);
}

TEST_MAIN("storage/compact", add_tests)
