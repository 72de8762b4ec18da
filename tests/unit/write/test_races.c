/* Two writers interleaved: every engine call answers late, so that each is a point where the other may come in between. For each such point
 * of the first the second runs as far as it can there; then by chance. What comes out must be what one after the other gives. */
#include "server/base/rand.h"
#include "tests/unit/write/bed.h"

enum { POINTS = 40, SHUFFLES = 60 };

static struct bed bed;
static char reply_a[1000], reply_b[1000];

struct command_text {
    const char *command, *json;
};

static void finish(struct run *a, struct run *b)
{
    for (int idle = 0; !a->done || !b->done;) {
        bool moved = run_on(a);
        moved |= run_on(b);
        idle = moved ? 0 : idle + 1;
        ck_assert_msg(idle < 50, "both wait for each other");
    }
    snprintf(reply_a, sizeof(reply_a), "%s", run_end(a));
    snprintf(reply_b, sizeof(reply_b), "%s", run_end(b));
}

static void step_n(struct run *r, int n)
{
    bool waits = false;
    for (int i = 0; i < n && !r->done; i++) {
        run_step(r, &waits);
        for (int j = 0; waits && !atomic_exchange(&r->woken, 0); j++) {
            if (j == 20)
                return;
            db_pump(&bed.db);
        }
    }
}

static void begin_at(struct command_text a, struct command_text b, int point)
{
    struct run *x = run_new(&bed, a.command, J(a.json)), *y = run_new(&bed, b.command, J(b.json));
    step_n(x, point);
    run_on(y);
    finish(x, y);
}

static void begin_shuffled(struct command_text a, struct command_text b, uint64_t seed)
{
    struct run *x = run_new(&bed, a.command, J(a.json)), *y = run_new(&bed, b.command, J(b.json));
    struct rand_gen rng;
    rand_seed(&rng, seed);
    for (int i = 0; i < 60; i++)
        step_n(rand_next(&rng) & 1 ? x : y, 1);
    finish(x, y);
}

/* setup, the race, check: at every point and in many orders. */
#define RACE(setup, a, b, check)                      \
    do {                                              \
        for (int i = 0; i < POINTS + SHUFFLES; i++) { \
            bed_new(&bed, 2);                         \
            setup;                                    \
            if (i < POINTS)                           \
                begin_at(a, b, i);                    \
            else                                      \
                begin_shuffled(a, b, (uint64_t)i);    \
            check;                                    \
            bed_agree(&bed, "c");                     \
            bed_free(&bed);                           \
        }                                             \
    } while (0)
#define C(command, json) ((struct command_text){command, json})
#define INSERT(docs)     RUN(&bed, "insert", "{insert: 'c', documents: " docs "}", "{ n: 2 }")

static bool one_each(const char *first, const char *second)
{
    return (strstr(reply_a, first) && strstr(reply_b, second)) || (strstr(reply_a, second) && strstr(reply_b, first));
}

START_TEST(increments_add_up)
{
    struct command_text inc = C("update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {a: 1}}}]}");
    RACE(INSERT("[{_id: 1, a: 0}, {_id: 2}]"), inc, inc,
         ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, a: 2 } { _id: 2 }"));
}
END_TEST

START_TEST(a_filter_is_matched_again_under_the_lock)
{
    struct command_text take =
        C("update", "{update: 'c', updates: [{q: {state: 'new'}, u: {~set: {state: 'taken'}, ~inc: {by: 1}}}]}");
    RACE(INSERT("[{_id: 1, state: 'new'}, {_id: 2, state: 'old'}]"), take, take, {
        ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, state: \"taken\", by: 1 } { _id: 2, state: \"old\" }");
        ck_assert_msg(one_each("{ n: 1, nModified: 1 }", "{ n: 0, nModified: 0 }"), "%s %s", reply_a, reply_b);
    });
}
END_TEST

START_TEST(two_workers_take_two_jobs)
{
    struct command_text take =
        C("findAndModify", "{findAndModify: 'c', query: {s: 0}, sort: {_id: 1}, update: {~set: {s: 1}}}");
    RACE(INSERT("[{_id: 1, s: 0}, {_id: 2, s: 0}]"), take, take,
         ck_assert_msg(one_each("value: { _id: 1, s: 0 }", "value: { _id: 2, s: 0 }"), "%s %s", reply_a, reply_b));
}
END_TEST

START_TEST(one_insert_wins_a_unique_key)
{
    RACE(bed_index(&bed, "c", "{key: {k: 1}, name: 'k_1', unique: true}"),
         C("insert", "{insert: 'c', documents: [{_id: 1, k: 5}]}"),
         C("insert", "{insert: 'c', documents: [{_id: 2, k: 5}]}"),
         ck_assert_msg(one_each("{ n: 1 }", "{ n: 0, writeErrors: [ { index: 0, code: 11000"), "%s %s", reply_a,
                       reply_b));
}
END_TEST

