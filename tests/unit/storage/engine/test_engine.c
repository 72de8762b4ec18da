/* The engine as a whole, in manual mode on a disk in memory: what its face promises. Tests that begin with a rule's number prove it. */
#include "storage/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "tests/lib/db.h"
#include "tests/lib/test.h"

enum { K = 7, L = 8 };

static struct db d;

static void set_up(void)
{
    db_new(&d);
}

static void tear_down(void)
{
    db_free(&d);
}

static struct eng_txn *begin(uint32_t flags)
{
    eng_step_enter(d.e);
    return eng_begin(d.e, flags, 0);
}

static void end(struct eng_txn *t)
{
    eng_end(t);
    eng_step_leave(d.e);
}

/* ---- reads and writes ---- */

START_TEST(what_was_put_is_read)
{
    db_put(&d, K, "a", "1");
    db_put(&d, K, "b", "2");
    db_put(&d, L, "a", "other keyspace");
    ck_assert_str_eq(db_get(&d, K, "a"), "1");
    ck_assert_str_eq(db_get(&d, L, "a"), "other keyspace");
    ck_assert_ptr_null(db_get(&d, K, "c"));
    db_del(&d, K, "a");
    ck_assert_ptr_null(db_get(&d, K, "a"));
    ck_assert_int_eq(eng_count(d.e, K), 1);
}
END_TEST

START_TEST(empty_values_exist)
{
    struct eng_row row;
    db_put(&d, K, "a", "");
    struct eng_txn *t = begin(0);
    ck_assert_int_eq(eng_get(t, K, S("a"), 0, &row, &d.c), ENG_OK);
    ck_assert_ptr_nonnull(row.value.p);
    ck_assert_uint_eq(row.value.n, 0);
    end(t);
}
END_TEST

START_TEST(a_snapshot_does_not_move)
{
    db_put(&d, K, "a", "old");
    struct eng_txn *t = begin(0);
    eng_txn_hold(t);
    eng_step_leave(d.e);
    db_put(&d, K, "a", "new");
    db_put(&d, K, "b", "1");
    char filling[1001];
    memset(filling, 'x', sizeof(filling) - 1);
    filling[sizeof(filling) - 1] = 0;
    for (int i = 0; i < 300; i++) /* superseded versions are let go; not this one */
        db_put(&d, L, "x", filling);
    eng_step_enter(d.e);
    ck_assert_str_eq(db_read(&d, t, K, "a", 0), "old");
    ck_assert_ptr_null(db_read(&d, t, K, "b", 0));
    ck_assert_str_eq(db_read(&d, t, K, "a", ENG_GET_NEWEST), "new");
    eng_refresh(t);
    ck_assert_str_eq(db_read(&d, t, K, "a", 0), "new");
    end(t);
}
END_TEST

START_TEST(a_snapshot_survives_flush_and_merge)
{
    db_put(&d, K, "a", "old");
    db_put(&d, K, "b", "gone soon");
    struct eng_txn *t = begin(0);
    eng_txn_hold(t);
    eng_step_leave(d.e);
    for (int i = 0; i < 6; i++) {
        db_put(&d, K, "a", "new");
        if (i == 2)
            db_del(&d, K, "b");
        db_flush(&d);
    }
    db_work(&d);
    eng_step_enter(d.e);
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K}), "a=old b=gone soon");
    ck_assert_str_eq(db_read(&d, t, K, "b", 0), "gone soon");
    end(t);
    ck_assert_str_eq(db_all(&d, K, false), "a=new");
}
END_TEST

START_TEST(own_writes_are_read_back)
{
    struct eng_row row;
    db_put(&d, K, "a", "1");
    struct eng_txn *t = begin(0);
    eng_put(t, K, S("b"), S("mine"), ENG_INSERT);
    eng_del(t, K, S("a"));
    ck_assert_ptr_null(db_read(&d, t, K, "a", 0));
    ck_assert_int_eq(eng_get(t, K, S("b"), ENG_GET_NEWEST, &row, &d.c), ENG_OK);
    for (int i = 0; i < 1000; i++) { /* moves the buffer that the row might lie in */
        char key[16];
        snprintf(key, sizeof(key), "x%d", i);
        eng_put(t, L, S(key), S("filling"), ENG_INSERT);
    }
    ck_assert_mem_eq(row.value.p, "mine", 4);
    ck_assert_uint_eq(row.ts, 0);
    eng_abort(t);
    ck_assert_str_eq(db_read(&d, t, K, "a", 0), "1");
    ck_assert_ptr_null(db_read(&d, t, K, "b", 0));
    end(t);
}
END_TEST

START_TEST(r13_a_commit_is_seen_by_the_next_statement)
{
    uint64_t ts;
    struct eng_txn *t = begin(0);
    eng_put(t, K, S("a"), S("1"), ENG_INSERT);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, &ts), ENG_OK);
    ck_assert_uint_ge(eng_snapshot(t), ts);
    ck_assert_uint_ge(eng_visible(d.e), ts);
    ck_assert_str_eq(db_read(&d, t, K, "a", 0), "1");
    end(t);
}
END_TEST

