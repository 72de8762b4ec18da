/* Outcomes of retryable writes: kept with the batch, found again, refused, removed when they are old. Engine answers at once or late (_i). */
#include "server/session/retry.h"

#include "index/index.h"
#include "server/base/clock.h"
#include "tests/lib/db.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

#define ROWS keyspace_id(KEYSPACE_SESSION, 0)
#define DATA keyspace_id(KEYSPACE_DOCS, 1)

static struct db db;
static struct arena *a;
static struct err err;

static void begin(int debug_pending)
{
    db_new(&db);
    db.opt.debug_pending = debug_pending;
    db.opt.debug_seed = 3;
    db_reopen(&db);
    a = arena_new(0);
    err_init(&err, a);
}

static void end(void)
{
    arena_free(a);
    db_free(&db);
}

static struct retry make(uint8_t session, int64_t number, bool many)
{
    struct retry r = {.e = db.e, .call = &db.c, .arena = a, .txn_number = number, .many = many};
    memset(r.lsid, session, sizeof(r.lsid));
    return r;
}

/* In a step, which stays open unless it fails. */
static enum retry_status start(struct retry *r)
{
    enum retry_status s;
    enum eng_result er = ENG_OK;
    eng_step_enter(db.e);
    while ((s = retry_begin(r, &er, &err)) == RETRY_WAIT) {
        eng_step_leave(db.e);
        while (!atomic_exchange(&db.woken, 0))
            db_pump(&db);
        eng_step_enter(db.e);
    }
    return s;
}

static void stop(struct retry *r)
{
    retry_end(r);
    eng_step_leave(db.e);
}

