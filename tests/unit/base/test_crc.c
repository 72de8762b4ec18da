#include "server/base/crc.h"

#include <stdlib.h>

#include "server/base/crc_private.h"
#include "server/base/rand.h"
#include "tests/lib/test.h"

START_TEST(known_answers) /* RFC 3720, B.4, and the usual check value */
{
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    ck_assert_uint_eq(crc32c(0, zeros, 32), 0x8a9136aa);
    ck_assert_uint_eq(crc32c(0, ones, 32), 0x62a8ab43);
    ck_assert_uint_eq(crc32c(0, up, 32), 0x46dd794e);
    ck_assert_uint_eq(crc32c(0, down, 32), 0x113fdb5c);
    ck_assert_uint_eq(crc32c(0, "123456789", 9), 0xe3069283);
    ck_assert_uint_eq(crc32c(0, NULL, 0), 0);
}
END_TEST

/* A bit at a time, straight from the definition. */
static uint32_t slow(uint32_t seed, const uint8_t *p, size_t n)
{
    uint32_t c = ~seed;
    while (n--) {
        c ^= *p++;
        for (int i = 0; i < 8; i++)
            c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0);
    }
    return ~c;
}

START_TEST(every_way_agrees_at_every_length)
{
    struct rand_gen g;
    uint8_t *p = malloc(20000);
    rand_seed(&g, 1);
    for (size_t i = 0; i < 20000; i++)
        p[i] = (uint8_t)rand_next(&g);
    for (size_t n = 0; n < 20000; n += n < 1200 ? 1 : 397) { /* all lanes, all tails */
        size_t from = n % 8 < 20000 - n ? n % 8 : 0;         /* unaligned, too */
        uint32_t want = slow(77, p + from, n);
        ck_assert_uint_eq(crc32c(77, p + from, n), want);
        ck_assert_uint_eq(crc32c_by_tables(77, p + from, n), want);
    }
    free(p);
}
END_TEST

START_TEST(parts_seed_one_another)
{
    uint8_t p[5000];
    for (size_t i = 0; i < sizeof(p); i++)
        p[i] = (uint8_t)(i * 7);
    uint32_t whole = crc32c(0, p, sizeof(p));
    for (size_t cut = 0; cut <= sizeof(p); cut += 123)
        ck_assert_uint_eq(crc32c(crc32c(0, p, cut), p + cut, sizeof(p) - cut), whole);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, known_answers);
    tcase_add_test(tc, every_way_agrees_at_every_length);
    tcase_add_test(tc, parts_seed_one_another);
}

TEST_MAIN("base/crc", add_tests)
