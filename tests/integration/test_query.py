"""What a filter means: the operators over values, arrays, null and missing fields."""

import datetime
import re

import pytest
from bson import SON, Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo.errors import OperationFailure


def ids(coll, query, docs=None):
    if docs is not None:
        coll.drop()
        coll.insert_many([{"_id": i, **d} if isinstance(d, dict) else d for i, d in enumerate(docs)])
    return sorted(d["_id"] for d in coll.find(query))


A = [
    {"a": 1},  # 0
    {"a": 2.0},  # 1
    {"a": [1, 2]},  # 2
    {"a": []},  # 3
    {"a": None},  # 4
    {},  # 5
    {"a": {"b": 1}},  # 6
    {"a": [{"b": 1}, {"b": 2}]},  # 7
    {"a": "x"},  # 8
    {"a": [[1, 2], 3]},  # 9
    {"a": [None, 5]},  # 10
    {"a": {"b": [1, 2]}},  # 11
    {"a": {"b": None}},  # 12
    {"a": {}},  # 13
    {"a": [{"c": 1}]},  # 14
    {"a": Int64(3)},  # 15
]


@pytest.mark.parametrize(
    "query, want",
    [
        # equality
        ({"a": 1}, [0, 2]),
        ({"a": {"$eq": 2}}, [1, 2]),
        ({"a": 3}, [9, 15]),
        ({"a": [1, 2]}, [2, 9]),
        ({"a": [2, 1]}, []),
        ({"a": []}, [3]),
        ({"a": {"b": 1}}, [6, 7]),
        ({"a": {}}, [13]),
        ({"a": "x"}, [8]),
        ({"a": {"$eq": {"b": 1}}}, [6, 7]),
        # null and missing
        ({"a": None}, [4, 5, 10]),
        ({"a": {"$eq": None}}, [4, 5, 10]),
        ({"a": {"$ne": None}}, [0, 1, 2, 3, 6, 7, 8, 9, 11, 12, 13, 14, 15]),
        ({"a": {"$in": [None, "x"]}}, [4, 5, 8, 10]),
        ({"a": {"$nin": [None, 1]}}, [1, 3, 6, 7, 8, 9, 11, 12, 13, 14, 15]),
        ({"a": {"$gte": None}}, [4, 5, 10]),
        ({"a": {"$lte": None}}, [4, 5, 10]),
        ({"a": {"$gt": None}}, []),
        ({"a": {"$lt": None}}, []),
        ({"a.b": None}, [0, 1, 4, 5, 8, 12, 13, 14, 15]),
        ({"a.b": {"$ne": None}}, [2, 3, 6, 7, 9, 10, 11]),
        ({"a": {"$exists": True}}, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        ({"a": {"$exists": False}}, [5]),
        ({"a": {"$exists": 1}}, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        ({"a": {"$exists": 0}}, [5]),
        ({"a.b": {"$exists": True}}, [6, 7, 11, 12]),
        ({"a.b": {"$exists": False}}, [0, 1, 2, 3, 4, 5, 8, 9, 10, 13, 14, 15]),
        # paths through arrays
        ({"a.b": 1}, [6, 7, 11]),
        ({"a.b": 2}, [7, 11]),
        ({"a.0": 1}, [2]),
        ({"a.1": 2}, [2]),
        ({"a.0.b": 1}, [7]),
        ({"a.1.b": 1}, []),
        ({"a.0": [1, 2]}, [9]),
        ({"a.0.0": 1}, [9]),
        ({"a.b.1": 2}, [11]),
        ({"a.5": {"$exists": False}}, list(range(16))),
        # ranges stay within a type
        ({"a": {"$gt": 1}}, [1, 2, 9, 10, 15]),
        ({"a": {"$gte": 2}}, [1, 2, 9, 10, 15]),
        ({"a": {"$lt": 2}}, [0, 2]),
        ({"a": {"$lte": 1}}, [0, 2]),
        ({"a": {"$gt": ""}}, [8]),
        ({"a": {"$lt": "y"}}, [8]),
        ({"a": {"$gt": 1, "$lt": 2}}, [2]),  # each bound by another element
        ({"a": {"$gt": {}}}, [6, 7, 11, 12, 14]),
        ({"a": {"$gte": []}}, [2, 3, 7, 9, 10, 14]),
        # negations are of the whole predicate
        ({"a": {"$ne": 1}}, [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        ({"a.b": {"$ne": 1}}, [0, 1, 2, 3, 4, 5, 8, 9, 10, 12, 13, 14, 15]),
        ({"a": {"$not": {"$gt": 1}}}, [0, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14]),
        ({"a": {"$not": {"$eq": 1}}}, [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        # sets
        ({"a": {"$in": [1, "x"]}}, [0, 2, 8]),
        ({"a": {"$in": []}}, []),
        ({"a": {"$nin": []}}, list(range(16))),
        ({"a": {"$in": [[1, 2]]}}, [2, 9]),
        ({"a.b": {"$in": [2, None]}}, [0, 1, 4, 5, 7, 8, 11, 12, 13, 14, 15]),
        ({"a": {"$nin": [1, 2, 3]}}, [3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14]),
        # logic
        ({"$and": [{"a": {"$gt": 1}}, {"a": {"$lt": 2}}]}, [2]),
        ({"$or": [{"a": "x"}, {"a": 3}]}, [8, 9, 15]),
        ({"$nor": [{"a": {"$exists": True}}]}, [5]),
        ({"$nor": [{"a": 1}, {"a": {"$ne": 2}}]}, [1]),
        ({"$or": [{"$and": [{"a": 1}, {"_id": 0}]}, {"_id": 5}]}, [0, 5]),
        ({"a": 1, "_id": {"$gt": 0}}, [2]),
        ({"a": {"$gt": 0, "$ne": 1}}, [1, 9, 10, 15]),
        ({}, list(range(16))),
        # array operators
        ({"a": {"$size": 2}}, [2, 7, 9, 10]),
        ({"a": {"$size": 0}}, [3]),
        ({"a": {"$all": [1, 2]}}, [2]),
        ({"a": {"$all": [[1, 2]]}}, [2, 9]),
        ({"a": {"$all": []}}, []),
        ({"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}, [2]),
        ({"a": {"$elemMatch": {"b": 2}}}, [7]),
        ({"a": {"$elemMatch": {"b": {"$exists": False}}}}, [9, 14]),
        # types
        ({"a": {"$type": "string"}}, [8]),
        ({"a": {"$type": "array"}}, [2, 3, 7, 9, 10, 14]),
        ({"a": {"$type": "number"}}, [0, 1, 2, 9, 10, 15]),
        ({"a": {"$type": 10}}, [4, 10]),
        ({"a": {"$type": ["long", "double"]}}, [1, 15]),
        ({"a": {"$mod": [2, 1]}}, [0, 2, 9, 10, 15]),
        ({"a": {"$regex": "^x"}}, [8]),
        ({"a": re.compile("X", re.I)}, [8]),
        ({"a": {"$in": [re.compile("x")]}}, [8]),
        ({"a": {"$not": re.compile("x")}}, [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15]),
        ({"$comment": "nothing", "a": "x"}, [8]),
    ],
    ids=str,
)
def test_operators_over_arrays_null_and_missing(shared_a, query, want):
    assert ids(shared_a, query) == want


@pytest.fixture
def shared_a(client):
    """The documents of A, stored once: nobody changes them."""
    c = client.t_query_shared.a
    if c.estimated_document_count() != len(A):
        c.drop()
        c.insert_many([{"_id": i, **d} for i, d in enumerate(A)])
    return c


def test_numbers_compare_across_types(coll):
    docs = [{"a": 1}, {"a": 1.0}, {"a": Int64(1)}, {"a": Decimal128("1")}, {"a": Decimal128("1.00")}, {"a": 1.5}, {"a": True}]
    for one in (1, 1.0, Int64(1), Decimal128("1.0")):
        assert ids(coll, {"a": one}, docs) == [0, 1, 2, 3, 4]
    assert ids(coll, {"a": {"$gt": 1}}) == [5]
    assert ids(coll, {"a": True}) == [6]


def test_large_integers_are_not_rounded_to_doubles(coll):
    docs = [{"a": Int64(2**53 + 1)}, {"a": Int64(2**53)}, {"a": float(2**53)}]
    assert ids(coll, {"a": float(2**53)}, docs) == [1, 2]
    assert ids(coll, {"a": {"$gt": float(2**53)}}) == [0]


def test_nan_equals_itself_and_is_in_no_range(coll):
    nan = float("nan")
    docs = [{"a": nan}, {"a": 1}, {"a": float("-inf")}, {"a": Decimal128("NaN")}]
    assert ids(coll, {"a": nan}, docs) == [0, 3]
    assert ids(coll, {"a": {"$gt": nan}}) == []
    assert ids(coll, {"a": {"$lt": nan}}) == []
    assert ids(coll, {"a": {"$gte": nan}}) == [0, 3]
    assert ids(coll, {"a": {"$lt": 0}}) == [2]


def test_every_type_is_found_by_equality(coll):
    values = [
        1.5, "text", {"x": 1}, [1, 2], Binary(b"\1\2", 0), Binary(b"\1\2", 5), ObjectId("0123456789abcdef01234567"), True, False,
        datetime.datetime(2020, 1, 2, 3, 4, 5), None, Regex("^a", "i"), 7, Timestamp(5, 6), Int64(2**60), Decimal128("3.14"),
        MinKey(), MaxKey(),
    ]  # fmt: skip
    coll.insert_many([{"_id": i, "v": v} for i, v in enumerate(values)])
    for i, v in enumerate(values):
        want = [i]
        if v == [1, 2] or v is None:
            want = [i]
        assert ids(coll, {"v": {"$eq": v}}) == want, v


def test_objects_are_equal_only_in_the_same_order(coll):
    docs = [{"a": SON([("x", 1), ("y", 2)])}, {"a": SON([("y", 2), ("x", 1)])}]
    assert ids(coll, {"a": SON([("x", 1), ("y", 2)])}, docs) == [0]
    assert ids(coll, {"a.x": 1}) == [0, 1]


def test_minkey_and_maxkey_bound_every_type(coll):
    docs = [{"a": 1}, {"a": "x"}, {"a": None}, {}, {"a": MinKey()}, {"a": MaxKey()}]
    assert ids(coll, {"a": {"$gt": MinKey()}}, docs) == [0, 1, 2, 3, 5]
    assert ids(coll, {"a": {"$lt": MaxKey()}}) == [0, 1, 2, 3, 4]


def test_dates_and_ids_have_ranges(coll):
    d = [datetime.datetime(2020, 1, n) for n in (1, 2, 3)]
    docs = [{"a": x} for x in d]
    assert ids(coll, {"a": {"$gt": d[0], "$lte": d[2]}}, docs) == [1, 2]
    assert ids(coll, {"a": {"$gt": 0}}) == []


def test_strings_compare_by_bytes(coll):
    docs = [{"a": s} for s in ("", "A", "Z", "a", "é", "a\0b")]
    assert ids(coll, {"a": {"$gt": "Z"}}, docs) == [3, 4, 5]
    assert ids(coll, {"a": "a\0b"}) == [5]
    assert ids(coll, {"a": {"$lt": "B"}}) == [0, 1]


def test_a_stored_regex_is_found_by_itself(coll):
    docs = [{"a": Regex("^x", "i")}, {"a": "X1"}, {"a": "y"}]
    assert ids(coll, {"a": Regex("^x", "i")}, docs) == [0, 1]


def test_regex_options(coll):
    docs = [{"a": "one\ntwo"}, {"a": "ONE"}, {"a": "one two"}]
    assert ids(coll, {"a": {"$regex": "^two", "$options": "m"}}, docs) == [0]
    assert ids(coll, {"a": {"$regex": "one.two", "$options": "s"}}) == [0, 2]
    assert ids(coll, {"a": {"$regex": "o n e", "$options": "xi"}}) == [0, 1, 2]
    with pytest.raises(OperationFailure):
        ids(coll, {"a": {"$regex": "x", "$options": "q"}})
    with pytest.raises(OperationFailure):
        ids(coll, {"a": {"$regex": "("}})


@pytest.mark.parametrize(
    "query, code",
    [
        ({"a": {"$foo": 1}}, 2),
        ({"$foo": 1}, 2),
        ({"$and": []}, 2),
        ({"$or": 1}, 2),
        ({"$or": [1]}, 2),
        ({"$nor": {}}, 2),
        ({"a": {"$in": 1}}, 2),
        ({"a": {"$nin": "x"}}, 2),
        ({"a": {"$in": [{"$gt": 1}]}}, 2),
        ({"a": {"$not": 1}}, 2),
        ({"a": {"$not": {}}}, 2),
        ({"a": {"$size": "x"}}, 2),
        ({"a": {"$size": -1}}, 2),
        ({"a": {"$mod": [0, 1]}}, 2),
        ({"a": {"$mod": [1]}}, 2),
        ({"a": {"$elemMatch": 1}}, 2),
        ({"a": {"$all": 1}}, 2),
        ({"a": {"$type": "nothing"}}, 2),
        ({"a": {"$gt": 1, "b": 1}}, 2),
    ],
    ids=str,
)
def test_a_malformed_filter_is_refused(coll, query, code):
    coll.insert_one({"a": 1})
    for run in (lambda: list(coll.find(query)), lambda: coll.count_documents(query), lambda: coll.delete_many(query)):
        with pytest.raises(OperationFailure) as e:
            run()
        assert e.value.code == code
    assert coll.estimated_document_count() == 1


def test_the_words_about_unknown_operators(coll):
    with pytest.raises(OperationFailure, match=r"unknown operator: \$foo"):
        coll.find_one({"a": {"$foo": 1}})
    with pytest.raises(OperationFailure, match=r"unknown top level operator: \$foo\. If you have a field name that starts with"):
        coll.find_one({"$foo": 1})


def test_a_field_may_be_queried_twice_through_and(coll):
    docs = [{"a": [1, 5]}, {"a": [3]}, {"a": 1}]
    assert ids(coll, {"$and": [{"a": 1}, {"a": 5}]}, docs) == [0]


def test_a_malformed_filter_is_refused_even_on_a_missing_collection(db):
    with pytest.raises(OperationFailure):
        list(db.nothing.find({"a": {"$foo": 1}}))


def test_json_schema(coll):
    coll.insert_many([{"_id": 1, "n": 5, "tags": ["a"]}, {"_id": 2, "n": -1}, {"_id": 3, "n": 7, "tags": ["a", "a"]}])
    schema = {
        "required": ["n"],
        "properties": {"n": {"bsonType": "int", "minimum": 0}, "tags": {"uniqueItems": True, "maxItems": 3}},
    }
    assert [d["_id"] for d in coll.find({"$jsonSchema": schema})] == [1]
    assert sorted(d["_id"] for d in coll.find({"$nor": [{"$jsonSchema": schema}]})) == [2, 3]
    coll.create_index("n")
    assert [d["_id"] for d in coll.find({"n": {"$gt": 0}, "$jsonSchema": schema}).hint("n_1")] == [1]
    assert coll.delete_many({"$nor": [{"$jsonSchema": schema}]}).deleted_count == 2
