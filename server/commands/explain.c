/* explain: how a command is run, and what running it costs, without what it does. The plan's tree is explain_tree.c, what each command asks
 * for explain_target.c. A write is run as its read. */
#include <sys/utsname.h>

#include "server/base/clock.h"
#include "server/base/version.h"
#include "server/commands/dispatch.h"
#include "server/commands/explain_private.h"
#include "server/conf/config.h"

const char *const explain_fields[] = {"verbosity", NULL};

/* ---- parsedQuery: each condition on its own, with its operator ---- */

static bool is_operators(struct bval v)
{
    struct biter it;
    struct belem e;
    if (v.type != BSON_TYPE_DOCUMENT)
        return false;
    biter_init(&it, bval_doc(v));
    return biter_next(&it, &e) && e.name[0] == '$';
}

static void put_condition(struct buf *b, const char *field, const char *op, struct bval v)
{
    size_t at = bw_doc(b, field);
    bw_val(b, op, v);
    bw_end(b, at);
}

/* The conditions of one field of the filter: as elements of the array, or as fields of the open document. */
static void put_conditions(struct buf *b, const struct belem *f, uint32_t *n, bool in_array)
{
    struct biter it;
    struct belem op = {0};
    char scratch[12];
    bool listed = f->name[0] != '$' && is_operators(f->v), more = true;
    if (listed)
        biter_init(&it, bval_doc(f->v));
    while (more && (!listed || biter_next(&it, &op))) {
        size_t at = in_array ? bw_doc(b, bw_index((*n)++, scratch)) : 0;
        if (f->name[0] == '$')
            bw_val(b, f->name, f->v);
        else if (listed)
            put_condition(b, f->name, op.name, op.v);
        else
            put_condition(b, f->name, f->v.type == BSON_TYPE_REGEX ? "$regex" : "$eq", f->v);
        if (in_array)
            bw_end(b, at);
        more = listed;
    }
}

static uint32_t count_conditions(const uint8_t *filter)
{
    struct biter it, ops;
    struct belem f, op;
    uint32_t n = 0;
    for (biter_init(&it, filter); biter_next(&it, &f);) {
        if (f.name[0] != '$' && is_operators(f.v))
            for (biter_init(&ops, bval_doc(f.v)); biter_next(&ops, &op);)
                n++;
        else
            n++;
    }
    return n;
}

static void put_parsed_query(struct buf *b, const uint8_t *filter)
{
    struct biter it;
    struct belem f;
    size_t at = bw_doc(b, "parsedQuery"), list = 0;
    uint32_t n = 0;
    bool many = filter && count_conditions(filter) > 1;
    if (many)
        list = bw_arr(b, "$and");
    if (filter)
        for (biter_init(&it, filter); biter_next(&it, &f);)
            put_conditions(b, &f, &n, many);
    if (many)
        bw_end(b, list);
    bw_end(b, at);
}

/* ---- the reply ---- */

static void query_planner(struct command_ctx *cx, const struct explain *e, const struct reading *r)
{
    struct buf *b = cx->reply;
    size_t at = bw_doc(b, "queryPlanner");
    bw_str(b, "namespace", r->cur->ns);
    put_parsed_query(b, e->filter);
    bw_bool(b, "indexFilterSet", false);
    bw_bool(b, "maxIndexedOrSolutionsReached", false);
    bw_bool(b, "maxIndexedAndSolutionsReached", false);
    bw_bool(b, "maxScansToExplodeReached", false);
    explain_put_plan(cx, e, r, "winningPlan", false);
    bw_end(b, bw_arr(b, "rejectedPlans"));
    bw_end(b, at);
}

static int64_t rows_of_plan(const struct explain *e, const struct reading *r)
{
    struct exec_counts n = {0};
    if (r->exec)
        exec_counts(r->exec, &n);
    return e->top == TOP_NONE ? (int64_t)n.given : 0; /* counts and writes return no rows */
}

static void execution_stats(struct command_ctx *cx, const struct explain *e, const struct reading *r)
{
    struct buf *b = cx->reply;
    struct exec_counts n = {0};
    size_t at = bw_doc(b, "executionStats");
    if (r->exec)
        exec_counts(r->exec, &n);
    bw_bool(b, "executionSuccess", true);
    explain_put_number(b, "nReturned", rows_of_plan(e, r));
    explain_put_number(b, "executionTimeMillis", (clock_mono_us() - e->began_us) / 1000);
    explain_put_number(b, "totalKeysExamined", (int64_t)n.keys);
    explain_put_number(b, "totalDocsExamined", (int64_t)n.docs);
    explain_put_plan(cx, e, r, "executionStages", true);
    if (e->all_plans)
        bw_end(b, bw_arr(b, "allPlansExecution"));
    bw_end(b, at);
}

static void plan_and_stats(struct command_ctx *cx, const struct explain *e, const struct reading *r)
{
    query_planner(cx, e, r);
    if (e->run)
        execution_stats(cx, e, r);
}

