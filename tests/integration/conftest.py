"""Fixtures. `db` is an empty database on a shared daemon; `own_server` starts daemons that a test may stop and kill."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import re  # noqa: E402

import pymongo  # noqa: E402
import pytest  # noqa: E402

import suite_report  # noqa: E402
from octavo_server import SLOW, Server  # noqa: E402
from wire import Wire  # noqa: E402


def pytest_configure(config):
    suite_report.configure(config)
    if SLOW != 1:
        config.inicfg["timeout"] = str(int(120 * SLOW))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, exitstatus):
    suite_report.summary(terminalreporter, exitstatus)


class Shared:
    """The daemon that most tests share; started anew, with its output shown, if a test made it die."""

    server = None

    @classmethod
    def get(cls):
        if cls.server is None or not cls.server.alive():
            if cls.server:
                cls.server.close()
            cls.server = Server("--setParameter", "enableTestCommands=1")
        return cls.server


@pytest.fixture(scope="session", autouse=True)
def _end_shared():
    yield
    if Shared.server:
        status = Shared.server.close()
        assert status == 0, f"the daemon ended with status {status}:\n{Shared.server.tail()}"


@pytest.fixture
def server():
    shared = Shared.get()
    yield shared
    if not shared.alive():
        pytest.fail(f"octavod died with status {shared.process.returncode}:\n{shared.tail(80)}")


@pytest.fixture
def client(server):
    c = pymongo.MongoClient(server.uri, serverSelectionTimeoutMS=int(5000 * SLOW), directConnection=True)
    yield c
    c.close()


@pytest.fixture
def db(client, request):
    name = "t_" + re.sub(r"\W", "_", request.node.name)[:50]
    client.drop_database(name)
    yield client[name]
    try:
        client.drop_database(name)
    except pymongo.errors.PyMongoError:
        pass  # the server fixture says what happened


@pytest.fixture
def coll(db):
    return db.c


@pytest.fixture
def wire(server):
    with Wire(server.port, timeout=10 * SLOW) as w:
        yield w


@pytest.fixture
def connect(server):
    """connect(): another raw connection to the shared daemon."""
    opened = []

    def make():
        opened.append(Wire(server.port, timeout=10 * SLOW))
        return opened[-1]

    yield make
    for w in opened:
        w.close()


@pytest.fixture
def own_server():
    """own_server(*args): a daemon of the test's own."""
    started = []

    def start(*args, **kw):
        started.append(Server(*args, **kw))
        return started[-1]

    yield start
    for s in started:
        s.close()


@pytest.fixture
def failpoint(client):
    """failpoint(data, mode={"times": 1}, name="failCommand") sets one; it is off again after the test."""
    names = set()

    def set_it(data, mode=None, name="failCommand"):
        names.add(name)
        client.admin.command("configureFailPoint", name, mode=mode or {"times": 1}, data=data)

    yield set_it
    for name in names:
        client.admin.command("configureFailPoint", name, mode="off")
