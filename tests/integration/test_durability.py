"""What was acknowledged is there after a restart, and after kill -9 at any moment."""

import os
import random
import signal
import subprocess
import threading
import time

import pymongo
import pytest
from bson import SON
from pymongo.errors import DuplicateKeyError, PyMongoError

from octavo_server import SLOW, Server, program
from wire import Closed, Wire


def client_of(server):
    return pymongo.MongoClient(server.uri, directConnection=True, serverSelectionTimeoutMS=int(5000 * SLOW))


def fill(db):
    db.c.create_index([("a", 1), ("b", -1)])
    db.c.create_index("u", unique=True)
    db.c.insert_many([{"_id": i, "a": i % 10, "b": i, "u": f"u{i}"} for i in range(1000)])
    db.c.update_many({"a": 3}, {"$set": {"changed": True}, "$push": {"l": 1}})
    db.c.delete_many({"a": 7})
    db.gone.insert_one({})
    db.gone.drop()
    db.old.insert_one({"_id": 1})
    db.old.rename("new")


def check(db):
    assert sorted(db.list_collection_names()) == ["c", "new"]
    assert db.c.estimated_document_count() == 900 == db.c.count_documents({})
    assert db.c.count_documents({"changed": True}) == 100 == len(list(db.c.find({"a": 3}, hint="a_1_b_-1")))
    assert db.c.find_one({"_id": 13}) == {"_id": 13, "a": 3, "b": 13, "u": "u13", "changed": True, "l": [1]}
    assert db.c.find_one({"u": "u7"}) is None
    assert list(db.c.index_information()) == ["_id_", "a_1_b_-1", "u_1"]
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"u": "u13"})
    assert db.new.find_one() == {"_id": 1}
    db.c.insert_one({"_id": 7, "a": 7, "b": 7, "u": "u7"})
    db.c.delete_one({"_id": 7})


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_everything_is_there_after(own_server, end):
    s = own_server()
    with client_of(s) as c:
        fill(c.t)
    for _ in range(3):
        getattr(s, end)()
        s.start()
        with client_of(s) as c:
            check(c.t)


@pytest.mark.concurrent
def test_kill_9_under_load_loses_no_acknowledged_write(own_server):
    s = own_server()
    rnd = random.Random(os.environ.get("SEED", 1))
    with client_of(s) as c:
        c.t.c.create_index("k", unique=True)
        c.t.vote.insert_one({"_id": 1, "n": 0, "by": []})
    acknowledged, attempted, lock, number = set(), set(), threading.Lock(), [0]
    votes_told = [0]
    for _ in range(3):
        stop = threading.Event()

        def writer():
            try:
                with Wire(s.port, timeout=20 * SLOW) as w:
                    while not stop.is_set():
                        with lock:
                            number[0] += 1
                            n = number[0]
                            attempted.add(n)
                        r = w.command("t", SON([("insert", "c"), ("documents", [{"_id": n, "k": n, "pad": "x" * (n % 300)}])]))
                        assert r["n"] == 1, r
                        with lock:
                            acknowledged.add(n)
                        r = w.command("t", SON([("update", "vote"), ("updates", [{"q": {"_id": 1, "by": {"$nin": [n]}}, "u": {"$inc": {"n": 1}, "$push": {"by": n}}}])]))
                        with lock:
                            votes_told[0] += r["nModified"]
            except (Closed, OSError):
                pass

        threads = [threading.Thread(target=writer) for _ in range(8)]
        for t in threads:
            t.start()
        time.sleep(rnd.uniform(0.1, 0.6) * SLOW)
        s.kill()
        stop.set()
        for t in threads:
            t.join()
        s.start()
        with client_of(s) as c:
            there = {d["_id"] for d in c.t.c.find({}, {"_id": 1})}
            assert acknowledged <= there <= attempted
            assert {d["k"] for d in c.t.c.find({"k": {"$gt": 0}}, hint="k_1")} == there
            assert c.t.c.estimated_document_count() == len(there)
            vote = c.t.vote.find_one()
            assert vote["n"] == len(vote["by"]) == len(set(vote["by"])) >= votes_told[0]
    assert len(acknowledged) > 100


