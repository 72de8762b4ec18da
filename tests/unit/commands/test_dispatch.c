/* What holds for all commands, and the small ones: names, databases, fields, generic arguments, replies, hello, fail points, parameters. */
#include <stdlib.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/commands/failpoint.h"
#include "server/conf/config.h"
#include "server/session/cursors.h"
#include "tests/lib/db.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

static struct db db;
static struct server s;
static struct client client;
static struct config conf;
static struct arena *a;
static struct buf reply, text;
static struct command_ctx *cx;
static struct request req;
static struct op_host host;

static void wake(struct op_host *h, struct operation *op)
{
    (void)h;
    (void)op;
}

static void setup(void)
{
    struct err err;
    a = arena_new(0);
    err_init(&err, a);
    db_new(&db);
    s = (struct server){.engine = db.e, .config = &conf, .compressors = 1u << 1 | 1u << 3};
    memset(s.process_id, 7, sizeof(s.process_id));
    s.start_wall_ms = clock_wall_ms();
    s.start_mono_us = clock_mono_us();
    ck_assert_int_eq(catalog_open(db.e, &s.catalog, &err), 0);
    s.cursors = cursors_new(db.e, s.catalog);
    s.failpoints = failpoints_new();
    conf = (struct config){.enable_test_commands = true, .port = 1};
    client = (struct client){.id = 3, .addr = "127.0.0.1:5", .local = "127.0.0.1:1"};
    host.wake = wake;
    buf_init(&reply);
    buf_init(&text);
    req = (struct request){0};
}

static void teardown(void)
{
    failpoints_free(s.failpoints);
    cursors_free(s.cursors);
    catalog_close(s.catalog);
    buf_free(&reply);
    buf_free(&text);
    arena_free(a);
    db_free(&db);
}

static void start(const char *on, const uint8_t *body)
{
    struct biter it;
    struct belem e;
    biter_init(&it, body);
    ck_assert(biter_next(&it, &e));
    req.body = body;
    req.db = on;
    req.name = e.name;
    reply.len = 0;
    eng_step_enter(db.e);
    cx = command_start(&s, &client, &req, a, &reply);
    cx->op.host = &host;
    eng_step_leave(db.e);
}

static enum op_status step(void)
{
    eng_step_enter(db.e);
    enum op_status st = cx->op.step(&cx->op);
    if (st == OP_DONE)
        command_finish(cx);
    eng_step_leave(db.e);
    return st;
}

/* Runs it to its end and gives the reply as the shell shows it. */
static const char *run_doc(const char *on, const uint8_t *body)
{
    enum op_status st;
    start(on, body);
    while ((st = step()) != OP_DONE) {
        int64_t wait = cx->op.wake_at_us - clock_mono_us();
        if (st == OP_WAIT && wait > 0)
            usleep((useconds_t)wait);
        db_work(&db);
    }
    text.len = 0;
    bval_to_shell(&text, bval_from_doc(reply.p), 1 << 20);
    buf_byte(&text, 0);
    return (const char *)text.p;
}

static const char *run(const char *on, const char *json)
{
    return run_doc(on, J(json));
}

#define FAILS(on, json, code_, words)                                                                             \
    do {                                                                                                          \
        const char *got = run(on, json);                                                                          \
        ck_assert_msg(bval_f64(bdoc_get(reply.p, "ok")) == 0, "%s\n%s", json, got);                               \
        ck_assert_msg(bval_i32(bdoc_get(reply.p, "code")) == (code_) && strstr(got, words), "%s\n%s", json, got); \
    } while (0)
#define WORKS(on, json)                                                             \
    do {                                                                            \
        const char *got = run(on, json);                                            \
        ck_assert_msg(bval_f64(bdoc_get(reply.p, "ok")) == 1, "%s\n%s", json, got); \
    } while (0)

START_TEST(names_of_commands_and_databases)
{
    FAILS("t", "{nope: 1}", 59, "no such command: 'nope'");
    FAILS("t", "{Ping: 1}", 59, "no such command: 'Ping'");
    ck_assert_str_eq(run("t", "{ping: 1}"), "{ ok: 1.0 }");
    WORKS("t", "{buildinfo: 1}");
    WORKS("t", "{ismaster: 1}");
    FAILS(NULL, "{ping: 1}", 40571, "OP_MSG requests require a $db argument");
    FAILS("", "{ping: 1}", 73, "Invalid database name: ''");
    FAILS("a.b", "{ping: 1}", 73, "Invalid database name: 'a.b'");
    FAILS("t", "{getLog: '*'}", 13, "getLog may only be run against the admin database.");
}
END_TEST

