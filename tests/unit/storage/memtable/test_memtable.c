/* The memtable against a sorted array, and its readers beside a writer. */
#include "storage/memtable/memtable.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/rand.h"
#include "storage/common/key_hash.h"
#include "storage/memtable/mem_arena.h"
#include "tests/lib/test.h"

static void put(struct memtable *m, uint64_t ks, const char *key, uint64_t ts, enum version_kind kind,
                const char *value)
{
    struct slice k = slice_str(key);
    memtable_add(m, key_hash(ks, k), ks, k, ts, kind, slice_str(value), NULL);
}

static struct mt_version *find(struct memtable *m, uint64_t ks, const char *key, uint64_t ts)
{
    struct slice k = slice_str(key);
    struct mt_node *n = memtable_find(m, key_hash(ks, k), ks, k);
    return n ? mt_version_at(n, ts) : NULL;
}

START_TEST(each_snapshot_sees_its_version)
{
    struct memtable *m = memtable_new(1 << 20);
    put(m, 1, "a", 10, VERSION_INSERT, "ten");
    put(m, 1, "a", 20, VERSION_UPDATE, "twenty");
    put(m, 1, "a", 30, VERSION_DELETE, "");
    ck_assert_ptr_null(find(m, 1, "a", 9));
    ck_assert_mem_eq(find(m, 1, "a", 10)->data, "ten", 3);
    ck_assert_mem_eq(find(m, 1, "a", 29)->data, "twenty", 6);
    ck_assert_int_eq(find(m, 1, "a", 99)->kind, VERSION_DELETE);
    ck_assert_ptr_null(find(m, 2, "a", 99));
    ck_assert_uint_eq(memtable_min_ts(m), 10);
    ck_assert_uint_eq(memtable_max_ts(m), 30);
    ck_assert_uint_eq(memtable_keys(m), 1);
    memtable_unref(m);
}
END_TEST

START_TEST(superseded_versions_go_only_up_to_the_limit)
{
    struct memtable *m = memtable_new(1 << 20);
    struct mt_version *large = NULL;
    put(m, 1, "a", 10, VERSION_INSERT, "ten");
    put(m, 1, "a", 20, VERSION_UPDATE, "twenty");
    put(m, 1, "a", 30, VERSION_UPDATE, "thirty");
    ck_assert_uint_eq(memtable_trim_target(m, 0, 1), 20);
    ck_assert_uint_eq(memtable_trim_target(m, 0, 9), 30);
    ck_assert_uint_eq(memtable_trim_target(m, memtable_superseded(m), 9), 0);
    memtable_trim(m, 19, &large);
    ck_assert_mem_eq(find(m, 1, "a", 10)->data, "ten", 3);
    memtable_trim(m, 20, &large); /* nobody reads before 20 any more */
    ck_assert_ptr_null(find(m, 1, "a", 19));
    ck_assert_mem_eq(find(m, 1, "a", 20)->data, "twenty", 6);
    memtable_trim(m, 99, &large);
    ck_assert_ptr_null(find(m, 1, "a", 29));
    ck_assert_mem_eq(find(m, 1, "a", 30)->data, "thirty", 6);
    ck_assert_uint_eq(memtable_superseded(m), 0);
    memtable_unref(m);
}
END_TEST

START_TEST(memory_of_superseded_versions_is_used_again)
{
    struct memtable *m = memtable_new(1 << 20);
    struct mt_version *large = NULL;
    char value[900];
    memset(value, 'x', sizeof(value));
    uint64_t bytes = 0;
    for (uint64_t ts = 1; ts < 5000; ts++) {
        size_t n = ts % 100 == 0 ? 40000 : 500 + ts % 400;
        uint8_t *big = ov_calloc(1, n);
        struct slice k = slice_str("hot");
        memtable_add(m, key_hash(1, k), 1, k, ts, VERSION_UPDATE, slice_of(big, n), NULL);
        free(big);
        memtable_trim(m, ts, &large);
        while (large) {
            struct mt_version *v = large;
            large = v->older;
            memtable_large_free(v);
        }
        bytes = OV_MAX(bytes, memtable_bytes(m));
    }
    ck_assert_uint_lt(bytes, 50000);
    memtable_unref(m);
}
END_TEST

