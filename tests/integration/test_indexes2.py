"""Partial, hidden and expiring indexes."""

import datetime
import random
import time

import pymongo
import pytest
from octavo_server import SLOW
from pymongo.errors import DuplicateKeyError, OperationFailure


def fails(code, text, f, *args, **options):
    with pytest.raises(OperationFailure) as e:
        f(*args, **options)
    assert (e.value.code, text in e.value.details["errmsg"]) == (code, True), e.value.details


def index_of(db, query, **options):
    stage = db.command("explain", {"find": "c", "filter": query, **options})["queryPlanner"]["winningPlan"]
    while "inputStage" in stage:
        stage = stage["inputStage"]
    return stage.get("indexName")


def test_a_partial_index_is_listed_and_used(db):
    db.c.insert_many({"_id": i, "a": i % 10, "b": i % 7} for i in range(100))
    db.c.create_index("a", partialFilterExpression={"b": {"$gt": 3}})
    assert db.c.index_information()["a_1"]["partialFilterExpression"] == {"b": {"$gt": 3}}
    assert index_of(db, {"a": 5, "b": 4}) == "a_1"
    assert index_of(db, {"a": 5, "b": {"$gte": 4}}) == "a_1"
    assert index_of(db, {"a": 5, "b": 3}) is None
    assert index_of(db, {"a": 5}) is None
    assert index_of(db, {}, sort={"a": 1}) is None
    assert db.c.count_documents({"a": 5}) == 10
    assert db.c.count_documents({"a": 5}, hint="a_1") == sum(1 for i in range(100) if i % 10 == 5 and i % 7 > 3)
    fails(67, "Expression not supported in partial index: $not\n    a exists", db.c.create_index, "x",
          partialFilterExpression={"a": {"$exists": False}})
    fails(67, "cannot mix", db.c.create_index, "x", sparse=True, partialFilterExpression={"a": 1})
    fails(2, "unknown operator", db.c.create_index, "x", partialFilterExpression={"a": {"$what": 1}})


def test_unique_where_the_filter_matches(db):
    db.c.create_index("a", unique=True, partialFilterExpression={"live": True})
    db.c.insert_many([{"_id": 1, "a": 1, "live": True}, {"_id": 2, "a": 1}, {"_id": 3, "a": 1, "live": False}])
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"a": 1, "live": True})
    with pytest.raises(DuplicateKeyError):
        db.c.update_one({"_id": 2}, {"$set": {"live": True}})  # would move into the index
    db.c.update_one({"_id": 1}, {"$set": {"live": False}})  # moves out of it
    db.c.update_one({"_id": 2}, {"$set": {"live": True}})
    assert [d["_id"] for d in db.c.find({"a": 1, "live": True})] == [2]
    db.c.delete_one({"_id": 2})
    db.c.insert_one({"_id": 4, "a": 1, "live": True})
    assert index_of(db, {"a": 1, "live": True}) == "a_1"
    assert [d["_id"] for d in db.c.find({"a": 1, "live": True})] == [4]


def test_same_key_other_filter(db):
    db.c.create_index("a", name="x", partialFilterExpression={"b": 1})
    db.c.create_index("a", name="y", partialFilterExpression={"b": 2})
    db.c.create_index("a", name="z")
    assert len(db.c.index_information()) == 4
    fails(86, "An existing index has the same name", db.c.create_index, "a", name="x", partialFilterExpression={"b": 3})
    fails(85, "Index already exists with a different name: x", db.c.create_index, "a", name="w",
          partialFilterExpression={"b": 1})
    fails(86, "An existing index has the same name", db.c.create_index, "a", name="z", partialFilterExpression={"b": 3})
    fails(85, "An equivalent index already exists with the same name but different options", db.c.create_index, "a",
          name="z", expireAfterSeconds=5)


FILTERS = [
    {"b": {"$gt": 3}},
    {"b": {"$in": [1, 2]}},
    {"b": {"$exists": True}},
    {"$or": [{"b": 1}, {"b": {"$gte": 5}}]},
    {"b": {"$type": "string"}},
    {"a": {"$gt": 2}},
]


