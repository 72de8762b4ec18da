/* Rules of the engine whose proof needs a disk that counts, fails or is cut off: one test or more for each, named after it. */
#include "storage/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/db.h"
#include "tests/lib/file_fault.h"
#include "tests/lib/test.h"

enum { K = 7 };
#define FIRST_RUN "runs/0000000000000001.run"

static struct file_fault *disk;
static struct db d;

static void set_up(void)
{
    disk = file_fault_new(&(struct fault_plan){0});
    d = (struct db){.opt = {.files = file_fault_ops(disk),
                            .dir = "",
                            .manual = true,
                            .memtable_bytes = 1 << 20,
                            .segment_bytes = 1 << 20}};
    db_open(&d);
}

static void tear_down(void)
{
    db_free(&d);
    file_fault_free(disk);
}

/* The calls of some kinds from here on: `fail_at` of 0 counts them only. */
static void watch(uint32_t kinds, uint64_t fail_at)
{
    file_fault_set_plan(disk, &(struct fault_plan){.kinds = kinds, .fail_at = fail_at, .fail_for = 1000, .seed = 3});
}

/* kill -9 as of now, without any last words; then a start on what the disk holds. */
static void kill_now(void)
{
    struct file_mem *copy = file_mem_copy(file_fault_disk(disk));
    file_fault_power_off(disk);
    db_close(&d);
    d.disk = copy;
    d.opt.files = NULL;
    db_open(&d);
}

static enum eng_result put(const char *key, const char *value)
{
    eng_step_enter(d.e);
    struct eng_txn *t = eng_begin(d.e, 0, 0);
    eng_put(t, K, S(key), S(value), ENG_INSERT);
    enum eng_result r = db_commit(&d, t, ENG_DUR_LOCAL, NULL);
    eng_end(t);
    eng_step_leave(d.e);
    return r;
}

static enum eng_result hand_over(void)
{
    return DB_WAIT(&d, eng_handover(d.e, &d.c));
}

/* ---- R6 ---- */

START_TEST(r6_no_run_is_begun_before_its_journal_is_synced)
{
    ck_assert_int_eq(put("a", "1"), ENG_OK);
    /* The power goes at the first sync, so that nothing can be tidied away: had a run been begun, it would lie there. */
    file_fault_set_plan(disk, &(struct fault_plan){.kinds = FAULT_DATASYNC, .crash_at = 1, .seed = 3});
    ck_assert_int_eq(eng_flush(d.e), ENG_READ_ONLY);
    ck_assert(file_fault_crashed(disk));
    ck_assert(!file_mem_exists(file_fault_disk(disk), FIRST_RUN));
    file_fault_restart(disk, false, &(struct fault_plan){0});
    db_close(&d);
    db_open(&d);
    ck_assert_str_eq(db_get(&d, K, "a"), "1");
    ck_assert_int_eq(eng_flush(d.e), ENG_OK);
    ck_assert(file_mem_exists(file_fault_disk(disk), FIRST_RUN));
}
END_TEST

/* The manifest says from where on the journal is needed: that holds only if nothing older is still in memory. */
START_TEST(r6_sealed_memtables_enter_oldest_first)
{
    char key[16], value[8001];
    struct eng_stats st;
    int n = 0;
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    do {
        snprintf(key, sizeof(key), "%08d", n++);
        ck_assert_int_eq(put(key, value), ENG_OK);
        eng_stats(d.e, &st);
    } while (st.memtable_sealed < 2 && n < 1000);
    ck_assert_uint_eq(st.memtable_sealed, 2);
    while (st.flushes == 0) {
        ck_assert(eng_background_step(d.e));
        eng_stats(d.e, &st);
    }
    ck_assert_uint_eq(st.memtable_sealed, 1);
    ck_assert_int_eq(hand_over(), ENG_OK);
    kill_now();
    ck_assert_int_eq(eng_count(d.e, K), n);
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "%08d", i);
        ck_assert_ptr_nonnull(db_get(&d, K, key));
    }
}
END_TEST

/* ---- R14 ---- */

static void other_woken(struct eng_call *c)
{
}

