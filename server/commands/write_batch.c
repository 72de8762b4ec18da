/* (SESSION) -> NEXT -> ITEM -> (FLUSH) -> NEXT … REPLY -> SYNC. An item that fails flushes first, so that whatever stands before its index in the batch
 * is committed or has an error of its own. */
#include "server/commands/write_batch.h"

enum { ERRORS_WITH_TEXT = 1024 * 1024, ARENA_KEEP = 1024 * 1024 };

/* ---- items ---- */

bool write_items_next(struct write_items *items, const uint8_t **doc)
{
    struct belem e;
    if (items->sequence) {
        if (items->p >= items->end)
            return false;
        *doc = items->p;
        items->p += bdoc_len(items->p);
        return true;
    }
    if (!biter_next(&items->it, &e))
        return false;
    *doc = bval_doc(e.v);
    return true;
}

static int wrong_type(struct command_ctx *cx, const char *field, const char *element, struct bval v, const char *wanted)
{
    return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "BSON field '%s.%s%s%s' is the wrong type '%s', expected type '%s'",
                   cx->cmd->name, field, element ? "." : "", element ? element : "", bval_type_name(v.type), wanted);
}

static int items_of_array(struct command_ctx *cx, const char *field, struct bval v, struct write_items *out)
{
    struct belem e;
    if (v.type != BSON_TYPE_ARRAY)
        return wrong_type(cx, field, NULL, v, "array");
    biter_init(&out->it, bval_doc(v));
    for (struct biter it = out->it; biter_next(&it, &e); out->n++)
        if (e.v.type != BSON_TYPE_DOCUMENT)
            return wrong_type(cx, field, e.name, e.v, "object");
    return 0;
}

