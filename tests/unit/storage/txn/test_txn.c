/* The parts of a transaction: batches as bytes, the write set, the lock table between threads, snapshots, epochs. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/rand.h"
#include "storage/common/epoch.h"
#include "storage/common/key_hash.h"
#include "storage/txn/batch.h"
#include "storage/txn/call_states.h"
#include "storage/txn/counts.h"
#include "storage/txn/lock_table.h"
#include "storage/txn/snapshots.h"
#include "storage/txn/write_set.h"
#include "tests/lib/test.h"

#define S(text) slice_str(text)

static void put(struct write_set *w, const char *key, const char *value, enum eng_put_kind kind)
{
    ws_put(w, key_hash(1, S(key)), 1, S(key), S(value), kind);
}

static void del(struct write_set *w, const char *key)
{
    ws_del(w, key_hash(1, S(key)), 1, S(key));
}

/* "i a=1|d b=" for the payload's mutations. */
static const char *told(struct write_set *w, bool one_ts)
{
    static char out[4096];
    struct batch_reader r;
    struct mutation m;
    size_t n = 0;
    int more;
    out[0] = 0;
    if (!batch_open(&r, ws_payload(w, one_ts), 100))
        return "";
    while ((more = batch_next(&r, &m)) == 1)
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%c%d %.*s=%.*s", n ? "|" : "", "?iudsxl"[m.type], (int)m.ts,
                              (int)m.key.n, (const char *)m.key.p, (int)OV_MIN(m.value.n, (size_t)20),
                              (const char *)m.value.p);
    ck_assert_int_eq(more, 0);
    return out;
}

START_TEST(a_batch_tells_what_was_buffered)
{
    struct write_set w;
    ws_init(&w);
    put(&w, "a", "1", ENG_INSERT);
    put(&w, "b", "2", ENG_UPDATE);
    del(&w, "c");
    ws_log(&w, S("note"));
    ws_drop(&w, 7);
    ck_assert_str_eq(told(&w, false), "i100 a=1|u101 b=2|d102 c=|l103 =note|x104 =");
    ck_assert_str_eq(told(&w, true), "i100 a=1|u100 b=2|d100 c=|l100 =note|x100 =");
    ck_assert_uint_eq(w.live, 5);
    ws_clear(&w);
    ck_assert_str_eq(told(&w, false), "");
    ws_deinit(&w);
}
END_TEST

START_TEST(r24_a_batch_holds_a_key_once)
{
    struct write_set w;
    ws_init(&w);
    put(&w, "a", "1", ENG_INSERT);
    put(&w, "a", "2", ENG_UPDATE); /* insert, update = insert */
    put(&w, "b", "1", ENG_UPDATE);
    del(&w, "b"); /* update, delete = delete */
    del(&w, "c");
    put(&w, "c", "1", ENG_INSERT); /* delete, insert = update */
    put(&w, "d", "1", ENG_INSERT);
    del(&w, "d"); /* nothing */
    ck_assert_str_eq(told(&w, true), "i100 a=2|d100 b=|u100 c=1");
    ck_assert_uint_eq(w.live, 3);
    ck_assert(slice_eq(ws_value(&w, ws_find(&w, key_hash(1, S("a")), 1, S("a"))), S("2"))); /* after squeezing, too */
    ck_assert_ptr_null(ws_find(&w, key_hash(1, S("d")), 1, S("d")));
    put(&w, "c", "22", ENG_UPDATE);
    ck_assert_str_eq(told(&w, true), "i100 a=2|d100 b=|u100 c=22");
    ws_deinit(&w);
}
END_TEST

START_TEST(a_splice_on_a_buffered_value_becomes_that_value)
{
    struct write_set w;
    char *big = ov_malloc(5001);
    memset(big, 'x', 5000);
    big[5000] = 0;
    struct eng_edit edit = {.offset = 0, .removed = 1, .added = S("y")};
    ws_init(&w);
    ws_splice(&w, key_hash(1, S("a")), 1, S("a"), 50, S(big), &edit, 1);
    ck_assert_uint_eq(w.ops[0].type, MUT_SPLICE);
    ck_assert_uint_lt(w.payload.len, 100);
    ck_assert(slice_eq(ws_value(&w, &w.ops[0]), S(big)));
    ws_splice(&w, key_hash(1, S("a")), 1, S("a"), 50, S(big), &edit, 1);
    ck_assert_uint_eq(w.ops[1].type, MUT_UPDATE);
    ck_assert_uint_eq(w.live, 1);
    ws_clear(&w);
    ws_splice(&w, key_hash(1, S("a")), 1, S("a"), 50, S("small"), &edit, 1);
    ck_assert_uint_eq(w.ops[0].type, MUT_UPDATE); /* small values are logged whole */
    ws_deinit(&w);
    free(big);
}
END_TEST

