"""The Node driver and mongosh."""

import os

from conftest import HERE, MONGOSH, NODE


def test_node_driver(server, run):
    assert "node: all right" in run(NODE, os.path.join(HERE, "node.js"), server.uri)


def mongosh(run, *args):
    home = os.path.join(HERE, "..", "..", "build", "tools", "home")
    os.makedirs(home, exist_ok=True)
    return run(MONGOSH, "--quiet", "--norc", *args, HOME=home, XDG_CONFIG_HOME=home)


def test_mongosh_script(server, run):
    script = "const assert = require('node:assert');\n" + open(os.path.join(HERE, "mongosh.js")).read()
    assert "mongosh: all right" in mongosh(run, server.uri, "--eval", script)


def test_mongosh_one_liners(server, run):
    assert mongosh(run, server.uri + "test", "--eval", "db.c.insertOne({_id: 1, x: 'y'}).acknowledged").strip() == "true"
    assert mongosh(run, server.uri + "test", "--eval", "EJSON.stringify(db.c.find().toArray())").strip() == '[{"_id":1,"x":"y"}]'
    out = mongosh(run, server.uri, "--eval", "show dbs")
    assert "test" in out
    assert "c" in mongosh(run, server.uri + "test", "--eval", "show collections").split()
