"""Messages: their sections and flags, compression, and everything broken that a socket can bring."""

import os
import struct

import bson
import pytest
from bson import SON

import wire as W
from wire import MORE_TO_COME, OP_COMPRESSED, OP_MSG, SNAPPY, ZLIB, ZSTD, op_compressed, op_msg, op_query

PING = SON([("ping", 1), ("$db", "admin")])


def dies(wire, data):
    """The server closes the connection without a reply, and serves others."""
    wire.send(data)
    return wire.closed()


# --- OP_MSG


def test_the_reply_names_the_request(wire):
    reply = wire.ask(op_msg(PING, request_id=4711))
    assert reply.response_to == 4711 and reply.opcode == OP_MSG and reply.flags == 0
    assert reply.doc == {"ok": 1.0}


def test_requests_in_one_packet_are_answered_in_order(wire):
    wire.send(b"".join(op_msg(PING, request_id=i) for i in range(1, 101)))
    assert [wire.receive().response_to for _ in range(100)] == list(range(1, 101))


def test_a_request_may_come_byte_by_byte(wire):
    for b in op_msg(PING):
        wire.send(bytes([b]))
    assert wire.receive().doc["ok"] == 1.0


def test_a_right_checksum_is_accepted(wire):
    assert wire.ask(op_msg(PING, checksum=True)).doc["ok"] == 1.0


def test_a_wrong_checksum_is_refused(wire):
    wire.send(op_msg(PING, checksum=12345))
    try:
        assert wire.receive().doc["code"] == 288
    except W.Closed:
        pass  # closing is as good: nothing after a broken message can be trusted


def test_a_wrong_checksum_writes_nothing(wire, coll, connect):
    body = SON([("insert", "c"), ("documents", [{"_id": 1}]), ("$db", coll.database.name)])
    wire.send(op_msg(body, checksum=0))
    try:
        wire.receive()
    except W.Closed:
        pass
    assert coll.count_documents({}) == 0


@pytest.mark.parametrize("bit", [2, 3, 7, 15])
def test_an_unknown_required_flag_is_refused(wire, bit):
    wire.send(op_msg(PING, flags=1 << bit))
    doc = wire.receive().doc
    assert (doc["ok"], doc["code"], doc["codeName"]) == (0.0, 223, "IllegalOpMsgFlag")
    assert wire.closed()


@pytest.mark.parametrize("bit", [17, 20, 31])
def test_an_unknown_optional_flag_is_ignored(wire, bit):
    assert wire.ask(op_msg(PING, flags=1 << bit)).doc["ok"] == 1.0


def test_more_to_come_gets_no_reply(wire, coll):
    body = SON([("insert", "c"), ("documents", [{"_id": 1}]), ("writeConcern", {"w": 0}), ("$db", coll.database.name)])
    wire.send(op_msg(body, flags=MORE_TO_COME))
    assert wire.command("admin", {"ping": 1}) == {"ok": 1.0}  # the next reply is the ping's
    assert coll.count_documents({}) == 1


def test_more_to_come_gets_no_reply_even_if_the_command_is_wrong(wire):
    wire.send(op_msg(SON([("nonsense", 1), ("$db", "admin")]), flags=MORE_TO_COME))
    wire.send(op_msg(SON([("insert", "c"), ("$db", "admin")]), flags=MORE_TO_COME))
    assert wire.command("admin", {"ping": 1}) == {"ok": 1.0}


def test_a_document_sequence_is_an_array_field(wire, coll):
    docs = [{"_id": i} for i in range(5)]
    body = SON([("insert", "c"), ("$db", coll.database.name)])
    assert wire.ask(op_msg(body, [("documents", docs)])).doc == {"n": 5, "ok": 1.0}
    assert [d["_id"] for d in coll.find().sort("_id")] == list(range(5))


def test_sections_come_in_any_order(wire, coll):
    body = SON([("insert", "c"), ("$db", coll.database.name)])
    sections = W.kind1("documents", [{"_id": 1}]) + W.kind0(bson.encode(body))
    assert wire.ask(op_msg(sections=sections)).doc == {"n": 1, "ok": 1.0}