START_TEST(own_writes_are_found_and_sorted_among_many)
{
    struct write_set w;
    struct rand_gen g;
    char key[16];
    rand_seed(&g, 3);
    ws_init(&w);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++) {
            snprintf(key, sizeof(key), "%06d", (int)rand_below(&g, 3000));
            if (i % 7 == 0)
                del(&w, key);
            else
                put(&w, key, key, ENG_UPDATE);
            if (i % 500 == 250)
                ws_sort(&w);
        }
        ws_sort(&w);
        for (size_t i = 1; i < w.n_order; i++)
            ck_assert_int_lt(slice_cmp(ws_key(&w, &w.ops[w.order[i - 1]]), ws_key(&w, &w.ops[w.order[i]])), 0);
        ck_assert_uint_eq(w.n_order, w.live);
        for (int i = 0; i < 3000; i++) {
            snprintf(key, sizeof(key), "%06d", i);
            struct ws_op *o = ws_find(&w, key_hash(1, S(key)), 1, S(key));
            size_t at = ws_lower_bound(&w, 1, S(key));
            bool there = at < w.n_order && slice_eq(ws_key(&w, &w.ops[w.order[at]]), S(key));
            ck_assert_int_eq(there, o != NULL);
        }
        if (round == 1)
            ws_clear(&w);
    }
    ws_deinit(&w);
}
END_TEST

START_TEST(splices_give_the_value_or_nothing)
{
    struct buf out;
    uint8_t bytes[200];
    struct eng_edit edits[] = {{0, 1, S("J")}, {5, 0, S(", dear")}, {5, 6, S(" reader")}};
    struct slice base = S("hello world!"), result = S("Jello, dear reader!");
    size_t n = splice_bytes(edits, 3);
    buf_init(&out);
    splice_put(bytes, 42, result, edits, 3);
    ck_assert_uint_eq(splice_base(slice_of(bytes, n)), 42);
    ck_assert(splice_apply(slice_of(bytes, n), base, 100, &out));
    ck_assert(slice_eq(buf_slice(&out), result));
    out.len = 0;
    ck_assert(!splice_apply(slice_of(bytes, n), base, 18, &out));               /* larger than allowed */
    ck_assert(!splice_apply(slice_of(bytes, n), S("hEllo world!"), 100, &out)); /* another base of the same length */
    ck_assert(!splice_apply(slice_of(bytes, n), S("hello"), 100, &out));
    for (size_t cut = 0; cut < n; cut++)
        ck_assert(!splice_apply(slice_of(bytes, cut), base, 100, &out));
    ck_assert_uint_eq(out.len, 0);
    buf_free(&out);
}
END_TEST

/* ---- locks ---- */

enum { THREADS = 4, ROUNDS = 3000 };
static struct lock_table *table;
static uint64_t protected[8]; /* plain: the lock is what keeps threads apart */

static void wake(struct eng_call *c)
{
    (void)c;
}

static void *lock_and_count(void *arg)
{
    struct rand_gen g;
    struct eng_call c;
    rand_seed(&g, (uint64_t)(uintptr_t)arg);
    eng_call_init(&c, wake);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t k = rand_below(&g, OV_LEN(protected));
        struct lock *l;
        if (lock_acquire(table, k, &c, &c, &l) == LOCK_WAIT) {
            if (rand_below(&g, 4) == 0) {
                lock_cancel(table, &c);
                continue;
            }
            while (!lock_granted(table, &c, &l))
                sched_yield();
        }
        protected[k]++;
        lock_release(table, l);
    }
    return NULL;
}