START_TEST(batches_that_overlap_crosswise_do_not_deadlock)
{
    RACE((void)0, C("insert", "{insert: 'c', ordered: false, documents: [{_id: 1}, {_id: 2}, {_id: 3}]}"),
         C("insert", "{insert: 'c', ordered: false, documents: [{_id: 3}, {_id: 2}, {_id: 1}]}"), {
             struct collection *c = catalog_get(bed.server.catalog, "t", "c");
             ck_assert_int_eq(eng_count(bed.db.e, c->records), 3);
             collection_unref(c);
         });
}
END_TEST

START_TEST(an_upsert_that_loses_the_race_updates)
{
    struct command_text up = C("update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {a: 1}}, upsert: true}]}");
    RACE((void)0, up, up, {
        ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, a: 2 }");
        ck_assert_msg(one_each("upserted: [ { index: 0, _id: 1 } ]", "{ n: 1, nModified: 1 }"), "%s %s", reply_a,
                      reply_b);
    });
}
END_TEST

START_TEST(so_does_one_on_another_unique_key)
{
    struct command_text up =
        C("findAndModify",
          "{findAndModify: 'c', query: {k: 'x'}, update: {~inc: {a: 1}}, upsert: true, new: true, fields: {_id: 0}}");
    RACE(bed_index(&bed, "c", "{key: {k: 1}, name: 'k_1', unique: true}"), up, up,
         ck_assert_msg(one_each("value: { k: \"x\", a: 1 }", "value: { k: \"x\", a: 2 }"), "%s %s", reply_a, reply_b));
}
END_TEST

START_TEST(a_removal_and_an_insert_of_one_id)
{
    RACE(INSERT("[{_id: 1, a: 0}, {_id: 2}]"), C("delete", "{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]}"),
         C("insert", "{insert: 'c', documents: [{_id: 1, a: 1}]}"), {
             bool first = strstr(reply_b, "{ n: 1 }") != NULL;
             ck_assert_str_eq(bed_docs(&bed, "c"), first ? "{ _id: 2 } { _id: 1, a: 1 }" : "{ _id: 2 }");
             ck_assert_str_eq(reply_a, "{ n: 1 }");
         });
}
END_TEST

START_TEST(a_removal_and_an_update_of_one_document)
{
    RACE(INSERT("[{_id: 1, a: 0}, {_id: 2}]"), C("delete", "{delete: 'c', deletes: [{q: {a: {~gte: 0}}, limit: 1}]}"),
         C("update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {a: 1}}}]}"), {
             ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 2 }");
             ck_assert_str_eq(reply_a, "{ n: 1 }");
         });
}
END_TEST

static void two_unique_indexes(void)
{
    bed_index(&bed, "c", "{key: {a: 1}, name: 'a_1', unique: true}");
    bed_index(&bed, "c", "{key: {b: 1}, name: 'b_1', unique: true}");
    INSERT("[{_id: 1, a: 1, b: 4}, {_id: 2, a: 3, b: 2}]");
}

START_TEST(unique_keys_locked_crosswise_do_not_deadlock)
{
    RACE(two_unique_indexes(),
         C("update",
           "{update: 'c', updates: [{q: {_id: 1}, u: {~set: {a: 3, b: 2}}}, {q: {_id: 1}, u: {~set: {a: 8, b: 9}}}]}"),
         C("update",
           "{update: 'c', updates: [{q: {_id: 2}, u: {~set: {b: 4, a: 1}}}, {q: {_id: 2}, u: {~set: {a: 6, b: 7}}}]}"),
         (void)0);
}
END_TEST

START_TEST(updates_of_all_in_both_directions_do_not_deadlock)
{
    RACE(two_unique_indexes(), C("update", "{update: 'c', updates: [{q: {}, u: {~inc: {a: 10, b: 10}}, multi: true}]}"),
         C("update", "{update: 'c', updates: [{q: {_id: 2}, u: {~inc: {a: 20}}}, {q: {_id: 1}, u: {~inc: {a: 20}}}]}"),
         ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, a: 31, b: 14 } { _id: 2, a: 33, b: 12 }"));
}
END_TEST

START_TEST(candidates_that_match_no_more_are_let_go)
{
    for (int i = 0; i < POINTS; i++) {
        bed_new(&bed, 2);
        INSERT("[{_id: 1, s: 0}, {_id: 2, s: 0}]");
        struct run *up = run_new(&bed, "findAndModify",
                                 J("{findAndModify: 'c', query: {s: 0}, sort: {_id: 1}, update: {~set: {s: 2}}}"));
        struct run *down = run_new(&bed, "findAndModify",
                                   J("{findAndModify: 'c', query: {s: 0}, sort: {_id: -1}, update: {~set: {s: 3}}}"));
        step_n(up, i);
        step_n(down, i);
        struct run *all =
            run_new(&bed, "update", J("{update: 'c', updates: [{q: {}, u: {~set: {s: 1}}, multi: true}]}"));
        for (int j = 0; !all->done || !up->done || !down->done; j++) {
            ck_assert_msg(j < 200, "all wait for each other");
            step_n(all, all->done ? 0 : 100);
            step_n(up, 1);
            step_n(down, 1);
        }
        ck_assert_str_eq(run_end(all), "{ n: 2, nModified: 2 }");
        run_end(up);
        run_end(down);
        bed_agree(&bed, "c");
        bed_free(&bed);
    }
}
END_TEST

