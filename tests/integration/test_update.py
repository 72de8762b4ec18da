"""Update operators, replacements, upserts."""

import datetime

import pytest
from bson import SON, Decimal128, Int64, ObjectId
from pymongo.errors import OperationFailure, WriteError


def updated(coll, doc, update, **kw):
    coll.replace_one({"_id": 1}, {"_id": 1, **doc}, upsert=True)
    coll.update_one(kw.pop("query", {"_id": 1}), update, **kw)
    got = coll.find_one({"_id": 1})
    del got["_id"]
    return got


@pytest.mark.parametrize(
    "doc, update, want",
    [
        # $set
        ({"a": 1}, {"$set": {"a": 2}}, {"a": 2}),
        ({"a": 1}, {"$set": {"b": 2}}, {"a": 1, "b": 2}),
        ({"a": 1}, {"$set": {"a": "x"}}, {"a": "x"}),
        ({}, {"$set": {"a.b.c": 1}}, {"a": {"b": {"c": 1}}}),
        ({"a": {"x": 1}}, {"$set": {"a.b": 2}}, {"a": {"x": 1, "b": 2}}),
        ({"a": [1, 2, 3]}, {"$set": {"a.1": 9}}, {"a": [1, 9, 3]}),
        ({"a": [1]}, {"$set": {"a.3": 9}}, {"a": [1, None, None, 9]}),
        ({"a": [{"b": 1}]}, {"$set": {"a.0.b": 2}}, {"a": [{"b": 2}]}),
        ({}, {"$set": {"a.0": 1}}, {"a": {"0": 1}}),
        ({"a": 1}, {"$set": {}}, {"a": 1}),
        # $unset
        ({"a": 1, "b": 2}, {"$unset": {"a": ""}}, {"b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"$unset": {"a.b": 1}}, {"a": {"c": 2}}),
        ({"a": [1, 2, 3]}, {"$unset": {"a.1": 1}}, {"a": [1, None, 3]}),
        ({"a": 1}, {"$unset": {"b": 1, "c.d": 1, "a.x": 1}}, {"a": 1}),
        # $inc
        ({"a": 1}, {"$inc": {"a": 2}}, {"a": 3}),
        ({}, {"$inc": {"a": 2}}, {"a": 2}),
        ({"a": 1}, {"$inc": {"a": -1.5}}, {"a": -0.5}),
        ({}, {"$inc": {"a.b": 2}}, {"a": {"b": 2}}),
        ({"a": [1, 2]}, {"$inc": {"a.0": 5}}, {"a": [6, 2]}),
        ({"a": 0.5}, {"$inc": {"a": 1}}, {"a": 1.5}),
        # $mul $min $max
        ({"a": 3}, {"$mul": {"a": 2}}, {"a": 6}),
        ({}, {"$mul": {"a": 2}}, {"a": 0}),
        ({"a": 3}, {"$min": {"a": 2}}, {"a": 2}),
        ({"a": 3}, {"$max": {"a": 2, "b": 1}}, {"a": 3, "b": 1}),
        # $push
        ({}, {"$push": {"a": 1}}, {"a": [1]}),
        ({"a": [1]}, {"$push": {"a": 2}}, {"a": [1, 2]}),
        ({"a": [1]}, {"$push": {"a": [2, 3]}}, {"a": [1, [2, 3]]}),
        ({"a": [1]}, {"$push": {"a": {"$each": [2, 3]}}}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"$push": {"a": {"$each": []}}}, {"a": [1]}),
        ({"a": [1, 2]}, {"$push": {"a": {"$each": [9], "$position": 0}}}, {"a": [9, 1, 2]}),
        ({"a": [1, 2]}, {"$push": {"a": {"$each": [9], "$position": -1}}}, {"a": [1, 9, 2]}),
        ({"a": [1, 2]}, {"$push": {"a": {"$each": [3, 4], "$slice": -3}}}, {"a": [2, 3, 4]}),
        ({"a": [1, 2]}, {"$push": {"a": {"$each": [3], "$slice": 2}}}, {"a": [1, 2]}),
        ({"a": [3, 1]}, {"$push": {"a": {"$each": [2], "$sort": 1}}}, {"a": [1, 2, 3]}),
        (
            {"a": [{"s": 3}, {"s": 1}]},
            {"$push": {"a": {"$each": [{"s": 2}], "$sort": {"s": -1}, "$slice": 2}}},
            {"a": [{"s": 3}, {"s": 2}]},
        ),
        ({}, {"$push": {"a.b": 1}}, {"a": {"b": [1]}}),
        # $addToSet
        ({"a": [1]}, {"$addToSet": {"a": 1}}, {"a": [1]}),
        ({"a": [1]}, {"$addToSet": {"a": 2}}, {"a": [1, 2]}),
        ({}, {"$addToSet": {"a": 1}}, {"a": [1]}),
        ({"a": [1]}, {"$addToSet": {"a": {"$each": [1, 2, 2, 3]}}}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"$addToSet": {"a": 1.0}}, {"a": [1]}),
        ({"a": [{"x": 1}]}, {"$addToSet": {"a": {"x": 1}}}, {"a": [{"x": 1}]}),
        # $pull
        ({"a": [1, 2, 1]}, {"$pull": {"a": 1}}, {"a": [2]}),
        ({"a": [1, 5, 9]}, {"$pull": {"a": {"$gt": 4}}}, {"a": [1]}),
        ({"a": [{"x": 1, "y": 2}, {"x": 2}]}, {"$pull": {"a": {"x": 1}}}, {"a": [{"x": 2}]}),
        ({"a": ["x", "y"]}, {"$pull": {"a": {"$in": ["x", "z"]}}}, {"a": ["y"]}),
        ({"b": 1}, {"$pull": {"a": 1}}, {"b": 1}),
        ({"a": [1]}, {"$pull": {"a": 2}}, {"a": [1]}),
        ({"a": {"b": [1, 2]}}, {"$pull": {"a.b": 2}}, {"a": {"b": [1]}}),
        # $pullAll $pop
        ({"a": [1, 2, 1, 3]}, {"$pullAll": {"a": [1, 3]}}, {"a": [2]}),
        ({"a": [1, 2, 3]}, {"$pop": {"a": 1}}, {"a": [1, 2]}),
        ({"a": [1, 2, 3]}, {"$pop": {"a": -1}}, {"a": [2, 3]}),
        # $rename $setOnInsert $bit
        ({"a": 1, "b": 2}, {"$rename": {"a": "c"}}, {"b": 2, "c": 1}),
        ({"a": 1}, {"$setOnInsert": {"a": 2}}, {"a": 1}),
        ({"a": 13}, {"$bit": {"a": {"and": 10}}}, {"a": 8}),
        # several at once, replacement
        ({"a": 1, "b": [1]}, {"$inc": {"a": 1}, "$push": {"b": 2}, "$set": {"c": 3}}, {"a": 2, "b": [1, 2], "c": 3}),
    ],
    ids=str,
)
def test_operators(coll, doc, update, want):
    got = updated(coll, doc, update)
    assert got == want
    assert list(got) == list(want)


