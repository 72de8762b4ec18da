"""Indexes: made, listed, used for what they promise, dropped."""

import random

import pytest
from bson import SON, ObjectId
from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure


def test_the_reply_of_create_indexes(db):
    spec = {"key": {"a": 1}, "name": "a_1"}
    reply = db.command("createIndexes", "c", indexes=[spec])
    assert reply == {"numIndexesBefore": 1, "numIndexesAfter": 2, "createdCollectionAutomatically": True, "ok": 1.0}
    reply = db.command("createIndexes", "c", indexes=[spec])
    assert reply["note"] == "all indexes already exist"
    assert (reply["numIndexesBefore"], reply["numIndexesAfter"]) == (2, 2)
    reply = db.command("createIndexes", "c", indexes=[{"key": {"b": 1}, "name": "b_1"}, {"key": {"c": 1}, "name": "c_1"}])
    assert reply == {"numIndexesBefore": 2, "numIndexesAfter": 4, "createdCollectionAutomatically": False, "ok": 1.0}


def test_list_indexes(db):
    db.c.create_index([("a", 1), ("b", -1)])
    db.c.create_index("u", unique=True)
    reply = db.command("listIndexes", "c")
    assert reply["cursor"]["id"] == 0 and reply["cursor"]["ns"].startswith(db.name)
    assert reply["cursor"]["firstBatch"] == [
        {"v": 2, "key": {"_id": 1}, "name": "_id_"},
        {"v": 2, "key": {"a": 1, "b": -1}, "name": "a_1_b_-1"},
        {"v": 2, "key": {"u": 1}, "name": "u_1", "unique": True},
    ]
    with pytest.raises(OperationFailure) as e:
        db.command("listIndexes", "nothing")
    assert e.value.code == 26
    assert e.value.details["errmsg"] == f"ns does not exist: {db.name}.nothing"


def test_drop_indexes(db):
    for k in "abcd":
        db.c.create_index(k)
    assert db.command("dropIndexes", "c", index="a_1") == {"nIndexesWas": 5, "ok": 1.0}
    assert db.command("dropIndexes", "c", index={"b": 1})["nIndexesWas"] == 4
    assert db.command("dropIndexes", "c", index=["c_1"])["nIndexesWas"] == 3
    assert db.command("dropIndexes", "c", index="*") == {
        "nIndexesWas": 2,
        "msg": "non-_id indexes dropped for collection",
        "ok": 1.0,
    }
    assert list(db.c.index_information()) == ["_id_"]
    for index, code, text in (
        ("nope", 27, "index not found with name [nope]"),
        ("_id_", 72, "cannot drop _id index"),
        ({"zz": 1}, 27, "can't find index with key: {zz: 1}"),
    ):
        with pytest.raises(OperationFailure) as e:
            db.command("dropIndexes", "c", index=index)
        assert e.value.code == code
        assert e.value.details["errmsg"].replace("{ ", "{").replace(" }", "}") == text
    with pytest.raises(OperationFailure) as e:
        db.command("dropIndexes", "nothing", index="*")
    assert e.value.code == 26


QUERIES = [
    {"a": 5},
    {"a": {"$gt": 5}},
    {"a": {"$gte": 5, "$lt": 12}},
    {"a": {"$in": [1, 3, 5, "x", None]}},
    {"a": None},
    {"a": {"$ne": 3}},
    {"a": {"$nin": [1, 2]}},
    {"a": {"$exists": True}},
    {"a": {"$exists": False}},
    {"a": {"$gt": "a"}},
    {"a": {"$not": {"$gt": 4}}},
    {"a": [1, 2]},
    {"a": []},
    {"a": {"$lte": None}},
    {"a": {"$elemMatch": {"$gt": 2, "$lt": 5}}},
    {"a": {"$gt": 2, "$lt": 5}},
    {"a": {"$all": [1, 2]}},
    {"a": {"$size": 2}},
    {"a": {"$type": "number"}},
    {"a": 5, "b": 3},
    {"a": {"$gt": 5}, "b": {"$lt": 4}},
    {"a": {"$in": [1, 2, 3]}, "b": {"$in": [1, 4]}},
    {"b": 2},
    {"$or": [{"a": 3}, {"b": 5}]},
    {"$and": [{"a": {"$gt": 1}}, {"a": {"$lt": 4}}]},
    {"$nor": [{"a": 3}, {"b": 5}]},
    {"a.x": 1},
    {"a": {"x": 1}},
    {"a": {"$regex": "^s"}},
    {"_id": {"$in": [1, 7, 300]}},
    {"_id": {"$gt": 100}, "a": {"$lt": 3}},
]


