/* findAndModify. One document is updated, replaced or removed, and answered as it was or as it is. */
#include "server/commands/write_args.h"
#include "server/commands/write_batch.h"
#include "server/commands/write_retry.h"
#include "server/write/modify.h"

const char *const find_and_modify_fields[] = {
    "query",
    "sort",
    "remove",
    "update",
    "new",
    "fields",
    "upsert",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "arrayFilters",
    "hint",
    "let",
    "collation",
    "stmtId",
    NULL,
};

static const char WHERE[] = "findAndModify";

struct find_and_modify {
    struct writer w;
    struct modify modify;
    struct project *fields;
    struct sort_spec sort;
    struct write_retry *retry; /* NULL: no retryable write */
    bool fresh;                /* the image is the new document */
    bool finished;             /* replied; nothing is pending */
    enum { RUN, SYNC, SESSION /* first of a retryable write */ } stage;
};

struct asked {
    const uint8_t *query, *sort, *fields;
    struct bval update, array_filters, hint;
    bool remove, fresh, upsert, keep_empty_ts;
};

/* ---- the request ---- */

static int read_field(struct command_ctx *cx, const struct belem *e, struct asked *q)
{
    bool ignored; /* read below, by start */
    if (e->v.type == BSON_TYPE_NULL && e->name[0] != 'u' && e->name[0] != 'h')
        return 0; /* as if it were not there */
    if (e->v.type == BSON_TYPE_NULL && strcmp(e->name, "upsert") == 0)
        return 0;
    switch (e->name[0]) {
    case 'q':
        return strcmp(e->name, "query") == 0 ? write_arg_doc(cx, WHERE, e, &q->query) : 0;
    case 's':
        return strcmp(e->name, "sort") == 0 ? write_arg_doc(cx, WHERE, e, &q->sort) : 0;
    case 'r':
        return strcmp(e->name, "remove") == 0 ? write_arg_bool(cx, WHERE, e, &q->remove) : 0;
    case 'n':
        return strcmp(e->name, "new") == 0 ? write_arg_bool(cx, WHERE, e, &q->fresh) : 0;
    case 'f':
        return strcmp(e->name, "fields") == 0 ? write_arg_doc(cx, WHERE, e, &q->fields) : 0;
    case 'u':
        if (strcmp(e->name, "update") == 0)
            return write_arg_update(cx, e, &q->update);
        return strcmp(e->name, "upsert") == 0 ? write_arg_bool(cx, WHERE, e, &q->upsert) : 0;
    case 'a':
        return strcmp(e->name, "arrayFilters") == 0 ? write_arg_array(cx, WHERE, e, &q->array_filters) : 0;
    case 'h':
        return strcmp(e->name, "hint") == 0 ? write_arg_hint(cx, WHERE, e, &q->hint) : 0;
    case 'b':
        if (strcmp(e->name, "bypassEmptyTsReplacement") == 0)
            return write_arg_bool(cx, WHERE, e, &q->keep_empty_ts);
        return strcmp(e->name, "bypassDocumentValidation") == 0 ? write_arg_bool(cx, WHERE, e, &ignored) : 0;
    case 'l':
        return strcmp(e->name, "let") == 0 ? write_arg_variables(cx, WHERE, e) : 0;
    case 'c':
        return strcmp(e->name, "collation") == 0 ? write_arg_collation(cx, WHERE, e) : 0;
    default:
        return 0; /* generic fields: dispatch has looked at the names */
    }
}

static int check_together(struct command_ctx *cx, const struct asked *q)
{
    struct err *err = &cx->op.err;
    bool update = !bval_is_missing(q->update), filters = !bval_is_missing(q->array_filters);
    if (!q->remove && !update)
        return err_set(err, ERR_FAILED_TO_PARSE, "Either an update or remove=true must be specified");
    if (q->remove && update)
        return err_set(err, ERR_FAILED_TO_PARSE, "Cannot specify both an update and remove=true");
    if (q->remove && q->upsert)
        return err_set(err, ERR_FAILED_TO_PARSE, "Cannot specify both upsert=true and remove=true ");
    if (q->remove && q->fresh)
        return err_set(err, ERR_FAILED_TO_PARSE,
                       "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document");
    if (q->remove && filters)
        return err_set(err, ERR_FAILED_TO_PARSE, "Cannot specify arrayFilters and remove=true");
    if (filters && q->update.type == BSON_TYPE_ARRAY)
        return err_set(err, ERR_FAILED_TO_PARSE, "Cannot specify arrayFilters and a pipeline update");
    return q->keep_empty_ts ? write_arg_empty_ts(cx, q->update) : 0;
}

