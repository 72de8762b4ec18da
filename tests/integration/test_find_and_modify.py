"""findAndModify: one document, changed and returned at once."""

import pytest
from bson import SON
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError, OperationFailure


def test_the_old_document_or_the_new_one(coll):
    coll.insert_one({"_id": 1, "a": 1})
    assert coll.find_one_and_update({"_id": 1}, {"$inc": {"a": 1}}) == {"_id": 1, "a": 1}
    assert coll.find_one_and_update({"_id": 1}, {"$inc": {"a": 1}}, return_document=ReturnDocument.AFTER) == {"_id": 1, "a": 3}


def test_the_reply_of_an_update(db):
    db.c.insert_one({"_id": 1, "a": 1})
    reply = db.command("findAndModify", "c", query={"_id": 1}, update={"$set": {"a": 2}}, new=True)
    assert reply == {"lastErrorObject": {"n": 1, "updatedExisting": True}, "value": {"_id": 1, "a": 2}, "ok": 1.0}


def test_the_reply_of_no_match(db):
    reply = db.command("findAndModify", "c", query={"_id": 1}, update={"$set": {"a": 2}})
    assert reply == {"lastErrorObject": {"n": 0, "updatedExisting": False}, "value": None, "ok": 1.0}


def test_the_reply_of_an_upsert(db):
    reply = db.command("findAndModify", "c", query={"_id": 1}, update={"$set": {"a": 2}}, upsert=True)
    assert reply == {"lastErrorObject": {"n": 1, "updatedExisting": False, "upserted": 1}, "value": None, "ok": 1.0}
    reply = db.command("findandmodify", "c", query={"_id": 2}, update={"$set": {"a": 2}}, upsert=True, new=True)
    assert reply["value"] == {"_id": 2, "a": 2}


def test_the_reply_of_a_removal(db):
    db.c.insert_one({"_id": 1})
    assert db.command("findAndModify", "c", query={}, remove=True) == {"lastErrorObject": {"n": 1}, "value": {"_id": 1}, "ok": 1.0}
    assert db.command("findAndModify", "c", query={}, remove=True) == {"lastErrorObject": {"n": 0}, "value": None, "ok": 1.0}


def test_sort_chooses_which(coll):
    coll.insert_many([{"_id": i, "a": 10 - i} for i in range(5)])
    assert coll.find_one_and_update({}, {"$set": {"x": 1}}, sort=[("a", 1)])["_id"] == 4
    assert coll.find_one_and_delete({}, sort=[("a", -1)])["_id"] == 0


def test_fields_project_the_value(db):
    db.c.insert_one({"_id": 1, "a": 1, "b": 2})
    assert db.command("findAndModify", "c", query={}, update={"$inc": {"a": 1}}, new=True, fields={"a": 1})["value"] == {"_id": 1, "a": 2}


def test_replacement(coll):
    coll.insert_one({"_id": 1, "a": 1})
    assert coll.find_one_and_replace({"_id": 1}, {"b": 1}, return_document=ReturnDocument.AFTER) == {"_id": 1, "b": 1}


@pytest.mark.parametrize(
    "args, code",
    [
        ({"query": {}}, 9),
        ({"query": {}, "remove": True, "update": {"$set": {"a": 1}}}, 9),
        ({"query": {}, "remove": True, "new": True}, 9),
        ({"query": {}, "remove": True, "upsert": True}, 9),
        ({"query": {}, "update": {"$set": {"a": 1}}, "bogus": 1}, 40415),
        ({"query": {}, "update": 1}, 9),
        ({"query": 1, "update": {"$set": {"a": 1}}}, 14),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_refused(db, args, code):
    with pytest.raises(OperationFailure) as e:
        db.command(SON([("findAndModify", "c"), *args.items()]))
    assert e.value.code == code


def test_errors_are_command_failures(db):
    db.c.create_index("a", unique=True)
    db.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
    with pytest.raises(DuplicateKeyError) as e:
        db.c.find_one_and_update({"_id": 2}, {"$set": {"a": 1}})
    assert e.value.details["ok"] == 0.0
    assert e.value.details["keyPattern"] == {"a": 1} and e.value.details["keyValue"] == {"a": 1}
    with pytest.raises(OperationFailure) as e:
        db.c.find_one_and_update({"_id": 2}, {"$inc": {"a": "x"}})
    assert e.value.code == 14


def test_the_positional_operator(coll):
    coll.insert_one({"_id": 1, "a": [1, 2, 3]})
    assert coll.find_one_and_update({"a": 2}, {"$set": {"a.$": 9}}, return_document=ReturnDocument.AFTER)["a"] == [1, 9, 3]


def test_null_is_as_if_the_argument_were_not_there(coll):
    coll.insert_one({"_id": 1, "a": 1})
    optional = ["query", "sort", "fields", "new", "remove", "upsert", "arrayFilters", "collation", "let"]
    got = coll.database.command("findAndModify", coll.name, update={"$inc": {"a": 1}}, **dict.fromkeys(optional))
    assert got["value"] == {"_id": 1, "a": 1}
    for name in "update", "hint":
        with pytest.raises(OperationFailure):
            coll.database.command("findAndModify", coll.name, **{"update": {"$inc": {"a": 1}}, name: None})
