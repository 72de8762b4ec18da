/* The commands that read, as a host runs them: over late answers, slices that are over at once, between writes, drops and kills. */
#include <stdio.h>
#include <stdlib.h>

#include "server/base/clock.h"
#include "server/commands/dispatch.h"
#include "server/session/cursors.h"
#include "tests/lib/db.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

struct fix {
    struct db db;
    struct server s;
    struct client client;
    struct op_host host;
    _Atomic int woken;
    struct arena *a;
    struct buf reply;
    struct buf text;
    int steps;
};

static void wake(struct op_host *h, struct operation *op)
{
    (void)op;
    atomic_store(&OV_CONTAINER(h, struct fix, host)->woken, 1);
}

/* ---- running a command ---- */

struct running {
    struct request req;
    struct command_ctx *cx;
};

static void begin(struct fix *f, struct running *r, const uint8_t *body)
{
    struct biter it;
    struct belem e;
    memset(r, 0, sizeof(*r));
    biter_init(&it, body);
    ck_assert(biter_next(&it, &e));
    r->req = (struct request){.body = body, .db = "t", .name = e.name};
    eng_step_enter(f->db.e);
    f->reply.len = 0;
    r->cx = command_start(&f->s, &f->client, &r->req, f->a, &f->reply);
    r->cx->op.host = &f->host;
    eng_step_leave(f->db.e);
}

/* One step, and the wait behind it. True: done. */
static bool step(struct fix *f, struct running *r)
{
    eng_step_enter(f->db.e);
    enum op_status st = r->cx->op.step(&r->cx->op); /* slice_end_us is 0: every slice is over at once */
    if (st == OP_DONE)
        command_finish(r->cx);
    eng_step_leave(f->db.e);
    f->steps++;
    if (st == OP_WAIT)
        while (!atomic_exchange(&f->woken, 0))
            db_pump(&f->db);
    return st == OP_DONE;
}

static const uint8_t *run_doc(struct fix *f, const uint8_t *body)
{
    struct running r;
    begin(f, &r, body);
    while (!step(f, &r))
        ;
    return f->reply.p;
}

/* The reply as the shell shows it. */
static const char *run(struct fix *f, const char *json)
{
    run_doc(f, J(json));
    f->text.len = 0;
    bval_to_shell(&f->text, bval_from_doc(f->reply.p), 100000);
    buf_byte(&f->text, 0);
    return (const char *)f->text.p;
}

/* The number at "a.b" of the last reply. */
static int64_t number(struct fix *f, const char *outer, const char *inner)
{
    struct bval v = bdoc_get(f->reply.p, outer);
    if (inner)
        v = bdoc_get(bval_doc(v), inner);
    int64_t n = -1;
    ck_assert(bval_to_i64(v, true, &n));
    return n;
}

static int batch_len(struct fix *f, const char *array)
{
    struct biter it;
    struct belem e;
    int n = 0;
    struct bval v = bdoc_get(bval_doc(bdoc_get(f->reply.p, "cursor")), array);
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e); n++)
        ;
    return n;
}

static int64_t cursor_id(struct fix *f)
{
    return number(f, "cursor", "id");
}

static const char *get_more(struct fix *f, int64_t id, const char *rest)
{
    return run(f, arena_printf(f->a, "{getMore: {'$numberLong': '%lld'}, collection: 'c'%s}", (long long)id, rest));
}

/* ---- the database ---- */