@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_a_partial_index_never_changes_an_answer(db, filter):
    r = random.Random(2)

    def value():
        return r.choice([r.randrange(8), r.randrange(8), None, "s", [r.randrange(8), r.randrange(8)], []])

    def change():
        return r.choice([{"$set": {"b": value()}}, {"$unset": {"b": 1}}, {"$set": {"a": value()}}, {"$unset": {"a": 1}},
                         {"$push": {"c": 1}}, {"$rename": {"b": "a"}}])

    docs = [{"_id": i, "a": value(), "b": value()} for i in range(200)]
    db.plain.insert_many(docs)
    db.indexed.insert_many(docs[:100])
    db.indexed.create_index("a", partialFilterExpression=filter)
    db.indexed.create_index([("b", 1), ("_id", -1)], partialFilterExpression=filter)
    db.indexed.insert_many(docs[100:])
    for _ in range(150):
        i, how = r.randrange(200), change()
        for name in ("plain", "indexed"):
            db[name].update_one({"_id": i}, how)
    conditions = [1, 4, None, "s", {"$gt": 3}, {"$gt": 5}, {"$gte": 4}, {"$lt": 3}, {"$in": [1, 2]}, {"$in": [1, None]},
                  {"$exists": True}, {"$exists": False}, {"$ne": 4}, {"$type": "string"}, {"$elemMatch": {"$gt": 4}},
                  {"$gt": 2, "$lt": 2}, {"$lte": None}]
    for a in conditions:
        for q in [{"a": a}, {"b": a}, {"$or": [{"b": a}, {"b": 6}]}] + [{"a": a, "b": b} for b in conditions]:
            want = sorted(d["_id"] for d in db.plain.find(q))
            assert sorted(d["_id"] for d in db.indexed.find(q)) == want, q
            assert sorted(d["_id"] for d in db.indexed.find(q).sort("a")) == want, q


def test_a_partial_index_after_a_restart(own_server):
    server = own_server()
    with pymongo.MongoClient(server.uri, w=1, journal=True) as client:
        client.x.c.create_index("a", unique=True, partialFilterExpression={"b": {"$gt": 3}})
        client.x.c.insert_many([{"a": 1, "b": 4}, {"a": 1, "b": 3}])
    server.crash_and_restart()
    with pymongo.MongoClient(server.uri) as client:
        with pytest.raises(DuplicateKeyError):
            client.x.c.insert_one({"a": 1, "b": 5})
        client.x.c.insert_one({"a": 1, "b": 1})


def test_a_hidden_index_is_kept_and_not_used(db):
    db.c.create_index("a", hidden=True, unique=True)
    assert db.c.index_information()["a_1"]["hidden"] is True
    db.c.insert_one({"a": 1})
    assert index_of(db, {"a": 1}) is None
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"a": 1})
    with pytest.raises(OperationFailure) as e:
        list(db.c.find({"a": 1}, hint="a_1"))
    assert e.value.code == 2 and "hint provided does not correspond to an existing index" in e.value.details["errmsg"]
    reply = db.command("createIndexes", "c", indexes=[{"key": {"a": 1}, "name": "a_1", "unique": True}])
    assert reply["note"] == "all indexes already exist"
    fails(2, "can't hide _id index", db.command, "createIndexes", "c",
          indexes=[{"key": {"_id": 1}, "name": "_id_", "hidden": True}])


def test_options_of_expiry(db):
    db.c.create_index("at", expireAfterSeconds=3600)
    assert db.c.index_information()["at_1"]["expireAfterSeconds"] == 3600
    fails(67, "TTL indexes are single-field indexes", db.c.create_index, [("a", 1), ("b", 1)], expireAfterSeconds=1)
    fails(67, "cannot be less than 0", db.c.create_index, "a", expireAfterSeconds=-1)
    fails(67, "within an acceptable range", db.c.create_index, "a", expireAfterSeconds=2**31)
    fails(67, "The field '_id' cannot be used for a TTL index", db.c.create_index, [("_id", -1)], expireAfterSeconds=1)
    fails(85, "different options", db.c.create_index, "at", expireAfterSeconds=5)


def wait_for(what, seconds=15):
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        if what():
            return
        time.sleep(0.05)
    assert what()


