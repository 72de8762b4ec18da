"""explain: the plan as clients read it, and that nothing is done."""

import pytest
from bson import SON
from pymongo.errors import OperationFailure


@pytest.fixture
def filled(db):
    db.c.insert_many([{"_id": i, "a": i % 10, "b": i, "t": [i, i + 1]} for i in range(100)])
    db.c.create_index([("a", 1), ("b", -1)])
    db.c.create_index("t")
    return db


def explain(db, command, verbosity="executionStats"):
    return db.command(SON([("explain", SON(command)), ("verbosity", verbosity)]))


def stages(plan):
    return [plan["stage"]] + (stages(plan["inputStage"]) if "inputStage" in plan else [])


def winning(reply):
    return reply["queryPlanner"]["winningPlan"]


def test_the_reply_has_what_clients_read(filled):
    r = explain(filled, {"find": "c", "filter": {"a": 3, "b": {"$gt": 20, "$lte": 60}}}, "allPlansExecution")
    assert r["explainVersion"] == "1" and r["ok"] == 1.0
    q = r["queryPlanner"]
    assert q["namespace"] == f"{filled.name}.c" and q["rejectedPlans"] == []
    assert q["parsedQuery"] == {"$and": [{"a": {"$eq": 3}}, {"b": {"$gt": 20}}, {"b": {"$lte": 60}}]}
    assert stages(winning(r)) == ["FETCH", "IXSCAN"]
    scan = winning(r)["inputStage"]
    assert scan["keyPattern"] == {"a": 1, "b": -1} and scan["indexName"] == "a_1_b_-1"
    assert scan["isMultiKey"] is False and scan["multiKeyPaths"] == {"a": [], "b": []}
    assert scan["isUnique"] is False and scan["isSparse"] is False and scan["direction"] == "forward"
    assert scan["indexBounds"] == {"a": ["[3, 3]"], "b": ["[60, 20)"]}
    s = r["executionStats"]
    assert s["executionSuccess"] is True and s["nReturned"] == 4
    assert s["totalKeysExamined"] == 4 and s["totalDocsExamined"] == 4 and s["executionTimeMillis"] >= 0
    assert stages(s["executionStages"]) == ["FETCH", "IXSCAN"] and s["executionStages"]["nReturned"] == 4
    assert s["allPlansExecution"] == []
    assert r["command"] == {"find": "c", "filter": {"a": 3, "b": {"$gt": 20, "$lte": 60}}}
    assert {"host", "port", "version", "gitVersion"} <= set(r["serverInfo"])


@pytest.mark.parametrize(
    "command, expected",
    [
        ({"find": "c"}, ["COLLSCAN"]),
        ({"find": "nothing", "filter": {"a": 1}}, ["EOF"]),
        ({"find": "c", "filter": {"_id": 3}}, ["IDHACK"]),
        ({"find": "c", "filter": {"t": 3}}, ["FETCH", "IXSCAN"]),
        ({"find": "c", "sort": {"z": 1}, "limit": 3}, ["SORT", "COLLSCAN"]),
        ({"find": "c", "sort": {"a": 1}, "skip": 2, "limit": 3}, ["LIMIT", "SKIP", "FETCH", "IXSCAN"]),
        ({"find": "c", "projection": {"a": 1}}, ["PROJECTION_SIMPLE", "COLLSCAN"]),
        ({"find": "c", "projection": {"a.b": 1}}, ["PROJECTION_DEFAULT", "COLLSCAN"]),
        ({"count": "c"}, ["RECORD_STORE_FAST_COUNT"]),
        ({"count": "c", "query": {"a": 3}}, ["COUNT", "FETCH", "IXSCAN"]),
        ({"distinct": "c", "key": "b", "query": {"a": 3}}, ["FETCH", "IXSCAN"]),
        ({"aggregate": "c", "pipeline": [{"$match": {"a": 3}}, {"$limit": 2}], "cursor": {}}, ["LIMIT", "FETCH", "IXSCAN"]),
        ({"update": "c", "updates": [{"q": {"_id": 3}, "u": {"$set": {"x": 1}}}]}, ["UPDATE", "IDHACK"]),
        ({"delete": "c", "deletes": [{"q": {"a": 3}, "limit": 0}]}, ["DELETE", "FETCH", "IXSCAN"]),
        ({"findAndModify": "c", "query": {"a": 3}, "update": {"$set": {"x": 1}}}, ["UPDATE", "FETCH", "IXSCAN"]),
        ({"findAndModify": "c", "query": {"z": 3}, "remove": True}, ["DELETE", "COLLSCAN"]),
    ],
)
@pytest.mark.parametrize("verbosity", ["queryPlanner", "executionStats", "allPlansExecution"])
def test_stages(filled, command, expected, verbosity):
    before = list(filled.c.find())
    r = explain(filled, command, verbosity)
    assert stages(winning(r)) == expected
    assert ("executionStats" in r) == (verbosity != "queryPlanner")
    if "executionStats" in r:
        assert stages(r["executionStats"]["executionStages"]) == expected
    assert list(filled.c.find()) == before, "nothing is written"