static void fix_new(struct fix *f, int debug_pending, int docs)
{
    struct err err;
    memset(f, 0, sizeof(*f));
    f->a = arena_new(0);
    err_init(&err, f->a);
    f->host.wake = wake;
    buf_init(&f->reply);
    buf_init(&f->text);
    db_new(&f->db);
    f->db.opt.debug_pending = debug_pending;
    f->db.opt.debug_seed = 5;
    db_reopen(&f->db);
    f->s.engine = f->db.e;
    ck_assert_int_eq(catalog_open(f->db.e, &f->s.catalog, &err), 0);
    f->s.cursors = cursors_new(f->db.e, f->s.catalog);
    for (int i = 0; i < docs;) {
        struct buf b;
        char scratch[12];
        buf_init(&b);
        size_t body = bw_begin(&b);
        bw_str(&b, "insert", "c");
        size_t list = bw_arr(&b, "documents");
        for (uint32_t k = 0; k < 500 && i < docs; k++, i++) {
            size_t d = bw_doc(&b, bw_index(k, scratch));
            bw_i32(&b, "_id", i);
            bw_i32(&b, "a", i * 7 % 500);
            bw_i32(&b, "b", i % 5);
            bw_end(&b, d);
        }
        bw_end(&b, list);
        bw_end(&b, body);
        run_doc(f, b.p);
        ck_assert_int_gt(number(f, "n", NULL), 0);
        buf_free(&b);
    }
}

static void fix_free(struct fix *f)
{
    cursors_free(f->s.cursors);
    catalog_close(f->s.catalog);
    db_free(&f->db);
    buf_free(&f->reply);
    buf_free(&f->text);
    arena_free(f->a);
}

/* ---- find, getMore ---- */

START_TEST(find_and_get_more_give_each_document_once)
{
    struct fix f;
    fix_new(&f, _i, 500);
    run(&f, "{find: 'c', sort: {a: 1}}");
    ck_assert_int_eq(batch_len(&f, "firstBatch"), 101);
    int n = 101;
    for (int64_t id = cursor_id(&f); id; id = cursor_id(&f)) {
        get_more(&f, id, ", batchSize: 77");
        n += batch_len(&f, "nextBatch");
    }
    ck_assert_int_eq(n, 500);
    run(&f, "{find: 'c', batchSize: 499}");
    int64_t id = cursor_id(&f);
    ck_assert_int_ne(id, 0);
    get_more(&f, id, "");
    ck_assert_int_eq(batch_len(&f, "nextBatch"), 1);
    ck_assert_int_eq(cursor_id(&f), 0);
    ck_assert_str_eq(
        get_more(&f, id, ""),
        arena_printf(f.a, "{ ok: 0.0, errmsg: \"cursor id %lld not found\", code: 43, codeName: \"CursorNotFound\" }",
                     (long long)id));
    fix_free(&f);
}
END_TEST