START_TEST(operations_of_a_batch_have_timestamps_in_a_row)
{
    uint64_t last;
    struct eng_row a, b, z;
    struct eng_txn *t = begin(0);
    eng_put(t, K, S("a"), S("1"), ENG_INSERT);
    eng_log(t, S("record"));
    eng_put(t, K, S("b"), S("2"), ENG_INSERT);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, &last), ENG_OK);
    ck_assert_int_eq(eng_get(t, K, S("a"), 0, &a, &d.c), ENG_OK);
    ck_assert_int_eq(eng_get(t, K, S("b"), 0, &b, &d.c), ENG_OK);
    ck_assert_uint_eq(b.ts, last);
    ck_assert_uint_eq(a.ts, last - 2);
    end(t);
    t = begin(ENG_TXN_MULTI);
    eng_put(t, K, S("y"), S("1"), ENG_INSERT);
    eng_put(t, K, S("z"), S("2"), ENG_INSERT);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, &last), ENG_OK);
    end(t);
    t = begin(0);
    ck_assert_int_eq(eng_get(t, K, S("y"), 0, &a, &d.c), ENG_OK);
    ck_assert_int_eq(eng_get(t, K, S("z"), 0, &z, &d.c), ENG_OK);
    ck_assert_uint_eq(a.ts, last);
    ck_assert_uint_eq(z.ts, last);
    end(t);
}
END_TEST

START_TEST(multi_get_finds_each)
{
    struct slice keys[40];
    char names[40][16];
    struct eng_row rows[40];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "k%02d", i);
        keys[i] = S(names[i]);
        if (i % 3)
            db_put(&d, K, names[i], names[i]);
        if (i == 20)
            db_flush(&d);
    }
    struct eng_txn *t = begin(0);
    ck_assert_int_eq(DB_WAIT(&d, eng_multi_get(t, K, keys, 40, 0, rows, &d.c)), ENG_OK);
    for (int i = 0; i < 40; i++) {
        if (i % 3)
            ck_assert(slice_eq(rows[i].value, keys[i]));
        else
            ck_assert_ptr_null(rows[i].value.p);
    }
    end(t);
}
END_TEST

START_TEST(large_values_go_everywhere)
{
    size_t n = 16u << 20;
    uint8_t *big = ov_malloc(n);
    for (size_t i = 0; i < n; i++)
        big[i] = (uint8_t)(i * 7 + i / 1000);
    struct eng_row row;
    for (int round = 0; round < 3; round++) {
        struct eng_txn *t = begin(0);
        big[5] = (uint8_t)round;
        eng_put(t, K, S("big"), slice_of(big, n), round ? ENG_UPDATE : ENG_INSERT);
        ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_OK);
        ck_assert_int_eq(eng_get(t, K, S("big"), 0, &row, &d.c), ENG_OK);
        ck_assert(slice_eq(row.value, slice_of(big, n)));
        end(t);
    }
    db_flush(&d);
    for (int round = 0; round < 2; round++) {
        struct eng_txn *t = begin(0);
        ck_assert_int_eq(eng_get(t, K, S("big"), 0, &row, &d.c), ENG_OK);
        ck_assert(slice_eq(row.value, slice_of(big, n)));
        end(t);
        db_reopen(&d);
    }
    free(big);
}
END_TEST

START_TEST(limits_are_refused_and_nothing_happens)
{
    size_t n = (size_t)eng_caps(d.e)->max_value_bytes + 1;
    uint8_t *big = ov_calloc(1, n);
    struct eng_txn *t = begin(0);
    eng_put(t, K, S("small"), S("1"), ENG_INSERT);
    eng_put(t, K, S("big"), slice_of(big, n), ENG_INSERT);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_TOO_LARGE);
    end(t);
    ck_assert_ptr_null(db_get(&d, K, "small"));
    ck_assert_int_eq(eng_count(d.e, K), 0);
    free(big);
    n = (size_t)eng_caps(d.e)->max_key_bytes;
    big = ov_calloc(1, n + 1);
    for (size_t more = 0; more < 2; more++) { /* the longest key; one byte too many */
        t = begin(0);
        eng_put(t, K, slice_of(big, n + more), S("long"), ENG_INSERT);
        ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), more ? ENG_TOO_LARGE : ENG_OK);
        end(t);
    }
    db_kill(&d);
    db_flush(&d);
    db_reopen(&d);
    struct eng_row row;
    t = begin(0);
    ck_assert_int_eq(DB_WAIT(&d, eng_get(t, K, slice_of(big, n), 0, &row, &d.c)), ENG_OK);
    ck_assert(slice_eq(row.value, S("long")));
    end(t);
    ck_assert_int_eq(eng_count(d.e, K), 1);
    free(big);
}
END_TEST

/* ---- preconditions ---- */

START_TEST(preconditions_decide)
{
    static const struct {
        const char *key;
        enum eng_pre pre;
        enum eng_result want;
    } cases[] = {
        {"there", ENG_PRE_ABSENT, ENG_EXISTS},  {"there", ENG_PRE_PRESENT, ENG_OK},
        {"gone", ENG_PRE_ABSENT, ENG_OK},       {"gone", ENG_PRE_PRESENT, ENG_EXISTS},
        {"never", ENG_PRE_PRESENT, ENG_EXISTS}, {"there", ENG_PRE_VERSION, ENG_OK},
    };
    db_put(&d, K, "there", "1");
    db_put(&d, K, "gone", "1");
    db_del(&d, K, "gone");
    for (int flushed = 0; flushed < 2; flushed++) {
        for (size_t i = 0; i < OV_LEN(cases); i++) {
            struct eng_row row;
            uint64_t keyspace;
            struct eng_txn *t = begin(0);
            ck_assert_int_eq(eng_get(t, K, S("there"), 0, &row, &d.c), ENG_OK);
            eng_require(t, K, S(cases[i].key), cases[i].pre, row.ts);
            eng_put(t, L, S("x"), S("y"), ENG_UPDATE);
            ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), cases[i].want);
            if (cases[i].want == ENG_EXISTS) {
                ck_assert(slice_eq(eng_txn_failed_key(t, &keyspace), S(cases[i].key)));
                ck_assert_uint_eq(keyspace, K);
            }
            ck_assert_uint_eq(eng_txn_writes(t), 0);
            end(t);
        }
        db_flush(&d);
    }
    struct eng_txn *t = begin(0);
    eng_require(t, K, S("there"), ENG_PRE_VERSION, 1);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_EXISTS);
    end(t);
}
END_TEST

