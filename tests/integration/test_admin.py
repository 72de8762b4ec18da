"""Administration: renames, figures, options, checks, running operations, defaults."""

import threading
import time

import pytest
from bson import SON, Binary, Int64
from pymongo import MongoClient, WriteConcern
from pymongo.errors import OperationFailure, WriteError


def fails(db, code, *args, text=None, **kw):
    with pytest.raises(OperationFailure) as e:
        db.command(*args, **kw)
    assert e.value.code == code, e.value.details
    if text is not None:
        assert e.value.details["errmsg"] == text
    return e.value.details


def uuid_of(db, name):
    return db.command("listCollections", filter={"name": name})["cursor"]["firstBatch"][0]["info"]["uuid"]


# ---- renameCollection


def rename(client, source, to, **kw):
    return client.admin.command("renameCollection", source, to=to, **kw)


def test_rename_keeps_documents_indexes_and_uuid(client, db):
    db.a.insert_many([{"_id": i, "x": i, "t": [i, i + 1]} for i in range(300)])
    db.a.create_index("x", unique=True)
    db.a.create_index("t")
    uuid = uuid_of(db, "a")
    assert rename(client, f"{db.name}.a", f"{db.name}.b") == {"ok": 1.0}
    assert db.list_collection_names() == ["b"]
    assert uuid_of(db, "b") == uuid
    assert db.b.count_documents({}) == 300 and db.a.count_documents({}) == 0
    assert [d["_id"] for d in db.b.find({"t": 7}).sort("_id", 1)] == [6, 7]
    assert set(db.b.index_information()) == {"_id_", "x_1", "t_1"}
    db.b.insert_one({"_id": 300, "x": 300})
    with pytest.raises(OperationFailure) as e:
        db.b.insert_one({"_id": 301, "x": 300})
    assert e.value.code == 11000 and f"{db.name}.b index: x_1" in e.value.details["errmsg"]
    db.a.insert_one({"_id": 0})  # the name is free
    assert db.b.count_documents({"_id": 0}) == 1 and db.b.estimated_document_count() == 301


def test_rename_refuses(client, db):
    db.a.insert_one({"_id": 1})
    db.b.insert_one({"_id": 2})
    ns = db.name
    admin = client.admin
    fails(admin, 26, "renameCollection", f"{ns}.none", to=f"{ns}.x", text=f"Source collection {ns}.none does not exist")
    fails(admin, 48, "renameCollection", f"{ns}.a", to=f"{ns}.b", text="target namespace exists")
    fails(admin, 20, "renameCollection", f"{ns}.a", to=f"{ns}.a", text="Can't rename a collection to itself")
    fails(admin, 20, "renameCollection", f"{ns}.a", to="local.a")
    fails(admin, 73, "renameCollection", f"{ns}.a", to="nodot", text="Invalid target namespace: nodot")
    fails(admin, 73, "renameCollection", f"{ns}.a", to=f"{ns}.a$b")
    fails(admin, 73, "renameCollection", "", to=f"{ns}.a", text="Invalid source namespace: ")
    fails(admin, 14, "renameCollection", f"{ns}.a", to=5)
    fails(admin, 40414, "renameCollection", f"{ns}.a")
    fails(admin, 40415, "renameCollection", f"{ns}.a", to=f"{ns}.x", surprise=1)
    fails(db, 13, "renameCollection", f"{ns}.a", to=f"{ns}.x")
    assert db.a.find_one() == {"_id": 1} and db.b.find_one() == {"_id": 2}


def test_rename_over_a_target(client, db):
    db.a.insert_one({"_id": 1})
    db.b.insert_many([{"_id": i} for i in range(5)])
    db.b.create_index("z")
    rename(client, f"{db.name}.a", f"{db.name}.b", dropTarget=True)
    assert list(db.b.find()) == [{"_id": 1}]
    assert set(db.b.index_information()) == {"_id_"}
    assert db.list_collection_names() == ["b"]
    db.b.drop()
    assert db.name not in client.list_database_names()


