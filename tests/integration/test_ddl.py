"""Collections and databases: made, listed, renamed, dropped."""

import pytest
from bson import SON, Binary, Decimal128, Int64
from pymongo.errors import CollectionInvalid, OperationFailure


def fails(db, code, *args, text=None, **kw):
    with pytest.raises(OperationFailure) as e:
        db.command(*args, **kw)
    assert e.value.code == code, e.value.details
    if text:
        assert text in e.value.details["errmsg"]
    return e.value.details


def test_create_and_list(db):
    assert db.command("create", "one") == {"ok": 1.0}
    db.two.insert_one({})
    batch = db.command("listCollections")["cursor"]["firstBatch"]
    by_name = {c["name"]: c for c in batch}
    assert set(by_name) == {"one", "two"}
    one = by_name["one"]
    assert one["type"] == "collection" and one["options"] == {}
    assert one["info"]["readOnly"] is False
    assert isinstance(one["info"]["uuid"], Binary) and one["info"]["uuid"].subtype == 4
    assert one["idIndex"] == {"v": 2, "key": {"_id": 1}, "name": "_id_"}
    assert one["info"]["uuid"] != by_name["two"]["info"]["uuid"]


def test_list_collections_replies_with_a_cursor(db):
    for i in range(150):
        db.command("create", f"c{i}")
    reply = db.command("listCollections", cursor={"batchSize": 100})
    assert reply["cursor"]["ns"] == f"{db.name}.$cmd.listCollections"
    assert len(reply["cursor"]["firstBatch"]) == 100
    more = db.command(SON([("getMore", reply["cursor"]["id"]), ("collection", "$cmd.listCollections")]))
    assert len(more["cursor"]["nextBatch"]) == 50
    assert len(db.list_collection_names()) == 150


def test_list_indexes_replies_with_a_cursor(db):
    db.c.insert_one({})
    for i in range(20):
        db.c.create_index(f"f{i}")
    reply = db.command("listIndexes", "c", cursor={"batchSize": 0})["cursor"]
    assert reply["firstBatch"] == [] and reply["id"] != 0
    more = db.command(SON([("getMore", reply["id"]), ("collection", reply["ns"][len(db.name) + 1 :]), ("batchSize", 20)]))
    assert [d["name"] for d in more["cursor"]["nextBatch"]] == ["_id_"] + [f"f{i}_1" for i in range(19)]
    rest = db.command(SON([("getMore", reply["id"]), ("collection", reply["ns"][len(db.name) + 1 :])]))["cursor"]
    assert [d["name"] for d in rest["nextBatch"]] == ["f19_1"] and rest["id"] == 0


def test_a_cursor_over_collections_is_killed_by_its_name(db):
    for i in range(3):
        db.command("create", f"c{i}")
    cursor = db.command("listCollections", cursor={"batchSize": 1})["cursor"]
    killed = db.command("killCursors", "$cmd.listCollections", cursors=[cursor["id"]])
    assert killed["cursorsKilled"] == [cursor["id"]]
    fails(db, 43, "getMore", cursor["id"], collection="$cmd.listCollections")
    fails(db, 2, "listCollections", cursor={"batchSize": -1})
    fails(db, 40415, "listCollections", cursor={"size": 1})


def test_list_collections_filters(db):
    for n in ("a", "b", "c"):
        db.command("create", n)
    assert db.list_collection_names(filter={"name": "b"}) == ["b"]
    got = db.command("listCollections", nameOnly=True, filter={"name": {"$in": ["a", "c"]}})["cursor"]["firstBatch"]
    assert sorted((d["name"], d["type"]) for d in got) == [("a", "collection"), ("c", "collection")]
    assert all("info" not in d for d in got)


def test_create_twice(db):
    db.command("create", "one")
    assert db.command("create", "one") == {"ok": 1.0}  # the same options again
    fails(db, 48, "create", "one", validator={"a": {"$exists": True}})
    fails(db, 238, "create", "two", capped=True, size=10000)


