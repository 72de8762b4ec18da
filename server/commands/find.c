/* find. */
#include "server/commands/crud_read_private.h"

enum {
    FILTER,
    SORT,
    PROJECTION,
    HINT,
    SKIP,
    LIMIT,
    BATCH_SIZE,
    SINGLE_BATCH,
    COLLATION,
    LET,
    MIN,
    MAX,
    RETURN_KEY,
    SHOW_RECORD_ID,
    TAILABLE,
    AWAIT_DATA,
    NO_CURSOR_TIMEOUT,
    ALLOW_PARTIAL_RESULTS,
    ALLOW_DISK_USE,
    OPLOG_REPLAY,
    READ_CONCERN,
    COMMENT,
    MAX_TIME_MS,
};
const char *const find_fields[] = {
    "filter",
    "sort",
    "projection",
    "hint",
    "skip",
    "limit",
    "batchSize",
    "singleBatch",
    "collation",
    "let",
    "min",
    "max",
    "returnKey",
    "showRecordId",
    "tailable",
    "awaitData",
    "noCursorTimeout",
    "allowPartialResults",
    "allowDiskUse",
    "oplogReplay",
    "readConcern",
    "comment",
    "maxTimeMS",
    NULL,
};

struct find_args {
    const char *coll;
    uint64_t given; /* bits of the names above */
    const uint8_t *filter, *sort, *projection;
    struct bval hint;
    int64_t skip, limit, batch_size;
    bool single_batch, no_timeout, tailable;
};

static bool has(const struct find_args *a, int field)
{
    return a->given >> field & 1;
}

static int documents(struct command_ctx *cx, struct find_args *a)
{
    static const uint8_t none[5] = {5};
    int rc = 0;
    a->filter = a->sort = a->projection = none;
    if (has(a, FILTER))
        rc = arg_doc(cx, "filter", &a->filter);
    if (rc == 0 && has(a, SORT))
        rc = arg_doc(cx, "sort", &a->sort);
    if (rc == 0 && has(a, PROJECTION))
        rc = arg_doc(cx, "projection", &a->projection);
    return rc;
}

static int amounts(struct command_ctx *cx, struct find_args *a)
{
    int rc = 0;
    a->batch_size = FIRST_BATCH;
    if (has(a, SKIP))
        rc = arg_i64(cx, "skip", 0, 0, &a->skip);
    if (rc == 0 && has(a, LIMIT))
        rc = arg_i64(cx, "limit", 0, 0, &a->limit);
    if (rc == 0 && has(a, BATCH_SIZE))
        rc = arg_i64(cx, "batchSize", FIRST_BATCH, 0, &a->batch_size);
    if (rc == 0 && has(a, SINGLE_BATCH))
        rc = arg_bool(cx, "singleBatch", false, &a->single_batch);
    if (rc == 0 && has(a, HINT))
        rc = arg_hint(cx, &a->hint);
    return rc;
}

/* Options that change nothing here: there are no shards, no oplog queries by hand, no sort that needs the disk. Their types are checked. */
static int without_effect(struct command_ctx *cx, const struct find_args *a)
{
    static const int fields[] = {ALLOW_PARTIAL_RESULTS, ALLOW_DISK_USE, OPLOG_REPLAY};
    bool ignored;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < OV_LEN(fields); i++)
        if (has(a, fields[i]))
            rc = arg_bool(cx, find_fields[fields[i]], false, &ignored);
    return rc;
}

static int refused(struct command_ctx *cx, const struct find_args *a)
{
    static const int flags[] = {RETURN_KEY, SHOW_RECORD_ID}, docs[] = {MIN, MAX};
    const uint8_t *doc;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < OV_LEN(flags); i++)
        if (has(a, flags[i]))
            rc = arg_refused_flag(cx, find_fields[flags[i]]);
    for (size_t i = 0; rc == 0 && i < OV_LEN(docs); i++) {
        if (!has(a, docs[i]))
            continue;
        rc = arg_doc(cx, find_fields[docs[i]], &doc);
        if (rc == 0 && !bdoc_empty(doc))
            rc = err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option '%s' of find is not implemented",
                         find_fields[docs[i]]);
    }
    if (rc == 0 && has(a, COLLATION))
        rc = arg_simple_collation(cx);
    if (rc == 0 && has(a, LET))
        rc = arg_empty_let(cx);
    return rc;
}