/* All candidates that a sort has kept are taken by others: the next ones are looked for. */
START_TEST(a_sorted_search_begins_anew_when_its_candidates_are_gone)
{
    int late = 0;
    for (int i = 0; i < 80; i++) {
        bed_new(&bed, 2);
        for (int id = 1; id <= 20; id++) {
            char text[100];
            snprintf(text, sizeof(text), "{insert: 'c', documents: [{_id: %d, s: 0}]}", id);
            RUN(&bed, "insert", text, "{ n: 1 }");
        }
        struct run *r = run_new(&bed, "findAndModify",
                                J("{findAndModify: 'c', query: {s: 0}, sort: {_id: 1}, update: {~set: {s: 2}}}"));
        step_n(r, i);
        struct run *other = run_new(
            &bed, "update", J("{update: 'c', updates: [{q: {_id: {~lte: 18}}, u: {~set: {s: 1}}, multi: true}]}"));
        run_on(other);
        finish(r, other);
        late += strstr(reply_a, "value: { _id: 19, s: 0 }") != NULL;
        ck_assert_msg(strstr(reply_a, "value: { _id: "), "%s", reply_a);
        bed_agree(&bed, "c");
        bed_free(&bed);
    }
    ck_assert_int_gt(late, 0);
}
END_TEST

/* ---- waits that end early ---- */

START_TEST(a_wait_for_a_lock_ends_with_the_time_limit)
{
    uint8_t rid[8];
    bed_new(&bed, 0);
    INSERT("[{_id: 1, a: 0}, {_id: 2}]");
    struct collection *c = catalog_get(bed.server.catalog, "t", "c");
    store_be64(rid, 1);
    eng_step_enter(bed.db.e);
    struct eng_txn *other = eng_begin(bed.db.e, 0, 0);
    ck_assert_int_eq(eng_lock(other, c->records, slice_of(rid, 8), &bed.db.c), ENG_OK);
    eng_txn_hold(other);
    eng_step_leave(bed.db.e);
    struct run *r = run_new(&bed, "update", J("{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {a: 1}}}]}"));
    ck_assert(!run_on(r));
    r->cx.op.deadline_us = 1;
    ck_assert(run_on(r));
    ck_assert_str_eq(run_end(r), "50: operation exceeded time limit");
    eng_step_enter(bed.db.e);
    eng_end(other);
    eng_step_leave(bed.db.e);
    RUN(&bed, "update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {a: 1}}}]}", "{ n: 1, nModified: 1 }");
    collection_unref(c);
    bed_agree(&bed, "c");
    bed_free(&bed);
}
END_TEST

START_TEST(an_interrupt_anywhere_leaves_indexes_in_order)
{
    for (int i = 0; i < 60; i++) {
        bed_new(&bed, 2);
        two_unique_indexes();
        struct run *r =
            run_new(&bed, "update",
                    J("{update: 'c', updates: [{q: {}, u: {~inc: {a: 10, b: 10}}, multi: true}, {q: {_id: 9}, "
                      "u: {~set: {a: 1, b: 1}}, upsert: true}]}"));
        step_n(r, i);
        atomic_store(&r->cx.op.interrupt, ERR_INTERRUPTED);
        run_on(r);
        run_end(r);
        bed_agree(&bed, "c");
        RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 100, a: 1000, b: 1000}]}", "{ n: 1 }");
        RUN(&bed, "delete", "{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]}", "{ n: 1 }");
        bed_agree(&bed, "c");
        bed_free(&bed);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, increments_add_up);
    tcase_add_test(tc, a_filter_is_matched_again_under_the_lock);
    tcase_add_test(tc, two_workers_take_two_jobs);
    tcase_add_test(tc, one_insert_wins_a_unique_key);
    tcase_add_test(tc, batches_that_overlap_crosswise_do_not_deadlock);
    tcase_add_test(tc, an_upsert_that_loses_the_race_updates);
    tcase_add_test(tc, so_does_one_on_another_unique_key);
    tcase_add_test(tc, a_removal_and_an_insert_of_one_id);
    tcase_add_test(tc, a_removal_and_an_update_of_one_document);
    tcase_add_test(tc, unique_keys_locked_crosswise_do_not_deadlock);
    tcase_add_test(tc, updates_of_all_in_both_directions_do_not_deadlock);
    tcase_add_test(tc, candidates_that_match_no_more_are_let_go);
    tcase_add_test(tc, a_sorted_search_begins_anew_when_its_candidates_are_gone);
    tcase_add_test(tc, a_wait_for_a_lock_ends_with_the_time_limit);
    tcase_add_test(tc, an_interrupt_anywhere_leaves_indexes_in_order);
}

TEST_MAIN("write/races", add_tests)