/* ---- locks and conflicts ---- */

static int wakes;

static void count_wake(struct eng_call *c)
{
    (void)c;
    wakes++;
}

START_TEST(locks_are_first_come_first_served)
{
    struct eng_call c[3];
    eng_step_enter(d.e);
    struct eng_txn *t[3];
    for (int i = 0; i < 3; i++) {
        t[i] = eng_begin(d.e, 0, 0);
        eng_call_init(&c[i], count_wake);
    }
    wakes = 0;
    ck_assert_int_eq(eng_lock(t[0], K, S("a"), &c[0]), ENG_OK);
    ck_assert_int_eq(eng_lock(t[0], K, S("a"), &c[0]), ENG_OK); /* one lock */
    ck_assert_int_eq(eng_lock(t[1], K, S("a"), &c[1]), ENG_PENDING);
    ck_assert_int_eq(eng_lock(t[2], K, S("a"), &c[2]), ENG_PENDING);
    ck_assert_int_eq(eng_lock(t[2], K, S("b"), &c[0]), ENG_OK); /* another key is free */
    eng_abort(t[0]);
    ck_assert_int_eq(wakes, 1);
    ck_assert_int_eq(eng_lock(t[2], K, S("a"), &c[2]), ENG_PENDING); /* not its turn */
    ck_assert_int_eq(eng_lock(t[1], K, S("a"), &c[1]), ENG_OK);
    eng_put(t[1], K, S("a"), S("1"), ENG_INSERT);
    ck_assert_int_eq(db_commit(&d, t[1], ENG_DUR_LOCAL, NULL), ENG_OK);
    ck_assert_int_eq(wakes, 2);
    ck_assert_int_eq(eng_lock(t[2], K, S("a"), &c[2]), ENG_OK);
    ck_assert_str_eq(db_read(&d, t[2], K, "a", ENG_GET_NEWEST), "1");
    for (int i = 0; i < 3; i++)
        eng_end(t[i]);
    eng_step_leave(d.e);
    struct eng_stats st;
    eng_stats(d.e, &st);
    ck_assert_uint_eq(st.lock_waits, 2);
}
END_TEST

START_TEST(a_cancelled_wait_is_over)
{
    struct eng_call c[3];
    eng_step_enter(d.e);
    struct eng_txn *t[3];
    for (int i = 0; i < 3; i++) {
        t[i] = eng_begin(d.e, 0, 0);
        eng_call_init(&c[i], count_wake);
        ck_assert_int_eq(eng_lock(t[i], K, S("a"), &c[i]), i ? ENG_PENDING : ENG_OK);
    }
    wakes = 0;
    eng_call_cancel(d.e, &c[1]);
    eng_abort(t[0]);
    ck_assert_int_eq(wakes, 1);
    eng_call_cancel(d.e, &c[2]); /* granted meanwhile: given back */
    ck_assert_int_eq(eng_lock(t[0], K, S("a"), &c[0]), ENG_OK);
    for (int i = 0; i < 3; i++)
        eng_end(t[i]);
    eng_step_leave(d.e);
}
END_TEST

START_TEST(r23_the_first_to_update_wins)
{
    db_put(&d, K, "a", "1");
    db_put(&d, K, "gone", "1");
    db_put(&d, K, "calm", "1");
    for (int flushed = 0; flushed < 2; flushed++) {
        eng_step_enter(d.e);
        struct eng_txn *t = eng_begin(d.e, ENG_TXN_MULTI, 0);
        eng_step_leave(d.e);
        db_put(&d, K, "a", "2");
        db_del(&d, K, "gone"); /* a deletion is a newer version, too */
        if (flushed)
            db_flush(&d);
        eng_step_enter(d.e);
        ck_assert_int_eq(eng_lock(t, K, S("calm"), &d.c), ENG_OK);
        ck_assert_int_eq(eng_lock(t, K, S("a"), &d.c), ENG_CONFLICT);
        ck_assert_int_eq(eng_lock(t, K, S("gone"), &d.c), ENG_CONFLICT);
        eng_end(t);
        /* A single-document write re-reads instead. */
        t = eng_begin(d.e, 0, 0);
        ck_assert_int_eq(eng_lock(t, K, S("a"), &d.c), ENG_OK);
        ck_assert_str_eq(db_read(&d, t, K, "a", ENG_GET_NEWEST), "2");
        end(t);
        db_put(&d, K, "gone", "1");
    }
    /* A held lock is a conflict at once. */
    eng_step_enter(d.e);
    struct eng_txn *a = eng_begin(d.e, 0, 0), *b = eng_begin(d.e, ENG_TXN_MULTI, 0);
    ck_assert_int_eq(eng_lock(a, K, S("a"), &d.c), ENG_OK);
    ck_assert_int_eq(eng_lock(b, K, S("a"), &d.c), ENG_CONFLICT);
    eng_end(b);
    end(a);
}
END_TEST

