/* Headers, OP_MSG and OP_QUERY: parsed in place, every length checked against what is there before it is followed. A file of
 * its own because it is what a stranger's bytes meet first: nothing here allocates but messages of errors. */
#include "protocol/wire/wire.h"

#include "protocol/bson/bson.h"
#include "server/base/crc.h"

bool wire_header_parse(const uint8_t p[WIRE_HEADER], struct wire_header *out)
{
    out->length = (int32_t)load_le32(p);
    out->request_id = (int32_t)load_le32(p + 4);
    out->response_to = (int32_t)load_le32(p + 8);
    out->opcode = (int32_t)load_le32(p + 12);
    return out->length >= WIRE_HEADER && out->length <= WIRE_MESSAGE_MAX &&
           (out->opcode == WIRE_OP_MSG || out->opcode == WIRE_OP_COMPRESSED || out->opcode == WIRE_OP_QUERY);
}

/* The message cannot be what it says: nothing behind it is trusted. */
static int broken(struct wire_message *m, struct err *err, const char *what)
{
    m->fatal = true;
    return err_set(err, ERR_PROTOCOL_ERROR, "%s", what);
}

/* One document at *p, before end: checked, *p moved past it. */
static int take_document(const uint8_t **p, const uint8_t *end, const uint8_t **doc, struct err *err)
{
    size_t left = (size_t)(end - *p);
    uint32_t n = left >= 4 ? load_le32(*p) : 0;
    int rc;
    if (n < 5 || n > left)
        return err_set(err, ERR_INVALID_BSON,
                       "a document of %u bytes does not fit into the %zu bytes that are left of the message", n, left);
    if (n > BSON_INPUT_MAX)
        return err_set(err, ERR_BSON_OBJECT_TOO_LARGE,
                       "BSONObj size: %u (0x%X) is invalid. Size must be between 0 and %u(16MB)", n, n, BSON_INPUT_MAX);
    if ((rc = bson_check(*p, n, BSON_DEPTH_MAX, err)) != 0)
        return rc;
    *doc = *p;
    *p += n;
    return 0;
}

static int take_sequence(const uint8_t **p, const uint8_t *end, struct wire_message *m, struct err *err)
{
    size_t left = (size_t)(end - *p);
    uint32_t n = left >= 4 ? load_le32(*p) : 0;
    int rc;
    if (n < 5 || n > left)
        return broken(m, err, "a document sequence does not fit into its message");
    const uint8_t *stop = *p + n, *name = *p + 4;
    const uint8_t *nul = memchr(name, 0, (size_t)(stop - name));
    if (!nul)
        return broken(m, err, "the name of a document sequence has no end");
    for (uint32_t i = 0; i < m->n_seqs; i++)
        if (strcmp(m->seqs[i].name, (const char *)name) == 0)
            return err_set(err, 40431, "Duplicate document sequence: %s", (const char *)name);
    if (m->n_seqs == WIRE_SEQS_MAX)
        return err_set(err, ERR_TOO_MANY_DOCUMENT_SEQUENCES, "Too many document sequences in OP_MSG");
    struct wire_seq *s = &m->seqs[m->n_seqs++];
    *s = (struct wire_seq){(const char *)name, nul + 1, (size_t)(stop - nul - 1), 0};
    *p = nul + 1;
    while (*p < stop) {
        const uint8_t *doc;
        if ((rc = take_document(p, stop, &doc, err)) != 0)
            return rc;
        s->count++;
    }
    return 0;
}

/* A sequence is an array field of the body: giving both is an error. */
static int check_fields_once(const struct wire_message *m, struct err *err)
{
    struct biter it;
    struct belem e;
    biter_init(&it, m->body);
    while (biter_next(&it, &e))
        for (uint32_t i = 0; i < m->n_seqs; i++)
            if (strcmp(e.name, m->seqs[i].name) == 0)
                return err_set(err, 40433, "Duplicate field between body and document sequence %s", e.name);
    return 0;
}