def some_value(r):
    return r.choice(
        [r.randrange(15), r.randrange(15), r.random() * 15, None, "s%d" % r.randrange(5), [], [1, 2], True]
        + [[r.randrange(8) for _ in range(3)], {"x": 1}, {"x": r.randrange(3)}, [{"x": 1}, {"x": 2}], [None, 3], ObjectId()]
    )


@pytest.mark.parametrize(
    "indexes",
    [
        [[("a", 1)]],
        [[("a", -1)]],
        [[("a", 1), ("b", 1)]],
        [[("a", 1), ("b", -1)]],
        [[("b", 1)], [("a", 1)]],
        [[("a.x", 1)]],
    ],
    ids=str,
)
def test_an_index_never_changes_an_answer(db, indexes):
    r = random.Random(1)
    docs = []
    for i in range(400):
        d = {"_id": i}
        if r.random() < 0.9:
            d["a"] = some_value(r)
        if r.random() < 0.8:
            d["b"] = r.randrange(7)
        docs.append(d)
    db.plain.insert_many(docs)
    db.indexed.insert_many(docs[:200])
    for i in indexes:
        db.indexed.create_index(i)
    db.indexed.insert_many(docs[200:])
    for name in ("plain", "indexed"):  # the index follows
        db[name].update_many({"_id": {"$lt": 50}}, {"$set": {"a": 3}})
        db[name].update_many({"_id": {"$gte": 50, "$lt": 90}}, {"$unset": {"a": 1}})
        db[name].delete_many({"_id": {"$gte": 90, "$lt": 130}})
    for q in QUERIES:
        want = sorted(d["_id"] for d in db.plain.find(q))
        got = [d["_id"] for d in db.indexed.find(q)]
        assert sorted(got) == want, q
        for keys in ([("a", 1), ("_id", 1)], [("a", -1), ("_id", 1)], [("b", 1), ("a", -1), ("_id", 1)]):
            assert [d["_id"] for d in db.indexed.find(q).sort(keys)] == [d["_id"] for d in db.plain.find(q).sort(keys)], (q, keys)
        assert db.indexed.count_documents(q) == len(want)


def test_a_unique_index_says_which_key(db):
    db.c.create_index("email", unique=True)
    db.c.insert_one({"_id": 1, "email": "a@b.c"})
    with pytest.raises(DuplicateKeyError) as e:
        db.c.insert_one({"_id": 2, "email": "a@b.c"})
    assert e.value.code == 11000
    error = e.value.details
    assert error["errmsg"] == f'E11000 duplicate key error collection: {db.name}.c index: email_1 dup key: {{ email: "a@b.c" }}'
    assert error["keyPattern"] == {"email": 1} and error["keyValue"] == {"email": "a@b.c"}
    assert db.c.count_documents({}) == 1


def test_the_id_is_unique(db):
    db.c.insert_one({"_id": ObjectId("507f1f77bcf86cd799439011")})
    with pytest.raises(DuplicateKeyError) as e:
        db.c.insert_one({"_id": ObjectId("507f1f77bcf86cd799439011")})
    assert e.value.details["errmsg"] == (
        f"E11000 duplicate key error collection: {db.name}.c index: _id_ dup key: "
        "{ _id: ObjectId('507f1f77bcf86cd799439011') }"
    )
    assert e.value.details["keyPattern"] == {"_id": 1}


@pytest.mark.parametrize(
    "value, shown",
    [(1, "1"), (1.5, "1.5"), (None, "null"), (True, "true"), ({"x": 1}, "{ x: 1 }"), ("q\"uo", '"q"uo"')],
    ids=str,
)
def test_duplicate_values_in_shell_form(db, value, shown):
    db.c.create_index("k", unique=True)
    db.c.insert_one({"k": value})
    with pytest.raises(DuplicateKeyError) as e:
        db.c.insert_one({"k": value})
    if value != 'q"uo':  # quoting of quotes is nobody's contract
        assert e.value.details["errmsg"].endswith(f"index: k_1 dup key: {{ k: {shown} }}")


