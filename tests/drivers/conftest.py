"""A daemon for each test, and the tools of build/tools."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))

import pytest  # noqa: E402

import suite_report  # noqa: E402
from octavo_server import Server  # noqa: E402

TOOLS = os.path.join(ROOT, "build", "tools")
NODE = os.path.join(TOOLS, "node", "bin", "node")
MONGOSH = os.path.join(TOOLS, "js", "node_modules", ".bin", "mongosh")


def pytest_configure(config):
    suite_report.configure(config)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, exitstatus):
    suite_report.summary(terminalreporter, exitstatus)


@pytest.fixture
def server():
    s = Server()
    yield s
    status = s.close()
    assert status == 0, f"octavod ended with status {status}:\n{s.tail()}"


@pytest.fixture
def run():
    """run(program, *args): its output; fails, showing it, unless the exit status is 0."""

    def go(*argv, timeout=100, **env):
        path = os.path.dirname(NODE) + os.pathsep + os.environ["PATH"]
        full = {**os.environ, "PATH": path, "NODE_PATH": os.path.join(TOOLS, "js", "node_modules"), **env}
        r = subprocess.run(argv, env=full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        assert r.returncode == 0, f"{argv[0]} ended with status {r.returncode}:\n{r.stdout[-6000:]}"
        return r.stdout

    return go
