/* validate over indexes that were damaged by hand, with engine answers that come at once, sometimes late, always late. */
#include "tests/unit/write/bed.h"

static struct bed bed;

static void begin(int pending)
{
    bed_new(&bed, pending);
    bed_index(&bed, "c", "{key: {a: 1}, name: 'a_1', v: 2}");
    bed_index(&bed, "c", "{key: {u: 1}, name: 'u_1', v: 2, unique: true}");
    RUN(&bed, "insert", "{insert: 'c', documents: [{_id: 1, a: [1, 2], u: 1}, {_id: 2, a: 3, u: 2}, {_id: 3, u: 3}]}",
        "{ n: 3 }");
}

static const char *check(bool slices)
{
    struct run *r = run_new(&bed, "validate", J("{validate: 'c'}"));
    r->slices = slices;
    ck_assert(run_on(r));
    return run_end(r);
}

static void expect(const char *part)
{
    for (int slices = 0; slices < 2; slices++) {
        const char *text = check(slices);
        ck_assert_msg(strstr(text, part), "no %s in %s", part, text);
    }
}

/* Damages one keyspace: removes `key`, or puts it. */
static void damage(uint64_t keyspace, struct slice key, const struct slice *value, enum eng_put_kind kind)
{
    eng_step_enter(bed.db.e);
    struct eng_txn *t = eng_begin(bed.db.e, 0, 0);
    if (value)
        eng_put(t, keyspace, key, *value, kind);
    else
        eng_del(t, keyspace, key);
    ck_assert_int_eq(DB_WAIT(&bed.db, eng_commit(t, ENG_DUR_LOCAL, NULL, &bed.db.c)), ENG_OK);
    eng_end(t);
    eng_step_leave(bed.db.e);
}

static struct slice nth_key(uint64_t keyspace, size_t n, uint8_t out[64])
{
    struct slice found = {0};
    eng_step_enter(bed.db.e);
    struct eng_txn *t = eng_begin(bed.db.e, ENG_TXN_READ_ONLY, 0);
    struct eng_scan *s = eng_scan_open(t, &(struct eng_range){.keyspace = keyspace});
    struct eng_page page;
    ck_assert_int_eq(DB_WAIT(&bed.db, eng_scan_next(s, &page, &bed.db.c)), ENG_OK);
    ck_assert_uint_lt(n, page.n);
    memcpy(out, page.rows[n].key.p, page.rows[n].key.n);
    found = slice_of(out, page.rows[n].key.n);
    eng_scan_close(s);
    eng_end(t);
    eng_step_leave(bed.db.e);
    return found;
}

static struct collection *the_collection(void)
{
    return catalog_get(bed.server.catalog, "t", "c");
}

START_TEST(what_is_sound_is_valid)
{
    begin(_i);
    expect(
        "nInvalidDocuments: 0, nNonCompliantDocuments: 0, nrecords: 3, nIndexes: 3, keysPerIndex: { _id_: 3, a_1: 4, "
        "u_1: 3 }, indexDetails: { _id_: { valid: true }, a_1: { valid: true }, u_1: { valid: true } }, "
        "corruptRecords: [], repaired: false, valid: true, warnings: [], errors: [], extraIndexEntries: [], "
        "missingIndexEntries: []");
    bed_free(&bed);
}
END_TEST

START_TEST(a_missing_entry_is_told)
{
    uint8_t key[64];
    begin(_i);
    struct collection *c = the_collection();
    damage(c->indexes[1].keyspace, nth_key(c->indexes[1].keyspace, 2, key), NULL, 0); /* null, 1, 2, 3 */
    expect("a_1: { valid: false }");
    expect("valid: false, warnings: [ \"Detected 1 missing index entries.\" ], errors: [ \"Index with name 'a_1' has "
           "inconsistencies.\" ], extraIndexEntries: [], missingIndexEntries: [ { indexName: \"a_1\", recordId: 1, "
           "idKey: { _id: 1 }, indexKey: { a: 2 } } ]");
    collection_unref(c);
    bed_free(&bed);
}
END_TEST

START_TEST(an_entry_of_no_document_is_told)
{
    uint8_t key[64];
    begin(_i);
    struct collection *c = the_collection();
    struct slice k = nth_key(c->indexes[1].keyspace, 3, key), none = slice_of("", 0);
    key[k.n - 1] = 9; /* record 9 is not there */
    damage(c->indexes[1].keyspace, k, &none, ENG_INSERT);
    expect("a_1: 5");
    expect("extraIndexEntries: [ { indexName: \"a_1\", recordId: 9 } ], missingIndexEntries: []");
    collection_unref(c);
    bed_free(&bed);
}
END_TEST

START_TEST(a_unique_entry_that_points_elsewhere_is_told)
{
    uint8_t key[64], rid[8];
    begin(_i);
    struct collection *c = the_collection();
    store_be64(rid, 1);
    struct slice value = slice_of(rid, 8);
    damage(c->indexes[2].keyspace, nth_key(c->indexes[2].keyspace, 1, key), &value, ENG_UPDATE);
    expect("u_1: { valid: false }");
    expect("extraIndexEntries: [ { indexName: \"u_1\", recordId: 1 } ], missingIndexEntries: [ { indexName: \"u_1\", "
           "recordId: 2, idKey: { _id: 2 }, indexKey: { u: 2 } } ]");
    collection_unref(c);
    bed_free(&bed);
}
END_TEST

START_TEST(a_document_that_is_none_is_told)
{
    uint8_t rid[8];
    begin(_i);
    struct collection *c = the_collection();
    store_be64(rid, 3);
    struct slice value = slice_of("\x07\0\0\0\x50?\0", 7);
    damage(c->records, slice_of(rid, 8), &value, ENG_UPDATE);
    expect("nInvalidDocuments: 1");
    expect("corruptRecords: [ 3 ], repaired: false, valid: false");
    expect(
        "extraIndexEntries: [ { indexName: \"_id_\", recordId: 3 }, { indexName: \"a_1\", recordId: 3 }, { indexName: "
        "\"u_1\", recordId: 3 } ]");
    collection_unref(c);
    bed_free(&bed);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, what_is_sound_is_valid, 0, 3);
    tcase_add_loop_test(t, a_missing_entry_is_told, 0, 3);
    tcase_add_loop_test(t, an_entry_of_no_document_is_told, 0, 3);
    tcase_add_loop_test(t, a_unique_entry_that_points_elsewhere_is_told, 0, 3);
    tcase_add_loop_test(t, a_document_that_is_none_is_told, 0, 3);
}

TEST_MAIN("commands/validate", add_tests)
