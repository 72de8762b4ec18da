"""hello and isMaster: what drivers learn first."""

import time

import bson
import pytest
from bson import SON, Int64

from wire import EXHAUST_ALLOWED, OP_MSG, OP_REPLY, op_msg, op_query

FIRST = SON([("isMaster", 1), ("helloOk", True), ("client", {"driver": {"name": "t", "version": "1"}, "os": {"type": "x"}})])


def check_hello(doc, writable):
    assert doc[writable] is True
    assert doc["maxBsonObjectSize"] == 16777216
    assert doc["maxMessageSizeBytes"] == 48000000
    assert doc["maxWriteBatchSize"] == 100000
    assert doc["logicalSessionTimeoutMinutes"] == 30
    assert doc["minWireVersion"] == 0
    assert doc["maxWireVersion"] == 25
    assert doc["readOnly"] is False
    assert doc["ok"] == 1.0 and isinstance(doc["ok"], float)
    assert type(doc["connectionId"]) is int
    assert doc["localTime"]
    assert isinstance(doc["topologyVersion"]["processId"], bson.ObjectId)
    assert isinstance(doc["topologyVersion"]["counter"], Int64)


def test_is_master_by_op_query_is_answered_by_op_reply(wire):
    reply = wire.ask(op_query("admin.$cmd", FIRST, request_id=77))
    assert reply.opcode == OP_REPLY
    assert reply.response_to == 77
    assert reply.flags & 8  # AwaitCapable
    assert reply.cursor_id == 0 and reply.returned == 1
    check_hello(reply.doc, "ismaster")
    assert reply.doc["helloOk"] is True


@pytest.mark.parametrize("name", ["ismaster", "isMaster", "hello"])
def test_every_spelling_by_either_opcode(connect, name):
    field = "isWritablePrimary" if name == "hello" else "ismaster"
    check_hello(connect().ask(op_query("admin.$cmd", {name: 1})).doc, field)
    reply = connect().ask(op_msg(SON([(name, 1), ("$db", "admin")])))
    assert reply.opcode == OP_MSG and reply.flags == 0
    check_hello(reply.doc, field)
    other = "ismaster" if name == "hello" else "isWritablePrimary"
    assert other not in reply.doc


def test_hello_ok_is_told_only_when_asked(wire):
    assert "helloOk" not in wire.command("admin", {"hello": 1})
    assert wire.command("admin", {"hello": 1, "helloOk": True})["helloOk"] is True


def test_hello_works_on_any_database(wire):
    assert wire.command("whatever", {"hello": 1})["ok"] == 1.0


def test_connection_ids_differ_and_stay(connect):
    a, b = connect(), connect()
    ids = [w.command("admin", {"hello": 1})["connectionId"] for w in (a, b, a)]
    assert ids[0] != ids[1] and ids[0] == ids[2]


def test_a_standalone_does_not_look_like_a_set(wire):
    doc = wire.command("admin", {"hello": 1})
    assert not {"setName", "hosts", "me", "primary", "msg"} & set(doc)


def test_compression_is_agreed_in_the_clients_order(connect):
    assert connect().command("admin", {"hello": 1, "compression": ["zlib", "snappy"]})["compression"] == ["zlib", "snappy"]
    assert connect().command("admin", {"hello": 1, "compression": ["zstd", "lzma"]})["compression"] == ["zstd"]
    assert "compression" not in connect().command("admin", {"hello": 1})
    assert "compression" not in connect().command("admin", {"hello": 1, "compression": ["lzma"]})


def test_client_metadata_may_come_once_only(wire):
    meta = {"driver": {"name": "d", "version": "1"}, "os": {"type": "Linux"}}
    assert wire.command("admin", {"hello": 1, "client": meta})["ok"] == 1.0
    again = wire.command("admin", {"hello": 1, "client": meta})
    assert (again["ok"], again["code"], again["codeName"]) == (0.0, 186, "ClientMetadataCannotBeMutated")
    assert again["errmsg"] == "The client metadata document may only be sent in the first hello"