def test_inc_keeps_or_widens_the_type(coll):
    assert type(updated(coll, {"a": 1}, {"$inc": {"a": 1}})["a"]) is int
    assert updated(coll, {"a": 2**31 - 1}, {"$inc": {"a": 1}}) == {"a": 2**31}
    assert isinstance(updated(coll, {"a": 2**31 - 1}, {"$inc": {"a": 1}})["a"], Int64)
    assert isinstance(updated(coll, {"a": 1}, {"$inc": {"a": Int64(1)}})["a"], Int64)
    assert isinstance(updated(coll, {"a": 1}, {"$inc": {"a": 1.0}})["a"], float)
    assert updated(coll, {"a": 1}, {"$inc": {"a": Decimal128("0.1")}})["a"] == Decimal128("1.1")


def test_set_keeps_the_order_of_fields_and_adds_new_ones_by_name(coll):
    got = updated(coll, {"z": 1, "y": 2}, {"$set": {"d": 1, "c": 1, "z": 9}})
    assert list(got.items()) == [("z", 9), ("y", 2), ("c", 1), ("d", 1)]


def test_an_update_that_changes_nothing_matches_but_modifies_nothing(coll):
    coll.insert_one({"_id": 1, "a": 1, "b": [1]})
    for u in ({"$set": {"a": 1}}, {"$inc": {"a": 0}}, {"$unset": {"x": 1}}, {"$pull": {"b": 5}}, {"$addToSet": {"b": 1}}):
        r = coll.update_one({"_id": 1}, u)
        assert (r.matched_count, r.modified_count) == (1, 0), u
    r = coll.replace_one({"_id": 1}, {"_id": 1, "a": 1, "b": [1]})
    assert (r.matched_count, r.modified_count) == (1, 0)


