"""The write commands: replies, batches, order, acknowledgement."""

import pytest
from bson import SON, ObjectId, Regex, Timestamp
from pymongo import DeleteOne, InsertOne, UpdateOne, WriteConcern
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, WriteError


def test_insert_replies_with_the_count(db):
    reply = db.command("insert", "c", documents=[{"_id": 1}, {"_id": 2}])
    assert reply == {"n": 2, "ok": 1.0}
    assert type(reply["n"]) is int and type(reply["ok"]) is float


def test_a_missing_id_is_made_and_comes_first(wire, db):
    assert wire.command(db.name, SON([("insert", "c"), ("documents", [{"a": 1}])]))["n"] == 1
    doc = db.c.find_one()
    assert list(doc) == ["_id", "a"] and isinstance(doc["_id"], ObjectId)


def test_an_id_that_is_not_first_is_moved_first(wire, db):
    wire.command(db.name, SON([("insert", "c"), ("documents", [SON([("a", 1), ("_id", 7)])])]))
    assert list(db.c.find_one()) == ["_id", "a"]


@pytest.mark.parametrize("bad", [[1], Regex("x")], ids=str)
def test_an_id_of_a_wrong_type_is_refused(coll, bad):
    with pytest.raises(WriteError) as e:
        coll.insert_one({"_id": bad})
    assert e.value.code in (2, 53)
    assert coll.count_documents({}) == 0


def test_every_other_type_is_an_id(coll):
    for v in (1.5, "x", {"a": 1}, None, True, b"x"):
        coll.insert_one({"_id": v})
        assert coll.find_one({"_id": v})["_id"] == v


def test_numbers_of_one_value_are_one_id(coll):
    coll.insert_one({"_id": 1})
    with pytest.raises(DuplicateKeyError):
        coll.insert_one({"_id": 1.0})


def test_a_zero_timestamp_at_the_top_becomes_now(coll):
    coll.insert_one({"_id": 1, "t": Timestamp(0, 0), "d": {"t": Timestamp(0, 0)}})
    doc = coll.find_one()
    assert doc["t"].time > 1_600_000_000
    assert doc["d"]["t"] == Timestamp(0, 0)


def test_an_ordered_batch_stops_at_the_first_error(db):
    reply = db.command("insert", "c", documents=[{"_id": 1}, {"_id": 1}, {"_id": 2}], check=False)
    assert reply["ok"] == 1.0 and reply["n"] == 1
    assert [e["index"] for e in reply["writeErrors"]] == [1]
    assert reply["writeErrors"][0]["code"] == 11000
    assert db.c.count_documents({}) == 1


def test_an_unordered_batch_goes_on(db):
    docs = [{"_id": 1}, {"_id": 1}, {"_id": 2}, {"_id": 2}, {"_id": 3}]
    reply = db.command("insert", "c", documents=docs, ordered=False, check=False)
    assert reply["ok"] == 1.0 and reply["n"] == 3
    assert [e["index"] for e in reply["writeErrors"]] == [1, 3]


def test_a_batch_that_fails_as_a_whole_is_still_ok_1(db):
    db.c.insert_one({"_id": 1})
    reply = db.command("insert", "c", documents=[{"_id": 1}], check=False)
    assert reply["ok"] == 1.0 and reply["n"] == 0 and len(reply["writeErrors"]) == 1


def test_an_empty_batch_is_refused(db):
    for name, field in (("insert", "documents"), ("update", "updates"), ("delete", "deletes")):
        with pytest.raises(OperationFailure) as e:
            db.command(name, "c", **{field: []})
        assert e.value.code == 16
        assert e.value.details["errmsg"] == "Write batch sizes must be between 1 and 100000. Got 0 operations."


def test_a_batch_of_100000_is_the_largest(wire, db):
    from wire import op_msg

    docs = [{"_id": i} for i in range(100001)]
    body = SON([("insert", "c"), ("$db", db.name)])
    reply = wire.ask(op_msg(body, [("documents", docs)])).doc
    assert (reply["ok"], reply["code"]) == (0.0, 16)
    assert wire.ask(op_msg(body, [("documents", docs[:-1])])).doc["n"] == 100000
    assert db.c.estimated_document_count() == 100000


def test_delete_one_and_many(coll):
    coll.insert_many([{"_id": i, "a": i % 2} for i in range(10)])
    assert coll.delete_one({"a": 0}).deleted_count == 1
    assert coll.delete_many({"a": 0}).deleted_count == 4
    assert coll.delete_many({"a": 0}).deleted_count == 0
    assert coll.delete_many({}).deleted_count == 5


