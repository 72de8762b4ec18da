/* What an upsert inserts. */
#include "tests/unit/update/harness.h"

static void upsert(struct run *r, const char *filter, const char *update, struct bval *id)
{
    struct match *m;
    run_init(r);
    ck_assert_msg((r->rc = match_parse(r->a, J(filter), &m, &r->err)) == 0, "%s: %s", filter, r->err.msg);
    r->rc = update_parse(r->a, bval_from_doc(J(update)), BVAL_MISSING, false, &r->u, &r->err);
    if (r->rc == 0)
        r->rc = update_upsert(r->u, m, r->a, &r->out, id, &r->err);
    ck_assert_int_eq(r->rc, r->err.code);
    if (r->rc)
        ck_assert_uint_eq(r->out.len, 6);
}

START_TEST(documents)
{
    static const struct {
        const char *filter, *update, *want;
    } rows[] = {
        {"{_id: 5}", "{$set: {a: 1}}", "{_id: 5, a: 1}"},
        {"{_id: 5, b: 2}", "{$set: {a: 1}}", "{_id: 5, b: 2, a: 1}"},
        {"{b: 2, _id: 5}", "{$set: {a: 1}}", "{_id: 5, b: 2, a: 1}"},
        {"{_id: 5, b: {$eq: 2}}", "{$inc: {n: 1}}", "{_id: 5, b: 2, n: 1}"},
        {"{_id: 5, b: {$gt: 2}}", "{$set: {a: 1}}", "{_id: 5, a: 1}"},
        {"{_id: 5, b: {$in: [7]}}", "{$set: {a: 1}}", "{_id: 5, b: 7, a: 1}"},
        {"{_id: 5, b: {$in: [7, 8]}}", "{$set: {a: 1}}", "{_id: 5, a: 1}"},
        {"{$and: [{_id: 5}, {b: 3}]}", "{$set: {a: 1}}", "{_id: 5, b: 3, a: 1}"},
        {"{$or: [{_id: 5}]}", "{$set: {a: 1}}", "{_id: 5, a: 1}"},
        {"{_id: 5, 'x.y': 1, 'x.z': 2}", "{$set: {a: 1}}", "{_id: 5, x: {y: 1, z: 2}, a: 1}"},
        {"{'_id.k': 5}", "{$set: {a: 1}}", "{_id: {k: 5}, a: 1}"},
        {"{_id: 5}", "{$setOnInsert: {c: 3}, $set: {a: 1}}", "{_id: 5, a: 1, c: 3}"},
        {"{_id: 5, b: 1}", "{$inc: {b: 2}}", "{_id: 5, b: 3}"},
        {"{_id: 5, b: [1]}", "{$push: {b: 2}}", "{_id: 5, b: [1, 2]}"},
        {"{_id: 5, b: 1}", "{$unset: {b: 1}}", "{_id: 5}"},
        {"{b: 1}", "{$set: {a: 1, _id: 7}}", "{_id: 7, b: 1, a: 1}"},
        {"{b: 1}", "{$setOnInsert: {_id: 7}}", "{_id: 7, b: 1}"},
        {"{_id: 5}", "{$set: {_id: 5}}", "{_id: 5}"},
        {"{_id: 5}", "{$set: {}}", "{_id: 5}"},
        {"{_id: 5, a: 1}", "{b: 2}", "{_id: 5, b: 2}"},
        {"{_id: 5, a: 1, $and: [{a: 2}]}", "{b: 2}", "{_id: 5, b: 2}"},
        {"{a: 1}", "{b: 2, _id: 6}", "{_id: 6, b: 2}"},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct run r;
        struct bval id;
        char what[256];
        snprintf(what, sizeof(what), "%s, %s", rows[i].filter, rows[i].update);
        upsert(&r, rows[i].filter, rows[i].update, &id);
        check_doc(&r, J(rows[i].want), what);
        ck_assert_msg(bval_eq(id, bdoc_get(J(rows[i].want), "_id")), "%s: another _id is reported", what);
        run_free(&r);
    }
}
END_TEST

START_TEST(an_id_is_made)
{
    static const char *const updates[] = {"{$set: {b: 2}}", "{b: 2}"};
    for (size_t i = 0; i < OV_LEN(updates); i++) {
        struct run r;
        struct bval id;
        struct biter it;
        struct belem e;
        upsert(&r, "{a: 1}", updates[i], &id);
        ck_assert_int_eq(r.rc, 0);
        ck_assert_int_eq(id.type, BSON_TYPE_OID);
        biter_init(&it, run_doc(&r));
        ck_assert(biter_next(&it, &e) && strcmp(e.name, "_id") == 0 && bval_eq(e.v, id));
        ck_assert_int_eq(bval_i32(bdoc_get(run_doc(&r), "b")), 2);
        run_free(&r);
    }
}
END_TEST

START_TEST(errors)
{
    static const struct {
        const char *filter, *update;
        int code;
        const char *msg;
    } rows[] = {
        {"{$and: [{a: 1}, {a: 2}]}", "{$set: {b: 1}}", 54,
         "cannot infer query fields to set, path 'a' is matched twice"},
        {"{a: 1, 'a.b': 2}", "{$set: {b: 1}}", 54,
         "cannot infer query fields to set, both paths 'a.b' and 'a' are matched"},
        {"{_id: 1}", "{$set: {_id: 2}}", 66,
         "Performing an update on the path '_id' would modify the immutable field '_id'"},
        {"{_id: 1}", "{_id: 2}", 66,
         "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2"},
        {"{'_id.a': 1}", "{b: 2}", 111, "field at '_id' must be exactly specified, field at sub-path '_id.a'found"},
        {"{b: 1}", "{$set: {_id: [1]}}", 53, "The '_id' value cannot be of type array"},
        {"{b: 1}", "{$set: {'b.c': 1}}", 28, "Cannot create field 'c' in element {b: 1}"},
        {"{b: [1]}", "{$set: {'b.$': 1}}", 2, "The positional operator did not find the match needed from the query."},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct run r;
        struct bval id;
        upsert(&r, rows[i].filter, rows[i].update, &id);
        ck_assert_msg(r.rc == rows[i].code && strcmp(r.err.msg, rows[i].msg) == 0, "%s, %s: got %d \"%s\"",
                      rows[i].filter, rows[i].update, r.rc, r.rc ? r.err.msg : "");
        run_free(&r);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, documents);
    tcase_add_test(tc, an_id_is_made);
    tcase_add_test(tc, errors);
}

TEST_MAIN("update/upsert", add_tests)
