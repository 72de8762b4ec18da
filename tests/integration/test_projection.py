"""What find returns of a document."""

import pytest
from pymongo.errors import OperationFailure

DOC = {"_id": 1, "a": 1, "b": {"c": 2, "d": 3}, "e": [{"f": 1, "g": 2}, 5, {"f": 3}], "h": None}


@pytest.mark.parametrize(
    "projection, want",
    [
        ({"a": 1}, {"_id": 1, "a": 1}),
        ({"a": True, "_id": 0}, {"a": 1}),
        ({"a": 1.5, "_id": False}, {"a": 1}),
        ({"a": 0}, {"_id": 1, "b": {"c": 2, "d": 3}, "e": DOC["e"], "h": None}),
        ({"_id": 0}, {k: v for k, v in DOC.items() if k != "_id"}),
        ({"_id": 1}, {"_id": 1}),
        ({"b.c": 1, "_id": 0}, {"b": {"c": 2}}),
        ({"b": {"c": 1}, "_id": 0}, {"b": {"c": 2}}),
        ({"b.c": 0, "_id": 0}, {"a": 1, "b": {"d": 3}, "e": DOC["e"], "h": None}),
        ({"e.f": 1, "_id": 0}, {"e": [{"f": 1}, {"f": 3}]}),
        ({"e.g": 0, "_id": 0, "a": 0, "b": 0, "h": 0}, {"e": [{"f": 1}, 5, {"f": 3}]}),
        ({"a.x": 1, "_id": 0}, {}),
        ({"a.x": 0, "_id": 0, "b": 0, "e": 0, "h": 0}, {"a": 1}),
        ({"nothing": 1}, {"_id": 1}),
        ({"h": 1, "_id": 0}, {"h": None}),
        ({"e.f": 1, "a": 1, "_id": 0}, {"a": 1, "e": [{"f": 1}, {"f": 3}]}),
        ({}, DOC),
    ],
    ids=str,
)
def test_inclusion_and_exclusion(coll, projection, want):
    coll.insert_one(DOC)
    got = coll.find_one({}, projection)
    assert got == want
    assert list(got) == [k for k in want]  # the stored order


def test_the_stored_order_is_kept_whatever_the_projection_says(coll):
    coll.insert_one({"_id": 1, "x": 1, "y": 2, "z": 3})
    assert list(coll.find_one({}, {"z": 1, "x": 1})) == ["_id", "x", "z"]


