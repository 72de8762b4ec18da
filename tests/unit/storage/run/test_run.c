/* Runs: what is written is read; damage is told from absence; tiers, filter and cache do what they promise. */
#include "storage/run/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/rand.h"
#include "storage/common/key_hash.h"
#include "storage/run/filter.h"
#include "storage/run/run_set.h"
#include "tests/lib/file_mem.h"
#include "tests/lib/test.h"

static struct file_mem *disk;
static const struct file_ops *files;
static struct epoch_limbo limbo;
static struct cache *cache;
static _Atomic uint64_t visible = 1;

static void set_up(void)
{
    disk = file_mem_new();
    files = file_mem_ops(disk);
    ck_assert_int_eq(files->mkdir(files, "runs"), 0);
    epoch_limbo_init(&limbo);
    cache = cache_new(1 << 20, &limbo);
    epoch_enter(&limbo, &visible);
}

static void tear_down(void)
{
    epoch_leave();
    cache_free(cache);
    epoch_limbo_deinit(&limbo);
    file_mem_free(disk);
}

static struct slice key_of(uint32_t i, char out[16])
{
    return slice_of(out, (size_t)snprintf(out, 16, "key%06u", i));
}

static struct run_writer *writer(uint64_t id, enum eng_compression codec)
{
    struct run_writer *w;
    struct eng_error err;
    ck_assert_int_eq(run_writer_new(files, id, codec, &w, &err), ENG_OK);
    return w;
}

static void add(struct run_writer *w, uint64_t ks, struct slice key, uint64_t ts, uint8_t kind, struct slice value)
{
    struct eng_error err;
    ck_assert_int_eq(run_writer_add(w, ks, key, ts, kind, value, &err), ENG_OK);
}

static struct run *finish(struct run_writer *w, uint64_t id, uint64_t order)
{
    uint64_t bytes, min_ts, max_ts;
    struct eng_error err;
    struct run *r;
    ck_assert_int_eq(run_writer_finish(w, &bytes, &min_ts, &max_ts, &err), ENG_OK);
    run_writer_free(w);
    ck_assert_int_eq(run_open(files, id, order, &r, &err), ENG_OK);
    ck_assert_uint_eq(r->bytes, bytes);
    ck_assert_uint_eq(r->max_ts, max_ts);
    return r;
}

/* Keys from .. to-1 by step, each with a version at ts. */
static struct run *simple(uint64_t id, uint64_t order, uint64_t ks, uint32_t from, uint32_t to, uint32_t step,
                          uint64_t ts, size_t value_len, enum eng_compression codec)
{
    struct run_writer *w = writer(id, codec);
    uint8_t *value = ov_malloc(value_len + 8);
    for (uint32_t i = from; i < to; i += step) {
        char space[16];
        memset(value, (int)('a' + i % 26), value_len);
        add(w, ks, key_of(i, space), ts, 2, slice_of(value, value_len));
    }
    free(value);
    return finish(w, id, order);
}

static struct run_set *set_of(struct run **runs, size_t n)
{
    struct run_set *s = run_set_new(runs, n);
    for (size_t i = 0; i < n; i++)
        run_unref(runs[i]);
    return s;
}

static enum eng_result get(struct run_set *s, uint64_t ks, struct slice key, uint64_t snapshot, struct entry *e)
{
    struct eng_error err;
    return run_set_get(s, cache, key_hash(ks, key), ks, key, snapshot, e, &err);
}

START_TEST(all_codecs_give_back_what_was_written)
{
    for (int codec = 0; codec <= ENG_COMPRESS_SNAPPY; codec++) {
        uint64_t id = 10 + (uint64_t)codec;
        struct run *r = simple(id, 1, 7, 0, 2000, 2, 5, 200, (enum eng_compression)codec);
        ck_assert_uint_eq(r->entries, 1000);
        if (codec)
            ck_assert_uint_lt(r->bytes, 1000 * 100);
        struct run_set *s = set_of(&r, 1);
        for (uint32_t i = 0; i < 2000; i++) {
            char space[16];
            struct entry e;
            enum eng_result got = get(s, 7, key_of(i, space), 5, &e);
            ck_assert_int_eq(got, i % 2 ? ENG_NOT_FOUND : ENG_OK);
            if (got == ENG_OK) {
                ck_assert_uint_eq(e.value.n, 200);
                ck_assert_int_eq(e.value.p[199], (int)('a' + i % 26));
                ck_assert_int_eq(get(s, 7, key_of(i, space), 4, &e), ENG_NOT_FOUND);
            }
        }
        run_set_unref(s);
    }
}
END_TEST

