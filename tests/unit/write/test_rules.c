/* Rules of the engine that show in what clients are told: tests named after them. Engine answers at once or late (_i). */
#include "tests/unit/write/bed.h"

static struct bed bed;

/* The power goes, and comes again. */
static void power_loss(uint64_t seed)
{
    struct err err;
    err_init(&err, NULL);
    catalog_close(bed.server.catalog);
    db_power_loss(&bed.db, seed);
    bed.server.engine = bed.db.e;
    ck_assert_int_eq(catalog_open(bed.db.e, &bed.server.catalog, &err), 0);
}

/* What changes nothing has no timestamp of its own, but tells what it has read: with j: true that must last. */
START_TEST(r12_an_answer_that_changed_nothing_lasts_as_what_it_read)
{
    static const struct {
        const char *command, *json, *reply;
    } rows[] = {
        {"update", "{update: 'c', updates: [{q: {_id: 1}, u: {~set: {a: 1}}}]}", "{ n: 1, nModified: 0 }"},
        {"update", "{update: 'c', updates: [{q: {_id: 1, a: 2}, u: {~inc: {a: 1}}}]}", "{ n: 0, nModified: 0 }"},
        {"delete", "{delete: 'c', deletes: [{q: {_id: 1, a: 2}, limit: 1}]}", "{ n: 0 }"},
        {"insert", "{insert: 'c', documents: [{_id: 1}]}", NULL}, /* E11000 */
        {"findAndModify", "{findAndModify: 'c', query: {_id: 1}, update: {~set: {a: 1}}}", NULL},
    };
    for (size_t k = 0; k < OV_LEN(rows); k++)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            bed_new(&bed, _i);
            RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, a: 1}]}", "{ n: 1 }");
            struct run *r = run_new(&bed, rows[k].command, J(rows[k].json));
            r->cx.journaled = true;
            ck_assert(run_on(r));
            const char *reply = run_end(r);
            if (rows[k].reply)
                ck_assert_str_eq(reply, rows[k].reply);
            power_loss(seed);
            ck_assert_msg(strcmp(bed_docs(&bed, "c"), "{ _id: 1, a: 1 }") == 0, "%s, seed %d", rows[k].json, (int)seed);
            bed_agree(&bed, "c");
            bed_free(&bed);
        }
}
END_TEST

/* The record of a document may be newer than the entry that leads to it: in another memtable or run. */
START_TEST(r16_an_old_entry_leads_to_the_newest_record)
{
    bed_new(&bed, _i);
    bed_index(&bed, "c", "{key: {k: 1}, name: 'k_1'}");
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, k: 5, n: 0}]}", "{ n: 1 }");
    for (int i = 0; i < 6; i++) {
        if (i % 3 != 2)
            db_flush(&bed.db);
        RUN(&bed, "update",
            i % 2 ? "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {n: 1}}}]}"
                  : "{update: 'c', updates: [{q: {k: 5}, u: {~inc: {n: 1}}}]}",
            "{ n: 1, nModified: 1 }");
    }
    RUN(&bed, "findAndModify", "{findAndModify: 'c', query: {_id: 1, n: 6}, remove: true}",
        "{ lastErrorObject: { n: 1 }, value: { _id: 1, k: 5, n: 6 } }");
    db_flush(&bed.db);
    RUN(&bed, "update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {n: 1}}}]}", "{ n: 0, nModified: 0 }");
    bed_agree(&bed, "c");
    bed_free(&bed);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, r12_an_answer_that_changed_nothing_lasts_as_what_it_read, 0, 3);
    tcase_add_loop_test(tc, r16_an_old_entry_leads_to_the_newest_record, 0, 3);
}

TEST_MAIN("write/rules", add_tests)
