/* A read, from its snapshot to the reply's batch. */
#include "server/base/clock.h"
#include "server/commands/crud_read_private.h"

/* ---- start and end ---- */

static void let_go(struct command_ctx *cx, struct reading *r)
{
    struct cursor *c = r->cur;
    r->cur = NULL;
    if (c && c->id)
        cursors_discard(cx->server->cursors, c);
    else if (c)
        cursor_free(cx->server->cursors, c);
}

static void cleanup(struct command_ctx *cx)
{
    eng_call_cancel(cx->server->engine, &cx->call);
    if (cx->state) {
        coll_stats_source_end(cx->state);
        let_go(cx, cx->state);
    }
}

bool read_caught_up(struct command_ctx *cx)
{
    struct engine *e = cx->server->engine;
    uint64_t visible = eng_visible(e);
    if (OV_LIKELY(visible >= (uint64_t)cx->client->last_ts))
        return true;
    cx->cleanup = cleanup;
    eng_watch(e, visible, &cx->call);
    return false;
}

struct reading *read_new(struct command_ctx *cx, bool outlasts)
{
    struct reading *r = arena_zalloc(cx->op.arena, sizeof(*r));
    if (outlasts) {
        r->cur = cursor_new(cx->server->cursors);
    } else {
        r->cur = &r->local;
        cursor_init(r->cur, cx->op.arena);
    }
    r->batch_size = INT64_MAX;
    cx->state = r;
    cx->cleanup = cleanup;
    return r;
}

/* The snapshot comes first: a definition that is newer leaves out what the snapshot may not use (indexes that became ready later). */
void read_begin(struct command_ctx *cx, struct reading *r, const char *coll)
{
    struct cursor *c = r->cur;
    c->txn = eng_begin(cx->server->engine, ENG_TXN_READ_ONLY, 0);
    c->coll = catalog_get(cx->server->catalog, cx->req->db, coll);
    c->ns = c->coll ? c->coll->ns : arena_printf(c->arena, "%s.%s", cx->req->db, coll);
}

int read_open(struct command_ctx *cx, struct reading *r, const struct match *filter, const struct sort_spec *sort,
              struct bval hint, uint64_t skip, uint64_t limit)
{
    struct cursor *c = r->cur;
    struct plan *plan = arena_zalloc(c->arena, sizeof(*plan));
    int rc = plan_make(c->arena, c->coll, filter, sort && (sort->n || sort->natural) ? sort : NULL, hint,
                       eng_snapshot(c->txn), plan, &cx->op.err);
    if (rc != 0)
        return rc;
    c->plan = plan;
    r->exec = exec_open(c->arena, plan, c->coll, c->txn, skip, limit);
    return 0;
}

/* ---- what happened meanwhile ---- */

static void tell_during(struct command_ctx *cx, const struct reading *r)
{
    const char *ns = r->during_ns ? r->cur->ns : "";
    err_prefix(&cx->op.err, arena_printf(cx->op.arena, "%s%s%s :: caused by :: ", r->during, *ns ? ": " : "", ns));
}

static int killed(struct command_ctx *cx, struct reading *r, const char *why)
{
    int rc = err_set(&cx->op.err, ERR_QUERY_PLAN_KILLED, "%s", why);
    tell_during(cx, r);
    return rc;
}

static bool has_index(const struct collection *coll, uint64_t keyspace)
{
    for (uint32_t i = 0; i < coll->n_indexes; i++)
        if (coll->indexes[i].keyspace == keyspace)
            return true;
    return false;
}