START_TEST(versions_of_a_key_are_told_apart)
{
    struct run_writer *w = writer(1, ENG_COMPRESS_NONE);
    char space[16];
    for (uint32_t i = 0; i < 100; i++)
        for (uint64_t ts = 50; ts > 0; ts -= 10)
            add(w, 3, key_of(i, space), ts, ts == 30 ? 3 : 2, slice_of(&ts, 8));
    struct run *r = finish(w, 1, 1);
    struct run_set *s = set_of(&r, 1);
    for (uint64_t snapshot = 1; snapshot < 60; snapshot++) {
        struct entry e;
        enum eng_result got = get(s, 3, key_of(77, space), snapshot, &e);
        ck_assert_int_eq(got, snapshot < 10 ? ENG_NOT_FOUND : ENG_OK);
        if (got == ENG_OK) {
            ck_assert_uint_eq(e.ts, OV_MIN(snapshot / 10 * 10, (uint64_t)50));
            ck_assert_int_eq(e.kind, e.ts == 30 ? 3 : 2);
        }
    }
    run_set_unref(s);
}
END_TEST

/* Small and large keyspaces in one run, walked from everywhere in both directions. */
START_TEST(walking_finds_every_key_once)
{
    struct run_writer *w = writer(1, ENG_COMPRESS_LZ4);
    static uint8_t value[300];
    char space[16];
    size_t total = 0;
    for (uint64_t ks = 1; ks < 40; ks++)
        for (uint32_t i = 0; i < (ks % 10 == 5 ? 3000 : ks % 4); i++, total++)
            add(w, ks, key_of(i * 2, space), 9, 2, slice_of(value, sizeof(value)));
    struct run *r = finish(w, 1, 1);
    ck_assert_uint_gt(r->n_fragments, 4);
    struct run_set *s = set_of(&r, 1);
    ck_assert_uint_eq(s->n_tiers, 1);
    for (int cached = 0; cached < 2; cached++) {
        struct tier_iter it;
        struct eng_error err;
        size_t n = 0;
        tier_iter_init(&it, &s->tiers[0], cached ? cache : NULL);
        ck_assert_int_eq(tier_iter_seek(&it, 0, slice_of(NULL, 0), &err), ENG_OK);
        for (; tier_iter_valid(&it); n++)
            ck_assert_int_eq(tier_iter_next(&it, &err), ENG_OK);
        ck_assert_uint_eq(n, total);
        ck_assert_int_eq(tier_iter_seek_before(&it, 99, slice_of(NULL, 0), &err), ENG_OK);
        for (; tier_iter_valid(&it); n--)
            ck_assert_int_eq(tier_iter_prev(&it, &err), ENG_OK);
        ck_assert_uint_eq(n, 0);
        for (uint32_t i = 0; i < 6002; i += 61) { /* hits and misses */
            ck_assert_int_eq(tier_iter_seek(&it, 15, key_of(i, space), &err), ENG_OK);
            if (i <= 5998) {
                ck_assert_uint_eq(tier_iter_keyspace(&it), 15);
                ck_assert(slice_eq(tier_iter_key(&it), key_of((i + 1) / 2 * 2, space)));
            } else {
                ck_assert_uint_eq(tier_iter_keyspace(&it), 17);
            }
            ck_assert_int_eq(tier_iter_seek_before(&it, 15, key_of(i, space), &err), ENG_OK);
            ck_assert_uint_eq(tier_iter_keyspace(&it), i ? 15 : 14);
            if (i)
                ck_assert(slice_eq(tier_iter_key(&it), key_of(OV_MIN((i - 1) / 2 * 2, 5998u), space)));
        }
        tier_iter_deinit(&it);
    }
    run_set_unref(s);
}
END_TEST

START_TEST(runs_that_do_not_overlap_share_a_tier)
{
    struct run *runs[5];
    for (uint32_t i = 0; i < 4; i++)
        runs[i] = simple(i + 1, i + 1, 7, i * 100, i * 100 + 100, 1, i + 1, 50, ENG_COMPRESS_NONE);
    runs[4] = simple(9, 9, 7, 150, 250, 1, 9, 50, ENG_COMPRESS_NONE);
    ck_assert(run_overlap(runs[4], runs[1]) && run_overlap(runs[4], runs[2]));
    ck_assert(!run_overlap(runs[4], runs[0]) && !run_overlap(runs[0], runs[1]));
    struct run_set *s = set_of(runs, 5);
    ck_assert_uint_eq(s->n_tiers, 2);
    char space[16];
    struct entry e;
    ck_assert_int_eq(get(s, 7, key_of(160, space), 99, &e), ENG_OK);
    ck_assert_uint_eq(e.ts, 9); /* the newer run's */
    ck_assert_int_eq(get(s, 7, key_of(160, space), 8, &e), ENG_OK);
    ck_assert_uint_eq(e.ts, 2);
    ck_assert_int_eq(get(s, 7, key_of(399, space), 99, &e), ENG_OK);
    ck_assert_uint_eq(e.ts, 4);
    run_set_unref(s);
}
END_TEST