START_TEST(fields_are_known_and_given_once)
{
    FAILS("t", "{ping: 1, foo: 1}", 40415, "BSON field 'ping.foo' is an unknown field.");
    FAILS("t", "{find: 'c', limit: 1, limit: 2}", 40413, "BSON field 'find.limit' is a duplicate field");
    FAILS("t", "{find: 'c', comment: 1, comment: 2}", 40413, "BSON field 'find.comment' is a duplicate field");
    WORKS("t", "{ping: 1, comment: {a: 1}, ~readPreference: {mode: 'nearest'}, apiVersion: '1', apiStrict: true}");
    struct sequence seq = {"nonsense", NULL, 0, 0};
    req.seqs = &seq;
    req.n_seqs = 1;
    FAILS("t", "{insert: 'c'}", 40415, "BSON field 'insert.nonsense' is an unknown field.");
}
END_TEST

START_TEST(generic_arguments)
{
    FAILS("t", "{ping: 1, maxTimeMS: -1}", ERR_BAD_VALUE, "-1 value for maxTimeMS is out of range [0, 2147483647]");
    FAILS("t", "{ping: 1, maxTimeMS: 1.5}", ERR_FAILED_TO_PARSE, "Expected an integer: maxTimeMS: 1.5");
    FAILS("t", "{ping: 1, readConcern: {level: 1}}", ERR_TYPE_MISMATCH,
          "BSON field 'readConcern.level' is the wrong type 'int', expected type 'string'");
    FAILS("t", "{ping: 1, readConcern: {level: 'Local'}}", ERR_BAD_VALUE,
          "Enumeration value 'Local' for field 'readConcern.level' is not a valid value.");
    FAILS("t", "{ping: 1, readConcern: {atClusterTime: 1}}", ERR_TYPE_MISMATCH,
          "BSON field 'readConcern.atClusterTime' is the wrong type 'int', expected type 'timestamp'");
    FAILS("t", "{ping: 1, maxTimeMS: 'x'}", 14, "'ping.maxTimeMS' is the wrong type 'string'");
    FAILS("t", "{ping: 1, apiVersion: '2'}", 322, "API version must be");
    FAILS("t", "{buildInfo: 1, apiVersion: '1', apiStrict: true}", 323, "not in API Version 1");
    FAILS("t", "{ping: 1, lsid: {}}", 40414, "lsid.id");
    FAILS("t", "{ping: 1, lsid: 5}", 14, "lsid");
    FAILS("t", "{drop: 'c', writeConcern: {w: 2}}", 2, "cannot use 'w' > 1 when a host is not replicated");
    FAILS("t", "{drop: 'c', writeConcern: {w: 51}}", 9, "w has to be a non-negative number");
    FAILS("t", "{drop: 'c', writeConcern: {j: true, fsync: true}}", 9, "fsync and j options cannot be used together");
    FAILS("t", "{drop: 'c', writeConcern: {foo: 1}}", 40415, "foo");
    FAILS("t", "{insert: 'c', documents: [{}], txnNumber: {'$numberLong': '1'}}", 72,
          "Transaction number requires a session ID");
    FAILS("t", "{insert: 'c', documents: [{}], autocommit: false}", 20, "Transaction numbers are only allowed");
    FAILS("t", "{find: 'c', readConcern: {level: 'nope'}}", 2, "nope");
    FAILS("t", "{find: 'c', readConcern: {level: 'linearizable'}}", 123, "replica set");
}
END_TEST

START_TEST(a_member_of_a_set_tells_the_time)
{
    WORKS("t", "{ping: 1}");
    ck_assert(bval_is_missing(bdoc_get(reply.p, "operationTime")));
    s.set_name = "rs";
    WORKS("t", "{ping: 1}");
    ck_assert_int_eq(bdoc_get(reply.p, "operationTime").type, BSON_TYPE_TIMESTAMP);
    ck_assert_int_eq(bdoc_get(reply.p, "$clusterTime").type, BSON_TYPE_DOCUMENT);
    const char *hello = run("t", "{hello: 1}");
    ck_assert_msg(strstr(hello, "setName: \"rs\"") && strstr(hello, "me: \"127.0.0.1:1\""), "%s", hello);
    start("t", J("{insert: 'c', documents: [{}]}"));
    ck_assert(cx->journaled); /* the default of a set is w: "majority" */
    start("t", J("{insert: 'c', documents: [{}], writeConcern: {w: 1}}"));
    ck_assert(!cx->journaled);
    start("t", J("{insert: 'c', documents: [{}], writeConcern: {w: 1, j: true}}"));
    ck_assert(cx->journaled);
    s.advertised = "db:2";
    hello = run("t", "{hello: 1}");
    ck_assert_msg(strstr(hello, "hosts: [ \"db:2\" ]") && strstr(hello, "primary: \"db:2\""), "%s", hello);
}
END_TEST

