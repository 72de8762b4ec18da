/* Replies of insert, update, delete and findAndModify, with engine answers that come at once, sometimes late, always late. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/write/bed.h"

static struct bed bed;

static void begin(int i)
{
    bed_new(&bed, i);
}

static void end(void)
{
    bed_agree(&bed, "c");
    bed_free(&bed);
}

START_TEST(insert_counts_and_keeps_order)
{
    begin(_i);
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, a: 1}, {a: 2, _id: 2}]}", "{ n: 2 }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, a: 1 } { _id: 2, a: 2 }");
    end();
}
END_TEST

START_TEST(an_ordered_insert_stops_at_the_first_error)
{
    begin(_i);
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1}, {_id: 1, x: 1}, {_id: 2}]}",
        "{ n: 1, writeErrors: [ { index: 1, code: 11000, keyPattern: { _id: 1 }, keyValue: { _id: 1 }, errmsg: "
        "\"E11000 "
        "duplicate key error collection: t.c index: _id_ dup key: { _id: 1 }\" } ] }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1 }");
    end();
}
END_TEST

START_TEST(an_unordered_insert_goes_on)
{
    begin(_i);
    RUN(&bed, "insert",
        "{insert: 'c', ordered: false, documents: [{_id: 1}, {_id: 1}, {_id: 2}, {_id: [1]}, {_id: 3}]}",
        "{ n: 3, writeErrors: [ { index: 1, code: 11000, keyPattern: { _id: 1 }, keyValue: { _id: 1 }, errmsg: "
        "\"E11000 "
        "duplicate key error collection: t.c index: _id_ dup key: { _id: 1 }\" }, { index: 3, code: 53, errmsg: \"The "
        "'_id' "
        "value cannot be of type array\" } ] }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1 } { _id: 2 } { _id: 3 }");
    end();
}
END_TEST

START_TEST(many_documents_go_in_sub_batches)
{
    struct buf body;
    begin(_i);
    buf_init(&body);
    size_t at = bw_begin(&body);
    bw_str(&body, "insert", "c");
    size_t list = bw_arr(&body, "documents");
    for (int i = 0; i < 300; i++) {
        char scratch[12];
        size_t doc = bw_doc(&body, bw_index((uint32_t)i, scratch));
        bw_i32(&body, "_id", i == 299 ? 7 : i);
        bw_end(&body, doc);
    }
    bw_end(&body, list);
    bw_end(&body, at);
    struct run *r = run_new(&bed, "insert", body.p);
    r->slices = true;
    ck_assert(run_on(r));
    ck_assert_ptr_nonnull(strstr(run_end(r), "{ n: 299, writeErrors: [ { index: 299, code: 11000"));
    buf_free(&body);
    end();
}
END_TEST

START_TEST(requests_are_checked)
{
    begin(0);
    RUN(&bed, "insert", "{insert: 'c', documents: []}",
        "16: Write batch sizes must be between 1 and 100000. Got 0 operations.");
    RUN(&bed, "insert", "{insert: 'c'}", "40414: BSON field 'insert.documents' is missing but a required field");
    RUN(&bed, "insert", "{insert: 'c', documents: [1]}",
        "14: BSON field 'insert.documents.0' is the wrong type 'int', expected type 'object'");
    RUN(&bed, "insert", "{insert: 'system.foo', documents: [{}]}", "73: cannot write to t.system.foo");
    RUN(&bed, "update", "{update: 'c', updates: [{q: {}}]}",
        "40414: BSON field 'update.updates.u' is missing but a required field");
    RUN(&bed, "update", "{update: 'c', updates: [{q: {}, u: {}, foo: 1}]}",
        "40415: BSON field 'update.updates.foo' is an unknown field.");
    RUN(&bed, "delete", "{delete: 'c', deletes: [{q: {}, limit: 2}]}",
        "9: The limit field in delete objects must be 0 or 1. Got 2");
    RUN(&bed, "delete", "{delete: 'c', deletes: [{q: {}}]}",
        "40414: BSON field 'delete.deletes.limit' is missing but a required field");
    RUN(&bed, "findAndModify", "{findAndModify: 'c', query: {}}",
        "9: Either an update or remove=true must be specified");
    RUN(&bed, "findAndModify", "{findAndModify: 'c', remove: true, update: {}}",
        "9: Cannot specify both an update and remove=true");
    RUN(&bed, "findAndModify", "{findAndModify: 'c', remove: true, new: true}",
        "9: Cannot specify both new=true and remove=true; 'remove' always returns the deleted document");
    ck_assert_str_eq(bed_docs(&bed, "c"), "none");
    bed_free(&bed);
}
END_TEST

START_TEST(update_one_many_and_nothing)
{
    begin(_i);
    bed_index(&bed, "c", "{key: {a: 1}, name: 'a_1'}");
    bed_index(&bed, "c", "{key: {b: -1}, name: 'b_-1'}");
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 1}, {_id: 3, a: [2, 3]}]}", "{ n: 3 }");
    RUN(&bed, "update", "{update: 'c', updates: [{q: {_id: 1}, u: {~inc: {a: 5}}}]}", "{ n: 1, nModified: 1 }");
    RUN(&bed, "update", "{update: 'c', updates: [{q: {_id: 1}, u: {~set: {a: 6}}}]}", "{ n: 1, nModified: 0 }");
    RUN(&bed, "update", "{update: 'c', updates: [{q: {_id: 9}, u: {~set: {a: 6}}}]}", "{ n: 0, nModified: 0 }");
    RUN(&bed, "update", "{update: 'c', updates: [{q: {}, u: {~set: {b: 'x'}}, multi: true}, {q: {a: 1}, u: {a: 7}}]}",
        "{ n: 4, nModified: 4 }");
    ck_assert_str_eq(bed_docs(&bed, "c"),
                     "{ _id: 1, a: 6, b: \"x\" } { _id: 2, a: 7 } { _id: 3, a: [ 2, 3 ], b: \"x\" }");
    RUN(&bed, "update", "{update: 'nix', updates: [{q: {}, u: {~set: {b: 'x'}}}]}", "{ n: 0, nModified: 0 }");
    ck_assert_str_eq(bed_docs(&bed, "nix"), "none");
    end();
}
END_TEST

START_TEST(upserts_tell_their_ids)
{
    begin(_i);
    RUN(&bed, "update",
        "{update: 'c', updates: [{q: {_id: 5}, u: {~set: {a: 1}}, upsert: true}, {q: {_id: 5}, u: {~inc: {a: 1}}, "
        "upsert: "
        "true}, {q: {_id: 6}, u: {b: 1}, upsert: true}]}",
        "{ n: 3, upserted: [ { index: 0, _id: 5 }, { index: 2, _id: 6 } ], nModified: 1 }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 5, a: 2 } { _id: 6, b: 1 }");
    end();
}
END_TEST

START_TEST(a_failing_update_stops_an_ordered_batch)
{
    begin(_i);
    bed_index(&bed, "c", "{key: {a: 1}, name: 'a_1', unique: true}");
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 2}]}", "{ n: 2 }");
    RUN(&bed, "update",
        "{update: 'c', updates: [{q: {_id: 1}, u: {~set: {b: 1}}}, {q: {_id: 1}, u: {~set: {a: 2}}}, {q: {_id: 1}, u: "
        "{~set: "
        "{b: 2}}}]}",
        "{ n: 1, writeErrors: [ { index: 1, code: 11000, keyPattern: { a: 1 }, keyValue: { a: 2 }, errmsg: \"Plan "
        "executor "
        "error during update :: caused by :: E11000 duplicate key error collection: t.c index: a_1 dup key: { a: 2 }\" "
        "} ], "
        "nModified: 1 }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, a: 1, b: 1 } { _id: 2, a: 2 }");
    end();
}
END_TEST

START_TEST(unique_keys_change_hands_within_a_statement)
{
    begin(_i);
    bed_index(&bed, "c", "{key: {a: 1}, name: 'a_1', unique: true}");
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, a: 3}, {_id: 2, a: 2}, {_id: 3, a: 1}]}", "{ n: 3 }");
    RUN(&bed, "update", "{update: 'c', updates: [{q: {}, u: {~inc: {a: 1}}, multi: true}]}", "{ n: 3, nModified: 3 }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, a: 4 } { _id: 2, a: 3 } { _id: 3, a: 2 }");
    end();
}
END_TEST

START_TEST(deletes_one_and_all)
{
    begin(_i);
    bed_index(&bed, "c", "{key: {a: 1}, name: 'a_1'}");
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 1}, {_id: 3, a: 1}, {_id: 4, a: 2}]}",
        "{ n: 4 }");
    RUN(&bed, "delete",
        "{delete: 'c', deletes: [{q: {a: 1}, limit: 1}, {q: {_id: 4}, limit: 1}, {q: {_id: 9}, limit: 0}]}",
        "{ n: 2 }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 2, a: 1 } { _id: 3, a: 1 }");
    RUN(&bed, "delete", "{delete: 'c', deletes: [{q: {}, limit: 0}]}", "{ n: 2 }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "");
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1}]}", "{ n: 1 }");
    end();
}
END_TEST

START_TEST(find_and_modify_answers_with_images)
{
    begin(_i);
    RUN(&bed, "findAndModify", "{findAndModify: 'c', query: {_id: 1}, update: {~set: {a: 1}}, upsert: true}",
        "{ lastErrorObject: { n: 1, updatedExisting: false, upserted: 1 }, value: null }");
    RUN(&bed, "findAndModify", "{findAndModify: 'c', query: {_id: 1}, update: {~set: {a: 2}}}",
        "{ lastErrorObject: { n: 1, updatedExisting: true }, value: { _id: 1, a: 1 } }");
    RUN(&bed, "findAndModify",
        "{findAndModify: 'c', query: {_id: 1}, update: {~set: {a: 3}}, new: true, fields: {_id: 0}}",
        "{ lastErrorObject: { n: 1, updatedExisting: true }, value: { a: 3 } }");
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 2, a: 9}, {_id: 3, a: 5}]}", "{ n: 2 }");
    RUN(&bed, "findAndModify", "{findAndModify: 'c', query: {}, sort: {a: -1}, remove: true}",
        "{ lastErrorObject: { n: 1 }, value: { _id: 2, a: 9 } }");
    RUN(&bed, "findAndModify", "{findAndModify: 'c', query: {_id: 7}, remove: true}",
        "{ lastErrorObject: { n: 0 }, value: null }");
    RUN(&bed, "findAndModify", "{findAndModify: 'c', query: {_id: 8}, update: {a: 1}, upsert: true, new: true}",
        "{ lastErrorObject: { n: 1, updatedExisting: false, upserted: 8 }, value: { _id: 8, a: 1 } }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 1, a: 3 } { _id: 3, a: 5 } { _id: 8, a: 1 }");
    end();
}
END_TEST

START_TEST(documents_come_as_a_sequence_too)
{
    struct buf bytes;
    begin(_i);
    buf_init(&bytes);
    for (int i = 0; i < 3; i++) {
        char text[40];
        snprintf(text, sizeof(text), "{_id: %d}", i);
        const uint8_t *doc = J(text);
        buf_append(&bytes, doc, bdoc_len(doc));
    }
    struct sequence seq = {.name = "documents", .p = bytes.p, .n = bytes.len, .count = 3};
    struct run *r = run_new(&bed, "insert", J("{insert: 'c'}"));
    r->req.seqs = &seq;
    r->req.n_seqs = 1;
    ck_assert(run_on(r));
    ck_assert_str_eq(run_end(r), "{ n: 3 }");
    ck_assert_str_eq(bed_docs(&bed, "c"), "{ _id: 0 } { _id: 1 } { _id: 2 }");
    r = run_new(&bed, "insert", J("{insert: 'c', documents: [{}]}"));
    r->req.seqs = &seq;
    r->req.n_seqs = 1;
    ck_assert(run_on(r));
    ck_assert_str_eq(run_end(r), "40413: BSON field 'insert.documents' is a duplicate field");
    buf_free(&bytes);
    end();
}
END_TEST

/* Many documents, in slices that are over at once: each is met once, though all move in the index that they are found by. */
START_TEST(statements_over_many_documents_go_in_slices)
{
    begin(_i);
    bed_index(&bed, "c", "{key: {a: 1}, name: 'a_1'}");
    for (int i = 0; i < 200; i++) {
        char text[100];
        snprintf(text, sizeof(text), "{insert: 'c', documents: [{_id: %d, a: %d}]}", i, i);
        RUN(&bed, "insert", text, "{ n: 1 }");
    }
    struct run *r =
        run_new(&bed, "update", J("{update: 'c', updates: [{q: {a: {~gte: 50}}, u: {~inc: {a: 1000}}, multi: true}]}"));
    r->slices = true;
    ck_assert(run_on(r));
    ck_assert_str_eq(run_end(r), "{ n: 150, nModified: 150 }");
    bed_agree(&bed, "c");
    r = run_new(&bed, "delete", J("{delete: 'c', deletes: [{q: {a: {~lt: 1100}}, limit: 0}]}"));
    r->slices = true;
    ck_assert(run_on(r));
    ck_assert_str_eq(run_end(r), "{ n: 100 }");
    RUN(&bed, "delete", "{delete: 'c', deletes: [{q: {}, limit: 0}]}", "{ n: 100 }");
    end();
}
END_TEST

