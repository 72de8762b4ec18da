/* update. All statements are checked for their fields before the first is run; what a statement means is found out when it is its turn. */
#include "server/commands/write_args.h"
#include "server/commands/write_batch.h"
#include "server/write/modify.h"

const char *const update_fields[] = {
    "updates", "ordered", "bypassDocumentValidation", "bypassEmptyTsReplacement", "let", "stmtId", "stmtIds", NULL};

static const char WHERE[] = "update.updates";

struct update_cmd {
    struct write_batch batch; /* first */
    bool running;
    struct modify modify;
    struct sort_spec sort;
};

struct statement {
    const uint8_t *q, *sort;
    struct bval u, array_filters, hint;
    bool multi, upsert;
};

static int read_field(struct command_ctx *cx, const struct belem *e, struct statement *s)
{
    bool ignored;
    if (strcmp(e->name, "q") == 0)
        return write_arg_doc(cx, WHERE, e, &s->q);
    if (strcmp(e->name, "u") == 0)
        return write_arg_update(cx, e, &s->u);
    if (strcmp(e->name, "multi") == 0)
        return write_arg_bool(cx, WHERE, e, &s->multi);
    if (strcmp(e->name, "upsert") == 0)
        return write_arg_bool(cx, WHERE, e, &s->upsert);
    if (strcmp(e->name, "hint") == 0)
        return write_arg_hint(cx, WHERE, e, &s->hint);
    if (strcmp(e->name, "arrayFilters") == 0)
        return write_arg_array(cx, WHERE, e, &s->array_filters);
    if (strcmp(e->name, "sort") == 0)
        return write_arg_doc(cx, WHERE, e, &s->sort);
    if (strcmp(e->name, "collation") == 0)
        return write_arg_collation(cx, WHERE, e);
    if (strcmp(e->name, "c") == 0)
        return write_arg_variables(cx, WHERE, e);
    if (strcmp(e->name, "upsertSupplied") == 0)
        return write_arg_bool(cx, WHERE, e, &ignored); /* $setOnInsert of a router: says what u does anyway */
    return write_arg_unknown(cx, WHERE, e);
}

static int read_statement(struct command_ctx *cx, const uint8_t *item, struct statement *s)
{
    struct biter it;
    struct belem e;
    int rc;
    *s = (struct statement){0};
    for (biter_init(&it, item); biter_next(&it, &e);)
        if ((rc = read_field(cx, &e, s)) != 0)
            return rc;
    if (!s->q)
        return write_arg_missing(cx, WHERE, "q");
    if (bval_is_missing(s->u))
        return write_arg_missing(cx, WHERE, "u");
    return 0;
}

static int check_all(struct command_ctx *cx, struct write_items items, bool keep_empty_ts)
{
    struct statement s;
    const uint8_t *item;
    while (write_items_next(&items, &item)) {
        int rc = read_statement(cx, item, &s);
        if (rc == 0 && keep_empty_ts)
            rc = write_arg_empty_ts(cx, s.u);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- one statement ---- */

static int parse(struct command_ctx *cx, struct update_cmd *s)
{
    struct err *err = &cx->op.err;
    struct arena *a = write_batch_arena(cx, &s->batch);
    struct statement st;
    struct match *filter;
    struct update *update;
    int rc;
    if ((rc = read_statement(cx, s->batch.item, &st)) != 0)
        return rc;
    if (st.multi && cx->has_txn_number)
        return err_set(err, ERR_INVALID_OPTIONS, "Cannot use (or request) retryable writes with multi=true");
    if (st.sort && st.multi)
        return err_set(err, ERR_FAILED_TO_PARSE, "Cannot specify sort with multi=true");
    if ((rc = match_parse(a, st.q, &filter, err)) != 0 ||
        (rc = update_parse(a, st.u, st.array_filters, st.multi, &update, err)) != 0 ||
        (st.sort && (rc = sort_parse(a, st.sort, &s->sort, err)) != 0))
        return rc;
    s->modify = (struct modify){
        .arena = a,
        .filter = filter,
        .update = update,
        .multi = st.multi,
        .upsert = st.upsert,
        .sort = st.sort && (s->sort.n || s->sort.natural) ? &s->sort : NULL,
        .hint = st.hint,
        .verb = "update",
    };
    return 0;
}

static void take_results(struct write_batch *b, const struct modify *m)
{
    bool upserted = !bval_is_missing(m->upserted);
    b->n += (int64_t)m->matched + upserted;
    b->n_modified += (int64_t)m->changed;
    if (upserted)
        write_batch_upserted(b, m->upserted);
}

static enum write_result step(struct command_ctx *cx, struct write_batch *b)
{
    struct update_cmd *s = (struct update_cmd *)b;
    if (!s->running && parse(cx, s) != 0)
        return WRITE_FAILED;
    s->running = true;
    enum write_result r = modify_step(&b->w, &s->modify, &cx->op.err);
    if (r == WRITE_WAIT || r == WRITE_AGAIN)
        return r;
    s->running = false;
    if (r == WRITE_OK)
        take_results(b, &s->modify);
    return r;
}

static void end(struct write_batch *b)
{
    modify_end(&((struct update_cmd *)b)->modify);
}

static struct update_cmd *start(struct command_ctx *cx)
{
    struct update_cmd *s = arena_zalloc(cx->op.arena, sizeof(*s));
    struct belem let = {.name = "let", .v = bdoc_get(cx->req->body, "let")};
    bool keep_empty_ts;
    if (!bval_is_missing(let.v) && write_arg_variables(cx, "update", &let) != 0)
        return NULL;
    if (arg_bool(cx, "bypassEmptyTsReplacement", false, &keep_empty_ts) != 0 ||
        !write_batch_start(cx, &s->batch, "updates") || check_all(cx, s->batch.items, keep_empty_ts) != 0)
        return NULL;
    s->batch.step = step;
    s->batch.end = end;
    s->batch.counts_changed = true;
    if (s->batch.retry)
        s->batch.retry->retry.upserts = true;
    atomic_fetch_add_explicit(&cx->server->op_update, s->batch.items.n, memory_order_relaxed);
    return s;
}

enum op_status cmd_update(struct command_ctx *cx)
{
    struct update_cmd *s = cx->state ? cx->state : start(cx);
    if (!s || cx->op.err.code)
        return OP_DONE;
    return write_batch_run(cx, &s->batch);
}
