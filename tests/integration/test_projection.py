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
