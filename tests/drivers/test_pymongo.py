"""PyMongo: create, index, query, update, delete, as an application would."""

import datetime

import pymongo
import pytest
from bson import ObjectId
from pymongo.errors import DuplicateKeyError


def crud(client):
    posts = client.blog.posts
    posts.create_index([("tags", 1), ("date", -1)])
    posts.create_index("slug", unique=True)
    ids = posts.insert_many(
        [{"slug": f"p{i}", "tags": ["a", "b"] if i % 2 else ["b"], "date": datetime.datetime(2020, 1, 1 + i), "votes": 0, "voters": []} for i in range(20)]
    ).inserted_ids
    assert all(isinstance(i, ObjectId) for i in ids)
    with pytest.raises(DuplicateKeyError):
        posts.insert_one({"slug": "p3"})
    assert [p["slug"] for p in posts.find({"tags": "a"}).sort("date", -1).limit(2)] == ["p19", "p17"]
    assert posts.count_documents({"tags": {"$in": ["a"]}}) == 10
    for _ in range(2):  # the second vote of the same voter does not count
        posts.update_one({"slug": "p3", "voters": {"$nin": ["bob"]}}, {"$inc": {"votes": 1}, "$push": {"voters": "bob"}})
    assert posts.find_one({"slug": "p3"}, {"_id": 0, "votes": 1, "voters": 1}) == {"votes": 1, "voters": ["bob"]}
    assert posts.find_one_and_delete({"slug": "p0"})["_id"] == ids[0]
    assert posts.delete_many({"tags": "a"}).deleted_count == 10
    assert posts.estimated_document_count() == 9
    assert sorted(posts.index_information()) == ["_id_", "slug_1", "tags_1_date_-1"]
    client.drop_database("blog")
    assert "blog" not in client.list_database_names()


def test_crud(server):
    with pymongo.MongoClient(server.uri) as client:
        crud(client)


@pytest.mark.parametrize("name", ["snappy", "zlib", "zstd"])
def test_crud_with_compression(server, name):
    with pymongo.MongoClient(server.uri, compressors=name) as client:
        crud(client)


def test_a_pool_of_connections(server):
    import concurrent.futures

    with pymongo.MongoClient(server.uri, maxPoolSize=20) as client, concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda i: client.t.c.insert_one({"_id": i}), range(1000)))
        assert client.t.c.count_documents({}) == 1000


def test_a_client_survives_a_restart(server):
    with pymongo.MongoClient(server.uri, serverSelectionTimeoutMS=10000) as client:
        client.t.c.insert_one({"_id": 1})
        port = server.port
        server.args += ["--port", str(port)]
        server.restart()
        assert server.port == port
        for attempt in range(3):
            try:
                assert client.t.c.find_one() == {"_id": 1}
                break
            except pymongo.errors.AutoReconnect:
                assert attempt < 2


def test_sessions_and_raw_batches(server):
    with pymongo.MongoClient(server.uri) as client, client.start_session() as s:
        client.t.c.insert_many([{"_id": i} for i in range(300)], session=s)
        assert sum(1 for _ in client.t.c.find({}, session=s, batch_size=50)) == 300
