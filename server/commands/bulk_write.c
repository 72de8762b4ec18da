/* (SESSION) -> NEXT -> ITEM -> (FLUSH) -> NEXT … SYNC -> REPLY. The writer is in one collection at a time: an operation on another one commits
 * what is in the batch first. So does one that fails, so that the operations before it are done when it is told of.
 *
 * The results are documents that the reply's cursor reads; they are complete before its first batch. */
#include "server/commands/bulk_write.h"

#include "server/commands/bulk_write_private.h"
#include "server/commands/crud_read_private.h"
#include "server/write/insert.h"

enum { ARENA_KEEP = 1024 * 1024, RESULTS_MAX = 48 * 1024 * 1024 };

const char *const bulk_write_fields[] = {"ops",    "nsInfo", "ordered", "errorsOnly", "bypassDocumentValidation",
                                         "cursor", "let",    "stmtId",  "stmtIds",    NULL};

enum bulk_stage { BULK_SESSION, BULK_NEXT, BULK_ITEM, BULK_FLUSH, BULK_SYNC, BULK_REPLY };

struct bulk_write {
    struct bulk_request req;
    struct writer w;    /* in the collection of the newest operation */
    uint32_t writer_ns; /* its place in nsInfo; UINT32_MAX: none yet */
    struct write_retry *retry;
    enum bulk_stage stage;
    bool finished;    /* nothing is pending */
    bool last, again; /* after the flush: the end; a pause */
    uint64_t wrote;   /* documents committed by writers before this one */
    uint64_t last_ts; /* of their last commit */
    /* The operation in hand. */
    struct bulk_op op;
    uint32_t index;
    bool running; /* it has been parsed */
    struct insert insert;
    struct modify modify;
    struct sort_spec sort;
    struct arena *arena; /* of operations after the first */
    /* Results. */
    struct buf results;
    int32_t n_errors;
    int32_t n_inserted, n_matched, n_modified, n_upserted, n_deleted;
};

/* ---- begin and end ---- */

static void close_writer(struct bulk_write *b)
{
    modify_end(&b->modify);
    b->wrote += b->w.committed;
    b->last_ts = OV_MAX(b->last_ts, b->w.last_ts);
    writer_end(&b->w);
    b->w.committed = 0;
}

static void end(struct command_ctx *cx, struct bulk_write *b)
{
    close_writer(b);
    cx->wrote = b->wrote != 0;
    cx->own_ts = b->last_ts;
    write_retry_end(b->retry);
    b->retry = NULL;
    buf_free(&b->results);
    arena_free(b->arena);
    b->arena = NULL;
}

static void cleanup(struct command_ctx *cx)
{
    struct bulk_write *b = cx->state;
    if (!b->finished)
        writer_cancel(&b->w);
    end(cx, b);
}

static void open_writer(struct command_ctx *cx, struct bulk_write *b, uint32_t ns)
{
    close_writer(b);
    b->w = (struct writer){
        .e = cx->server->engine,
        .c = cx->server->catalog,
        .op = &cx->op,
        .call = &cx->call,
        .arena = cx->op.arena,
        .db = b->req.ns[ns].db,
        .name = b->req.ns[ns].coll,
        .outcomes = b->retry ? &b->retry->retry.outcomes : NULL,
    };
    b->writer_ns = ns;
    b->insert = (struct insert){0};
}

static struct bulk_write *start(struct command_ctx *cx)
{
    struct bulk_write *b = arena_zalloc(cx->op.arena, sizeof(*b));
    if (bulk_request_read(cx, &b->req) != 0 || write_retry_new(cx, b->req.ops.n, &b->retry) != 0)
        return NULL;
    b->writer_ns = UINT32_MAX;
    b->w.e = cx->server->engine;
    b->w.c = cx->server->catalog;
    b->w.call = &cx->call;
    b->stage = b->retry ? BULK_SESSION : BULK_NEXT;
    buf_init(&b->results);
    cx->state = b;
    cx->cleanup = cleanup;
    return b;
}

/* Memory for what an operation is parsed into, until the next one. */
static struct arena *op_arena(struct command_ctx *cx, struct bulk_write *b)
{
    if (b->index == 0)
        return cx->op.arena;
    if (b->arena && arena_used(b->arena) > ARENA_KEEP) {
        arena_free(b->arena);
        b->arena = NULL;
    }
    if (b->arena)
        arena_reset(b->arena);
    else
        b->arena = arena_new(0);
    return b->arena;
}

/* ---- results ---- */

