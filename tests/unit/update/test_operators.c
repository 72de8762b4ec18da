/* Each operator on each kind of field: the document after it, whether anything changed, and the edits. */
#include "tests/unit/update/harness.h"

struct row {
    const char *doc, *update;
    const char *want; /* NULL: nothing changes */
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *doc = J(rows[i].doc);
        char what[512];
        struct run r;
        snprintf(what, sizeof(what), "%s on %s", rows[i].update, rows[i].doc);
        run_update(&r, doc, bval_from_doc(J(rows[i].update)), BVAL_MISSING, -1);
        check_doc(&r, rows[i].want ? J(rows[i].want) : doc, what);
        ck_assert_msg(r.effect.changed == (rows[i].want != NULL), "%s: changed is %d", what, r.effect.changed);
        ck_assert_msg((r.effect.n_edits > 0) == r.effect.changed, "%s: %u edits", what, r.effect.n_edits);
        check_edits(&r, doc, what);
        run_free(&r);
    }
}

START_TEST(set_and_unset)
{
    static const struct row rows[] = {
        {"{a: 1}", "{$set: {a: 2}}", "{a: 2}"},
        {"{a: 1}", "{$set: {a: 1}}", NULL},
        {"{a: 1}", "{$set: {a: 1.0}}", "{a: 1.0}"},
        {"{a: 1}", "{$set: {b: 2}}", "{a: 1, b: 2}"},
        {"{a: 1, z: 5}", "{$set: {a: 'x'}}", "{a: 'x', z: 5}"},
        {"{a: 'abc', z: 5}", "{$set: {a: 'abXYc'}}", "{a: 'abXYc', z: 5}"},
        {"{}", "{$set: {'a.b.c': 1}}", "{a: {b: {c: 1}}}"},
        {"{a: {x: 1}, z: 1}", "{$set: {'a.b': 2}}", "{a: {x: 1, b: 2}, z: 1}"},
        {"{a: {x: 1, y: {q: 1}}, z: 1}", "{$set: {'a.y.q': 'text', z: 2}}", "{a: {x: 1, y: {q: 'text'}}, z: 2}"},
        {"{a: [1, 2, 3]}", "{$set: {'a.1': 9}}", "{a: [1, 9, 3]}"},
        {"{a: [1]}", "{$set: {'a.3': 9}}", "{a: [1, null, null, 9]}"},
        {"{a: [1]}", "{$set: {'a.3': 9, 'a.1': 8}}", "{a: [1, 8, null, 9]}"},
        {"{a: []}", "{$set: {'a.0.b': 9, 'a.1.b': 8}}", "{a: [{b: 9}, {b: 8}]}"},
        {"{a: [{b: 1}]}", "{$set: {'a.0.b': 2}}", "{a: [{b: 2}]}"},
        {"{}", "{$set: {'a.0': 1}}", "{a: {'0': 1}}"},
        {"{a: 1}", "{$set: {}}", NULL},
        {"{a: 1}", "{$set: {}, $unset: {}, $push: {}}", NULL},
        {"{z: 1, y: 2}", "{$set: {d: 1, c: 1, z: 9}}", "{z: 9, y: 2, c: 1, d: 1}"},
        {"{}", "{$set: {'10': 1, '9': 1, 'a': 1, '2': 1}}", "{'2': 1, '9': 1, '10': 1, a: 1}"},
        {"{}", "{$set: {'a.z': 1, b: 2}, $inc: {'a.c': 3}}", "{a: {c: 3, z: 1}, b: 2}"},
        {"{_id: 1, a: 1}", "{$set: {_id: 1, a: 2}}", "{_id: 1, a: 2}"},
        {"{_id: 1, a: 1}", "{$set: {_id: 1.0}}", "{_id: 1.0, a: 1}"},
        {"{a: {~x: 1}}", "{$set: {a: {~y: 1}}}", "{a: {~y: 1}}"},
        {"{a: {}}", "{$set: {'a.$id': 1, 'a.$x': 2}}", "{a: {~id: 1, ~x: 2}}"},
        {"{~a: {b: 1}}", "{$inc: {'$a.b': 1}}", "{~a: {b: 2}}"},
        /* more than eight, more than 64 paths in one document */
        {"{f: 1, b: 1}", "{$set: {a: 2, b: 2, c: 2, d: 2, e: 2, f: 2, g: 2, h: 2, i: 2, j: 2}}",
         "{f: 2, b: 2, a: 2, c: 2, d: 2, e: 2, g: 2, h: 2, i: 2, j: 2}"},
        {"{a: [0,1,2,3,4,5,6,7,8,9,10,11]}",
         "{$set: {'a.0': 'x','a.2': 'x','a.3': 'x','a.4': 'x','a.5': 'x','a.6': 'x','a.7': 'x','a.8': 'x','a.9': "
         "'x','a.10': 'x','a.12': 'x'}}",
         "{a: ['x',1,'x','x','x','x','x','x','x','x','x',11,'x']}"},
        /* $unset */
        {"{a: 1, b: 2}", "{$unset: {a: ''}}", "{b: 2}"},
        {"{a: {b: 1, c: 2}, d: 1}", "{$unset: {'a.b': 1}}", "{a: {c: 2}, d: 1}"},
        {"{a: [1, 2, 3]}", "{$unset: {'a.1': 1}}", "{a: [1, null, 3]}"},
        {"{a: [1, null, 3]}", "{$unset: {'a.1': 1}}", NULL},
        {"{a: 1}", "{$unset: {b: 1, 'c.d': 1}}", NULL},
        {"{a: 1}", "{$setOnInsert: {'a.x': 1}}", NULL},
        {"{a: [1]}", "{$unset: {'a.x': 1, 'a.5': 1}}", NULL},
        {"{a: 1, b: 2, c: 3}", "{$unset: {a: 1, b: 1}, $set: {d: 4}}", "{c: 3, d: 4}"},
        {"{a: 1, b: 2}", "{$unset: {a: 1, b: 1}}", "{}"},
        {"{~a: 1, b: 2}", "{$unset: {~a: 1}}", "{b: 2}"},
        {"{a: 1}", "{$setOnInsert: {a: 2, b: 3, 'c.d': 1}}", NULL},
        {"{a: 1}", "{$setOnInsert: {'a.x': 1}}", NULL},
    };
    check_rows(rows, OV_LEN(rows));
}
END_TEST