/* Statements first … first + n - 1 insert a document each, in one batch. */
static void put_docs(struct retry *r, int32_t first, int n)
{
    struct eng_txn *t = eng_begin(db.e, 0, 0);
    for (int i = 0; i < n; i++) {
        uint8_t key[13];
        r->statement = first + i;
        memcpy(key, r->lsid, 1);
        store_be64(key + 1, (uint64_t)r->txn_number);
        store_be32(key + 9, (uint32_t)r->statement);
        eng_put(t, DATA, slice_of(key, sizeof(key)), S("x"), ENG_INSERT);
        r->outcomes.note(&r->outcomes, NULL, J("{_id: 'the id'}"));
    }
    ck_assert(r->outcomes.put(&r->outcomes, t));
    ck_assert_int_eq(db_commit(&db, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    eng_end(t);
}

START_TEST(r18_what_was_done_is_found_again_after_a_kill)
{
    begin(_i);
    struct retry r = make(1, 7, true);
    ck_assert_int_eq(start(&r), RETRY_READY);
    ck_assert_ptr_null(retry_find(&r, 0));
    put_docs(&r, 0, 64);
    put_docs(&r, 64, 36);
    stop(&r);
    db_kill(&db);
    r = make(1, 7, true);
    ck_assert_int_eq(start(&r), RETRY_READY);
    for (int32_t i = 0; i < 100; i++) {
        const struct retry_statement *s = retry_find(&r, i);
        ck_assert(s && s->id == i && s->kind == RETRY_INSERTED && !s->image);
    }
    ck_assert_ptr_null(retry_find(&r, 100));
    ck_assert_ptr_null(retry_find(&r, -1));
    put_docs(&r, 100, 1); /* goes on where it ended */
    stop(&r);
    r = make(1, 7, false);
    ck_assert_int_eq(start(&r), RETRY_READY);
    ck_assert_ptr_nonnull(retry_find(&r, 100));
    stop(&r);
    ck_assert_int_eq(eng_count(db.e, ROWS), 3);
    end();
}
END_TEST

START_TEST(a_newer_number_forgets_the_older)
{
    begin(_i);
    for (int64_t number = 1; number <= 4; number++) {
        struct retry r = make(1, number, true);
        ck_assert_int_eq(start(&r), RETRY_READY);
        ck_assert_ptr_null(retry_find(&r, 0));
        for (int32_t i = 0; i < 5 - number; i++)
            put_docs(&r, i, 1);
        stop(&r);
    }
    ck_assert_int_eq(eng_count(db.e, ROWS), 4); /* those of the first are written over, not added to */
    struct retry r = make(1, 4, true);
    ck_assert_int_eq(start(&r), RETRY_READY);
    ck_assert_uint_eq(r.n_done, 1);
    stop(&r);
    r = make(1, 3, true);
    ck_assert_int_eq(start(&r), RETRY_FAILED);
    ck_assert_int_eq(err.code, ERR_TRANSACTION_TOO_OLD);
    ck_assert_str_eq(err.msg,
                     "Retryable write with txnNumber 3 is prohibited on session "
                     "01010101-0101-0101-0101-010101010101 - 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= -  -  "
                     "because a newer retryable write with txnNumber 4 has already started on this session.");
    stop(&r);
    r = make(2, 1, false); /* another session */
    ck_assert_int_eq(start(&r), RETRY_READY);
    stop(&r);
    end();
}
END_TEST

START_TEST(r18_upserts_and_images_are_kept)
{
    begin(_i);
    struct retry r = make(1, 1, false);
    r.upserts = true;
    r.keep_image = RETRY_IMAGE_AFTER;
    ck_assert_int_eq(start(&r), RETRY_READY);
    put_docs(&r, 5, 1);
    stop(&r);
    r = make(1, 1, false);
    ck_assert_int_eq(start(&r), RETRY_READY);
    const struct retry_statement *s = retry_find(&r, 5);
    ck_assert(s && s->kind == RETRY_UPSERTED && s->image_kind == RETRY_IMAGE_AFTER);
    ck_assert_str_eq(bval_shell(a, s->upserted), "\"the id\"");
    ck_assert_str_eq(bval_shell(a, bval_from_doc(s->image)), "{ _id: \"the id\" }");
    stop(&r);
    end();
}
END_TEST

START_TEST(r18_an_outcome_goes_with_its_batch)
{
    begin(_i);
    struct retry r = make(1, 1, false);
    ck_assert_int_eq(start(&r), RETRY_READY);
    r.outcomes.note(&r.outcomes, NULL, J("{_id: 1}"));
    retry_drop_batch(&r);
    put_docs(&r, 1, 1);
    stop(&r);
    r = make(1, 1, false);
    ck_assert_int_eq(start(&r), RETRY_READY);
    ck_assert_ptr_null(retry_find(&r, 0));
    ck_assert_ptr_nonnull(retry_find(&r, 1));
    stop(&r);
    end();
}
END_TEST

START_TEST(missing_and_damaged_rows_are_told)
{
    uint8_t key[20];
    begin(_i);
    struct retry r = make(1, 1, true);
    ck_assert_int_eq(start(&r), RETRY_READY);
    for (int32_t i = 0; i < 3; i++)
        put_docs(&r, i, 1);
    stop(&r);
    memset(key, 1, 16);
    store_be32(key + 16, 1);
    eng_step_enter(db.e);
    struct eng_txn *t = eng_begin(db.e, 0, 0);
    eng_del(t, ROWS, slice_of(key, sizeof(key)));
    ck_assert_int_eq(db_commit(&db, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    eng_step_leave(db.e);
    r = make(1, 1, true);
    ck_assert_int_eq(start(&r), RETRY_FAILED);
    ck_assert_int_eq(err.code, ERR_INCOMPLETE_TRANSACTION_HISTORY);
    retry_end(&r);
    store_be32(key + 16, 0);
    eng_put(t, ROWS, slice_of(key, sizeof(key)), slice_of("\1\0short", 7), ENG_UPDATE);
    ck_assert_int_eq(db_commit(&db, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    eng_end(t);
    eng_step_leave(db.e);
    r = make(1, 1, true);
    ck_assert_int_eq(start(&r), RETRY_FAILED);
    ck_assert_int_eq(err.code, ERR_DATA_CORRUPTION_DETECTED);
    stop(&r);
    end();
}
END_TEST

static bool second_woken;
static void wake_second(struct eng_call *c)
{
    (void)c;
    second_woken = true;
}

START_TEST(a_session_is_one_command_at_a_time)
{
    struct eng_call second;
    enum eng_result er = ENG_OK;
    begin(0);
    eng_call_init(&second, wake_second);
    struct retry r = make(1, 1, false), q = make(1, 1, false);
    q.call = &second;
    ck_assert_int_eq(start(&r), RETRY_READY);
    ck_assert_int_eq(retry_begin(&q, &er, &err), RETRY_WAIT);
    put_docs(&r, 0, 1);
    retry_end(&r);
    ck_assert(second_woken);
    ck_assert_int_eq(retry_begin(&q, &er, &err), RETRY_READY);
    ck_assert_msg(retry_find(&q, 0) != NULL, "it sees what the first one did");
    stop(&q);
    end();
}
END_TEST

START_TEST(r18_old_rows_go_with_their_session)
{
    struct retry_sweep sweep = {0};
    begin(_i);
    int64_t now = clock_wall_ms();
    for (int i = 1; i <= 200; i++) {
        struct retry r = make((uint8_t)i, 1, true);
        ck_assert_int_eq(start(&r), RETRY_READY);
        for (int32_t k = 0; k < 3; k++)
            put_docs(&r, k, 1);
        stop(&r);
    }
    for (int i = 0; i < 20; i++)
        retry_tick(&sweep, db.e, now + RETRY_EXPIRE_MS - 1000);
    ck_assert_int_eq(eng_count(db.e, ROWS), 600);
    struct retry used = make(7, 1, false);
    ck_assert_int_eq(start(&used), RETRY_READY); /* in use: stays */
    eng_step_leave(db.e);
    for (int i = 0; i < 2000; i++) /* late answers are left for the next round */
        retry_tick(&sweep, db.e, now + 2 * RETRY_EXPIRE_MS);
    ck_assert_int_eq(eng_count(db.e, ROWS), 3);
    eng_step_enter(db.e);
    stop(&used);
    for (int i = 0; i < 2000; i++) /* late answers are left for the next round */
        retry_tick(&sweep, db.e, now + 2 * RETRY_EXPIRE_MS);
    ck_assert_int_eq(eng_count(db.e, ROWS), 0);
    end();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, r18_what_was_done_is_found_again_after_a_kill, 0, 3);
    tcase_add_loop_test(tc, a_newer_number_forgets_the_older, 0, 3);
    tcase_add_loop_test(tc, r18_upserts_and_images_are_kept, 0, 3);
    tcase_add_loop_test(tc, r18_an_outcome_goes_with_its_batch, 0, 3);
    tcase_add_loop_test(tc, missing_and_damaged_rows_are_told, 0, 3);
    tcase_add_test(tc, a_session_is_one_command_at_a_time);
    tcase_add_loop_test(tc, r18_old_rows_go_with_their_session, 0, 2);
}
TEST_MAIN("session/retry", add_tests)
