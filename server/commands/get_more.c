/* getMore, killCursors. */
#include "server/base/clock.h"
#include "server/commands/crud_read_private.h"

const char *const get_more_fields[] = {
    "collection", "batchSize", "maxTimeMS", "comment", "term", "lastKnownCommittedOpTime", NULL};
const char *const kill_cursors_fields[] = {"cursors", "comment", NULL};

/* ---- getMore ---- */

struct get_more_args {
    int64_t id, batch_size;
    const char *coll;
};

static int parse_args(struct command_ctx *cx, struct get_more_args *a)
{
    struct bval id = bdoc_get(cx->req->body, cx->req->name);
    if (id.type != BSON_TYPE_INT64)
        return arg_wrong_type(cx, "getMore", id, "type 'long'");
    a->id = bval_i64(id);
    int rc = arg_string(cx, "collection", &a->coll, true);
    if (rc == 0 && a->coll[0] == 0)
        rc = err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "Collection names cannot be empty");
    if (rc == 0)
        rc = arg_i64(cx, "batchSize", 0, 0, &a->batch_size);
    return rc;
}

static int same_session(struct command_ctx *cx, const struct cursor *c)
{
    enum { UUID_AT = 5, UUID_BYTES = 16 };
    long long id = (long long)c->id;
    struct bval lsid = bdoc_get(cx->req->body, "lsid");
    struct bval uuid = lsid.type == BSON_TYPE_DOCUMENT ? bdoc_get(bval_doc(lsid), "id") : BVAL_MISSING;
    bool given = uuid.type == BSON_TYPE_BINARY && uuid.n == UUID_AT + UUID_BYTES;
    const char *shown = given ? bval_shell(cx->op.arena, uuid) : NULL;
    if (given && !c->has_lsid)
        return err_set(&cx->op.err, 50737,
                       "Cannot run getMore on cursor %lld, which was not created in a session, in session %s", id,
                       shown);
    if (!given && c->has_lsid)
        return err_set(&cx->op.err, 50736,
                       "Cannot run getMore on cursor %lld, which was created in a session, without an lsid", id);
    if (given && memcmp(uuid.p + UUID_AT, c->lsid, UUID_BYTES) != 0)
        return err_set(&cx->op.err, 50738,
                       "Cannot run getMore on cursor %lld, which was created in another session, in session %s", id,
                       shown);
    return 0;
}

/* May this command read on in the cursor? If not, the cursor stays as it was. */
static int may_use(struct command_ctx *cx, const struct get_more_args *a, const struct cursor *c)
{
    const char *ns = arena_printf(cx->op.arena, "%s.%s", cx->req->db, a->coll);
    if (strcmp(ns, c->ns) != 0)
        return err_set(&cx->op.err, ERR_UNAUTHORIZED,
                       "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns,
                       c->ns);
    if (!bval_is_missing(bdoc_get(cx->req->body, "maxTimeMS")))
        return err_set(&cx->op.err, ERR_BAD_VALUE,
                       "cannot set maxTimeMS on getMore command for a non-awaitData cursor");
    return same_session(cx, c);
}

static struct reading *start(struct command_ctx *cx)
{
    struct get_more_args a = {0};
    struct cursor *c = NULL;
    if (parse_args(cx, &a) != 0)
        return NULL;
    enum cursor_found found = cursors_take(cx->server->cursors, a.id, &c);
    if (found == CURSOR_NOT_FOUND) {
        err_set(&cx->op.err, ERR_CURSOR_NOT_FOUND, "cursor id %lld not found", (long long)a.id);
        return NULL;
    }
    if (found == CURSOR_BUSY) {
        err_set(&cx->op.err, ERR_CURSOR_IN_USE, "cursor id %lld is already in use", (long long)a.id);
        return NULL;
    }
    if (may_use(cx, &a, c) != 0) {
        cursors_give_back(cx->server->cursors, c);
        return NULL;
    }
    struct reading *r = read_new(cx, false);
    r->cur = c;
    r->during = "Executor error during getMore";
    if (a.batch_size)
        r->batch_size = a.batch_size;
    if (c->time_left_us)
        cx->op.deadline_us = clock_mono_us() + c->time_left_us;
    read_open_batch(cx, r, "nextBatch");
    return r;
}

enum op_status cmd_get_more(struct command_ctx *cx)
{
    struct reading *r = cx->state;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!r) {
        if (!read_caught_up(cx))
            return OP_WAIT;
        atomic_fetch_add_explicit(&cx->server->op_getmore, 1, memory_order_relaxed);
        if (!(r = start(cx)))
            return OP_DONE;
    }
    if (cursor_killed(r->cur))
        return command_fail(cx, ERR_CURSOR_KILLED, "cursor killed");
    if (read_still_there(cx, r) != 0)
        return OP_DONE;
    return read_batch(cx, r);
}

/* ---- killCursors ---- */

static int check_ids(struct command_ctx *cx, struct bval ids)
{
    struct biter it;
    struct belem e;
    if (bval_is_missing(ids))
        return arg_missing(cx, "cursors");
    if (ids.type != BSON_TYPE_ARRAY)
        return arg_wrong_type(cx, "cursors", ids, "type 'array'");
    for (biter_init(&it, bval_doc(ids)); biter_next(&it, &e);)
        if (e.v.type != BSON_TYPE_INT64)
            return arg_wrong_type(cx, arena_printf(cx->op.arena, "cursors.%s", e.name), e.v, "type 'long'");
    return 0;
}

/* A collection, or what stands for one in cursors that read none: "$cmd.listCollections". */
static int check_name(struct command_ctx *cx)
{
    struct bval v = bdoc_get(cx->req->body, cx->req->name);
    const char *coll;
    uint32_t n;
    if (v.type == BSON_TYPE_UTF8 && strncmp(bval_str(v, &n), "$cmd.", 5) == 0)
        return 0;
    return arg_collection(cx, &coll);
}

enum op_status cmd_kill_cursors(struct command_ctx *cx)
{
    struct bval ids = bdoc_get(cx->req->body, "cursors");
    struct biter it;
    struct belem e;
    char scratch[12];
    uint32_t n_killed = 0, n_unknown = 0;
    if (check_name(cx) != 0 || check_ids(cx, ids) != 0)
        return OP_DONE;
    struct buf unknown;
    buf_init(&unknown);
    size_t there = bw_begin(&unknown), killed = bw_arr(cx->reply, "cursorsKilled");
    for (biter_init(&it, bval_doc(ids)); biter_next(&it, &e);) {
        int64_t id = bval_i64(e.v);
        if (cursors_kill(cx->server->cursors, id))
            bw_i64(cx->reply, bw_index(n_killed++, scratch), id);
        else
            bw_i64(&unknown, bw_index(n_unknown++, scratch), id);
    }
    bw_end(cx->reply, killed);
    bw_end(&unknown, there);
    bw_val(cx->reply, "cursorsNotFound", (struct bval){BSON_TYPE_ARRAY, bdoc_len(unknown.p), unknown.p});
    bw_end(cx->reply, bw_arr(cx->reply, "cursorsAlive"));
    bw_end(cx->reply, bw_arr(cx->reply, "cursorsUnknown"));
    buf_free(&unknown);
    return OP_DONE;
}