START_TEST(numbers)
{
    static const struct row rows[] = {
        {"{a: 1}", "{$inc: {a: 2}}", "{a: 3}"},
        {"{}", "{$inc: {a: 2}}", "{a: 2}"},
        {"{a: 1}", "{$inc: {a: 0}}", NULL},
        {"{a: 1}", "{$inc: {a: {'$numberLong': '0'}}}", "{a: {'$numberLong': '1'}}"},
        {"{a: 1}", "{$inc: {a: -1.5}}", "{a: -0.5}"},
        {"{a: 0.5}", "{$inc: {a: 1}}", "{a: 1.5}"},
        {"{}", "{$inc: {'a.b': 2}}", "{a: {b: 2}}"},
        {"{a: [1, 2]}", "{$inc: {'a.0': 5}}", "{a: [6, 2]}"},
        {"{a: 2147483647, b: 1}", "{$inc: {a: 1}}", "{a: {'$numberLong': '2147483648'}, b: 1}"},
        {"{a: {'$numberLong': '5'}}", "{$inc: {a: 1}}", "{a: {'$numberLong': '6'}}"},
        {"{a: {'$numberDecimal': '1'}}", "{$inc: {a: {'$numberDecimal': '0.1'}}}", "{a: {'$numberDecimal': '1.1'}}"},
        {"{a: 3}", "{$mul: {a: 2}}", "{a: 6}"},
        {"{a: 3}", "{$mul: {a: 1}}", NULL},
        {"{}", "{$mul: {a: 2}}", "{a: 0}"},
        {"{}", "{$mul: {a: 2.5}}", "{a: 0.0}"},
        {"{}", "{$mul: {a: -2.5}}", "{a: -0.0}"},
        {"{}", "{$mul: {a: {'$numberLong': '7'}}}", "{a: {'$numberLong': '0'}}"},
        {"{a: 65536}", "{$mul: {a: 65536}}", "{a: {'$numberLong': '4294967296'}}"},
        {"{a: 3}", "{$min: {a: 2}}", "{a: 2}"},
        {"{a: 3}", "{$min: {a: 4}}", NULL},
        {"{a: 3}", "{$min: {a: 3.0}}", NULL},
        {"{a: 'x'}", "{$min: {a: 4}}", "{a: 4}"},
        {"{a: 3}", "{$max: {a: 2, b: 1}}", "{a: 3, b: 1}"},
        {"{a: 3}", "{$max: {a: 'x'}}", "{a: 'x'}"},
        {"{a: 13}", "{$bit: {a: {and: 10}}}", "{a: 8}"},
        {"{a: 13}", "{$bit: {a: {or: 2}}}", "{a: 15}"},
        {"{a: 13}", "{$bit: {a: {xor: 5}}}", "{a: 8}"},
        {"{a: 13}", "{$bit: {a: {and: 13}}}", NULL},
        {"{a: 13}", "{$bit: {a: {and: 12, or: 1}}}", NULL},
        {"{a: 13}", "{$bit: {a: {or: {'$numberLong': '16'}}}}", "{a: {'$numberLong': '29'}}"},
        {"{}", "{$bit: {a: {or: 3}, b: {and: 3}}}", "{a: 3, b: 0}"},
    };
    check_rows(rows, OV_LEN(rows));
}
END_TEST