static int rest(struct command_ctx *cx, struct find_args *a)
{
    bool await = false;
    int rc = 0;
    if (has(a, NO_CURSOR_TIMEOUT))
        rc = arg_bool(cx, "noCursorTimeout", false, &a->no_timeout);
    if (rc == 0 && has(a, TAILABLE))
        rc = arg_bool(cx, "tailable", false, &a->tailable);
    if (rc == 0 && has(a, AWAIT_DATA))
        rc = arg_bool(cx, "awaitData", false, &await);
    if (rc == 0 && await && !a->tailable)
        rc = err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "Cannot set 'awaitData' without also setting 'tailable'");
    if (rc == 0 && has(a, READ_CONCERN))
        rc = arg_read_concern(cx);
    return rc;
}

static int parse_args(struct command_ctx *cx, struct find_args *a)
{
    *a = (struct find_args){.given = fields_present(cx->req->body, find_fields)};
    int rc = arg_collection(cx, &a->coll);
    if (rc == 0)
        rc = documents(cx, a);
    if (rc == 0)
        rc = amounts(cx, a);
    const uint64_t plain = 1u << FILTER | 1u << SORT | 1u << PROJECTION | 1u << HINT | 1u << SKIP | 1u << LIMIT |
                           1u << BATCH_SIZE | 1u << SINGLE_BATCH | 1u << COMMENT | 1u << MAX_TIME_MS;
    if (OV_LIKELY(rc != 0 || !(a->given & ~plain)))
        return rc;
    if ((rc = without_effect(cx, a)) != 0 || (rc = refused(cx, a)) != 0)
        return rc;
    return rest(cx, a);
}

/* One document at most, or one batch: so it needs nothing that outlasts the command. */
static bool ends_at_once(const struct find_args *a)
{
    if (a->batch_size == 0)
        return false;
    if (a->limit == 1 || a->single_batch)
        return true;
    struct bval id = bdoc_get(a->filter, "_id");
    return !bval_is_missing(id) && id.type != BSON_TYPE_DOCUMENT && id.type != BSON_TYPE_REGEX;
}

static int open_find(struct command_ctx *cx, struct reading *r, const struct find_args *a)
{
    struct arena *arena = r->cur->arena;
    struct err *err = &cx->op.err;
    struct match *filter;
    struct project *project = NULL;
    struct sort_spec *sort = NULL;
    int rc = match_parse(arena, a->filter, &filter, err);
    if (rc == 0 && !bdoc_empty(a->projection))
        rc = project_parse_find(arena, a->projection, filter, &project, err);
    if (rc == 0 && !bdoc_empty(a->sort)) {
        sort = arena_zalloc(arena, sizeof(*sort));
        rc = sort_parse(arena, a->sort, sort, err);
    }
    if (rc != 0)
        return rc;
    read_begin(cx, r, a->coll);
    struct cursor *c = r->cur;
    if (a->tailable && c->coll)
        return err_set(
            err, ERR_BAD_VALUE,
            "error processing query: ns=%s :: caused by :: tailable cursor requested on non capped collection", c->ns);
    rc = read_open(cx, r, filter, sort, a->hint, (uint64_t)a->skip, (uint64_t)a->limit);
    if (rc == 0)
        c->pipe = pipeline_new(arena, r->exec, NULL, project);
    return rc;
}

struct reading *find_explained(struct command_ctx *cx)
{
    struct find_args a;
    if (parse_args(cx, &a) != 0)
        return NULL;
    struct reading *r = read_new(cx, false);
    r->during = "Executor error during explain command";
    return open_find(cx, r, &a) == 0 ? r : NULL;
}

static struct reading *start(struct command_ctx *cx)
{
    struct find_args a;
    if (parse_args(cx, &a) != 0)
        return NULL;
    bool once = ends_at_once(&a);
    struct reading *r = read_new(cx, !once);
    if (open_find(cx, r, &a) != 0)
        return NULL;
    r->during = "Executor error during find command";
    r->during_ns = true;
    r->batch_size = a.batch_size;
    r->single_batch = once || a.single_batch;
    r->cur->no_timeout = a.no_timeout;
    read_open_batch(cx, r, "firstBatch");
    return r;
}

enum op_status cmd_find(struct command_ctx *cx)
{
    struct reading *r = cx->state;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!r) {
        if (!read_caught_up(cx))
            return OP_WAIT;
        atomic_fetch_add_explicit(&cx->server->op_query, 1, memory_order_relaxed);
        if (!(r = start(cx)))
            return OP_DONE;
    } else if (read_still_there(cx, r) != 0) {
        return OP_DONE;
    }
    return read_batch(cx, r);
}
