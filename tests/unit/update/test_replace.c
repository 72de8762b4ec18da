/* Replacements, what an insert makes of its document, and which indexes an update can touch. */
#include "tests/unit/update/harness.h"

START_TEST(replacements)
{
    static const struct {
        const char *doc, *update, *want;
    } rows[] = {
        {"{_id: 1, a: 1}", "{b: 2}", "{_id: 1, b: 2}"},
        {"{_id: 1, a: 1}", "{}", "{_id: 1}"},
        {"{_id: 1, a: 1}", "{b: 2, _id: 1}", "{_id: 1, b: 2}"},
        {"{_id: 1, a: 1}", "{_id: 1, a: 1}", NULL},
        {"{_id: 1, a: 1}", "{a: 1}", NULL},
        {"{_id: 1, a: 1}", "{a: {~x: 1}, 'b.c': 2}", "{_id: 1, a: {~x: 1}, 'b.c': 2}"},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct run r;
        run_update(&r, J(rows[i].doc), bval_from_doc(J(rows[i].update)), BVAL_MISSING, -1);
        check_doc(&r, J(rows[i].want ? rows[i].want : rows[i].doc), rows[i].update);
        ck_assert_int_eq(r.effect.changed, rows[i].want != NULL);
        ck_assert_uint_eq(r.effect.n_edits, 0);
        ck_assert(update_is_replacement(r.u));
        run_free(&r);
    }
}
END_TEST

START_TEST(an_empty_timestamp_in_a_replacement_is_filled_in)
{
    struct run r;
    run_update(&r, J("{_id: 1}"),
               bval_from_doc(J("{a: {'$timestamp': {t: 0, i: 0}}, b: {c: {'$timestamp': {t: 0, i: 0}}}}")),
               BVAL_MISSING, -1);
    ck_assert_int_eq(r.rc, 0);
    ck_assert(load_le64(bdoc_get(run_doc(&r), "a").p) != 0);
    ck_assert(load_le64(bdoc_get(bval_doc(bdoc_get(run_doc(&r), "b")), "c").p) == 0);
    run_free(&r);
}
END_TEST

static void insert(struct run *r, const uint8_t *doc, bool *same)
{
    run_init(r);
    r->rc = insert_prepare(doc, 7ull << 32 | 3, &r->out, same, &r->err);
    ck_assert_int_eq(r->rc, r->err.code);
    if (r->rc || *same)
        ck_assert_uint_eq(r->out.len, 6);
}

START_TEST(inserts)
{
    static const struct {
        const char *doc, *want; /* NULL: as it is */
    } rows[] = {
        {"{_id: 1, a: 1}", NULL},
        {"{_id: {x: 1}}", NULL},
        {"{_id: null}", NULL},
        {"{a: 1, _id: 1, b: 2}", "{_id: 1, a: 1, b: 2}"},
        {"{_id: 1, a: {'$timestamp': {t: 0, i: 0}}}", "{_id: 1, a: {'$timestamp': {t: 7, i: 3}}}"},
        {"{_id: {'$timestamp': {t: 0, i: 0}}}", NULL},
        {"{_id: 1, a: {b: {'$timestamp': {t: 0, i: 0}}}}", NULL},
        {"{_id: 1, ~a: 1, 'b.c': 1}", NULL},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct run r;
        bool same;
        insert(&r, J(rows[i].doc), &same);
        ck_assert_msg(r.rc == 0 && same == (rows[i].want == NULL), "%s: %d %s, same %d", rows[i].doc, r.rc, r.err.msg,
                      same);
        if (!same)
            check_doc(&r, J(rows[i].want), rows[i].doc);
        run_free(&r);
    }
}
END_TEST

START_TEST(an_insert_without_an_id_gets_one)
{
    struct run r;
    bool same;
    insert(&r, J("{a: 1, b: 'x'}"), &same);
    ck_assert(!same && r.rc == 0);
    struct biter it;
    struct belem e;
    biter_init(&it, run_doc(&r));
    ck_assert(biter_next(&it, &e));
    ck_assert_str_eq(e.name, "_id");
    ck_assert_int_eq(e.v.type, BSON_TYPE_OID);
    ck_assert(biter_next(&it, &e) && strcmp(e.name, "a") == 0);
    ck_assert(biter_next(&it, &e) && strcmp(e.name, "b") == 0);
    ck_assert(!biter_next(&it, &e));
    ck_assert_uint_eq(bdoc_len(run_doc(&r)), r.out.len - 6);
    run_free(&r);
}
END_TEST

