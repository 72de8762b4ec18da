/* aggregate. */
#include "server/commands/crud_read_private.h"

const char *const aggregate_fields[] = {
    "pipeline",  "explain",   "allowDiskUse", "cursor",      "bypassDocumentValidation",
    "collation", "hint",      "let",          "readConcern", "writeConcern",
    "comment",   "maxTimeMS", NULL,
};

struct aggregate_args {
    const char *coll; /* NULL: {aggregate: 1} */
    const uint8_t *pipeline;
    struct bval hint;
    int64_t batch_size;
    bool explained;
    uint32_t n_above; /* stages that are left above the plan */
};

static int parse_collection(struct command_ctx *cx, struct aggregate_args *a)
{
    int64_t n;
    struct bval v = bdoc_get(cx->req->body, cx->req->name);
    if (!bval_is_number(v))
        return arg_collection(cx, &a->coll);
    if (bval_to_i64(v, true, &n) && n == 1)
        return 0;
    return err_set(&cx->op.err, ERR_FAILED_TO_PARSE,
                   "Invalid command format: the 'aggregate' field must specify a collection name or 1");
}

static int parse_pipeline(struct command_ctx *cx, struct aggregate_args *a)
{
    struct bval v = bdoc_get(cx->req->body, "pipeline");
    if (bval_is_missing(v))
        return err_set(&cx->op.err, 40414, "BSON field 'aggregate.pipeline' is missing but a required field");
    if (v.type != BSON_TYPE_ARRAY)
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "A pipeline must be an array of objects");
    a->pipeline = bval_doc(v);
    return 0;
}

static int parse_batch_size(struct command_ctx *cx, struct bval cursor, struct aggregate_args *a)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, bval_doc(cursor)); biter_next(&it, &e);) {
        if (strcmp(e.name, "batchSize") != 0)
            return err_set(&cx->op.err, 40415, "BSON field 'cursor.%s' is an unknown field.", e.name);
        if (!bval_is_number(e.v))
            return err_set(
                &cx->op.err, ERR_TYPE_MISMATCH,
                "BSON field 'cursor.batchSize' is the wrong type '%s', expected types '[long, int, decimal, double']",
                bval_type_name(e.v.type));
        if (!bval_to_i64(e.v, false, &a->batch_size))
            return err_set(&cx->op.err, ERR_BAD_VALUE, "BSON field 'cursor.batchSize' is out of range");
        if (a->batch_size < 0)
            return err_set(&cx->op.err, 51024, "BSON field 'batchSize' value must be >= 0, actual value '%lld'",
                           (long long)a->batch_size);
    }
    return 0;
}

static int parse_cursor(struct command_ctx *cx, struct aggregate_args *a)
{
    struct bval cursor = bdoc_get(cx->req->body, "cursor");
    a->batch_size = FIRST_BATCH;
    if (bval_is_missing(cursor) && a->explained)
        return 0;
    if (bval_is_missing(cursor))
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE,
                       "The 'cursor' option is required, except for aggregate with the explain argument");
    if (cursor.type != BSON_TYPE_DOCUMENT)
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "cursor field must be missing or an object");
    return parse_batch_size(cx, cursor, a);
}

static int parse_args(struct command_ctx *cx, struct aggregate_args *a)
{
    bool ignored; /* nothing here needs the disk or writes */
    int rc;
    *a = (struct aggregate_args){.explained = a->explained};
    if ((rc = parse_collection(cx, a)) != 0 || (rc = parse_pipeline(cx, a)) != 0 || (rc = parse_cursor(cx, a)) != 0 ||
        (rc = arg_bool(cx, "allowDiskUse", false, &ignored)) != 0 ||
        (rc = arg_bool(cx, "bypassDocumentValidation", false, &ignored)) != 0 || (rc = arg_hint(cx, &a->hint)) != 0 ||
        (rc = arg_simple_collation(cx)) != 0 || (rc = arg_empty_let(cx)) != 0 || (rc = arg_read_concern(cx)) != 0)
        return rc;
    return 0;
}

static int needs_collection(struct command_ctx *cx, const struct pipeline_spec *spec)
{
    if (!spec->first_name)
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "{aggregate: 1} is not valid for an empty pipeline.");
    return err_set(&cx->op.err, ERR_INVALID_NAMESPACE,
                   "{aggregate: 1} is not valid for '%s'; a collection is required.", spec->first_name);
}

static int open_aggregate(struct command_ctx *cx, struct reading *r, struct aggregate_args *a)
{
    struct arena *arena = r->cur->arena;
    struct pipeline_spec *spec = arena_zalloc(arena, sizeof(*spec));
    struct access_spec *access = arena_zalloc(arena, sizeof(*access));
    int rc = pipeline_parse(arena, a->pipeline, spec, &cx->op.err);
    if (rc == 0 && !a->coll)
        rc = needs_collection(cx, spec);
    if (rc == 0 && spec->n && spec->stages[0].kind == STAGE_COLL_STATS) {
        if (a->explained)
            return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "explain of $collStats is not implemented");
        spec->n--;
        spec->stages++;
        coll_stats_source_begin(cx, r, a->coll, spec->stages - 1, spec);
        return 0;
    }
    if (rc == 0)
        rc = pipeline_push_down(arena, spec, access, &cx->op.err);
    if (rc != 0)
        return rc;
    a->n_above = spec->n;
    read_begin(cx, r, a->coll);
    rc = read_open(cx, r, access->filter, &access->sort, a->hint, access->skip, access->limit);
    if (rc == 0)
        r->cur->pipe = pipeline_new(arena, r->exec, spec, NULL);
    return rc;
}

struct reading *aggregate_explained(struct command_ctx *cx, uint32_t *n_above)
{
    struct aggregate_args a = {.explained = true};
    if (parse_args(cx, &a) != 0)
        return NULL;
    struct reading *r = read_new(cx, false);
    if (open_aggregate(cx, r, &a) != 0)
        return NULL;
    *n_above = a.n_above;
    return r;
}

static struct reading *start(struct command_ctx *cx)
{
    struct aggregate_args a = {0};
    if (parse_args(cx, &a) != 0)
        return NULL;
    struct reading *r = read_new(cx, true);
    if (open_aggregate(cx, r, &a) != 0)
        return NULL;
    r->during = "Executor error during aggregate command on namespace";
    r->during_ns = true;
    r->batch_size = a.batch_size;
    if (!r->stats)
        read_open_batch(cx, r, "firstBatch");
    return r;
}

enum op_status cmd_aggregate(struct command_ctx *cx)
{
    struct reading *r = cx->state;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!r) {
        if (!read_caught_up(cx))
            return OP_WAIT;
        bool explain;
        if (arg_bool(cx, "explain", false, &explain) != 0)
            return OP_DONE;
        if (explain)
            return explain_aggregate(cx);
        if (!(r = start(cx)))
            return OP_DONE;
    } else if (read_still_there(cx, r) != 0) {
        return OP_DONE;
    }
    if (r->stats) {
        enum op_status st = coll_stats_source_step(cx, r);
        if (st != OP_DONE || cx->op.err.code != 0)
            return st;
        read_open_batch(cx, r, "firstBatch");
    }
    return read_batch(cx, r);
}
