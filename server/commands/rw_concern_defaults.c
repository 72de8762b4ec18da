/* getDefaultRWConcern, setDefaultRWConcern: one row of keyspace KEYSPACE_CONFIG, {defaultReadConcern, defaultWriteConcern, updateOpTime,
 * updateWallClockTime}; of the first two, those that were set. All levels of read concern that may be defaults read alike on one node; of a
 * write concern, whether the disk is waited for is kept in the server, too, for each command looks at it. */
#include <semaphore.h>

#include "index/index.h"
#include "server/base/clock.h"
#include "server/commands/admin.h"
#include "server/commands/dispatch.h"

const char *const get_default_rw_concern_fields[] = {"inMemory", NULL};
const char *const set_default_rw_concern_fields[] = {"defaultReadConcern", "defaultWriteConcern", NULL};

#define ROWS keyspace_id(KEYSPACE_CONFIG, 0)
#define KEY  slice_str("rwConcernDefaults")

static const uint8_t NOTHING[] = {5, 0, 0, 0, 0};

/* ---- the row ---- */

static bool waits_for_disk(const uint8_t *concern)
{
    struct bval w = bdoc_get(concern, "w"), j = bdoc_get(concern, "j");
    return w.type == BSON_TYPE_UTF8 || (!bval_is_missing(j) && bval_truthy(j));
}

static void apply(struct server *s, const uint8_t *row)
{
    struct bval concern = bdoc_get(row, "defaultWriteConcern");
    bool set = concern.type == BSON_TYPE_DOCUMENT;
    atomic_store(&s->default_is_unsynced, set && !waits_for_disk(bval_doc(concern)));
}

struct blocking {
    struct eng_call call;
    sem_t woken;
};

static void wake(struct eng_call *c)
{
    sem_post(&OV_CONTAINER(c, struct blocking, call)->woken);
}

int rw_concern_defaults_load(struct server *s, struct err *err)
{
    struct blocking b;
    struct eng_row row;
    enum eng_result r;
    eng_call_init(&b.call, wake);
    sem_init(&b.woken, 0, 0);
    eng_step_enter(s->engine);
    struct eng_txn *t = eng_begin(s->engine, ENG_TXN_READ_ONLY, 0);
    while ((r = eng_get(t, ROWS, KEY, ENG_GET_SNAPSHOT, &row, &b.call)) == ENG_PENDING)
        while (sem_wait(&b.woken) != 0)
            ;
    if (r == ENG_OK && bson_check(row.value.p, row.value.n, BSON_DEPTH_MAX, err) == 0)
        apply(s, row.value.p);
    else if (r != ENG_NOT_FOUND && !err->code)
        err_set(err, ERR_INTERNAL_ERROR, "The default concerns cannot be read: %s", eng_result_name(r));
    eng_end(t);
    eng_step_leave(s->engine);
    sem_destroy(&b.woken);
    return err->code;
}

/* ---- the replies ---- */

static void put_default_write_concern(struct buf *b) /* of a set, while none is set */
{
    size_t at = bw_doc(b, "defaultWriteConcern");
    bw_str(b, "w", "majority");
    bw_i32(b, "wtimeout", 0);
    bw_end(b, at);
}

static enum op_status reply(struct command_ctx *cx, const uint8_t *row)
{
    struct buf *b = cx->reply;
    struct bval read = bdoc_get(row, "defaultReadConcern"), write = bdoc_get(row, "defaultWriteConcern");
    bool no_read = bval_is_missing(read), no_write = bval_is_missing(write);
    if (no_read) {
        size_t at = bw_doc(b, "defaultReadConcern");
        bw_str(b, "level", "local");
        bw_end(b, at);
    }
    bw_val(b, "defaultReadConcern", read);
    if (no_write)
        put_default_write_concern(b);
    bw_val(b, "defaultWriteConcern", write);
    bw_val(b, "updateOpTime", bdoc_get(row, "updateOpTime"));
    bw_val(b, "updateWallClockTime", bdoc_get(row, "updateWallClockTime"));
    bw_str(b, "defaultWriteConcernSource", no_write ? "implicit" : "global");
    bw_str(b, "defaultReadConcernSource", no_read ? "implicit" : "global");
    bw_date(b, "localUpdateWallClockTime", clock_wall_ms());
    return OP_DONE;
}