def test_rename_to_another_database(client, db):
    other = client[db.name + "_other"]
    other.drop_collection("b")
    db.a.insert_one({"_id": 1})
    uuid = uuid_of(db, "a")
    rename(client, f"{db.name}.a", f"{other.name}.b")
    try:
        assert list(other.b.find()) == [{"_id": 1}] and uuid_of(other, "b") != uuid
        assert db.name not in client.list_database_names()
        with pytest.raises(OperationFailure) as e:  # the name differs in case only from one that is there
            client[other.name.upper()].x.insert_one({})
        assert e.value.code == 13297
    finally:
        client.drop_database(other)


def test_cursors_of_the_old_name_end(client, db):
    db.a.insert_many([{"_id": i} for i in range(10)])
    cursor = db.command("find", "a", batchSize=2)["cursor"]["id"]
    rename(client, f"{db.name}.a", f"{db.name}.b")
    fails(db, 175, SON([("getMore", cursor), ("collection", "a")]))
    assert len(list(db.b.find())) == 10


def test_rename_survives_a_restart(own_server):
    server = own_server()
    client = MongoClient(server.uri)
    client.t.a.insert_many([{"_id": i} for i in range(10)])
    client.t.b.insert_one({"_id": "old"})
    rename(client, "t.a", "t.b", dropTarget=True)
    client.t.b.insert_one({"_id": 10}, session=None)
    client.close()
    server.stop()
    server.start()
    client = MongoClient(server.uri)
    assert client.t.list_collection_names() == ["b"]
    assert [d["_id"] for d in client.t.b.find().sort("_id", 1)] == list(range(11))
    client.close()


def test_renames_there_and_back_while_others_write(client, db):
    db.a.insert_one({"_id": "first"})
    stop, errors, done = threading.Event(), [], [0]

    def write():
        while not stop.is_set():
            try:
                db.a.insert_one({})
                done[0] += 1
            except Exception as e:  # any failure is the test's
                errors.append(e)
                return

    writers = [threading.Thread(target=write) for _ in range(3)]
    for w in writers:
        w.start()
    total = 0
    try:
        for i in range(40):
            while not db.a.find_one():
                time.sleep(0.001)
            rename(client, f"{db.name}.a", f"{db.name}.r{i}")
    finally:
        stop.set()
        for w in writers:
            w.join()
    assert not errors
    total = sum(db[n].count_documents({}) for n in db.list_collection_names())
    assert total == done[0] + 1


# ---- figures


def test_coll_stats_counts_what_is_there(db):
    db.c.create_index("a")
    db.c.insert_many([{"_id": i, "a": "x" * 20} for i in range(100)])  # 42 bytes each
    s = db.command("collStats", "c")
    assert (s["ns"], s["count"], s["size"], s["avgObjSize"]) == (f"{db.name}.c", 100, 4200, 42)
    assert s["nindexes"] == 2 and list(s["indexSizes"]) == ["_id_", "a_1"] and s["scaleFactor"] == 1
    assert s["totalSize"] == s["storageSize"] + s["totalIndexSize"] and s["capped"] is False
    s = db.command("collStats", "c", scale=1024)
    assert (s["size"], s["avgObjSize"], s["scaleFactor"]) == (4, 42, 1024)
    db.c.delete_many({"_id": {"$lt": 90}})
    assert db.command("collStats", "c")["size"] == 420
    fails(db, 51024, "collStats", "c", scale=0, text="BSON field 'scale' value must be >= 1, actual value '0'")
    fails(db, 40415, "collStats", "c", surprise=1)
    s = db.command("collStats", "none")
    assert (s["count"], s["size"], s["nindexes"], s["indexSizes"]) == (0, 0, 0, {}) and "avgObjSize" not in s


