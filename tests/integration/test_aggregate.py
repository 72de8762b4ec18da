"""The stages that there are, and the refusal of those that there are not."""

import pytest
from bson import SON, Decimal128, Int64
from pymongo.errors import OperationFailure


@pytest.fixture
def filled(coll):
    coll.insert_many([{"_id": i, "k": i % 4, "n": i} for i in range(200)])
    return coll


def test_match_skip_limit(filled):
    got = list(filled.aggregate([{"$match": {"k": 1}}, {"$skip": 5}, {"$limit": 3}]))
    assert [d["_id"] for d in got] == [21, 25, 29]
    assert list(filled.aggregate([{"$match": {"k": 9}}])) == []
    assert len(list(filled.aggregate([]))) == 200


def test_order_of_stages_matters(filled):
    assert len(list(filled.aggregate([{"$limit": 10}, {"$skip": 4}]))) == 6
    assert len(list(filled.aggregate([{"$limit": 10}, {"$match": {"k": 0}}]))) == 3


def test_counting_by_group(filled):
    got = list(filled.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}}}]))
    assert got == [{"_id": None, "n": 200}] and type(got[0]["n"]) is int
    assert list(filled.aggregate([{"$match": {"k": 9}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}])) == []
    # what drivers send for count_documents
    assert filled.count_documents({}) == 200
    assert filled.count_documents({"k": 2}) == 50
    assert filled.count_documents({"k": 2}, skip=45) == 5
    assert filled.count_documents({"k": 2}, limit=7) == 7
    assert filled.count_documents({"k": 77}) == 0


def test_the_reply_is_a_cursor(filled):
    db = filled.database
    reply = db.command("aggregate", "c", pipeline=[], cursor={})
    assert len(reply["cursor"]["firstBatch"]) == 101
    assert reply["cursor"]["ns"] == f"{db.name}.c" and isinstance(reply["cursor"]["id"], Int64)
    more = db.command(SON([("getMore", reply["cursor"]["id"]), ("collection", "c")]))
    assert len(more["cursor"]["nextBatch"]) == 99 and more["cursor"]["id"] == 0
    assert db.command("aggregate", "c", pipeline=[], cursor={"batchSize": 0})["cursor"]["firstBatch"] == []
    reply = db.command("aggregate", "nothing", pipeline=[{"$match": {"a": 1}}], cursor={})
    assert reply["cursor"] == {"firstBatch": [], "id": 0, "ns": f"{db.name}.nothing"}


@pytest.mark.parametrize("stage", ["$foo", "$Match", "$matches", "$"])
def test_an_unknown_stage_is_refused_by_name(filled, stage):
    for c in (filled, filled.database.nothing):
        with pytest.raises(OperationFailure) as e:
            list(c.aggregate([{stage: {}}]))
        assert e.value.code == 40324
        assert e.value.details["errmsg"] == f"Unrecognized pipeline stage name: '{stage}'"


@pytest.mark.parametrize(
    "pipeline, code",
    [
        ([{}], 40323),
        ([{"$match": {}, "$limit": 1}], 40323),
        ([{"$limit": 0}], 15958),
        ([{"$limit": -1}], None),
        ([{"$limit": "x"}], None),
        ([{"$skip": -1}], None),
        ([{"$skip": "x"}], None),
        ([{"$match": 1}], 15959),
        ([{"$match": {"a": {"$foo": 1}}}], 2),
        ([{"$group": {}}], 15955),
        ([{"$group": 1}], 15947),
        ([{"$group": {"_id": None, "n": {"$foo": 1}}}], 15952),
        ([{"$group": {"_id": None, "n": 1}}], 40234),
        ([1], 14),
    ],
    ids=str,
)
def test_a_malformed_pipeline_is_refused(filled, pipeline, code):
    with pytest.raises(OperationFailure) as e:
        filled.database.command("aggregate", "c", pipeline=pipeline, cursor={})
    assert code is None or e.value.code == code


def test_arguments_of_the_command(filled):
    db = filled.database
    with pytest.raises(OperationFailure) as e:
        db.command("aggregate", "c", pipeline=[])
    assert e.value.code == 9
    assert e.value.details["errmsg"] == "The 'cursor' option is required, except for aggregate with the explain argument"
    with pytest.raises(OperationFailure) as e:
        db.command("aggregate", "c", cursor={})
    assert e.value.code == 40414
    with pytest.raises(OperationFailure) as e:
        db.command("aggregate", "c", pipeline=[], cursor={}, bogus=1)
    assert e.value.code == 40415
    with pytest.raises(OperationFailure) as e:
        db.command("aggregate", "c", pipeline={}, cursor={})
    assert e.value.code == 14


def test_coll_stats_gives_one_document(db):
    db.c.insert_many([{"_id": i, "pad": "x" * 100} for i in range(50)])
    db.c.create_index("pad")
    doc = list(db.c.aggregate([{"$collStats": {"storageStats": {"scale": 1}, "count": {}}}]))
    assert len(doc) == 1 and doc[0]["ns"] == f"{db.name}.c" and doc[0]["count"] == 50 and doc[0]["localTime"] and doc[0]["host"]
    stats = doc[0]["storageStats"]
    assert stats["count"] == 50 and stats["size"] > 50 * 100 and stats["nindexes"] == 2
    assert stats == {k: v for k, v in db.command("collStats", "c").items() if k not in ("ns", "ok")}
    assert list(db.c.aggregate([{"$collStats": {"count": {}}}, {"$project": {"count": 1}}])) == [{"count": 50}]
    assert list(db.nothing.aggregate([{"$collStats": {"storageStats": {}}}]))[0]["storageStats"]["count"] == 0
    for coll, pipeline, code in (
        ("nothing", [{"$collStats": {"count": {}}}], 26),
        ("c", [{"$match": {}}, {"$collStats": {}}], 40602),
        ("c", [{"$collStats": 1}], 5447000),
        ("c", [{"$collStats": {"foo": {}}}], 40415),
        ("c", [{"$collStats": {"latencyStats": {}}}], 238),
    ):
        with pytest.raises(OperationFailure) as e:
            db[coll].aggregate(pipeline)
        assert e.value.code == code, pipeline
