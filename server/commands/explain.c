/* explain, of find: the plan as a tree of stages, and what running it costs. */
#include "server/base/clock.h"
#include "server/commands/crud_read_private.h"
#include "server/commands/dispatch.h"

const char *const explain_fields[] = {"verbosity", NULL};

struct explain {
    const uint8_t *inner; /* the command that is explained */
    bool run;             /* executionStats, allPlansExecution */
    int64_t began_us;
};

/* ---- the tree ---- */

struct tree { /* stages from the root on, each the input of the one before */
    struct buf *out;
    size_t open[8];
    uint32_t n;
};

static void stage(struct tree *t, const char *root, const char *name)
{
    t->open[t->n] = bw_doc(t->out, t->n ? "inputStage" : root);
    t->n++;
    bw_str(t->out, "stage", name);
}

static void index_scan(struct tree *t, const char *root, const struct plan *p)
{
    const struct index_def *def = p->index;
    stage(t, root, "FETCH");
    stage(t, root, "IXSCAN");
    bw_rawdoc(t->out, "keyPattern", def->key_pattern);
    bw_str(t->out, "indexName", def->name);
    bw_bool(t->out, "isMultiKey", atomic_load_explicit(&def->rt->multikey, memory_order_relaxed) != 0);
    bw_bool(t->out, "isUnique", def->unique || def->is_id);
    bw_bool(t->out, "isSparse", def->sparse);
    bw_bool(t->out, "isPartial", false);
    bw_i32(t->out, "indexVersion", 2);
    bw_str(t->out, "direction", p->reverse ? "backward" : "forward");
}

static void plan_tree(struct command_ctx *cx, const struct explain *e, const struct plan *p, const char *root)
{
    struct tree t = {.out = cx->reply};
    struct bval sort = bdoc_get(e->inner, "sort"), projection = bdoc_get(e->inner, "projection");
    int64_t n;
    if (bval_to_i64(bdoc_get(e->inner, "limit"), false, &n) && n > 0) {
        stage(&t, root, "LIMIT");
        bw_i64(t.out, "limitAmount", n);
    }
    if (projection.type == BSON_TYPE_DOCUMENT && !bdoc_empty(bval_doc(projection))) {
        stage(&t, root, "PROJECTION_DEFAULT");
        bw_val(t.out, "transformBy", projection);
    }
    if (bval_to_i64(bdoc_get(e->inner, "skip"), false, &n) && n > 0) {
        stage(&t, root, "SKIP");
        bw_i64(t.out, "skipAmount", n);
    }
    if (p->sort && p->sort->n && !p->sorted && p->kind != PLAN_EMPTY) {
        stage(&t, root, "SORT");
        bw_val(t.out, "sortPattern", sort);
        bw_i32(t.out, "memLimit", SORT_MEMORY_MAX);
        bw_str(t.out, "type", "simple");
    }
    if (p->kind == PLAN_EMPTY) {
        stage(&t, root, "EOF");
    } else if (p->kind == PLAN_COLLSCAN) {
        stage(&t, root, "COLLSCAN");
        bw_str(t.out, "direction", p->reverse ? "backward" : "forward");
    } else if (p->kind == PLAN_POINTS && p->n_intervals == 1 && p->index->is_id) {
        stage(&t, root, "IDHACK");
    } else {
        index_scan(&t, root, p);
    }
    while (t.n)
        bw_end(t.out, t.open[--t.n]);
}

/* ---- the reply ---- */

static void query_planner(struct command_ctx *cx, const struct explain *e, const struct reading *r)
{
    struct buf *b = cx->reply;
    struct bval filter = bdoc_get(e->inner, "filter");
    size_t at = bw_doc(b, "queryPlanner");
    bw_str(b, "namespace", r->cur->ns);
    if (filter.type == BSON_TYPE_DOCUMENT)
        bw_val(b, "parsedQuery", filter);
    else
        bw_end(b, bw_doc(b, "parsedQuery"));
    bw_bool(b, "indexFilterSet", false);
    plan_tree(cx, e, r->cur->plan, "winningPlan");
    bw_end(b, bw_arr(b, "rejectedPlans"));
    bw_end(b, at);
}