def test_replacement_keeps_the_id(coll):
    coll.insert_one({"_id": 1, "a": 1, "b": 1})
    assert coll.replace_one({"a": 1}, {"c": 1}).modified_count == 1
    assert coll.find_one() == {"_id": 1, "c": 1}


def test_update_many_counts(coll):
    coll.insert_many([{"_id": i, "a": i % 3} for i in range(30)])
    r = coll.update_many({"a": {"$in": [0, 1]}}, {"$set": {"a": 1}})
    assert (r.matched_count, r.modified_count) == (20, 10)


def test_update_one_changes_one(coll):
    coll.insert_many([{"_id": i, "a": 1} for i in range(5)])
    assert coll.update_one({"a": 1}, {"$set": {"a": 2}}).modified_count == 1
    assert coll.count_documents({"a": 2}) == 1


def test_no_document_is_updated_twice_by_update_many(coll):
    coll.create_index("a")
    coll.insert_many([{"_id": i, "a": i} for i in range(500)])
    coll.update_many({"a": {"$gte": 0}}, {"$inc": {"a": 1000}})  # moves each ahead of the scan
    assert sorted(d["a"] for d in coll.find()) == list(range(1000, 1500))


def test_the_positional_operator(coll):
    assert updated(coll, {"a": [1, 2, 3]}, {"$set": {"a.$": 9}}, query={"a": 2}) == {"a": [1, 9, 3]}
    got = updated(coll, {"a": [{"k": 1, "v": 1}, {"k": 2, "v": 1}]}, {"$inc": {"a.$.v": 5}}, query={"a.k": 2})
    assert got == {"a": [{"k": 1, "v": 1}, {"k": 2, "v": 6}]}
    got = updated(coll, {"a": [{"k": 1, "v": 1}, {"k": 1, "v": 2}]}, {"$set": {"a.$.v": 9}}, query={"a": {"$elemMatch": {"k": 1, "v": 2}}})
    assert got["a"][1]["v"] == 9


def test_current_date(coll):
    got = updated(coll, {}, {"$currentDate": {"d": True}})
    assert abs(got["d"] - datetime.datetime.utcnow()) < datetime.timedelta(seconds=10)


# --- upserts


@pytest.mark.parametrize(
    "query, update, want",
    [
        ({"_id": 5}, {"$set": {"a": 1}}, {"_id": 5, "a": 1}),
        ({"_id": 5, "b": 2}, {"$set": {"a": 1}}, {"_id": 5, "b": 2, "a": 1}),
        ({"_id": 5, "b": {"$eq": 2}}, {"$inc": {"n": 1}}, {"_id": 5, "b": 2, "n": 1}),
        ({"_id": 5, "b": {"$gt": 2}}, {"$set": {"a": 1}}, {"_id": 5, "a": 1}),
        ({"_id": 5, "b": {"$in": [7]}}, {"$set": {"a": 1}}, {"_id": 5, "b": 7, "a": 1}),
        ({"_id": 5, "b": {"$in": [7, 8]}}, {"$set": {"a": 1}}, {"_id": 5, "a": 1}),
        ({"$and": [{"_id": 5}, {"b": 3}]}, {"$set": {"a": 1}}, {"_id": 5, "b": 3, "a": 1}),
        ({"$or": [{"_id": 5}]}, {"$set": {"a": 1}}, {"_id": 5, "a": 1}),
        ({"_id": 5, "x.y": 1}, {"$set": {"a": 1}}, {"_id": 5, "x": {"y": 1}, "a": 1}),
        ({"_id": 5, "b": {"$ne": 2}}, {"$setOnInsert": {"c": 3}, "$set": {"a": 1}}, {"_id": 5, "a": 1, "c": 3}),
        ({"_id": 5, "b": 1}, {"$inc": {"b": 2}}, {"_id": 5, "b": 3}),
        ({"_id": 5, "b": {"$nin": ["u"]}}, {"$push": {"b": "u"}, "$inc": {"n": 1}}, {"_id": 5, "b": ["u"], "n": 1}),
    ],
    ids=str,
)
def test_an_upsert_takes_the_equalities_of_the_query(coll, query, update, want):
    r = coll.update_one(query, update, upsert=True)
    assert r.matched_count == 0 and r.modified_count in (0, None) and r.upserted_id == 5
    assert coll.find_one() == want
    assert coll.count_documents({}) == 1


