"""Errors as every command gives them: code, name, words."""

import pytest
from bson import SON
from pymongo.errors import OperationFailure


def reply(wire, db, cmd):
    doc = wire.command(db, cmd)
    assert list(doc)[:4] == ["ok", "errmsg", "code", "codeName"]
    assert doc["ok"] == 0.0 and isinstance(doc["ok"], float)
    return doc["code"], doc["codeName"], doc["errmsg"]


@pytest.mark.parametrize(
    "command, code, name, text",
    [
        ({"nonsense": 1}, 59, "CommandNotFound", "no such command: 'nonsense'"),
        ({"Find": "c"}, 59, "CommandNotFound", "no such command: 'Find'"),
        ({"find": "c", "foo": 1}, 40415, "IDLUnknownField", "BSON field 'find.foo' is an unknown field."),
        ({"insert": "c", "documents": [{}], "foo": 1}, 40415, "IDLUnknownField", "BSON field 'insert.foo' is an unknown field."),
        ({"insert": "c"}, 40414, "IDLFailedToParse", "BSON field 'insert.documents' is missing but a required field"),
        ({"update": "c"}, 40414, "IDLFailedToParse", "BSON field 'update.updates' is missing but a required field"),
        ({"delete": "c"}, 40414, "IDLFailedToParse", "BSON field 'delete.deletes' is missing but a required field"),
        ({"createIndexes": "c"}, 40414, "IDLFailedToParse", "BSON field 'createIndexes.indexes' is missing but a required field"),
        ({"distinct": "c"}, 40414, "IDLFailedToParse", "BSON field 'distinct.key' is missing but a required field"),
        ({"find": "c", "filter": "x"}, 14, "TypeMismatch", "BSON field 'find.filter' is the wrong type 'string', expected type 'object'"),
        (
            {"find": "c", "limit": "x"},
            14,
            "TypeMismatch",
            "BSON field 'find.limit' is the wrong type 'string', expected types '[long, int, decimal, double']",
        ),
        ({"insert": "c", "documents": 1}, 14, "TypeMismatch", "BSON field 'insert.documents' is the wrong type 'int', expected type 'array'"),
        ({"find": 1}, 73, "InvalidNamespace", None),
        ({"find": ""}, 73, "InvalidNamespace", None),
        ({"insert": 5, "documents": [{}]}, 73, "InvalidNamespace", None),
        ({"count": ""}, 73, "InvalidNamespace", None),
        ({"listIndexes": "missing"}, 26, "NamespaceNotFound", None),
        ({"getMore": 5, "collection": "c"}, 14, "TypeMismatch", None),
        ({"find": "c", "skip": -1}, 51024, "Location51024", "BSON field 'skip' value must be >= 0, actual value '-1'"),
    ],
    ids=str,
)
def test_code_name_and_words(wire, db, command, code, name, text):
    got = reply(wire, db.name, command)
    assert got[:2] == (code, name), got
    if text:
        assert got[2] == text


def test_a_connection_lives_on_after_an_error(wire, db):
    for _ in range(100):
        wire.command(db.name, {"nonsense": 1})
    assert wire.command(db.name, {"ping": 1}) == {"ok": 1.0}


def test_generic_arguments_are_accepted_everywhere(wire, db):
    generic = {
        "comment": "x",
        "maxTimeMS": 10000,
        "lsid": {"id": __import__("bson").Binary(b"0123456789abcdef", 4)},
        "$readPreference": {"mode": "primaryPreferred"},
        "apiVersion": "1",
    }
    for cmd in ({"find": "c"}, {"count": "c"}, {"ping": 1}, {"insert": "c", "documents": [{}]}, {"listCollections": 1}):
        doc = wire.command(db.name, SON([*cmd.items(), *generic.items()]))
        assert doc["ok"] == 1.0, (cmd, doc)


def test_admin_commands_belong_to_admin(wire):
    for cmd in ({"listDatabases": 1}, {"getLog": "global"}, {"getParameter": "*"}):
        doc = wire.command("test", cmd)
        assert doc["ok"] == 0.0 and doc["code"] == 13
        assert doc["errmsg"] == f"{list(cmd)[0]} may only be run against the admin database."


def test_a_time_limit_that_runs_out(db, failpoint):
    failpoint({"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 200})
    try:
        db.c.find_one(max_time_ms=50)
    except OperationFailure as e:
        assert e.code == 50


def test_diagnostics_that_tools_read(client):
    admin = client.admin
    info = admin.command("buildInfo")
    assert info["version"].startswith("8.0.") and info["versionArray"][:2] == [8, 0] and len(info["versionArray"]) == 4
    assert info["bits"] == 64 and info["maxBsonObjectSize"] == 16777216 and info["ok"] == 1.0
    assert admin.command("ping") == {"ok": 1.0}
    assert admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == []
    assert admin.command("whatsmyuri")["you"].startswith("127.0.0.1:")
    status = admin.command("serverStatus")
    for field in ("host", "version", "process", "pid", "uptime", "localTime", "connections", "opcounters", "mem", "network"):
        assert field in status, field
    assert status["connections"]["current"] >= 1
    log = admin.command({"getLog": "global"})
    assert log["totalLinesWritten"] >= len(log["log"]) > 0
    assert "global" in admin.command({"getLog": "*"})["names"]
    assert admin.command({"getLog": "startupWarnings"})["ok"] == 1.0
    assert admin.command("getCmdLineOpts")["argv"][0]
    assert admin.command({"getParameter": 1, "featureCompatibilityVersion": 1})["featureCompatibilityVersion"]["version"] == "8.0"
    assert "find" in admin.command("listCommands")["commands"]
    assert admin.command("hostInfo")["system"]
    assert client.server_info()["version"] == info["version"]


def test_search_is_refused_as_without_its_service(wire, db):
    for command in (
        SON([("createSearchIndexes", "c"), ("indexes", [{"definition": {}}])]),
        SON([("dropSearchIndex", "c"), ("name", "x")]),
        SON([("aggregate", "c"), ("pipeline", [{"$listSearchIndexes": {}}]), ("cursor", {})]),
        SON([("aggregate", "c"), ("pipeline", [{"$vectorSearch": {}}]), ("cursor", {})]),
    ):
        reply = wire.command(db.name, command)
        assert (reply["code"], reply["codeName"]) == (31082, "SearchNotEnabled") and "Atlas" in reply["errmsg"]


def test_lists_have_no_read_concern_but_the_default(wire, db):
    for command in ({"listCollections": 1}, {"listIndexes": "c"}):
        reply = wire.command(db.name, SON([*command.items(), ("readConcern", {"level": "snapshot"})]))
        assert (reply["ok"], reply["code"]) == (0.0, 72), reply