static bool only_in_sets(struct command_ctx *cx)
{
    if (cx->server->set_name)
        return true;
    command_fail(cx, 51300, "'%s' is not supported on standalone nodes.", cx->cmd->name);
    return false;
}

/* ---- reading ---- */

struct change {
    struct eng_txn *txn;
    const uint8_t *read, *write; /* as set; NULL: not mentioned */
    const uint8_t *row;          /* as it becomes */
};

static void cleanup(struct command_ctx *cx)
{
    struct change *c = cx->state;
    eng_call_cancel(cx->server->engine, &cx->call);
    eng_end(c->txn);
    c->txn = NULL;
}

static struct change *begin(struct command_ctx *cx, uint32_t flags)
{
    struct change *c = cx->state = arena_zalloc(cx->op.arena, sizeof(*c));
    cx->cleanup = cleanup;
    c->txn = eng_begin(cx->server->engine, flags, 0);
    return c;
}

static enum op_status stopped(struct command_ctx *cx, struct change *c, enum eng_result r)
{
    if (r != ENG_PENDING)
        return command_engine_error(cx, r);
    eng_txn_hold(c->txn);
    return OP_WAIT;
}

/* The row, valid until the step's end. */
static enum eng_result get_row(struct command_ctx *cx, struct change *c, uint32_t flags, const uint8_t **row,
                               bool *there)
{
    struct eng_row found;
    enum eng_result r = eng_get(c->txn, ROWS, KEY, flags, &found, &cx->call);
    *there = r == ENG_OK;
    *row = *there ? found.value.p : NOTHING;
    return r == ENG_NOT_FOUND ? ENG_OK : r;
}

enum op_status cmd_get_default_rw_concern(struct command_ctx *cx)
{
    struct change *c = cx->state;
    const uint8_t *row;
    bool in_memory, there;
    if (op_check_interrupt(&cx->op) != 0 || arg_bool(cx, "inMemory", false, &in_memory) != 0 || !only_in_sets(cx))
        return OP_DONE;
    if (!c)
        c = begin(cx, ENG_TXN_READ_ONLY);
    enum eng_result r = get_row(cx, c, ENG_GET_SNAPSHOT, &row, &there);
    return r == ENG_OK ? reply(cx, row) : stopped(cx, c, r);
}

/* ---- setting ---- */

static int check_read(struct command_ctx *cx, const uint8_t *concern)
{
    static const char *const levels[] = {"local", "available", "majority"};
    struct biter it;
    struct belem e;
    uint32_t n;
    for (biter_init(&it, concern); biter_next(&it, &e);) {
        if (strcmp(e.name, "level") != 0)
            return err_set(&cx->op.err, ERR_BAD_VALUE, "%s is not suitable for the default read concern", e.name);
        if (e.v.type != BSON_TYPE_UTF8)
            return arg_wrong_type(cx, "defaultReadConcern.level", e.v, "type 'string'");
        size_t i = 0;
        while (i < OV_LEN(levels) && strcmp(levels[i], bval_str(e.v, &n)) != 0)
            i++;
        if (i == OV_LEN(levels))
            return err_set(&cx->op.err, ERR_BAD_VALUE, "level: '%s' is not suitable for the default read concern",
                           bval_str(e.v, &n));
    }
    return 0;
}

/* Reads it as a command's own would be, which it is not. */
static int check_write(struct command_ctx *cx, const uint8_t *concern)
{
    struct belem e = {.name = "defaultWriteConcern", .v = bval_from_doc(concern)};
    const uint8_t *own = cx->concern;
    bool journaled = cx->journaled, w0 = cx->w0;
    int code = cx->concern_code;
    cx->concern_code = 0;
    cx->w0 = false;
    int rc = write_concern_read(cx, &e);
    bool unacknowledged = cx->w0;
    int unmet = cx->concern_code;
    cx->concern = own;
    cx->journaled = journaled;
    cx->w0 = w0;
    cx->concern_code = code;
    if (rc != 0)
        return rc;
    if (unacknowledged)
        return err_set(&cx->op.err, ERR_BAD_VALUE,
                       "Unacknowledged write concern is not suitable for the default write concern");
    if (unmet == ERR_UNSATISFIABLE_WRITE_CONCERN)
        return err_set(&cx->op.err, unmet, "Not enough data-bearing nodes");
    if (unmet)
        return err_set(&cx->op.err, unmet, "No write concern mode found in replica set configuration: %s",
                       bval_shell(cx->op.arena, bval_from_doc(concern)));
    if (bval_is_missing(bdoc_get(concern, "w")))
        return err_set(&cx->op.err, ERR_BAD_VALUE, "The default write concern must have a 'w' field");
    return 0;
}

