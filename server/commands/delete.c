/* delete. */
#include "server/commands/write_args.h"
#include "server/commands/write_batch.h"
#include "server/write/modify.h"

const char *const delete_fields[] = {"deletes", "ordered", "bypassDocumentValidation", "let", "stmtId",
                                     "stmtIds", NULL};

static const char WHERE[] = "delete.deletes";

struct delete_cmd {
    struct write_batch batch; /* first */
    bool running;
    struct modify modify;
};

struct statement {
    const uint8_t *q;
    struct bval limit, hint;
};

static int read_limit(struct command_ctx *cx, const struct belem *e, struct statement *s)
{
    double limit = bval_is_number(e->v) ? bval_to_f64(e->v) : -1;
    s->limit = e->v;
    if (!bval_is_number(e->v))
        return write_arg_type(cx, WHERE, e, "s '[int, decimal, double, long']");
    if (limit != 0 && limit != 1)
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "The limit field in delete objects must be 0 or 1. Got %s",
                       bval_shell(cx->op.arena, e->v));
    return 0;
}

static int read_field(struct command_ctx *cx, const struct belem *e, struct statement *s)
{
    if (strcmp(e->name, "q") == 0)
        return write_arg_doc(cx, WHERE, e, &s->q);
    if (strcmp(e->name, "limit") == 0)
        return read_limit(cx, e, s);
    if (strcmp(e->name, "hint") == 0)
        return write_arg_hint(cx, WHERE, e, &s->hint);
    if (strcmp(e->name, "collation") == 0)
        return write_arg_collation(cx, WHERE, e);
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
    if (bval_is_missing(s->limit))
        return write_arg_missing(cx, WHERE, "limit");
    return 0;
}

static int check_all(struct command_ctx *cx, struct write_items items)
{
    struct statement s;
    const uint8_t *item;
    while (write_items_next(&items, &item)) {
        int rc = read_statement(cx, item, &s);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int parse(struct command_ctx *cx, struct delete_cmd *s)
{
    struct arena *a = write_batch_arena(cx, &s->batch);
    struct statement st;
    struct match *filter;
    int rc;
    if ((rc = read_statement(cx, s->batch.item, &st)) != 0)
        return rc;
    if (bval_to_f64(st.limit) == 0 && cx->has_txn_number)
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS, "Cannot use (or request) retryable writes with limit=0");
    if ((rc = match_parse(a, st.q, &filter, &cx->op.err)) != 0)
        return rc;
    s->modify = (struct modify){
        .arena = a,
        .filter = filter,
        .multi = bval_to_f64(st.limit) == 0,
        .hint = st.hint,
        .verb = "delete",
    };
    return 0;
}

static enum write_result step(struct command_ctx *cx, struct write_batch *b)
{
    struct delete_cmd *s = (struct delete_cmd *)b;
    if (!s->running && parse(cx, s) != 0)
        return WRITE_FAILED;
    s->running = true;
    enum write_result r = modify_step(&b->w, &s->modify, &cx->op.err);
    if (r == WRITE_WAIT || r == WRITE_AGAIN)
        return r;
    s->running = false;
    if (r == WRITE_OK)
        b->n += (int64_t)s->modify.matched;
    return r;
}

static void end(struct write_batch *b)
{
    modify_end(&((struct delete_cmd *)b)->modify);
}

static struct delete_cmd *start(struct command_ctx *cx)
{
    struct delete_cmd *s = arena_zalloc(cx->op.arena, sizeof(*s));
    struct belem let = {.name = "let", .v = bdoc_get(cx->req->body, "let")};
    if (!bval_is_missing(let.v) && write_arg_variables(cx, "delete", &let) != 0)
        return NULL;
    if (!write_batch_start(cx, &s->batch, "deletes") || check_all(cx, s->batch.items) != 0)
        return NULL;
    s->batch.step = step;
    s->batch.end = end;
    atomic_fetch_add_explicit(&cx->server->op_delete, s->batch.items.n, memory_order_relaxed);
    return s;
}

enum op_status cmd_delete(struct command_ctx *cx)
{
    struct delete_cmd *s = cx->state ? cx->state : start(cx);
    if (!s || cx->op.err.code)
        return OP_DONE;
    return write_batch_run(cx, &s->batch);
}