def test_compound_unique_keys(db):
    db.c.create_index([("a", 1), ("b", -1)], unique=True)
    db.c.insert_one({"a": 1, "b": 1})
    db.c.insert_one({"a": 1, "b": 2})
    with pytest.raises(DuplicateKeyError) as e:
        db.c.insert_one({"a": 1.0, "b": 2})
    assert e.value.details["errmsg"].endswith("index: a_1_b_-1 dup key: { a: 1.0, b: 2 }")
    assert e.value.details["keyPattern"] == {"a": 1, "b": -1}
    assert e.value.details["keyValue"] == {"a": 1.0, "b": 2}


def test_missing_counts_as_null_once(db):
    db.c.create_index("k", unique=True)
    db.c.insert_one({"_id": 1})
    with pytest.raises(DuplicateKeyError) as e:
        db.c.insert_one({"_id": 2})
    assert e.value.details["errmsg"].endswith("dup key: { k: null }")
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"_id": 3, "k": None})


def test_an_array_is_unique_across_documents_not_within(db):
    db.c.create_index("k", unique=True)
    db.c.insert_one({"_id": 1, "k": [1, 1, 2]})
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"_id": 2, "k": [3, 2]})
    db.c.insert_one({"_id": 2, "k": [3]})
    with pytest.raises(DuplicateKeyError):
        db.c.update_one({"_id": 2}, {"$push": {"k": 1}})
    assert db.c.find_one({"_id": 2}) == {"_id": 2, "k": [3]}


def test_an_update_into_a_duplicate_is_refused(db):
    db.c.create_index("k", unique=True)
    db.c.insert_many([{"_id": 1, "k": 1}, {"_id": 2, "k": 2}])
    with pytest.raises(DuplicateKeyError) as e:
        db.c.update_one({"_id": 2}, {"$set": {"k": 1}})
    assert "E11000 duplicate key error collection" in e.value.details["errmsg"]
    db.c.update_one({"_id": 2}, {"$set": {"k": 2, "x": 1}})  # its own key is no duplicate
    db.c.delete_one({"_id": 1})
    db.c.update_one({"_id": 2}, {"$set": {"k": 1}})
    db.c.insert_one({"_id": 3, "k": 2})


def test_an_upsert_into_a_duplicate_is_refused(db):
    db.c.create_index("k", unique=True)
    db.c.insert_one({"_id": 1, "k": 1})
    with pytest.raises(DuplicateKeyError):
        db.c.update_one({"_id": 2}, {"$set": {"k": 1}}, upsert=True)
    assert db.c.count_documents({}) == 1


def test_a_unique_index_over_duplicates_is_not_built(db):
    db.c.insert_many([{"k": 1}, {"k": 1}])
    with pytest.raises(OperationFailure) as e:
        db.c.create_index("k", unique=True)
    assert e.value.code == 11000
    assert "E11000 duplicate key error collection" in e.value.details["errmsg"]
    assert e.value.details["keyPattern"] == {"k": 1}
    assert list(db.c.index_information()) == ["_id_"]
    db.c.insert_one({"k": 1})


def test_a_batch_reports_each_duplicate(db):
    db.c.create_index("k", unique=True)
    with pytest.raises(BulkWriteError) as e:
        db.c.insert_many([{"k": 1}, {"k": 1}, {"k": 2}, {"k": 2}], ordered=False)
    errors = e.value.details["writeErrors"]
    assert [x["index"] for x in errors] == [1, 3]
    assert errors[1]["keyValue"] == {"k": 2} and errors[1]["keyPattern"] == {"k": 1}


def test_parallel_arrays_are_refused(db):
    db.c.create_index([("a", 1), ("b", 1)])
    with pytest.raises(OperationFailure) as e:
        db.c.insert_one({"a": [1], "b": [2]})
    assert e.value.code == 171
    assert db.c.count_documents({}) == 0
    db.c.insert_one({"a": [1], "b": 2})
    db.c.insert_one({"a": 1, "b": [2]})


