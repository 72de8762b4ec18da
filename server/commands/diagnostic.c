/* Small commands about the server, the machine and the connection. */
#include "server/commands/diagnostic.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/conf/config.h"

/* ---- getLog ---- */

struct lines {
    struct buf *b;
    uint32_t n;
};

static void add_line(void *arg, const char *line, size_t n)
{
    struct lines *l = arg;
    char scratch[12];
    bw_strn(l->b, bw_index(l->n++, scratch), line, n);
}

enum op_status cmd_get_log(struct command_ctx *cx)
{
    struct bval v = bdoc_get(cx->req->body, cx->req->name);
    struct lines lines = {cx->reply, 0};
    uint32_t n;
    if (v.type != BSON_TYPE_UTF8)
        return command_fail(cx, ERR_TYPE_MISMATCH, "Argument to getLog must be of type String; found %s of type %s",
                            bval_shell(cx->op.arena, v), bval_type_name(v.type));
    const char *name = bval_str(v, &n);
    bool warnings = strcmp(name, "startupWarnings") == 0;
    if (strcmp(name, "*") == 0) {
        size_t at = bw_arr(cx->reply, "names");
        bw_str(cx->reply, "0", "global");
        bw_str(cx->reply, "1", "startupWarnings");
        bw_end(cx->reply, at);
        return OP_DONE;
    }
    if (!warnings && strcmp(name, "global") != 0)
        return command_fail(cx, ERR_OPERATION_FAILED, "no RecentLog named: %s", name);
    size_t total_at = cx->reply->len;
    bw_i32(cx->reply, "totalLinesWritten", 0); /* known after the walk */
    size_t at = bw_arr(cx->reply, "log");
    uint64_t total = log_recent(warnings, add_line, &lines);
    bw_end(cx->reply, at);
    store_le32(cx->reply->p + total_at + 1 + sizeof("totalLinesWritten"), (uint32_t)OV_MIN(total, (uint64_t)INT32_MAX));
    return OP_DONE;
}

/* ---- the connection ---- */

enum op_status cmd_connection_status(struct command_ctx *cx)
{
    bool privileges;
    if (arg_bool(cx, "showPrivileges", false, &privileges) != 0)
        return OP_DONE;
    size_t at = bw_doc(cx->reply, "authInfo");
    bw_end(cx->reply, bw_arr(cx->reply, "authenticatedUsers"));
    bw_end(cx->reply, bw_arr(cx->reply, "authenticatedUserRoles"));
    if (privileges)
        bw_end(cx->reply, bw_arr(cx->reply, "authenticatedUserPrivileges"));
    bw_end(cx->reply, at);
    return OP_DONE;
}

enum op_status cmd_whatsmyuri(struct command_ctx *cx)
{
    bw_str(cx->reply, "you", cx->client->addr);
    return OP_DONE;
}

/* ---- the machine ---- */

enum op_status cmd_host_info(struct command_ctx *cx)
{
    struct buf *b = cx->reply;
    struct utsname u;
    struct rlimit files;
    int64_t page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
    if (uname(&u) != 0)
        return command_fail(cx, ERR_INTERNAL_ERROR, "the operating system does not tell about itself");
    size_t at = bw_doc(b, "system");
    bw_date(b, "currentTime", clock_wall_ms());
    bw_str(b, "hostname", u.nodename);
    bw_i32(b, "cpuAddrSize", (int32_t)sizeof(void *) * 8);
    bw_i64(b, "memSizeMB", page * pages / (1024 * 1024));
    bw_i32(b, "numCores", (int32_t)sysconf(_SC_NPROCESSORS_ONLN));
    bw_str(b, "cpuArch", u.machine);
    bw_end(b, at);
    at = bw_doc(b, "os");
    bw_str(b, "type", u.sysname);
    bw_str(b, "name", u.sysname);
    bw_str(b, "version", u.release);
    bw_end(b, at);
    at = bw_doc(b, "extra");
    bw_str(b, "versionString", u.version);
    bw_i64(b, "pageSize", page);
    bw_i64(b, "numPages", pages);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        bw_i64(b, "maxOpenFiles", (int64_t)OV_MIN(files.rlim_cur, (rlim_t)INT64_MAX));
    bw_end(b, at);
    return OP_DONE;
}

/* ---- settings as given ---- */

