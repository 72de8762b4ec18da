"""find and its cursors: sort, skip, limit, batches, getMore, killCursors, count, distinct."""

import pytest
from bson import SON, Int64
from pymongo.errors import OperationFailure


@pytest.fixture
def filled(coll):
    coll.insert_many([{"_id": i, "a": (i * 7) % 500, "b": i % 5} for i in range(500)])
    return coll


def test_sort_skip_limit(filled):
    assert [d["a"] for d in filled.find().sort("a", 1)] == list(range(500))
    assert [d["a"] for d in filled.find().sort("a", -1).skip(10).limit(5)] == [489, 488, 487, 486, 485]
    got = [(d["b"], d["a"]) for d in filled.find().sort([("b", -1), ("a", 1)])]
    assert got == sorted(got, key=lambda x: (-x[0], x[1]))
    assert list(filled.find().skip(600)) == []
    assert len(list(filled.find({"b": 2}).limit(7))) == 7
    assert len(list(filled.find().limit(0))) == 500


def test_sort_orders_types_and_arrays(coll):
    values = [3, "x", None, {"a": 1}, [9], [], True, 1.5, [1, 10]]
    coll.insert_many([{"_id": i, "v": v} for i, v in enumerate(values)] + [{"_id": 99}])
    up = [d["_id"] for d in coll.find().sort([("v", 1), ("_id", 1)])]
    # [] before null and missing; then numbers, an array by its smallest element; strings, objects, booleans
    assert up == [5, 2, 99, 8, 7, 0, 4, 1, 3, 6]
    down = [d["_id"] for d in coll.find().sort([("v", -1), ("_id", 1)])]
    # an array by its largest element
    assert down == [6, 3, 1, 8, 4, 0, 7, 2, 99, 5]


def test_the_first_batch_holds_101_documents(filled):
    reply = filled.database.command("find", "c")
    assert len(reply["cursor"]["firstBatch"]) == 101
    assert isinstance(reply["cursor"]["id"], Int64) and reply["cursor"]["id"] != 0
    assert reply["cursor"]["ns"] == f"{filled.database.name}.c"
    more = filled.database.command(SON([("getMore", reply["cursor"]["id"]), ("collection", "c")]))
    assert len(more["cursor"]["nextBatch"]) == 399
    assert more["cursor"]["id"] == 0 and more["cursor"]["ns"] == f"{filled.database.name}.c"


def test_batch_sizes_are_kept(filled):
    db = filled.database
    reply = db.command("find", "c", batchSize=10, sort={"_id": 1})
    seen = [d["_id"] for d in reply["cursor"]["firstBatch"]]
    cursor = reply["cursor"]["id"]
    assert len(seen) == 10
    while cursor:
        reply = db.command(SON([("getMore", cursor), ("collection", "c"), ("batchSize", 70)]))
        assert len(reply["cursor"]["nextBatch"]) <= 70
        seen += [d["_id"] for d in reply["cursor"]["nextBatch"]]
        cursor = reply["cursor"]["id"]
    assert seen == list(range(500))


def test_batch_size_0_opens_a_cursor(filled):
    reply = filled.database.command("find", "c", batchSize=0)
    assert reply["cursor"]["firstBatch"] == [] and reply["cursor"]["id"] != 0


def test_single_batch_closes_the_cursor(filled):
    reply = filled.database.command("find", "c", batchSize=10, singleBatch=True)
    assert len(reply["cursor"]["firstBatch"]) == 10 and reply["cursor"]["id"] == 0


def test_a_limit_closes_the_cursor(filled):
    assert filled.database.command("find", "c", limit=10)["cursor"]["id"] == 0
    assert filled.database.command("find", "c", limit=101, batchSize=101)["cursor"]["id"] == 0
    assert len(list(filled.find().limit(150).batch_size(20))) == 150


def test_large_documents_are_split_into_batches(coll):
    coll.insert_many([{"_id": i, "x": "y" * 1_000_000} for i in range(40)])
    reply = coll.database.command("find", "c")
    assert 1 <= len(reply["cursor"]["firstBatch"]) <= 16
    assert len(list(coll.find())) == 40


def test_a_finished_or_unknown_cursor_is_not_found(filled):
    db = filled.database
    reply = db.command("find", "c", batchSize=499)
    cursor = reply["cursor"]["id"]
    db.command(SON([("getMore", cursor), ("collection", "c")]))
    for c in (cursor, Int64(123456789)):
        with pytest.raises(OperationFailure) as e:
            db.command(SON([("getMore", c), ("collection", "c")]))
        assert e.value.code == 43
        assert e.value.details["codeName"] == "CursorNotFound"
        assert e.value.details["errmsg"] == f"cursor id {c} not found"


def test_a_cursor_belongs_to_its_collection(filled):
    db = filled.database
    cursor = db.command("find", "c", batchSize=1)["cursor"]["id"]
    with pytest.raises(OperationFailure) as e:
        db.command(SON([("getMore", cursor), ("collection", "other")]))
    assert e.value.code == 13
    assert e.value.details["errmsg"] == (
        f"Requested getMore on namespace '{db.name}.other', but cursor belongs to a different namespace {db.name}.c"
    )