def test_a_client_metadata_that_is_too_large_is_refused(connect):
    meta = {"driver": {"name": "d" * 600, "version": "1"}, "os": {"type": "Linux"}}
    assert connect().command("admin", {"hello": 1, "client": meta})["code"] == 185
    meta = {"application": {"name": "a" * 129}, "driver": {"name": "d", "version": "1"}, "os": {"type": "Linux"}}
    assert connect().command("admin", {"hello": 1, "client": meta})["code"] == 184


def test_a_changed_topology_version_is_answered_at_once(wire):
    start = time.monotonic()
    doc = wire.command(
        "admin",
        {"hello": 1, "maxAwaitTimeMS": 5000, "topologyVersion": {"processId": bson.ObjectId(), "counter": Int64(0)}},
    )
    assert doc["ok"] == 1.0 and time.monotonic() - start < 2


def test_an_equal_topology_version_is_held_until_the_time_is_up(wire):
    version = wire.command("admin", {"hello": 1})["topologyVersion"]
    start = time.monotonic()
    doc = wire.command("admin", {"hello": 1, "maxAwaitTimeMS": 300, "topologyVersion": version})
    assert doc["ok"] == 1.0 and doc["topologyVersion"] == version
    assert 0.25 <= time.monotonic() - start < 3


def test_topology_version_and_max_await_time_need_each_other(connect):
    version = connect().command("admin", {"hello": 1})["topologyVersion"]
    assert connect().command("admin", {"hello": 1, "topologyVersion": version})["ok"] == 0.0
    assert connect().command("admin", {"hello": 1, "maxAwaitTimeMS": 10})["ok"] == 0.0


def test_a_streaming_hello_keeps_coming(wire):
    version = wire.command("admin", {"hello": 1})["topologyVersion"]
    body = SON([("hello", 1), ("maxAwaitTimeMS", 150), ("topologyVersion", version), ("$db", "admin")])
    wire.send(op_msg(body, flags=EXHAUST_ALLOWED, request_id=500))
    last = 500
    for _ in range(3):
        reply = wire.receive()
        assert reply.more_to_come
        assert reply.response_to == last
        check_hello(reply.doc, "isWritablePrimary")
        last = reply.request_id


def test_without_exhaust_allowed_nothing_streams(wire):
    version = wire.command("admin", {"hello": 1})["topologyVersion"]
    reply = wire.ask(op_msg(SON([("hello", 1), ("maxAwaitTimeMS", 50), ("topologyVersion", version), ("$db", "admin")])))
    assert not reply.more_to_come
    assert wire.silent(0.4)


def test_a_held_hello_delays_nobody_else(connect):
    a, b = connect(), connect()
    version = a.command("admin", {"hello": 1})["topologyVersion"]
    a.send(op_msg(SON([("hello", 1), ("maxAwaitTimeMS", 3000), ("topologyVersion", version), ("$db", "admin")])))
    start = time.monotonic()
    for _ in range(20):
        assert b.command("admin", {"ping": 1})["ok"] == 1.0
    assert time.monotonic() - start < 2


def test_a_stream_ends_with_its_connection(server, connect):
    for _ in range(20):
        w = connect()
        version = w.command("admin", {"hello": 1})["topologyVersion"]
        w.send(
            op_msg(
                SON([("hello", 1), ("maxAwaitTimeMS", 20), ("topologyVersion", version), ("$db", "admin")]),
                flags=EXHAUST_ALLOWED,
            )
        )
        w.receive()
        w.close()
    time.sleep(0.3)
    assert server.alive()
    assert connect().command("admin", {"ping": 1})["ok"] == 1.0


def test_load_balanced_is_refused_by_a_plain_server(wire):
    doc = wire.command("admin", {"hello": 1, "loadBalanced": True})
    assert doc["ok"] == 0.0 and doc["code"] == 354


def test_many_connections_at_once(server):
    from wire import Wire

    wires = [Wire(server.port) for _ in range(200)]
    try:
        for w in wires:
            w.send(op_msg(SON([("ping", 1), ("$db", "admin")])))
        for w in wires:
            assert w.receive().doc["ok"] == 1.0
    finally:
        for w in wires:
            w.close()