START_TEST(replies_have_the_server_s_form)
{
    static const struct {
        const char *command, *reply;
    } rows[] = {
        {"{find: 'c', filter: {_id: 3}}",
         "{ cursor: { firstBatch: [ { _id: 3, a: 21, b: 3 } ], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{find: 'c', filter: {_id: 3}, projection: {a: 1, _id: 0}}",
         "{ cursor: { firstBatch: [ { a: 21 } ], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{find: 'c', filter: {_id: 300}}", "{ cursor: { firstBatch: [], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{find: 'nothing'}", "{ cursor: { firstBatch: [], id: 0, ns: \"t.nothing\" }, ok: 1.0 }"},
        {"{find: 'c', sort: {_id: -1}, limit: 2, skip: 1, projection: {_id: 1}}",
         "{ cursor: { firstBatch: [ { _id: 8 }, { _id: 7 } ], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{find: 'c', batchSize: 1, singleBatch: true, projection: {_id: 1}}",
         "{ cursor: { firstBatch: [ { _id: 0 } ], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{find: 'c', limit: 2, batchSize: 2, projection: {_id: 1}}",
         "{ cursor: { firstBatch: [ { _id: 0 }, { _id: 1 } ], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{find: 'c', batchSize: 0, singleBatch: true}", "{ cursor: { firstBatch: [], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{count: 'c'}", "{ n: 10, ok: 1.0 }"},
        {"{count: 'c', query: {b: 1}}", "{ n: 2, ok: 1.0 }"},
        {"{count: 'c', query: {b: {~gte: 1}}, skip: 3, limit: 4}", "{ n: 4, ok: 1.0 }"},
        {"{count: 'c', skip: 3, limit: -4}", "{ n: 4, ok: 1.0 }"},
        {"{count: 'c', skip: 8, limit: 4}", "{ n: 2, ok: 1.0 }"},
        {"{count: 'nothing'}", "{ n: 0, ok: 1.0 }"},
        {"{count: 'nothing', query: {a: 1}}", "{ n: 0, ok: 1.0 }"},
        {"{distinct: 'c', key: 'b'}", "{ values: [ 0, 1, 2, 3, 4 ], ok: 1.0 }"},
        {"{distinct: 'c', key: 'b', query: {_id: {~gt: 7}}}", "{ values: [ 3, 4 ], ok: 1.0 }"},
        {"{distinct: 'c', key: 'x.y'}", "{ values: [], ok: 1.0 }"},
        {"{aggregate: 'c', pipeline: [{~match: {b: {~lt: 2}}}, {~group: {_id: 1, n: {~sum: 1}}}], cursor: {}}",
         "{ cursor: { firstBatch: [ { _id: 1, n: 4 } ], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{aggregate: 'c', pipeline: [{~limit: 3}, {~project: {_id: 1}}, {~skip: 2}], cursor: {}}",
         "{ cursor: { firstBatch: [ { _id: 2 } ], id: 0, ns: \"t.c\" }, ok: 1.0 }"},
        {"{aggregate: 'nothing', pipeline: [{~group: {_id: 1, n: {~sum: 1}}}], cursor: {}}",
         "{ cursor: { firstBatch: [], id: 0, ns: \"t.nothing\" }, ok: 1.0 }"},
        {"{killCursors: 'c', cursors: [{'$numberLong': '5'}]}",
         "{ cursorsKilled: [], cursorsNotFound: [ 5 ], cursorsAlive: [], cursorsUnknown: [], ok: 1.0 }"},
    };
    struct fix f;
    fix_new(&f, _i, 10);
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        const char *got = run(&f, rows[i].command);
        ck_assert_msg(strcmp(got, rows[i].reply) == 0, "%s: %s", rows[i].command, got);
    }
    fix_free(&f);
}
END_TEST

