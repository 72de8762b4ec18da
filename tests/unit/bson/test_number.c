/* Numbers: conversion and arithmetic. */
#include "protocol/bson/bson.h"

#include "tests/lib/test.h"
#include "tests/unit/bson/values.h"

#include <math.h>
#include <stdio.h>

static struct bval num(const char *number) /* JSON of a value */
{
    char json[200];
    snprintf(json, sizeof(json), "{x: %s}", number);
    return first_value(json);
}

static const struct {
    const char *value;
    bool fits, exact;
    int64_t n;
} WHOLE[] = {
    {"5", true, true, 5},
    {"{'$numberLong': '-9223372036854775808'}", true, true, INT64_MIN},
    {"{'$numberDouble': '5'}", true, true, 5},
    {"{'$numberDouble': '-0.0'}", true, true, 0},
    {"{'$numberDouble': '5.9'}", true, false, 5},
    {"{'$numberDouble': '-5.9'}", true, false, -5},
    {"{'$numberDouble': '-9223372036854775808'}", true, true, INT64_MIN},
    {"{'$numberDouble': '9223372036854775808'}", false, false, 0},
    {"{'$numberDouble': 'NaN'}", false, false, 0},
    {"{'$numberDouble': 'Infinity'}", false, false, 0},
    {"{'$numberDecimal': '5.00'}", true, true, 5},
    {"{'$numberDecimal': '5E+3'}", true, true, 5000},
    {"{'$numberDecimal': '5.9'}", true, false, 5},
    {"{'$numberDecimal': '-5.9'}", true, false, -5},
    {"{'$numberDecimal': '9223372036854775807'}", true, true, INT64_MAX},
    {"{'$numberDecimal': '9223372036854775808'}", false, false, 0},
    {"{'$numberDecimal': '1E-6176'}", true, false, 0},
    {"{'$numberDecimal': 'NaN'}", false, false, 0},
    {"{'$numberDecimal': '-Infinity'}", false, false, 0},
    {"'5'", false, false, 0},
    {"true", false, false, 0},
    {"null", false, false, 0},
};

START_TEST(numbers_become_int64_when_they_can)
{
    for (size_t i = 0; i < OV_LEN(WHOLE); i++) {
        int64_t n = 77;
        ck_assert_msg(bval_to_i64(num(WHOLE[i].value), false, &n) == WHOLE[i].fits, "%s", WHOLE[i].value);
        if (WHOLE[i].fits)
            ck_assert_msg(n == WHOLE[i].n, "%s: %lld", WHOLE[i].value, (long long)n);
        ck_assert_msg(bval_to_i64(num(WHOLE[i].value), true, &n) == WHOLE[i].exact, "%s", WHOLE[i].value);
    }
}
END_TEST

START_TEST(numbers_become_doubles)
{
    ck_assert(bval_to_f64(num("{'$numberDecimal': '0.1'}")) == 0.1);
    ck_assert(bval_to_f64(num("{'$numberDecimal': '1E+400'}")) == INFINITY);
    ck_assert(isnan(bval_to_f64(num("{'$numberDecimal': 'NaN'}"))));
    ck_assert(bval_to_f64(num("{'$numberLong': '9007199254740993'}")) == 9007199254740992.0);
    ck_assert(bval_to_f64(num("-3")) == -3);
}
END_TEST

START_TEST(zero_null_and_missing_are_false)
{
    static const char *const no[] = {"0",
                                     "false",
                                     "null",
                                     "{'$undefined': true}",
                                     "{'$numberLong': '0'}",
                                     "{'$numberDouble': '-0.0'}",
                                     "{'$numberDecimal': '0E+3'}"};
    static const char *const yes[] = {"1",
                                      "true",
                                      "''",
                                      "[]",
                                      "{}",
                                      "{'$numberDouble': 'NaN'}",
                                      "{'$numberDecimal': 'NaN'}",
                                      "{'$numberDecimal': '1E-6176'}",
                                      "{'$numberDouble': '5e-324'}"};
    for (size_t i = 0; i < OV_LEN(no); i++)
        ck_assert_msg(!bval_truthy(num(no[i])), "%s", no[i]);
    for (size_t i = 0; i < OV_LEN(yes); i++)
        ck_assert_msg(bval_truthy(num(yes[i])), "%s", yes[i]);
    ck_assert(!bval_truthy(BVAL_MISSING));
}
END_TEST

#define LONG(n) "{'$numberLong': '" n "'}"
#define DEC(n)  "{'$numberDecimal': '" n "'}"
#define DBL(n)  "{'$numberDouble': '" n "'}"

static const struct {
    char op;
    const char *a, *b, *type, *want; /* want NULL: overflow */
} SUMS[] = {
    {'+', "1", "2", "int", "3"},
    {'+', "2147483647", "1", "long", "2147483648"},
    {'+', "-2147483648", "-1", "long", "-2147483649"},
    {'+', LONG("1"), "2", "long", "3"},
    {'+', LONG("9223372036854775807"), "1", NULL, NULL},
    {'+', LONG("-9223372036854775808"), "-1", NULL, NULL},
    {'+', "1", DBL("0.5"), "double", "1.5"},
    {'+', LONG("9223372036854775807"), DBL("1"), "double", "9.223372036854776e+18"},
    {'+', DEC("0.1"), DEC("0.2"), "decimal", "0.3"},
    {'+', DBL("0.1"), DEC("0.2"), "decimal", "0.300000000000000"},
    {'+', "1", DEC("0.20"), "decimal", "1.20"},
    {'+', LONG("9223372036854775807"), DEC("1"), "decimal", "9223372036854775808"},
    {'+', DEC("Infinity"), DEC("-Infinity"), "decimal", "NaN"},
    {'+', DBL("0"), DEC("1.5"), "decimal", "1.5"},
    {'*', "6", "7", "int", "42"},
    {'*', "65536", "65536", "long", "4294967296"},
    {'*', LONG("3"), "3", "long", "9"},
    {'*', LONG("4611686018427387904"), "2", NULL, NULL},
    {'*', LONG("-9223372036854775808"), "-1", NULL, NULL},
    {'*', "2", DBL("1.5"), "double", "3.0"},
    {'*', DEC("1.1"), DEC("1.1"), "decimal", "1.21"},
    {'*', DBL("2.5"), DEC("2"), "decimal", "5.00000000000000"},
    {'*', "2", DEC("2.50"), "decimal", "5.00"},
};

START_TEST(sums_and_products_widen)
{
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < OV_LEN(SUMS); i++) {
        uint8_t raw[16];
        struct bval out, a = num(SUMS[i].a), b = num(SUMS[i].b);
        int rc = SUMS[i].op == '+' ? bval_add(a, b, raw, &out) : bval_mul(a, b, raw, &out);
        ck_assert_int_eq(rc, SUMS[i].want ? 0 : ERR_BAD_VALUE);
        if (rc != 0)
            continue;
        ck_assert_str_eq(bval_type_name(out.type), SUMS[i].type);
        ck_assert_msg(strcmp(bval_shell(arena, out), SUMS[i].want) == 0, "%s %c %s is %s, not %s", SUMS[i].a,
                      SUMS[i].op, SUMS[i].b, bval_shell(arena, out), SUMS[i].want);
    }
    arena_free(arena);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, numbers_become_int64_when_they_can);
    tcase_add_test(tc, numbers_become_doubles);
    tcase_add_test(tc, zero_null_and_missing_are_false);
    tcase_add_test(tc, sums_and_products_widen);
}

TEST_MAIN("bson/number", add_tests)
