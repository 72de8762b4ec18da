/* The MongoDB wire protocol: bytes to messages and back. No sockets, no clock, no memory of its own but the codec's.
 *
 * MESSAGE: little-endian
 *   offset  size  field
 *      0      4   length: the whole message, this header included, 16 .. 48 000 000
 *      4      4   request id, chosen by the sender
 *      8      4   response to: the request's id, in replies
 *     12      4   opcode
 *   OP_MSG (2013):        flags (4), sections, crc32c of everything before it (4, if flag 0 is set)
 *     section kind 0:     0, one document: the body; exactly one a message
 *     section kind 1:     1, size (4, itself included), name NUL, documents back to back
 *   OP_QUERY (2004):      flags (4), namespace NUL, to skip (4), to return (4), document, [document]
 *   OP_REPLY (1):         flags (4), cursor id (8), starting from (4), count (4), documents
 *   OP_COMPRESSED (2012): original opcode (4), uncompressed size without header (4), compressor (1), bytes
 * Thread: any. */
#ifndef OV_WIRE_H
#define OV_WIRE_H

#include "server/base/base.h"
#include "server/base/buf.h"
#include "server/base/err.h"

#define WIRE_HEADER       16
#define WIRE_MESSAGE_MAX  48000000
#define WIRE_SEQS_MAX     2                  /* as the real server: no command has more */
#define WIRE_MSG_PREFIX   (WIRE_HEADER + 5)  /* header, flags, kind: what precedes a reply's document in OP_MSG */
#define WIRE_REPLY_PREFIX (WIRE_HEADER + 20) /* and in OP_REPLY */

enum wire_opcode { WIRE_OP_REPLY = 1, WIRE_OP_QUERY = 2004, WIRE_OP_COMPRESSED = 2012, WIRE_OP_MSG = 2013 };
enum wire_msg_flag { WIRE_CHECKSUM = 1, WIRE_MORE_TO_COME = 2, WIRE_EXHAUST_ALLOWED = 1 << 16 };
enum wire_reply_flag { WIRE_QUERY_FAILURE = 2, WIRE_AWAIT_CAPABLE = 8 };
enum wire_compressor { WIRE_NOOP, WIRE_SNAPPY, WIRE_ZLIB, WIRE_ZSTD };

struct wire_header {
    int32_t length, request_id, response_to, opcode;
};

/* Reads a header. False: the length is impossible or the opcode is none that a client may send; nothing after it can be trusted, the
 * connection is to be closed. */
bool wire_header_parse(const uint8_t p[WIRE_HEADER], struct wire_header *out);

struct wire_seq { /* a kind-1 section; each document checked */
    const char *name;
    const uint8_t *p;
    size_t n;
    uint32_t count;
};
struct wire_message { /* borrowed from the bytes it was parsed from */
    struct wire_header h;
    uint32_t flags;
    const uint8_t *body; /* checked BSON */
    struct wire_seq seqs[WIRE_SEQS_MAX];
    uint32_t n_seqs;
    const char *ns; /* OP_QUERY: the namespace */
    bool fatal;     /* parsing failed in a way after which the connection is to be closed */
};

/* Parses a whole OP_MSG of h.length bytes at p. What could be read before a failure is in *out (flags above all: with
 * WIRE_MORE_TO_COME not even an error is answered).
 * Errors: ERR_ILLEGAL_OP_MSG_FLAG, ERR_CHECKSUM_MISMATCH (both fatal), 40430 .. 40433, 40587, ERR_TOO_MANY_DOCUMENT_SEQUENCES, ERR_INVALID_BSON,
 * ERR_BSON_OBJECT_TOO_LARGE, ERR_OVERFLOW, ERR_PROTOCOL_ERROR (fatal: sections do not fill the message). */
OV_MUST_CHECK int wire_msg_parse(const uint8_t *p, const struct wire_header *h, struct wire_message *out,
                                 struct err *err);

/* Parses a whole OP_QUERY. The document inside {$query: …} or {query: …} is taken out. Only hello and isMaster on NAME.$cmd come through.
 * Errors: ERR_UNSUPPORTED_OP_QUERY_COMMAND: another command, to be answered as a command's error; 5739101: a query proper, to be answered by
 * {$err, code}; others are fatal. */
OV_MUST_CHECK int wire_query_parse(const uint8_t *p, const struct wire_header *h, struct wire_message *out,
                                   struct err *err);
#define WIRE_ERR_QUERY_REMOVED 5739101

/* ---- replies: the prefix first, then the document is appended, then the reply is closed ---- */

void wire_msg_begin(struct buf *b);   /* appends WIRE_MSG_PREFIX bytes */
void wire_reply_begin(struct buf *b); /* appends WIRE_REPLY_PREFIX bytes */
/* Fill in the prefix of the reply that starts at `start` and ends at the buffer's end. */
void wire_msg_end(struct buf *b, size_t start, int32_t request_id, int32_t response_to, uint32_t flags);
void wire_reply_end(struct buf *b, size_t start, int32_t request_id, int32_t response_to, uint32_t flags);

/* ---- compression ---- */

struct wire_codec { /* the compressors' working memory, made on first use. Thread: one at a time */
    void *zstd_in, *zstd_out;
};
void wire_codec_deinit(struct wire_codec *c);

/* Turns a whole OP_COMPRESSED at p into the message it holds: appended to `out` (empty), its header first. *compressor is set as soon as it is
 * known. The stated size is checked against the limit, and against what the compressed bytes can hold, before memory is taken.
 * Errors: ERR_PROTOCOL_ERROR; all are fatal. */
OV_MUST_CHECK int wire_decompress(struct wire_codec *c, const uint8_t *p, const struct wire_header *h, struct buf *out,
                                  int *compressor, struct err *err);
/* Replaces the reply that starts at `start` by its compressed form. `scratch` is emptied and used. A reply that the compressor
 * cannot take stays as it is. */
void wire_compress(struct wire_codec *c, int compressor, struct buf *b, size_t start, struct buf *scratch);

#endif