/* What comes before serverInfo, which tells the host's name. */
START_TEST(explanations_show_the_plan)
{
#define BEGIN                                                                                                      \
    "{ explainVersion: \"1\", queryPlanner: { namespace: \"t.c\", parsedQuery: %s, indexFilterSet: false, "        \
    "maxIndexedOrSolutionsReached: false, maxIndexedAndSolutionsReached: false, maxScansToExplodeReached: false, " \
    "winningPlan: "
    static const struct {
        const char *command, *query, *plan;
    } rows[] = {
        {"{explain: {find: 'c', filter: {_id: 3}}, verbosity: 'queryPlanner'}", "{ _id: { $eq: 3 } }",
         "{ stage: \"IDHACK\" }, rejectedPlans: [] }, command: { find: \"c\", filter: { _id: 3 } }, serverInfo: "},
        {"{explain: {find: 'c', sort: {b: 1}, limit: 2}, verbosity: 'queryPlanner'}", "{}",
         "{ stage: \"SORT\", sortPattern: { b: 1 }, memLimit: 104857600, limitAmount: 2, type: \"simple\", inputStage: "
         "{ "
         "stage: \"COLLSCAN\", direction: \"forward\" } }, rejectedPlans: [] }, command: { find: \"c\", sort: { b: 1 "
         "}, limit: 2 }, serverInfo: "},
        {"{explain: {find: 'c', filter: {b: {~gte: 1, ~lt: 3}}}}",
         "{ $and: [ { b: { $gte: 1 } }, { b: { $lt: 3 } } ] }", "{ stage: \"COLLSCAN\", filter: "},
        {"{explain: {count: 'c', query: {b: 1}}}", "{ b: { $eq: 1 } }", "{ stage: \"COUNT\", inputStage: "},
        {"{explain: {distinct: 'c', key: 'b'}}", "{}", "{ stage: \"COLLSCAN\", direction: \"forward\" }, "},
        {"{explain: {delete: 'c', deletes: [{q: {b: 1}, limit: 0}]}}", "{ b: { $eq: 1 } }",
         "{ stage: \"DELETE\", inputStage: "},
        {"{explain: {update: 'c', updates: [{q: {b: 1}, u: {~set: {z: 1}}, multi: true}]}}", "{ b: { $eq: 1 } }",
         "{ stage: \"UPDATE\", inputStage: "},
        {"{aggregate: 'c', pipeline: [{~match: {b: 1}}], explain: true}", "{ b: { $eq: 1 } }",
         "{ stage: \"COLLSCAN\", filter: { b: 1 }, direction: \"forward\" }, rejectedPlans: [] }, command: "},
    };
    struct fix f;
    char want[2000];
    fix_new(&f, _i, 10);
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        const char *got = run(&f, rows[i].command);
        int n = snprintf(want, sizeof(want), BEGIN, rows[i].query);
        snprintf(want + n, sizeof(want) - (size_t)n, "%s", rows[i].plan);
        ck_assert_msg(strncmp(got, want, strlen(want)) == 0, "%s: %s", rows[i].command, got);
    }
    fix_free(&f);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static const struct {
        const char *command;
        int code;
        const char *words; /* part of the message; NULL: not looked at */
    } rows[] = {
        {"{find: 'c', limit: -1}", 51024, NULL},
        {"{find: 'c', skip: -1}", 51024, NULL},
        {"{find: 'c', batchSize: -1}", 51024, NULL},
        {"{find: 'c', bogus: 1}", 40415, "BSON field 'find.bogus' is an unknown field."},
        {"{find: 'c', filter: 'x'}", 14, NULL},
        {"{find: 'c', filter: {a: {~foo: 1}}}", 2, NULL},
        {"{find: 'c', sort: {a: 2}}", 15975, NULL},
        {"{find: 'c', projection: 1}", 14, NULL},
        {"{find: 'c', hint: 1}", 9, NULL},
        {"{find: 'c', hint: 'nothing'}", 2, "hint provided does not correspond to an existing index"},
        {"{find: 'c', tailable: true}", 2, "tailable cursor requested on non capped collection"},
        {"{find: 'c', awaitData: true}", 9, "Cannot set 'awaitData' without also setting 'tailable'"},
        {"{find: 'c', returnKey: true}", 238, "returnKey"},
        {"{find: 'c', showRecordId: true}", 238, "showRecordId"},
        {"{find: 'c', min: {a: 1}}", 238, "min"},
        {"{find: 'c', collation: {locale: 'de'}}", 238, "collation"},
        {"{find: 'c', let: {x: 1}}", 238, "let"},
        {"{find: 'c', readConcern: {level: 'snapshot'}}", 123, NULL},
        {"{find: 'c', readConcern: {level: 'some'}}", 2, NULL},
        {"{find: 'c', readConcern: {x: 1}}", 40415, NULL},
        {"{find: ''}", 73, NULL},
        {"{count: 'c', query: 1}", 14, NULL},
        {"{count: 'c', skip: -1}", 51024, NULL},
        {"{count: 'c', hint: 'nothing'}", 2, NULL},
        {"{distinct: 'c'}", 40414, NULL},
        {"{getMore: 5, collection: 'c'}", 14,
         "BSON field 'getMore.getMore' is the wrong type 'int', expected type 'long'"},
        {"{getMore: {'$numberLong': '5'}}", 40414, NULL},
        {"{getMore: {'$numberLong': '5'}, collection: 'c'}", 43, "cursor id 5 not found"},
        {"{getMore: {'$numberLong': '5'}, collection: ''}", 73, NULL},
        {"{killCursors: 'c'}", 40414, NULL},
        {"{killCursors: 'c', cursors: [1]}", 14, NULL},
        {"{aggregate: 'c', pipeline: []}", 9,
         "The 'cursor' option is required, except for aggregate with the explain argument"},
        {"{aggregate: 'c', cursor: {}}", 40414, NULL},
        {"{aggregate: 'c', pipeline: {}, cursor: {}}", 14, NULL},
        {"{aggregate: 'c', pipeline: [], cursor: {batchSize: -1}}", 51024, NULL},
        {"{aggregate: 'c', pipeline: [], cursor: {x: 1}}", 40415, NULL},
        {"{aggregate: 'c', pipeline: [], cursor: 1}", 14, NULL},
        {"{aggregate: 'c', pipeline: [], explain: 'x'}", 14, NULL},
        {"{explain: 1}", 14, NULL},
        {"{explain: {}}", 59, NULL},
        {"{explain: {getMore: {'$numberLong': '5'}, collection: 'c'}}", 238, "explain of getMore is not implemented"},
        {"{explain: {find: 'c', bogus: 1}}", 40415, NULL},
        {"{explain: {find: 'c'}, verbosity: 'loud'}", 2, NULL},
        {"{aggregate: 1, pipeline: [], cursor: {}}", 73, NULL},
        {"{aggregate: 1, pipeline: [{~match: {}}], cursor: {}}", 73,
         "{aggregate: 1} is not valid for '$match'; a collection is required."},
        {"{aggregate: 2, pipeline: [], cursor: {}}", 9, NULL},
        {"{aggregate: 'c', pipeline: [{~foo: 1}], cursor: {}}", 40324, NULL},
    };
    struct fix f;
    struct cursors_stats st;
    fix_new(&f, 0, 10);
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        const char *got = run(&f, rows[i].command);
        ck_assert_msg(number(&f, "code", NULL) == rows[i].code, "%s: %s", rows[i].command, got);
        ck_assert_msg(!rows[i].words || strstr(got, rows[i].words), "%s: %s", rows[i].command, got);
    }
    cursors_stats(f.s.cursors, &st);
    ck_assert_int_eq(st.open, 0);
    fix_free(&f);
}
END_TEST