def test_a_cursor_may_be_read_on_another_connection(filled, connect):
    db = filled.database.name
    cursor = connect().command(db, {"find": "c", "batchSize": 1})["cursor"]["id"]
    reply = connect().command(db, SON([("getMore", cursor), ("collection", "c")]))
    assert len(reply["cursor"]["nextBatch"]) == 499


def test_kill_cursors(filled):
    db = filled.database
    cursor = db.command("find", "c", batchSize=1)["cursor"]["id"]
    reply = db.command("killCursors", "c", cursors=[cursor, Int64(99)])
    assert reply == {"cursorsKilled": [cursor], "cursorsNotFound": [99], "cursorsAlive": [], "cursorsUnknown": [], "ok": 1.0}
    with pytest.raises(OperationFailure) as e:
        db.command(SON([("getMore", cursor), ("collection", "c")]))
    assert e.value.code == 43


def test_a_dropped_collection_ends_its_cursors(filled):
    cursor = filled.database.command("find", "c", batchSize=1)["cursor"]["id"]
    filled.drop()
    with pytest.raises(OperationFailure) as e:
        filled.database.command(SON([("getMore", cursor), ("collection", "c")]))
    assert e.value.code in (43, 175)


def test_a_cursor_goes_on_through_writes(filled):
    it = filled.find().sort("_id", 1).batch_size(50)
    first = [next(it)["_id"] for _ in range(50)]
    filled.delete_many({"_id": {"$gte": 100, "$lt": 200}})
    filled.update_many({}, {"$set": {"x": "grown" * 100}})
    rest = [d["_id"] for d in it]
    assert len(set(first + rest)) == len(first + rest)  # none twice
    assert set(range(200, 500)) <= set(rest)


def test_a_missing_collection_is_empty(db):
    reply = db.command("find", "nothing")
    assert reply == {"cursor": {"firstBatch": [], "id": 0, "ns": f"{db.name}.nothing"}, "ok": 1.0}
    assert isinstance(reply["cursor"]["id"], Int64)
    assert db.list_collection_names() == []


def test_count(filled):
    db = filled.database
    assert db.command("count", "c") == {"n": 500, "ok": 1.0}
    assert db.command("count", "c", query={"b": 3})["n"] == 100
    assert db.command("count", "c", query={"b": 3}, skip=95)["n"] == 5
    assert db.command("count", "c", query={"b": 3}, limit=7)["n"] == 7
    assert db.command("count", "nothing")["n"] == 0
    assert filled.estimated_document_count() == 500
    filled.delete_many({"b": 0})
    assert filled.estimated_document_count() == 400


def test_distinct(coll):
    coll.insert_many([{"a": 1}, {"a": 1.0}, {"a": "x"}, {"a": [1, 2]}, {"b": {"c": 5}}])
    assert sorted(coll.distinct("a"), key=str) == [1, 2, "x"]
    assert coll.distinct("b.c") == [5]
    assert coll.distinct("a", {"a": "x"}) == ["x"]
    assert coll.database.nothing.distinct("a") == []


def test_hints(filled):
    filled.create_index([("a", 1)])
    assert filled.find({"a": {"$lt": 5}}).hint("a_1").to_list() and len(list(filled.find({"a": {"$lt": 5}}).hint([("a", 1)]))) == 5
    assert len(list(filled.find().hint([("$natural", 1)]))) == 500
    with pytest.raises(OperationFailure) as e:
        list(filled.find().hint("nothing"))
    assert e.value.code == 2
    assert "hint provided does not correspond to an existing index" in str(e.value)


@pytest.mark.parametrize(
    "args, code",
    [
        ({"limit": -1}, 51024),
        ({"skip": -1}, 51024),
        ({"batchSize": -1}, 51024),
        ({"bogus": 1}, 40415),
        ({"filter": "x"}, 14),
        ({"limit": "x"}, 14),
        ({"sort": {"a": 2}}, 15975),
        ({"sort": {"a": "x"}}, 15974),
        ({"sort": {"": 1}}, None),
        ({"projection": 1}, 14),
        ({"tailable": True}, 2),
        ({"maxTimeMS": -1}, None),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_refused(filled, args, code):
    with pytest.raises(OperationFailure) as e:
        filled.database.command("find", "c", **args)
    assert code is None or e.value.code == code


def test_a_time_limit_that_is_enough_is_no_hindrance(filled):
    assert len(list(filled.find().max_time_ms(60000))) == 500


def test_a_blocking_sort_of_many_documents(coll):
    coll.insert_many([{"_id": i, "k": (i * 7919) % 20000, "pad": "x" * 200} for i in range(20000)])
    got = [d["k"] for d in coll.find({}, {"k": 1}).sort("k", 1)]
    assert got == list(range(20000))


def test_comments_and_lets_are_accepted(filled):
    assert filled.find_one({"_id": 1}, comment="why") is not None
    assert filled.database.command("find", "c", filter={"_id": 1}, comment={"x": 1}, readConcern={"level": "majority"})["ok"] == 1.0
