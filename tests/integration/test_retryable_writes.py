"""Retryable writes: a command with a session and a txnNumber happens once, however often it is sent, and is answered alike."""

import threading
import uuid

import pytest
from bson import SON, Binary, Int64
from wire import Wire


def session():
    return {"id": Binary(uuid.uuid4().bytes, 4)}


class Sender:
    """Sends commands of one session, by hand: a driver would take another txnNumber each time."""

    def __init__(self, w, db):
        self.w, self.db, self.lsid, self.n = w, db, session(), 0

    def new(self, command):
        self.n += 1
        return self.again(command)

    def again(self, command, n=None):
        return self.w.command(self.db, SON([*command.items(), ("lsid", self.lsid), ("txnNumber", Int64(n or self.n))]))


@pytest.fixture
def send(wire, db):
    return Sender(wire, db.name)


def ok(reply):
    assert reply["ok"] == 1.0, reply
    return {k: v for k, v in reply.items() if k not in ("ok", "$clusterTime", "operationTime")}


def test_an_insert_happens_once(send, coll):
    command = {"insert": "c", "documents": [{"x": 1}, {"x": 2}, {"x": 3}]}
    assert ok(send.new(command)) == {"n": 3}
    assert ok(send.again(command)) == {"n": 3, "retriedStmtIds": [0, 1, 2]}
    assert coll.count_documents({}) == 3
    assert ok(send.new(command)) == {"n": 3}
    assert coll.count_documents({}) == 6


def test_a_large_insert_happens_once(send, coll):
    command = {"insert": "c", "documents": [{"_id": i, "x": "x" * 100} for i in range(5000)]}
    assert ok(send.new(command)) == {"n": 5000}
    assert ok(send.again(command)) == {"n": 5000, "retriedStmtIds": list(range(5000))}
    small = {"insert": "c", "documents": [{"_id": 5000 + i} for i in range(200)]}
    assert ok(send.new(small)) == {"n": 200}
    assert ok(send.again(small))["retriedStmtIds"] == list(range(200))
    assert coll.count_documents({}) == 5200


def test_statements_that_failed_are_run_again(send, coll):
    coll.insert_one({"_id": 2})
    command = {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}
    first = ok(send.new(command))
    assert first["n"] == 1 and first["writeErrors"][0]["code"] == 11000
    coll.delete_one({"_id": 2})
    assert ok(send.again(command)) == {"n": 3, "retriedStmtIds": [0]}
    assert ok(send.again(command)) == {"n": 3, "retriedStmtIds": [0, 1, 2]}
    assert coll.count_documents({}) == 3


def test_errors_of_unordered_statements_keep_their_place(send, coll):
    coll.insert_one({"_id": 2})
    command = {"insert": "c", "ordered": False, "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}
    assert ok(send.new(command))["n"] == 2
    again = ok(send.again(command))
    assert again["n"] == 2 and again["retriedStmtIds"] == [0, 2]
    assert [e["index"] for e in again["writeErrors"]] == [1]


def test_updates_happen_once(send, coll):
    coll.insert_many([{"_id": 1, "n": 0}, {"_id": 2, "n": 0}])
    inc = {"$inc": {"n": 1}}
    command = {
        "update": "c",
        "updates": [
            {"q": {"_id": 1}, "u": inc},
            {"q": {"_id": 9}, "u": inc},
            {"q": {"_id": 2}, "u": {"$set": {"n": 0}}},
            {"q": {"_id": 3}, "u": inc, "upsert": True},
            {"q": {"k": "y"}, "u": inc, "upsert": True},
        ],
    }
    first = ok(send.new(command))
    assert first["n"] == 4 and first["nModified"] == 1
    assert [u["index"] for u in first["upserted"]] == [3, 4] and first["upserted"][0]["_id"] == 3
    again = ok(send.again(command))
    assert again.pop("retriedStmtIds") == [0, 3, 4]  # what changed nothing is run again
    assert again == first
    assert {d["_id"]: d["n"] for d in coll.find()} == {1: 1, 2: 0, 3: 1, first["upserted"][1]["_id"]: 1}


def test_deletes_happen_once(send, coll):
    coll.insert_many([{"x": 1} for _ in range(5)])
    command = {"delete": "c", "deletes": [{"q": {"x": 1}, "limit": 1}] * 2}
    assert ok(send.new(command)) == {"n": 2}
    assert ok(send.again(command)) == {"n": 2, "retriedStmtIds": [0, 1]}
    assert coll.count_documents({}) == 3


@pytest.mark.parametrize(
    "more",
    [
        {"update": {"$inc": {"n": 1}}},
        {"update": {"$inc": {"n": 1}}, "new": True},
        {"update": {"$inc": {"n": 1}}, "new": True, "fields": {"n": 1, "_id": 0}},
        {"query": {"_id": 7}, "update": {"$inc": {"n": 1}}, "upsert": True},
        {"query": {"_id": 7}, "update": {"$inc": {"n": 1}}, "upsert": True, "new": True},
        {"remove": True},
        {"remove": True, "fields": {"n": 1}},
    ],
)
def test_find_and_modify_answers_the_same_image(send, coll, more):
    coll.insert_one({"_id": 1, "n": 0, "s": "s" * 1000})
    command = {"findAndModify": "c", "query": {"_id": 1}, **more}
    first = ok(send.new(command))
    coll.update_many({}, {"$set": {"n": 100}})
    again = ok(send.again(command))
    assert again.pop("retriedStmtId") == 0
    assert again == first
    assert all(d["n"] == 100 for d in coll.find())


def test_a_retry_that_asks_for_something_else_is_refused(send, coll):
    coll.insert_one({"_id": 1, "n": 0})
    command = {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}}
    ok(send.new(command))
    assert send.again({**command, "new": True})["code"] == 40611
    assert send.again({"findAndModify": "c", "query": {"_id": 1}, "remove": True})["code"] == 40606
    assert list(coll.find()) == [{"_id": 1, "n": 1}]