static void execution_stats(struct command_ctx *cx, const struct explain *e, const struct reading *r)
{
    struct buf *b = cx->reply;
    size_t at = bw_doc(b, "executionStats");
    bw_bool(b, "executionSuccess", true);
    bw_i64(b, "nReturned", r->counted);
    bw_i64(b, "executionTimeMillis", (clock_mono_us() - e->began_us) / 1000);
    bw_i64(b, "totalKeysExamined", (int64_t)exec_keys_examined(r->exec));
    bw_i64(b, "totalDocsExamined", (int64_t)exec_docs_examined(r->exec));
    plan_tree(cx, e, r->cur->plan, "executionStages");
    bw_end(b, at);
}

static enum op_status reply(struct command_ctx *cx, const struct explain *e, const struct reading *r)
{
    bw_str(cx->reply, "explainVersion", "1");
    query_planner(cx, e, r);
    if (e->run)
        execution_stats(cx, e, r);
    bw_rawdoc(cx->reply, "command", e->inner);
    return OP_DONE;
}

/* ---- the command ---- */

static int parse_verbosity(struct command_ctx *cx, struct explain *e)
{
    static const char *const names[] = {"queryPlanner", "executionStats", "allPlansExecution"};
    const char *verbosity;
    int rc = arg_string(cx, "verbosity", &verbosity, false);
    if (rc != 0)
        return rc;
    e->run = !verbosity || strcmp(verbosity, names[0]) != 0;
    for (size_t i = 0; verbosity && i < OV_LEN(names); i++)
        if (strcmp(names[i], verbosity) == 0)
            return 0;
    return verbosity ? err_set(&cx->op.err, ERR_BAD_VALUE,
                               "Enumeration value '%s' for field 'explain.verbosity' is not a valid value.", verbosity)
                     : 0;
}

/* The request of the explained command takes the place of explain's own, so that its arguments are read as they always are. */
static int step_inside(struct command_ctx *cx, struct explain *e)
{
    struct bval inner = bdoc_get(cx->req->body, "explain");
    struct biter it;
    struct belem f = {0};
    if (inner.type != BSON_TYPE_DOCUMENT)
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH,
                       "BSON field 'explain.explain' is the wrong type '%s', expected type 'object'",
                       bval_type_name(inner.type));
    e->inner = bval_doc(inner);
    biter_init(&it, e->inner);
    const struct command *cmd = biter_next(&it, &f) ? command_find(f.name) : NULL;
    if (!cmd)
        return err_set(&cx->op.err, ERR_COMMAND_NOT_FOUND, "Explain failed due to unknown command: %s",
                       f.name ? f.name : "");
    if (cmd->fn != cmd_find)
        return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "explain of %s is not implemented", cmd->name);
    struct request *req = arena_dup(cx->op.arena, cx->req, sizeof(*req));
    req->body = e->inner;
    req->name = cmd->name;
    req->n_seqs = 0;
    cx->req = req;
    cx->cmd = cmd;
    return generic_args(cx);
}

enum op_status cmd_explain(struct command_ctx *cx)
{
    const struct command *own = cx->cmd;
    struct reading *r = cx->state;
    enum exec_status s;
    struct exec_row row;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!r) {
        if (!read_caught_up(cx))
            return OP_WAIT;
        struct explain *e = arena_zalloc(cx->op.arena, sizeof(*e));
        e->began_us = clock_mono_us();
        if (parse_verbosity(cx, e) != 0 || step_inside(cx, e) != 0 || !(r = find_explained(cx)))
            return OP_DONE;
        r->own = e;
        cx->cmd = own; /* a later step must come here again, not to find */
    } else if (read_still_there(cx, r) != 0) {
        return OP_DONE;
    }
    const struct explain *e = r->own;
    while (e->run && (s = exec_next(r->exec, &cx->op, &cx->call, &row, &cx->op.err)) != EXEC_EOF) {
        if (s != EXEC_ROW)
            return read_stopped(cx, r, s);
        r->counted++;
    }
    return reply(cx, e, r);
}