START_TEST(r22_keys_of_a_unique_index_are_locked_until_published)
{
    struct eng_call c;
    eng_call_init(&c, count_wake);
    eng_step_enter(d.e);
    struct eng_txn *a = eng_begin(d.e, 0, 0), *b = eng_begin(d.e, 0, 0);
    ck_assert_int_eq(eng_lock(a, L, S("unique"), &d.c), ENG_OK);
    ck_assert_int_eq(eng_lock(b, L, S("unique"), &c), ENG_PENDING);
    eng_put(a, L, S("unique"), S("a"), ENG_INSERT);
    wakes = 0;
    ck_assert_int_eq(db_commit(&d, a, ENG_DUR_LOCAL, NULL), ENG_OK);
    ck_assert_int_eq(wakes, 1);
    ck_assert_int_eq(eng_lock(b, L, S("unique"), &c), ENG_OK);
    ck_assert_str_eq(db_read(&d, b, L, "unique", ENG_GET_NEWEST), "a"); /* b's snapshot is older; the check sees it */
    ck_assert_ptr_null(db_read(&d, b, L, "unique", 0));
    eng_end(a);
    end(b);
}
END_TEST

/* ---- scans ---- */

START_TEST(scans_see_all_layers_in_order)
{
    db_put(&d, K, "a", "1");
    db_put(&d, K, "c", "1");
    db_put(&d, K, "e", "1");
    db_flush(&d);
    db_put(&d, K, "b", "2");
    db_put(&d, K, "c", "2");
    db_put(&d, K, "f", "2");
    db_flush(&d);
    db_del(&d, K, "a");
    db_put(&d, K, "d", "3");
    db_put(&d, K, "e", "3");
    db_put(&d, L, "a", "no");
    db_put(&d, K - 1, "z", "no");
    ck_assert_str_eq(db_all(&d, K, false), "b=2 c=2 d=3 e=3 f=2");
    ck_assert_str_eq(db_all(&d, K, true), "f=2 e=3 d=3 c=2 b=2");
    struct eng_txn *t = begin(0);
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K, .from = S("c"), .to = S("e")}), "c=2 d=3");
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K, .from = S("c"), .to = S("e"), .reverse = true}),
                     "d=3 c=2");
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K, .from = S("bb"), .to = S("cc")}), "c=2");
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K, .from = S("c"), .to = S("c")}), "");
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K, .from = S("e")}), "e=3 f=2");
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K, .to = S("c"), .reverse = true}), "b=2");
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = 99}), "");
    end(t);
}
END_TEST

START_TEST(a_scan_moves_where_it_is_told)
{
    struct eng_page page;
    for (char c = 'a'; c <= 'j'; c++) {
        char key[2] = {c, 0};
        db_put(&d, K, key, "x");
        if (c == 'e')
            db_flush(&d);
    }
    for (int reverse = 0; reverse < 2; reverse++) {
        struct eng_txn *t = begin(0);
        struct eng_scan *s = eng_scan_open(t, &(struct eng_range){.keyspace = K, .page_rows = 1, .reverse = reverse});
        ck_assert_int_eq(eng_scan_next(s, &page, &d.c), ENG_OK);
        ck_assert(slice_eq(page.rows[0].key, S(reverse ? "j" : "a")));
        eng_scan_seek(s, S("d"));
        ck_assert_int_eq(eng_scan_next(s, &page, &d.c), ENG_OK);
        ck_assert(slice_eq(page.rows[0].key, S("d"))); /* the key itself */
        ck_assert_int_eq(eng_scan_next(s, &page, &d.c), ENG_OK);
        ck_assert(slice_eq(page.rows[0].key, S(reverse ? "c" : "e")));
        eng_scan_seek(s, S(reverse ? "bb" : "gg"));
        ck_assert_int_eq(eng_scan_next(s, &page, &d.c), ENG_OK);
        ck_assert(slice_eq(page.rows[0].key, S(reverse ? "b" : "h")));
        eng_scan_close(s);
        end(t);
    }
}
END_TEST

START_TEST(a_held_scan_keeps_its_snapshot_over_steps_and_commits)
{
    struct eng_page page;
    for (char c = 'a'; c <= 'e'; c++) {
        char key[2] = {c, 0};
        db_put(&d, K, key, "old");
    }
    struct eng_txn *t = begin(0);
    struct eng_scan *s = eng_scan_open(t, &(struct eng_range){.keyspace = K, .page_rows = 2});
    ck_assert_int_eq(eng_scan_next(s, &page, &d.c), ENG_OK);
    ck_assert_uint_eq(page.n, 2);
    eng_put(t, K, S("c"), S("new"), ENG_UPDATE); /* the transaction's snapshot moves on, the scan's does not */
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    eng_txn_hold(t);
    eng_step_leave(d.e);
    db_put(&d, K, "d", "newer");
    db_put(&d, K, "f", "newer");
    db_flush(&d);
    db_work(&d);
    eng_step_enter(d.e);
    ck_assert_int_eq(DB_WAIT(&d, eng_scan_next(s, &page, &d.c)), ENG_OK);
    ck_assert_uint_eq(page.n, 2);
    ck_assert(slice_eq(page.rows[0].key, S("c")));
    ck_assert(slice_eq(page.rows[0].value, S("old")));
    ck_assert(slice_eq(page.rows[1].value, S("old")));
    ck_assert_int_eq(DB_WAIT(&d, eng_scan_next(s, &page, &d.c)), ENG_OK);
    ck_assert_uint_eq(page.n, 1);
    ck_assert(slice_eq(page.rows[0].key, S("e")));
    ck_assert_str_eq(db_read(&d, t, K, "c", 0), "new");
    eng_scan_close(s);
    end(t);
}
END_TEST

