/* OP_COMPRESSED. What the sender states about sizes is a claim: it is compared with the limit and with what the compressed bytes can hold at
 * most before memory is taken, and the result must have exactly the stated size, so that no byte of ours ever leaves uninitialised. */
#include "protocol/wire/wire.h"

#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define PREFIX (WIRE_HEADER + 9) /* header, original opcode, size, compressor */

/* The most that a compressed byte can stand for: a snappy copy of 64 bytes takes 3, a deflate match of 258 bytes 2 bits. zstd tells the size
 * in its frame, or repeats a byte 128 KiB long in 4. */
#define SNAPPY_RATIO 22
#define ZLIB_RATIO   1040
#define ZSTD_RATIO   (128 * 1024 / 3)

void wire_codec_deinit(struct wire_codec *c)
{
    ZSTD_freeDCtx(c->zstd_in);
    ZSTD_freeCCtx(c->zstd_out);
    *c = (struct wire_codec){0};
}

static bool size_is_possible(int compressor, const uint8_t *in, size_t in_n, size_t size)
{
    size_t told;
    switch (compressor) {
    case WIRE_NOOP:
        return in_n == size;
    case WIRE_SNAPPY:
        return snappy_uncompressed_length((const char *)in, in_n, &told) == SNAPPY_OK && told == size &&
               size / SNAPPY_RATIO <= in_n;
    case WIRE_ZLIB:
        return size / ZLIB_RATIO <= in_n;
    case WIRE_ZSTD: {
        unsigned long long frame = ZSTD_getFrameContentSize(in, in_n);
        return frame == size || (frame == ZSTD_CONTENTSIZE_UNKNOWN && size / ZSTD_RATIO <= in_n);
    }
    default:
        return false;
    }
}

/* True if exactly `size` bytes came out. */
static bool expand(struct wire_codec *c, int compressor, const uint8_t *in, size_t in_n, uint8_t *out, size_t size)
{
    switch (compressor) {
    case WIRE_NOOP:
        memcpy(out, in, size);
        return true;
    case WIRE_SNAPPY: {
        size_t n = size;
        return snappy_uncompress((const char *)in, in_n, (char *)out, &n) == SNAPPY_OK && n == size;
    }
    case WIRE_ZLIB: {
        uLongf n = size;
        return uncompress(out, &n, in, in_n) == Z_OK && n == size;
    }
    default:
        if (!c->zstd_in && !(c->zstd_in = ZSTD_createDCtx()))
            return false;
        return ZSTD_decompressDCtx(c->zstd_in, out, size, in, in_n) == size;
    }
}

int wire_decompress(struct wire_codec *c, const uint8_t *p, const struct wire_header *h, struct buf *out,
                    int *compressor, struct err *err)
{
    if (h->length < PREFIX)
        return err_set(err, ERR_PROTOCOL_ERROR, "an OP_COMPRESSED without its head");
    int32_t opcode = (int32_t)load_le32(p + WIRE_HEADER), size = (int32_t)load_le32(p + WIRE_HEADER + 4);
    const uint8_t *in = p + PREFIX;
    size_t in_n = (size_t)h->length - PREFIX;
    *compressor = p[PREFIX - 1];
    if (opcode != WIRE_OP_MSG && opcode != WIRE_OP_QUERY)
        return err_set(err, ERR_PROTOCOL_ERROR, "opcode %d cannot be compressed", opcode);
    if (*compressor > WIRE_ZSTD)
        return err_set(err, ERR_PROTOCOL_ERROR, "Compression algorithm specified in message is not available: %d",
                       *compressor);
    if (size < 0 || size > WIRE_MESSAGE_MAX - WIRE_HEADER || !size_is_possible(*compressor, in, in_n, (size_t)size))
        return err_set(err, ERR_PROTOCOL_ERROR, "a compressed message of %zu bytes cannot hold the stated %d bytes",
                       in_n, size);

    uint8_t *to = buf_reserve(out, WIRE_HEADER + (size_t)size);
    store_le32(to, (uint32_t)(WIRE_HEADER + size));
    store_le32(to + 4, (uint32_t)h->request_id);
    store_le32(to + 8, (uint32_t)h->response_to);
    store_le32(to + 12, (uint32_t)opcode);
    if (!expand(c, *compressor, in, in_n, to + WIRE_HEADER, (size_t)size))
        return err_set(err, ERR_PROTOCOL_ERROR, "a compressed message does not give the stated %d bytes", size);
    out->len += WIRE_HEADER + (size_t)size;
    return 0;
}

/* The compressed length, or 0 if it failed. `out` has room for the compressor's bound. */
static size_t shrink(struct wire_codec *c, int compressor, const uint8_t *in, size_t n, struct buf *out)
{
    switch (compressor) {
    case WIRE_SNAPPY: {
        size_t m = snappy_max_compressed_length(n);
        return snappy_compress((const char *)in, n, (char *)buf_reserve(out, m), &m) == SNAPPY_OK ? m : 0;
    }
    case WIRE_ZLIB: {
        uLongf m = compressBound(n);
        return compress2(buf_reserve(out, m), &m, in, n, Z_DEFAULT_COMPRESSION) == Z_OK ? m : 0;
    }
    case WIRE_ZSTD: {
        size_t m = ZSTD_compressBound(n);
        if (!c->zstd_out && !(c->zstd_out = ZSTD_createCCtx()))
            return 0;
        m = ZSTD_compressCCtx(c->zstd_out, buf_reserve(out, m), m, in, n, 3);
        return ZSTD_isError(m) ? 0 : m;
    }
    default:
        buf_append(out, in, n);
        out->len -= n;
        return n;
    }
}

void wire_compress(struct wire_codec *c, int compressor, struct buf *b, size_t start, struct buf *scratch)
{
    uint8_t *p = b->p + start;
    size_t n = b->len - start - WIRE_HEADER;
    scratch->len = 0;
    size_t m = shrink(c, compressor, p + WIRE_HEADER, n, scratch);
    if (m == 0 || m + PREFIX > WIRE_MESSAGE_MAX)
        return;
    uint32_t opcode = load_le32(p + 12);
    b->len = start;
    p = buf_reserve(b, PREFIX + m); /* the ids stay in place */
    store_le32(p, (uint32_t)(PREFIX + m));
    store_le32(p + 12, WIRE_OP_COMPRESSED);
    store_le32(p + 16, opcode);
    store_le32(p + 20, (uint32_t)n);
    p[24] = (uint8_t)compressor;
    memcpy(p + PREFIX, scratch->p, m);
    b->len += PREFIX + m;
}