START_TEST(batches_hold_no_more_than_16_mib)
{
    struct fix f;
    fix_new(&f, 0, 1);
    char *big = malloc(1000001);
    memset(big, 'x', 1000000);
    big[1000000] = 0;
    for (int i = 1; i < 40; i++) {
        struct buf b;
        buf_init(&b);
        size_t body = bw_begin(&b);
        bw_str(&b, "insert", "c");
        size_t list = bw_arr(&b, "documents"), d = bw_doc(&b, "0");
        bw_i32(&b, "_id", i);
        bw_str(&b, "big", big);
        bw_end(&b, d);
        bw_end(&b, list);
        bw_end(&b, body);
        run_doc(&f, b.p);
        buf_free(&b);
    }
    free(big);
    run_doc(&f, J("{find: 'c'}"));
    ck_assert_int_eq(batch_len(&f, "firstBatch"), 17); /* the small one, and sixteen */
    ck_assert_uint_le(f.reply.len, BSON_INPUT_MAX);
    int n = 17;
    for (int64_t id = cursor_id(&f); id; id = cursor_id(&f)) {
        run_doc(&f, J(arena_printf(f.a, "{getMore: {'$numberLong': '%lld'}, collection: 'c'}", (long long)id)));
        n += batch_len(&f, "nextBatch");
    }
    ck_assert_int_eq(n, 40);
    fix_free(&f);
}
END_TEST

/* ---- between getMores ---- */

static int64_t open_one(struct fix *f)
{
    run(f, "{find: 'c', batchSize: 5}");
    ck_assert_int_eq(batch_len(f, "firstBatch"), 5);
    return cursor_id(f);
}

