/* Messages as they come from a socket: header, compression, sections, OP_QUERY. Nothing is read outside, and what is accepted lies within the
 * message and is checked BSON. */
#include "protocol/bson/bson.h"
#include "protocol/wire/wire.h"
#include "server/base/assert.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_doc(const uint8_t *p, const struct wire_header *h, const uint8_t *doc, struct err *err)
{
    OV_ASSERT(doc > p && doc + bdoc_len(doc) <= p + h->length);
    OV_ASSERT(bson_check(doc, bdoc_len(doc), BSON_DEPTH_MAX, err) == 0);
}

static void one(struct wire_codec *codec, const uint8_t *p, const struct wire_header *h, struct err *err)
{
    struct wire_message m;
    struct buf out;
    int compressor, rc;
    buf_init(&out);
    if (h->opcode == WIRE_OP_COMPRESSED) {
        struct wire_header inner;
        if (wire_decompress(codec, p, h, &out, &compressor, err) == 0 && wire_header_parse(out.p, &inner)) {
            OV_ASSERT(inner.opcode != WIRE_OP_COMPRESSED && (size_t)inner.length == out.len);
            one(codec, out.p, &inner, err);
        }
        buf_free(&out);
        return;
    }
    rc = h->opcode == WIRE_OP_MSG ? wire_msg_parse(p, h, &m, err) : wire_query_parse(p, h, &m, err);
    if (rc == 0) {
        check_doc(p, h, m.body, err);
        for (uint32_t i = 0; i < m.n_seqs; i++) {
            const uint8_t *doc = m.seqs[i].p, *end = doc + m.seqs[i].n;
            uint32_t n = 0;
            for (; doc < end; doc += bdoc_len(doc), n++)
                check_doc(p, h, doc, err);
            OV_ASSERT(doc == end && n == m.seqs[i].count);
        }
    } else {
        OV_ASSERT(err->code == rc && err->msg[0]);
    }
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_codec codec = {0};
    struct wire_header h;
    struct arena *a = arena_new(0);
    struct err err;
    err_init(&err, a);
    while (size >= WIRE_HEADER && wire_header_parse(data, &h) && (size_t)h.length <= size) {
        uint8_t *p = ov_malloc((size_t)h.length); /* exactly so long: reads behind it are found */
        memcpy(p, data, (size_t)h.length);
        one(&codec, p, &h, &err);
        free(p);
        data += h.length;
        size -= (size_t)h.length;
    }
    wire_codec_deinit(&codec);
    arena_free(a);
    return 0;
}
