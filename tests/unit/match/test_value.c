/* $type, $mod, $bits…, $regex. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/match/table.h"

START_TEST(type)
{
    CHECK_ROWS({"{a: {~type: 'int'}}", "{a: 1}", true}, {"{a: {~type: 'int'}}", "{a: 1.5}", false},
               {"{a: {~type: 16}}", "{a: 1}", true}, {"{a: {~type: 'number'}}", "{a: 1.5}", true},
               {"{a: {~type: 'number'}}", "{a: {$numberDecimal: '1'}}", true},
               {"{a: {~type: 'number'}}", "{a: '1'}", false}, {"{a: {~type: 'array'}}", "{a: []}", true},
               {"{a: {~type: 'array'}}", "{a: 1}", false}, {"{a: {~type: 'string'}}", "{a: [1, 'x']}", true},
               {"{a: {~type: ['bool', 'null']}}", "{a: null}", true}, {"{a: {~type: ['bool', 'null']}}", "{}", false},
               {"{a: {~type: 'minKey'}}", "{a: {$minKey: 1}}", true}, {"{a: {~type: -1}}", "{a: {$minKey: 1}}", true},
               {"{a: {~type: 127}}", "{a: {$maxKey: 1}}", true}, {"{a: {~type: 'maxKey'}}", "{a: {$minKey: 1}}", false},
               {"{a: {~type: 'objectId'}}", "{a: {$oid: '0123456789abcdef01234567'}}", true},
               {"{a: {~type: 'undefined'}}", "{a: {$undefined: true}}", true}, {"{a: {~type: 2.0}}", "{a: 'x'}", true});
    CHECK_BAD({"{a: {~type: 'foo'}}", 2, "Unknown type name alias: foo"},
              {"{a: {~type: 99}}", 2, "Invalid numerical type code: 99"},
              {"{a: {~type: true}}", 14, "type must be represented as a number or a string"},
              {"{a: {~type: []}}", 9, "a must match at least one type"});
}
END_TEST

START_TEST(mod)
{
    CHECK_ROWS({"{a: {$mod: [4, 1]}}", "{a: 5}", true}, {"{a: {$mod: [4, 1]}}", "{a: 6}", false},
               {"{a: {$mod: [4, 1]}}", "{a: 5.9}", true}, {"{a: {$mod: [4.7, 1.2]}}", "{a: 5}", true},
               {"{a: {$mod: [4, -1]}}", "{a: -5}", true}, {"{a: {$mod: [4, 1]}}", "{a: 'x'}", false},
               {"{a: {$mod: [4, 1]}}", "{a: {$numberDouble: 'NaN'}}", false},
               {"{a: {$mod: [4, 1]}}", "{a: {$numberDouble: 'Infinity'}}", false},
               {"{a: {$mod: [4, 0]}}", "{a: 1e300}", false},
               {"{a: {$mod: [-1, 0]}}", "{a: {$numberLong: '-9223372036854775808'}}", true},
               {"{a: {$mod: [4, 1]}}", "{a: [2, 5]}", true},
               {"{a: {$mod: [{$numberLong: '4294967296'}, 1]}}", "{a: {$numberLong: '4294967297'}}", true},
               {"{a: {$mod: [4, 1]}}", "{a: {$numberDecimal: '5.5'}}", true});
    CHECK_BAD({"{a: {$mod: 1}}", 2, "malformed mod, needs to be an array"},
              {"{a: {$mod: []}}", 2, "malformed mod, not enough elements"},
              {"{a: {$mod: [1]}}", 2, "malformed mod, not enough elements"},
              {"{a: {$mod: [1, 2, 3]}}", 2, "malformed mod, too many elements"},
              {"{a: {$mod: ['x', 1]}}", 2, "malformed mod, divisor not a number"},
              {"{a: {$mod: [1, 'x']}}", 2, "malformed mod, remainder not a number"},
              {"{a: {$mod: [0, 1]}}", 2, "divisor cannot be 0"},
              {"{a: {$mod: [1e300, 1]}}", 2,
               "malformed mod, divisor value is invalid :: caused by :: Out of bounds coercing to integral value"});
}
END_TEST

START_TEST(bits)
{
    CHECK_ROWS({"{a: {$bitsAllSet: 5}}", "{a: 7}", true}, {"{a: {$bitsAllSet: 5}}", "{a: 4}", false},
               {"{a: {$bitsAllSet: [0, 2]}}", "{a: 5}", true}, {"{a: {$bitsAnySet: [0, 2]}}", "{a: 4}", true},
               {"{a: {$bitsAnySet: [0, 2]}}", "{a: 2}", false}, {"{a: {$bitsAllClear: 5}}", "{a: 2}", true},
               {"{a: {$bitsAllClear: 5}}", "{a: 4}", false}, {"{a: {$bitsAnyClear: 5}}", "{a: 4}", true},
               {"{a: {$bitsAnyClear: 5}}", "{a: 7}", false}, {"{a: {$bitsAllSet: [200]}}", "{a: -1}", true},
               {"{a: {$bitsAllSet: [200]}}", "{a: 1}", false}, {"{a: {$bitsAllClear: [200]}}", "{a: 1}", true},
               {"{a: {$bitsAllSet: 5}}", "{a: 5.0}", true}, {"{a: {$bitsAllSet: 5}}", "{a: 5.5}", false},
               {"{a: {$bitsAllSet: 5}}", "{a: 'x'}", false}, {"{a: {$bitsAllSet: 0}}", "{a: 1}", true},
               {"{a: {$bitsAnySet: 0}}", "{a: 1}", false}, {"{a: {$bitsAllSet: 0}}", "{a: 'x'}", false},
               {"{a: {$bitsAllSet: [1, 8]}}", "{a: {$binary: {base64: 'AgE=', subType: '00'}}}", true},
               {"{a: {$bitsAllSet: [1, 9]}}", "{a: {$binary: {base64: 'AgE=', subType: '00'}}}", false},
               {"{a: {$bitsAllClear: [500]}}", "{a: {$binary: {base64: 'AgE=', subType: '00'}}}", true},
               {"{a: {$bitsAllSet: {$binary: {base64: 'AgE=', subType: '00'}}}}", "{a: 258}", true},
               {"{a: {$bitsAllSet: {$binary: {base64: 'AgE=', subType: '00'}}}}", "{a: 2}", false},
               {"{a: {$bitsAllSet: []}}", "{a: 2}", true});
    CHECK_BAD(
        {"{a: {$bitsAllSet: 'x'}}", 2, "a takes an Array, a number, or a BinData but received: $bitsAllSet: \"x\""},
        {"{a: {$bitsAllSet: -1}}", 9, "Expected a non-negative number in: $bitsAllSet: -1"},
        {"{a: {$bitsAnySet: 1.5}}", 9, "Expected an integer: $bitsAnySet: 1.5"},
        {"{a: {$bitsAnyClear: ['x']}}", 2, "Failed to parse bit position. Expected a number in: 0: \"x\""},
        {"{a: {$bitsAnyClear: [1, -2]}}", 2, "Failed to parse bit position. Expected a non-negative number in: 1: -2"});
}
END_TEST

START_TEST(regex)
{
    CHECK_ROWS({"{a: {~regex: '^ab'}}", "{a: 'abc'}", true}, {"{a: {~regex: '^ab'}}", "{a: 'cab'}", false},
               {"{a: {~regex: 'B'}}", "{a: 'abc'}", false}, {"{a: {~regex: 'B', ~options: 'i'}}", "{a: 'abc'}", true},
               {"{a: {~options: 'i', ~regex: 'B'}}", "{a: 'abc'}", true},
               {"{a: {~regex: '^c', ~options: 'm'}}", "{a: 'ab\\nc'}", true},
               {"{a: {~regex: '^c'}}", "{a: 'ab\\nc'}", false}, {"{a: {~regex: 'b.c'}}", "{a: 'ab\\nc'}", false},
               {"{a: {~regex: 'b.c', ~options: 's'}}", "{a: 'ab\\nc'}", true},
               {"{a: {~regex: 'b c', ~options: 'x'}}", "{a: 'abc'}", true}, {"{a: {~regex: 'x'}}", "{a: 5}", false},
               {"{a: {~regex: 'x'}}", "{}", false}, {"{a: {~regex: 'x'}}", "{a: ['y', 'x']}", true},
               {"{a: {~regex: ''}}", "{a: ''}", true}, {"{a: {~regex: '^.$'}}", "{a: 'é'}", true},
               {"{a: {~regex: 'É', ~options: 'i'}}", "{a: 'é'}", true},
               {"{a: {~regex: 'x', $ne: 'xy'}}", "{a: 'xy'}", false},
               {"{a: {~regex: 'x', $ne: 'xy'}}", "{a: 'xz'}", true}, {"{a: {$not: {~regex: 'x'}}}", "{a: 'y'}", true},
               {"{a: {$regularExpression: {pattern: 'B', options: 'i'}}}", "{a: 'abc'}", true},
               {"{a: {$regularExpression: {pattern: 'x', options: ''}}}",
                "{a: {$regularExpression: {pattern: 'x', options: ''}}}", true},
               {"{a: {$regularExpression: {pattern: 'x', options: ''}}}",
                "{a: {$regularExpression: {pattern: 'x', options: 'i'}}}", false},
               {"{a: {$eq: {$regularExpression: {pattern: 'x', options: ''}}}}", "{a: 'x'}", false},
               {"{a: {$eq: {$regularExpression: {pattern: 'x', options: ''}}}}",
                "{a: {$regularExpression: {pattern: 'x', options: ''}}}", true},
               {"{a: {~regex: {$regularExpression: {pattern: 'B', options: 'i'}}}}", "{a: 'abc'}", true},
               {"{a: {~regex: {$regularExpression: {pattern: 'B', options: ''}}, ~options: 'i'}}", "{a: 'abc'}", true});
    CHECK_BAD({"{a: {~regex: 5}}", 2, "$regex has to be a string"},
              {"{a: {~regex: 'x', ~options: 5}}", 2, "$options has to be a string"},
              {"{a: {~options: 'i'}}", 2, "$options needs a $regex"},
              {"{a: {~regex: 'x', ~options: 'g'}}", 51108, "invalid flag in regex options: g"},
              {"{a: {~regex: '('}}", 51091, "Regular expression is invalid: missing closing parenthesis"},
              {"{a: {~regex: {$regularExpression: {pattern: 'x', options: 'i'}}, ~options: 'm'}}", 51075,
               "options set in both $regex and $options"},
              {"{a: {~options: 'm', ~regex: {$regularExpression: {pattern: 'x', options: 'i'}}}}", 51074,
               "options set in both $regex and $options"},
              {"{a: {~regex: 'a\\u0000b'}}", 2, "Regular expression cannot contain an embedded null byte"});
}
END_TEST

START_TEST(regex_prefixes)
{
    static const struct {
        const char *pattern, *options, *want; /* NULL: none */
        bool exact;
    } rows[] = {
        {"^abc", "", "abc", true},         {"\\\\Aabc", "", "abc", true}, {"abc", "", NULL, false},
        {"^ab.c", "", "ab", false},        {"^abc*", "", "ab", false},    {"^abc+", "", "abc", false},
        {"^abc?d", "", "ab", false},       {"^abc{0}", "", "ab", false},  {"^a|b", "", NULL, false},
        {"^abc", "i", NULL, false},        {"^abc", "m", NULL, false},    {"^a b", "x", NULL, false},
        {"^abc", "s", "abc", true},        {"^a\\\\.b", "", "a.b", true}, {"^a\\\\d", "", "a", false},
        {"^a\\\\Qb\\\\E", "", "a", false}, {"^(ab)", "", NULL, false},    {"^", "", NULL, true},
        {"^\u00e9*x", "", NULL, false},    {"^x\u00e9?", "", "x", false}, {"^a$", "", "a", false},
    };
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        char filter[200];
        struct slice prefix;
        bool exact;
        snprintf(filter, sizeof filter, "{a: {~regex: '%s', ~options: '%s'}}", rows[i].pattern, rows[i].options);
        struct match *m = must_parse(a, filter);
        bool any = match_regex_prefix(m, &prefix, &exact);
        ck_assert_msg(any == (rows[i].want != NULL), "%s: %.*s", filter, (int)prefix.n, (const char *)prefix.p);
        ck_assert_msg(exact == rows[i].exact, "%s", filter);
        ck_assert_msg(!any || slice_eq(prefix, slice_str(rows[i].want)), "%s: %.*s", filter, (int)prefix.n,
                      (const char *)prefix.p);
    }
    arena_free(a);
    CHECK_ROWS({"{a: {~regex: '^a.c'}}", "{a: 'abc'}", true}, {"{a: {~regex: '^a.c'}}", "{a: 'xbc'}", false},
               {"{a: {~regex: '^abc?'}}", "{a: 'ab'}", true}, {"{a: {~regex: '^ab'}}", "{a: 'a'}", false},
               {"{a: {~regex: '^'}}", "{a: ''}", true}, {"{a: {~regex: '^a$'}}", "{a: 'ab'}", false});
}
END_TEST