def test_delete_needs_a_limit_of_0_or_1(db):
    for op in ({"q": {}}, {"q": {}, "limit": 2}):
        reply = db.command("delete", "c", deletes=[op], check=False)
        assert reply.get("code") or reply["writeErrors"]
    assert db.command("delete", "c", deletes=[{"q": {}, "limit": 0}]) == {"n": 0, "ok": 1.0}


def test_update_replies_with_matches_and_changes(db):
    db.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    reply = db.command("update", "c", updates=[{"q": {}, "u": {"$set": {"a": 1}}, "multi": True}])
    assert reply == {"n": 2, "nModified": 1, "ok": 1.0}


def test_a_write_to_a_missing_collection(db):
    assert db.command("update", "c", updates=[{"q": {}, "u": {"$set": {"a": 1}}}]) == {"n": 0, "nModified": 0, "ok": 1.0}
    assert db.command("delete", "c", deletes=[{"q": {}, "limit": 1}]) == {"n": 0, "ok": 1.0}
    assert db.list_collection_names() == []


def test_a_mixed_bulk_write(coll):
    r = coll.bulk_write(
        [
            InsertOne({"_id": 1, "a": 1}),
            UpdateOne({"_id": 1}, {"$inc": {"a": 1}}),
            UpdateOne({"_id": 2}, {"$set": {"a": 5}}, upsert=True),
            DeleteOne({"_id": 1}),
        ]
    )
    assert (r.inserted_count, r.modified_count, r.deleted_count, r.upserted_ids) == (1, 1, 1, {2: 2})


def test_an_unordered_bulk_reports_each_error(coll):
    coll.insert_one({"_id": 1})
    with pytest.raises(BulkWriteError) as e:
        coll.bulk_write([InsertOne({"_id": 1}), InsertOne({"_id": 2}), InsertOne({"_id": 1})], ordered=False)
    assert [w["index"] for w in e.value.details["writeErrors"]] == [0, 2]
    assert coll.count_documents({}) == 2


def test_an_unacknowledged_write_happens(coll):
    quiet = coll.with_options(write_concern=WriteConcern(w=0))
    quiet.insert_one({"_id": 1})
    quiet.insert_one({"_id": 1})  # an error that nobody hears of
    coll.database.command("ping")
    for _ in range(50):
        if coll.count_documents({}) == 1:
            break
    assert coll.count_documents({}) == 1


@pytest.mark.parametrize("wc", [{"w": 1}, {"w": "majority"}, {"w": 1, "j": True}, {"j": True}, {"w": 1, "wtimeout": 1000}], ids=str)
def test_write_concerns_are_accepted(db, wc):
    assert db.command("insert", "c", documents=[{}], writeConcern=wc)["n"] == 1


def test_a_second_member_is_not_there_to_write_to(db):
    with pytest.raises(OperationFailure) as e:
        db.command("insert", "c", documents=[{}], writeConcern={"w": 2})
    assert e.value.code == 2
    assert e.value.details["errmsg"] == "cannot use 'w' > 1 when a host is not replicated"


def test_nesting_is_limited_to_100_levels(coll):
    def nested(levels):
        doc = {"x": 1}
        for _ in range(levels):
            doc = {"a": doc}
        return doc

    coll.insert_one(nested(90))
    with pytest.raises(OperationFailure):
        coll.insert_one(nested(120))
    assert coll.count_documents({}) == 1


def test_field_names_may_hold_dots_and_dollars(coll):
    coll.insert_one({"_id": 1, "a.b": 1, "x": {"$y": 1}})
    assert coll.find_one() == {"_id": 1, "a.b": 1, "x": {"$y": 1}}


def test_insertion_order_is_natural_order(coll):
    ids = [5, 3, 9, 1, 7]
    for i in ids:
        coll.insert_one({"_id": i})
    assert [d["_id"] for d in coll.find()] == ids
    assert [d["_id"] for d in coll.find().sort("$natural", -1)] == ids[::-1]


def test_a_document_comes_back_byte_for_byte(coll):
    from bson.raw_bson import RawBSONDocument
    from bson import encode, CodecOptions

    raw = RawBSONDocument(encode(SON([("_id", 1), ("z", 1.0), ("a", [1, {"b": None}]), ("é", "ü\0x"), ("", "")])))
    coll.insert_one(raw)
    got = coll.with_options(codec_options=CodecOptions(document_class=RawBSONDocument)).find_one()
    assert got.raw == raw.raw