START_TEST(pushes)
{
    static const struct row rows[] = {
        {"{}", "{$push: {a: 1}}", "{a: [1]}"},
        {"{a: [1], b: 1}", "{$push: {a: 2}}", "{a: [1, 2], b: 1}"},
        {"{a: []}", "{$push: {a: 2}}", "{a: [2]}"},
        {"{a: [1]}", "{$push: {a: [2, 3]}}", "{a: [1, [2, 3]]}"},
        {"{a: [1]}", "{$push: {a: {x: 1}}}", "{a: [1, {x: 1}]}"},
        {"{a: [1]}", "{$push: {a: {$each: [2, 3]}}}", "{a: [1, 2, 3]}"},
        {"{a: [1]}", "{$push: {a: {$each: []}}}", NULL},
        {"{}", "{$push: {a: {$each: []}}}", "{a: []}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [9], $position: 0}}}", "{a: [9, 1, 2]}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [9], $position: 1}}}", "{a: [1, 9, 2]}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [9], $position: 7}}}", "{a: [1, 2, 9]}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [9], $position: -1}}}", "{a: [1, 9, 2]}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [9], $position: -7}}}", "{a: [9, 1, 2]}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [3, 4], $slice: -3}}}", "{a: [2, 3, 4]}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [3], $slice: 2}}}", NULL},
        {"{a: [1, 2]}", "{$push: {a: {$each: [3], $slice: 0}}}", "{a: []}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [3], $slice: -9}}}", "{a: [1, 2, 3]}"},
        {"{a: [1, 2]}", "{$push: {a: {$slice: 1, $each: []}}}", "{a: [1]}"},
        {"{}", "{$push: {a: {$each: [1, 2, 3], $slice: -2}}}", "{a: [2, 3]}"},
        {"{a: [3, 1]}", "{$push: {a: {$each: [2], $sort: 1}}}", "{a: [1, 2, 3]}"},
        {"{a: [3, 1]}", "{$push: {a: {$each: [2], $sort: -1, $slice: 2}}}", "{a: [3, 2]}"},
        {"{a: [1, 2]}", "{$push: {a: {$each: [], $sort: 1}}}", NULL},
        {"{a: [{s: 3}, {s: 1}]}", "{$push: {a: {$each: [{s: 2}], $sort: {s: -1}, $slice: 2}}}",
         "{a: [{s: 3}, {s: 2}]}"},
        {"{a: [{s: 1, t: 1}, {s: 0, t: 2}, {s: 1, t: 3}]}", "{$push: {a: {$each: [{s: 0, t: 4}], $sort: {s: 1}}}}",
         "{a: [{s: 0, t: 2}, {s: 0, t: 4}, {s: 1, t: 1}, {s: 1, t: 3}]}"},
        {"{a: [{s: {t: 2}}, 5, {s: {t: 1}}]}", "{$push: {a: {$each: [], $sort: {'s.t': 1}}}}",
         "{a: [5, {s: {t: 1}}, {s: {t: 2}}]}"},
        {"{a: [{s: 1, t: 1}, {s: 1, t: 2}]}", "{$push: {a: {$each: [], $sort: {s: 1, t: -1}}}}",
         "{a: [{s: 1, t: 2}, {s: 1, t: 1}]}"},
        {"{}", "{$push: {'a.b': 1}}", "{a: {b: [1]}}"},
        {"{a: [[1]]}", "{$push: {'a.0': 2}}", "{a: [[1, 2]]}"},
        {"{a: [0,1,2,3,4,5,6,7,8]}", "{$push: {a: {$each: [9, 10]}}}", "{a: [0,1,2,3,4,5,6,7,8,9,10]}"},
    };
    check_rows(rows, OV_LEN(rows));
}
END_TEST