/* Inserts 300 documents of 8 KiB at a time until the disk is full; what the reply counts is what is there. */
START_TEST(a_full_disk_is_told_and_nothing_is_half_done)
{
    struct buf body;
    int64_t stored = 0;
    begin(0);
    bed_index(&bed, "c", "{key: {a: 1}, name: 'a_1'}");
    file_mem_set_capacity(bed.db.disk, 12 << 20);
    buf_init(&body);
    for (int round = 0;; round++) {
        ck_assert_int_lt(round, 40);
        body.len = 0;
        size_t at = bw_begin(&body);
        bw_str(&body, "insert", "c");
        size_t list = bw_arr(&body, "documents");
        for (int i = 0; i < 300; i++) {
            static char fill[8192];
            char scratch[12];
            size_t doc = bw_doc(&body, bw_index((uint32_t)i, scratch));
            bw_i32(&body, "_id", round * 300 + i);
            bw_i32(&body, "a", i);
            bw_strn(&body, "fill", fill, sizeof(fill));
            bw_end(&body, doc);
        }
        bw_end(&body, list);
        bw_end(&body, at);
        struct run *r = run_new(&bed, "insert", body.p);
        if (!run_on(r)) { /* waits for room: as a client that gives up */
            atomic_store(&r->cx.op.interrupt, ERR_INTERRUPTED);
            run_on(r);
        }
        const char *reply = run_end(r);
        struct collection *c = catalog_get(bed.server.catalog, "t", "c");
        int64_t now = eng_count(bed.db.e, c->records);
        collection_unref(c);
        bool full = strcmp(reply, "{ n: 300 }") != 0;
        if (strncmp(reply, "{ n: ", 5) == 0)
            ck_assert_int_eq(now - stored, atoi(reply + 5));
        if (full)
            ck_assert_msg(strstr(reply, "14031") || strstr(reply, "11601"), "%.300s", reply);
        stored = now;
        if (full)
            break;
    }
    buf_free(&body);
    end();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, insert_counts_and_keeps_order, 0, 3);
    tcase_add_loop_test(tc, an_ordered_insert_stops_at_the_first_error, 0, 3);
    tcase_add_loop_test(tc, an_unordered_insert_goes_on, 0, 3);
    tcase_add_loop_test(tc, many_documents_go_in_sub_batches, 0, 3);
    tcase_add_loop_test(tc, documents_come_as_a_sequence_too, 0, 3);
    tcase_add_loop_test(tc, statements_over_many_documents_go_in_slices, 0, 3);
    tcase_add_test(tc, requests_are_checked);
    tcase_add_test(tc, a_full_disk_is_told_and_nothing_is_half_done);
    tcase_add_loop_test(tc, update_one_many_and_nothing, 0, 3);
    tcase_add_loop_test(tc, upserts_tell_their_ids, 0, 3);
    tcase_add_loop_test(tc, a_failing_update_stops_an_ordered_batch, 0, 3);
    tcase_add_loop_test(tc, unique_keys_change_hands_within_a_statement, 0, 3);
    tcase_add_loop_test(tc, deletes_one_and_all, 0, 3);
    tcase_add_loop_test(tc, find_and_modify_answers_with_images, 0, 3);
}

TEST_MAIN("write/commands", add_tests)