@pytest.mark.parametrize("name", ["", "a$b", ".a", "system.foo", "a\0b"])
def test_bad_collection_names(db, wire, name):
    doc = wire.command(db.name, {"create": name})
    assert doc["ok"] == 0.0 and doc["code"] == 73
    doc = wire.command(db.name, {"insert": name, "documents": [{}]})
    assert doc["ok"] == 0.0 or doc["writeErrors"][0]["code"] == 73


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a/b", "a\\b", 'a"b', "a$b", "x" * 64])
def test_bad_database_names(wire, name):
    doc = wire.command(name, {"create": "c"})
    assert doc["ok"] == 0.0 and doc["code"] == 73


def test_the_longest_names(client):
    db = client["d" * 63]
    try:
        db.command("create", "c" * (255 - 64))
        fails(db, 73, "create", "c" * (255 - 63))
    finally:
        client.drop_database(db.name)


def test_database_names_differ_by_more_than_case(client, db):
    db.command("create", "c")
    fails(client[db.name.upper()], 13297, "create", "c", text="db already exists with different case")


def test_an_unknown_option_is_refused(db):
    fails(db, 40415, "create", "c", bogus=1, text="BSON field 'create.bogus' is an unknown field.")


def test_drop(db):
    db.c.create_index("a")
    reply = db.command("drop", "c")
    assert reply == {"nIndexesWas": 2, "ns": f"{db.name}.c", "ok": 1.0}
    assert db.list_collection_names() == []
    assert db.command("drop", "c")["ok"] == 1.0  # as since 7.0
    db.c.insert_one({"_id": 1})
    assert list(db.c.find()) == [{"_id": 1}] and list(db.c.index_information()) == ["_id_"]


def test_a_dropped_collection_keeps_nothing(db):
    db.c.create_index("k", unique=True)
    db.c.insert_many([{"_id": i, "k": i} for i in range(1000)])
    db.c.drop()
    db.c.create_index("k", unique=True)
    assert db.c.count_documents({}) == 0 and db.c.count_documents({"k": {"$gte": 0}}) == 0
    db.c.insert_many([{"_id": i, "k": i} for i in range(1000)])


def test_drop_database(client, db):
    db.a.insert_one({})
    db.b.insert_one({})
    assert db.command("dropDatabase") == {"dropped": db.name, "ok": 1.0}
    assert db.command("dropDatabase") == {"ok": 1.0}
    assert db.name not in client.list_database_names()
    assert db.list_collection_names() == []


def test_list_databases(client, db):
    db.c.insert_one({})
    reply = client.admin.command("listDatabases")
    mine = [d for d in reply["databases"] if d["name"] == db.name]
    assert len(mine) == 1 and mine[0]["empty"] is False and isinstance(mine[0]["sizeOnDisk"], (int, Int64))
    assert "totalSize" in reply and "totalSizeMb" in reply
    assert client.admin.command("listDatabases", nameOnly=True, filter={"name": db.name}) == {
        "databases": [{"name": db.name}],
        "ok": 1.0,
    }
    fails(db, 13, "listDatabases", text="listDatabases may only be run against the admin database.")


def test_rename(client, db):
    db.a.create_index("k")
    db.a.insert_one({"_id": 1, "k": 2})
    admin = client.admin
    assert admin.command("renameCollection", f"{db.name}.a", to=f"{db.name}.b") == {"ok": 1.0}
    assert db.list_collection_names() == ["b"]
    assert db.b.find_one({"k": 2}) == {"_id": 1, "k": 2} and "k_1" in db.b.index_information()
    fails(admin, 26, "renameCollection", f"{db.name}.a", to=f"{db.name}.x")
    db.c.insert_one({"_id": 9})
    fails(admin, 48, "renameCollection", f"{db.name}.b", to=f"{db.name}.c", text="target namespace exists")
    admin.command("renameCollection", f"{db.name}.b", to=f"{db.name}.c", dropTarget=True)
    assert db.list_collection_names() == ["c"] and db.c.find_one() == {"_id": 1, "k": 2}