def metrics(client):
    return client.admin.command("serverStatus")["metrics"]["ttl"]


@pytest.fixture
def expiring(own_server):
    server = own_server("--setParameter", "ttlMonitorSleepSecs=1")
    with pymongo.MongoClient(server.uri) as client:
        yield client


def test_documents_expire(expiring):
    db, now = expiring.x, datetime.datetime.now(datetime.timezone.utc)
    old, young = now - datetime.timedelta(hours=2), now + datetime.timedelta(hours=2)
    db.c.create_index("at", expireAfterSeconds=3600)
    db.p.create_index("at", expireAfterSeconds=0, partialFilterExpression={"done": True})
    db.h.create_index([("at.x", -1)], expireAfterSeconds=0, hidden=True)
    docs = [old, young, [young, old], [young], [], None, "x", 5, {"at": old}, [[old]], now]
    db.c.insert_many({"_id": i, "at": v} for i, v in enumerate(docs))
    db.c.insert_one({"_id": 99})
    db.c.insert_many({"at": old} for _ in range(3000))
    db.p.insert_many([{"_id": 1, "at": old, "done": True}, {"_id": 2, "at": old}, {"_id": 3, "at": young, "done": True}])
    db.h.insert_many([{"_id": 1, "at": {"x": old}}, {"_id": 2, "at": old}, {"_id": 3, "at": [{"x": young}, {"x": old}]}])
    wait_for(lambda: metrics(expiring)["deletedDocuments"] == 3000 + 2 + 1 + 2)
    assert [d["_id"] for d in db.c.find().sort("_id")] == [1, 3, 4, 5, 6, 7, 8, 9, 10, 99]
    assert [d["_id"] for d in db.p.find().sort("_id")] == [2, 3]
    assert [d["_id"] for d in db.h.find()] == [2]
    passes = metrics(expiring)["passes"]
    assert passes > 0
    db.c.update_one({"_id": 1}, {"$set": {"at": old}})
    wait_for(lambda: db.c.find_one({"_id": 1}) is None)
    assert metrics(expiring)["passes"] > passes
    assert db.command("validate", "c")["valid"]


def test_the_monitor_can_be_stopped(expiring):
    admin, c = expiring.admin, expiring.x.c
    assert admin.command("getParameter", 1, ttlMonitorSleepSecs=1)["ttlMonitorSleepSecs"] == 1
    assert admin.command("setParameter", 1, ttlMonitorEnabled=False)["was"] is True
    c.create_index("at", expireAfterSeconds=0)
    c.insert_one({"at": datetime.datetime(2000, 1, 1)})
    time.sleep(2.5)
    assert c.count_documents({}) == 1
    fails(2, "ttlMonitorSleepSecs", admin.command, "setParameter", 1, ttlMonitorSleepSecs=0)
    admin.command("setParameter", 1, ttlMonitorEnabled=True)
    wait_for(lambda: c.count_documents({}) == 0)


def test_expiry_makes_way(expiring):
    db = expiring.x
    db.c.create_index("at", expireAfterSeconds=0)
    db.c.insert_many({"at": datetime.datetime(2000, 1, 1), "i": i} for i in range(20000))
    for i in range(5):  # beside the removal, whenever that is
        db.c.create_index(f"f{i}")
        time.sleep(0.3)
    wait_for(lambda: db.c.count_documents({}) == 0)
    db.c.drop()
    assert expiring.admin.command("ping")["ok"] == 1


@pytest.mark.parametrize("options", [{}, {"sort": [("a", 1)]}], ids=str)
def test_an_open_cursor_meets_the_first_arrays(db, options):
    db.c.create_index("a")
    db.c.insert_many({"_id": i, "a": i} for i in range(500))
    cursor = db.c.find({"a": {"$gte": 0}}, batch_size=10, hint="a_1", **options)
    got = [next(cursor)["_id"] for _ in range(10)]
    db.c.insert_many({"_id": 1000 + i, "a": [300 + i, 400 + i]} for i in range(50))
    got += [d["_id"] for d in cursor]
    assert len(got) == len(set(got))
    assert set(range(500)) <= set(got)