START_TEST(r19_a_released_scan_goes_on_by_key_at_a_newer_snapshot)
{
    struct eng_page page;
    for (char c = 'a'; c <= 'e'; c++) {
        char key[2] = {c, 0};
        db_put(&d, K, key, "old");
    }
    struct eng_txn *t = begin(0);
    struct eng_scan *s = eng_scan_open(t, &(struct eng_range){.keyspace = K, .page_rows = 2});
    ck_assert_int_eq(eng_scan_next(s, &page, &d.c), ENG_OK);
    eng_txn_hold(t);
    eng_txn_release(t);
    eng_step_leave(d.e);
    struct eng_stats st;
    eng_stats(d.e, &st);
    ck_assert_uint_eq(st.snapshots_open, 0);
    db_put(&d, K, "a", "new");
    db_put(&d, K, "d", "new");
    db_del(&d, K, "b"); /* the last key it has seen */
    db_flush(&d);
    eng_step_enter(d.e);
    ck_assert_int_eq(DB_WAIT(&d, eng_scan_next(s, &page, &d.c)), ENG_OK);
    ck_assert(slice_eq(page.rows[0].key, S("c")));
    ck_assert(slice_eq(page.rows[1].value, S("new")));
    eng_scan_close(s);
    end(t);
}
END_TEST

START_TEST(r19_a_read_at_a_lost_time_is_refused)
{
    db_put(&d, K, "a", "1");
    uint64_t then = eng_visible(d.e);
    db_put(&d, K, "a", "2");
    eng_step_enter(d.e);
    struct eng_row row;
    struct eng_txn *t = eng_begin(d.e, ENG_TXN_READ_ONLY, then);
    ck_assert_str_eq(db_read(&d, t, K, "a", 0), "1"); /* still there */
    eng_step_leave(d.e);
    db_put(&d, K, "a", "3");
    db_flush(&d);
    eng_step_enter(d.e);
    ck_assert_str_eq(db_read(&d, t, K, "a", 0), "1"); /* whoever reads there keeps it */
    struct eng_txn *late = eng_begin(d.e, ENG_TXN_READ_ONLY, then - 1);
    ck_assert_int_eq(eng_get(late, K, S("a"), 0, &row, &d.c), ENG_SNAPSHOT_TOO_OLD);
    eng_end(late);
    end(t);
}
END_TEST

START_TEST(a_multi_transaction_scans_its_own_writes)
{
    db_put(&d, K, "a", "1");
    db_put(&d, K, "c", "1");
    db_put(&d, K, "e", "1");
    struct eng_txn *t = begin(ENG_TXN_MULTI);
    eng_put(t, K, S("b"), S("mine"), ENG_INSERT);
    eng_put(t, K, S("c"), S("mine"), ENG_UPDATE);
    eng_del(t, K, S("e"));
    eng_put(t, K, S("z"), S("mine"), ENG_INSERT);
    eng_put(t, K, S("z"), S("mine again"), ENG_UPDATE);
    eng_put(t, L, S("a"), S("no"), ENG_INSERT);
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K}), "a=1 b=mine c=mine z=mine again");
    ck_assert_str_eq(db_scan(&d, t, &(struct eng_range){.keyspace = K, .reverse = true}),
                     "z=mine again c=mine b=mine a=1");
    struct eng_page page;
    struct eng_scan *s = eng_scan_open(t, &(struct eng_range){.keyspace = K, .page_rows = 2});
    ck_assert_int_eq(eng_scan_next(s, &page, &d.c), ENG_OK);
    eng_put(t, K, S("aa"), S("behind"), ENG_INSERT);
    eng_put(t, K, S("bb"), S("ahead"), ENG_INSERT);
    ck_assert_int_eq(eng_scan_next(s, &page, &d.c), ENG_OK);
    ck_assert(slice_eq(page.rows[0].key, S("bb")));
    ck_assert(slice_eq(page.rows[1].key, S("c")));
    eng_scan_close(s);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    end(t);
    ck_assert_str_eq(db_all(&d, K, false), "a=1 aa=behind b=mine bb=ahead c=mine z=mine again");
    ck_assert_int_eq(eng_count(d.e, K), 6);
}
END_TEST

START_TEST(a_scan_over_many_deletions_lets_others_run)
{
    enum { MANY = 50000 };
    for (int last = 0; last < 2; last++) {
        for (int from = 0; from < MANY; from += 500) {
            struct eng_txn *t = begin(0);
            for (int i = from; i < from + 500; i++) {
                uint8_t key[4];
                store_be32(key, (uint32_t)i);
                if (last == 0)
                    eng_put(t, K, slice_of(key, 4), S("x"), ENG_INSERT);
                else if (i != MANY - 1)
                    eng_del(t, K, slice_of(key, 4));
            }
            ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_OK);
            end(t);
        }
    }
    for (int reverse = 0; reverse < 2; reverse++) {
        struct eng_page page;
        enum eng_result r;
        int pending = 0, rows = 0;
        struct eng_txn *t = begin(0);
        struct eng_scan *s = eng_scan_open(t, &(struct eng_range){.keyspace = K, .reverse = reverse});
        do {
            while ((r = eng_scan_next(s, &page, &d.c)) == ENG_PENDING) {
                ck_assert(atomic_exchange(&d.woken, 0));
                eng_txn_hold(t);
                eng_step_leave(d.e); /* as after a WAIT */
                eng_step_enter(d.e);
                pending++;
            }
            ck_assert_int_eq(r, ENG_OK);
            rows += (int)page.n;
        } while (page.more);
        ck_assert_int_ge(pending, 1);
        ck_assert_int_le(pending, 3);
        ck_assert_int_eq(rows, 1);
        eng_scan_close(s);
        end(t);
    }
}
END_TEST