static void put_result(struct bulk_write *b, int32_t n, int32_t n_modified, struct bval upserted)
{
    struct buf *r = &b->results;
    if (b->req.errors_only)
        return;
    size_t at = bw_begin(r);
    bw_f64(r, "ok", 1);
    bw_i32(r, "idx", (int32_t)b->index);
    bw_i32(r, "n", n);
    if (b->op.kind == BULK_UPDATE)
        bw_i32(r, "nModified", n_modified);
    if (!bval_is_missing(upserted)) {
        size_t id = bw_doc(r, "upserted");
        bw_val(r, "_id", upserted);
        bw_end(r, id);
    }
    bw_end(r, at);
}

static void put_error(struct command_ctx *cx, struct bulk_write *b)
{
    struct buf *r = &b->results;
    struct err *err = &cx->op.err;
    struct biter it;
    struct belem e;
    size_t at = bw_begin(r);
    bw_f64(r, "ok", 0);
    bw_i32(r, "idx", (int32_t)b->index);
    bw_i32(r, "code", err->code);
    bw_str(r, "errmsg", err->msg);
    if (err->info.p)
        for (biter_init(&it, err->info.p); biter_next(&it, &e);)
            bw_val(r, e.name, e.v);
    bw_i32(r, "n", 0);
    if (b->op.kind == BULK_UPDATE)
        bw_i32(r, "nModified", 0);
    bw_end(r, at);
    b->n_errors++;
    err_clear(err);
}

static void count(struct bulk_write *b, int32_t n, int32_t n_modified, struct bval upserted)
{
    bool inserted = !bval_is_missing(upserted);
    switch (b->op.kind) {
    case BULK_INSERT:
        b->n_inserted += n;
        break;
    case BULK_UPDATE:
        b->n_upserted += inserted;
        b->n_matched += inserted ? 0 : n;
        b->n_modified += n_modified;
        break;
    case BULK_DELETE:
        b->n_deleted += n;
        break;
    }
    put_result(b, n, n_modified, upserted);
}

/* An operation that was run when the command was first sent counts as it did then. */
static void take_retried(struct bulk_write *b, const struct retry_statement *done)
{
    count(b, 1, done->kind == RETRY_UPDATED, done->kind == RETRY_UPSERTED ? done->upserted : BVAL_MISSING);
    b->index++;
}

/* The last step: the results become a cursor, the command's state its first batch. */
static enum op_status reply(struct command_ctx *cx, struct bulk_write *b)
{
    struct buf *out = cx->reply;
    if (cx->req->no_reply)
        b->results.len = 0; /* nobody would close the cursor */
    enum op_status s =
        read_documents(cx, "admin.$cmd.bulkWrite", buf_slice(&b->results), b->req.batch_size); /* never waits */
    bw_i32(out, "nErrors", b->n_errors);
    bw_i32(out, "nInserted", b->n_inserted);
    bw_i32(out, "nMatched", b->n_matched);
    bw_i32(out, "nModified", b->n_modified);
    bw_i32(out, "nUpserted", b->n_upserted);
    bw_i32(out, "nDeleted", b->n_deleted);
    write_retry_reply(b->retry, out);
    end(cx, b);
    return s;
}

/* ---- the run ---- */

static enum write_result op_step(struct command_ctx *cx, struct bulk_write *b)
{
    if (b->op.kind == BULK_INSERT) {
        enum write_result r = insert_step(&b->w, &b->insert, b->op.document, &cx->op.err);
        if (r == WRITE_OK)
            count(b, 1, 0, BVAL_MISSING);
        return r;
    }
    if (!b->running && bulk_op_parse(cx, &b->op, op_arena(cx, b), &b->sort, &b->modify) != 0)
        return WRITE_FAILED;
    b->running = true;
    enum write_result r = modify_step(&b->w, &b->modify, &cx->op.err);
    if (r == WRITE_WAIT || r == WRITE_AGAIN)
        return r;
    b->running = false;
    if (r == WRITE_OK)
        count(b, (int32_t)b->modify.matched + !bval_is_missing(b->modify.upserted), (int32_t)b->modify.changed,
              b->modify.upserted);
    return r;
}