START_TEST(size_classes_hold_what_they_promise)
{
    struct mem_arena a;
    mem_arena_init(&a);
    for (size_t n = 1; n <= MEM_LARGE; n += n < 600 ? 1 : 97) {
        size_t bytes = n;
        uint8_t cls;
        uint8_t *p = mem_arena_take(&a, &bytes, &cls);
        ck_assert_uint_ge(bytes, n);
        ck_assert_uint_le(bytes, n + n / 8 + 24);
        ck_assert_uint_eq((uintptr_t)p % 8, 0);
        memset(p, 0xee, bytes);
        ck_assert_uint_eq(mem_arena_free(&a, p, cls), bytes);
        size_t again = n;
        ck_assert_ptr_eq(mem_arena_take(&a, &again, &cls), p);
        ck_assert_uint_eq(mem_arena_free(&a, p, cls), bytes);
    }
    mem_arena_deinit(&a);
}
END_TEST

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

START_TEST(nodes_are_in_order_both_ways)
{
    enum { N = 3000 };
    struct memtable *m = memtable_new(1 << 16);
    static char keys[N][16];
    struct rand_gen g;
    rand_seed(&g, 5);
    for (int i = 0; i < N; i++) {
        int n = snprintf(keys[i], sizeof(keys[i]), "%x", (unsigned)rand_below(&g, 1000000));
        if (i % 3 == 0 && i > 0) { /* keys in order, for the finger */
            memcpy(keys[i], keys[i - 1], sizeof(keys[i]));
            strcpy(keys[i] + strlen(keys[i]) - 1, "z");
        }
        ck_assert_int_gt(n, 0);
        put(m, 5, keys[i], (uint64_t)i + 1, VERSION_UPDATE, keys[i]);
        put(m, i % 2 ? 4 : 6, keys[i], (uint64_t)i + 1, VERSION_UPDATE, "other");
    }
    qsort(keys, N, sizeof(keys[0]), by_text);
    int n = 0;
    for (int i = 0; i < N; i++)
        if (n == 0 || strcmp(keys[n - 1], keys[i]) != 0)
            memmove(keys[n++], keys[i], sizeof(keys[0]));
    struct mt_node *at = memtable_seek(m, 5, slice_of(NULL, 0));
    for (int i = 0; i < n; i++, at = mt_next(at))
        ck_assert(at && at->keyspace == 5 && slice_eq(mt_key(at), slice_str(keys[i])));
    ck_assert_uint_eq(at->keyspace, 6);
    at = memtable_seek_before(m, 6, slice_of(NULL, 0));
    for (int i = n - 1; i >= 0; i--, at = mt_prev(at))
        ck_assert(at && at->keyspace == 5 && slice_eq(mt_key(at), slice_str(keys[i])));
    ck_assert_uint_eq(at->keyspace, 4);
    for (int i = 0; i < n; i += 17) {
        at = memtable_seek(m, 5, slice_str(keys[i]));
        ck_assert(slice_eq(mt_key(at), slice_str(keys[i])));
        at = memtable_seek_before(m, 5, slice_str(keys[i]));
        ck_assert(i == 0 ? at->keyspace == 4 : slice_eq(mt_key(at), slice_str(keys[i - 1])));
    }
    at = memtable_first(m);
    ck_assert_ptr_null(mt_prev(at));
    memtable_unref(m);
}
END_TEST