START_TEST(r26_the_last_key_is_found_without_the_deleted_ones)
{
    uint8_t out[8];
    size_t n;
    struct eng_txn *t = begin(0);
    ck_assert_int_eq(DB_WAIT(&d, eng_last_key(t, K, out, sizeof(out), &n, &d.c)), ENG_NOT_FOUND);
    end(t);
    db_put(&d, K, "a", "1");
    db_put(&d, K, "m", "1");
    db_put(&d, K, "z", "1");
    db_put(&d, L, "x", "1");
    for (int flushed = 0; flushed < 2; flushed++) {
        t = begin(0);
        ck_assert_int_eq(DB_WAIT(&d, eng_last_key(t, K, out, sizeof(out), &n, &d.c)), ENG_OK);
        ck_assert_mem_eq(out, flushed ? "m" : "z", 1);
        end(t);
        db_flush(&d);
        db_del(&d, K, "z");
    }
}
END_TEST

/* ---- durability ---- */

START_TEST(r17_counts_survive_a_kill)
{
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%d", i);
        db_put(&d, K, key, "x");
        if (i % 10 == 3)
            db_flush(&d);
        if (i % 10 == 7)
            db_kill(&d);
        if (i % 5 == 0)
            db_del(&d, K, key);
        ck_assert_int_eq(eng_count(d.e, K), i + 1 - (i / 5 + 1));
    }
    db_kill(&d);
    ck_assert_int_eq(eng_count(d.e, K), 40);
    db_flush(&d);
    db_work(&d);
    db_kill(&d);
    ck_assert_int_eq(eng_count(d.e, K), 40);
}
END_TEST

START_TEST(a_clean_stop_loses_nothing)
{
    db_put(&d, K, "a", "1");
    uint64_t before = eng_visible(d.e);
    db_reopen(&d);
    ck_assert_str_eq(db_get(&d, K, "a"), "1");
    ck_assert_uint_ge(eng_visible(d.e), before);
    db_put(&d, K, "b", "2");
    ck_assert_uint_gt(eng_visible(d.e), before);
    db_flush(&d);
    db_put(&d, K, "c", "3");
    db_reopen(&d);
    ck_assert_str_eq(db_all(&d, K, false), "a=1 b=2 c=3");
}
END_TEST

START_TEST(r12_synced_means_safe_from_power_loss)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        char key[24];
        snprintf(key, sizeof(key), "%03d", (int)seed);
        db_put(&d, K, key, "x");
        if (seed % 2) {
            db_sync(&d); /* what a j:true answer waits for */
        } else {
            struct eng_txn *t = begin(0);
            eng_put(t, L, S(key), S("x"), ENG_INSERT);
            ck_assert_int_eq(db_commit(&d, t, ENG_DUR_JOURNALED, NULL), ENG_OK);
            end(t);
        }
        db_power_loss(&d, seed);
        ck_assert_ptr_nonnull(db_get(&d, K, key));
        ck_assert_int_eq(eng_count(d.e, K), (int64_t)seed);
    }
}
END_TEST

START_TEST(flushed_data_survives_power_loss)
{
    for (uint64_t seed = 1; seed < 12; seed++) {
        char key[24];
        snprintf(key, sizeof(key), "%03d", (int)seed);
        db_put(&d, K, key, "x");
        db_flush(&d);
        db_work(&d);
        db_power_loss(&d, seed);
        ck_assert_int_eq(eng_count(d.e, K), (int64_t)seed);
        ck_assert_ptr_nonnull(db_get(&d, K, key));
    }
    struct eng_stats st;
    eng_stats(d.e, &st);
    ck_assert_uint_lt(st.runs, 8); /* merged on the way */
}
END_TEST

static void splice(const char *key, uint32_t at, const char *text)
{
    struct eng_row row;
    struct eng_txn *t = begin(0);
    ck_assert_int_eq(eng_lock(t, K, S(key), &d.c), ENG_OK);
    ck_assert_int_eq(DB_WAIT(&d, eng_get(t, K, S(key), ENG_GET_NEWEST, &row, &d.c)), ENG_OK);
    size_t n = strlen(text);
    uint8_t *value = ov_malloc(row.value.n + n);
    memcpy(value, row.value.p, at);
    memcpy(value + at, text, n);
    memcpy(value + at + n, row.value.p + at, row.value.n - at);
    struct eng_edit edit = {.offset = at, .removed = 0, .added = S(text)};
    eng_splice(t, K, S(key), row.ts, slice_of(value, row.value.n + n), &edit, 1);
    ck_assert_uint_lt(eng_txn_bytes(t), 200);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    free(value);
    end(t);
}

START_TEST(r24_splices_are_replayed_onto_their_base)
{
    char big[5001];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    db_put(&d, K, "doc", big);
    splice("doc", 0, "<first>");
    db_kill(&d);
    splice("doc", 3, "second");
    db_flush(&d); /* the base of the next one lies in a run */
    splice("doc", 100, "third");
    db_kill(&d);
    splice("doc", 0, "fourth");
    db_kill(&d);
    const char *v = db_get(&d, K, "doc");
    ck_assert_uint_eq(strlen(v), 5000 + 7 + 6 + 5 + 6);
    ck_assert_mem_eq(v, "fourth<fisecondrst>xxx", 22);
}
END_TEST

START_TEST(r24_splices_into_a_dropped_keyspace_are_skipped)
{
    char big[5001];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    db_put(&d, K, "doc", big);
    splice("doc", 0, "<first>");
    struct eng_txn *t = begin(0);
    eng_drop_keyspace(t, K);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    end(t);
    ck_assert_int_eq(eng_count(d.e, K), 0);
    db_kill(&d);
    ck_assert_int_eq(eng_count(d.e, K), 0);
    db_flush(&d);
    db_put(&d, L, "a", "1");
    db_kill(&d);
    ck_assert_int_eq(eng_count(d.e, K), 0);
    ck_assert_str_eq(db_all(&d, L, false), "a=1");
}
END_TEST