START_TEST(hello_and_its_metadata)
{
    static const char meta[] =
        "{hello: 1, client: {application: {name: 'app'}, driver: {name: 'd', version: '1'}, os: {type: 'x'}}}";
    FAILS("t", "{hello: 1, client: {driver: {name: 'd', version: '1'}}}", 183, "'os'");
    ck_assert(!client.got_metadata);
    WORKS("t", meta);
    ck_assert_str_eq(client.app_name, "app");
    FAILS("t", meta, 186, "The client metadata document may only be sent in the first hello");
    FAILS("t", "{hello: 1, loadBalanced: true}", 354, "load balancer");
    const char *got = run("t", "{hello: 1, compression: ['lzma', 'zstd', 'zlib', 'snappy', 'zstd']}");
    ck_assert_msg(strstr(got, "compression: [ \"zstd\", \"snappy\" ]") != NULL, "%s", got); /* what the server offers */
    ck_assert_uint_eq(client.compressors, 1u << 1 | 1u << 3);
}
END_TEST

START_TEST(hello_waits_and_streams)
{
    static const char same[] =
        "{hello: 1, maxAwaitTimeMS: 60, topologyVersion: {processId: {'$oid': '070707070707070707070707'}, "
        "counter: {'$numberLong': '0'}}}";
    static const char other[] = "{hello: 1, maxAwaitTimeMS: 60000, topologyVersion: {processId: {'$oid': "
                                "'080707070707070707070707'}, counter: {'$numberLong': '0'}}}";
    int64_t begin = clock_mono_us();
    WORKS("t", same);
    ck_assert_int_ge(clock_mono_us() - begin, 60000);
    ck_assert(!cx->exhaust_more);
    start("t", J(other));
    ck_assert_int_eq(step(), OP_DONE);
    req.exhaust_allowed = true;
    WORKS("t", same);
    ck_assert(cx->exhaust_more);
    req.continued = true; /* the client knows our version by now */
    start("t", J(other));
    ck_assert_int_eq(step(), OP_WAIT);
    atomic_store(&cx->op.interrupt, 11600);
    ck_assert_int_eq(step(), OP_DONE);
    ck_assert_int_eq(bval_i32(bdoc_get(reply.p, "code")), 11600);
    req.continued = false;
    FAILS("t", "{hello: 1}", 51756, "exhaust");
    req.exhaust_allowed = false;
    FAILS("t", "{hello: 1, maxAwaitTimeMS: 1}", 31368, "topologyVersion");
}
END_TEST

START_TEST(fail_points)
{
    static const char set[] =
        "{configureFailPoint: 'failCommand', mode: {times: 2}, data: {failCommands: ['ping'], errorCode: 96, "
        "errorLabels: ['A']}}";
    FAILS("t", set, 13, "admin database");
    WORKS("admin", set);
    WORKS("t", "{buildInfo: 1}");
    ck_assert_str_eq(run("t", "{ping: 1}"),
                     "{ ok: 0.0, errmsg: \"Failing command via 'failCommand' failpoint\", code: 96, "
                     "codeName: \"OperationFailed\", errorLabels: [ \"A\" ] }");
    FAILS("t", "{ping: 1}", 96, "failCommand");
    WORKS("t", "{ping: 1}");
    WORKS(
        "admin",
        "{configureFailPoint: 'failCommand', mode: {skip: 1}, data: {failCommands: ['ping'], closeConnection: true}}");
    WORKS("t", "{ping: 1}");
    run("t", "{ping: 1}");
    ck_assert(cx->close_connection);
    WORKS("admin", "{configureFailPoint: 'failCommand', mode: 'off'}");
    WORKS("t", "{ping: 1}");
    FAILS("admin", "{configureFailPoint: 'nope', mode: 'off'}", 2, "nope");
    FAILS("admin", "{configureFailPoint: 'failCommand', mode: 'x'}", 2, "unknown mode: x");
    FAILS("admin", "{configureFailPoint: 'failCommand', mode: {times: -1}}", 2, "times");
    FAILS("admin", "{configureFailPoint: 'failCommand', mode: 'alwaysOn', data: {}}", 2, "failCommands");
    FAILS("admin", "{configureFailPoint: 'failCommand', mode: 'alwaysOn', data: {failCommands: [1]}}", 14,
          "failCommands");
    FAILS("admin", "{configureFailPoint: 'failCommand', mode: 'alwaysOn', data: {failCommands: [], threadName: 'x'}}",
          238, "threadName");
    conf.enable_test_commands = false;
    FAILS("admin", "{configureFailPoint: 'failCommand', mode: 'off'}", 59, "no such command");
}
END_TEST