def test_figures_on_disk_after_a_flush(client, db):
    db.c.create_index("a")
    db.c.insert_many([{"_id": i, "a": i, "b": str(i) * 30} for i in range(3000)])
    client.admin.command("fsync")
    s = db.command("collStats", "c")
    assert s["storageSize"] > 10000 and all(n > 1000 for n in s["indexSizes"].values())
    assert s["totalIndexSize"] == sum(s["indexSizes"].values())


def test_db_stats(client, db):
    db.a.insert_many([{"_id": i} for i in range(10)])
    db.b.insert_many([{"_id": i, "x": 1.5} for i in range(10)])
    db.b.create_index("x")
    s = db.command("dbStats")
    assert (s["db"], s["collections"], s["views"], s["objects"], s["indexes"]) == (db.name, 2, 0, 20, 3)
    assert s["dataSize"] == 10 * 14 + 10 * 25 and s["avgObjSize"] == 19.5
    assert isinstance(s["objects"], Int64) and isinstance(s["dataSize"], float)
    assert s["fsTotalSize"] >= s["fsUsedSize"] > 0 and s["totalSize"] == s["storageSize"] + s["indexSize"]
    assert db.command("dbStats", scale=10, freeStorage=1)["dataSize"] == 39
    none = client[db.name + "_none"].command("dbStats")
    assert (none["collections"], none["objects"], none["avgObjSize"]) == (0, 0, 0)


def test_data_size(db):
    db.c.insert_many([{"_id": i} for i in range(10)])
    s = db.command("dataSize", f"{db.name}.c")
    assert (s["estimate"], s["size"], s["numObjects"]) == (False, 140, 10) and s["millis"] >= 0
    assert db.command("dataSize", f"{db.name}.none")["size"] == 0
    fails(db, 73, "dataSize", "nodot")
    fails(db, 238, "dataSize", f"{db.name}.c", keyPattern={"_id": 1}, min={"_id": 1}, max={"_id": 2})


# ---- fsync, logRotate


def test_fsync(client, db):
    db.c.insert_one({"_id": 1})
    assert client.admin.command("fsync") == {"numFiles": 1, "ok": 1.0}
    fails(client.admin, 238, "fsync", lock=True)
    fails(client.admin, 20, "fsyncUnlock", text="fsyncUnlock called when not locked")
    fails(db, 13, "fsync")
    assert db.c.find_one() == {"_id": 1}


def test_log_rotate(client):
    assert client.admin.command("logRotate") == {"ok": 1.0}
    assert client.admin.command("logRotate", "server") == {"ok": 1.0}
    fails(client.admin, 6221500, "logRotate", "audit")


# ---- validators, collMod


def options_of(db, name):
    return db.command("listCollections", filter={"name": name})["cursor"]["firstBatch"][0]["options"]


def invalid(do):
    with pytest.raises(WriteError) as e:
        do()
    assert e.value.code == 121 and e.value.details["errmsg"].endswith("Document failed validation")
    return e.value.details["errInfo"]