def test_updates_and_deletes_as_sequences(wire, coll):
    coll.insert_many([{"_id": 1}, {"_id": 2}])
    name = coll.database.name
    reply = wire.ask(op_msg(SON([("update", "c"), ("$db", name)]), [("updates", [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}])]))
    assert reply.doc["nModified"] == 1
    reply = wire.ask(op_msg(SON([("delete", "c"), ("$db", name)]), [("deletes", [{"q": {"_id": 2}, "limit": 1}])]))
    assert reply.doc["n"] == 1
    assert list(coll.find()) == [{"_id": 1, "a": 1}]


def test_a_field_given_twice_is_refused(wire, coll):
    body = SON([("insert", "c"), ("documents", [{"_id": 1}]), ("$db", coll.database.name)])
    wire.send(op_msg(body, [("documents", [{"_id": 2}])]))
    try:
        assert wire.receive().doc["ok"] == 0.0
    except W.Closed:
        pass
    assert coll.count_documents({}) == 0


@pytest.mark.parametrize(
    "sections",
    [
        b"",  # none
        W.kind1("documents", [{}]),  # no body
        W.kind0(PING) + W.kind0(PING),  # two
        b"\2" + bson.encode(PING),  # of the servers' own kind
        b"\x77" + bson.encode(PING),  # of no kind
        W.kind0(PING) + b"\1" + struct.pack("<i", 1000) + b"documents\0",  # longer than the message
        W.kind0(PING) + b"\1" + struct.pack("<i", 2) + b"x\0",  # shorter than its own head
        W.kind0(PING) + b"\1" + struct.pack("<i", -5) + b"documents\0",
        W.kind0(PING) + b"\1" + struct.pack("<i", 8) + b"nozero",
        b"\0" + struct.pack("<i", 1000) + b"\0",  # a document longer than the message
        b"\0" + struct.pack("<i", 4) + b"\0",  # one too short to be one
        b"\0" + struct.pack("<i", -1) + b"\0",
    ],
    ids=["none", "no-body", "two-bodies", "kind2", "kind77", "long-seq", "short-seq", "neg-seq", "no-nul", "long", "short", "neg"],
)
def test_broken_sections_are_refused(wire, connect, sections):
    wire.send(op_msg(sections=sections))
    try:
        assert wire.receive().doc["ok"] == 0.0
    except W.Closed:
        pass
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


BROKEN_BSON = {
    "type": b"\x0c\0\0\0\x42a\0\0\0\0\0\0",
    "no-terminator": b"\x09\0\0\0\x0aa\0\x0a\x0a",
    "string-too-long": b"\x12\0\0\0\x02a\0\xff\0\0\0abcde\0",
    "string-length-0": b"\x0d\0\0\0\x02a\0\0\0\0\0\0\0",
    "string-no-nul": b"\x10\0\0\0\x02a\0\x02\0\0\0xxx\0",
    "name-unended": b"\x08\0\0\0\x0aabc",
    "inner-too-long": b"\x12\0\0\0\x03a\0\x7f\0\0\0\0\0\0\0\0\0",
    "bool-2": b"\x09\0\0\0\x08a\0\x02\0",
    "double-cut": b"\x0c\0\0\0\x01a\0\0\0\0\0\0",
    "binary-negative": b"\x12\0\0\0\x05a\0\xff\xff\xff\xff\0\0\0\0\0\0",
}


@pytest.mark.parametrize("name", BROKEN_BSON)
def test_broken_documents_are_refused(wire, connect, coll, name):
    inner = BROKEN_BSON[name]
    inner = struct.pack("<i", len(inner)) + inner[4:]
    fields = b"\x02insert\0\x02\0\0\0c\0" + b"\x04documents\0"
    array = b"\x030\0" + inner + b"\0"
    array = struct.pack("<i", len(array) + 4) + array
    db = coll.database.name.encode()
    body = fields + array + b"\x02$db\0" + struct.pack("<i", len(db) + 1) + db + b"\0" + b"\0"
    wire.send(op_msg(sections=W.kind0(struct.pack("<i", len(body) + 4) + body)))
    try:
        doc = wire.receive().doc
        assert doc["ok"] == 0.0 or doc["writeErrors"]
    except W.Closed:
        pass
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0
    assert coll.count_documents({}) == 0


