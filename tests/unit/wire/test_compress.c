/* OP_COMPRESSED: round trips, and sizes that lie. */
#include "protocol/wire/wire.h"
#include "tests/lib/test.h"

static struct wire_codec codec;
static struct err err;
static struct arena *arena;

static void setup(void)
{
    arena = arena_new(0);
    err_init(&err, arena);
}
static void teardown(void)
{
    wire_codec_deinit(&codec);
    arena_free(arena);
}

static void message(struct buf *b, size_t n)
{
    buf_init(b);
    buf_le32(b, (uint32_t)(WIRE_HEADER + n));
    buf_le32(b, 21);
    buf_le32(b, 22);
    buf_le32(b, WIRE_OP_MSG);
    for (size_t i = 0; i < n; i++)
        buf_byte(b, (uint8_t)(i % 100 * (i / 1000)));
}

static int expand(const struct buf *b, struct buf *out, int *compressor)
{
    struct wire_header h;
    ck_assert(wire_header_parse(b->p, &h));
    ck_assert_uint_eq(h.length, b->len);
    return wire_decompress(&codec, b->p, &h, out, compressor, &err);
}

START_TEST(what_is_compressed_comes_out_again)
{
    static const size_t sizes[] = {1, 5, 1000, 300000};
    for (int kind = WIRE_NOOP; kind <= WIRE_ZSTD; kind++)
        for (size_t i = 0; i < OV_LEN(sizes); i++) {
            struct buf a, b, out, scratch;
            int got = -1;
            message(&a, sizes[i]);
            buf_init(&b);
            buf_init(&out);
            buf_init(&scratch);
            buf_append(&b, "before", 6);
            buf_append(&b, a.p, a.len);
            wire_compress(&codec, kind, &b, 6, &scratch);
            ck_assert_mem_eq(b.p, "before", 6);
            memmove(b.p, b.p + 6, b.len - 6);
            b.len -= 6;
            ck_assert_int_eq(load_le32(b.p + 12), WIRE_OP_COMPRESSED);
            if (sizes[i] == 300000 && kind != WIRE_NOOP)
                ck_assert_uint_lt(b.len, 100000);
            ck_assert_int_eq(expand(&b, &out, &got), 0);
            ck_assert_int_eq(got, kind);
            ck_assert(slice_eq(buf_slice(&out), buf_slice(&a)));
            buf_free(&a);
            buf_free(&b);
            buf_free(&out);
            buf_free(&scratch);
        }
}
END_TEST

START_TEST(a_size_that_is_not_the_contents_is_refused)
{
    static const int32_t lies[] = {-1, 0, 1, 999, 1001, 48000000 - 16, 48000000 - 15, INT32_MAX, INT32_MIN};
    for (int kind = WIRE_NOOP; kind <= WIRE_ZSTD; kind++)
        for (size_t i = 0; i < OV_LEN(lies); i++) {
            struct buf b, out, scratch;
            int got;
            message(&b, 1000);
            buf_init(&out);
            buf_init(&scratch);
            wire_compress(&codec, kind, &b, 0, &scratch);
            store_le32(b.p + 20, (uint32_t)lies[i]);
            ck_assert_int_eq(expand(&b, &out, &got), ERR_PROTOCOL_ERROR);
            ck_assert_uint_eq(out.len, 0);
            ck_assert_uint_lt(out.cap, 100000); /* refused before memory was taken */
            buf_free(&b);
            buf_free(&out);
            buf_free(&scratch);
        }
}
END_TEST

START_TEST(broken_heads_and_contents_are_refused)
{
    struct buf b, out, scratch;
    int got;
    buf_init(&out);
    buf_init(&scratch);
    message(&b, 1000);
    wire_compress(&codec, WIRE_ZLIB, &b, 0, &scratch);
    store_le32(b.p + 16, WIRE_OP_COMPRESSED);
    ck_assert_int_eq(expand(&b, &out, &got), ERR_PROTOCOL_ERROR);
    store_le32(b.p + 16, 2002);
    ck_assert_int_eq(expand(&b, &out, &got), ERR_PROTOCOL_ERROR);
    store_le32(b.p + 16, WIRE_OP_MSG);
    b.p[24] = 4;
    ck_assert_int_eq(expand(&b, &out, &got), ERR_PROTOCOL_ERROR);
    b.p[24] = 255;
    ck_assert_int_eq(expand(&b, &out, &got), ERR_PROTOCOL_ERROR);
    for (int kind = WIRE_SNAPPY; kind <= WIRE_ZSTD; kind++) {
        b.p[24] = (uint8_t)kind;
        memset(b.p + 25, 0xff, b.len - 25);
        ck_assert_int_eq(expand(&b, &out, &got), ERR_PROTOCOL_ERROR);
    }
    for (b.len = WIRE_HEADER; b.len <= 25; b.len++) {
        store_le32(b.p, (uint32_t)b.len);
        ck_assert_int_eq(expand(&b, &out, &got), ERR_PROTOCOL_ERROR);
    }
    buf_free(&b);
    buf_free(&out);
    buf_free(&scratch);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_is_compressed_comes_out_again);
    tcase_add_test(tc, a_size_that_is_not_the_contents_is_refused);
    tcase_add_test(tc, broken_heads_and_contents_are_refused);
}
TEST_MAIN("wire/compress", add_tests)