START_TEST(r14_what_can_fail_fails_before_anything_has_happened)
{
    struct eng_stats before, after;
    struct eng_call other;
    ck_assert_int_eq(put("a", "1"), ENG_OK);
    eng_stats(d.e, &before);
    uint64_t visible = eng_visible(d.e);
    eng_call_init(&other, other_woken);
    for (int what = 0; what < 2; what++) {
        eng_step_enter(d.e);
        struct eng_txn *t = eng_begin(d.e, 0, 0), *next = eng_begin(d.e, 0, 0);
        size_t limit = eng_caps(d.e)->max_value_bytes;
        uint8_t *huge = calloc(1, limit + 1);
        ck_assert_int_eq(eng_lock(t, K, S("b"), &d.c), ENG_OK);
        ck_assert_int_eq(eng_lock(next, K, S("b"), &other), ENG_PENDING);
        eng_put(t, K, S("b"), S("2"), ENG_INSERT);
        if (what == 0)
            eng_put(t, K, S("c"), slice_of(huge, limit + 1), ENG_INSERT);
        else
            eng_require(t, K, S("a"), ENG_PRE_ABSENT, 0);
        ck_assert_int_eq(db_commit(&d, t, ENG_DUR_LOCAL, NULL), what == 0 ? ENG_TOO_LARGE : ENG_EXISTS);
        ck_assert_int_eq(eng_lock(next, K, S("b"), &other), ENG_OK); /* its locks are gone */
        ck_assert_ptr_null(db_read(&d, next, K, "b", ENG_GET_NEWEST));
        free(huge);
        eng_end(t);
        eng_end(next);
        eng_step_leave(d.e);
    }
    eng_stats(d.e, &after);
    ck_assert_uint_eq(after.commits, before.commits);
    ck_assert_uint_eq(after.commit_bytes, before.commit_bytes);
    ck_assert_uint_eq(eng_visible(d.e), visible);
    ck_assert_int_eq(eng_count(d.e, K), 1);
    ck_assert_int_eq(hand_over(), ENG_OK);
    kill_now();
    ck_assert_str_eq(db_all(&d, K, false), "a=1");
}
END_TEST

START_TEST(r14_after_a_failed_write_visible_stops)
{
    ck_assert_int_eq(put("a", "1"), ENG_OK);
    ck_assert_int_eq(hand_over(), ENG_OK);
    watch(FAULT_PWRITE, 1);
    ck_assert_int_eq(put("b", "2"), ENG_OK); /* copied, not written yet: no answer leaves before the handover */
    uint64_t visible = eng_visible(d.e);
    ck_assert_int_eq(hand_over(), ENG_READ_ONLY);
    ck_assert_int_eq(put("c", "3"), ENG_READ_ONLY);
    watch(0, 0); /* the disk is well again: too late, b's record may lie there torn */
    ck_assert_int_eq(hand_over(), ENG_READ_ONLY);
    ck_assert_int_eq(put("d", "4"), ENG_READ_ONLY);
    ck_assert_uint_eq(eng_visible(d.e), visible);
    kill_now();
    ck_assert_str_eq(db_get(&d, K, "a"), "1");
    ck_assert_ptr_null(db_get(&d, K, "c"));
    ck_assert_ptr_null(db_get(&d, K, "d"));
    ck_assert_int_eq(put("e", "5"), ENG_OK);
}
END_TEST

/* ---- R15 ---- */

START_TEST(r15_one_handover_writes_all_that_is_finished)
{
    watch(FAULT_PWRITE, 0);
    ck_assert_int_eq(put("a", "1"), ENG_OK);
    ck_assert_int_eq(put("b", "2"), ENG_OK);
    ck_assert_int_eq(put("c", "3"), ENG_OK);
    ck_assert_uint_eq(file_fault_calls(disk), 0); /* a commit only copies */
    ck_assert_int_eq(hand_over(), ENG_OK);
    ck_assert_uint_eq(file_fault_calls(disk), 1); /* whoever comes first writes for the others */
    ck_assert_int_eq(hand_over(), ENG_OK);
    ck_assert_uint_eq(file_fault_calls(disk), 1);
    kill_now();
    ck_assert_str_eq(db_all(&d, K, false), "a=1 b=2 c=3");
}
END_TEST

/* ---- R16 ---- */

START_TEST(r16_the_newest_layer_is_asked_first)
{
    char value[12];
    db_put(&d, K, "a", "0");
    for (int i = 1; i < 6; i++) {
        if (i % 2)
            ck_assert_int_eq(eng_flush(d.e), ENG_OK);
        snprintf(value, sizeof(value), "%d", i);
        db_put(&d, K, "a", value);
        ck_assert_str_eq(db_get(&d, K, "a"), value);
    }
    db_del(&d, K, "a"); /* hides all that lies below */
    ck_assert_ptr_null(db_get(&d, K, "a"));
    ck_assert_int_eq(eng_flush(d.e), ENG_OK);
    ck_assert_ptr_null(db_get(&d, K, "a"));
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, r6_no_run_is_begun_before_its_journal_is_synced);
    tcase_add_test(tc, r6_sealed_memtables_enter_oldest_first);
    tcase_add_test(tc, r14_what_can_fail_fails_before_anything_has_happened);
    tcase_add_test(tc, r14_after_a_failed_write_visible_stops);
    tcase_add_test(tc, r15_one_handover_writes_all_that_is_finished);
    tcase_add_test(tc, r16_the_newest_layer_is_asked_first);
}

TEST_MAIN("storage/rules", add_tests)
