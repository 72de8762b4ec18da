/* Headers, OP_MSG and OP_QUERY: what is accepted, what is refused and how. */
#include "protocol/bson/bson.h"
#include "protocol/wire/wire.h"
#include "server/base/crc.h"
#include "tests/lib/test.h"

static struct arena *arena;
static struct err err;
static struct buf b;
static struct wire_message m;

static void setup(void)
{
    arena = arena_new(0);
    err_init(&err, arena);
    buf_init(&b);
}
static void teardown(void)
{
    buf_free(&b);
    arena_free(arena);
}

static void head(int32_t opcode)
{
    b.len = 0;
    buf_le32(&b, 0);
    buf_le32(&b, 7);
    buf_le32(&b, 0);
    buf_le32(&b, (uint32_t)opcode);
}
static void put_doc(const char *name, int32_t v)
{
    size_t d = bw_begin(&b);
    bw_i32(&b, name, v);
    bw_str(&b, "$db", "test");
    bw_end(&b, d);
}
static void put_body(const char *name)
{
    buf_byte(&b, 0);
    put_doc(name, 1);
}
static void put_seq(const char *name, int docs)
{
    buf_byte(&b, 1);
    size_t at = b.len;
    buf_le32(&b, 0);
    buf_append(&b, name, strlen(name) + 1);
    for (int i = 0; i < docs; i++)
        put_doc("_id", i);
    store_le32(b.p + at, (uint32_t)(b.len - at));
}
static void begin(uint32_t flags)
{
    head(WIRE_OP_MSG);
    buf_le32(&b, flags);
}
static int parse(void)
{
    struct wire_header h;
    store_le32(b.p, (uint32_t)b.len);
    ck_assert(wire_header_parse(b.p, &h));
    return h.opcode == WIRE_OP_MSG ? wire_msg_parse(b.p, &h, &m, &err) : wire_query_parse(b.p, &h, &m, &err);
}

START_TEST(a_header_needs_a_possible_length_and_a_known_opcode)
{
    static const struct {
        int32_t length, opcode;
        bool ok;
    } rows[] = {
        {16, 2013, true},        {48000000, 2013, true}, {20, 2012, true},  {20, 2004, true},     {15, 2013, false},
        {48000001, 2013, false}, {-1, 2013, false},      {0, 2013, false},  {20, 1, false},       {20, 2001, false},
        {20, 2002, false},       {20, 2005, false},      {20, 2006, false}, {20, 2007, false},    {20, 2010, false},
        {20, 2011, false},       {20, 1000, false},      {20, 0, false},    {INT32_MIN, 2013, 0}, {20, -1, false},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        uint8_t p[16] = {0};
        struct wire_header h;
        store_le32(p, (uint32_t)rows[i].length);
        store_le32(p + 12, (uint32_t)rows[i].opcode);
        ck_assert_msg(wire_header_parse(p, &h) == rows[i].ok, "length %d opcode %d", rows[i].length, rows[i].opcode);
    }
}
END_TEST

START_TEST(body_and_sequences_come_in_any_order)
{
    begin(WIRE_EXHAUST_ALLOWED | 1u << 20);
    put_seq("documents", 3);
    put_body("insert");
    put_seq("empty", 0);
    ck_assert_int_eq(parse(), 0);
    ck_assert_int_eq(m.h.request_id, 7);
    ck_assert_uint_eq(m.flags, WIRE_EXHAUST_ALLOWED | 1u << 20);
    ck_assert_int_eq(bval_i32(bdoc_get(m.body, "insert")), 1);
    ck_assert_uint_eq(m.n_seqs, 2);
    ck_assert_str_eq(m.seqs[0].name, "documents");
    ck_assert_uint_eq(m.seqs[0].count, 3);
    ck_assert_uint_eq(m.seqs[0].n, 3 * bdoc_len(m.seqs[0].p));
    ck_assert_str_eq(m.seqs[1].name, "empty");
    ck_assert_uint_eq(m.seqs[1].count, 0);
}
END_TEST

START_TEST(unknown_required_flags_are_fatal)
{
    for (int bit = 2; bit < 16; bit++) {
        begin(1u << bit);
        put_body("ping");
        ck_assert_int_eq(parse(), ERR_ILLEGAL_OP_MSG_FLAG);
        ck_assert(m.fatal);
    }
}
END_TEST

START_TEST(a_checksum_is_verified)
{
    begin(WIRE_CHECKSUM);
    put_body("ping");
    store_le32(b.p, (uint32_t)b.len + 4);
    uint32_t crc = crc32c(0, b.p, b.len);
    buf_le32(&b, crc);
    ck_assert_int_eq(parse(), 0);
    b.p[b.len - 1] ^= 1;
    ck_assert_int_eq(parse(), ERR_CHECKSUM_MISMATCH);
    ck_assert(m.fatal);
    b.p[b.len - 1] ^= 1;
    b.p[30] ^= 1;
    ck_assert_int_eq(parse(), ERR_CHECKSUM_MISMATCH);
    begin(WIRE_CHECKSUM);
    ck_assert_int_eq(parse(), ERR_PROTOCOL_ERROR);
}
END_TEST

START_TEST(wrong_sections_have_their_codes)
{
    begin(0);
    ck_assert_int_eq(parse(), 40587);
    put_seq("documents", 1);
    ck_assert_int_eq(parse(), 40587);
    put_body("a");
    put_body("a");
    ck_assert_int_eq(parse(), 40430);
    begin(0);
    put_body("a");
    put_seq("x", 1);
    put_seq("x", 1);
    ck_assert_int_eq(parse(), 40431);
    begin(0);
    put_body("a");
    put_seq("x", 1);
    put_seq("y", 1);
    put_seq("z", 1);
    ck_assert_int_eq(parse(), ERR_TOO_MANY_DOCUMENT_SEQUENCES);
    begin(0);
    put_body("a");
    put_seq("a", 1);
    ck_assert_int_eq(parse(), 40433);
    begin(0);
    put_body("a");
    buf_byte(&b, 2);
    ck_assert_int_eq(parse(), 40432);
    ck_assert(!m.fatal);
}
END_TEST

