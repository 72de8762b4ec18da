"""bulkWrite: inserts, updates and deletes in several collections by one command."""

import uuid

import pytest
from bson import SON, Binary, Int64
from wire import op_msg


@pytest.fixture
def bulk(wire, db):
    """bulk(ops, **fields): runs it with the namespaces `a` and `b` of the test's database."""

    def run(ops, **fields):
        names = [{"ns": f"{db.name}.a"}, {"ns": f"{db.name}.b"}]
        return wire.command("admin", SON([("bulkWrite", 1), ("ops", ops), ("nsInfo", names), *fields.items()]))

    return run


def counts(reply):
    assert reply["ok"] == 1.0, reply
    return [reply[k] for k in ("nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted")]


def results(reply):
    assert reply["cursor"]["id"] == 0
    assert reply["cursor"]["ns"] == "admin.$cmd.bulkWrite"
    return reply["cursor"]["firstBatch"]


def test_each_operation_has_a_result(bulk, db):
    reply = bulk(
        [
            {"insert": 0, "document": {"_id": 1, "x": 1}},
            {"insert": 1, "document": {"_id": 2, "x": 1}},
            {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"x": 1}}},
            {"update": 0, "filter": {"x": 2}, "updateMods": {"$set": {"x": 2}}, "multi": True},
            {"update": 1, "filter": {"_id": 7}, "updateMods": {"x": 7}, "upsert": True},
            {"delete": 1, "filter": {}, "multi": True},
            {"delete": 0, "filter": {"_id": 9}},
        ]
    )
    assert results(reply) == [
        {"ok": 1.0, "idx": 0, "n": 1},
        {"ok": 1.0, "idx": 1, "n": 1},
        {"ok": 1.0, "idx": 2, "n": 1, "nModified": 1},
        {"ok": 1.0, "idx": 3, "n": 1, "nModified": 0},
        {"ok": 1.0, "idx": 4, "n": 1, "nModified": 0, "upserted": {"_id": 7}},
        {"ok": 1.0, "idx": 5, "n": 2},
        {"ok": 1.0, "idx": 6, "n": 0},
    ]
    assert counts(reply) == [0, 2, 2, 1, 1, 2]
    assert [k for k in reply if k not in ("$clusterTime", "operationTime")] == [
        "cursor", "nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted", "ok",
    ]
    assert list(db.a.find()) == [{"_id": 1, "x": 2}] and list(db.b.find()) == []


def test_an_error_ends_an_ordered_command(bulk, db):
    ops = [{"insert": 0, "document": {"_id": i}} for i in (1, 1, 2)]
    reply = bulk(ops)
    first, second = results(reply)
    assert first == {"ok": 1.0, "idx": 0, "n": 1}
    assert second.pop("errmsg").startswith(f"E11000 duplicate key error collection: {db.name}.a index: _id_")
    assert second == {"ok": 0.0, "idx": 1, "code": 11000, "keyPattern": {"_id": 1}, "keyValue": {"_id": 1}, "n": 0}
    assert counts(reply) == [1, 1, 0, 0, 0, 0]
    assert [d["_id"] for d in db.a.find()] == [1]


def test_an_unordered_command_goes_on_after_errors(bulk, db):
    reply = bulk(
        [
            {"insert": 0, "document": {"_id": 1}},
            {"insert": 0, "document": {"_id": 1}},
            {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"_id": 5}}},
            {"update": 0, "filter": {"_id": 1}, "updateMods": {"$nope": {"_id": 5}}},
            {"delete": 1, "filter": {"$nope": 1}},
            {"insert": 1, "document": {"_id": 2}},
        ],
        ordered=False,
        errorsOnly=True,
    )
    assert [(r["ok"], r["idx"], r["code"], "nModified" in r) for r in results(reply)] == [
        (0.0, 1, 11000, False),
        (0.0, 2, 66, True),
        (0.0, 3, 9, True),
        (0.0, 4, 2, False),
    ]
    assert counts(reply) == [4, 2, 0, 0, 0, 0]
    assert db.b.count_documents({}) == 1


def test_updates_see_what_was_inserted_before_and_sort_chooses(bulk, db):
    reply = bulk(
        [{"insert": 0, "document": {"_id": i, "x": -i}} for i in range(5)]
        + [{"update": 0, "filter": {}, "updateMods": {"$set": {"y": 1}}, "sort": {"x": 1}}]
        + [{"update": 0, "filter": {}, "updateMods": {"$set": {"y": 1}}, "sort": {"x": 1}, "multi": True}]
    )
    assert counts(reply) == [1, 5, 1, 1, 0, 0]
    assert db.a.find_one({"y": 1})["_id"] == 4