def test_a_validator_guards_every_way_in(db):
    db.create_collection("c", validator={"a": {"$gt": 5}})
    assert options_of(db, "c") == {"validator": {"a": {"$gt": 5}}}
    db.c.insert_one({"_id": 1, "a": 6})
    assert invalid(lambda: db.c.insert_one({"_id": 2, "a": 3})) == {
        "failingDocumentId": 2,
        "details": {
            "operatorName": "$gt",
            "specifiedAs": {"a": {"$gt": 5}},
            "reason": "comparison failed",
            "consideredValue": 3,
        },
    }
    assert invalid(lambda: db.c.insert_one({"_id": 2}))["details"]["reason"] == "field was missing"
    invalid(lambda: db.c.update_one({"_id": 1}, {"$set": {"a": 0}}))
    invalid(lambda: db.c.replace_one({"_id": 1}, {"b": 1}))
    invalid(lambda: db.c.update_one({"_id": 9}, {"$set": {"b": 1}}, upsert=True))
    details = fails(db, 121, "findAndModify", "c", query={"_id": 1}, update={"$inc": {"a": -5}})
    assert details["errInfo"]["failingDocumentId"] == 1
    assert list(db.c.find()) == [{"_id": 1, "a": 6}]
    reply = db.command("insert", "c", documents=[{"_id": 3}, {"_id": 4, "a": 9}], ordered=False)
    assert reply["n"] == 1 and [e["code"] for e in reply["writeErrors"]] == [121]
    db.command("insert", "c", documents=[{"_id": 5}], bypassDocumentValidation=True)
    db.command("findAndModify", "c", query={"_id": 5}, update={"$set": {"b": 1}}, bypassDocumentValidation=True)
    db.c.delete_one({"_id": 5})
    assert db.c.count_documents({}) == 2


def test_coll_mod_changes_the_validator(db):
    db.c.insert_many([{"_id": i} for i in range(3)])
    assert db.command("collMod", "c", validator={"n": {"$type": "int"}}, validationLevel="moderate") == {"ok": 1.0}
    assert options_of(db, "c") == {"validator": {"n": {"$type": "int"}}, "validationLevel": "moderate"}
    db.c.update_one({"_id": 0}, {"$set": {"x": 1}})  # invalid before
    db.c.update_one({"_id": 0}, {"$set": {"n": 1}})
    info = invalid(lambda: db.c.update_one({"_id": 0}, {"$set": {"n": "s"}}))
    assert (info["details"]["consideredValue"], info["details"]["consideredType"]) == ("s", "string")
    invalid(lambda: db.c.insert_one({"_id": 7}))
    db.command("collMod", "c", validationLevel="strict")
    invalid(lambda: db.c.update_one({"_id": 1}, {"$set": {"x": 1}}))
    db.command("collMod", "c", validationAction="warn")
    db.c.update_one({"_id": 1}, {"$set": {"x": 1}})
    assert any("Document would fail validation" in line for line in db.client.admin.command("getLog", "global")["log"])
    db.command("collMod", "c", validationAction="error", validationLevel="off")
    db.c.insert_one({"_id": 8})
    db.command("collMod", "c", validationLevel="strict", validator={})
    assert options_of(db, "c") == {"validationLevel": "strict", "validationAction": "error"}
    db.c.insert_one({"_id": 9})


def test_what_a_failed_validation_tells(db):
    db.create_collection(
        "c",
        validator={
            "$or": [{"a": {"$exists": True}}, {"b": {"$in": [1, 2]}}],
            "s": {"$regex": "^x", "$options": "i"},
            "t": {"$not": {"$gt": 3}},
            "$nor": [{"u": 1}, {"u": 2}],
        },
    )
    db.c.insert_one({"a": 1, "s": "Xy", "t": 1})
    details = invalid(lambda: db.c.insert_one({"b": 5, "s": "y", "t": 4, "u": 2}))["details"]
    assert details["operatorName"] == "$and"
    by_index = {c["index"]: c["details"] for c in details["clausesNotSatisfied"]}
    assert set(by_index) == {0, 1, 2, 3}
    either = by_index[0]
    assert either["operatorName"] == "$or"
    assert [c["details"]["reason"] for c in either["clausesNotSatisfied"]] == [
        "path does not exist",
        "no matching value found in array",
    ]
    assert by_index[1]["operatorName"] == "$regex" and by_index[1]["consideredValue"] == "y"
    assert by_index[1]["specifiedAs"] == {"s": {"$regex": "^x", "$options": "i"}}
    assert by_index[2]["operatorName"] == "$not"
    assert by_index[2]["details"]["reason"] == "comparison succeeded"
    assert by_index[3]["operatorName"] == "$nor"
    assert [c["index"] for c in by_index[3]["clausesSatisfied"]] == [1]


