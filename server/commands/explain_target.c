/* What each command that can be explained asks of its collection. Arguments are read as strictly as where the command is run; a write is opened
 * as the read of the documents that it would change. */
#include "server/commands/explain_private.h"
#include "server/commands/write_args.h"

static const uint8_t *doc_or_null(struct bval v)
{
    return v.type == BSON_TYPE_DOCUMENT ? bval_doc(v) : NULL;
}

static struct reading *open_find(struct command_ctx *cx, struct explain *e)
{
    struct reading *r = find_explained(cx);
    if (!r)
        return NULL;
    e->filter = doc_or_null(bdoc_get(e->inner, "filter"));
    e->sort = doc_or_null(bdoc_get(e->inner, "sort"));
    e->projection = doc_or_null(bdoc_get(e->inner, "projection"));
    (void)bval_to_i64(bdoc_get(e->inner, "skip"), false, &e->skip);
    (void)bval_to_i64(bdoc_get(e->inner, "limit"), false, &e->limit);
    return r;
}

/* What e holds, over collection `coll`. */
static struct reading *open_plain(struct command_ctx *cx, struct explain *e, const char *coll, struct bval hint)
{
    struct reading *r = read_new(cx, false);
    struct arena *a = r->cur->arena;
    struct match *filter;
    struct sort_spec *sort = NULL;
    if (match_parse(a, e->filter, &filter, &cx->op.err) != 0)
        return NULL;
    if (e->sort && !bdoc_empty(e->sort)) {
        sort = arena_zalloc(a, sizeof(*sort));
        if (sort_parse(a, e->sort, sort, &cx->op.err) != 0)
            return NULL;
    }
    read_begin(cx, r, coll);
    if (e->top == TOP_COUNT && filter->op == MATCH_TRUE && bval_is_missing(hint)) {
        int64_t n = r->cur->coll ? eng_count(cx->server->engine, r->cur->coll->records) : 0;
        n = n > e->skip ? n - e->skip : 0;
        r->counted = e->limit ? OV_MIN(n, e->limit) : n;
        e->top = TOP_FAST_COUNT;
        e->limit = 0;
        return r;
    }
    uint64_t limit = e->only_first ? 1 : (uint64_t)e->limit;
    if (read_open(cx, r, filter, sort, hint, (uint64_t)e->skip, limit) != 0)
        return NULL;
    r->cur->pipe = pipeline_new(a, r->exec, NULL, NULL); /* closes it */
    return r;
}

static struct reading *open_count(struct command_ctx *cx, struct explain *e)
{
    const char *coll;
    struct bval hint;
    if (arg_collection(cx, &coll) != 0 || arg_doc(cx, "query", &e->filter) != 0 ||
        arg_i64(cx, "limit", 0, -INT64_MAX, &e->limit) != 0 || arg_i64(cx, "skip", 0, 0, &e->skip) != 0 ||
        arg_hint(cx, &hint) != 0 || arg_simple_collation(cx) != 0 || arg_read_concern(cx) != 0)
        return NULL;
    e->limit = e->limit < 0 ? -e->limit : e->limit;
    e->top = TOP_COUNT;
    return open_plain(cx, e, coll, hint);
}

static struct reading *open_distinct(struct command_ctx *cx, struct explain *e)
{
    const char *coll, *key;
    struct bval hint;
    if (arg_collection(cx, &coll) != 0 || arg_string(cx, "key", &key, true) != 0 ||
        arg_doc(cx, "query", &e->filter) != 0 || arg_hint(cx, &hint) != 0 || arg_simple_collation(cx) != 0 ||
        arg_read_concern(cx) != 0)
        return NULL;
    return open_plain(cx, e, coll, hint);
}

/* ---- pipelines ---- */

static const uint8_t *element_doc(const uint8_t *array, uint32_t i)
{
    char scratch[12];
    return doc_or_null(bdoc_get(array, bw_index(i, scratch)));
}