START_TEST(no_prefix_of_a_message_is_a_message)
{
    begin(0);
    put_seq("documents", 2);
    put_body("insert");
    size_t n = b.len;
    for (b.len = WIRE_HEADER; b.len < n; b.len++)
        ck_assert_int_ne(parse(), 0);
    ck_assert_int_eq(parse(), 0);
}
END_TEST

START_TEST(a_document_over_the_limit_is_refused_by_its_length)
{
    begin(0);
    buf_byte(&b, 0);
    size_t at = b.len, n = BSON_INPUT_MAX + 1;
    memset(buf_reserve(&b, n), 0, n);
    b.len += n;
    store_le32(b.p + at, (uint32_t)n);
    ck_assert_int_eq(parse(), ERR_BSON_OBJECT_TOO_LARGE);
}
END_TEST

static void query(const char *ns, const char *name)
{
    head(WIRE_OP_QUERY);
    buf_le32(&b, 0);
    buf_append(&b, ns, strlen(ns) + 1);
    buf_le64(&b, 0);
    put_doc(name, 1);
}

START_TEST(op_query_is_for_hello_alone)
{
    query("admin.$cmd", "isMaster");
    ck_assert_int_eq(parse(), 0);
    ck_assert_str_eq(m.ns, "admin.$cmd");
    query("a.$cmd", "ismaster");
    ck_assert_int_eq(parse(), 0);
    query("admin.$cmd", "hello");
    ck_assert_int_eq(parse(), 0);
    put_doc("field", 1);
    ck_assert_int_eq(parse(), 0);
    put_doc("one_too_many", 1);
    ck_assert_int_ne(parse(), 0);
    ck_assert(m.fatal);

    query("admin.$cmd", "find");
    ck_assert_int_eq(parse(), ERR_UNSUPPORTED_OP_QUERY_COMMAND);
    ck_assert(!m.fatal);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "Unsupported OP_QUERY command: find. The client driver may require an upgrade."));
    query("test.things", "hello");
    ck_assert_int_eq(parse(), WIRE_ERR_QUERY_REMOVED);
    query(".$cmd", "hello");
    ck_assert_int_eq(parse(), WIRE_ERR_QUERY_REMOVED);
}
END_TEST

START_TEST(a_wrapped_command_is_taken_out)
{
    head(WIRE_OP_QUERY);
    buf_le32(&b, 0);
    buf_append(&b, "admin.$cmd", 11);
    buf_le64(&b, 0);
    size_t d = bw_begin(&b), q = bw_doc(&b, "$query");
    bw_i32(&b, "isMaster", 1);
    bw_end(&b, q);
    bw_end(&b, d);
    ck_assert_int_eq(parse(), 0);
    ck_assert_int_eq(bval_i32(bdoc_get(m.body, "isMaster")), 1);
}
END_TEST

START_TEST(no_prefix_of_a_query_is_a_query)
{
    query("admin.$cmd", "hello");
    size_t n = b.len;
    for (b.len = WIRE_HEADER; b.len < n; b.len++) {
        ck_assert_int_ne(parse(), 0);
        ck_assert(m.fatal);
    }
}
END_TEST

START_TEST(a_reply_has_its_prefix)
{
    wire_msg_begin(&b);
    put_doc("ok", 1);
    wire_msg_end(&b, 0, 5, 9, WIRE_MORE_TO_COME);
    ck_assert_uint_eq(load_le32(b.p), b.len);
    ck_assert_uint_eq(load_le32(b.p + 4), 5);
    ck_assert_uint_eq(load_le32(b.p + 8), 9);
    ck_assert_uint_eq(load_le32(b.p + 12), WIRE_OP_MSG);
    ck_assert_uint_eq(load_le32(b.p + 16), WIRE_MORE_TO_COME);
    ck_assert_uint_eq(b.p[20], 0);
    size_t start = b.len;
    wire_reply_begin(&b);
    put_doc("ok", 1);
    wire_reply_end(&b, start, 6, 10, WIRE_AWAIT_CAPABLE);
    ck_assert_uint_eq(load_le32(b.p + start), b.len - start);
    ck_assert_uint_eq(load_le32(b.p + start + 12), WIRE_OP_REPLY);
    ck_assert_uint_eq(load_le32(b.p + start + 16), WIRE_AWAIT_CAPABLE);
    ck_assert_uint_eq(load_le32(b.p + start + 32), 1);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_header_needs_a_possible_length_and_a_known_opcode);
    tcase_add_test(tc, body_and_sequences_come_in_any_order);
    tcase_add_test(tc, unknown_required_flags_are_fatal);
    tcase_add_test(tc, a_checksum_is_verified);
    tcase_add_test(tc, wrong_sections_have_their_codes);
    tcase_add_test(tc, no_prefix_of_a_message_is_a_message);
    tcase_add_test(tc, a_document_over_the_limit_is_refused_by_its_length);
    tcase_add_test(tc, op_query_is_for_hello_alone);
    tcase_add_test(tc, a_wrapped_command_is_taken_out);
    tcase_add_test(tc, no_prefix_of_a_query_is_a_query);
    tcase_add_test(tc, a_reply_has_its_prefix);
}
TEST_MAIN("wire/message", add_tests)
