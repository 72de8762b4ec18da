"""Messages that were valid until something changed in them: nothing of it may harm the daemon or another client.

SEED=n repeats a run; MUTATIONS=n sets how many messages one test sends."""

import os
import random
import socket
import struct
import time

import bson
import pytest
from bson import SON, Int64

import wire as W
from octavo_server import SLOW
from wire import SNAPPY, ZLIB, ZSTD, Wire, kind0, kind1, op_compressed, op_msg, op_query

SEED = int(os.environ.get("SEED") or random.randrange(1 << 31))
MUTATIONS = int(os.environ.get("MUTATIONS") or 1500)
DB = "t_malformed"


def body(*fields):
    return SON([*fields, ("$db", DB)])


def valid_messages():
    """What drivers send, one or more of each kind."""
    docs = [{"_id": i, "a": i, "s": "text" * i, "l": [1, {"b": [i, None]}], "d": 1.5} for i in range(4)]
    session = {"lsid": {"id": bson.Binary(b"0123456789abcdef", 4)}}
    return [
        op_msg(body(("ping", 1))),
        op_msg(body(("hello", 1), ("client", {"driver": {"name": "x", "version": "1"}, "os": {"type": "l"}}), ("compression", ["zlib"]))),
        op_msg(body(("insert", "c"), ("documents", docs), ("ordered", False))),
        op_msg(body(("insert", "c")), [("documents", docs)]),
        op_msg(body(("insert", "c"), ("writeConcern", {"w": 0})), [("documents", docs)], flags=W.MORE_TO_COME),
        op_msg(body(("insert", "c"), ("txnNumber", Int64(1)), *session.items()), [("documents", docs)]),
        op_msg(sections=kind1("documents", docs) + kind0(body(("insert", "c")))),
        op_msg(body(("update", "c")), [("updates", [{"q": {"a": {"$gt": 1}}, "u": {"$inc": {"a": 1}, "$push": {"l": {"$each": [1], "$slice": -3}}}, "multi": True}])]),
        op_msg(body(("update", "c"), ("updates", [{"q": {"_id": 1}, "u": {"$set": {"l.$[x].b": 1}}, "upsert": True, "arrayFilters": [{"x.b": 1}]}]))),
        op_msg(body(("delete", "c")), [("deletes", [{"q": {"_id": {"$in": [1, 2, 3]}}, "limit": 0}])]),
        op_msg(body(("findAndModify", "c"), ("query", {"a": 1}), ("sort", {"a": -1}), ("update", {"$set": {"x": 1}}), ("new", True), ("upsert", True))),
        op_msg(body(("find", "c"), ("filter", {"$or": [{"a": {"$gte": 1, "$lt": 9}}, {"s": {"$regex": "^te", "$options": "i"}}]}), ("sort", {"a": 1, "s": -1}), ("projection", {"l": {"$slice": 1}}), ("batchSize", 1), ("limit", 3))),
        op_msg(body(("find", "c"), ("filter", {"l": {"$elemMatch": {"b": {"$all": [1]}}}, "d": {"$type": "double"}}), ("hint", {"a": 1}))),
        op_msg(body(("getMore", Int64(12345)), ("collection", "c"), ("batchSize", 5))),
        op_msg(body(("killCursors", "c"), ("cursors", [Int64(1), Int64(2)]))),
        op_msg(body(("count", "c"), ("query", {"a": {"$mod": [2, 0]}}), ("skip", 1), ("limit", 5))),
        op_msg(body(("distinct", "c"), ("key", "l.b"), ("query", {"a": {"$ne": 7}}))),
        op_msg(body(("aggregate", "c"), ("pipeline", [{"$match": {"a": 1}}, {"$sort": {"a": 1}}, {"$limit": 5}]), ("cursor", {"batchSize": 2}))),
        op_msg(body(("explain", SON([("find", "c"), ("filter", {"a": 1})])), ("verbosity", "executionStats"))),
        op_msg(body(("createIndexes", "c"), ("indexes", [{"key": {"a": 1, "l": -1}, "name": "a_l", "unique": False, "sparse": True}]))),
        op_msg(body(("listIndexes", "c"), ("cursor", {"batchSize": 1}))),
        op_msg(body(("listCollections", 1), ("filter", {"name": "c"}), ("nameOnly", True))),
        op_msg(body(("dropIndexes", "c"), ("index", ["a_l"]))),
        op_msg(body(("create", "v"), ("capped", False))),
        op_msg(body(("drop", "v"))),
        op_msg(body(("serverStatus", 1))),
        op_msg(body(("find", "c")), checksum=True),
        op_msg(body(("endSessions", [session["lsid"]]))),
        op_query("admin.$cmd", {"isMaster": 1, "helloOk": True, "client": {"driver": {"name": "x", "version": "1"}}}),
        op_query("test.c", {"a": 1}),
        *(op_compressed(op_msg(body(("insert", "c")), [("documents", docs)]), k) for k in (SNAPPY, ZLIB, ZSTD)),
        *(op_compressed(op_msg(body(("find", "c"), ("filter", {"a": 1}))), k) for k in (W.NOOP, SNAPPY, ZLIB, ZSTD)),
    ]