START_TEST(a_cursor_belongs_to_its_collection_and_session)
{
    struct fix f;
    fix_new(&f, _i, 50);
    int64_t id = open_one(&f);
    const char *got = run(&f, arena_printf(f.a, "{getMore: {'$numberLong': '%lld'}, collection: 'x'}", (long long)id));
    ck_assert_ptr_nonnull(
        strstr(got, "Requested getMore on namespace 't.x', but cursor belongs to a different namespace t.c"));
    ck_assert_int_eq(number(&f, "code", NULL), 13);
    get_more(&f, id, ", lsid: {id: {'$binary': {base64: 'AAAAAAAAAAAAAAAAAAAAAQ==', subType: '04'}}}");
    ck_assert_int_eq(number(&f, "code", NULL), 50737);
    get_more(&f, id, ", maxTimeMS: 1000");
    ck_assert_int_eq(number(&f, "code", NULL), 2);
    get_more(&f, id, ""); /* it is still there */
    ck_assert_int_eq(batch_len(&f, "nextBatch"), 45);
    run(&f, "{find: 'c', batchSize: 5, lsid: {id: {'$binary': {base64: 'AAAAAAAAAAAAAAAAAAAAAQ==', subType: '04'}}}}");
    id = cursor_id(&f);
    get_more(&f, id, "");
    ck_assert_int_eq(number(&f, "code", NULL), 50736);
    get_more(&f, id, ", lsid: {id: {'$binary': {base64: 'AAAAAAAAAAAAAAAAAAAAAg==', subType: '04'}}}");
    ck_assert_int_eq(number(&f, "code", NULL), 50738);
    get_more(&f, id, ", lsid: {id: {'$binary': {base64: 'AAAAAAAAAAAAAAAAAAAAAQ==', subType: '04'}}}");
    ck_assert_int_eq(batch_len(&f, "nextBatch"), 45);
    fix_free(&f);
}
END_TEST

START_TEST(killed_cursors_are_gone)
{
    struct fix f;
    fix_new(&f, 0, 50);
    int64_t id = open_one(&f);
    run(&f, arena_printf(f.a, "{killCursors: 'c', cursors: [{'$numberLong': '%lld'}, {'$numberLong': '9'}]}",
                         (long long)id));
    ck_assert_ptr_nonnull(strstr((const char *)f.text.p, "cursorsNotFound: [ 9 ]"));
    get_more(&f, id, "");
    ck_assert_int_eq(number(&f, "code", NULL), 43);
    fix_free(&f);
}
END_TEST

START_TEST(a_get_more_under_way_can_be_killed)
{
    struct fix f;
    struct running r;
    fix_new(&f, 2, 50); /* the engine answers late: the first step ends before a row */
    int64_t id = open_one(&f);
    begin(&f, &r, J(arena_printf(f.a, "{getMore: {'$numberLong': '%lld'}, collection: 'c'}", (long long)id)));
    ck_assert(!step(&f, &r));
    eng_step_enter(f.db.e);
    struct cursor *c;
    ck_assert_int_eq(cursors_take(f.s.cursors, id, &c), CURSOR_BUSY);
    ck_assert(cursors_kill(f.s.cursors, id));
    eng_step_leave(f.db.e);
    while (!step(&f, &r))
        ;
    ck_assert_int_eq(number(&f, "code", NULL), 237);
    get_more(&f, id, "");
    ck_assert_int_eq(number(&f, "code", NULL), 43);
    fix_free(&f);
}
END_TEST

START_TEST(an_interrupted_read_leaves_nothing)
{
    struct fix f;
    struct running r;
    struct cursors_stats st;
    struct eng_stats es;
    fix_new(&f, 2, 50);
    begin(&f, &r, J("{find: 'c'}"));
    ck_assert(!step(&f, &r));
    atomic_store(&r.cx->op.interrupt, ERR_INTERRUPTED);
    ck_assert(step(&f, &r));
    ck_assert_int_eq(number(&f, "code", NULL), 11601);
    int64_t id = open_one(&f);
    begin(&f, &r, J(arena_printf(f.a, "{getMore: {'$numberLong': '%lld'}, collection: 'c'}", (long long)id)));
    ck_assert(!step(&f, &r));
    atomic_store(&r.cx->op.interrupt, ERR_CLIENT_DISCONNECT);
    ck_assert(step(&f, &r));
    cursors_stats(f.s.cursors, &st);
    ck_assert_int_eq(st.open, 0);
    eng_stats(f.db.e, &es);
    ck_assert_uint_eq(es.snapshots_open, 0);
    fix_free(&f);
}
END_TEST

