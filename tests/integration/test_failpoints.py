"""configureFailPoint: what driver tests turn on."""

import time

import pytest
from bson import SON
from pymongo.errors import OperationFailure

import wire as W


def test_an_error_code_for_so_many_times(db, failpoint):
    failpoint({"failCommands": ["insert"], "errorCode": 96}, {"times": 2})
    for _ in range(2):
        with pytest.raises(OperationFailure) as e:
            db.command("insert", "c", documents=[{}])
        assert e.value.code == 96
        assert e.value.details["codeName"] == "OperationFailed"
    db.command("insert", "c", documents=[{}])
    assert db.c.count_documents({}) == 1


def test_the_words_of_a_failed_command(wire, db, failpoint):
    failpoint({"failCommands": ["find"], "errorCode": 8})
    doc = wire.command(db.name, {"find": "c"})
    assert (doc["ok"], doc["code"], doc["codeName"]) == (0.0, 8, "UnknownError")
    assert doc["errmsg"] == "Failing command via 'failCommand' failpoint"


def test_only_the_named_commands_fail(db, failpoint):
    failpoint({"failCommands": ["find", "aggregate"], "errorCode": 2}, "alwaysOn")
    db.command("insert", "c", documents=[{}])
    for cmd in (SON([("find", "c")]), SON([("aggregate", "c"), ("pipeline", []), ("cursor", {})])):
        with pytest.raises(OperationFailure):
            db.command(cmd)


def test_always_on_until_off(client, db):
    client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data={"failCommands": ["find"], "errorCode": 2})
    for _ in range(3):
        with pytest.raises(OperationFailure):
            db.command("find", "c")
    client.admin.command("configureFailPoint", "failCommand", mode="off")
    db.command("find", "c")


def test_skip_lets_some_pass(db, failpoint):
    failpoint({"failCommands": ["find"], "errorCode": 2}, {"skip": 2})
    db.command("find", "c")
    db.command("find", "c")
    with pytest.raises(OperationFailure):
        db.command("find", "c")


def test_close_connection(wire, db, failpoint, connect):
    failpoint({"failCommands": ["find"], "closeConnection": True})
    wire.send(W.op_msg(SON([("find", "c"), ("$db", db.name)])))
    assert wire.closed()
    assert connect().command(db.name, {"find": "c"})["ok"] == 1.0


def test_a_write_concern_error_rides_on_a_write_that_happened(db, failpoint):
    failpoint({"failCommands": ["insert"], "writeConcernError": {"code": 64, "errmsg": "told so", "errInfo": {"wtimeout": True}}})
    reply = db.command("insert", "c", documents=[{"_id": 1}], check=False)
    assert reply["ok"] == 1.0 and reply["n"] == 1
    assert reply["writeConcernError"]["code"] == 64 and reply["writeConcernError"]["errmsg"] == "told so"
    assert db.c.count_documents({}) == 1


def test_error_labels(wire, db, failpoint):
    failpoint({"failCommands": ["insert"], "errorCode": 11600, "errorLabels": ["One", "Two"]})
    assert wire.command(db.name, {"insert": "c", "documents": [{}]})["errorLabels"] == ["One", "Two"]
    failpoint({"failCommands": ["insert"], "errorCode": 11600, "errorLabels": []})
    assert "errorLabels" not in wire.command(db.name, {"insert": "c", "documents": [{}]})


def test_a_blocked_connection_blocks_no_other(connect, db, failpoint):
    failpoint({"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 500})
    a, b = connect(), connect()
    start = time.monotonic()
    a.send(W.op_msg(SON([("find", "c"), ("$db", db.name)])))
    time.sleep(0.05)
    for _ in range(20):
        assert b.command(db.name, {"ping": 1})["ok"] == 1.0
    assert time.monotonic() - start < 0.45
    assert a.receive().doc["ok"] == 1.0
    assert time.monotonic() - start >= 0.45


def test_by_application_name(server, db, connect, failpoint):
    failpoint({"failCommands": ["find"], "errorCode": 2, "appName": "the-one"}, "alwaysOn")
    meta = {"application": {"name": "the-one"}, "driver": {"name": "d", "version": "1"}, "os": {"type": "x"}}
    a, b = connect(), connect()
    a.command("admin", {"hello": 1, "client": meta})
    b.command("admin", {"hello": 1})
    assert a.command(db.name, {"find": "c"})["ok"] == 0.0
    assert b.command(db.name, {"find": "c"})["ok"] == 1.0


def test_malformed_fail_points_are_refused(client, wire):
    for name, kw in (
        ("nonsense", {"mode": "alwaysOn"}),
        ("failCommand", {}),
        ("failCommand", {"mode": "sometimes"}),
        ("failCommand", {"mode": {"times": "x"}}),
    ):
        with pytest.raises(OperationFailure):
            client.admin.command("configureFailPoint", name, **kw)
    assert wire.command("test", {"configureFailPoint": "failCommand", "mode": "off"})["ok"] == 0.0


def test_without_test_commands_there_are_none(own_server):
    import pymongo

    s = own_server()
    with pymongo.MongoClient(s.uri, directConnection=True) as c, pytest.raises(OperationFailure) as e:
        c.admin.command("configureFailPoint", "failCommand", mode="off")
    assert e.value.code == 59