static const char *uuid_text(struct arena *a, const uint8_t u[16])
{
    return arena_printf(a, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2],
                        u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

int read_still_there(struct command_ctx *cx, struct reading *r)
{
    const struct collection *coll = r->cur->coll;
    const struct index_def *index = r->cur->plan ? r->cur->plan->index : NULL;
    struct arena *a = cx->op.arena;
    if (!coll)
        return 0;
    if (atomic_load_explicit(&coll->rt->dropped, memory_order_acquire))
        return killed(cx, r, arena_printf(a, "collection dropped. UUID %s", uuid_text(a, coll->uuid)));
    if (!index || atomic_load_explicit(&coll->rt->version, memory_order_acquire) == coll->version)
        return 0;
    struct collection *now = catalog_get(cx->server->catalog, coll->db, coll->name);
    bool there = now && has_index(now, index->keyspace);
    collection_unref(now);
    return there ? 0 : killed(cx, r, arena_printf(a, "query plan killed :: index '%s' dropped", index->name));
}

/* ---- batches ---- */

enum op_status read_stopped(struct command_ctx *cx, struct reading *r, enum exec_status s)
{
    if (s == EXEC_WAIT)
        return OP_WAIT;
    if (s == EXEC_AGAIN)
        return OP_AGAIN;
    tell_during(cx, r);
    return OP_DONE;
}

void read_open_batch(struct command_ctx *cx, struct reading *r, const char *array)
{
    r->array = array;
    r->cursor_at = bw_doc(cx->reply, "cursor");
    r->array_at = bw_arr(cx->reply, array);
}

/* ROW: appended. AGAIN: the batch is full. Or ERROR; the reply is as it was then. */
static enum exec_status append(struct command_ctx *cx, struct reading *r, const uint8_t *doc)
{
    struct buf *reply = cx->reply;
    size_t before = reply->len;
    char scratch[12];
    const char *index = bw_index(r->n, scratch);
    buf_byte(reply, BSON_TYPE_DOCUMENT);
    buf_append(reply, index, strlen(index) + 1);
    size_t at = reply->len;
    if (pipeline_emit(r->cur->pipe, doc, reply, &cx->op.err) != 0) {
        reply->len = before;
        return EXEC_ERROR;
    }
    size_t bytes = reply->len - at;
    if (r->n && r->bytes + bytes > BATCH_BYTES) {
        reply->len = before;
        return EXEC_AGAIN;
    }
    r->n++;
    r->bytes += bytes;
    return EXEC_ROW;
}

static void remember_session(struct command_ctx *cx, struct cursor *c)
{
    enum { UUID_AT = 5, UUID_BYTES = 16 }; /* behind length and subtype */
    struct bval lsid = bdoc_get(cx->req->body, "lsid");
    struct bval id = lsid.type == BSON_TYPE_DOCUMENT ? bdoc_get(bval_doc(lsid), "id") : BVAL_MISSING;
    c->has_lsid = id.type == BSON_TYPE_BINARY && id.n == UUID_AT + UUID_BYTES;
    if (c->has_lsid)
        memcpy(c->lsid, id.p + UUID_AT, UUID_BYTES);
}

static int64_t time_left(const struct command_ctx *cx)
{
    return cx->op.deadline_us ? OV_MAX(cx->op.deadline_us - clock_mono_us(), (int64_t)1) : 0;
}

/* The cursor stays for the next getMore. Its id. */
static int64_t keep(struct command_ctx *cx, struct reading *r)
{
    struct cursor *c = r->cur;
    c->time_left_us = time_left(cx);
    r->cur = NULL;
    if (c->id) {
        int64_t id = c->id;
        cursors_give_back(cx->server->cursors, c);
        return id;
    }
    remember_session(cx, c);
    return cursors_add(cx->server->cursors, c);
}

static enum op_status finish(struct command_ctx *cx, struct reading *r)
{
    const char *ns = r->cur->ns;
    int64_t id = 0;
    if (!r->single_batch && !pipeline_at_end(r->cur->pipe)) {
        ns = arena_strndup(cx->op.arena, ns, strlen(ns)); /* the cursor may be gone as soon as it is in the table */
        id = keep(cx, r);
    }
    bw_end(cx->reply, r->array_at);
    bw_i64(cx->reply, "id", id);
    bw_str(cx->reply, "ns", ns);
    bw_end(cx->reply, r->cursor_at);
    if (id == 0)
        let_go(cx, r);
    cx->exhaust_more = id != 0 && cx->req->exhaust_allowed && strcmp(r->array, "nextBatch") == 0;
    return OP_DONE;
}

enum op_status read_batch(struct command_ctx *cx, struct reading *r)
{
    struct pipeline *p = r->cur->pipe;
    struct pull pull = {&cx->op, &cx->call, &cx->op.err};
    const uint8_t *doc;
    while (r->n < r->batch_size) {
        enum exec_status s = pipeline_next(p, &pull, &doc);
        if (s == EXEC_EOF)
            break;
        if (s != EXEC_ROW)
            return read_stopped(cx, r, s);
        s = append(cx, r, doc);
        if (s == EXEC_ERROR)
            return read_stopped(cx, r, s);
        if (s == EXEC_AGAIN) {
            pipeline_unget(p, doc);
            break;
        }
    }
    return finish(cx, r);
}

enum op_status read_documents(struct command_ctx *cx, const char *ns, struct slice docs, int64_t batch_size)
{
    struct reading *r = read_new(cx, true);
    struct arena *a = r->cur->arena;
    docs.p = docs.n ? arena_dup(a, docs.p, docs.n) : docs.p;
    r->cur->ns = arena_strndup(a, ns, strlen(ns));
    r->cur->pipe = pipeline_of_docs(a, docs, NULL, NULL);
    r->batch_size = batch_size;
    read_open_batch(cx, r, "firstBatch");
    return read_batch(cx, r);
}