@pytest.mark.parametrize(
    "spec, code",
    [
        ({"key": {"a": 0}, "name": "x"}, 67),
        ({"key": {"a": True}, "name": "x"}, 67),
        ({"key": {"a": "nonsense"}, "name": "x"}, 67),
        ({"key": {}, "name": "x"}, 67),
        ({"key": {"a": 1}}, 9),
        ({"name": "x"}, 9),
        ({"key": {"a": 1}, "name": "x", "bogus": 1}, 197),
        ({"key": {"a": 1}, "name": ""}, 67),
        ({"key": {"": 1}, "name": "x"}, 67),
        ({"key": {"a..b": 1}, "name": "x"}, 67),
        ({"key": 1, "name": "x"}, 14),
        ({"key": {"a": 1}, "name": "x", "unique": "yes"}, 14),
        ({"key": {f"f{i}": 1 for i in range(33)}, "name": "x"}, None),
    ],
    ids=str,
)
def test_a_bad_specification_is_refused(db, spec, code):
    db.c.insert_one({})
    with pytest.raises(OperationFailure) as e:
        db.command("createIndexes", "c", indexes=[spec])
    assert code is None or e.value.code == code
    assert list(db.c.index_information()) == ["_id_"]


def test_conflicting_specifications_are_refused(db):
    db.c.create_index("a", name="one")
    for spec, code in (
        ({"key": {"a": 1}, "name": "two"}, 85),
        ({"key": {"b": 1}, "name": "one"}, 86),
        ({"key": {"a": 1}, "name": "one", "unique": True}, 86),
    ):
        with pytest.raises(OperationFailure) as e:
            db.command("createIndexes", "c", indexes=[spec])
        assert e.value.code == code, spec
    with pytest.raises(OperationFailure) as e:
        db.command("createIndexes", "c", indexes=[])
    assert e.value.code == 2


def test_at_most_64_indexes(db):
    db.c.create_indexes([IndexModel(f"f{i}") for i in range(63)])
    with pytest.raises(OperationFailure) as e:
        db.c.create_index("one_more")
    assert e.value.code == 67
    assert len(db.c.index_information()) == 64


def test_a_long_key_is_indexed(db):
    db.c.create_index("a", unique=True)
    for c in "xy":
        db.c.insert_one({"a": c * 100000})
    assert db.c.count_documents({"a": "x" * 100000}) == 1
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"a": "x" * 100000})


def test_explain_tells_the_access_path(db):
    db.c.insert_many([{"_id": i, "a": i} for i in range(100)])
    db.c.create_index("a")

    def stages(plan):
        return [plan["stage"]] + (stages(plan["inputStage"]) if "inputStage" in plan else [])

    plan = db.command("explain", {"find": "c", "filter": {"a": 5}})
    assert "IXSCAN" in stages(plan["queryPlanner"]["winningPlan"])
    plan = db.command("explain", {"find": "c", "filter": {"b": 5}}, verbosity="queryPlanner")
    assert stages(plan["queryPlanner"]["winningPlan"]) == ["COLLSCAN"]
    plan = db.command("explain", {"find": "c", "filter": {"a": {"$lt": 7}}}, verbosity="executionStats")
    assert plan["executionStats"]["nReturned"] == 7
    assert plan["executionStats"]["totalKeysExamined"] <= 8


@pytest.mark.concurrent
def test_an_index_built_while_others_write_misses_nothing(db, client):
    import threading

    db.c.insert_many([{"_id": i, "a": i} for i in range(3000)])
    stop = threading.Event()
    failures = []

    def write(start):
        i = start
        try:
            while not stop.is_set():
                db.c.insert_one({"_id": i, "a": i})
                db.c.update_one({"_id": i - start}, {"$set": {"a": -(i - start) - 1}})
                if i % 3 == 0:
                    db.c.delete_one({"_id": i})
                i += 1
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=write, args=(10000 * (t + 1),)) for t in range(3)]
    for t in threads:
        t.start()
    try:
        db.c.create_index("a")
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not failures
    by_scan = sorted(d["a"] for d in db.c.find({}, hint={"$natural": 1}))
    by_index = [d["a"] for d in db.c.find({"a": {"$gte": -(10**9)}}, hint="a_1").sort("a", 1)]
    assert by_index == by_scan


def test_explain_that_outlasts_a_slice(db):
    db.c.insert_many([{"_id": i, "a": "x" * 40} for i in range(60000)])
    slow = {"find": "c", "filter": {"a": {"$regex": "y$"}}}
    for _ in range(3):
        plan = db.command("explain", slow, verbosity="executionStats")
        assert plan["executionStats"]["totalDocsExamined"] == 60000
        assert list(plan)[:3] == ["explainVersion", "queryPlanner", "executionStats"] and "cursor" not in plan