static void count_op(struct command_ctx *cx, enum bulk_kind kind)
{
    struct server *s = cx->server;
    _Atomic int64_t *counter = kind == BULK_INSERT   ? &s->op_insert
                               : kind == BULK_UPDATE ? &s->op_update
                                                     : &s->op_delete;
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* The next operation comes in hand, unless what is in the batch is to be committed first. */
static void next(struct command_ctx *cx, struct bulk_write *b)
{
    struct write_items here = b->req.ops;
    const struct retry_statement *done;
    const uint8_t *item;
    writer_make_way(&b->w);
    if (!write_items_next(&b->req.ops, &item)) {
        b->last = true;
        b->stage = BULK_FLUSH;
        return;
    }
    int rc = bulk_op_read(cx, item, &b->op);
    OV_ASSERT(rc == 0);                                                          /* it has been checked */
    if (b->w.batch && (b->op.ns != b->writer_ns || b->op.kind != BULK_INSERT)) { /* an update sees what was inserted */
        b->req.ops = here;
        b->stage = BULK_FLUSH;
        return;
    }
    if (OV_UNLIKELY(b->retry != NULL)) {
        if ((done = write_retry_next(b->retry, b->index))) {
            take_retried(b, done);
            return;
        }
        b->retry->retry.upserts = b->op.kind == BULK_UPDATE;
    }
    if (b->op.ns != b->writer_ns)
        open_writer(cx, b, b->op.ns);
    count_op(cx, b->op.kind);
    b->stage = BULK_ITEM;
}

static void op_done(struct command_ctx *cx, struct bulk_write *b, bool failed)
{
    b->stage = BULK_NEXT;
    if (failed) {
        put_error(cx, b);
        b->last = b->req.ordered;
        b->stage = BULK_FLUSH;
    }
    b->index++;
    if (op_slice_over(&cx->op)) { /* nothing is locked while others run */
        b->again = true;
        b->stage = BULK_FLUSH;
    }
}

static enum op_status stop_for(struct command_ctx *cx, struct bulk_write *b, enum write_result r)
{
    if (r == WRITE_WAIT)
        writer_hold(&b->w);
    if (r == WRITE_FAILED) /* the commit, by a fail point */
        return OP_DONE;
    return r == WRITE_WAIT ? OP_WAIT : command_engine_error(cx, b->w.engine_result);
}

static enum op_status flush(struct command_ctx *cx, struct bulk_write *b, bool *pause)
{
    enum write_result r = writer_commit(&b->w);
    if (r != WRITE_OK)
        return stop_for(cx, b, r);
    writer_make_way(&b->w);
    if (b->results.len > RESULTS_MAX && !b->last)
        return command_fail(cx, ERR_EXCEEDED_MEMORY_LIMIT, "BulkWrite response size exceeded limit (%d bytes)",
                            RESULTS_MAX);
    b->stage = b->last ? BULK_SYNC : BULK_NEXT;
    if (b->last)
        close_writer(b); /* whoever waits for the collection need not wait for the disk */
    *pause = b->again;
    b->again = false;
    return OP_AGAIN;
}

static enum op_status sync_journal(struct command_ctx *cx, struct bulk_write *b)
{
    enum eng_result er = cx->journaled ? eng_sync(cx->server->engine, &cx->call) : ENG_OK;
    if (er == ENG_PENDING)
        return OP_WAIT;
    b->finished = true;
    b->stage = BULK_REPLY;
    return er == ENG_OK ? OP_AGAIN : command_engine_error(cx, er);
}

/* AGAIN with *pause: to the host; without: on with the next stage. */
static enum op_status once(struct command_ctx *cx, struct bulk_write *b, bool *pause)
{
    enum write_result r;
    enum op_status s;
    switch (b->stage) {
    case BULK_SESSION:
        if (!write_retry_begin(cx, b->retry, &s)) {
            *pause = s == OP_AGAIN;
            return s;
        }
        b->stage = BULK_NEXT;
        return OP_AGAIN;
    case BULK_NEXT:
        next(cx, b);
        return OP_AGAIN;
    case BULK_ITEM:
        r = op_step(cx, b);
        if (r == WRITE_OK || r == WRITE_FAILED) {
            op_done(cx, b, r == WRITE_FAILED);
            return OP_AGAIN;
        }
        *pause = r == WRITE_AGAIN;
        return r == WRITE_AGAIN ? OP_AGAIN : stop_for(cx, b, r);
    case BULK_FLUSH:
        return flush(cx, b, pause);
    case BULK_SYNC:
        return sync_journal(cx, b);
    case BULK_REPLY:
        return reply(cx, b);
    }
    return OP_DONE;
}

enum op_status cmd_bulk_write(struct command_ctx *cx)
{
    struct bulk_write *b;
    enum op_status s = OP_AGAIN;
    bool pause = false;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE; /* ends the whole command, whatever has been done */
    if (!(b = cx->state ? cx->state : start(cx)))
        return OP_DONE;
    while (s == OP_AGAIN && !pause)
        s = once(cx, b, &pause);
    return s;
}
