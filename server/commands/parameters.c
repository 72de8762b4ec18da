/* getParameter and setParameter: a row each. */
#include "server/base/log.h"
#include "server/base/version.h"
#include "server/commands/diagnostic.h"
#include "server/conf/config.h"
#include "server/ttl/ttl.h"

struct parameter {
    const char *name;
    bool at_startup;
    void (*write)(struct command_ctx *cx, const char *name);
    int (*set)(struct command_ctx *cx, struct bval v); /* NULL: not while the server runs */
};

static void write_fcv(struct command_ctx *cx, const char *name)
{
    size_t at = bw_doc(cx->reply, name);
    bw_str(cx->reply, "version", OV_COMPAT_FCV);
    bw_end(cx->reply, at);
}

static void write_test_commands(struct command_ctx *cx, const char *name)
{
    bw_bool(cx->reply, name, cx->server->config && cx->server->config->enable_test_commands);
}

static void write_log_level(struct command_ctx *cx, const char *name)
{
    int level = 0;
    while (level < 5 && log_enabled((enum log_level)(LOG_INFO + level + 1)))
        level++;
    bw_i32(cx->reply, name, level);
}

static int set_log_level(struct command_ctx *cx, struct bval v)
{
    int64_t level;
    if (!bval_is_number(v) || !bval_to_i64(v, true, &level))
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "logLevel must be a whole number");
    if (level < 0 || level > 5)
        return err_set(&cx->op.err, ERR_BAD_VALUE, "Invalid value for parameter logLevel: %lld is not in 0 .. 5",
                       (long long)level);
    log_set_verbosity((int)level);
    return 0;
}

static void write_ttl_enabled(struct command_ctx *cx, const char *name)
{
    bw_bool(cx->reply, name, cx->server->ttl && ttl_enabled(cx->server->ttl));
}

static int set_ttl_enabled(struct command_ctx *cx, struct bval v)
{
    if (v.type != BSON_TYPE_BOOL && !bval_is_number(v))
        return err_set(&cx->op.err, ERR_BAD_VALUE, "ttlMonitorEnabled must be true or false");
    if (cx->server->ttl)
        ttl_enable(cx->server->ttl, bval_truthy(v));
    return 0;
}

static void write_ttl_sleep(struct command_ctx *cx, const char *name)
{
    bw_i32(cx->reply, name, cx->server->ttl ? (int32_t)ttl_sleep_secs(cx->server->ttl) : TTL_SLEEP_SECS);
}

static int set_ttl_sleep(struct command_ctx *cx, struct bval v)
{
    int64_t secs;
    if (!bval_is_number(v) || !bval_to_i64(v, false, &secs) || secs > INT32_MAX)
        return err_set(&cx->op.err, ERR_BAD_VALUE, "ttlMonitorSleepSecs must be a number of seconds");
    if (secs < 1)
        return err_set(&cx->op.err, ERR_BAD_VALUE,
                       "Invalid value for parameter ttlMonitorSleepSecs: %lld is not greater than 0", (long long)secs);
    if (cx->server->ttl)
        ttl_set_sleep_secs(cx->server->ttl, secs);
    return 0;
}

static const struct parameter parameters[] = {
    {"enableTestCommands", true, write_test_commands, NULL},
    {"featureCompatibilityVersion", false, write_fcv, NULL},
    {"logLevel", true, write_log_level, set_log_level},
    {"ttlMonitorEnabled", true, write_ttl_enabled, set_ttl_enabled},
    {"ttlMonitorSleepSecs", true, write_ttl_sleep, set_ttl_sleep},
};

static const struct parameter *find(const char *name)
{
    for (size_t i = 0; i < OV_LEN(parameters); i++)
        if (strcmp(parameters[i].name, name) == 0)
            return &parameters[i];
    return NULL;
}

static void write_one(struct command_ctx *cx, const struct parameter *p, bool details)
{
    if (!details) {
        p->write(cx, p->name);
        return;
    }
    size_t at = bw_doc(cx->reply, p->name);
    p->write(cx, "value");
    bw_bool(cx->reply, "settableAtRuntime", p->set != NULL);
    bw_bool(cx->reply, "settableAtStartup", p->at_startup);
    bw_end(cx->reply, at);
}

static bool generic(const char *name)
{
    static const char *const known[] = {"lsid",         "comment",    "maxTimeMS", "readConcern",
                                        "writeConcern", "apiVersion", "apiStrict", "apiDeprecationErrors"};
    for (size_t i = 0; i < OV_LEN(known); i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return name[0] == '$';
}

enum op_status cmd_get_parameter(struct command_ctx *cx)
{
    struct bval what = bdoc_get(cx->req->body, cx->req->name), v;
    bool all = false, details = false, found = false;
    uint32_t n;
    struct biter it;
    struct belem e;
    if (what.type == BSON_TYPE_UTF8) {
        all = strcmp(bval_str(what, &n), "*") == 0;
    } else if (what.type == BSON_TYPE_DOCUMENT) {
        v = bdoc_get(bval_doc(what), "allParameters");
        all = !bval_is_missing(v) && bval_truthy(v);
        v = bdoc_get(bval_doc(what), "showDetails");
        details = !bval_is_missing(v) && bval_truthy(v);
    }
    for (size_t i = 0; all && i < OV_LEN(parameters); i++)
        write_one(cx, &parameters[i], details);
    biter_init(&it, cx->req->body);
    biter_next(&it, &e);
    while (!all && biter_next(&it, &e)) {
        const struct parameter *p = find(e.name);
        if (!p)
            continue;
        write_one(cx, p, details);
        found = true;
    }
    return all || found ? OP_DONE : command_fail(cx, ERR_INVALID_OPTIONS, "no option found to get");
}

static int set_one(struct command_ctx *cx, const struct belem *e, bool first)
{
    const struct parameter *p = find(e->name);
    if (!p)
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS,
                       "attempted to set unrecognized parameter [%s], use help:true to see options ", e->name);
    if (!p->set)
        return err_set(&cx->op.err, ERR_ILLEGAL_OPERATION, "not allowed to change [%s] at runtime", p->name);
    if (first)
        p->write(cx, "was"); /* thrown away if the new value is refused */
    int rc = p->set(cx, e->v);
    if (rc == 0)
        log_line(LOG_INFO, "CONTROL", 51002, "A parameter was changed", "\"parameter\":\"%s\"", p->name);
    return rc;
}

/* One after the other, up to the first that is refused; `was` is of the first. */
enum op_status cmd_set_parameter(struct command_ctx *cx)
{
    struct biter it;
    struct belem e;
    bool first = true;
    biter_init(&it, cx->req->body);
    biter_next(&it, &e);
    while (biter_next(&it, &e)) {
        if (generic(e.name))
            continue;
        if (set_one(cx, &e, first) != 0)
            return OP_DONE;
        first = false;
    }
    return first ? command_fail(cx, ERR_INVALID_OPTIONS, "no option found to set, use help:true to see options ")
                 : OP_DONE;
}