def test_a_schema_as_validator(db):
    schema = {"required": ["name"], "properties": {"name": {"bsonType": "string"}, "n": {"bsonType": "int"}}}
    db.create_collection("c", validator={"$jsonSchema": schema})
    db.c.insert_one({"_id": 1, "name": "x", "n": 2})
    info = invalid(lambda: db.c.insert_one({"_id": 2, "n": "two"}))
    assert info["failingDocumentId"] == 2 and info["details"]["operatorName"] == "$jsonSchema"
    invalid(lambda: db.c.update_one({"_id": 1}, {"$set": {"name": 3}}))
    assert db.c.count_documents({}) == 1


def test_validators_that_are_refused(client, db):
    fails(db, 238, "create", "c", validator={"$expr": {"$gt": ["$a", 1]}})
    fails(db, 2, "create", "c", validator={"a": {"$what": 1}})
    fails(db, 14, "create", "c", validator=5)
    text = "Enumeration value 'x' for field 'create.validationLevel' is not a valid value."
    fails(db, 2, "create", "c", validationLevel="x", text=text)
    fails(client.admin, 72, "create", "c", validator={"a": 1})
    assert db.list_collection_names() == []
    db.create_collection("c", validator={"a": 1})
    fails(db, 48, "create", "c", validator={"a": 2})
    assert db.command("create", "c", validator={"a": 1}) == {"ok": 1.0}
    fails(db, 2, "collMod", "c", validator={"a": {"$what": 1}})
    assert options_of(db, "c") == {"validator": {"a": 1}}
    fails(db, 26, "collMod", "none", validator={}, text="ns does not exist")
    fails(db, 238, "collMod", "c", index={"name": "_id_", "unique": True})
    fails(db, 40415, "collMod", "c", surprise=1)


def test_old_flags_are_kept(db):
    db.command("create", "c", flags=1)
    assert options_of(db, "c") == {"flags": 1}
    reply = db.command("collMod", "c", usePowerOf2Sizes=False)
    assert (reply["usePowerOf2Sizes_old"], reply["usePowerOf2Sizes_new"]) == (True, False)
    assert db.command("collMod", "c", noPadding=True)["noPadding_new"] is True
    assert options_of(db, "c") == {"flags": 2}


def test_validators_survive_a_restart_and_a_rename(own_server):
    server = own_server()
    client = MongoClient(server.uri)
    client.t.create_collection("a", validator={"x": 1})
    rename(client, "t.a", "t.b")
    invalid(lambda: client.t.b.insert_one({"x": 2}))
    client.close()
    server.stop()
    server.start()
    client = MongoClient(server.uri)
    assert options_of(client.t, "b") == {"validator": {"x": 1}}
    invalid(lambda: client.t.b.insert_one({"x": 2}))
    client.t.b.insert_one({"x": 1})
    client.close()


# ---- validate


def test_validate(db):
    db.c.create_index("a")
    db.c.create_index("u", unique=True)
    db.c.insert_many([{"_id": i, "a": [i, i + 1], "u": i} for i in range(3000)])
    for full in (False, True):
        r = db.command("validate", "c", full=full)
        assert list(r) == [
            "ns", "uuid", "nInvalidDocuments", "nNonCompliantDocuments", "nrecords", "nIndexes", "keysPerIndex",
            "indexDetails", "corruptRecords", "repaired", "valid", "warnings", "errors", "extraIndexEntries",
            "missingIndexEntries", "ok",
        ]  # fmt: skip
        assert (r["ns"], r["nrecords"], r["nIndexes"], r["valid"]) == (f"{db.name}.c", 3000, 3, True)
        assert r["keysPerIndex"] == {"_id_": 3000, "a_1": 6000, "u_1": 3000}
        assert r["indexDetails"] == {n: {"valid": True} for n in ("_id_", "a_1", "u_1")}
    db.command("collMod", "c", validator={"a": 0})
    r = db.command("validate", "c")
    assert r["nNonCompliantDocuments"] == 2999 and r["valid"] and len(r["warnings"]) == 1
    fails(db, 26, "validate", "none", text=f"Collection '{db.name}.none' does not exist to validate.")
    fails(db, 72, "validate", "c", full=True, background=True)
    fails(db, 238, "validate", "c", repair=True)
    fails(db, 40415, "validate", "c", surprise=1)