START_TEST(any_flipped_byte_is_noticed)
{
    struct run *r = simple(1, 1, 7, 0, 300, 1, 5, 100, ENG_COMPRESS_LZ4);
    uint64_t bytes = r->bytes;
    run_unref(r);
    for (uint64_t at = 0; at < bytes; at += 37) {
        struct file_mem *copy = file_mem_copy(disk);
        struct cache *own = cache_new(1 << 20, &limbo);
        struct eng_error err = {0};
        char path[RUN_PATH_MAX];
        run_path(1, path);
        file_mem_flip(copy, path, at);
        enum eng_result res = run_open(file_mem_ops(copy), 1, 1, &r, &err);
        if (res == ENG_OK) {
            struct run_set *s = set_of(&r, 1);
            size_t n = 0;
            for (uint32_t i = 0; i < 300 && res == ENG_OK; i++, n++) {
                char space[16];
                struct entry e;
                struct slice key = key_of(i, space);
                res = run_set_get(s, own, key_hash(7, key), 7, key, 9, &e, &err);
            }
            ck_assert_int_eq(res, ENG_CORRUPT);
            run_set_unref(s);
        }
        ck_assert_int_eq(res, ENG_CORRUPT);
        ck_assert_ptr_nonnull(strstr(err.msg, path));
        cache_free(own);
        file_mem_free(copy);
    }
}
END_TEST

START_TEST(a_cut_file_is_noticed)
{
    struct run *r = simple(1, 1, 7, 0, 300, 1, 5, 100, ENG_COMPRESS_LZ4);
    uint64_t bytes = r->bytes;
    struct eng_error err;
    run_unref(r);
    for (uint64_t size = 0; size < bytes; size += 501) {
        char path[RUN_PATH_MAX];
        struct file_mem *copy = file_mem_copy(disk);
        run_path(1, path);
        file_mem_cut(copy, path, size);
        ck_assert_int_eq(run_open(file_mem_ops(copy), 1, 1, &r, &err), ENG_CORRUPT);
        file_mem_free(copy);
    }
}
END_TEST

START_TEST(the_filter_has_no_false_negatives_and_few_positives)
{
    enum { N = 20000 };
    size_t bytes = filter_bytes(N), wrong = 0;
    uint8_t *f = ov_calloc(1, bytes);
    for (uint64_t i = 0; i < N; i++)
        filter_add(f, bytes, key_hash(1, slice_of(&i, 8)));
    for (uint64_t i = 0; i < 2 * N; i++) {
        bool may = filter_may_have(slice_of(f, bytes), key_hash(1, slice_of(&i, 8)));
        ck_assert(may || i >= N);
        wrong += may && i >= N;
    }
    ck_assert_uint_lt(wrong, N / 40);
    free(f);
}
END_TEST

START_TEST(the_cache_stays_below_its_cap_and_blocks_stay_for_the_step)
{
    struct run *r = simple(1, 1, 7, 0, 40000, 1, 5, 100, ENG_COMPRESS_NONE);
    struct run_set *s = set_of(&r, 1);
    struct cache_stats st;
    struct entry first, e;
    char space[16];
    ck_assert_int_eq(get(s, 7, key_of(0, space), 9, &first), ENG_OK);
    for (uint32_t i = 0; i < 40000; i += 40) {
        ck_assert_int_eq(get(s, 7, key_of(i, space), 9, &e), ENG_OK);
        cache_stats(cache, &st);
        ck_assert_uint_le(st.bytes, 1 << 20);
    }
    ck_assert_uint_gt(st.evictions, 100);
    ck_assert_int_eq(first.value.p[50], 'a'); /* evicted, but the step still runs */
    uint64_t misses = st.misses;
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(get(s, 7, key_of(39960, space), 9, &e), ENG_OK);
    cache_stats(cache, &st);
    ck_assert_uint_le(st.misses, misses + 2);
    run_set_unref(s);
}
END_TEST

START_TEST(a_doomed_run_takes_its_file_with_it)
{
    char path[RUN_PATH_MAX];
    struct run *r = simple(1, 1, 7, 0, 10, 1, 5, 10, ENG_COMPRESS_NONE);
    run_path(1, path);
    run_ref(r);
    atomic_store(&r->doomed, true);
    run_unref(r);
    ck_assert(file_mem_exists(disk, path));
    run_unref(r);
    ck_assert(!file_mem_exists(disk, path));
    struct run_writer *w = writer(2, ENG_COMPRESS_NONE); /* never finished */
    run_writer_free(w);
    run_path(2, path);
    ck_assert(!file_mem_exists(disk, path));
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, all_codecs_give_back_what_was_written);
    tcase_add_test(tc, versions_of_a_key_are_told_apart);
    tcase_add_test(tc, walking_finds_every_key_once);
    tcase_add_test(tc, runs_that_do_not_overlap_share_a_tier);
    tcase_add_test(tc, any_flipped_byte_is_noticed);
    tcase_add_test(tc, a_cut_file_is_noticed);
    tcase_add_test(tc, the_filter_has_no_false_negatives_and_few_positives);
    tcase_add_test(tc, the_cache_stays_below_its_cap_and_blocks_stay_for_the_step);
    tcase_add_test(tc, a_doomed_run_takes_its_file_with_it);
}

TEST_MAIN("storage/run", add_tests)
