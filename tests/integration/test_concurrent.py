"""Many clients, one document: nothing is lost and nothing is done twice."""

import threading
import time

import pymongo
import pytest
from bson import SON

from octavo_server import SLOW
from wire import Wire, op_msg

pytestmark = pytest.mark.concurrent


def together(n, work):
    """Runs work(i) in n threads that start at once; raises what any of them raised."""
    errors, barrier = [], threading.Barrier(n)

    def run(i):
        try:
            barrier.wait(30)
            work(i)
        except BaseException as e:  # noqa: B036
            errors.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(110 * SLOW)
        assert not t.is_alive(), "a client never got its answer"
    if errors:
        raise errors[0]


def test_the_guarded_vote_of_50_clients(server, db):
    """$nin guards, $inc and $push change: each voter counts once, however often and however many at once they try."""
    db.c.insert_one({"_id": "post", "voters": [], "votes": 0})
    counted = [0] * 50

    def vote(i):
        with Wire(server.port, timeout=60 * SLOW) as w:
            for attempt in range(10):
                who = f"user{(i + attempt * 7) % 40}"
                reply = w.command(
                    db.name,
                    SON(
                        [
                            ("update", "c"),
                            (
                                "updates",
                                [
                                    {
                                        "q": {"_id": "post", "voters": {"$nin": [who]}},
                                        "u": {"$inc": {"votes": 1}, "$push": {"voters": who}},
                                    }
                                ],
                            ),
                        ]
                    ),
                )
                assert reply["ok"] == 1.0 and reply["n"] == reply["nModified"], reply
                counted[i] += reply["nModified"]

    together(50, vote)
    doc = db.c.find_one()
    assert doc["votes"] == 40 == len(doc["voters"]) == len(set(doc["voters"]))
    assert sum(counted) == 40


def test_the_guarded_vote_by_find_and_modify(server, db):
    db.c.insert_one({"_id": "post", "voters": [], "votes": 0})
    won = []

    def vote(i):
        with Wire(server.port, timeout=60 * SLOW) as w:
            for who in range(20):
                reply = w.command(
                    db.name,
                    SON(
                        [
                            ("findAndModify", "c"),
                            ("query", {"_id": "post", "voters": {"$ne": who}}),
                            ("update", {"$inc": {"votes": 1}, "$addToSet": {"voters": who}}),
                            ("new", True),
                        ]
                    ),
                )
                assert reply["ok"] == 1.0, reply
                if reply["value"]:
                    won.append(reply["value"]["votes"])

    together(30, vote)
    assert sorted(won) == list(range(1, 21))  # each count was seen by exactly one
    assert db.c.find_one()["votes"] == 20


def test_a_counter(server, db):
    db.c.insert_one({"_id": 1, "n": 0})

    def count(i):
        with Wire(server.port, timeout=60 * SLOW) as w:
            for _ in range(40):
                r = w.command(db.name, SON([("update", "c"), ("updates", [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}])]))
                assert r["nModified"] == 1, r

    together(50, count)
    assert db.c.find_one() == {"_id": 1, "n": 2000}


def test_an_upsert_happens_once(server, db):
    made = []

    def upsert(i):
        with Wire(server.port, timeout=60 * SLOW) as w:
            for k in range(20):
                r = w.command(
                    db.name,
                    SON([("update", "c"), ("updates", [{"q": {"_id": k}, "u": {"$inc": {"n": 1}}, "upsert": True}])]),
                )
                assert r["ok"] == 1.0 and "writeErrors" not in r, r
                made.extend(u["_id"] for u in r.get("upserted", []))

    together(20, upsert)
    assert sorted(made) == list(range(20))
    assert {d["_id"]: d["n"] for d in db.c.find()} == {k: 20 for k in range(20)}


def test_a_unique_key_goes_to_one(server, db):
    db.c.create_index("k", unique=True)
    won = []

    def insert(i):
        with Wire(server.port, timeout=60 * SLOW) as w:
            for k in range(30):
                r = w.command(db.name, SON([("insert", "c"), ("documents", [{"k": k, "by": i}])]))
                if r["n"]:
                    won.append(k)
                else:
                    assert r["writeErrors"][0]["code"] == 11000, r

    together(20, insert)
    assert sorted(won) == list(range(30))
    assert db.c.count_documents({}) == 30


