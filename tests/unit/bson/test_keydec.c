/* Key encodings back into values: equal to what was encoded, and nothing is read that is no encoding. */
#include "protocol/bson/bson.h"

#include <stdlib.h>

#include "server/base/rand.h"
#include "tests/lib/test.h"
#include "tests/unit/bson/values.h"

static struct buf key, again, doc;

static struct bval decode(struct slice s, int pad, size_t *used)
{
    doc.len = 0;
    size_t at = bw_begin(&doc);
    *used = bval_keydec(&doc, "v", s, pad);
    bw_end(&doc, at);
    return bdoc_get(doc.p, "v");
}

/* Through and back: the same encoding, and an equal value. */
static void check(struct bval v, const char *what)
{
    size_t used;
    key.len = again.len = 0;
    bval_keyenc(&key, v, false);
    size_t whole = key.len;
    buf_append(&key, "\x18tail", 5);
    struct bval back = decode(buf_slice(&key), -1, &used);
    ck_assert_msg(used == whole, "%s: %zu of %zu bytes", what, used, whole);
    ck_assert_msg(bval_is_missing(v) || bval_eq(v, back), "%s", what);
    bval_keyenc(&again, back, false);
    ck_assert_msg(again.len == whole && memcmp(again.p, key.p, whole) == 0, "%s", what);
    for (size_t n = 0; n < whole; n++) { /* a part of it is none */
        (void)decode(slice_of(key.p, n), -1, &used);
        ck_assert_msg(used == 0, "%s: %zu bytes of %zu", what, n, whole);
    }
    while (whole > 1 && key.p[whole - 1] == 0) /* bytes that are taken to be there */
        whole--;
    back = decode(slice_of(key.p, whole), 0, &used);
    ck_assert_msg(used >= whole && (bval_is_missing(v) || bval_eq(v, back)), "%s, padded", what);
}

START_TEST(all_values_come_back)
{
    for (size_t i = 0; i < OV_LEN(ORDER); i++)
        check(first_value(ORDER[i].json), ORDER[i].json);
    check(BVAL_MISSING, "missing");
}
END_TEST

START_TEST(numbers_come_back_in_the_plainest_type)
{
    static const struct {
        const char *json, *shown;
        uint8_t type;
    } rows[] = {
        {"{x: {'$numberDouble': '5'}}", "5", BSON_TYPE_INT32},
        {"{x: {'$numberLong': '-7'}}", "-7", BSON_TYPE_INT32},
        {"{x: {'$numberDouble': '-0.0'}}", "0", BSON_TYPE_INT32},
        {"{x: {'$numberDecimal': '2.50'}}", "2.5", BSON_TYPE_DOUBLE},
        {"{x: {'$numberLong': '9007199254740993'}}", "9007199254740993", BSON_TYPE_INT64},
        {"{x: {'$numberLong': '-9223372036854775808'}}", "-9223372036854775808", BSON_TYPE_INT64},
        {"{x: {'$numberDecimal': '9223372036854775807'}}", "9223372036854775807", BSON_TYPE_INT64},
        {"{x: {'$numberDecimal': '0.1'}}", "0.1", BSON_TYPE_DECIMAL128},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        size_t used;
        key.len = 0;
        bval_keyenc(&key, first_value(rows[i].json), false);
        struct bval v = decode(buf_slice(&key), -1, &used);
        again.len = 0;
        bval_to_shell(&again, v, 100);
        buf_byte(&again, 0);
        ck_assert_str_eq((const char *)again.p, rows[i].shown);
        ck_assert_int_eq(v.type, rows[i].type);
    }
}
END_TEST

START_TEST(random_numbers_come_back)
{
    struct rand_gen r;
    uint8_t bytes[16];
    rand_seed(&r, 7);
    for (int i = 0; i < 30000; i++) {
        static const struct bval shapes[] = {{BSON_TYPE_DOUBLE, 8, NULL},    {BSON_TYPE_INT64, 8, NULL},
                                             {BSON_TYPE_INT32, 4, NULL},     {BSON_TYPE_DECIMAL128, 16, NULL},
                                             {BSON_TYPE_DATE_TIME, 8, NULL}, {BSON_TYPE_TIMESTAMP, 8, NULL}};
        struct bval v = shapes[i % OV_LEN(shapes)];
        store_le64(bytes, rand_next(&r) >> rand_next(&r) % 64);
        store_le64(bytes + 8, rand_next(&r));
        v.p = bytes;
        check(v, "a random number");
    }
}
END_TEST

START_TEST(random_bytes_are_read_in_bounds)
{
    struct rand_gen r;
    uint8_t bytes[40];
    rand_seed(&r, 9);
    for (int i = 0; i < 100000; i++) {
        size_t used, n = rand_next(&r) % (sizeof(bytes) + 1);
        for (size_t k = 0; k < n; k++)
            bytes[k] = rand_next(&r) % 3 ? (uint8_t)(rand_next(&r) % 0x50) : (uint8_t)rand_next(&r);
        uint8_t *exact = ov_malloc(n ? n : 1); /* for the address sanitizer */
        memcpy(exact, bytes, n);
        int pad = i % 3 == 0 ? -1 : i % 3 == 1 ? 0 : 0xff;
        struct bval v = decode(slice_of(exact, n), pad, &used);
        ck_assert(used == 0 || pad >= 0 || used <= n);
        if (used && pad < 0) { /* whatever is read is a value, and encodes as some value again */
            again.len = 0;
            bval_keyenc(&again, v, false);
            ck_assert_uint_gt(again.len, 0);
        }
        free(exact);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, all_values_come_back);
    tcase_add_test(tc, numbers_come_back_in_the_plainest_type);
    tcase_add_test(tc, random_numbers_come_back);
    tcase_add_test(tc, random_bytes_are_read_in_bounds);
}
TEST_MAIN("bson/keydec", add_tests)