def test_nesting_without_end_is_refused(wire, connect):
    inner = b"\x05\0\0\0\0"
    for _ in range(5000):
        inner = struct.pack("<i", len(inner) + 8) + b"\x03a\0" + inner + b"\0"
    wire.send(op_msg(sections=W.kind0(struct.pack("<i", len(inner) + 23) + b"\x03ping\0" + inner + b"\x02$db\0\x02\0\0\0a\0\0")))
    try:
        assert wire.receive().doc["ok"] == 0.0
    except W.Closed:
        pass
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


def test_a_command_without_db_is_refused(wire):
    doc = wire.ask(op_msg(SON([("ping", 1)]))).doc
    assert (doc["ok"], doc["code"], doc["codeName"]) == (0.0, 40571, "Location40571")


def test_an_empty_document_is_no_command(wire):
    wire.send(op_msg({}))
    try:
        assert wire.receive().doc["ok"] == 0.0
    except W.Closed:
        pass


# --- lengths and opcodes


@pytest.mark.parametrize("length", [-1, 0, 1, 15, 48000001, 2**31 - 1, -(2**31)])
def test_an_impossible_length_closes_the_connection(wire, connect, length):
    assert dies(wire, struct.pack("<iiii", length, 1, 0, OP_MSG))
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


@pytest.mark.parametrize("length", [16, 17, 20, 21, 24])
def test_a_message_too_short_for_its_opcode(wire, connect, length):
    wire.send(struct.pack("<iiii", length, 1, 0, OP_MSG) + b"\0" * (length - 16))
    try:
        assert wire.receive().doc["ok"] == 0.0
    except W.Closed:
        pass
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


@pytest.mark.parametrize("opcode", [0, 1, 1000, 2001, 2002, 2003, 2005, 2006, 2007, 2010, 2011, 2014, -1])
def test_other_opcodes_close_the_connection(wire, connect, opcode):
    body = struct.pack("<i", 0) + b"db.c\0" + struct.pack("<i", 0) + bson.encode({"_id": 1}) + bson.encode({"_id": 1})
    assert dies(wire, W.message(opcode, body))
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


def test_a_connection_may_end_anywhere_in_a_message(connect):
    whole = op_msg(PING)
    for cut in range(0, len(whole), 3):
        w = connect()
        w.send(whole[:cut])
        w.close()
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


def test_noise_harms_nobody(connect):
    for i in range(50):
        w = connect()
        w.send(os.urandom(200))
        w.close()
        w = connect()
        body = os.urandom(100)
        w.send(W.message(OP_MSG, body))
        w.close()
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


def test_http_is_answered_by_closing(wire):
    wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    wire.sock.settimeout(5)
    while wire.sock.recv(4096):
        pass


# --- OP_QUERY


@pytest.mark.parametrize("command", ["find", "ping", "insert", "buildInfo", "nonsense"])
def test_op_query_is_for_hello_only(wire, command):
    doc = wire.ask(op_query("test.$cmd", {command: "c"})).doc
    assert (doc["ok"], doc["code"], doc["codeName"]) == (0.0, 352, "UnsupportedOpQueryCommand")
    assert doc["errmsg"].startswith(f"Unsupported OP_QUERY command: {command}. The client driver may require an upgrade.")


def test_op_query_on_a_collection_is_refused(wire):
    reply = wire.ask(op_query("test.things", {"a": 1}, count=5))
    assert reply.flags & 2  # QueryFailure
    assert reply.doc["code"] in (352, 5739101)
    assert "$err" in reply.doc


def test_op_query_broken_by_length(wire, connect):
    for body in (b"", b"\0\0\0\0", b"\0\0\0\0admin.$cmd", b"\0\0\0\0admin.$cmd\0" + b"\0" * 8):
        w = connect()
        w.send(W.message(W.OP_QUERY, body))
        assert w.closed()
    assert wire.command("admin", {"ping": 1})["ok"] == 1.0