START_TEST(empty_timestamps_can_be_kept)
{
    struct run r;
    bool same;
    run_init(&r);
    ck_assert_int_eq(insert_prepare(J("{_id: 1, a: {'$timestamp': {t: 0, i: 0}}}"), 0, &r.out, &same, &r.err), 0);
    ck_assert(same && r.out.len == 6);
    run_free(&r);
}
END_TEST

START_TEST(inserts_that_are_refused)
{
    static const struct {
        const char *doc;
        int code;
        const char *msg;
    } rows[] = {
        {"{_id: [1]}", 53, "The '_id' value cannot be of type array"},
        {"{_id: {'$regularExpression': {pattern: 'x', options: ''}}}", 53, "The '_id' value cannot be of type regex"},
        {"{_id: {'$undefined': true}}", 53, "The '_id' value cannot be of type undefined"},
        {"{_id: {~x: 1}}", 52, "_id fields may not contain '$'-prefixed fields: $x is not valid for storage."},
        {"{_id: 1, a: 1, _id: 2}", 2, "can't have multiple _id fields in one document"},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct run r;
        bool same;
        insert(&r, J(rows[i].doc), &same);
        ck_assert_msg(r.rc == rows[i].code && strcmp(r.err.msg, rows[i].msg) == 0, "%s: %d %s", rows[i].doc, r.rc,
                      r.err.msg);
        run_free(&r);
    }
}
END_TEST

START_TEST(deep_and_large_inserts)
{
    struct buf b = {0};
    size_t start[128];
    struct run r;
    bool same;

    for (int levels = 99; levels <= 101; levels++) {
        b.len = 0;
        for (int i = 0; i < levels; i++) {
            start[i] = i ? bw_doc(&b, i == 1 ? "_id" : "a") : bw_begin(&b);
        }
        bw_null(&b, "x");
        for (int i = levels; i-- > 0;)
            bw_end(&b, start[i]);
        insert(&r, b.p, &same);
        ck_assert_int_eq(r.rc, levels > 100 ? ERR_OVERFLOW : 0);
        if (levels > 100)
            ck_assert_str_eq(r.err.msg, "cannot insert document because it exceeds 100 levels of nesting");
        run_free(&r);
    }
    b.len = 0;
    char *text = calloc(1, 16 << 20);
    start[0] = bw_begin(&b);
    bw_strn(&b, "a", text, 16 << 20);
    bw_end(&b, start[0]);
    insert(&r, b.p, &same);
    ck_assert_int_eq(r.rc, ERR_BAD_VALUE);
    ck_assert_str_eq(r.err.msg, "object to insert too large. size in bytes: 16777229, max size: 16777216");
    run_free(&r);
    free(text);
    buf_free(&b);
}
END_TEST

START_TEST(which_indexes_can_change)
{
    static const struct {
        const char *update, *path;
        bool touch;
    } rows[] = {
        {"{$set: {a: 1}}", "a", true},
        {"{$set: {a: 1}}", "b", false},
        {"{$set: {a: 1}}", "ab", false},
        {"{$set: {a: 1}}", "a.b", true},
        {"{$set: {'a.b': 1}}", "a", true},
        {"{$set: {'a.b': 1}}", "a.c", false},
        {"{$set: {'a.0.b': 1}}", "a.b", true},
        {"{$set: {'a.0': 1}}", "a.b", true},
        {"{$set: {'a.b': 1}}", "a.0.b", true},
        {"{$inc: {'a.$[].b': 1}}", "a.b", true},
        {"{$inc: {'a.$[].b': 1}}", "a.c", false},
        {"{$rename: {a: 'b'}}", "a", true},
        {"{$rename: {a: 'b'}}", "b", true},
        {"{$rename: {a: 'b'}}", "c", false},
        {"{a: 1}", "z", true},
        {"{$set: {}}", "z", false},
        {"{$set: {a: 1}}", "$**", true},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct run r;
        run_init(&r);
        ck_assert_int_eq(update_parse(r.a, bval_from_doc(J(rows[i].update)), BVAL_MISSING, false, &r.u, &r.err), 0);
        ck_assert_msg(update_may_touch(r.u, rows[i].path) == rows[i].touch, "%s, %s", rows[i].update, rows[i].path);
        run_free(&r);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, replacements);
    tcase_add_test(tc, an_empty_timestamp_in_a_replacement_is_filled_in);
    tcase_add_test(tc, inserts);
    tcase_add_test(tc, an_insert_without_an_id_gets_one);
    tcase_add_test(tc, empty_timestamps_can_be_kept);
    tcase_add_test(tc, inserts_that_are_refused);
    tcase_add_test(tc, deep_and_large_inserts);
    tcase_add_test(tc, which_indexes_can_change);
}

TEST_MAIN("update/replace", add_tests)
