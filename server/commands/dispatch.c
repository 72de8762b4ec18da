/* The life of a command: found in the table, its generic arguments read, stepped, its reply closed. What holds for all commands is here and in
 * generic.c, so that no handler checks it.
 *
 * command_start never fails: what cannot run becomes a context whose first step is its last, so that the host knows one way only. */
#include "server/commands/dispatch.h"

#include "server/base/clock.h"
#include "server/commands/failpoint.h"
#include "server/commands/running.h"
#include "server/conf/config.h"
#include "server/session/retry.h"

const struct command *command_find(const char *name)
{
    const struct command *alias = NULL;
    for (const struct command *c = commands; c->name; c++) {
        if (c->name[0] == name[0] && strcmp(c->name, name) == 0)
            return c;
        if (c->alias && strcmp(c->alias, name) == 0)
            alias = c;
    }
    return alias;
}

static void wake(struct eng_call *call)
{
    op_wake(&OV_CONTAINER(call, struct command_ctx, call)->op);
}

static void clean_up(struct command_ctx *cx)
{
    void (*cleanup)(struct command_ctx *) = cx->cleanup;
    cx->cleanup = NULL;
    if (cleanup)
        cleanup(cx);
}

static enum op_status run(struct command_ctx *cx)
{
    struct operation *op = &cx->op;
    enum op_status st = OP_DONE;
    if (cx->refused)
        return OP_DONE;
    if (OV_UNLIKELY(cx->hit) && failpoint_acts(cx, &st))
        return st;
    if (op_check_interrupt(op) == 0)
        st = cx->cmd->fn(cx);
    else
        eng_call_cancel(cx->server->engine, &cx->call);
    if (st == OP_DONE)
        clean_up(cx);
    return st;
}

static enum op_status step(struct operation *op)
{
    struct command_ctx *cx = OV_CONTAINER(op, struct command_ctx, op);
    enum op_status st = run(cx);
    if (OV_UNLIKELY(st != OP_DONE && !cx->opid))
        running_add(cx);
    return st;
}

static int check_database(struct command_ctx *cx)
{
    const struct request *req = cx->req;
    struct bval v = bdoc_get(req->body, "$db");
    if (!req->db) {
        if (bval_is_missing(v))
            return err_set(&cx->op.err, 40571, "OP_MSG requests require a $db argument");
        if (v.type != BSON_TYPE_UTF8)
            return err_set(&cx->op.err, ERR_TYPE_MISMATCH,
                           "BSON field '%s.$db' is the wrong type '%s', expected type 'string'", req->name,
                           bval_type_name(v.type));
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "namespaces cannot have embedded null characters");
    }
    size_t n = strlen(req->db);
    if (n == 0 || n > 63 || (strpbrk(req->db, "/\\. \"$") && strcmp(req->db, "$external") != 0))
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "Invalid database name: '%s'", req->db);
    return 0;
}

static int prepare(struct command_ctx *cx)
{
    const struct request *req = cx->req;
    int rc;
    cx->cmd = command_find(req->name);
    if (cx->cmd && cx->cmd->flags & CMD_TEST && !(cx->server->config && cx->server->config->enable_test_commands))
        cx->cmd = NULL;
    if (!cx->cmd && *req->name == 0)
        return err_set(&cx->op.err, ERR_COMMAND_NOT_FOUND, "no command was given");
    if ((rc = check_database(cx)) != 0)
        return rc;
    if (!cx->cmd)
        return err_set(&cx->op.err, ERR_COMMAND_NOT_FOUND, "no such command: '%s'", req->name);
    if (cx->cmd->flags & CMD_ADMIN && strcmp(req->db, "admin") != 0)
        return err_set(&cx->op.err, ERR_UNAUTHORIZED, "%s may only be run against the admin database.", cx->cmd->name);
    return generic_args(cx);
}

struct command_ctx *command_start(struct server *s, struct client *c, const struct request *req, struct arena *a,
                                  struct buf *reply)
{
    struct command_ctx *cx = arena_zalloc(a, sizeof(*cx));
    cx->op.step = step;
    cx->op.arena = a;
    err_init(&cx->op.err, a);
    cx->server = s;
    cx->client = c;
    cx->req = req;
    cx->reply = reply;
    eng_call_init(&cx->call, wake);
    cx->reply_at = bw_begin(reply);
    cx->refused = prepare(cx) != 0;
    if (!cx->refused)
        cx->hit = failpoint_check(cx);
    if (!cx->cmd || !(cx->cmd->flags & CMD_NO_COUNT))
        atomic_fetch_add_explicit(&s->op_command, 1, memory_order_relaxed);
    return cx;
}

/* ---- replies ---- */

void put_topology_version(struct command_ctx *cx)
{
    size_t at = bw_doc(cx->reply, "topologyVersion");
    bw_oid(cx->reply, "processId", cx->server->process_id);
    bw_i64(cx->reply, "counter", 0);
    bw_end(cx->reply, at);
}

static void put_labels(struct buf *b, uint32_t labels)
{
    static const char *const names[] = {"TransientTransactionError", "RetryableWriteError", "NoWritesPerformed",
                                        "ResumableChangeStreamError", "NonResumableChangeStreamError"};
    char scratch[12];
    uint32_t n = 0;
    size_t at = bw_arr(b, "errorLabels");
    for (size_t i = 0; i < OV_LEN(names); i++)
        if (labels >> i & 1)
            bw_str(b, bw_index(n++, scratch), names[i]);
    bw_end(b, at);
}

