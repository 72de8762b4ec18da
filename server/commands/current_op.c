/* currentOp, killOp. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/commands/admin.h"
#include "server/commands/running.h"
#include "server/query/match/match.h"

const char *const kill_op_fields[] = {"op", NULL};

enum { COMMAND_MAX = 16 * 1024, CUT_AT = 1000, REPLY_MAX = 15 * 1024 * 1024 };

struct listing {
    struct command_ctx *cx;
    struct match *filter;
    struct buf one;
    char host[300];
    int64_t now_us;
    uint32_t n;
};

/* ---- one operation ---- */

static const char *kind_of(const char *command)
{
    static const char *const kinds[][2] = {
        {"find", "query"}, {"getMore", "getmore"}, {"insert", "insert"}, {"update", "update"}, {"delete", "remove"}};
    for (size_t i = 0; i < OV_LEN(kinds); i++)
        if (strcmp(kinds[i][0], command) == 0)
            return kinds[i][1];
    return "command";
}

static void put_ns(struct buf *b, const struct request *req)
{
    struct biter it;
    struct belem e = {0};
    struct bval coll = bdoc_get(req->body, "collection"); /* of getMore */
    uint32_t n;
    char text[400];
    biter_init(&it, req->body);
    if (biter_next(&it, &e) && e.v.type == BSON_TYPE_UTF8)
        coll = e.v;
    snprintf(text, sizeof(text), "%s.%s", req->db ? req->db : "",
             coll.type == BSON_TYPE_UTF8 && strcmp(req->db ? req->db : "", "admin") != 0 ? bval_str(coll, &n) : "$cmd");
    bw_str(b, "ns", text);
}

static void put_command(struct buf *b, const struct request *req)
{
    struct bval comment = bdoc_get(req->body, "comment");
    if (bdoc_len(req->body) <= COMMAND_MAX) {
        bw_rawdoc(b, "command", req->body);
        return;
    }
    struct buf text;
    buf_init(&text);
    bval_to_shell(&text, bval_from_doc(req->body), CUT_AT);
    size_t at = bw_doc(b, "command");
    bw_strn(b, "$truncated", (const char *)text.p, text.len);
    if (comment.n <= COMMAND_MAX)
        bw_val(b, "comment", comment);
    bw_end(b, at);
    buf_free(&text);
}

static void put_time(struct buf *b)
{
    int64_t ms = clock_wall_ms();
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char text[64], day[32];
    gmtime_r(&s, &tm);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof(text), "%s.%03d+00:00", day, (int)(ms % 1000));
    bw_str(b, "currentOpTime", text);
}

static void put_operation(struct listing *l, const struct command_ctx *cx)
{
    struct buf *b = &l->one;
    const struct client *c = cx->client;
    int64_t us = OV_MAX(l->now_us - cx->start_us, 0);
    char desc[40];
    snprintf(desc, sizeof(desc), "conn%lld", (long long)c->id);
    b->len = 0;
    size_t at = bw_begin(b);
    bw_str(b, "type", "op");
    bw_str(b, "host", l->host);
    bw_str(b, "desc", desc);
    bw_i32(b, "connectionId", (int32_t)c->id);
    bw_str(b, "client", c->addr);
    if (*c->app_name)
        bw_str(b, "appName", c->app_name);
    bw_bool(b, "active", true);
    put_time(b);
    bw_i32(b, "opid", cx->opid);
    bw_val(b, "lsid", bdoc_get(cx->req->body, "lsid"));
    bw_i64(b, "secs_running", us / 1000000);
    bw_i64(b, "microsecs_running", us);
    bw_str(b, "op", kind_of(cx->cmd->name));
    put_ns(b, cx->req);
    put_command(b, cx->req);
    if (atomic_load_explicit(&((struct command_ctx *)cx)->op.interrupt, memory_order_relaxed))
        bw_bool(b, "killPending", true);
    bw_end(b, at);
}

static void list_one(void *arg, const struct command_ctx *cx)
{
    struct listing *l = arg;
    struct buf *out = l->cx->reply;
    char scratch[12];
    put_operation(l, cx);
    if (out->len + l->one.len > REPLY_MAX || !match_doc(l->filter, l->one.p, NULL))
        return;
    bw_rawdoc(out, bw_index(l->n++, scratch), l->one.p);
}

/* ---- currentOp ---- */

static bool is_generic(const char *name)
{
    static const char *const generic[] = {"lsid",        "txnNumber",           "autocommit", "maxTimeMS",
                                          "readConcern", "writeConcern",        "comment",    "apiVersion",
                                          "apiStrict",   "apiDeprecationErrors"};
    for (size_t i = 0; i < OV_LEN(generic); i++)
        if (strcmp(name, generic[i]) == 0)
            return true;
    return *name == '$' && strcmp(name, "$and") != 0 && strcmp(name, "$or") != 0 && strcmp(name, "$nor") != 0;
}

/* Whatever else the command holds is a filter of what is shown. */
static int parse_filter(struct command_ctx *cx, struct match **out)
{
    struct biter it;
    struct belem e;
    struct buf b;
    buf_init(&b);
    size_t at = bw_begin(&b);
    biter_init(&it, cx->req->body);
    (void)biter_next(&it, &e); /* the name */
    while (biter_next(&it, &e))
        if (!is_generic(e.name))
            bw_val(&b, e.name, e.v);
    bw_end(&b, at);
    int rc = match_parse(cx->op.arena, b.p, out, &cx->op.err);
    buf_free(&b);
    return rc;
}

enum op_status cmd_current_op(struct command_ctx *cx)
{
    struct listing l = {.cx = cx, .now_us = clock_mono_us()};
    char name[256] = "localhost";
    const char *port = strrchr(cx->client->local, ':');
    if (parse_filter(cx, &l.filter) != 0)
        return OP_DONE;
    (void)gethostname(name, sizeof(name) - 1);
    snprintf(l.host, sizeof(l.host), "%s%.10s", name, port ? port : "");
    running_add(cx); /* it runs, too */
    buf_init(&l.one);
    size_t at = bw_arr(cx->reply, "inprog");
    running_each(cx->server->running, list_one, &l);
    bw_end(cx->reply, at);
    buf_free(&l.one);
    return OP_DONE;
}

/* ---- killOp ---- */

enum op_status cmd_kill_op(struct command_ctx *cx)
{
    struct bval v = bdoc_get(cx->req->body, "op");
    int64_t opid;
    if (bval_is_missing(v))
        return command_fail(cx, ERR_NO_SUCH_KEY, "Missing expected field \"op\"");
    if (!bval_is_number(v))
        return command_fail(cx, ERR_TYPE_MISMATCH, "\"op\" had the wrong type. Expected a number, found %s",
                            bval_type_name(v.type));
    if (!bval_to_i64(v, true, &opid))
        return command_fail(cx, ERR_BAD_VALUE,
                            "Expected field \"op\" to have a value exactly representable as a 64-bit "
                            "integer, but found op: %s",
                            bval_shell(cx->op.arena, v));
    if (opid < INT32_MIN || opid > INT32_MAX)
        return command_fail(cx, 26823, "invalid op : %lld", (long long)opid);
    running_kill(cx->server->running, opid);
    bw_str(cx->reply, "info", "attempting to kill op");
    return OP_DONE;
}