def test_an_older_number_is_refused(send, coll):
    ok(send.new({"insert": "c", "documents": [{}]}))
    ok(send.new({"insert": "c", "documents": [{}]}))
    for command in ({"insert": "c", "documents": [{}]}, {"findAndModify": "c", "update": {"x": 1}, "upsert": True}):
        reply = send.again(command, n=1)
        assert reply["ok"] == 0.0 and reply["code"] == 225 and reply["codeName"] == "TransactionTooOld"
        assert "Retryable write with txnNumber 1 is prohibited on session" in reply["errmsg"]
        assert "because a newer retryable write with txnNumber 2 has already started on this session." in reply["errmsg"]
    assert coll.count_documents({}) == 2


def test_statement_ids_can_be_given(send, coll):
    ok(send.new({"insert": "c", "documents": [{"_id": i} for i in range(3)], "stmtId": 10}))
    reply = ok(send.again({"insert": "c", "documents": [{"_id": 0}, {"_id": 2}, {"_id": 7}], "stmtIds": [10, 12, 20]}))
    assert reply == {"n": 3, "retriedStmtIds": [10, 12]}
    assert send.again({"insert": "c", "documents": [{}], "stmtIds": [1, 2]})["ok"] == 0.0
    assert sorted(d["_id"] for d in coll.find()) == [0, 1, 2, 7]


