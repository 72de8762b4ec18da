"""The guides' operations, by mongosh, from the shared conformance suite. It lies beside the checkout, or where OCTAVO_SHARED says."""

import os
import subprocess

import pytest

from conftest import MONGOSH, NODE, ROOT

SHARED = os.environ.get("OCTAVO_SHARED") or os.path.join(ROOT, "..", "shared")
RUN = os.path.join(SHARED, "conformance", "seeds", "run")


@pytest.mark.parametrize("seed", ["05", "08"])
def test_seed(server, seed):
    if not os.path.exists(RUN):
        pytest.skip("no conformance suite: OCTAVO_SHARED names the folder that holds conformance/")
    home = os.path.join(ROOT, "build", "tools", "home")
    os.makedirs(home, exist_ok=True)
    env = {**os.environ, "MONGOSH": MONGOSH, "PATH": os.path.dirname(NODE) + os.pathsep + os.environ["PATH"], "HOME": home}
    r = subprocess.run([RUN, server.uri, seed + "*"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=110)
    assert r.returncode == 0, r.stdout[-4000:]
    assert r.stdout.strip().splitlines()[-1] == "1 passed, 0 failed"