START_TEST(sets_and_ends)
{
    static const struct row rows[] = {
        {"{a: [1]}", "{$addToSet: {a: 1}}", NULL},
        {"{a: [1]}", "{$addToSet: {a: 1.0}}", NULL},
        {"{a: [1]}", "{$addToSet: {a: 2}}", "{a: [1, 2]}"},
        {"{}", "{$addToSet: {a: 1}}", "{a: [1]}"},
        {"{}", "{$addToSet: {a: {$each: [1, 1]}}}", "{a: [1]}"},
        {"{a: [1]}", "{$addToSet: {a: {$each: [1, 2, 2, 3]}}}", "{a: [1, 2, 3]}"},
        {"{a: [1]}", "{$addToSet: {a: [1]}}", "{a: [1, [1]]}"},
        {"{a: [{x: 1, y: 2}]}", "{$addToSet: {a: {x: 1, y: 2}}}", NULL},
        {"{a: [{x: 1, y: 2}]}", "{$addToSet: {a: {y: 2, x: 1}}}", "{a: [{x: 1, y: 2}, {y: 2, x: 1}]}"},
        {"{a: [1, 'x']}", "{$addToSet: {a: {$each: [1,2,3,4,5,6,7,8,9,10,'x']}}}", "{a: [1,'x',2,3,4,5,6,7,8,9,10]}"},
        {"{a: [1, 2, 1]}", "{$pullAll: {a: []}}", NULL},
        {"{a: [1, 2, 1, 3]}", "{$pullAll: {a: [1, 3.0]}}", "{a: [2]}"},
        {"{b: 1}", "{$pullAll: {a: [1]}}", NULL},
        {"{a: [1, 2, 3]}", "{$pop: {a: 1}}", "{a: [1, 2]}"},
        {"{a: [1, 2, 3]}", "{$pop: {a: -1}}", "{a: [2, 3]}"},
        {"{a: [1, 2, 3]}", "{$pop: {a: 1.0}}", "{a: [1, 2]}"},
        {"{a: []}", "{$pop: {a: 1}}", NULL},
        {"{b: 1}", "{$pop: {a: 1}}", NULL},
        {"{a: [1, 2, 1]}", "{$pull: {a: 1}}", "{a: [2]}"},
        {"{a: [1, 2, [1]]}", "{$pull: {a: [1]}}", "{a: [1, 2]}"},
        {"{a: [1]}", "{$pull: {a: 2}}", NULL},
        {"{b: 1}", "{$pull: {a: 1}}", NULL},
        {"{a: {b: [1, 2]}}", "{$pull: {'a.b': 2}}", "{a: {b: [1]}}"},
        {"{a: {b: 1}}", "{$pull: {'a.c': 2, 'a.d.e': 1}}", NULL},
    };
    check_rows(rows, OV_LEN(rows));
}
END_TEST

START_TEST(renames)
{
    static const struct row rows[] = {
        {"{a: 1, b: 2}", "{$rename: {a: 'c'}}", "{b: 2, c: 1}"},
        {"{a: 1, b: 2, z: 0}", "{$rename: {a: 'b'}}", "{b: 1, z: 0}"},
        {"{b: 2}", "{$rename: {a: 'c'}}", NULL},
        {"{b: 2}", "{$rename: {a: 'b.c'}}", NULL},
        {"{b: 2}", "{$rename: {a: 'x.y'}}", NULL},
        {"{b: [{c: 1}]}", "{$rename: {'b.7.c': 'x', 'b.0.z': 'y'}}", NULL},
        {"{a: 1, b: 1.0}", "{$rename: {a: 'b'}}", "{b: 1.0}"},
        {"{a: {x: 1}}", "{$rename: {'a.x': 'a.y'}}", "{a: {y: 1}}"},
        {"{a: {x: 'text'}}", "{$rename: {'a.x': 'b.c.d'}}", "{a: {}, b: {c: {d: 'text'}}}"},
        {"{a: 1, b: 2}", "{$rename: {a: 'c', b: 'd'}}", "{c: 1, d: 2}"},
    };
    check_rows(rows, OV_LEN(rows));
}
END_TEST

