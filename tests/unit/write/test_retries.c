/* Retryable commands step by step: engine answers at once, sometimes late, always late; slices that are over at once; interrupts. */
#include <stdlib.h>

#include "tests/unit/write/bed.h"

static struct bed bed;
static const uint8_t LSID[16] = {1, 2, 3};

static struct run *numbered(int64_t number, const char *command, const char *json)
{
    struct run *r = run_new(&bed, command, J(json));
    r->cx.lsid = LSID;
    r->cx.has_txn_number = true;
    r->cx.txn_number = number;
    return r;
}

static const char *send(int64_t number, const char *command, const char *json, bool slices)
{
    struct run *r = numbered(number, command, json);
    r->slices = slices;
    ck_assert_msg(run_on(r), "%s waits for nobody", json);
    return run_end(r);
}

START_TEST(commands_happen_once)
{
    static const struct {
        const char *command, *json, *first, *again;
    } rows[] = {
        {"insert", "{insert: 'c', documents: [{_id: 1, n: 0}, {_id: 2, n: 0}]}", "{ n: 2 }",
         "{ n: 2, retriedStmtIds: [ 0, 1 ] }"},
        {"update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {n: 1}}}, {q: {n: 0}, u: {~inc: {n: 5}}}]}",
         "{ n: 2, nModified: 2 }", "{ n: 2, retriedStmtIds: [ 0, 1 ], nModified: 2 }"},
        {"update", "{update: 'c', updates: [{q: {_id: 3}, u: {~inc: {n: 7}}, upsert: true}]}",
         "{ n: 1, upserted: [ { index: 0, _id: 3 } ], nModified: 0 }",
         "{ n: 1, retriedStmtIds: [ 0 ], upserted: [ { index: 0, _id: 3 } ], nModified: 0 }"},
        {"findAndModify", "{findAndModify: 'c', query: {_id: 3}, update: {~inc: {n: 1}}, new: true}",
         "{ lastErrorObject: { n: 1, updatedExisting: true }, value: { _id: 3, n: 8 } }",
         "{ lastErrorObject: { n: 1, updatedExisting: true }, value: { _id: 3, n: 8 }, retriedStmtId: 0 }"},
        {"delete", "{delete: 'c', deletes: [{q: {n: {~gt: 4}}, limit: 1}]}", "{ n: 1 }",
         "{ n: 1, retriedStmtIds: [ 0 ] }"},
        {"findAndModify", "{findAndModify: 'c', query: {n: {~gt: 4}}, remove: true}",
         "{ lastErrorObject: { n: 1 }, value: { _id: 3, n: 8 } }",
         "{ lastErrorObject: { n: 1 }, value: { _id: 3, n: 8 }, retriedStmtId: 0 }"},
    };
    bed_new(&bed, _i % 3);
    for (int i = 0; i < (int)OV_LEN(rows); i++) {
        ck_assert_str_eq(send(i + 1, rows[i].command, rows[i].json, _i >= 3), rows[i].first);
        ck_assert_str_eq(send(i + 1, rows[i].command, rows[i].json, _i >= 3), rows[i].again);
    }
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, n: 1 }");
    ck_assert(strncmp(send(2, "delete", "{delete: 'c', deletes: [{q: {}, limit: 1}]}", false), "225: ", 5) == 0);
    bed_agree(&bed, "c");
    bed_free(&bed);
}
END_TEST

/* The original waits for a document that another one holds; its retry waits for the original, and is told what that has done. */
START_TEST(a_retry_waits_for_its_original)
{
    uint8_t rid[8];
    bed_new(&bed, 0);
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, n: 0}]}", "{ n: 1 }");
    struct collection *c = catalog_get(bed.server.catalog, "t", "c");
    store_be64(rid, 1);
    eng_step_enter(bed.db.e);
    struct eng_txn *t = eng_begin(bed.db.e, 0, 0);
    ck_assert_int_eq(eng_lock(t, c->records, slice_of(rid, 8), &bed.db.c), ENG_OK);
    eng_txn_hold(t);
    eng_step_leave(bed.db.e);
    struct run *first = numbered(1, "update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {n: 1}}}]}");
    struct run *second = numbered(1, "update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {n: 1}}}]}");
    struct run *third = numbered(1, "update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {n: 1}}}]}");
    ck_assert(!run_on(first));
    ck_assert(!run_on(second));
    ck_assert(!run_on(third));
    third->cx.op.deadline_us = 1; /* gives up meanwhile */
    atomic_store(&third->woken, 1);
    ck_assert(run_on(third));
    ck_assert(strncmp(run_end(third), "50: ", 4) == 0);
    eng_step_enter(bed.db.e);
    eng_end(t);
    eng_step_leave(bed.db.e);
    ck_assert(run_on(first));
    ck_assert(run_on(second));
    ck_assert_str_eq(run_end(first), "{ n: 1, nModified: 1 }");
    ck_assert_str_eq(run_end(second), "{ n: 1, retriedStmtIds: [ 0 ], nModified: 1 }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, n: 1 }");
    collection_unref(c);
    bed_free(&bed);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, commands_happen_once, 0, 6);
    tcase_add_test(tc, a_retry_waits_for_its_original);
}
TEST_MAIN("write/retries", add_tests)