static void write_value(struct buf *b, const char *name, const struct config_entry *e)
{
    char scratch[12];
    uint32_t n = 0;
    size_t at;
    switch (e->type) {
    case 'i':
        bw_i64(b, name, strtoll(e->value, NULL, 10));
        return;
    case 'd':
        bw_f64(b, name, strtod(e->value, NULL));
        return;
    case 'b':
        bw_bool(b, name, strcmp(e->value, "true") == 0);
        return;
    case 'l':
        at = bw_arr(b, name);
        for (const char *s = e->value, *end; *s; s = *end ? end + 1 : end) {
            end = strchrnul(s, ',');
            bw_strn(b, bw_index(n++, scratch), s, (size_t)(end - s));
        }
        bw_end(b, at);
        return;
    default:
        bw_str(b, name, e->value);
    }
}

/* The entries whose keys start with `prefix` (with its dot) as a document: a key with a dot behind the prefix opens another. Entries of one
 * section need not be neighbours: a section is written where its first entry stands. */
static void write_section(struct command_ctx *cx, const struct config *c, const char *prefix)
{
    struct buf *b = cx->reply;
    struct arena *a = cx->op.arena;
    size_t len = strlen(prefix);
    for (size_t i = 0; i < c->n_given; i++) {
        const char *key = c->given[i].key, *rest = key + len, *dot;
        bool seen = false;
        if (strncmp(key, prefix, len) != 0)
            continue;
        dot = strchr(rest, '.');
        if (!dot) {
            write_value(b, rest, &c->given[i]);
            continue;
        }
        size_t with_dot = (size_t)(dot - key) + 1;
        for (size_t k = 0; k < i && !seen; k++)
            seen = strncmp(c->given[k].key, key, with_dot) == 0;
        if (seen)
            continue;
        char *name = arena_strndup(a, rest, (size_t)(dot - rest)), *inner = arena_strndup(a, key, with_dot);
        size_t at = bw_doc(b, name);
        write_section(cx, c, inner);
        bw_end(b, at);
    }
}

enum op_status cmd_get_cmd_line_opts(struct command_ctx *cx)
{
    const struct config *c = cx->server->config;
    char scratch[12];
    size_t at = bw_arr(cx->reply, "argv");
    for (int i = 0; c && i < c->argc; i++)
        bw_str(cx->reply, bw_index((uint32_t)i, scratch), c->argv[i]);
    bw_end(cx->reply, at);
    at = bw_doc(cx->reply, "parsed");
    if (c)
        write_section(cx, c, "");
    bw_end(cx->reply, at);
    return OP_DONE;
}

/* ---- commands ---- */

enum op_status cmd_list_commands(struct command_ctx *cx)
{
    struct buf *b = cx->reply;
    const struct config *conf = cx->server->config;
    size_t all = bw_doc(b, "commands");
    for (const struct command *c = commands; c->name; c++) {
        if (c->flags & CMD_TEST && !(conf && conf->enable_test_commands))
            continue;
        size_t at = bw_doc(b, c->name);
        bw_str(b, "help", c->help);
        bw_bool(b, "requiresAuth", !(c->flags & CMD_NO_AUTH));
        bw_bool(b, "secondaryOk", !(c->flags & CMD_WRITE));
        bw_bool(b, "adminOnly", c->flags & CMD_ADMIN);
        size_t versions = bw_arr(b, "apiVersions");
        if (c->flags & CMD_API_V1)
            bw_str(b, "0", "1");
        bw_end(b, versions);
        bw_end(b, bw_arr(b, "deprecatedApiVersions"));
        bw_end(b, at);
    }
    bw_end(b, all);
    return OP_DONE;
}

/* The connection closes without a reply, which is what clients of shutdown expect. */
enum op_status cmd_shutdown(struct command_ctx *cx)
{
    const char *addr = cx->client->addr;
    bool force;
    int64_t seconds;
    if (arg_bool(cx, "force", false, &force) != 0 || arg_i64(cx, "timeoutSecs", 0, 0, &seconds) != 0)
        return OP_DONE;
    if (strncmp(addr, "127.", 4) != 0 && strncmp(addr, "[::1]", 5) != 0 && strncmp(addr, "::1", 3) != 0)
        return command_fail(cx, ERR_UNAUTHORIZED, "shutdown must run from localhost when running db without auth");
    if (!cx->server->stop)
        return command_fail(cx, ERR_ILLEGAL_OPERATION, "this server cannot be shut down by a command");
    log_line(LOG_INFO, "COMMAND", 51001, "Shutting down: asked for by a client", NULL);
    cx->server->stop(cx->server);
    cx->close_connection = true;
    return OP_DONE;
}