START_TEST(many_paths)
{
    struct buf u = {0}, want = {0};
    char name[16];
    struct run r;
    const uint8_t *doc = J("{f050: 0, f003: 'x'}");
    size_t start = bw_begin(&u), set = bw_doc(&u, "$set"), w = bw_begin(&want);
    bw_i32(&want, "f050", 1);
    bw_i32(&want, "f003", 1);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "f%03d", (i * 77) % 200);
        bw_i32(&u, name, 1);
        snprintf(name, sizeof(name), "f%03d", i);
        if (i != 50 && i != 3)
            bw_i32(&want, name, 1);
    }
    bw_end(&want, w);
    bw_end(&u, set);
    bw_end(&u, start);
    run_update(&r, doc, bval_from_doc(u.p), BVAL_MISSING, -1);
    check_doc(&r, want.p, "200 fields");
    check_edits(&r, doc, "200 fields");
    run_free(&r);
    buf_free(&u);
    buf_free(&want);
}
END_TEST

START_TEST(one_small_edit_for_an_increment)
{
    const uint8_t *doc = J("{_id: 1, text: 'some bytes before it', n: 5, more: 'and behind it'}");
    struct run r;
    run_update(&r, doc, bval_from_doc(J("{$inc: {n: 1}}")), BVAL_MISSING, -1);
    check_doc(&r, J("{_id: 1, text: 'some bytes before it', n: 6, more: 'and behind it'}"), "$inc");
    ck_assert_uint_eq(r.effect.n_edits, 1);
    ck_assert_uint_eq(r.effect.edits[0].removed, 1);
    ck_assert_uint_eq(r.effect.edits[0].added, 1);
    run_free(&r);
}
END_TEST

START_TEST(a_push_edits_only_the_end_and_the_lengths)
{
    const uint8_t *doc = J("{_id: 1, a: [{x: 'a long element'}, {x: 'another long element'}], z: 1}");
    struct run r;
    run_update(&r, doc, bval_from_doc(J("{$push: {a: 7}}")), BVAL_MISSING, -1);
    check_edits(&r, doc, "$push");
    ck_assert_uint_eq(r.effect.n_edits, 3);
    ck_assert_uint_eq(r.effect.edits[2].removed, 0);
    run_free(&r);
}
END_TEST

START_TEST(current_date)
{
    const uint8_t *doc = J("{_id: 1, b: 'x'}");
    struct run r;
    run_update(&r, doc, bval_from_doc(J("{$currentDate: {a: true, b: {~type: 'timestamp'}, 'c.d': {~type: 'date'}}}")),
               BVAL_MISSING, -1);
    ck_assert_int_eq(r.rc, 0);
    const uint8_t *got = run_doc(&r);
    ck_assert_int_eq(bdoc_get(got, "a").type, BSON_TYPE_DATE_TIME);
    ck_assert_int_eq(bdoc_get(got, "b").type, BSON_TYPE_TIMESTAMP);
    ck_assert(load_le64(bdoc_get(got, "a").p) > 1500000000000ull);
    ck_assert(load_le64(bdoc_get(got, "b").p) >> 32 > 1500000000ull);
    ck_assert_int_eq(bdoc_get(bval_doc(bdoc_get(got, "c")), "d").type, BSON_TYPE_DATE_TIME);
    check_edits(&r, doc, "$currentDate");
    run_free(&r);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, set_and_unset);
    tcase_add_test(tc, numbers);
    tcase_add_test(tc, pushes);
    tcase_add_test(tc, sets_and_ends);
    tcase_add_test(tc, renames);
    tcase_add_test(tc, many_paths);
    tcase_add_test(tc, one_small_edit_for_an_increment);
    tcase_add_test(tc, a_push_edits_only_the_end_and_the_lengths);
    tcase_add_test(tc, current_date);
}

TEST_MAIN("update/operators", add_tests)
