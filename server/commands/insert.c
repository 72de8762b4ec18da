/* insert. */
#include "server/write/insert.h"

#include "server/commands/write_batch.h"

const char *const insert_fields[] = {
    "documents", "ordered", "bypassDocumentValidation", "bypassEmptyTsReplacement", "stmtId", "stmtIds", NULL};

struct insert_cmd {
    struct write_batch batch; /* first */
    struct insert insert;
};

static enum write_result step(struct command_ctx *cx, struct write_batch *b)
{
    struct insert_cmd *s = (struct insert_cmd *)b;
    return insert_step(&b->w, &s->insert, b->item, &cx->op.err);
}

enum op_status cmd_insert(struct command_ctx *cx)
{
    struct insert_cmd *s = cx->state;
    if (!s) {
        s = arena_zalloc(cx->op.arena, sizeof(*s));
        if (arg_bool(cx, "bypassEmptyTsReplacement", false, &s->insert.keep_empty_ts) != 0 ||
            !write_batch_start(cx, &s->batch, "documents"))
            return OP_DONE;
        s->batch.step = step;
        s->batch.n_of_writer = true;
        atomic_fetch_add_explicit(&cx->server->op_insert, s->batch.items.n, memory_order_relaxed);
    }
    return write_batch_run(cx, &s->batch);
}