INTERESTING = [0, 1, -1, 2, 4, 5, 15, 16, 17, 127, 128, 255, 1 << 16, 48000000, 16777216, 2**31 - 1, -(2**31)]
TYPES = bytes(range(1, 0x14)) + b"\x7f\xff\x00"


def mutate(rng, message):
    """Changes a message in one to three places; the length in the header stays true unless it is what is changed."""
    m, true_length = bytearray(message), True
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(m))
        kind = rng.randrange(11)
        if kind == 0:
            m[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            m[at] = rng.randrange(256)
        elif kind == 2 and len(m) >= 20:  # a length, a count, a flag word, an opcode: any aligned or unaligned number
            struct.pack_into("<i", m, rng.randrange(len(m) - 3), rng.choice(INTERESTING))
        elif kind == 3 and len(m) > 24:
            del m[at : at + rng.choice([1, 1, 4, 16])]
        elif kind == 4:
            m[at:at] = rng.randbytes(rng.choice([1, 4, 16]))
        elif kind == 5 and len(m) >= 16:
            struct.pack_into("<i", m, 12, rng.choice([0, 1, 2004, 2005, 2010, 2011, 2012, 2013, 2014]))
        elif kind == 6 and len(m) >= 20:  # flag bits of an OP_MSG, of an OP_QUERY; the original opcode of an OP_COMPRESSED
            struct.pack_into("<I", m, 16, 1 << rng.randrange(32))
        elif kind == 7 and len(m) >= 24:  # uncompressed size, first section
            struct.pack_into("<i", m, 20, rng.choice(INTERESTING))
        elif kind == 8:
            m[at] = rng.choice(TYPES)
        elif kind == 9 and len(m) > 40:  # a piece of it a second time
            m[at:at] = m[at : at + rng.randrange(1, 40)]
        elif kind == 10 and len(m) >= 16:
            struct.pack_into("<i", m, 0, rng.choice(INTERESTING + [len(m) + 1, len(m) - 1, len(m) + 100]))
            true_length = False
    if true_length and len(m) >= 4:
        struct.pack_into("<i", m, 0, len(m))
    return bytes(m)


def private_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:")) * 1024


def send_in_pieces(rng, w, data):
    while data:
        n = rng.choice([1, 3, 15, 16, 17, 100, len(data), len(data)])
        w.send(data[:n])
        data = data[n:]


def is_served(server):
    with Wire(server.port, timeout=20 * SLOW) as w:
        assert w.command("admin", {"ping": 1})["ok"] == 1.0


def no_report(server):
    found = [line for line in server.log if "Sanitizer" in line or "runtime error" in line]
    assert not found, f"SEED={SEED}:\n" + "\n".join(server.log[-80:])


@pytest.mark.parametrize("part", range(3))
def test_changed_messages_harm_nobody(own_server, part):
    print(f"SEED={SEED}")
    rng = random.Random(SEED + part)
    server = own_server("--setParameter", "enableTestCommands=1")
    messages = valid_messages()
    start, sent = None, 0
    while sent < MUTATIONS:
        w = Wire(server.port, timeout=20 * SLOW)
        batch = b""
        for _ in range(rng.choice([1, 1, 2, 5, 20])):
            m = rng.choice(messages)
            batch += m if rng.random() < 0.3 else mutate(rng, m)
            sent += 1
        send_in_pieces(rng, w, batch)
        if rng.random() < 0.5:  # the other half hangs up without a look at the answers
            try:
                w.sock.shutdown(socket.SHUT_WR)
                while w.sock.recv(65536):
                    pass
            except (ConnectionError, OSError) as e:
                assert not isinstance(e, TimeoutError), f"SEED={SEED}: an end of the requests that nobody answers"
        w.close()
        try:
            is_served(server)
        except Exception as e:
            no_report(server)
            raise AssertionError(f"SEED={SEED}: not served after {batch!r}\n{server.tail()}") from e
        if start is None and sent > MUTATIONS // 3:
            start = private_bytes(server.process.pid)
    no_report(server)
    if not os.environ.get("OCTAVOD", "").count("san"):
        assert private_bytes(server.process.pid) < start + (64 << 20), f"SEED={SEED}"
    assert server.stop() == 0, f"SEED={SEED}"
    no_report(server)


def test_slow_senders_hold_nobody_up(own_server):
    server = own_server()
    whole = op_msg(body(("insert", "slow"), ("documents", [{"_id": 1, "x": "y" * 200}])))
    slow = [Wire(server.port) for _ in range(30)]
    for at in range(0, len(whole), 10):
        for w in slow:
            w.send(whole[at : at + 10])
        is_served(server)
    results = [w.receive().doc for w in slow]
    assert sum(r["n"] for r in results) == 1 and all(r["ok"] == 1.0 for r in results)
    for w in slow:
        w.close()


def test_an_announced_length_takes_no_memory(own_server):
    server = own_server()
    before = private_bytes(server.process.pid)
    held = [Wire(server.port) for _ in range(200)]
    for w in held:
        w.send(struct.pack("<iiii", 48000000, 1, 0, W.OP_MSG) + b"\0" * 100)
    is_served(server)
    assert private_bytes(server.process.pid) - before < 40 << 20
    for w in held:
        w.close()
    is_served(server)


def test_a_client_that_never_reads_is_not_answered_without_end(own_server):
    """Its requests wait, the memory of its replies is bounded, and others are served."""
    server = own_server()
    with Wire(server.port) as w:
        w.command(DB, {"insert": "big", "documents": [{"_id": i, "x": "y" * 1_000_000} for i in range(12)]})
    before = private_bytes(server.process.pid)
    deaf = [Wire(server.port) for _ in range(4)]
    request = op_msg(body(("find", "big")))
    for w in deaf:
        w.sock.setblocking(False)
        for _ in range(5000):
            try:
                w.sock.send(request)
            except BlockingIOError:
                break
    time.sleep(0.5)
    is_served(server)
    assert private_bytes(server.process.pid) - before < 4 * (16 << 20) * 3
    for w in deaf:
        w.close()
    is_served(server)
    assert server.stop() == 0


def test_half_closed_clients_get_their_answers(server):
    for _ in range(20):
        with Wire(server.port, timeout=10 * SLOW) as w:
            w.send(op_msg(body(("ping", 1))) * 3 + op_msg(body(("ping", 1)))[:20])
            w.sock.shutdown(socket.SHUT_WR)
            assert [w.receive().doc["ok"] for _ in range(3)] == [1.0] * 3
            assert w.closed()


def test_idle_connections_are_cheap(own_server):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    n = min(10_000, hard - 500) if hard != resource.RLIM_INFINITY else 10_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (n + 400, hard))
    try:
        server = own_server()
        for _ in range(5):
            is_served(server)
        before = private_bytes(server.process.pid)
        idle = []
        for _ in range(n):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.connect(("127.0.0.1", server.port))
            s.sendall(op_msg(body(("hello", 1))))
            assert len(s.recv(65536)) > 100
            idle.append(s)
        each = (private_bytes(server.process.pid) - before) / n
        is_served(server)
        for s in idle:
            s.close()
        is_served(server)
        assert server.stop() == 0
        print(f"{each:.0f} bytes a connection")
        if not os.environ.get("OCTAVOD", "").count("san"):
            assert each <= 8192
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