def test_validate_beside_writers(db):
    db.c.create_index("a")
    db.c.insert_many([{"_id": i, "a": i} for i in range(2000)])
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            n += 1
            db.c.update_many({"_id": {"$mod": [7, n % 7], "$lt": 2000}}, {"$inc": {"a": 1}})
            db.c.delete_one({"_id": n % 2000})
            db.c.insert_one({"_id": 10000 + n, "a": [n, -n]})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            r = db.command("validate", "c")
            assert r["valid"], r
    finally:
        stop.set()
        writer.join()


def test_parameters_are_set_one_after_the_other(wire):
    def set_parameter(*fields):
        return wire.command("admin", SON([("setParameter", 1), *fields]))

    try:
        reply = set_parameter(("logLevel", 1), ("comment", "x"))
        assert (reply["ok"], reply["was"]) == (1.0, 0)
        reply = set_parameter(("nope", 1), ("logLevel", 2))
        assert (reply["ok"], reply["code"]) == (0.0, 72) and "[nope]" in reply["errmsg"]
        reply = set_parameter(("logLevel", 3), ("enableTestCommands", False))
        assert (reply["ok"], reply["code"]) == (0.0, 20) and "[enableTestCommands]" in reply["errmsg"]
        assert wire.command("admin", {"getParameter": 1, "logLevel": 1})["logLevel"] == 3
    finally:
        set_parameter(("logLevel", 0))


def test_end_sessions_closes_their_cursors(wire, db):
    db.c.insert_many([{"_id": i} for i in range(10)])
    sessions = [{"id": Binary(bytes([i]) * 16, 4)} for i in range(3)]
    fields = [[("lsid", s)] for s in sessions] + [[]]
    ids = [wire.command(db.name, SON([("find", "c"), ("batchSize", 2), *f]))["cursor"]["id"] for f in fields]
    assert wire.command("admin", {"endSessions": sessions[:2]})["ok"] == 1.0
    codes = []
    for i, f in zip(ids, fields):
        reply = wire.command(db.name, SON([("getMore", Int64(i)), ("collection", "c"), *f]))
        codes.append(reply.get("code", 0))
    assert codes == [43, 43, 0, 0]


# ---- currentOp, killOp


def test_current_op_shows_itself(client):
    reply = client.admin.command("currentOp", comment="look")
    mine = [o for o in reply["inprog"] if o["command"].get("comment") == "look"]
    assert len(mine) == 1
    op = mine[0]
    assert (op["type"], op["op"], op["ns"], op["active"]) == ("op", "command", "admin.$cmd", True)
    assert op["desc"] == f"conn{op['connectionId']}" and op["client"].startswith("127.0.0.1:")
    assert isinstance(op["opid"], int) and op["opid"] > 0
    assert isinstance(op["secs_running"], Int64) and 0 <= op["microsecs_running"] < 10_000_000
    assert client.admin.command("currentOp", op="remove")["inprog"] == []
    filtered = {"op": {"$ne": "remove"}, "ns": {"$not": {"$regex": "^x"}}, "command.currentOp": True}
    assert len(client.admin.command("currentOp", True, **filtered)["inprog"]) == 1
    fails(client.admin, 2, "currentOp", op={"$what": 1})
    fails(client.other, 13, "currentOp")