def test_an_insert_makes_collection_and_database(client, db):
    assert db.name not in client.list_database_names()
    db.new.insert_one({})
    assert db.list_collection_names() == ["new"] and db.name in client.list_database_names()


def test_many_collections(db):
    for i in range(1000):
        db[f"c{i}"].insert_one({"_id": i})
    assert len(db.list_collection_names()) == 1000
    assert db.c777.find_one() == {"_id": 777}


def test_stats(db):
    db.c.create_index("a")
    db.c.insert_many([{"a": i} for i in range(100)])
    stats = db.command("collStats", "c")
    assert (stats["ns"], stats["count"], stats["nindexes"]) == (f"{db.name}.c", 100, 2)
    assert stats["size"] > 0 and set(stats["indexSizes"]) == {"_id_", "a_1"}
    stats = db.command("dbStats")
    assert (stats["db"], stats["collections"], stats["objects"], stats["indexes"]) == (db.name, 1, 100, 2)


def test_drivers_helpers(db):
    db.create_collection("x")
    with pytest.raises(CollectionInvalid):
        db.create_collection("x")
    db.drop_collection("x")
    assert db.list_collection_names() == []


def test_options_of_create_are_checked_one_by_one_and_together(db):
    for options, code, text in [
        ({"capped": "yes"}, 14, "BSON field 'create.capped' is the wrong type 'string', expected types "
                                "'[bool, long, int, decimal, double']"),
        ({"capped": True}, 72, "the 'size' field is required when 'capped' is true"),
        ({"capped": True, "size": 0.9}, 2, "BSON field 'size' value must be >= 1, actual value '0'"),
        ({"capped": True, "size": Decimal128("0.5")}, 2, "BSON field 'size' value must be >= 1, actual value '0'"),
        ({"capped": True, "size": Decimal128("1.5")}, 238, "the option 'capped' of create is not implemented"),
        ({"viewOn": 1}, 14, None),
        ({"viewOn": ""}, 2, None),
        ({"viewOn": "a", "pipeline": [1]}, 14,
         "BSON field 'create.pipeline.0' is the wrong type 'int', expected type 'object'"),
        ({"viewOn": "a", "idIndex": {"key": {"_id": 1}, "name": "_id_"}}, 72, None),
        ({"collation": {}}, 40414, "BSON field 'collation.locale' is missing but a required field"),
        ({"collation": {"locale": 1}}, 14, None),
        ({"collation": {"locale": "en", "x": 1}}, 40415, "BSON field 'collation.x' is an unknown field."),
        ({"collation": {"locale": "en", "strength": 6}}, 2,
         "BSON field 'strength' value must be <= 5, actual value '6'"),
        ({"collation": {"locale": "en", "caseFirst": "upper", "strength": 2}}, 2, None),
        ({"timeseries": {}}, 40414, "BSON field 'create.timeseries.timeField' is missing but a required field"),
        ({"timeseries": {"timeField": "a.b"}}, 72, None),
        ({"timeseries": {"timeField": "t"}, "capped": True, "size": 10}, 72, None),
        ({"expireAfterSeconds": -1}, 72, None),
        ({"idIndex": {}}, 9, None),
        ({"idIndex": {"key": {"a": 1}, "name": "a"}}, 2, None),
        ({"idIndex": {"key": {"_id": 1}, "name": "_id_", "v": 3}}, 67, None),
        ({"idIndex": {"key": {"_id": 1}, "name": "_id_", "unique": True}}, 197, None),
        ({"changeStreamPreAndPostImages": {}}, 40414, None),
    ]:
        fails(db, code, "create", "c", text=text, **options)
    db.command("create", "c", viewOn=None, capped=False, idIndex={"key": {"_id": 1}, "name": "_id_"})