static int asked(struct command_ctx *cx, struct change *c)
{
    const uint8_t *read, *write;
    int rc;
    if ((rc = arg_doc(cx, "defaultReadConcern", &read)) != 0 || (rc = arg_doc(cx, "defaultWriteConcern", &write)) != 0)
        return rc;
    c->read = bval_is_missing(bdoc_get(cx->req->body, "defaultReadConcern")) ? NULL : read;
    c->write = bval_is_missing(bdoc_get(cx->req->body, "defaultWriteConcern")) ? NULL : write;
    if (!c->read && !c->write)
        return err_set(&cx->op.err, ERR_BAD_VALUE,
                       "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present");
    if (c->read && (rc = check_read(cx, read)) != 0)
        return rc;
    return c->write && !bdoc_empty(write) ? check_write(cx, write) : 0;
}

static void put_write(struct buf *b, const uint8_t *concern)
{
    struct bval timeout = bdoc_get(concern, "wtimeout");
    int64_t ms = 0;
    size_t at = bw_doc(b, "defaultWriteConcern");
    bw_val(b, "w", bdoc_get(concern, "w"));
    bw_val(b, "j", bdoc_get(concern, "j"));
    if (bval_is_number(timeout))
        (void)bval_to_i64(timeout, false, &ms);
    bw_i32(b, "wtimeout", (int32_t)OV_MIN(OV_MAX(ms, 0), INT32_MAX));
    bw_end(b, at);
}

static int make_row(struct command_ctx *cx, struct change *c, const uint8_t *old)
{
    struct bval write = bdoc_get(old, "defaultWriteConcern");
    if (c->write && bdoc_empty(c->write) && !bval_is_missing(write))
        return err_set(&cx->op.err, ERR_ILLEGAL_OPERATION,
                       "The global default write concern cannot be unset once it is set.");
    struct buf b;
    buf_init(&b);
    size_t at = bw_begin(&b);
    if (!c->read)
        bw_val(&b, "defaultReadConcern", bdoc_get(old, "defaultReadConcern"));
    else if (!bdoc_empty(c->read))
        bw_rawdoc(&b, "defaultReadConcern", c->read);
    if (c->write && !bdoc_empty(c->write))
        put_write(&b, c->write);
    else
        bw_val(&b, "defaultWriteConcern", write);
    bw_ts(&b, "updateOpTime", eng_now(cx->server->engine));
    bw_date(&b, "updateWallClockTime", clock_wall_ms());
    bw_end(&b, at);
    c->row = arena_dup(cx->op.arena, b.p, b.len);
    buf_free(&b);
    return 0;
}

/* Under the row's lock, so that nobody else's change is lost. */
static enum op_status prepare(struct command_ctx *cx, struct change *c)
{
    const uint8_t *old;
    bool there;
    enum eng_result r = eng_lock(c->txn, ROWS, KEY, &cx->call);
    if (r == ENG_OK)
        r = get_row(cx, c, ENG_GET_NEWEST, &old, &there);
    if (r != ENG_OK)
        return stopped(cx, c, r);
    if (make_row(cx, c, old) != 0)
        return OP_DONE;
    eng_put(c->txn, ROWS, KEY, slice_of(c->row, bdoc_len(c->row)), there ? ENG_UPDATE : ENG_INSERT);
    return OP_DONE;
}

enum op_status cmd_set_default_rw_concern(struct command_ctx *cx)
{
    struct change *c = cx->state;
    if (!c) {
        if (!only_in_sets(cx))
            return OP_DONE;
        c = begin(cx, 0);
        if (asked(cx, c) != 0)
            return OP_DONE;
    }
    if (!c->row) {
        enum op_status st = op_check_interrupt(&cx->op) == 0 ? prepare(cx, c) : OP_DONE;
        if (st != OP_DONE || cx->op.err.code)
            return st;
    }
    enum eng_result r = eng_commit(c->txn, ENG_DUR_JOURNALED, NULL, &cx->call);
    if (r != ENG_OK)
        return stopped(cx, c, r);
    apply(cx->server, c->row);
    return reply(cx, c->row);
}