static uint32_t count_elements(const uint8_t *array)
{
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    for (biter_init(&it, array); biter_next(&it, &e);)
        n++;
    return n;
}

/* Stages that the plan does in their place, from the front: what they are is the plan's filter, order and amounts. */
static void read_front(struct explain *e, uint32_t n)
{
    int64_t amount;
    for (uint32_t i = 0; i < n; i++) {
        struct biter it;
        struct belem f;
        const uint8_t *stage = element_doc(e->stages, i);
        if (!stage)
            return;
        biter_init(&it, stage);
        if (!biter_next(&it, &f))
            return;
        if (strcmp(f.name, "$match") == 0 && f.v.type == BSON_TYPE_DOCUMENT && !e->filter)
            e->filter = bval_doc(f.v);
        else if (strcmp(f.name, "$sort") == 0 && f.v.type == BSON_TYPE_DOCUMENT)
            e->sort = bval_doc(f.v);
        else if (strcmp(f.name, "$skip") == 0 && bval_to_i64(f.v, false, &amount))
            e->skip += amount;
        else if (strcmp(f.name, "$limit") == 0 && bval_to_i64(f.v, false, &amount))
            e->limit = e->limit ? OV_MIN(e->limit, amount) : amount;
    }
}

static bool last_writes(const struct explain *e, uint32_t n)
{
    const uint8_t *stage = n ? element_doc(e->stages, n - 1) : NULL;
    return stage && (!bval_is_missing(bdoc_get(stage, "$out")) || !bval_is_missing(bdoc_get(stage, "$merge")));
}

static struct reading *open_aggregate(struct command_ctx *cx, struct explain *e)
{
    struct bval pipeline = bdoc_get(e->inner, "pipeline");
    struct reading *r = aggregate_explained(cx, &e->n_above);
    if (!r)
        return NULL;
    e->stages = bval_doc(pipeline);
    uint32_t n = count_elements(e->stages);
    e->n_above = OV_MIN(e->n_above, n);
    e->pull_stages = !last_writes(e, n);
    read_front(e, n - e->n_above);
    return r;
}

/* ---- writes ---- */

/* The one statement of an update or delete. */
static int only_statement(struct command_ctx *cx, const char *field, const uint8_t **out)
{
    struct bval v = bdoc_get(cx->req->body, field);
    if (v.type != BSON_TYPE_ARRAY)
        return err_set(&cx->op.err, bval_is_missing(v) ? ERR_IDL_FAILED_TO_PARSE : ERR_TYPE_MISMATCH,
                       "BSON field '%s.%s' is missing or no array", cx->cmd->name, field);
    if (count_elements(bval_doc(v)) != 1 || !(*out = element_doc(bval_doc(v), 0)))
        return err_set(&cx->op.err, ERR_INVALID_LENGTH, "explained write batches must be of size 1");
    return 0;
}