/* Errors that say the server is no longer what the client took it for (not primary, shutting down). With the topology version a driver sees that
 * nothing is new since its last hello, and does not drop its connections. */
static bool is_topology_error(int code)
{
    return code == 91 || code == 189 || code == 10058 || code == 10107 || code == 11600 || code == 11602 ||
           code == 13435 || code == 13436;
}

/* Does a driver send the command once more after this error? */
static bool is_retried(const struct command_ctx *cx, int code)
{
    return cx->has_txn_number && retry_is_retriable(code);
}

static int concern_code(const uint8_t *concern)
{
    int64_t code = 0;
    struct bval v = bdoc_get(concern, "code");
    return bval_is_number(v) && bval_to_i64(v, true, &code) ? (int)code : 0;
}

static void put_error(struct command_ctx *cx)
{
    struct buf *b = cx->reply;
    struct err *err = &cx->op.err;
    char scratch[32];
    b->len = cx->reply_at;
    size_t at = bw_begin(b);
    bw_f64(b, "ok", 0);
    bw_str(b, "errmsg", err->msg ? err->msg : "");
    bw_i32(b, "code", err->code);
    bw_str(b, "codeName", err_code_name(err->code, scratch));
    if (err->info.p) {
        struct biter it;
        struct belem e;
        for (biter_init(&it, err->info.p); biter_next(&it, &e);)
            bw_val(b, e.name, e.v);
    }
    if (is_retried(cx, err->code))
        err->labels |= ERR_LABEL_RETRYABLE_WRITE | (cx->wrote ? 0 : ERR_LABEL_NO_WRITES);
    if (!failpoint_labels(cx) && err->labels)
        put_labels(b, err->labels);
    if (is_topology_error(err->code))
        put_topology_version(cx);
    cx->reply_at = at;
}

/* A member of a replica set tells its time with each reply. */
static void put_cluster_time(struct command_ctx *cx)
{
    struct buf *b = cx->reply;
    static const uint8_t no_hash[20];
    uint64_t now = eng_visible(cx->server->engine);
    size_t at = bw_doc(b, "$clusterTime");
    bw_ts(b, "clusterTime", now);
    size_t signature = bw_doc(b, "signature");
    bw_bin(b, "hash", 0, no_hash, sizeof(no_hash));
    bw_i64(b, "keyId", 0);
    bw_end(b, signature);
    bw_end(b, at);
    bw_ts(b, "operationTime", now);
}

void command_finish(struct command_ctx *cx)
{
    clean_up(cx);
    if (cx->own_ts)
        cx->client->last_ts = OV_MAX(cx->client->last_ts, (int64_t)cx->own_ts);
    running_remove(cx);
    if (cx->op.err.code) {
        put_error(cx);
    } else {
        const uint8_t *concern = failpoint_write_concern(cx);
        if (concern && !failpoint_labels(cx) && is_retried(cx, concern_code(concern)))
            put_labels(cx->reply, ERR_LABEL_RETRYABLE_WRITE);
        if (!concern)
            write_concern_put_error(cx);
        bw_f64(cx->reply, "ok", 1);
    }
    if (cx->server->set_name)
        put_cluster_time(cx);
    bw_end(cx->reply, cx->reply_at);
}

/* ---- errors of handlers ---- */

enum op_status command_fail(struct command_ctx *cx, int code, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *text = arena_alloc(cx->op.arena, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    (void)err_set(&cx->op.err, code, "%s", text);
    return OP_DONE;
}

enum op_status command_engine_error(struct command_ctx *cx, enum eng_result r)
{
    struct eng_error last = {0};
    switch (r) {
    case ENG_CONFLICT:
        return command_fail(cx, ERR_WRITE_CONFLICT,
                            "WriteConflict error: this operation conflicted with another operation. Please retry your "
                            "operation or multi-document transaction.");
    case ENG_TOO_LARGE:
        return command_fail(cx, ERR_TRANSACTION_TOO_LARGE, "the write is larger than what the engine takes at once");
    case ENG_SNAPSHOT_TOO_OLD:
        return command_fail(cx, ERR_SNAPSHOT_TOO_OLD, "Read timestamp is older than the oldest available timestamp.");
    case ENG_DISK_FULL:
        return command_fail(cx, ERR_OUT_OF_DISK_SPACE,
                            "the disk is full: nothing was written; writes go on when there is room");
    case ENG_CANCELLED:
        return op_check_interrupt(&cx->op) != 0 ? OP_DONE
                                                : command_fail(cx, ERR_INTERRUPTED, "operation was interrupted");
    default:
        break;
    }
    eng_error(cx->server->engine, &last);
    switch (r) {
    case ENG_READ_ONLY:
        return command_fail(
            cx, ERR_OPERATION_FAILED,
            "nothing is written any more since a write to or a sync of the journal failed; restart octavod to "
            "recover: %s",
            last.msg);
    case ENG_UNKNOWN:
        return command_fail(cx, ERR_OPERATION_FAILED,
                            "the write may or may not survive: its write to or sync of the journal failed: %s",
                            last.msg);
    case ENG_CORRUPT:
        return command_fail(cx, ERR_DATA_CORRUPTION_DETECTED, "damaged data: %s", last.msg);
    case ENG_IO:
        return command_fail(cx, ERR_OPERATION_FAILED, "a read from disk failed: %s", last.msg);
    default:
        return command_fail(cx, ERR_INTERNAL_ERROR, "unexpected result of the engine: %s", eng_result_name(r));
    }
}