START_TEST(a_dropped_keyspace_gives_its_space_back)
{
    char value[1001];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    for (int i = 0; i < 600; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%04d", i);
        db_put(&d, K, key, value);
        db_put(&d, L, key, "small");
    }
    db_flush(&d);
    uint64_t disk, logical;
    eng_step_enter(d.e);
    eng_keyspace_size(d.e, K, &disk, &logical);
    eng_step_leave(d.e);
    ck_assert_uint_gt(disk, 600 * 1000);
    struct eng_txn *t = begin(0);
    eng_drop_keyspace(t, K);
    ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    end(t);
    db_flush(&d);
    db_work(&d);
    eng_step_enter(d.e);
    eng_keyspace_size(d.e, K, &disk, &logical);
    eng_step_leave(d.e);
    ck_assert_uint_eq(disk, 0);
    db_reopen(&d);
    ck_assert_int_eq(eng_count(d.e, L), 600);
    ck_assert_str_eq(db_get(&d, L, "0599"), "small");
}
END_TEST

START_TEST(deleted_keys_give_their_space_back)
{
    char value[1001], key[16];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    for (int i = 0; i < 900; i++) {
        snprintf(key, sizeof(key), "%04d", i);
        db_put(&d, K, key, value);
    }
    db_flush(&d);
    for (int i = 0; i < 600; i++) {
        snprintf(key, sizeof(key), "%04d", i);
        db_del(&d, K, key);
    }
    db_flush(&d);
    db_work(&d);
    struct eng_stats st;
    eng_stats(d.e, &st);
    ck_assert_uint_lt(st.run_disk_bytes, 350 * 1000);
    ck_assert_int_eq(eng_count(d.e, K), 300);
    ck_assert_ptr_null(db_get(&d, K, "0599"));
    ck_assert_str_eq(db_get(&d, K, "0600"), value);
}
END_TEST

START_TEST(inserts_in_order_are_written_once)
{
    char value[1001], key[16];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    for (int i = 0; i < 8000; i++) {
        snprintf(key, sizeof(key), "%08d", i);
        db_put(&d, K, key, value);
        if (i % 100 == 0)
            db_work(&d);
    }
    db_flush(&d);
    db_work(&d);
    struct eng_stats st;
    eng_stats(d.e, &st);
    ck_assert_uint_ge(st.flushes, 6);
    ck_assert_uint_eq(st.merges, 0);
    ck_assert_str_eq(db_get(&d, K, "00000000"), value);
    ck_assert_str_eq(db_get(&d, K, "00007999"), value);
}
END_TEST

START_TEST(random_updates_keep_the_number_of_runs_small)
{
    char value[501], key[16];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "%08d", i * 7919 % 5003);
        db_put(&d, K, key, value);
        if (i % 100 == 0)
            db_work(&d);
    }
    db_flush(&d);
    db_work(&d);
    struct eng_stats st;
    eng_stats(d.e, &st);
    ck_assert_uint_ge(st.merges, 1);
    ck_assert_uint_le(st.runs, 8);
    ck_assert_int_eq(eng_count(d.e, K), 5003);
    db_reopen(&d);
    ck_assert_int_eq(eng_count(d.e, K), 5003);
}
END_TEST

START_TEST(updates_of_one_key_do_not_fill_the_memtable)
{
    char value[1001];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    for (int i = 0; i < 5000; i++)
        db_put(&d, K, "hot", value);
    struct eng_stats st;
    eng_stats(d.e, &st);
    ck_assert_uint_lt(st.memtable_bytes, 200 * 1000);
    ck_assert_uint_eq(st.flushes + st.memtable_sealed, 0);
}
END_TEST

START_TEST(what_a_crash_left_behind_is_removed)
{
    db_put(&d, K, "a", "1");
    db_flush(&d);
    file_mem_put(d.disk, "runs/00000000000000ff.run", "half a run", 10);
    db_reopen(&d);
    ck_assert(!file_mem_exists(d.disk, "runs/00000000000000ff.run"));
    ck_assert_str_eq(db_get(&d, K, "a"), "1");
}
END_TEST

START_TEST(a_missing_run_is_named)
{
    db_put(&d, K, "a", "1");
    db_flush(&d);
    db_close(&d);
    const struct file_ops *files = file_mem_ops(d.disk);
    struct eng_error err;
    ck_assert_int_eq(files->rename(files, "runs/0000000000000001.run", "runs/kept"), 0);
    ck_assert_int_ne(db_try_open(&d, &err), ENG_OK);
    ck_assert_ptr_nonnull(strstr(err.msg, "runs/0000000000000001.run"));
    ck_assert_int_eq(files->rename(files, "runs/kept", "runs/0000000000000001.run"), 0);
    db_open(&d);
}
END_TEST

/* ---- a full disk ---- */

START_TEST(r10_writes_go_on_when_the_disk_has_room_again)
{
    char value[10001], key[16];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    file_mem_set_capacity(d.disk, file_mem_used(d.disk) + (3u << 20));
    enum eng_result r = ENG_OK;
    int n = 0;
    for (; r == ENG_OK && n < 4000; n++) {
        snprintf(key, sizeof(key), "%08d", n);
        struct eng_txn *t = begin(0);
        eng_put(t, K, S(key), S(value), ENG_INSERT);
        r = db_commit(&d, t, ENG_DUR_LOCAL, NULL);
        end(t);
    }
    ck_assert_int_eq(r, ENG_DISK_FULL);
    ck_assert_int_eq(eng_count(d.e, K), n - 1);
    ck_assert_str_eq(db_get(&d, K, "00000000"), value); /* reads go on */
    file_mem_set_capacity(d.disk, 0);
    db_work(&d); /* the flush is tried again */
    db_put(&d, K, "later", "1");
    db_flush(&d);
    db_kill(&d);
    ck_assert_int_eq(eng_count(d.e, K), n);
}
END_TEST