static int check_flags(const uint8_t *p, struct wire_message *m, struct err *err)
{
    m->flags = load_le32(p + WIRE_HEADER);
    if (m->flags & 0xffff & ~(uint32_t)(WIRE_CHECKSUM | WIRE_MORE_TO_COME)) {
        char bits[33];
        for (int i = 0; i < 32; i++)
            bits[i] = m->flags >> (31 - i) & 1 ? '1' : '0';
        bits[32] = 0;
        m->fatal = true;
        return err_set(err, ERR_ILLEGAL_OP_MSG_FLAG, "Message contains illegal flags value: Ob%s", bits);
    }
    return 0;
}

int wire_msg_parse(const uint8_t *p, const struct wire_header *h, struct wire_message *out, struct err *err)
{
    const uint8_t *at = p + WIRE_HEADER + 4, *end = p + h->length;
    int rc;
    memset(out, 0, sizeof(*out));
    out->h = *h;
    if (h->length < WIRE_HEADER + 4)
        return broken(out, err, "an OP_MSG without flags");
    if ((rc = check_flags(p, out, err)) != 0)
        return rc;
    if (out->flags & WIRE_CHECKSUM) {
        if (end - at < 4)
            return broken(out, err, "an OP_MSG without its checksum");
        end -= 4;
        if (crc32c(0, p, (size_t)(end - p)) != load_le32(end)) {
            out->fatal = true;
            return err_set(err, ERR_CHECKSUM_MISMATCH, "OP_MSG checksum does not match contents");
        }
    }
    while (at < end) {
        uint8_t kind = *at++;
        if (kind == 0) {
            if (out->body)
                return err_set(err, 40430, "Multiple body sections in message");
            rc = take_document(&at, end, &out->body, err);
        } else if (kind == 1) {
            rc = take_sequence(&at, end, out, err);
        } else {
            rc = err_set(err, 40432, "Unknown section kind %u", kind);
        }
        if (rc != 0)
            return rc;
    }
    if (!out->body)
        return err_set(err, 40587, "OP_MSG messages must have a body");
    return out->n_seqs ? check_fields_once(out, err) : 0;
}

#define UPGRADE                                                       \
    "The client driver may require an upgrade. For more details see " \
    "https://dochub.mongodb.org/core/legacy-opcode-removal"

/* {$query: {…}, $readPreference: …}: the command is inside. */
static const uint8_t *unwrap(const uint8_t *doc)
{
    struct biter it;
    struct belem e;
    biter_init(&it, doc);
    if (biter_next(&it, &e) && e.v.type == BSON_TYPE_DOCUMENT &&
        (strcmp(e.name, "$query") == 0 || strcmp(e.name, "query") == 0))
        return bval_doc(e.v);
    return doc;
}

int wire_query_parse(const uint8_t *p, const struct wire_header *h, struct wire_message *out, struct err *err)
{
    const uint8_t *at = p + WIRE_HEADER + 4, *end = p + h->length, *nul, *selector;
    int rc;
    memset(out, 0, sizeof(*out));
    out->h = *h;
    if (at >= end || !(nul = memchr(at, 0, (size_t)(end - at))) || end - nul - 1 < 8)
        return broken(out, err, "an OP_QUERY without namespace");
    out->ns = (const char *)at;
    at = nul + 1 + 8;
    out->fatal = true;
    if ((rc = take_document(&at, end, &out->body, err)) != 0 ||
        (at < end && (rc = take_document(&at, end, &selector, err)) != 0))
        return rc;
    if (at != end)
        return broken(out, err, "an OP_QUERY longer than its contents");
    out->fatal = false;

    size_t ns_n = strlen(out->ns);
    if (ns_n < 6 || strcmp(out->ns + ns_n - 5, ".$cmd") != 0)
        return err_set(err, WIRE_ERR_QUERY_REMOVED, "OP_QUERY is no longer supported. " UPGRADE);
    out->body = unwrap(out->body);
    struct biter it;
    struct belem e;
    biter_init(&it, out->body);
    const char *name = biter_next(&it, &e) ? e.name : "";
    if (strcmp(name, "hello") != 0 && strcmp(name, "isMaster") != 0 && strcmp(name, "ismaster") != 0)
        return err_set(err, ERR_UNSUPPORTED_OP_QUERY_COMMAND, "Unsupported OP_QUERY command: %s. " UPGRADE, name);
    return 0;
}
