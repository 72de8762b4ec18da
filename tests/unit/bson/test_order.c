/* The total order, and what must follow it: hashes and key encodings. */
#include "protocol/bson/bson.h"

#include "server/base/rand.h"
#include "tests/lib/test.h"
#include "tests/unit/bson/values.h"

#include <stdio.h>

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

/* rank[i]: how many different values stand before row i. */
static void load(struct bval v[], int rank[])
{
    for (size_t i = 0; i < OV_LEN(ORDER); i++) {
        v[i] = first_value(ORDER[i].json);
        rank[i] = i == 0 ? 0 : rank[i - 1] + !ORDER[i].same;
    }
}

static int key_cmp(struct bval a, struct bval b, bool descending)
{
    struct buf ka, kb;
    buf_init(&ka);
    buf_init(&kb);
    bval_keyenc(&ka, a, descending);
    bval_keyenc(&kb, b, descending);
    int c = slice_cmp(buf_slice(&ka), buf_slice(&kb));
    size_t n = OV_MIN(ka.len, kb.len);
    ck_assert_msg(c == 0 || memcmp(ka.p, kb.p, n) != 0, "one encoding is the prefix of another");
    buf_free(&ka);
    buf_free(&kb);
    return sign(c);
}

START_TEST(values_of_the_table_are_in_order)
{
    struct bval v[OV_LEN(ORDER)];
    int rank[OV_LEN(ORDER)];
    load(v, rank);
    for (size_t i = 0; i < OV_LEN(ORDER); i++)
        for (size_t j = 0; j < OV_LEN(ORDER); j++)
            ck_assert_msg(sign(bval_cmp(v[i], v[j])) == sign(rank[i] - rank[j]), "%s and %s compare as %d",
                          ORDER[i].json, ORDER[j].json, bval_cmp(v[i], v[j]));
}
END_TEST

START_TEST(equality_is_what_the_order_says)
{
    struct bval v[OV_LEN(ORDER)];
    int rank[OV_LEN(ORDER)];
    load(v, rank);
    for (size_t i = 0; i < OV_LEN(ORDER); i++)
        for (size_t j = 0; j < OV_LEN(ORDER); j++)
            ck_assert_msg(bval_eq(v[i], v[j]) == (rank[i] == rank[j]), "%s and %s", ORDER[i].json, ORDER[j].json);
}
END_TEST

START_TEST(keys_are_in_the_order_of_values)
{
    struct bval v[OV_LEN(ORDER)];
    int rank[OV_LEN(ORDER)];
    load(v, rank);
    for (size_t i = 0; i < OV_LEN(ORDER); i++)
        for (size_t j = 0; j < OV_LEN(ORDER); j++) {
            ck_assert_msg(key_cmp(v[i], v[j], false) == sign(rank[i] - rank[j]), "ascending keys of %s and %s",
                          ORDER[i].json, ORDER[j].json);
            ck_assert_msg(key_cmp(v[i], v[j], true) == sign(rank[j] - rank[i]), "descending keys of %s and %s",
                          ORDER[i].json, ORDER[j].json);
        }
}
END_TEST

START_TEST(equal_values_hash_alike_and_others_do_not)
{
    struct bval v[OV_LEN(ORDER)];
    int rank[OV_LEN(ORDER)];
    load(v, rank);
    for (size_t i = 0; i < OV_LEN(ORDER); i++)
        for (size_t j = 0; j < OV_LEN(ORDER); j++)
            ck_assert_msg((bval_hash(v[i], 7) == bval_hash(v[j], 7)) == (rank[i] == rank[j]), "hashes of %s and %s",
                          ORDER[i].json, ORDER[j].json);
}
END_TEST

START_TEST(missing_sorts_with_undefined_but_has_the_key_of_null)
{
    ck_assert_int_eq(bval_cmp(BVAL_MISSING, first_value("{x: {'$undefined': true}}")), 0);
    ck_assert_int_lt(bval_cmp(BVAL_MISSING, BVAL_NULL), 0);
    ck_assert_int_eq(key_cmp(BVAL_MISSING, BVAL_NULL, false), 0);
}
END_TEST