int write_items_open(struct command_ctx *cx, const char *field, struct write_items *out)
{
    const struct request *req = cx->req;
    const struct sequence *seq = NULL;
    struct bval v = bdoc_get(req->body, field);
    for (uint32_t i = 0; i < req->n_seqs; i++)
        if (strcmp(req->seqs[i].name, field) == 0) {
            if (seq || !bval_is_missing(v))
                return err_set(&cx->op.err, ERR_IDL_DUPLICATE_FIELD, "BSON field '%s.%s' is a duplicate field",
                               cx->cmd->name, field);
            seq = &req->seqs[i];
        }
    *out = (struct write_items){0};
    if (seq) {
        *out = (struct write_items){.sequence = true, .p = seq->p, .end = seq->p + seq->n, .n = seq->count};
    } else if (bval_is_missing(v)) {
        return err_set(&cx->op.err, ERR_IDL_FAILED_TO_PARSE, "BSON field '%s.%s' is missing but a required field",
                       cx->cmd->name, field);
    } else {
        int rc = items_of_array(cx, field, v, out);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int write_items_check(struct command_ctx *cx, const struct write_items *items)
{
    if (items->n == 0 || items->n > WRITE_ITEMS_MAX)
        return err_set(&cx->op.err, ERR_INVALID_LENGTH,
                       "Write batch sizes must be between 1 and %d. Got %u operations.", WRITE_ITEMS_MAX, items->n);
    return 0;
}

/* ---- what may be written ---- */

int write_check_ns(struct command_ctx *cx, const char *db, const char *coll)
{
    if (OV_UNLIKELY(strncmp(coll, "system.", 7) == 0) && strcmp(coll, "system.js") != 0)
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "cannot write to %s.%s", db, coll);
    return 0;
}

int write_check(struct command_ctx *cx, const char *coll)
{
    return write_check_ns(cx, cx->req->db, coll);
}

/* ---- begin and end ---- */

static void cleanup(struct command_ctx *cx)
{
    struct write_batch *b = cx->state;
    if (!b->finished)
        writer_cancel(&b->w);
    if (b->end)
        b->end(b);
    cx->wrote = b->w.committed != 0;
    cx->own_ts = b->w.last_ts;
    writer_end(&b->w);
    write_retry_end(b->retry);
    buf_free(&b->errors);
    buf_free(&b->upserted);
    arena_free(b->arena);
    b->arena = NULL;
}

bool write_batch_start(struct command_ctx *cx, struct write_batch *b, const char *field)
{
    const char *coll;
    bool bypass;
    if (arg_collection(cx, &coll) != 0 || write_items_open(cx, field, &b->items) != 0 ||
        write_items_check(cx, &b->items) != 0 || arg_bool(cx, "ordered", true, &b->ordered) != 0 ||
        arg_bool(cx, "bypassDocumentValidation", false, &bypass) != 0 || write_check(cx, coll) != 0 ||
        write_retry_new(cx, b->items.n, &b->retry) != 0)
        return false;
    b->all = b->items;
    b->w = (struct writer){
        .e = cx->server->engine,
        .c = cx->server->catalog,
        .op = &cx->op,
        .call = &cx->call,
        .arena = cx->op.arena,
        .db = cx->req->db,
        .name = coll,
        .bypass_validation = bypass,
        .outcomes = b->retry ? &b->retry->retry.outcomes : NULL,
    };
    b->stage = b->retry ? BATCH_SESSION : BATCH_NEXT;
    cx->state = b;
    cx->cleanup = cleanup;
    return true;
}

struct arena *write_batch_arena(struct command_ctx *cx, struct write_batch *b)
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

/* ---- errors and the reply ---- */

static void add_error(struct command_ctx *cx, struct write_batch *b, uint32_t index)
{
    struct err *err = &cx->op.err;
    char scratch[12];
    size_t at = bw_doc(&b->errors, bw_index(b->n_errors++, scratch));
    bw_i32(&b->errors, "index", (int32_t)index);
    bw_i32(&b->errors, "code", err->code);
    bool terse = b->errors.len > ERRORS_WITH_TEXT; /* the reply must stay below 16 MiB */
    if (err->info.p && !terse) {
        struct biter it;
        struct belem e;
        for (biter_init(&it, err->info.p); biter_next(&it, &e);)
            bw_val(&b->errors, e.name, e.v);
    }
    bw_str(&b->errors, "errmsg",
           b->errors.len > ERRORS_WITH_TEXT ? "" : err->msg); /* the reply must stay below 16 MiB */
    bw_end(&b->errors, at);
    err_clear(err);
}

static void add_array(struct buf *reply, const char *name, const struct buf *elements)
{
    size_t at = bw_arr(reply, name);
    buf_append(reply, elements->p, elements->len);
    bw_end(reply, at);
}

static void reply(struct command_ctx *cx, struct write_batch *b)
{
    uint32_t retried = b->retry ? b->retry->n_retried : 0;
    if (OV_UNLIKELY(cx->w0 && !cx->journaled)) { /* and yet a reply is wanted: it tells nothing */
        bw_i32(cx->reply, "n", 0);
        if (b->counts_changed)
            bw_i32(cx->reply, "nModified", 0);
        return;
    }
    bw_i32(cx->reply, "n", (int32_t)(b->n_of_writer ? (int64_t)b->w.committed + retried : b->n));
    if (b->n_errors)
        add_array(cx->reply, "writeErrors", &b->errors);
    write_retry_reply(b->retry, cx->reply);
    if (b->n_upserted)
        add_array(cx->reply, "upserted", &b->upserted);
    if (b->counts_changed)
        bw_i32(cx->reply, "nModified", (int32_t)b->n_modified);
}

/* ---- the run ---- */

/* The engine has refused a batch. A command that has done nothing yet fails as a whole; else it tells how far it came. */
static enum op_status engine_failed(struct command_ctx *cx, struct write_batch *b)
{
    bool began = b->w.committed || b->n || b->n_errors;
    command_engine_error(cx, b->w.engine_result);
    if (!began || !cx->op.err.code)
        return OP_DONE;
    uint32_t retried = b->retry ? b->retry->n_retried : 0;
    add_error(cx, b, b->n_of_writer ? (uint32_t)b->w.committed + b->n_errors + retried : b->index);
    b->stage = BATCH_REPLY;
    return OP_AGAIN;
}

static enum op_status item_done(struct command_ctx *cx, struct write_batch *b, bool failed)
{
    b->stage = BATCH_NEXT;
    if (failed) {
        add_error(cx, b, b->index);
        b->last = b->ordered;
        b->stage = BATCH_FLUSH;
    }
    b->index++;
    if (op_slice_over(&cx->op)) { /* nothing is locked while others run */
        b->again = true;
        b->stage = BATCH_FLUSH;
    }
    return OP_AGAIN;
}

/* A statement that was run when the command was first sent counts as it did then. */
static void take_retried(struct write_batch *b, const struct retry_statement *done)
{
    b->n++;
    b->n_modified += done->kind == RETRY_UPDATED;
    if (done->kind == RETRY_UPSERTED)
        write_batch_upserted(b, done->upserted);
    b->index++;
}

void write_batch_upserted(struct write_batch *b, struct bval id)
{
    char scratch[12];
    size_t at = bw_doc(&b->upserted, bw_index(b->n_upserted++, scratch));
    bw_i32(&b->upserted, "index", (int32_t)b->index);
    bw_val(&b->upserted, "_id", id);
    bw_end(&b->upserted, at);
}

static enum op_status stop_for(struct command_ctx *cx, struct write_batch *b, enum write_result r)
{
    if (r == WRITE_WAIT)
        writer_hold(&b->w);
    if (r == WRITE_FAILED) /* the commit, by a fail point */
        return OP_DONE;
    return r == WRITE_WAIT ? OP_WAIT : engine_failed(cx, b);
}

/* AGAIN with *pause: to the host; without: on with the next stage. */
static enum op_status once(struct command_ctx *cx, struct write_batch *b, bool *pause)
{
    enum write_result r;
    enum eng_result er;
    enum op_status s;
    const struct retry_statement *done;
    switch (b->stage) {
    case BATCH_SESSION:
        if (!write_retry_begin(cx, b->retry, &s)) {
            *pause = s == OP_AGAIN;
            return s;
        }
        b->stage = BATCH_NEXT;
        return OP_AGAIN;
    case BATCH_NEXT:
        writer_make_way(&b->w);
        b->stage = BATCH_ITEM;
        if (!write_items_next(&b->items, &b->item)) {
            b->last = true;
            b->stage = BATCH_FLUSH;
        } else if (OV_UNLIKELY(b->retry != NULL) && (done = write_retry_next(b->retry, b->index))) {
            take_retried(b, done);
            b->stage = BATCH_NEXT;
        }
        return OP_AGAIN;
    case BATCH_ITEM:
        r = b->step(cx, b);
        if (r == WRITE_OK || r == WRITE_FAILED)
            return item_done(cx, b, r == WRITE_FAILED);
        *pause = r == WRITE_AGAIN;
        return r == WRITE_AGAIN ? OP_AGAIN : stop_for(cx, b, r);
    case BATCH_FLUSH:
        if ((r = writer_commit(&b->w)) != WRITE_OK)
            return stop_for(cx, b, r);
        writer_make_way(&b->w);
        b->stage = b->last ? BATCH_REPLY : BATCH_NEXT;
        *pause = b->again;
        b->again = false;
        return OP_AGAIN;
    case BATCH_REPLY:
        reply(cx, b);
        if (b->end)
            b->end(b);
        writer_end(&b->w); /* whoever waits for the collection need not wait for the disk */
        write_retry_end(b->retry);
        b->stage = BATCH_SYNC;
        b->finished = !cx->journaled;
        return b->finished ? OP_DONE : OP_AGAIN;
    case BATCH_SYNC:
        er = eng_sync(cx->server->engine, &cx->call);
        return er == ENG_PENDING ? OP_WAIT : er == ENG_OK ? OP_DONE : command_engine_error(cx, er);
    }
    return OP_DONE;
}

enum op_status write_batch_run(struct command_ctx *cx, struct write_batch *b)
{
    enum op_status s = OP_AGAIN;
    bool pause = false;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE; /* ends the whole command, whatever has been done */
    while (s == OP_AGAIN && !pause)
        s = once(cx, b, &pause);
    return s;
}