def test_results_beyond_a_batch_are_read_by_get_more(bulk, wire):
    reply = bulk([{"insert": 0, "document": {"_id": i}} for i in range(10)], cursor={"batchSize": 4})
    cursor = reply["cursor"]
    seen = [r["idx"] for r in cursor["firstBatch"]]
    assert seen == [0, 1, 2, 3] and cursor["id"] != 0
    more = wire.command("admin", SON([("getMore", Int64(cursor["id"])), ("collection", "$cmd.bulkWrite"), ("batchSize", 6)]))
    assert [r["idx"] for r in more["cursor"]["nextBatch"]] == [4, 5, 6, 7, 8, 9]
    assert more["cursor"]["ns"] == "admin.$cmd.bulkWrite"
    none = bulk([{"delete": 0, "filter": {}}], cursor={"batchSize": 0})["cursor"]
    assert none["firstBatch"] == [] and none["id"] != 0
    assert wire.command("admin", {"killCursors": "$cmd.bulkWrite", "cursors": [Int64(none["id"])]})["cursorsKilled"] == [none["id"]]


def test_results_larger_than_a_message(wire, db):
    big = "x" * (3 << 20)
    ids = [{"_id": str(i) + big} for i in range(7)]
    ops = [{"update": 0, "filter": i, "updateMods": {"$set": {"x": 1}}, "upsert": True} for i in ids]
    sequences = [("ops", ops), ("nsInfo", [{"ns": f"{db.name}.a"}])]
    reply = wire.ask(op_msg({"bulkWrite": 1, "$db": "admin"}, sequences=sequences)).doc
    assert counts(reply) == [0, 0, 0, 0, 7, 0]
    cursor = reply["cursor"]
    assert 0 < len(cursor["firstBatch"]) < 7 and cursor["id"] != 0


def test_operations_and_namespaces_as_sequences(wire, db):
    ops = [{"insert": 0, "document": {"_id": i}} for i in range(300)]
    body = {"bulkWrite": 1, "ordered": True, "$db": "admin"}
    reply = wire.ask(op_msg(body, sequences=[("ops", ops), ("nsInfo", [{"ns": f"{db.name}.s"}])])).doc
    assert counts(reply) == [0, 300, 0, 0, 0, 0]
    assert db.s.count_documents({}) == 300


@pytest.mark.parametrize(
    "ops, fields, code",
    [
        ([], {}, 16),
        ([{"insert": 2, "document": {}}], {}, 2),
        ([{"insert": -1, "document": {}}], {}, 51024),
        ([{"insert": "x", "document": {}}], {}, 14),
        ([{"replace": 0, "document": {}}], {}, 40415),
        ([{"insert": 0}], {}, 40414),
        ([{"insert": 0, "document": {}, "filter": {}}], {}, 40415),
        ([{"update": 0, "filter": {}}], {}, 40414),
        ([{"delete": 0, "filter": {}, "sort": {}}], {}, 40415),
        ([{"delete": 0, "filter": {}, "collation": {"locale": "de"}}], {}, 238),
        ([{"insert": 0, "document": {}}], {"let": {"x": 1}}, 238),
        ([{"insert": 0, "document": {}}], {"nope": 1}, 40415),
        ([{"insert": 0, "document": {}}], {"cursor": {"batchSize": -1}}, 2),
    ],
)
def test_a_malformed_command_does_nothing(bulk, db, ops, fields, code):
    reply = bulk([{"insert": 0, "document": {"_id": 1}}, *ops] if ops else [], **fields)
    assert (reply["ok"], reply["code"]) == (0.0, code), reply
    assert db.a.count_documents({}) == 0


@pytest.mark.parametrize("ns", ["", "a", ".a", "a.", "a..b", "a.$b", "a b.c", "t.system.views", "x" * 64 + ".a", "a." + "x" * 255])
def test_bad_namespaces(wire, ns):
    reply = wire.command("admin", SON([("bulkWrite", 1), ("ops", [{"delete": 0, "filter": {}}]), ("nsInfo", [{"ns": ns}])]))
    assert (reply["ok"], reply["code"]) == (0.0, 73), reply


def test_only_on_admin(wire, db):
    reply = wire.command(db.name, SON([("bulkWrite", 1), ("ops", []), ("nsInfo", [])]))
    assert (reply["code"], reply["errmsg"]) == (13, "bulkWrite may only be run against the admin database.")


def test_a_retry_is_answered_and_not_run(bulk, db):
    db.a.insert_one({"_id": 1, "x": 0})
    again = {"lsid": {"id": Binary(uuid.uuid4().bytes, 4)}, "txnNumber": Int64(1)}
    ops = [
        {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"x": 1}}},
        {"insert": 1, "document": {"_id": 1}},
        {"update": 1, "filter": {"_id": 2}, "updateMods": {"$inc": {"x": 1}}, "upsert": True},
        {"delete": 1, "filter": {"_id": 1}},
    ]
    first, second = bulk(ops, **again), bulk(ops, **again)
    assert results(first) == results(second)
    assert counts(first) == counts(second) == [0, 1, 1, 1, 1, 1]
    assert "retriedStmtIds" not in first and second["retriedStmtIds"] == [0, 1, 2, 3]
    assert db.a.find_one()["x"] == 1 and list(db.b.find()) == [{"_id": 2, "x": 1}]
    again["txnNumber"] = Int64(2)
    reply = bulk([{"delete": 0, "filter": {}, "multi": True}], **again)
    assert results(reply)[0]["code"] == 72 and db.a.count_documents({}) == 1