static int parse(struct command_ctx *cx, struct find_and_modify *s)
{
    struct arena *a = cx->op.arena;
    struct err *err = &cx->op.err;
    struct asked q = {.query = WRITE_EMPTY_DOC};
    struct match *filter;
    struct update *update = NULL;
    struct biter it;
    struct belem e;
    int rc;
    biter_init(&it, cx->req->body);
    biter_next(&it, &e); /* the command itself */
    while (biter_next(&it, &e))
        if ((rc = read_field(cx, &e, &q)) != 0)
            return rc;
    if ((rc = check_together(cx, &q)) != 0 || (rc = match_parse(a, q.query, &filter, err)) != 0 ||
        (!q.remove && (rc = update_parse(a, q.update, q.array_filters, false, &update, err)) != 0) ||
        (q.sort && (rc = sort_parse(a, q.sort, &s->sort, err)) != 0) ||
        (q.fields && (rc = project_parse_find(a, q.fields, filter, &s->fields, err)) != 0))
        return rc;
    if (q.fresh && s->fields && project_is_positional(s->fields))
        return err_set(err, ERR_BAD_VALUE, "Cannot use a positional projection and return the new document.");
    s->fresh = q.fresh;
    s->modify = (struct modify){
        .arena = a,
        .filter = filter,
        .update = update,
        .upsert = q.upsert,
        .keep_before = !q.fresh,
        .keep_after = q.fresh,
        .sort = s->sort.n || s->sort.natural ? &s->sort : NULL,
        .hint = q.hint,
        .verb = "findAndModify",
    };
    return 0;
}

/* ---- the reply ---- */

static void put_result(struct command_ctx *cx, const struct find_and_modify *s, bool found, struct bval upserted,
                       const uint8_t *image)
{
    bool inserted = !bval_is_missing(upserted);
    size_t last = bw_doc(cx->reply, "lastErrorObject");
    bw_i32(cx->reply, "n", found + inserted);
    if (s->modify.update)
        bw_bool(cx->reply, "updatedExisting", found);
    if (inserted)
        bw_val(cx->reply, "upserted", upserted);
    bw_end(cx->reply, last);
    if (!image) {
        bw_null(cx->reply, "value");
    } else if (!s->fields) {
        bw_rawdoc(cx->reply, "value", image);
    } else {
        struct buf projected;
        buf_init(&projected);
        /* where the projection fails the command does, though the write was made: as with the real server */
        if (project_apply(s->fields, image, &projected, &cx->op.err) == 0)
            bw_rawdoc(cx->reply, "value", projected.p);
        buf_free(&projected);
    }
}

static void reply(struct command_ctx *cx, const struct find_and_modify *s)
{
    const struct modify *m = &s->modify;
    put_result(cx, s, m->matched != 0, m->upserted, s->fresh ? m->after : m->before);
}

static int other_command(struct command_ctx *cx, int code, const char *why)
{
    return err_set(&cx->op.err, code, "findAndModify retry request: %s %s",
                   bval_shell(cx->op.arena, bval_from_doc(cx->req->body)), why);
}

/* The answer of a command that was run before. What is asked for now must be what was kept then. */
static int reply_again(struct command_ctx *cx, const struct find_and_modify *s, const struct retry_statement *done)
{
    bool inserted = done->kind == RETRY_UPSERTED, removed = done->kind == RETRY_REMOVED;
    enum retry_image wanted = s->fresh ? RETRY_IMAGE_AFTER : RETRY_IMAGE_BEFORE;
    if (removed && s->modify.update)
        return other_command(cx, 40607, "is not compatible with previous write in the transaction of type: delete");
    if (!removed && !s->modify.update)
        return other_command(cx, 40606, "is not compatible with previous write in the transaction of type: update");
    if (inserted && !s->modify.upsert)
        return other_command(cx, 40608, "is not compatible with previous write in the transaction of type: insert");
    if (s->fresh && done->image_kind != wanted)
        return other_command(cx, 40611,
                             "wants the document after update returned, but only before update document is stored");
    if (!s->fresh && !inserted && done->image_kind != wanted)
        return other_command(cx, 40610,
                             "wants the document before update returned, but only after update document is stored");
    put_result(cx, s, !inserted, done->upserted, s->fresh || !inserted ? done->image : NULL);
    bw_i32(cx->reply, "retriedStmtId", done->id);
    return 0;
}