@pytest.mark.parametrize(
    "projection, code",
    [
        ({"a": 1, "b": 0}, 31254),
        ({"a": 0, "b": 1}, 31253),
        ({"b": 1, "b.c": 1}, 31249),
        ({"b.c": 1, "b": 1}, 31250),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(coll, projection, code):
    coll.insert_one(DOC)
    with pytest.raises(OperationFailure) as e:
        coll.find_one({}, projection)
    assert e.value.code == code
    with pytest.raises(OperationFailure):
        coll.database.nothing.find_one({}, projection)  # whether there is a document or not


def test_id_may_be_excluded_from_an_inclusion_and_included_in_an_exclusion(coll):
    coll.insert_one({"_id": 1, "a": 1, "b": 2})
    assert coll.find_one({}, {"a": 1, "_id": 0}) == {"a": 1}
    assert coll.find_one({}, {"a": 0, "_id": 1}) == {"_id": 1, "b": 2}


def test_a_projection_applies_to_later_batches(coll):
    coll.insert_many([{"_id": i, "a": i, "b": 1} for i in range(250)])
    assert all(set(d) == {"_id", "a"} for d in coll.find({}, {"a": 1}, batch_size=10))


def test_find_and_modify_projects_its_value(coll):
    coll.insert_one({"_id": 1, "a": 1, "b": 2})
    assert coll.find_one_and_update({"_id": 1}, {"$inc": {"a": 1}}, projection={"a": 1, "_id": 0}) == {"a": 1}


ARRAYS = {"_id": 1, "x": 0, "a": [1, 2, 3, 4], "b": [{"k": 1}, {"k": 2, "l": 5}], "y": 9}


@pytest.mark.parametrize(
    "query, projection, want",
    [
        ({}, {"a": {"$slice": 2}}, {**ARRAYS, "a": [1, 2]}),
        ({}, {"a": {"$slice": -1}}, {**ARRAYS, "a": [4]}),
        ({}, {"a": {"$slice": [1, 2]}, "y": 1}, {"_id": 1, "a": [2, 3], "y": 9}),
        ({}, {"a": {"$slice": [-2, 1]}, "y": 0, "b": 0}, {"_id": 1, "x": 0, "a": [3]}),
        ({}, {"a": {"$elemMatch": {"$gt": 2}}}, {"_id": 1, "a": [3]}),
        ({}, {"b": {"$elemMatch": {"k": 2}}, "y": 1, "_id": 0}, {"y": 9, "b": [{"k": 2, "l": 5}]}),
        ({}, {"b": {"$elemMatch": {"k": 9}}, "a": 0}, {"_id": 1, "x": 0, "y": 9}),
        ({"a": {"$gt": 2}}, {"a.$": 1}, {"_id": 1, "a": [3]}),
        ({"b.k": 2}, {"b.$": 1, "x": 1}, {"_id": 1, "x": 0, "b": [{"k": 2, "l": 5}]}),
        ({"b": {"$elemMatch": {"k": 2}}}, {"b.$": 1, "a": {"$slice": 1}}, {"_id": 1, "a": [1], "b": [ARRAYS["b"][1]]}),
    ],
    ids=str,
)
def test_operators_of_find(coll, query, projection, want):
    coll.insert_one(ARRAYS)
    for index in (None, "a", "b.k"):
        if index:
            coll.create_index(index)
        got = coll.find_one(query, projection)
        assert got == want
        assert list(got) == list(want)


def test_the_positional_operator_outlives_a_sort_and_a_batch(coll):
    coll.insert_many([{"_id": i, "s": -i, "a": [0] * (i % 5) + [i + 1]} for i in range(120)])
    got = list(coll.find({"a": {"$gt": 0}}, {"a.$": 1}, batch_size=7).sort("s", 1))
    assert got == [{"_id": i, "a": [i + 1]} for i in reversed(range(120))]


@pytest.mark.parametrize(
    "query, projection, code",
    [
        ({"x": 0}, {"a.$": 1}, 51246),
        ({"a": 4}, {"b.$": 1}, 51247),
        ({"a": 4}, {"a.$": 1, "b.$": 1}, 31276),
        ({"a": 4}, {"a.$": 1, "b": {"$elemMatch": {"k": 1}}}, 31255),
        ({"a": 4}, {"a.$.x": 1}, 31394),
        ({}, {"a": {"$slice": "x"}}, 28667),
        ({}, {"a": {"$slice": [0, -1]}}, 28724),
        ({}, {"b.k": {"$elemMatch": {"k": 1}}}, 31275),
        ({}, {"a": {"$meta": "textScore"}}, 238),
        ({}, {"a": {"$nothing": 1}}, 31325),
        ({}, {"a": "$b"}, 238),
    ],
    ids=str,
)
def test_operators_that_do_not_fit_are_refused(coll, query, projection, code):
    coll.insert_one(ARRAYS)
    with pytest.raises(OperationFailure) as e:
        coll.find_one(query, projection)
    assert e.value.code == code


def test_a_document_that_cannot_be_projected_ends_the_cursor_with_an_error(coll):
    coll.insert_many([{"_id": i, "a": [5]} for i in range(3)] + [{"_id": 3, "a": [], "c": 5}])
    cursor = coll.find({"$or": [{"a": 5}, {"c": 5}]}, {"a.$": 1}, batch_size=2)
    with pytest.raises(OperationFailure) as e:
        list(cursor)
    assert e.value.code == 51246


def test_find_and_modify_knows_the_operators(coll):
    coll.insert_one(ARRAYS)
    one = coll.find_one_and_update({"a": 3}, {"$inc": {"x": 1}}, projection={"a.$": 1})
    assert one == {"_id": 1, "a": [3]}
    one = coll.find_one_and_update({"_id": 1}, {"$inc": {"x": 1}}, projection={"a": {"$slice": 1}}, return_document=True)
    assert one == {**ARRAYS, "x": 2, "a": [1]}
    with pytest.raises(OperationFailure) as e:
        coll.find_one_and_update({"a": 3}, {"$inc": {"x": 1}}, projection={"a.$": 1}, return_document=True)
    assert e.value.code == 2
    assert coll.find_one()["x"] == 2


def test_a_stage_has_no_operators_of_find(coll):
    for spec, code in ({"a.$": 1}, 31324), ({"a": {"$elemMatch": {"k": 1}}}, 168), ({"a": {"$slice": 1}}, 28667):
        with pytest.raises(OperationFailure) as e:
            coll.aggregate([{"$project": spec}])
        assert e.value.code == code
