/* A server without a network: handlers run step by step, as many side by side as a test likes. */
#ifndef OV_TEST_WRITE_BED_H
#define OV_TEST_WRITE_BED_H

#include "server/base/clock.h"
#include "server/commands/admin.h"
#include "server/commands/crud_write.h"
#include "tests/lib/agree.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

struct bed {
    struct db db;
    struct server server;
    struct client client;
};

struct run { /* one command */
    struct bed *bed;
    struct command_ctx cx;
    struct request req;
    struct command cmd;
    struct buf reply;
    size_t at;
    bool slices; /* every slice is over at once */
    _Atomic int woken;
    bool done;
};

static inline void run_woken(struct eng_call *c)
{
    atomic_store(&OV_CONTAINER(c, struct run, cx.call)->woken, 1);
}

static inline void bed_new(struct bed *b, int debug_pending)
{
    struct err err;
    memset(b, 0, sizeof(*b));
    db_new(&b->db);
    b->db.opt.debug_pending = debug_pending;
    b->db.opt.debug_seed = 5;
    db_reopen(&b->db);
    err_init(&err, NULL);
    ck_assert_int_eq(catalog_open(b->db.e, &b->server.catalog, &err), 0);
    b->server.engine = b->db.e;
}

static inline void bed_free(struct bed *b)
{
    catalog_close(b->server.catalog);
    db_free(&b->db);
}

static inline struct run *run_new(struct bed *b, const char *command, const uint8_t *body)
{
    static const struct {
        const char *name;
        command_fn fn;
    } all[] = {{"insert", cmd_insert},
               {"update", cmd_update},
               {"delete", cmd_delete},
               {"findAndModify", cmd_find_and_modify},
               {"validate", cmd_validate}};
    struct run *r = ov_calloc(1, sizeof(*r));
    r->bed = b;
    r->req = (struct request){.body = body, .db = "t", .name = command};
    for (size_t i = 0; i < OV_LEN(all); i++)
        if (strcmp(all[i].name, command) == 0)
            r->cmd = (struct command){.name = command, .fn = all[i].fn};
    r->cx = (struct command_ctx){
        .server = &b->server, .client = &b->client, .req = &r->req, .cmd = &r->cmd, .reply = &r->reply};
    r->cx.op.arena = arena_new(0);
    err_init(&r->cx.op.err, r->cx.op.arena);
    eng_call_init(&r->cx.call, run_woken);
    r->at = bw_begin(&r->reply);
    return r;
}

/* One step; false while it waits for a wake-up that has not come. */
static inline bool run_step(struct run *r, bool *waits)
{
    eng_step_enter(r->bed->db.e);
    r->cx.op.slice_end_us = r->slices ? 0 : INT64_MAX;
    enum op_status s = r->cmd.fn(&r->cx);
    if (s == OP_DONE && r->cx.cleanup)
        r->cx.cleanup(&r->cx);
    eng_step_leave(r->bed->db.e);
    r->done = s == OP_DONE;
    *waits = s == OP_WAIT;
    return r->done;
}

/* Steps as far as it comes without another's help. True: done. */
static inline bool run_on(struct run *r)
{
    bool waits = true;
    while (!r->done) {
        run_step(r, &waits);
        for (int i = 0; waits && !atomic_exchange(&r->woken, 0); i++) {
            if (i == 20)
                return false;
            db_pump(&r->bed->db);
        }
    }
    return true;
}

/* The reply as text, or "code: message"; frees. A static buffer. */
static inline const char *run_end(struct run *r)
{
    static struct buf text;
    text.len = 0;
    ck_assert_msg(r->done, "not done");
    if (r->cx.op.err.code) {
        buf_printf(&text, "%d: %s", r->cx.op.err.code, r->cx.op.err.msg);
    } else {
        bw_end(&r->reply, r->at);
        bval_to_shell(&text, bval_from_doc(r->reply.p), SIZE_MAX);
    }
    buf_byte(&text, 0);
    buf_free(&r->reply);
    arena_free(r->cx.op.arena);
    free(r);
    return (const char *)text.p;
}

static inline const char *run_all(struct bed *b, const char *command, const char *json)
{
    struct run *r = run_new(b, command, J(json));
    ck_assert_msg(run_on(r), "%s waits for nobody", json);
    return run_end(r);
}
#define RUN(b, command, json, expected) ck_assert_str_eq(run_all(b, command, json), expected)

/* Makes indexes that are ready: [{key: …, name: …, unique: …}]. */
static inline void bed_index(struct bed *b, const char *coll, const char *json_spec)
{
    struct arena *a = arena_new(0);
    struct index_def def;
    struct err err;
    bool existed;
    err_init(&err, a);
    const uint8_t *spec = J(json_spec);
    ck_assert_int_eq(index_parse(a, spec, &def, &err), 0);
    const char *names[] = {def.name};
#define DDL(call)                                                     \
    for (enum ddl_result r = DDL_PENDING; r != DDL_OK;) {             \
        eng_step_enter(b->db.e);                                      \
        r = call;                                                     \
        eng_step_leave(b->db.e);                                      \
        ck_assert_msg(r != DDL_ERROR, "%s", err.msg);                 \
        while (r == DDL_PENDING && !atomic_exchange(&b->db.woken, 0)) \
            db_pump(&b->db);                                          \
    }
    DDL(catalog_create(b->server.catalog, "t", coll, NULL, &existed, &b->db.c, &err));
    DDL(catalog_index_add(b->server.catalog, "t", coll, &def, 1, &b->db.c, &err));
    DDL(catalog_index_ready(b->server.catalog, "t", coll, names, 1, &b->db.c, &err));
#undef DDL
    arena_free(a);
}

static inline void bed_agree(struct bed *b, const char *coll)
{
    struct collection *c = catalog_get(b->server.catalog, "t", coll);
    ck_assert_ptr_nonnull(c);
    const char *wrong = agree(&b->db, c);
    ck_assert_msg(!wrong, "%s", wrong);
    collection_unref(c);
}

/* All documents in natural order as text; a static buffer. */
static inline const char *bed_docs(struct bed *b, const char *coll)
{
    static struct buf text;
    text.len = 0;
    struct collection *c = catalog_get(b->server.catalog, "t", coll);
    if (!c)
        return "none";
    eng_step_enter(b->db.e);
    struct eng_txn *t = eng_begin(b->db.e, ENG_TXN_READ_ONLY, 0);
    struct eng_range range = {.keyspace = c->records};
    struct eng_scan *scan = eng_scan_open(t, &range);
    struct eng_page page = {.more = true};
    while (page.more) {
        ck_assert_int_eq(DB_WAIT(&b->db, eng_scan_next(scan, &page, &b->db.c)), ENG_OK);
        for (size_t i = 0; i < page.n; i++) {
            if (text.len)
                buf_byte(&text, ' ');
            bval_to_shell(&text, bval_from_doc(page.rows[i].value.p), SIZE_MAX);
        }
    }
    eng_scan_close(scan);
    eng_end(t);
    eng_step_leave(b->db.e);
    buf_byte(&text, 0);
    collection_unref(c);
    return (const char *)text.p;
}

#endif