START_TEST(a_dropped_collection_ends_its_cursors)
{
    struct fix f;
    fix_new(&f, _i, 50);
    int64_t id = open_one(&f);
    run(&f, "{drop: 'c'}");
    const char *got = get_more(&f, id, "");
    ck_assert_int_eq(number(&f, "code", NULL), 175);
    ck_assert_ptr_nonnull(strstr(got, "Executor error during getMore :: caused by :: collection dropped. UUID "));
    get_more(&f, id, "");
    ck_assert_int_eq(number(&f, "code", NULL), 43);
    fix_free(&f);
}
END_TEST

START_TEST(a_dropped_index_ends_the_cursors_on_it)
{
    struct fix f;
    fix_new(&f, _i, 50);
    run(&f, "{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a_1'}, {key: {b: 1}, name: 'b_1'}]}");
    ck_assert_int_eq(number(&f, "numIndexesAfter", NULL), 3);
    run(&f, "{find: 'c', filter: {_id: 7}, hint: 'a_1', batchSize: 1}"); /* no second one can come */
    ck_assert_int_eq(batch_len(&f, "firstBatch"), 1);
    ck_assert_int_eq(cursor_id(&f), 0);
    run(&f, "{find: 'c', hint: 'a_1', batchSize: 5}");
    int64_t id = cursor_id(&f);
    run(&f, "{dropIndexes: 'c', index: 'b_1'}");
    get_more(&f, id, ", batchSize: 5"); /* another one: it goes on */
    ck_assert_int_eq(batch_len(&f, "nextBatch"), 5);
    run(&f, "{dropIndexes: 'c', index: 'a_1'}");
    const char *got = get_more(&f, id, "");
    ck_assert_int_eq(number(&f, "code", NULL), 175);
    ck_assert_ptr_nonnull(strstr(got, "query plan killed :: index 'a_1' dropped"));
    fix_free(&f);
}
END_TEST

START_TEST(indexes_give_the_same_documents)
{
    static const char *const finds[] = {
        "filter: {a: {~gte: 40, ~lt: 90}}, sort: {a: 1}",
        "filter: {a: {~gte: 40, ~lt: 90}}, sort: {a: -1}, skip: 3, limit: 20",
        "filter: {b: {~in: [1, 3, 9]}}, sort: {a: -1}",
        "filter: {b: {~in: [1, 3, 9]}}, sort: {a: 1}, limit: 30",
        "filter: {b: 2, a: {~gt: 100}}, sort: {a: 1}",
        "filter: {_id: {~in: [5, 3, 100, 7, 7, 9999]}}, sort: {_id: 1}",
        "filter: {_id: {~gt: 5, ~lte: 60}, b: 0}, sort: {_id: -1}",
        "filter: {~or: [{b: 1}, {a: 7}]}, sort: {a: 1}",
        "sort: {b: 1, a: 1}",
        "sort: {b: -1, a: -1}",
        "sort: {b: -1, a: 1}, skip: 10",
    };
    struct fix f;
    fix_new(&f, _i, 300); /* each value of `a` once */
    char *plain[OV_LEN(finds)];
    for (size_t i = 0; i < OV_LEN(finds); i++)
        plain[i] =
            ov_strdup(run(&f, arena_printf(f.a, "{find: 'c', batchSize: 1000, singleBatch: true, %s}", finds[i])));
    run(&f, "{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a_1'}, {key: {b: 1, a: 1}, name: 'b_1_a_1'}]}");
    ck_assert_int_eq(number(&f, "numIndexesAfter", NULL), 3);
    for (size_t i = 0; i < OV_LEN(finds); i++) {
        const char *got = run(&f, arena_printf(f.a, "{find: 'c', batchSize: 1000, singleBatch: true, %s}", finds[i]));
        ck_assert_msg(strcmp(got, plain[i]) == 0, "%s: %.200s", finds[i], got);
        free(plain[i]);
    }
    fix_free(&f);
}
END_TEST

START_TEST(a_cursor_goes_on_through_writes)
{
    struct fix f;
    fix_new(&f, _i, 200);
    int64_t id = open_one(&f);
    run(&f, "{delete: 'c', deletes: [{q: {_id: {~gte: 50, ~lt: 150}}, limit: 0}]}");
    ck_assert_int_eq(number(&f, "n", NULL), 100);
    get_more(&f, id, "");
    ck_assert_int_eq(batch_len(&f, "nextBatch"), 95);
    fix_free(&f);
}
END_TEST

