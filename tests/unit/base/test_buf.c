#include "server/base/buf.h"

#include "tests/lib/test.h"

START_TEST(grows_and_keeps_what_it_has)
{
    struct buf b;
    buf_init(&b);
    for (uint32_t i = 0; i < 100000; i++)
        buf_le32(&b, i);
    ck_assert_uint_eq(b.len, 400000);
    for (uint32_t i = 0; i < 100000; i++)
        ck_assert_uint_eq(load_le32(b.p + 4 * i), i);
    buf_free(&b);
    ck_assert_ptr_null(b.p);
    buf_free(&b);
}
END_TEST

START_TEST(byte_order_is_as_named)
{
    struct buf b;
    buf_init(&b);
    buf_le64(&b, 0x0102030405060708);
    buf_be64(&b, 0x0102030405060708);
    buf_byte(&b, 9);
    ck_assert(
        slice_eq(buf_slice(&b), slice_of("\x08\x07\x06\x05\x04\x03\x02\x01\x01\x02\x03\x04\x05\x06\x07\x08\x09", 17)));
    buf_free(&b);
}
END_TEST

START_TEST(text_of_any_length_is_appended_whole)
{
    struct buf b;
    buf_init(&b);
    buf_printf(&b, "%s", "");
    for (int n = 0; n < 600; n++) { /* meets every distance to the end of the buffer */
        size_t before = b.len;
        buf_printf(&b, "%0*d", n + 1, 7);
        ck_assert_uint_eq(b.len, before + (size_t)n + 1);
        ck_assert_int_eq(b.p[b.len - 1], '7');
    }
    buf_free(&b);
}
END_TEST

START_TEST(reserving_nothing_and_appending_nothing_is_fine)
{
    struct buf b;
    buf_init(&b);
    buf_append(&b, NULL, 0);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_ptr_nonnull(buf_reserve(&b, 1000000));
    ck_assert_uint_ge(b.cap, 1000000);
    buf_free(&b);
}
END_TEST

START_TEST(slices_order_as_memcmp_with_prefixes_first)
{
    ck_assert_int_lt(slice_cmp(slice_str("ab"), slice_str("abc")), 0);
    ck_assert_int_gt(slice_cmp(slice_str("b"), slice_str("abc")), 0);
    ck_assert_int_lt(slice_cmp(slice_str("a"), slice_of("\xff", 1)), 0); /* bytes are unsigned */
    ck_assert_int_eq(slice_cmp((struct slice){0}, slice_str("")), 0);
    ck_assert(!slice_eq(slice_str("a"), slice_str("b")));
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, grows_and_keeps_what_it_has);
    tcase_add_test(tc, byte_order_is_as_named);
    tcase_add_test(tc, text_of_any_length_is_appended_whole);
    tcase_add_test(tc, reserving_nothing_and_appending_nothing_is_fine);
    tcase_add_test(tc, slices_order_as_memcmp_with_prefixes_first);
}

TEST_MAIN("base/buf", add_tests)