def test_an_upsert_that_matches_is_an_update(coll):
    coll.insert_one({"_id": 5, "a": 1})
    r = coll.update_one({"_id": 5}, {"$inc": {"a": 1}, "$setOnInsert": {"b": 1}}, upsert=True)
    assert r.upserted_id is None and r.matched_count == 1
    assert coll.find_one() == {"_id": 5, "a": 2}


def test_an_upsert_without_an_id_makes_one(coll):
    r = coll.update_one({"a": 1}, {"$set": {"b": 2}}, upsert=True)
    assert isinstance(r.upserted_id, ObjectId)
    doc = coll.find_one()
    assert list(doc) == ["_id", "a", "b"] and doc["_id"] == r.upserted_id


def test_a_replacement_upsert_takes_only_the_id_of_the_query(coll):
    r = coll.replace_one({"_id": 5, "a": 1}, {"b": 2}, upsert=True)
    assert r.upserted_id == 5
    assert coll.find_one() == {"_id": 5, "b": 2}


def test_the_upsert_reply(coll, db):
    ups = [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": True}, {"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": True}]
    reply = db.command("update", "c", updates=ups)
    assert reply == {"n": 2, "nModified": 0, "upserted": [{"index": 0, "_id": 1}], "ok": 1.0}


# --- errors


@pytest.mark.parametrize(
    "doc, update, code, text",
    [
        ({"a": 1}, {"$set": {"_id": 2}}, 66, "Performing an update on the path '_id' would modify the immutable field '_id'"),
        ({"a": 1}, {"$set": {"a.b": 1}}, 28, "Cannot create field 'b' in element {a: 1}"),
        ({"a": None}, {"$set": {"a.b": 1}}, 28, "Cannot create field 'b' in element {a: null}"),
        ({"a": "x"}, {"$inc": {"a": 1}}, 14, "Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 'a' of non-numeric type string"),
        ({"a": 1}, {"$inc": {"a": "x"}}, 14, 'Cannot increment with non-numeric argument: {a: "x"}'),
        ({"a": Int64(2**63 - 1)}, {"$inc": {"a": 1}}, 2, "Failed to apply $inc operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}"),
        ({"a": 1}, {"$push": {"a": 1}}, 2, "The field 'a' must be an array but is of type int in document {_id: 1}"),
        ({"a": 1}, {"$addToSet": {"a": 1}}, 2, "Cannot apply $addToSet to non-array field. Field named 'a' has non-array type int"),
        ({"a": 1}, {"$pull": {"a": 1}}, 2, "Cannot apply $pull to a non-array value"),
        ({"a": 1}, {"$pop": {"a": 1}}, 14, "Path 'a' contains an element of non-array type 'int'"),
        ({"a": 1}, {"$set": {"a": 1}, "$inc": {"a": 1}}, 40, "Updating the path 'a' would create a conflict at 'a'"),
        ({"a": 1}, {"$set": {"a": 1, "a.b": 1}}, 40, "Updating the path 'a.b' would create a conflict at 'a'"),
        ({"a": 1}, {"$foo": {"a": 1}}, 9, "Unknown modifier: $foo. Expected a valid update modifier or pipeline-style update specified as an array"),
        ({"a": 1}, {"$set": {"a..b": 1}}, 56, "The update path 'a..b' contains an empty field name, which is not allowed."),
        ({"a": 1}, {"$set": {"a.$": 1}}, 2, "The positional operator did not find the match needed from the query."),
        ({"a": 1}, {"$set": 1}, 9, "Modifiers operate on fields but we found type int instead. For example: {$mod: {<field>: ...}} not {$set: 1}"),
    ],
    ids=str,
)
def test_errors_name_the_field_and_change_nothing(coll, doc, update, code, text):
    coll.insert_one({"_id": 1, **doc})
    with pytest.raises(WriteError) as e:
        coll.update_one({"_id": 1}, update)
    assert e.value.code == code
    assert text in e.value.details["errmsg"]
    assert coll.find_one() == {"_id": 1, **doc}


def test_run_time_errors_carry_the_executors_prefix(coll):
    coll.insert_one({"_id": 1, "a": "x"})
    with pytest.raises(WriteError) as e:
        coll.update_one({"_id": 1}, {"$inc": {"a": 1}})
    assert e.value.details["errmsg"].startswith("Plan executor error during update :: caused by :: ")


def test_a_replacement_may_not_change_the_id(coll):
    coll.insert_one({"_id": 1, "a": 1})
    with pytest.raises(WriteError) as e:
        coll.replace_one({"a": 1}, {"_id": 2, "a": 1})
    assert e.value.code == 66
    assert "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2" in str(e.value)


def test_an_update_may_not_make_the_document_too_large(coll):
    coll.insert_one({"_id": 1, "a": "x" * (10 << 20)})
    with pytest.raises(WriteError) as e:
        coll.update_one({"_id": 1}, {"$set": {"b": "y" * (7 << 20)}})
    assert e.value.code in (17419, 10334)
    assert "b" not in coll.find_one()


def test_an_upsert_with_contradictory_equalities_is_refused(coll):
    with pytest.raises(WriteError) as e:
        coll.update_one({"$and": [{"a": 1}, {"a": 2}]}, {"$set": {"b": 1}}, upsert=True)
    assert e.value.code == 54


def test_ids_of_query_and_update_may_not_differ_in_an_upsert(coll):
    with pytest.raises(WriteError) as e:
        coll.update_one({"_id": 1}, {"$set": {"_id": 2}}, upsert=True)
    assert e.value.code == 66
    assert coll.count_documents({}) == 0


def test_multi_with_a_replacement_is_refused(db):
    reply = db.command("update", "c", updates=[{"q": {}, "u": {"a": 1}, "multi": True}], check=False)
    code = reply.get("code") or reply["writeErrors"][0]["code"]
    assert code == 9


def test_a_mixed_update_is_refused(db, coll):
    coll.insert_one({"_id": 1})
    for u in (SON([("$set", {"a": 1}), ("b", 1)]), SON([("b", 1), ("$set", {"a": 1})])):
        reply = db.command("update", "c", updates=[{"q": {}, "u": u}], check=False)
        assert reply.get("code") or reply["writeErrors"]
    assert coll.find_one() == {"_id": 1}


def test_array_filters(coll):
    coll.insert_one({"_id": 1, "a": [1, 5, 9]})
    coll.update_one({"_id": 1}, {"$set": {"a.$[x]": 0}}, array_filters=[{"x": {"$gt": 4}}])
    assert coll.find_one()["a"] == [1, 0, 0]
    coll.update_one({"_id": 1}, {"$inc": {"a.$[]": 1}})
    assert coll.find_one()["a"] == [2, 1, 1]
    for update, filters, code in (({"$set": {"a.$[y]": 1}}, [{"x": 1}], 2), ({"$set": {"a.0": 1}}, [{"x": 1}], 9)):
        with pytest.raises(OperationFailure) as e:
            coll.update_one({"_id": 1}, update, array_filters=filters)
        assert e.value.code == code