def test_counts_and_writes_tell_what_they_would_do(filled):
    s = explain(filled, {"count": "c", "query": {"a": 3}, "skip": 2})["executionStats"]["executionStages"]
    assert s["nCounted"] == 8 and s["nSkipped"] == 2
    assert explain(filled, {"count": "c", "skip": 30})["executionStats"]["executionStages"]["nCounted"] == 70

    def update(**statement):
        return explain(filled, {"update": "c", "updates": [statement]})["executionStats"]["executionStages"]

    s = update(q={"a": 3}, u={"$set": {"b": 13}}, multi=True)
    assert (s["nMatched"], s["nWouldModify"], s["nWouldUpsert"]) == (10, 9, 0)
    s = update(q={"a": 3}, u={"$set": {"b": -1}})
    assert (s["nMatched"], s["nWouldModify"]) == (1, 1)
    s = update(q={"a": 99}, u={"$set": {"b": -1}}, upsert=True)
    assert (s["nMatched"], s["nWouldUpsert"]) == (0, 1)
    s = explain(filled, {"delete": "c", "deletes": [{"q": {"a": 3}, "limit": 0}]})["executionStats"]["executionStages"]
    assert s["nWouldDelete"] == 10


def test_pipelines_show_what_stands_above_the_plan(filled):
    pipeline = [{"$match": {"a": {"$in": [1, 2]}}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]
    r = explain(filled, {"aggregate": "c", "pipeline": pipeline, "cursor": {}})
    assert [next(iter(s)) for s in r["stages"]] == ["$cursor", "$group"]
    cursor = r["stages"][0]["$cursor"]
    assert stages(cursor["queryPlanner"]["winningPlan"]) == ["FETCH", "IXSCAN"]
    assert cursor["executionStats"]["nReturned"] == 20
    r = filled.command("aggregate", "c", pipeline=pipeline, explain=True)
    assert "executionStats" not in r["stages"][0]["$cursor"]
    r = filled.command("aggregate", "c", pipeline=pipeline[:1], explain=True)
    assert winning(r)["inputStage"]["indexBounds"]["a"] == ["[1, 1]", "[2, 2]"]


def test_bounds_and_multikey(filled):
    scan = winning(explain(filled, {"find": "c", "filter": {"t": {"$gte": 5, "$lt": 7}}}))["inputStage"]
    assert scan["isMultiKey"] is True and scan["multiKeyPaths"] == {"t": ["t"]}
    scan = winning(explain(filled, {"find": "c", "filter": {"a": {"$gt": 5}}, "sort": {"a": -1}}))["inputStage"]
    assert scan["direction"] == "backward" and scan["indexBounds"]["a"] == ["[inf, 5)"]
    plan = winning(explain(filled, {"find": "c", "filter": {"a": 5, "z": "x"}}))
    assert plan["filter"] == {"z": "x"}


def test_what_cannot_be_explained(filled):
    for command, code in (
        ({"insert": "c", "documents": [{}]}, 238),
        ({"nonsense": 1}, 59),
        ({"find": "c", "nope": 1}, 40415),
        ({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}] * 2}, 16),
        ({"update": "c", "updates": [{"q": {}, "u": {"$nope": {"a": 1}}}]}, 9),
        ({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "nope": 1}]}, 40415),
        ({"delete": "c", "deletes": [{"limit": 1}]}, 40414),
    ):
        with pytest.raises(OperationFailure) as e:
            explain(filled, command)
        assert e.value.code == code, (command, e.value.details)
    with pytest.raises(OperationFailure) as e:
        explain(filled, {"find": "c"}, "loud")
    assert e.value.code == 2
