/* What is written reads back, and what is looked up is found. */
#include "protocol/bson/bson.h"

#include "tests/lib/json.h"
#include "tests/lib/test.h"

START_TEST(what_is_written_is_what_libbson_writes)
{
    static const uint8_t oid[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const uint8_t *want = J("{i: 5, l: {'$numberLong': '-6'}, d: {'$numberDouble': '1.5'}, t: true, n: null, w: "
                            "{'$date': {'$numberLong': '-7'}},"
                            "s: {'$timestamp': {'t': 8, 'i': 9}}, o: {'$oid': '0102030405060708090a0b0c'}, b: "
                            "{'$binary': {'base64': 'AQI=', 'subType': '05'}},"
                            "e: '', u: 'x\\u0000y', inner: {a: [10, {}]}, copy: {a: [10, {}]}}");
    struct buf b, again;
    char scratch[12];
    buf_init(&b);
    buf_init(&again);
    size_t doc = bw_begin(&b);
    bw_i32(&b, "i", 5);
    bw_i64(&b, "l", -6);
    bw_f64(&b, "d", 1.5);
    bw_bool(&b, "t", true);
    bw_null(&b, "n");
    bw_date(&b, "w", -7);
    bw_ts(&b, "s", 8ull << 32 | 9);
    bw_oid(&b, "o", oid);
    bw_bin(&b, "b", 5, "\1\2", 2);
    bw_str(&b, "e", "");
    bw_strn(&b, "u", "x\0y", 3);
    size_t inner = bw_doc(&b, "inner"), array = bw_arr(&b, "a");
    bw_i32(&b, bw_index(0, scratch), 10);
    bw_end(&b, bw_doc(&b, bw_index(1, scratch)));
    bw_end(&b, array);
    bw_end(&b, inner);
    bw_val(&b, "missing", BVAL_MISSING);
    bw_rawdoc(&b, "copy", bval_doc(bdoc_get(want, "inner")));
    bw_end(&b, doc);
    ck_assert_uint_eq(b.len, bdoc_len(want));
    ck_assert_mem_eq(b.p, want, b.len);

    struct biter it; /* value by value, again the same */
    struct belem e;
    doc = bw_begin(&again);
    biter_init(&it, want);
    while (biter_next(&it, &e))
        bw_valn(&again, e.name, e.name_n, e.v);
    bw_end(&again, doc);
    ck_assert_mem_eq(again.p, want, b.len);
    buf_free(&again);
    buf_free(&b);
}
END_TEST

START_TEST(fields_are_found_by_their_whole_name)
{
    const uint8_t *doc = J("{abcdefgh: 1, abcdefghi: 2, a: 3, '': 4, abcdefghijklmnopqrstuvwxyz: 5, a: 6}");
    ck_assert_int_eq(bval_i32(bdoc_get(doc, "abcdefgh")), 1);
    ck_assert_int_eq(bval_i32(bdoc_get(doc, "abcdefghi")), 2);
    ck_assert_int_eq(bval_i32(bdoc_get(doc, "a")), 3); /* the first of two */
    ck_assert_int_eq(bval_i32(bdoc_get(doc, "")), 4);
    ck_assert_int_eq(bval_i32(bdoc_get(doc, "abcdefghijklmnopqrstuvwxyz")), 5);
    ck_assert(bval_is_missing(bdoc_get(doc, "abcdefg")));
    ck_assert(bval_is_missing(bdoc_get(J("{}"), "a")));
    ck_assert(bdoc_empty(J("{}")));
    ck_assert(!bdoc_empty(doc));
}
END_TEST

START_TEST(indexes_are_decimal)
{
    char scratch[12];
    ck_assert_str_eq(bw_index(0, scratch), "0");
    ck_assert_str_eq(bw_index(10, scratch), "10");
    ck_assert_str_eq(bw_index(UINT32_MAX, scratch), "4294967295");
}
END_TEST

START_TEST(scalars_become_values)
{
    uint8_t raw[8];
    ck_assert_int_eq(bval_i64(bval_from_i32(-2, raw)), -2);
    ck_assert_int_eq(bval_i64(bval_from_i64(INT64_MIN, raw)), INT64_MIN);
    ck_assert(bval_f64(bval_from_f64(0.25, raw)) == 0.25);
    ck_assert_str_eq(bval_type_name(bval_from_doc(J("{}")).type), "object");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, what_is_written_is_what_libbson_writes);
    tcase_add_test(tc, fields_are_found_by_their_whole_name);
    tcase_add_test(tc, indexes_are_decimal);
    tcase_add_test(tc, scalars_become_values);
}

TEST_MAIN("bson/write", add_tests)