START_TEST(keys_start_in_the_range_of_their_class)
{
    struct bval v[OV_LEN(ORDER)];
    int rank[OV_LEN(ORDER)];
    load(v, rank);
    for (size_t i = 0; i < OV_LEN(ORDER); i++) {
        struct buf k;
        uint8_t low, high, low2, high2;
        buf_init(&k);
        bval_keyenc(&k, v[i], false);
        bval_keyenc_class(v[i].type, &low, &high);
        ck_assert_uint_ge(k.p[0], low);
        ck_assert_uint_le(k.p[0], high);
        for (size_t j = 0; j < i; j++) {
            bval_keyenc_class(v[j].type, &low2, &high2);
            if (bval_class(v[i].type) != bval_class(v[j].type))
                ck_assert_uint_lt(high2, low);
        }
        buf_free(&k);
    }
}
END_TEST

/* ---- numbers at random, many of them neighbours ---- */

static double random_f64(struct rand_gen *r)
{
    static const double around[] = {0,    1,    0.1,    1e15,   9007199254740992.0,    9223372036854775808.0,
                                    1e22, 1e23, 1e-300, 5e-324, 1.7976931348623157e308};
    if (rand_below(r, 3) == 0) {
        uint64_t bits = rand_next(r);
        double d;
        memcpy(&d, &bits, 8);
        return d;
    }
    double d = around[rand_below(r, OV_LEN(around))];
    uint64_t bits;
    memcpy(&bits, &d, 8);
    bits += rand_below(r, 5);
    memcpy(&d, &bits, 8);
    return rand_below(r, 2) ? d : -d;
}

static int64_t random_i64(struct rand_gen *r)
{
    int64_t n = (int64_t)(rand_next(r) >> rand_below(r, 64));
    if (rand_below(r, 2))
        n = (int64_t)((1ull << (50 + rand_below(r, 13))) + rand_below(r, 9) - 4);
    return rand_below(r, 2) ? n : -n;
}

static struct bval random_number(struct rand_gen *r, uint8_t raw[16])
{
    char text[64];
    bson_decimal128_t d;
    int n;
    switch (rand_below(r, 5)) {
    case 0:
        return bval_from_i32((int32_t)rand_next(r) >> rand_below(r, 32), raw);
    case 1:
        return bval_from_i64(random_i64(r), raw);
    case 2:
        return bval_from_f64(random_f64(r), raw);
    case 3: /* a decimal near a double: as many of its digits as fit, the last one moved a little */
        n = snprintf(text, sizeof(text), "%.33e", random_f64(r));
        char *e = strchr(text, 'e');
        if (e && rand_below(r, 2) && e[-1] < '9')
            e[-1]++;
        break;
    default:
        n = snprintf(text, sizeof(text), "%lld.%u", (long long)random_i64(r), (unsigned)rand_below(r, 3));
        break;
    }
    if (!bson_decimal128_from_string_w_len(text, n, &d))
        bson_decimal128_from_string("0", &d);
    store_le64(raw, d.low);
    store_le64(raw + 8, d.high);
    return (struct bval){BSON_TYPE_DECIMAL128, 16, raw};
}

START_TEST(keys_of_random_numbers_are_in_their_order)
{
    struct rand_gen r;
    rand_seed(&r, 20240611);
    for (int i = 0; i < 200000; i++) {
        uint8_t ra[16], rb[16];
        struct bval a = random_number(&r, ra), b = random_number(&r, rb);
        int c = sign(bval_cmp(a, b));
        if (c != key_cmp(a, b, false) || c != -sign(bval_cmp(b, a)) || (c == 0 && bval_hash(a, 0) != bval_hash(b, 0))) {
            struct arena *arena = arena_new(0);
            ck_abort_msg("%s %s and %s %s: compare %d, keys %d", bval_type_name(a.type), bval_shell(arena, a),
                         bval_type_name(b.type), bval_shell(arena, b), c, key_cmp(a, b, false));
        }
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, values_of_the_table_are_in_order);
    tcase_add_test(tc, equality_is_what_the_order_says);
    tcase_add_test(tc, keys_are_in_the_order_of_values);
    tcase_add_test(tc, equal_values_hash_alike_and_others_do_not);
    tcase_add_test(tc, missing_sorts_with_undefined_but_has_the_key_of_null);
    tcase_add_test(tc, keys_start_in_the_range_of_their_class);
    tcase_add_test(tc, keys_of_random_numbers_are_in_their_order);
}

TEST_MAIN("bson/order", add_tests)