static bool is_listed(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Fields that several writes have. `others`: those that are read elsewhere; NULL: dispatch knows them all. */
static int read_common(struct command_ctx *cx, const uint8_t *from, const char *filter, const char *where,
                       const char *const *others, struct explain *e, struct bval *hint)
{
    struct biter it;
    struct belem f;
    int rc = 0;
    *hint = BVAL_MISSING;
    for (biter_init(&it, from); rc == 0 && biter_next(&it, &f);) {
        if (strcmp(f.name, filter) == 0)
            rc = write_arg_doc(cx, where, &f, &e->filter);
        else if (strcmp(f.name, "sort") == 0)
            rc = write_arg_doc(cx, where, &f, &e->sort);
        else if (strcmp(f.name, "hint") == 0)
            rc = write_arg_hint(cx, where, &f, hint);
        else if (strcmp(f.name, "collation") == 0)
            rc = write_arg_collation(cx, where, &f);
        else if (strcmp(f.name, "upsert") == 0)
            rc = write_arg_bool(cx, where, &f, &e->upsert);
        else if (others && !is_listed(others, f.name))
            rc = write_arg_unknown(cx, where, &f);
    }
    if (rc == 0 && !e->filter && others)
        rc = write_arg_missing(cx, where, filter);
    return rc;
}

static int read_update(struct command_ctx *cx, struct explain *e, const uint8_t *from, const char *name, bool multi)
{
    struct update *u;
    int rc = update_parse(cx->op.arena, bdoc_get(from, name), bdoc_get(from, "arrayFilters"), multi, &u, &cx->op.err);
    e->update = rc == 0 ? u : NULL;
    e->top = TOP_UPDATE;
    return rc;
}

static struct reading *open_change(struct command_ctx *cx, struct explain *e, const char *coll, struct bval hint,
                                   bool multi)
{
    e->only_first = !multi;
    return open_plain(cx, e, coll, hint);
}

static struct reading *open_update(struct command_ctx *cx, struct explain *e)
{
    static const char *const others[] = {"u", "multi", "arrayFilters", "c", "upsertSupplied", NULL};
    const char *coll;
    const uint8_t *s;
    struct bval hint;
    if (arg_collection(cx, &coll) != 0 || only_statement(cx, "updates", &s) != 0 ||
        read_common(cx, s, "q", "update.updates", others, e, &hint) != 0)
        return NULL;
    bool multi = bval_truthy(bdoc_get(s, "multi"));
    if (read_update(cx, e, s, "u", multi) != 0)
        return NULL;
    return open_change(cx, e, coll, hint, multi);
}

static struct reading *open_delete(struct command_ctx *cx, struct explain *e)
{
    static const char *const others[] = {"limit", NULL};
    const char *coll;
    const uint8_t *s;
    struct bval hint;
    int64_t limit;
    if (arg_collection(cx, &coll) != 0 || only_statement(cx, "deletes", &s) != 0 ||
        read_common(cx, s, "q", "delete.deletes", others, e, &hint) != 0)
        return NULL;
    if (!bval_to_i64(bdoc_get(s, "limit"), true, &limit) && write_arg_missing(cx, "delete.deletes", "limit") != 0)
        return NULL;
    e->top = TOP_DELETE;
    return open_change(cx, e, coll, hint, limit == 0);
}

static struct reading *refused(struct command_ctx *cx, const char *why)
{
    (void)err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "%s", why);
    return NULL;
}

static struct reading *open_find_and_modify(struct command_ctx *cx, struct explain *e)
{
    const char *coll;
    struct bval hint;
    bool remove;
    if (arg_collection(cx, &coll) != 0 || arg_bool(cx, "remove", false, &remove) != 0 ||
        read_common(cx, e->inner, "query", "findAndModify", NULL, e, &hint) != 0)
        return NULL;
    if (!e->filter)
        e->filter = WRITE_EMPTY_DOC;
    if (remove == !bval_is_missing(bdoc_get(e->inner, "update")))
        return refused(cx, remove ? "Cannot specify both an update and remove=true"
                                  : "Either an update or remove=true must be specified");
    e->top = TOP_DELETE;
    if (!remove && read_update(cx, e, e->inner, "update", false) != 0)
        return NULL;
    return open_change(cx, e, coll, hint, false);
}

/* ---- the table ---- */

struct reading *explain_open(struct command_ctx *cx, struct explain *e)
{
    static const struct {
        const char *name;
        struct reading *(*open)(struct command_ctx *cx, struct explain *e);
    } targets[] = {
        {"find", open_find},
        {"count", open_count},
        {"distinct", open_distinct},
        {"aggregate", open_aggregate},
        {"update", open_update},
        {"delete", open_delete},
        {"findAndModify", open_find_and_modify},
    };
    for (size_t i = 0; i < OV_LEN(targets); i++)
        if (strcmp(targets[i].name, cx->cmd->name) == 0) {
            struct reading *r = targets[i].open(cx, e);
            if (r)
                r->during = "Executor error during explain command";
            return r;
        }
    (void)err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "explain of %s is not implemented", cx->cmd->name);
    return NULL;
}