START_TEST(locks_keep_threads_apart)
{
    pthread_t t[THREADS];
    table = lock_table_new();
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, lock_and_count, (void *)(i + 1)), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    lock_table_free(table); /* asserts that nothing is held */
    uint64_t sum = 0;
    for (size_t i = 0; i < OV_LEN(protected); i++)
        sum += protected[i];
    ck_assert_uint_gt(sum, ROUNDS);
}
END_TEST

/* ---- snapshots, epochs, counts ---- */

START_TEST(r19_snapshots_hold_back_what_is_forgotten)
{
    struct snapshots s;
    struct snapshot a = {0}, b = {0}, c = {0};
    size_t n;
    uint64_t *list;
    snapshots_init(&s);
    snapshots_add(&s, &b, 20);
    snapshots_add(&s, &a, 10); /* not in order */
    snapshots_add(&s, &c, 20);
    ck_assert_uint_eq(snapshots_oldest(&s, 99, &n), 10);
    ck_assert_uint_eq(n, 3);
    ck_assert_uint_eq(snapshots_list(&s, 0, &list), 2); /* without repeats */
    ck_assert_uint_eq(list[0], 10);
    ck_assert_uint_eq(list[1], 20);
    free(list);
    snapshots_remove(&s, &a);
    ck_assert_uint_eq(snapshots_forget(&s, 99), 20);
    ck_assert(!snapshots_add_past(&s, &a, 19));
    ck_assert(snapshots_add_past(&s, &a, 20));
    snapshots_remove(&s, &a);
    snapshots_remove(&s, &a); /* harmless */
    snapshots_remove(&s, &b);
    snapshots_remove(&s, &c);
    snapshots_deinit(&s);
}
END_TEST

struct thing {
    struct epoch_garbage garbage;
};
static int freed;

static void count_free(struct epoch_garbage *g)
{
    free(g);
    freed++;
}

START_TEST(what_is_retired_waits_for_the_step)
{
    struct epoch_limbo l;
    _Atomic uint64_t visible = 50;
    epoch_limbo_init(&l);
    freed = 0;
    epoch_enter(&l, &visible);
    ck_assert_uint_eq(epoch_floor(&l, 70), 50);
    ck_assert_uint_eq(epoch_floor(&freed, 70), 70); /* another engine's step */
    epoch_retire(&l, ov_calloc(1, sizeof(struct thing)), count_free);
    epoch_collect(&l);
    ck_assert_int_eq(freed, 0);
    epoch_leave();
    epoch_collect(&l);
    ck_assert_int_eq(freed, 1);
    epoch_enter(&l, &visible);
    epoch_retire(&l, ov_calloc(1, sizeof(struct thing)), count_free);
    epoch_leave();
    epoch_limbo_deinit(&l);
    ck_assert_int_eq(freed, 2);
}
END_TEST

START_TEST(r17_deltas_are_taken_once)
{
    struct counts c;
    struct count_delta *d;
    counts_init(&c);
    counts_add(&c, counts_get(&c, 5), 3);
    counts_add(&c, counts_get(&c, 6), 1);
    counts_add(&c, counts_get(&c, 6), -1);
    ck_assert_uint_eq(counts_take(&c, &d), 1);
    ck_assert_uint_eq(d[0].keyspace, 5);
    ck_assert_int_eq(d[0].delta, 3);
    free(d);
    ck_assert_uint_eq(counts_take(&c, &d), 0);
    free(d);
    ck_assert_int_eq(counts_find(&c, 5)->n, 3);
    ck_assert_ptr_null(counts_find(&c, 7));
    counts_deinit(&c);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_batch_tells_what_was_buffered);
    tcase_add_test(tc, r24_a_batch_holds_a_key_once);
    tcase_add_test(tc, a_splice_on_a_buffered_value_becomes_that_value);
    tcase_add_test(tc, own_writes_are_found_and_sorted_among_many);
    tcase_add_test(tc, splices_give_the_value_or_nothing);
    tcase_add_test(tc, locks_keep_threads_apart);
    tcase_add_test(tc, r19_snapshots_hold_back_what_is_forgotten);
    tcase_add_test(tc, what_is_retired_waits_for_the_step);
    tcase_add_test(tc, r17_deltas_are_taken_once);
}

TEST_MAIN("storage/txn", add_tests)