START_TEST(a_fail_point_that_blocks_heeds_the_time_limit)
{
    WORKS("admin",
          "{configureFailPoint: 'failCommand', mode: 'alwaysOn', data: {failCommands: ['ping'], blockConnection: true, "
          "blockTimeMS: 50}}");
    int64_t begin = clock_mono_us();
    WORKS("t", "{ping: 1}");
    ck_assert_int_ge(clock_mono_us() - begin, 50000);
    start("t", J("{ping: 1, maxTimeMS: 10}"));
    ck_assert_int_eq(step(), OP_WAIT);
    usleep(12000);
    ck_assert_int_eq(step(), OP_DONE);
    ck_assert_int_eq(bval_i32(bdoc_get(reply.p, "code")), 50);
}
END_TEST

START_TEST(a_write_concern_error_of_a_fail_point)
{
    WORKS("admin", "{configureFailPoint: 'failCommand', mode: 'alwaysOn', data: {failCommands: ['insert', 'ping'], "
                   "writeConcernError: "
                   "{code: 64, errmsg: 'm'}}}");
    const char *got = run("t", "{insert: 'c', documents: [{_id: 1}]}");
    ck_assert_msg(strstr(got, "n: 1") && strstr(got, "writeConcernError: { code: 64, errmsg: \"m\" }"), "%s", got);
    ck_assert_str_eq(run("t", "{ping: 1}"), "{ ok: 1.0 }");
}
END_TEST

START_TEST(parameters)
{
    FAILS("admin", "{getParameter: 'foo'}", 72, "no option found to get");
    ck_assert_str_eq(run("admin", "{getParameter: 1, enableTestCommands: 1}"), "{ enableTestCommands: true, ok: 1.0 }");
    ck_assert_str_eq(run("admin", "{setParameter: 1, logLevel: 3}"), "{ was: 0, ok: 1.0 }");
    ck_assert_str_eq(run("admin", "{setParameter: 1, logLevel: 0}"), "{ was: 3, ok: 1.0 }");
    FAILS("admin", "{setParameter: 1, logLevel: 6}", 2, "logLevel");
    FAILS("admin", "{setParameter: 1, nope: 6}", 72, "[nope]");
    FAILS("admin", "{setParameter: 1, enableTestCommands: 0}", 20, "at runtime");
}
END_TEST

START_TEST(diagnostics)
{
    ck_assert_str_eq(run("t", "{whatsmyuri: 1}"), "{ you: \"127.0.0.1:5\", ok: 1.0 }");
    WORKS("t", "{serverStatus: 1, octavo: 0}");
    ck_assert(bval_is_missing(bdoc_get(reply.p, "octavo")));
    ck_assert_int_eq(bdoc_get(reply.p, "opcounters").type, BSON_TYPE_DOCUMENT);
    ck_assert(bval_is_missing(bdoc_get(reply.p, "repl")));
    WORKS("admin", "{getLog: 'global'}");
    FAILS("admin", "{getLog: 'x'}", 96, "no RecentLog named: x");
    FAILS("admin", "{getLog: 1}", 14, "getLog");
    WORKS("t", "{startSession: 1}");
    ck_assert_uint_eq(bdoc_get(bval_doc(bdoc_get(reply.p, "id")), "id").p[4], BSON_SUBTYPE_UUID);
    FAILS("t", "{endSessions: 1}", 14, "array");
    FAILS("t", "{endSessions: [{}]}", 40414, "id");
    WORKS("t", "{listCommands: 1}");
    const uint8_t *all = bval_doc(bdoc_get(reply.p, "commands"));
    for (const struct command *c = commands; c->name; c++)
        ck_assert_msg(!bval_is_missing(bdoc_get(all, c->name)) && c->help && c->help[0], "%s", c->name);
    FAILS("admin", "{shutdown: 1}", 20, "cannot be shut down");
    strcpy(client.addr, "10.0.0.1:5");
    FAILS("admin", "{shutdown: 1}", 13, "localhost");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, names_of_commands_and_databases);
    tcase_add_test(tc, fields_are_known_and_given_once);
    tcase_add_test(tc, generic_arguments);
    tcase_add_test(tc, a_member_of_a_set_tells_the_time);
    tcase_add_test(tc, hello_and_its_metadata);
    tcase_add_test(tc, hello_waits_and_streams);
    tcase_add_test(tc, fail_points);
    tcase_add_test(tc, a_fail_point_that_blocks_heeds_the_time_limit);
    tcase_add_test(tc, a_write_concern_error_of_a_fail_point);
    tcase_add_test(tc, parameters);
    tcase_add_test(tc, diagnostics);
}
TEST_MAIN("commands/dispatch", add_tests)