/* A pipeline whose plan does not do all: the plan is the first stage. */
static void pipeline_stages(struct command_ctx *cx, const struct explain *e, const struct reading *r)
{
    struct buf *b = cx->reply;
    struct biter it;
    struct belem f;
    char scratch[12];
    uint32_t n = 0, below = 0, shown = 1;
    size_t stages = bw_arr(b, "stages"), first = bw_doc(b, "0"), cursor = bw_doc(b, "$cursor");
    plan_and_stats(cx, e, r);
    bw_end(b, cursor);
    if (e->run) {
        bw_i64(b, "nReturned", rows_of_plan(e, r));
        bw_i64(b, "executionTimeMillisEstimate", (clock_mono_us() - e->began_us) / 1000);
    }
    bw_end(b, first);
    for (biter_init(&it, e->stages); biter_next(&it, &f);)
        n++;
    below = n - e->n_above;
    n = 0;
    for (biter_init(&it, e->stages); biter_next(&it, &f); n++)
        if (n >= below)
            bw_val(b, bw_index(shown++, scratch), f.v);
    bw_end(b, stages);
}

static void server_info(struct command_ctx *cx)
{
    struct buf *b = cx->reply;
    struct utsname u;
    if (uname(&u) != 0)
        u.nodename[0] = 0;
    size_t at = bw_doc(b, "serverInfo");
    bw_str(b, "host", u.nodename);
    bw_i32(b, "port", cx->server->config ? (int32_t)cx->server->config->port : 0);
    bw_str(b, "version", OV_COMPAT_VERSION);
    bw_str(b, "gitVersion", "octavo " OV_VERSION);
    bw_end(b, at);
    at = bw_doc(b, "serverParameters");
    bw_i32(b, "internalQueryMaxBlockingSortMemoryUsageBytes", SORT_MEMORY_MAX);
    bw_end(b, at);
}

static enum op_status reply(struct command_ctx *cx, const struct explain *e, const struct reading *r)
{
    bw_str(cx->reply, "explainVersion", "1");
    if (e->stages && e->n_above)
        pipeline_stages(cx, e, r);
    else
        plan_and_stats(cx, e, r);
    bw_rawdoc(cx->reply, "command", e->inner);
    server_info(cx);
    return OP_DONE;
}

/* ---- the run ---- */

static void free_scratch(void *arg)
{
    arena_free(((struct explain *)arg)->scratch);
}

/* Would the update change the document? It is made, and thrown away. */
static int try_update(struct command_ctx *cx, struct explain *e, const struct exec_row *row)
{
    struct update_effect effect = {0};
    struct buf made;
    if (!e->scratch) {
        e->scratch = arena_new(0);
        arena_on_reset(cx->op.arena, free_scratch, e);
    }
    arena_reset(e->scratch);
    buf_init(&made);
    int rc = update_apply(e->update, row->doc, row->array_index, e->scratch, &made, &effect, &cx->op.err);
    e->would_modify += rc == 0 && effect.changed;
    buf_free(&made);
    return rc;
}

/* EOF, WAIT, AGAIN, ERROR. */
static enum exec_status run(struct command_ctx *cx, struct explain *e, struct reading *r)
{
    struct pull pull = {&cx->op, &cx->call, &cx->op.err};
    struct exec_row row;
    const uint8_t *doc;
    enum exec_status s = EXEC_EOF;
    if (!r->exec)
        return s;
    if (e->n_above && e->pull_stages) {
        while ((s = pipeline_next(r->cur->pipe, &pull, &doc)) == EXEC_ROW)
            r->counted++;
        return s;
    }
    while ((s = exec_next(r->exec, &cx->op, &cx->call, &row, &cx->op.err)) == EXEC_ROW) {
        r->counted++;
        if (e->update && try_update(cx, e, &row) != 0)
            return EXEC_ERROR;
    }
    return s;
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
    e->all_plans = !verbosity || strcmp(verbosity, names[2]) == 0;
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
    struct request *req = arena_dup(cx->op.arena, cx->req, sizeof(*req));
    req->body = e->inner;
    req->name = f.name;
    req->n_seqs = 0;
    cx->req = req;
    cx->cmd = cmd;
    return generic_args(cx);
}

enum op_status explain_aggregate(struct command_ctx *cx)
{
    struct explain *e = arena_zalloc(cx->op.arena, sizeof(*e));
    e->began_us = clock_mono_us();
    e->inner = cx->req->body;
    struct reading *r = explain_open(cx, e);
    return r ? reply(cx, e, r) : OP_DONE;
}

enum op_status cmd_explain(struct command_ctx *cx)
{
    const struct command *own = cx->cmd;
    struct reading *r = cx->state;
    enum exec_status s;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!r) {
        if (!read_caught_up(cx))
            return OP_WAIT;
        struct explain *e = arena_zalloc(cx->op.arena, sizeof(*e));
        const struct command *explain = cx->cmd;
        e->began_us = clock_mono_us();
        if (parse_verbosity(cx, e) != 0 || step_inside(cx, e) != 0 || !(r = explain_open(cx, e)))
            return OP_DONE;
        cx->cmd = explain; /* later steps are its own */
        r->own = e;
        cx->cmd = own; /* a later step must come here again, not to find */
    } else if (read_still_there(cx, r) != 0) {
        return OP_DONE;
    }
    struct explain *e = r->own;
    if (e->run && (s = run(cx, e, r)) != EXEC_EOF)
        return read_stopped(cx, r, s);
    return reply(cx, e, r);
}