START_TEST(short_keys_that_share_a_prefix_differ)
{
    static const struct {
        const char *p;
        size_t n;
    } keys[] = {
        {"", 0},    {"\0", 1}, {"\0\0", 2}, {"a", 1}, {"a\0", 2}, {"a\0\0\0\0\0\0\0", 8}, {"a\0\0\0\0\0\0\0\0", 9},
        {"a\0b", 3}};
    struct memtable *m = memtable_new(1 << 16);
    for (size_t i = OV_LEN(keys); i-- > 0;) {
        struct slice k = slice_of(keys[i].p, keys[i].n);
        memtable_add(m, key_hash(1, k), 1, k, 10 - i, VERSION_INSERT, k, NULL);
    }
    ck_assert_uint_eq(memtable_keys(m), OV_LEN(keys));
    struct mt_node *n = memtable_first(m);
    for (size_t i = 0; i < OV_LEN(keys); i++, n = mt_next(n))
        ck_assert(slice_eq(mt_key(n), slice_of(keys[i].p, keys[i].n)));
    memtable_unref(m);
}
END_TEST

START_TEST(a_giant_key_fits)
{
    struct memtable *m = memtable_new(1 << 16);
    size_t n = 60000;
    uint8_t *key = ov_calloc(1, n);
    struct slice k = slice_of(key, n);
    memtable_add(m, key_hash(1, k), 1, k, 1, VERSION_INSERT, slice_str("x"), NULL);
    ck_assert(slice_eq(mt_key(memtable_find(m, key_hash(1, k), 1, k)), k));
    memtable_unref(m);
    free(key);
}
END_TEST

/* ---- beside a writer ---- */

static struct memtable *shared;
static _Atomic uint64_t visible;

static void *write_all(void *arg)
{
    struct rand_gen g;
    rand_seed(&g, 9);
    for (uint64_t ts = 1; ts <= 20000; ts++) {
        uint8_t key[8];
        store_be64(key, rand_below(&g, 3000));
        struct slice k = slice_of(key, 8);
        memtable_add(shared, key_hash(1, k), 1, k, ts, VERSION_UPDATE, slice_of(&ts, 8), NULL);
        atomic_store(&visible, ts);
    }
    return arg;
}

START_TEST(readers_see_whole_nodes_beside_a_writer)
{
    pthread_t writer;
    shared = memtable_new(1 << 20);
    atomic_store(&visible, 0);
    ck_assert_int_eq(pthread_create(&writer, NULL, write_all, NULL), 0);
    size_t forwards = 0, before = 0;
    for (uint64_t snapshot = 0; snapshot < 20000;) {
        snapshot = atomic_load(&visible);
        size_t n = 0, back = 0;
        for (struct mt_node *x = memtable_first(shared); x; x = mt_next(x)) {
            struct mt_version *v = mt_version_at(x, snapshot);
            if (v) {
                ck_assert_uint_eq(load_le64(v->data), v->ts);
                n++;
            }
        }
        for (struct mt_node *x = memtable_seek_before(shared, 2, slice_of(NULL, 0)); x; x = mt_prev(x))
            back += mt_version_at(x, snapshot) != NULL;
        ck_assert_uint_eq(n, back);
        ck_assert_uint_ge(n, before);
        before = n;
        forwards++;
    }
    pthread_join(writer, NULL);
    ck_assert_uint_gt(forwards, 0);
    memtable_unref(shared);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, each_snapshot_sees_its_version);
    tcase_add_test(tc, superseded_versions_go_only_up_to_the_limit);
    tcase_add_test(tc, memory_of_superseded_versions_is_used_again);
    tcase_add_test(tc, size_classes_hold_what_they_promise);
    tcase_add_test(tc, nodes_are_in_order_both_ways);
    tcase_add_test(tc, short_keys_that_share_a_prefix_differ);
    tcase_add_test(tc, a_giant_key_fits);
    tcase_add_test(tc, readers_see_whole_nodes_beside_a_writer);
}

TEST_MAIN("storage/memtable", add_tests)