def blocked(client, db, failpoint, command, run):
    """Runs a command that stays in its fail point until it is killed; returns the operation as currentOp told it, and how it ended."""
    failpoint({"failCommands": [command], "blockConnection": True, "blockTimeMS": 20000, "appName": "victim"})
    ended = []
    victim = MongoClient(client.address[0], client.address[1], appname="victim", retryReads=False, retryWrites=False)

    def go():
        try:
            ended.append(run(victim[db.name]))
        except OperationFailure as e:
            ended.append(e)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        ops = []
        for _ in range(400):
            wanted = {"appName": "victim", "command." + command: {"$exists": True}}
            ops = client.admin.command("currentOp", **wanted)["inprog"]
            if ops:
                break
            time.sleep(0.01)
        assert len(ops) == 1
        reply = client.admin.command("killOp", op=ops[0]["opid"])
        assert reply == {"info": "attempting to kill op", "ok": 1.0}
        thread.join(10)
        assert not thread.is_alive()
    finally:
        thread.join()
        victim.close()
    return ops[0], ended[0]


def test_kill_op(client, db, failpoint):
    db.c.insert_one({"_id": 1})
    op, end = blocked(client, db, failpoint, "find", lambda d: list(d.c.find({"_id": 1})))
    assert (op["op"], op["ns"], op["appName"]) == ("query", f"{db.name}.c", "victim")
    assert op["command"]["filter"] == {"_id": 1} and "lsid" in op
    assert isinstance(end, OperationFailure) and end.code == 11601
    assert end.details["errmsg"] == "operation was interrupted"
    ids = [o["opid"] for o in client.admin.command("currentOp")["inprog"]]
    assert op["opid"] not in ids


def test_kill_op_of_a_write(client, db, failpoint):
    op, end = blocked(client, db, failpoint, "insert", lambda d: d.c.insert_one({"_id": 1}))
    assert op["op"] == "insert" and end.code == 11601
    assert db.c.find_one() is None


def test_kill_op_arguments(client):
    admin = client.admin
    assert admin.command("killOp", op=2**31 - 1) == {"info": "attempting to kill op", "ok": 1.0}
    fails(admin, 4, "killOp", text='Missing expected field "op"')
    fails(admin, 14, "killOp", op="x", text='"op" had the wrong type. Expected a number, found string')
    fails(admin, 2, "killOp", op=1.5)
    fails(admin, 26823, "killOp", op=2**40, text=f"invalid op : {2**40}")


# ---- default concerns


def test_default_concerns_are_kept(own_server):
    server = own_server("--replSet", "rs0")

    def admin():
        return MongoClient(server.uri, directConnection=True).admin

    a = admin()
    reply = a.command("getDefaultRWConcern")
    assert reply["defaultReadConcern"] == {"level": "local"}
    assert reply["defaultWriteConcern"] == {"w": "majority", "wtimeout": 0}
    assert (reply["defaultReadConcernSource"], reply["defaultWriteConcernSource"]) == ("implicit", "implicit")
    reply = a.command("setDefaultRWConcern", defaultWriteConcern={"w": 1})
    assert reply["defaultWriteConcern"] == {"w": 1, "wtimeout": 0} and reply["defaultWriteConcernSource"] == "global"
    a.command("setDefaultRWConcern", defaultReadConcern={"level": "majority"})
    fails(a, 20, "setDefaultRWConcern", defaultWriteConcern={})
    fails(a, 2, "setDefaultRWConcern")
    fails(a, 2, "setDefaultRWConcern", defaultWriteConcern={"w": 0})
    fails(a, 2, "setDefaultRWConcern", defaultWriteConcern={"j": True})
    fails(a, 100, "setDefaultRWConcern", defaultWriteConcern={"w": 3})
    text = "level: 'linearizable' is not suitable for the default read concern"
    fails(a, 2, "setDefaultRWConcern", defaultReadConcern={"level": "linearizable"}, text=text)
    a.client.close()
    server.stop()
    server.start()
    a = admin()
    reply = a.command("getDefaultRWConcern")
    assert reply["defaultWriteConcern"] == {"w": 1, "wtimeout": 0}
    assert reply["defaultReadConcern"] == {"level": "majority"}
    assert a.command("setDefaultRWConcern", defaultReadConcern={})["defaultReadConcernSource"] == "implicit"
    a.client.close()