/* Bytes that are no UTF-8: found around them, no crash. */
START_TEST(regex_on_bad_utf8)
{
    struct arena *a = arena_new(0);
    struct buf b;
    buf_init(&b);
    size_t start = bw_begin(&b);
    bw_strn(&b, "a", "\xff\xfe needle \xc3", 11);
    bw_end(&b, start);
    ck_assert(match_doc(must_parse(a, "{a: {~regex: 'needle'}}"), b.p, NULL));
    ck_assert(!match_doc(must_parse(a, "{a: {~regex: 'thread'}}"), b.p, NULL));
    buf_free(&b);
    arena_free(a);
}
END_TEST

START_TEST(no_pattern_hangs)
{
    struct arena *a = arena_new(0);
    static const char *const patterns[] = {"{a: {~regex: '^(a+)+$'}}", "{a: {~regex: '(a|aa)+$'}}",
                                           "{a: {~regex: '(a*)*b'}}", "{a: {~regex: '(?:(?:a|b)|(?:a|b))*c$'}}",
                                           "{a: {~regex: '((a?){30})*b'}}"};
    struct buf b;
    buf_init(&b);
    size_t start = bw_begin(&b);
    char text[4096];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '!';
    bw_strn(&b, "a", text, sizeof text);
    bw_end(&b, start);
    for (size_t i = 0; i < OV_LEN(patterns); i++) {
        struct timespec t0, t1;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
        ck_assert(!match_doc(must_parse(a, patterns[i]), b.p, NULL));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
        double s = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9;
        ck_assert_msg(s < 5, "%s took %.1f s", patterns[i], s);
        if (getenv("VERBOSE"))
            printf("%s %.3f\n", patterns[i], s);
    }
    buf_free(&b);
    arena_free(a);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, type);
    tcase_add_test(tc, mod);
    tcase_add_test(tc, bits);
    tcase_add_test(tc, regex);
    tcase_add_test(tc, regex_prefixes);
    tcase_add_test(tc, regex_on_bad_utf8);
    tcase_add_test(tc, no_pattern_hangs);
}
TEST_MAIN("match/value", add_tests)
