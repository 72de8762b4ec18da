/* findAndModify. One document is updated, replaced or removed, and answered as it was or as it is. */
#include "server/commands/write_args.h"
#include "server/commands/write_batch.h"
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
    NULL,
};

static const char WHERE[] = "findAndModify";

struct find_and_modify {
    struct writer w;
    struct modify modify;
    struct project *fields;
    struct sort_spec sort;
    bool fresh;    /* the image is the new document */
    bool finished; /* replied; nothing is pending */
    enum { RUN, SYNC } stage;
};

struct asked {
    const uint8_t *query, *sort, *fields;
    struct bval update, array_filters, hint;
    bool remove, fresh, upsert, keep_empty_ts;
};

/* ---- the request ---- */

static int read_field(struct command_ctx *cx, const struct belem *e, struct asked *q)
{
    bool ignored; /* there are no validators */
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
        (q.fields && (rc = project_parse(a, q.fields, &s->fields, err)) != 0))
        return rc;
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

static void reply(struct command_ctx *cx, const struct find_and_modify *s)
{
    const struct modify *m = &s->modify;
    bool upserted = !bval_is_missing(m->upserted);
    size_t last = bw_doc(cx->reply, "lastErrorObject");
    bw_i32(cx->reply, "n", (int32_t)(m->matched + upserted));
    if (m->update)
        bw_bool(cx->reply, "updatedExisting", m->matched != 0);
    if (upserted)
        bw_val(cx->reply, "upserted", m->upserted);
    bw_end(cx->reply, last);
    const uint8_t *image = s->fresh ? m->after : m->before;
    if (!image) {
        bw_null(cx->reply, "value");
    } else if (!s->fields) {
        bw_rawdoc(cx->reply, "value", image);
    } else {
        struct buf projected;
        buf_init(&projected);
        project_apply(s->fields, image, &projected);
        bw_rawdoc(cx->reply, "value", projected.p);
        buf_free(&projected);
    }
}

/* ---- the run ---- */

static void cleanup(struct command_ctx *cx)
{
    struct find_and_modify *s = cx->state;
    if (!s->finished)
        writer_cancel(&s->w);
    modify_end(&s->modify);
    writer_end(&s->w);
}

static struct find_and_modify *start(struct command_ctx *cx)
{
    struct find_and_modify *s = arena_zalloc(cx->op.arena, sizeof(*s));
    const char *coll;
    if (arg_collection(cx, &coll) != 0 || parse(cx, s) != 0 || write_check(cx, coll) != 0)
        return NULL;
    s->w = (struct writer){
        .e = cx->server->engine,
        .c = cx->server->catalog,
        .op = &cx->op,
        .call = &cx->call,
        .arena = cx->op.arena,
        .db = cx->req->db,
        .name = coll,
    };
    cx->state = s;
    cx->cleanup = cleanup;
    atomic_fetch_add_explicit(s->modify.update ? &cx->server->op_update : &cx->server->op_delete, 1,
                              memory_order_relaxed);
    return s;
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
    writer_end(&s->w); /* whoever waits for the collection need not wait for the disk */
    s->finished = !cx->journaled;
    if (s->finished)
        return OP_DONE;
    s->stage = SYNC;
    return OP_AGAIN;
}

enum op_status cmd_find_and_modify(struct command_ctx *cx)
{
    struct find_and_modify *s = cx->state ? cx->state : start(cx);
    if (!s || op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (s->stage == RUN) {
        enum op_status out = run(cx, s);
        if (s->stage == RUN)
            return out;
    }
    enum eng_result r = eng_sync(cx->server->engine, &cx->call);
    return r == ENG_PENDING ? OP_WAIT : r == ENG_OK ? OP_DONE : command_engine_error(cx, r);
}