def test_kill_9_while_indexes_are_built_and_dropped(own_server):
    s = own_server()
    with client_of(s) as c:
        c.t.c.insert_many([{"_id": i, "a": i, "b": -i} for i in range(5000)])
    for n in range(3):
        def ddl():
            try:
                with Wire(s.port, timeout=20 * SLOW) as w:
                    while True:
                        w.command("t", SON([("createIndexes", "c"), ("indexes", [{"key": {"a": 1}, "name": "a"}, {"key": {"b": 1}, "name": "b"}])]))
                        w.command("t", SON([("dropIndexes", "c"), ("index", "*")]))
            except (Closed, OSError):
                pass

        t = threading.Thread(target=ddl)
        t.start()
        time.sleep(0.1 * (n + 1) * SLOW)
        s.kill()
        t.join()
        s.start()
        with client_of(s) as c:
            for name in list(c.t.c.index_information()):
                assert len(list(c.t.c.find({}, hint=name))) == 5000
            c.t.c.create_index("a", name="a")
            assert len(list(c.t.c.find({"a": {"$gte": 0}}, hint="a"))) == 5000
            c.t.c.drop_indexes()


def test_j_true_is_answered(own_server):
    s = own_server()
    with client_of(s) as c:
        coll = c.t.c.with_options(write_concern=pymongo.WriteConcern(w=1, j=True))
        for i in range(20):
            coll.insert_one({"_id": i})
    s.crash_and_restart()
    with client_of(s) as c:
        assert c.t.c.count_documents({}) == 20


def test_the_journal_does_not_grow_without_end(own_server):
    s = own_server()
    with client_of(s) as c:
        for n in range(40):
            c.t.c.replace_one({"_id": 1}, {"_id": 1, "pad": os.urandom(500_000)}, upsert=True)
        assert c.t.c.count_documents({}) == 1
    s.crash_and_restart()
    with client_of(s) as c:
        assert len(c.t.c.find_one()["pad"]) == 500_000


def test_a_second_daemon_on_the_same_data_is_refused(own_server):
    s = own_server()
    with pytest.raises(RuntimeError):
        Server(dbpath=s.dbpath)
    with client_of(s) as c:
        assert c.admin.command("ping")["ok"] == 1.0


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_with_clients_connected(own_server, sig):
    s = own_server()
    wires = [Wire(s.port) for _ in range(5)]
    for w in wires:
        w.command("admin", {"ping": 1})
    s.process.send_signal(sig)
    assert s.process.wait(15 * SLOW) == 0
    for w in wires:
        w.close()


def test_the_shutdown_command(own_server):
    s = own_server()
    with client_of(s) as c:
        c.t.c.insert_one({"_id": 1})
        try:
            c.admin.command("shutdown")
        except PyMongoError:
            pass  # the connection ends
    assert s.process.wait(15 * SLOW) == 0
    s.start()
    with client_of(s) as c:
        assert c.t.c.find_one() == {"_id": 1}


def test_starting_is_quick_and_says_where(own_server):
    start = time.monotonic()
    s = own_server()
    assert time.monotonic() - start < 2 * SLOW
    assert any(line.strip() == f"mongodb://127.0.0.1:{s.port}/" for line in s.log)


def test_options_that_do_not_exist_are_refused():
    r = subprocess.run([program(), "--no-such-option"], capture_output=True, timeout=10)
    assert r.returncode != 0 and (r.stderr or r.stdout)
    r = subprocess.run([program(), "--version"], capture_output=True, timeout=10)
    assert r.returncode == 0 and r.stdout.strip()
    r = subprocess.run([program(), "--help"], capture_output=True, timeout=10)
    assert r.returncode == 0 and b"--dbpath" in r.stdout


def test_a_damaged_block_is_named_and_never_served(own_server):
    server = own_server("--cacheSizeGB", "0.01")
    with client_of(server) as c:
        for i in range(0, 50000, 1000):
            c.d.c.insert_many([{"_id": k, "x": random.randbytes(1500)} for k in range(i, i + 1000)])
    runs = os.path.join(server.dbpath, "runs")
    deadline = time.monotonic() + 30 * SLOW
    sizes, before = [], None
    while (not sizes or sizes != before) and time.monotonic() < deadline:  # until the first runs are written
        time.sleep(0.5)
        before, sizes = sizes, [os.path.getsize(os.path.join(runs, name)) for name in os.listdir(runs)]
    assert server.stop() == 0
    largest = max((os.path.join(runs, name) for name in os.listdir(runs)), key=os.path.getsize)
    with open(largest, "r+b") as f:
        f.seek(os.path.getsize(largest) // 2)
        f.write(b"damage")
    server.start()
    with client_of(server) as c:
        for _ in range(3):
            with pytest.raises(PyMongoError) as e:
                list(c.d.c.find().hint([("$natural", 1)]))
            assert e.value.code == 301  # DataCorruptionDetected
        assert c.d.c.find_one({"_id": 0})["_id"] == 0
    said = [line for line in server.log if "A read of the data files failed" in line]
    assert len(said) == 1 and os.path.basename(largest) in said[0] and "offset" in said[0]