/* ---- the run ---- */

static void cleanup(struct command_ctx *cx)
{
    struct find_and_modify *s = cx->state;
    if (!s->finished)
        writer_cancel(&s->w);
    modify_end(&s->modify);
    cx->wrote = s->w.committed != 0;
    cx->own_ts = s->w.last_ts;
    writer_end(&s->w);
    write_retry_end(s->retry);
}

static struct find_and_modify *start(struct command_ctx *cx)
{
    struct find_and_modify *s = arena_zalloc(cx->op.arena, sizeof(*s));
    const char *coll;
    if (arg_collection(cx, &coll) != 0 || parse(cx, s) != 0 || write_check(cx, coll) != 0 ||
        write_retry_new(cx, 1, &s->retry) != 0)
        return NULL;
    s->w = (struct writer){
        .e = cx->server->engine,
        .c = cx->server->catalog,
        .op = &cx->op,
        .call = &cx->call,
        .arena = cx->op.arena,
        .db = cx->req->db,
        .name = coll,
        .bypass_validation = bval_truthy(bdoc_get(cx->req->body, "bypassDocumentValidation")),
        .outcomes = s->retry ? &s->retry->retry.outcomes : NULL,
    };
    if (s->retry) {
        s->retry->retry.upserts = true;
        s->retry->retry.keep_image = s->fresh ? RETRY_IMAGE_AFTER : RETRY_IMAGE_BEFORE;
        s->stage = SESSION;
    }
    cx->state = s;
    cx->cleanup = cleanup;
    atomic_fetch_add_explicit(s->modify.update ? &cx->server->op_update : &cx->server->op_delete, 1,
                              memory_order_relaxed);
    return s;
}

/* Nothing is left but the disk, and whoever waits for the collection or the session need not wait for that. */
static enum op_status replied(struct command_ctx *cx, struct find_and_modify *s)
{
    writer_end(&s->w);
    write_retry_end(s->retry);
    s->finished = !cx->journaled;
    if (s->finished)
        return OP_DONE;
    s->stage = SYNC;
    return OP_AGAIN;
}

static enum op_status run(struct command_ctx *cx, struct find_and_modify *s)
{
    enum write_result r = modify_step(&s->w, &s->modify, &cx->op.err);
    switch (r) {
    case WRITE_WAIT:
        return OP_WAIT;
    case WRITE_AGAIN:
        return OP_AGAIN;
    case WRITE_ENGINE:
        return command_engine_error(cx, s->w.engine_result);
    case WRITE_OK:
        break;
    default:
        return OP_DONE;
    }
    reply(cx, s);
    return replied(cx, s);
}

/* Has the command been run before? Then it is answered as it was. */
static enum op_status session(struct command_ctx *cx, struct find_and_modify *s)
{
    enum op_status out;
    const struct retry_statement *done;
    if (!write_retry_begin(cx, s->retry, &out))
        return out;
    if (!(done = write_retry_next(s->retry, 0))) {
        s->stage = RUN;
        return OP_AGAIN;
    }
    return reply_again(cx, s, done) == 0 ? replied(cx, s) : OP_DONE;
}

enum op_status cmd_find_and_modify(struct command_ctx *cx)
{
    struct find_and_modify *s = cx->state ? cx->state : start(cx);
    if (!s || op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (s->stage == SESSION) {
        enum op_status out = session(cx, s);
        if (s->stage == SESSION || out != OP_AGAIN)
            return out;
    }
    if (s->stage == RUN) {
        enum op_status out = run(cx, s);
        if (s->stage == RUN)
            return out;
    }
    enum eng_result r = eng_sync(cx->server->engine, &cx->call);
    return r == ENG_PENDING ? OP_WAIT : r == ENG_OK ? OP_DONE : command_engine_error(cx, r);
}
