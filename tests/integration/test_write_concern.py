"""Write concerns that cannot be satisfied, unacknowledged writes that are answered."""

import pytest
from bson import SON
from wire import Wire


@pytest.fixture
def member(own_server):
    """A connection to the only member of a replica set."""
    with Wire(own_server("--replSet", "rs").port) as w:
        yield w


def error(code, name, text, concern):
    return {"code": code, "codeName": name, "errmsg": text, "errInfo": {"writeConcern": concern}}


TOO_MANY = error(100, "UnsatisfiableWriteConcern", "Not enough data-bearing nodes",
                 {"w": 2, "wtimeout": 5, "provenance": "clientSupplied"})
UNKNOWN = error(79, "UnknownReplWriteConcern", "No write concern mode named 'far' found in replica set configuration",
                {"w": "far", "j": True, "wtimeout": 0, "provenance": "clientSupplied"})


@pytest.mark.parametrize("concern, expected", [({"w": 2, "wtimeout": 5}, TOO_MANY), ({"w": "far", "j": True}, UNKNOWN)])
def test_the_write_is_done_and_the_reply_tells(member, concern, expected):
    commands = [
        SON([("insert", "c"), ("documents", [{"_id": 1}])]),
        SON([("update", "c"), ("updates", [{"q": {}, "u": {"$set": {"x": 1}}}])]),
        SON([("findAndModify", "c"), ("query", {}), ("update", {"$set": {"x": 2}})]),
        SON([("createIndexes", "c"), ("indexes", [{"key": {"x": 1}, "name": "x"}])]),
        SON([("delete", "c"), ("deletes", [{"q": {}, "limit": 0}])]),
        SON([("drop", "c")]),
    ]
    for command in commands:
        reply = member.command("db", SON([*command.items(), ("writeConcern", concern)]))
        assert reply["ok"] == 1.0, reply
        assert reply["writeConcernError"] == expected
        if "n" in reply:
            assert reply["n"] == 1
    bulk = SON([("bulkWrite", 1), ("ops", [{"insert": 0, "document": {}}]), ("nsInfo", [{"ns": "db.c"}]), ("writeConcern", concern)])
    reply = member.command("admin", bulk)
    assert reply["nInserted"] == 1 and reply["writeConcernError"] == expected
    assert member.command("db", {"count": "c"})["n"] == 1


def test_errors_of_statements_stand_beside_it(member):
    reply = member.command("db", SON([("insert", "c"), ("documents", [{"_id": 1}, {"_id": 1}]), ("writeConcern", {"w": 3})]))
    assert reply["n"] == 1 and reply["writeErrors"][0]["code"] == 11000
    assert reply["writeConcernError"]["code"] == 100


def test_satisfiable_ones(member):
    for concern in ({"w": 1}, {"w": "majority"}, {"w": "majority", "wtimeout": 1}, {"j": True}, {}):
        assert "writeConcernError" not in member.command("db", SON([("insert", "c"), ("documents", [{}]), ("writeConcern", concern)]))


@pytest.mark.parametrize("concern", [{"w": 2}, {"w": "far"}])
def test_a_single_server_refuses_before_the_write(wire, db, concern):
    reply = wire.command(db.name, SON([("insert", "c"), ("documents", [{}]), ("writeConcern", concern)]))
    assert (reply["ok"], reply["code"]) == (0.0, 2)
    assert db.c.count_documents({}) == 0


def test_an_unacknowledged_write_that_is_answered_tells_nothing(wire, db):
    def run(**command):
        reply = wire.command(db.name, SON([*command.items(), ("writeConcern", {"w": 0})]))
        return {k: v for k, v in reply.items() if k not in ("$clusterTime", "operationTime")}

    assert run(insert="c", documents=[{"_id": 1}, {"_id": 1}]) == {"n": 0, "ok": 1.0}
    assert run(update="c", updates=[{"q": {"_id": 2}, "u": {}, "upsert": True}]) == {"n": 0, "nModified": 0, "ok": 1.0}
    assert run(delete="c", deletes=[{"q": {"_id": 1}, "limit": 1}]) == {"n": 0, "ok": 1.0}
    assert [d["_id"] for d in db.c.find()] == [2]