def test_default_concerns_are_for_sets(client, db):
    text = "'getDefaultRWConcern' is not supported on standalone nodes."
    fails(client.admin, 51300, "getDefaultRWConcern", text=text)
    fails(client.admin, 51300, "setDefaultRWConcern", defaultWriteConcern={"w": 1})
    fails(db, 13, "getDefaultRWConcern")


# ---- collMod of indexes


def test_coll_mod_hides_an_index_and_shows_it_again(db):
    db.c.create_index("a")
    db.c.insert_many([{"_id": i, "a": i % 5} for i in range(50)])

    def plan():
        found = db.command("explain", {"find": "c", "filter": {"a": 3}}, verbosity="queryPlanner")
        return str(found["queryPlanner"]["winningPlan"])

    assert "IXSCAN" in plan()
    reply = db.command("collMod", "c", index={"name": "a_1", "hidden": True})
    assert reply == {"hidden_old": False, "hidden_new": True, "ok": 1.0}
    assert db.c.index_information()["a_1"]["hidden"] is True and "IXSCAN" not in plan()
    assert db.command("collMod", "c", index={"name": "a_1", "hidden": True}) == {"ok": 1.0}
    db.c.insert_one({"_id": 50, "a": 3})
    reply = db.command("collMod", "c", index={"keyPattern": {"a": 1}, "hidden": False})
    assert reply == {"hidden_old": True, "hidden_new": False, "ok": 1.0}
    assert "hidden" not in db.c.index_information()["a_1"] and "IXSCAN" in plan()
    assert db.c.count_documents({"a": 3}) == 11 and db.command("validate", "c")["valid"]


def test_coll_mod_changes_when_documents_expire(db):
    db.c.create_index("at", expireAfterSeconds=3600)
    db.c.create_index("b")
    reply = db.command("collMod", "c", index={"name": "at_1", "expireAfterSeconds": 60})
    assert reply == {"expireAfterSeconds_old": 3600, "expireAfterSeconds_new": 60, "ok": 1.0}
    reply = db.command("collMod", "c", index={"keyPattern": {"b": 1}, "expireAfterSeconds": 5, "hidden": True})
    assert reply == {"expireAfterSeconds_new": 5, "hidden_old": False, "hidden_new": True, "ok": 1.0}
    info = db.c.index_information()
    assert (info["at_1"]["expireAfterSeconds"], info["b_1"]["expireAfterSeconds"]) == (60, 5)


def test_coll_mod_of_indexes_refuses(db):
    db.c.create_index([("a", 1), ("b", 1)])
    c = ("collMod", "c")
    fails(db, 27, *c, index={"name": "x", "hidden": True}, text=f"cannot find index x for ns {db.name}.c")
    fails(db, 27, *c, index={"keyPattern": {"x": 1}, "hidden": True})
    fails(db, 72, *c, index={"hidden": True}, text="must specify either index name or key pattern")
    fails(db, 72, *c, index={"name": "a_1_b_1", "keyPattern": {"a": 1}, "hidden": True})
    fails(db, 72, *c, index={"name": "a_1_b_1"})
    fails(db, 2, *c, index={"name": "_id_", "hidden": True}, text="can't hide _id index")
    fails(db, 72, *c, index={"name": "a_1_b_1", "expireAfterSeconds": 5})
    fails(db, 72, *c, index={"name": "_id_", "expireAfterSeconds": 5})
    fails(db, 14, *c, index=5)
    fails(db, 14, *c, index={"name": "a_1_b_1", "hidden": "x"})