def test_readers_see_whole_documents_while_writers_write(server, db):
    db.c.insert_many([{"_id": i, "a": 0, "b": 0, "pad": ""} for i in range(20)])
    stop = threading.Event()

    def work(i):
        with Wire(server.port, timeout=60 * SLOW) as w:
            if i < 4:
                for n in range(1, 151):
                    w.command(
                        db.name,
                        SON([("update", "c"), ("updates", [{"q": {"_id": (n * 7 + i) % 20}, "u": {"$inc": {"a": 1, "b": 1}, "$set": {"pad": "x" * (n % 50 * 40)}}}])]),
                    )
                if i == 0:
                    stop.set()
            else:
                while not stop.is_set():
                    docs = w.command(db.name, SON([("find", "c")]))["cursor"]["firstBatch"]
                    assert len(docs) == 20
                    assert all(d["a"] == d["b"] for d in docs)

    together(8, work)
    assert sum(d["a"] for d in db.c.find()) == 600


def test_money_is_neither_made_nor_lost_by_moves_between_lists(server, db):
    """Each move takes an item off one document by a guard and puts it on another: items are never in two places for long."""
    db.c.insert_many([{"_id": 0, "items": list(range(100))}, {"_id": 1, "items": []}])

    def move(i):
        with Wire(server.port, timeout=60 * SLOW) as w:
            for item in range(100):
                r = w.command(db.name, SON([("update", "c"), ("updates", [{"q": {"_id": 0, "items": item}, "u": {"$pull": {"items": item}}}])]))
                if r["nModified"]:
                    w.command(db.name, SON([("update", "c"), ("updates", [{"q": {"_id": 1}, "u": {"$push": {"items": item}}}])]))

    together(10, move)
    assert db.c.find_one({"_id": 0})["items"] == []
    assert sorted(db.c.find_one({"_id": 1})["items"]) == list(range(100))


def test_collections_come_and_go_under_writers(server, db):
    stop = threading.Event()

    def work(i):
        with Wire(server.port, timeout=60 * SLOW) as w:
            if i == 0:
                for n in range(25):
                    w.command(db.name, {"drop": "c"})
                    w.command(db.name, SON([("createIndexes", "c"), ("indexes", [{"key": {"k": 1}, "name": "k_1"}])]))
                stop.set()
            else:
                n = 0
                while not stop.is_set():
                    n += 1
                    r = w.command(db.name, SON([("insert", "c"), ("documents", [{"k": n}])]))
                    assert r["ok"] == 1.0 or r["code"] in (26, 117, 175, 276, 215), r
                    r = w.command(db.name, SON([("find", "c"), ("filter", {"k": {"$gte": 0}})]))
                    assert r["ok"] == 1.0 or r["code"] in (43, 175, 276), r

    together(6, work)
    by_scan = db.c.count_documents({})
    assert len(list(db.c.find({"k": {"$gte": 0}}, hint="k_1"))) == by_scan


def test_clients_that_vanish_leave_nothing_behind(server, db):
    def work(i):
        for n in range(30):
            w = Wire(server.port, timeout=60 * SLOW)
            w.send(op_msg(SON([("update", "c"), ("updates", [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "upsert": True}]), ("$db", db.name)])))
            w.close()  # before the answer

    together(10, work)
    with Wire(server.port, timeout=30 * SLOW) as w:
        r = w.command(db.name, SON([("update", "c"), ("updates", [{"q": {"_id": 1}, "u": {"$set": {"done": 1}}, "upsert": True}])]))
        assert r["n"] == 1
    assert db.c.find_one({"_id": 1})["done"] == 1


def test_two_loops_one_database(own_server):
    s = own_server("--setParameter", "enableTestCommands=1")
    clients = [pymongo.MongoClient(s.uri, directConnection=True) for _ in range(8)]
    try:
        together(8, lambda i: [clients[i].t.c.insert_one({"_id": f"{i}-{n}"}) for n in range(50)])
        assert clients[0].t.c.count_documents({}) == 400
    finally:
        for c in clients:
            c.close()


def test_a_huge_filter_holds_nobody_up(server, db):
    """Its reading alone takes many slices: the connections of the same loop are served meanwhile."""
    db.c.insert_many([{"_id": i} for i in range(100)])
    worst, done = [0.0], threading.Event()
    huge = op_msg({"find": "c", "filter": {"_id": {"$in": list(range(1_000_000, 0, -1))}}, "$db": db.name})

    def ask():
        try:
            with Wire(server.port, timeout=60 * SLOW) as w:
                for _ in range(2):
                    assert len(w.ask(huge).doc["cursor"]["firstBatch"]) == 99
        finally:
            done.set()

    def ping():
        with Wire(server.port, timeout=60 * SLOW) as w:
            while not done.wait(0.002):
                began = time.monotonic()
                assert w.command("admin", {"ping": 1})["ok"] == 1.0
                worst[0] = max(worst[0], time.monotonic() - began)

    together(2, lambda i: (ask, ping)[i]())
    assert worst[0] < 0.4 * SLOW