# --- OP_COMPRESSED

KINDS = [pytest.param(SNAPPY, id="snappy"), pytest.param(ZLIB, id="zlib"), pytest.param(ZSTD, id="zstd")]
NAMES = {SNAPPY: "snappy", ZLIB: "zlib", ZSTD: "zstd"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_request_gets_a_compressed_reply(wire, coll, kind):
    assert wire.command("admin", {"hello": 1, "compression": [NAMES[kind]]})["compression"] == [NAMES[kind]]
    docs = [{"_id": i, "text": "x" * 1000} for i in range(50)]
    body = SON([("insert", "c"), ("$db", coll.database.name)])
    reply = wire.ask(op_compressed(op_msg(body, [("documents", docs)], request_id=9), kind))
    assert reply.doc == {"n": 50, "ok": 1.0}
    reply = wire.ask(op_compressed(op_msg(SON([("find", "c"), ("$db", coll.database.name)]), request_id=10), kind))
    assert reply.compressor == kind and reply.response_to == 10
    assert reply.length < 20000
    assert reply.doc["cursor"]["firstBatch"] == docs


@pytest.mark.parametrize("kind", KINDS)
def test_an_uncompressed_request_gets_an_uncompressed_reply(wire, kind):
    wire.command("admin", {"hello": 1, "compression": [NAMES[kind]]})
    assert wire.ask(op_msg(PING)).compressor is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lie", [-1, 0, 1, 2**31 - 1, 48000001, "less", "more"])
def test_a_wrong_uncompressed_size_closes_the_connection(wire, connect, kind, lie):
    inner = op_msg(PING)
    size = {"less": len(inner) - 17, "more": len(inner) - 15}.get(lie, lie)
    wire.send(op_compressed(inner, kind, size=size))
    try:
        assert wire.receive().doc["ok"] == 0.0
        # an answer is fine as long as it is a refusal
    except W.Closed:
        pass
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_garbage_in_place_of_compressed_bytes(wire, connect, kind):
    wire.send(op_compressed(op_msg(PING), kind, payload=b"\xff" * 40))
    try:
        assert wire.receive().doc["ok"] == 0.0
    except W.Closed:
        pass
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


def test_compression_inside_compression_is_refused(wire, connect):
    wire.send(op_compressed(op_compressed(op_msg(PING), SNAPPY), SNAPPY, opcode=OP_COMPRESSED))
    assert wire.closed()
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


def test_an_unknown_compressor_is_refused(wire, connect):
    wire.send(op_compressed(op_msg(PING), W.NOOP, payload=b"x" * 20)[:-21] + b"\x09" + b"x" * 20)
    try:
        assert wire.receive().doc["ok"] == 0.0
    except W.Closed:
        pass
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


# --- size


def test_the_largest_document_goes_in_and_comes_out(coll):
    room = 16777216 - len(bson.encode({"_id": 1, "x": ""}))
    coll.insert_one({"_id": 1, "x": "y" * room})
    assert len(coll.find_one({"_id": 1})["x"]) == room


def test_a_larger_document_is_refused(wire, coll):
    room = 16777216 - len(bson.encode({"_id": 1, "x": ""})) + 1
    doc = wire.command(coll.database.name, {"insert": "c", "documents": [{"_id": 1, "x": "y" * room}]})
    code = doc.get("code") or doc["writeErrors"][0]["code"]
    assert code in (2, 10334)
    assert "16777216" in (doc.get("errmsg") or doc["writeErrors"][0]["errmsg"])
    assert coll.count_documents({}) == 0


def test_a_batch_near_the_message_limit(wire, coll):
    docs = [{"_id": i, "x": "z" * 1_000_000} for i in range(47)]
    assert wire.ask(op_msg(SON([("insert", "c"), ("$db", coll.database.name)]), [("documents", docs)])).doc["n"] == 47
    assert sum(len(d["x"]) for d in coll.find()) == 47_000_000