def test_what_is_no_retryable_write(send, coll):
    coll.insert_one({"_id": 1})
    reply = ok(send.new({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": True}]}))
    error = reply["writeErrors"][0]
    assert error["code"] == 72 and error["errmsg"] == "Cannot use (or request) retryable writes with multi=true"
    error = ok(send.new({"delete": "c", "deletes": [{"q": {}, "limit": 0}]}))["writeErrors"][0]
    assert error["code"] == 72 and error["errmsg"] == "Cannot use (or request) retryable writes with limit=0"
    assert send.new({"find": "c"})["code"] == 50768
    assert list(coll.find()) == [{"_id": 1}]


def test_numbers_need_a_session(wire, db):
    insert = SON([("insert", "c"), ("documents", [{}])])
    assert wire.command(db.name, {**insert, "txnNumber": Int64(1)})["code"] == 72
    assert wire.command(db.name, {**insert, "lsid": session(), "txnNumber": Int64(-1)})["code"] == 72
    assert wire.command(db.name, {**insert, "lsid": session(), "txnNumber": 1})["code"] == 14
    reply = wire.command(
        db.name, {**insert, "lsid": session(), "txnNumber": Int64(1), "autocommit": False, "startTransaction": True}
    )
    assert reply["code"] in (20, 263)
    assert db.c.count_documents({}) == 0


def test_sessions_do_not_meet(wire, db, coll):
    a, b = Sender(wire, db.name), Sender(wire, db.name)
    for s in (a, b):
        assert ok(s.new({"insert": "c", "documents": [{}]})) == {"n": 1}
    assert coll.count_documents({}) == 2


@pytest.mark.concurrent
def test_a_retry_that_overtakes_waits_for_the_original(server, db, coll):
    """Many connections send one and the same command: it happens once."""
    coll.insert_one({"_id": 1, "n": 0})
    lsid, replies = session(), []

    def one():
        with Wire(server.port) as w:
            for n in range(1, 30):
                command = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
                replies.append((n, w.command(db.name, {**command, "lsid": lsid, "txnNumber": Int64(n)})))

    threads = [threading.Thread(target=one) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(r["ok"] == 1.0 or r["code"] == 225 for _, r in replies)
    first = [n for n, r in replies if r["ok"] and "retriedStmtIds" not in r]
    assert len(first) == len(set(first)), "each number at most once"
    assert coll.find_one()["n"] == len(first)


def test_outcomes_survive_a_kill(own_server):
    s = own_server()
    with Wire(s.port) as w:
        send = Sender(w, "r")
        insert = {"insert": "c", "documents": [{"_id": i, "n": 0} for i in range(300)]}
        change = {"findAndModify": "c", "query": {"_id": 5}, "update": {"$inc": {"n": 1}}, "new": True}
        other = Sender(w, "r")
        ok(other.new(insert))
        first = ok(send.new(change))
    s.kill()
    s.start()
    with Wire(s.port) as w:
        send.w = other.w = w
        assert ok(other.again(insert)) == {"n": 300, "retriedStmtIds": list(range(300))}
        again = ok(send.again(change))
        assert again.pop("retriedStmtId") == 0 and again == first
        assert ok(w.command("r", {"count": "c", "query": {"n": 1}}))["n"] == 1


def test_labels_of_errors(send, failpoint, coll):
    failpoint({"failCommands": ["insert"], "errorCode": 189})
    reply = send.new({"insert": "c", "documents": [{}]})
    assert reply["code"] == 189 and "RetryableWriteError" in reply["errorLabels"]
    failpoint({"failCommands": ["insert"], "errorCode": 189})
    reply = send.w.command(send.db, {"insert": "c", "documents": [{}]})
    assert reply["code"] == 189 and "errorLabels" not in reply
    failpoint({"failCommands": ["insert"], "writeConcernError": {"code": 91, "errmsg": "shutting down"}})
    reply = send.new({"insert": "c", "documents": [{}]})
    assert reply["ok"] == 1.0 and reply["errorLabels"] == ["RetryableWriteError"]
    failpoint({"failCommands": ["insert"], "errorCode": 11000})
    assert "errorLabels" not in send.new({"insert": "c", "documents": [{}]})


def test_a_driver_writes_with_retries_on_a_replica_set(own_server):
    import pymongo

    s = own_server("--replSet", "rs0", "--setParameter", "enableTestCommands=1")
    with pymongo.MongoClient(s.uri, directConnection=True, retryWrites=True) as c:
        c.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data={"failCommands": ["insert"], "closeConnection": True})
        c.t.c.insert_one({"_id": 1})
        c.t.c.insert_many([{} for _ in range(500)])
        assert c.t.c.find_one_and_update({"_id": 1}, {"$set": {"a": 1}}, return_document=True) == {"_id": 1, "a": 1}
        assert c.t.c.count_documents({}) == 501


def test_a_write_that_fails_as_it_commits(send, failpoint, coll):
    from wire import Closed

    insert = {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}
    failpoint({"closeConnection": False, "failBeforeCommitExceptionCode": 8}, name="onPrimaryTransactionalWrite")
    reply = send.new(insert)
    assert reply["ok"] == 0.0 and reply["code"] == 8
    assert coll.count_documents({}) == 0
    assert ok(send.again(insert)) == {"n": 2}
    failpoint({}, name="onPrimaryTransactionalWrite")
    with pytest.raises(Closed):
        send.new({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}]})
    assert coll.find_one({"_id": 1}) == {"_id": 1, "a": 1}


def test_kills_between_write_and_answer(own_server):
    """Sessions that count up while the daemon is killed: each sends its last command again, and no step is lost or doubled."""
    import time

    from wire import Closed

    s = own_server()
    counters = [Sender(None, "r") for _ in range(4)]
    inc = [{"findAndModify": "c", "query": {"_id": i}, "update": {"$inc": {"n": 1}}, "new": True, "upsert": True} for i in range(4)]
    unsure = [False] * 4

    def count(i):
        c = counters[i]
        try:
            with Wire(s.port) as c.w:
                if unsure[i]:
                    assert ok(c.again(inc[i]))["value"]["n"] == c.n
                unsure[i] = True
                while True:
                    assert ok(c.new(inc[i]))["value"]["n"] == c.n, "one more each time"
        except (Closed, OSError):
            pass

    failures = []

    def guarded(i):
        try:
            count(i)
        except BaseException as e:
            failures.append(e)

    for _ in range(4):
        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        time.sleep(0.25)
        s.kill()
        for t in threads:
            t.join()
        assert not failures, failures
        s.start()
    with Wire(s.port) as w:
        for i, c in enumerate(counters):
            c.w = w
            assert ok(c.again(inc[i]))["value"]["n"] == c.n
            assert c.n > 10
        found = w.command("r", {"find": "c"})["cursor"]["firstBatch"]
        assert {d["_id"]: d["n"] for d in found} == {i: c.n for i, c in enumerate(counters)}
