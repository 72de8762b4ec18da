/* Replies: the prefix is reserved first and filled in when the document behind it is complete, so that no byte is moved. */
#include "protocol/wire/wire.h"

#include "server/base/assert.h"

void wire_msg_begin(struct buf *b)
{
    buf_reserve(b, WIRE_MSG_PREFIX);
    b->len += WIRE_MSG_PREFIX;
}

void wire_reply_begin(struct buf *b)
{
    buf_reserve(b, WIRE_REPLY_PREFIX);
    b->len += WIRE_REPLY_PREFIX;
}

static uint8_t *put_header(struct buf *b, size_t start, int32_t request_id, int32_t response_to, int32_t opcode)
{
    uint8_t *p = b->p + start;
    store_le32(p, (uint32_t)(b->len - start));
    store_le32(p + 4, (uint32_t)request_id);
    store_le32(p + 8, (uint32_t)response_to);
    store_le32(p + 12, (uint32_t)opcode);
    return p + WIRE_HEADER;
}

void wire_msg_end(struct buf *b, size_t start, int32_t request_id, int32_t response_to, uint32_t flags)
{
    OV_DASSERT(b->len >= start + WIRE_MSG_PREFIX + 5);
    uint8_t *p = put_header(b, start, request_id, response_to, WIRE_OP_MSG);
    store_le32(p, flags);
    p[4] = 0;
}

void wire_reply_end(struct buf *b, size_t start, int32_t request_id, int32_t response_to, uint32_t flags)
{
    OV_DASSERT(b->len >= start + WIRE_REPLY_PREFIX + 5);
    uint8_t *p = put_header(b, start, request_id, response_to, WIRE_OP_REPLY);
    store_le32(p, flags);
    store_le64(p + 4, 0);
    store_le32(p + 12, 0);
    store_le32(p + 16, 1);
}