/* ---- the debug option, facts ---- */

START_TEST(pending_first_when_asked_for)
{
    db_close(&d);
    d.opt.debug_pending = 2;
    db_open(&d);
    struct eng_call c;
    eng_call_init(&c, count_wake);
    wakes = 0;
    eng_step_enter(d.e);
    struct eng_txn *t = eng_begin(d.e, 0, 0);
    struct eng_row row;
    ck_assert_int_eq(eng_get(t, K, S("a"), 0, &row, &c), ENG_PENDING);
    ck_assert_int_eq(wakes, 1);
    ck_assert_int_eq(eng_get(t, K, S("a"), 0, &row, &c), ENG_NOT_FOUND);
    ck_assert_int_eq(eng_lock(t, K, S("a"), &c), ENG_PENDING);
    ck_assert_int_eq(eng_lock(t, K, S("a"), &c), ENG_OK);
    eng_call_cancel(d.e, &c);
    end(t);
    db_put(&d, K, "a", "1");
    ck_assert_str_eq(db_all(&d, K, false), "a=1");
}
END_TEST

START_TEST(watchers_are_woken_by_the_next_commit)
{
    struct eng_call c;
    eng_call_init(&c, count_wake);
    wakes = 0;
    db_put(&d, K, "a", "1");
    eng_step_enter(d.e);
    eng_watch(d.e, eng_visible(d.e) - 1, &c);
    ck_assert_int_eq(wakes, 1); /* it has happened already */
    eng_watch(d.e, eng_visible(d.e), &c);
    eng_step_leave(d.e);
    ck_assert_int_eq(wakes, 1);
    (void)eng_now(d.e);
    ck_assert_int_eq(wakes, 1); /* time alone is no commit */
    db_put(&d, K, "b", "1");
    ck_assert_int_eq(wakes, 2);
    eng_step_enter(d.e);
    eng_watch(d.e, eng_visible(d.e), &c);
    eng_call_cancel(d.e, &c);
    eng_step_leave(d.e);
    db_put(&d, K, "c", "1");
    ck_assert_int_eq(wakes, 2);
}
END_TEST

START_TEST(now_is_never_behind_what_is_visible)
{
    uint64_t now = eng_now(d.e);
    ck_assert_uint_ge(now, eng_visible(d.e));
    db_put(&d, K, "a", "1");
    ck_assert_uint_gt(eng_visible(d.e), now);
    ck_assert_uint_ge(eng_now(d.e), eng_visible(d.e));
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_was_put_is_read);
    tcase_add_test(tc, empty_values_exist);
    tcase_add_test(tc, a_snapshot_does_not_move);
    tcase_add_test(tc, a_snapshot_survives_flush_and_merge);
    tcase_add_test(tc, own_writes_are_read_back);
    tcase_add_test(tc, r13_a_commit_is_seen_by_the_next_statement);
    tcase_add_test(tc, operations_of_a_batch_have_timestamps_in_a_row);
    tcase_add_test(tc, multi_get_finds_each);
    tcase_add_test(tc, large_values_go_everywhere);
    tcase_add_test(tc, limits_are_refused_and_nothing_happens);
    tcase_add_test(tc, preconditions_decide);
    tcase_add_test(tc, locks_are_first_come_first_served);
    tcase_add_test(tc, a_cancelled_wait_is_over);
    tcase_add_test(tc, r23_the_first_to_update_wins);
    tcase_add_test(tc, r22_keys_of_a_unique_index_are_locked_until_published);
    tcase_add_test(tc, scans_see_all_layers_in_order);
    tcase_add_test(tc, a_scan_moves_where_it_is_told);
    tcase_add_test(tc, a_held_scan_keeps_its_snapshot_over_steps_and_commits);
    tcase_add_test(tc, r19_a_released_scan_goes_on_by_key_at_a_newer_snapshot);
    tcase_add_test(tc, r19_a_read_at_a_lost_time_is_refused);
    tcase_add_test(tc, a_multi_transaction_scans_its_own_writes);
    tcase_add_test(tc, a_scan_over_many_deletions_lets_others_run);
    tcase_add_test(tc, r26_the_last_key_is_found_without_the_deleted_ones);
    tcase_add_test(tc, r17_counts_survive_a_kill);
    tcase_add_test(tc, a_clean_stop_loses_nothing);
    tcase_add_test(tc, r12_synced_means_safe_from_power_loss);
    tcase_add_test(tc, flushed_data_survives_power_loss);
    tcase_add_test(tc, r24_splices_are_replayed_onto_their_base);
    tcase_add_test(tc, r24_splices_into_a_dropped_keyspace_are_skipped);
    tcase_add_test(tc, a_dropped_keyspace_gives_its_space_back);
    tcase_add_test(tc, deleted_keys_give_their_space_back);
    tcase_add_test(tc, inserts_in_order_are_written_once);
    tcase_add_test(tc, random_updates_keep_the_number_of_runs_small);
    tcase_add_test(tc, updates_of_one_key_do_not_fill_the_memtable);
    tcase_add_test(tc, what_a_crash_left_behind_is_removed);
    tcase_add_test(tc, a_missing_run_is_named);
    tcase_add_test(tc, r10_writes_go_on_when_the_disk_has_room_again);
    tcase_add_test(tc, pending_first_when_asked_for);
    tcase_add_test(tc, watchers_are_woken_by_the_next_commit);
    tcase_add_test(tc, now_is_never_behind_what_is_visible);
}

TEST_MAIN("storage/engine", add_tests)