START_TEST(the_time_limit_of_find_holds_for_its_get_mores)
{
    struct fix f;
    struct running r;
    fix_new(&f, 0, 50);
    run(&f, "{find: 'c', batchSize: 5, maxTimeMS: 60000}");
    int64_t id = cursor_id(&f);
    begin(&f, &r,
          J(arena_printf(f.a, "{getMore: {'$numberLong': '%lld'}, collection: 'c', batchSize: 5}", (long long)id)));
    while (!step(&f, &r))
        ;
    ck_assert_int_gt(r.cx->op.deadline_us, clock_mono_us());
    ck_assert_int_lt(r.cx->op.deadline_us, clock_mono_us() + 60000000);
    fix_free(&f);
}
END_TEST

/* ---- rules of the engine ---- */

/* Also of what another command, or one without an answer, has written on the connection. */
START_TEST(r13_a_command_reads_what_its_connection_has_written)
{
    struct fix f;
    struct running r;
    fix_new(&f, _i, 0);
    static const char *const writes[] = {
        "{insert: 'c', documents: [{_id: 1, a: 0}]}",
        "{update: 'c', updates: [{q: {_id: 1}, u: {~set: {a: 1}}}], writeConcern: {w: 0}}",
        "{findAndModify: 'c', query: {_id: 1}, update: {~set: {a: 2}}}",
        "{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]}",
    };
    for (size_t i = 0; i < OV_LEN(writes); i++) {
        uint64_t before = eng_visible(f.db.e);
        run(&f, writes[i]);
        ck_assert_uint_gt((uint64_t)f.client.last_ts, before);
        ck_assert_uint_ge(eng_visible(f.db.e), (uint64_t)f.client.last_ts);
        uint64_t own = (uint64_t)f.client.last_ts;
        run(&f, "{find: 'c'}");
        ck_assert_uint_eq((uint64_t)f.client.last_ts, own); /* not its own */
    }

    /* Were its last write not visible yet, a read would wait for it. */
    f.client.last_ts = (int64_t)eng_visible(f.db.e) + 1;
    begin(&f, &r, J("{find: 'c'}"));
    eng_step_enter(f.db.e);
    ck_assert_int_eq(r.cx->op.step(&r.cx->op), OP_WAIT);
    eng_step_leave(f.db.e);
    db_put(&f.db, 99, "a", "1"); /* makes it visible */
    ck_assert(atomic_exchange(&f.woken, 0));
    while (!step(&f, &r))
        ;
    ck_assert_int_eq(batch_len(&f, "firstBatch"), 0);
    fix_free(&f);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, find_and_get_more_give_each_document_once, 0, 3);
    tcase_add_loop_test(tc, replies_have_the_server_s_form, 0, 3);
    tcase_add_loop_test(tc, explanations_show_the_plan, 0, 3);
    tcase_add_test(tc, what_does_not_fit_is_refused);
    tcase_add_test(tc, batches_hold_no_more_than_16_mib);
    tcase_add_loop_test(tc, a_cursor_belongs_to_its_collection_and_session, 0, 3);
    tcase_add_test(tc, killed_cursors_are_gone);
    tcase_add_test(tc, a_get_more_under_way_can_be_killed);
    tcase_add_test(tc, an_interrupted_read_leaves_nothing);
    tcase_add_loop_test(tc, a_dropped_collection_ends_its_cursors, 0, 3);
    tcase_add_loop_test(tc, a_dropped_index_ends_the_cursors_on_it, 0, 3);
    tcase_add_loop_test(tc, indexes_give_the_same_documents, 0, 3);
    tcase_add_loop_test(tc, a_cursor_goes_on_through_writes, 0, 3);
    tcase_add_test(tc, the_time_limit_of_find_holds_for_its_get_mores);
    tcase_add_loop_test(tc, r13_a_command_reads_what_its_connection_has_written, 0, 3);
}
TEST_MAIN("commands/reads", add_tests)
