/* serverStatus: figures that are measured, a function a section. A section given as 0 is left out, as tools ask for. */
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/version.h"
#include "server/commands/diagnostic.h"
#include "server/conf/config.h"
#include "server/session/cursors.h"
#include "server/ttl/ttl.h"

static int64_t load(_Atomic int64_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

static void connections(struct command_ctx *cx)
{
    struct server *s = cx->server;
    int64_t now = load(&s->connections), max = s->config ? s->config->max_incoming_connections : 0;
    bw_i32(cx->reply, "current", (int32_t)now);
    if (max > 0)
        bw_i32(cx->reply, "available", (int32_t)OV_MAX(max - now, 0));
    bw_i64(cx->reply, "totalCreated", load(&s->connections_total));
}

static void network(struct command_ctx *cx)
{
    bw_i64(cx->reply, "bytesIn", load(&cx->server->bytes_in));
    bw_i64(cx->reply, "bytesOut", load(&cx->server->bytes_out));
    bw_i64(cx->reply, "numRequests", load(&cx->server->requests));
}

static void opcounters(struct command_ctx *cx)
{
    struct server *s = cx->server;
    bw_i64(cx->reply, "insert", load(&s->op_insert));
    bw_i64(cx->reply, "query", load(&s->op_query));
    bw_i64(cx->reply, "update", load(&s->op_update));
    bw_i64(cx->reply, "delete", load(&s->op_delete));
    bw_i64(cx->reply, "getmore", load(&s->op_getmore));
    bw_i64(cx->reply, "command", load(&s->op_command));
}

static void mem(struct command_ctx *cx)
{
    long long size = 0, resident = 0, page = sysconf(_SC_PAGESIZE);
    FILE *f = fopen("/proc/self/statm", "re");
    bw_i32(cx->reply, "bits", (int32_t)sizeof(void *) * 8);
    if (!f)
        return;
    if (fscanf(f, "%lld %lld", &size, &resident) == 2) {
        bw_i32(cx->reply, "resident", (int32_t)(resident * page / (1024 * 1024)));
        bw_i32(cx->reply, "virtual", (int32_t)(size * page / (1024 * 1024)));
    }
    fclose(f);
}

static void metrics(struct command_ctx *cx)
{
    struct cursors_stats c;
    if (!cx->server->cursors)
        return;
    cursors_stats(cx->server->cursors, &c);
    size_t at = bw_doc(cx->reply, "cursor");
    bw_i64(cx->reply, "timedOut", c.timed_out);
    size_t open = bw_doc(cx->reply, "open");
    bw_i64(cx->reply, "noTimeout", c.no_timeout);
    bw_i64(cx->reply, "total", c.open);
    bw_end(cx->reply, open);
    bw_end(cx->reply, at);
    struct ttl_stats ttl = {0};
    if (cx->server->ttl)
        ttl_stats(cx->server->ttl, &ttl);
    at = bw_doc(cx->reply, "ttl");
    bw_i64(cx->reply, "deletedDocuments", ttl.deleted);
    bw_i64(cx->reply, "passes", ttl.passes);
    bw_end(cx->reply, at);
}

static void storage_engine(struct command_ctx *cx)
{
    bw_str(cx->reply, "name", "octavo");
    bw_bool(cx->reply, "persistent", true);
    bw_bool(cx->reply, "readOnly", false);
}

static void repl(struct command_ctx *cx)
{
    const char *me = cx->server->advertised ? cx->server->advertised : cx->client->local;
    bw_str(cx->reply, "setName", cx->server->set_name);
    bw_i32(cx->reply, "setVersion", 1);
    bw_bool(cx->reply, "isWritablePrimary", true);
    bw_bool(cx->reply, "secondary", false);
    bw_str(cx->reply, "primary", me);
    bw_str(cx->reply, "me", me);
}

#define FIGURE(f)                         \
    {                                     \
#f, offsetof(struct eng_stats, f) \
    }
static const struct {
    const char *name;
    size_t at;
} figures[] = {
    FIGURE(commits),
    FIGURE(commit_bytes),
    FIGURE(journal_writes),
    FIGURE(journal_syncs),
    FIGURE(journal_sync_us),
    FIGURE(journal_segments),
    FIGURE(journal_recycled),
    FIGURE(journal_disk_bytes),
    FIGURE(memtable_bytes),
    FIGURE(memtable_sealed),
    FIGURE(flushes),
    FIGURE(flush_bytes),
    FIGURE(merges),
    FIGURE(merge_bytes),
    FIGURE(runs),
    FIGURE(run_disk_bytes),
    FIGURE(cache_bytes),
    FIGURE(cache_hits),
    FIGURE(cache_misses),
    FIGURE(cache_evictions),
    FIGURE(gets),
    FIGURE(scans),
    FIGURE(scan_rows),
    FIGURE(lock_waits),
    FIGURE(conflicts),
    FIGURE(stalls_us),
    FIGURE(long_commit_holds),
    FIGURE(snapshots_open),
    FIGURE(replayed_bytes),
    FIGURE(replay_us),
};

static void octavo(struct command_ctx *cx)
{
    struct eng_stats stats;
    struct eng_error e;
    eng_stats(cx->server->engine, &stats);
    eng_error(cx->server->engine, &e);
    bw_str(cx->reply, "version", OV_VERSION);
    for (size_t i = 0; i < OV_LEN(figures); i++)
        bw_i64(cx->reply, figures[i].name, (int64_t)load_le64((const uint8_t *)&stats + figures[i].at));
    if (e.result != ENG_OK)
        bw_str(cx->reply, "lastError", e.msg);
}

static const struct {
    const char *name;
    void (*write)(struct command_ctx *cx);
} sections[] = {
    {"connections", connections},      {"network", network}, {"opcounters", opcounters}, {"repl", repl},
    {"storageEngine", storage_engine}, {"mem", mem},         {"metrics", metrics},       {"octavo", octavo},
};

static bool wanted(struct command_ctx *cx, const char *section)
{
    struct bval v = bdoc_get(cx->req->body, section);
    if (strcmp(section, "repl") == 0 && !cx->server->set_name)
        return false;
    if (strcmp(section, "octavo") == 0 && !cx->server->engine)
        return false;
    return bval_is_missing(v) || bval_truthy(v);
}

enum op_status cmd_server_status(struct command_ctx *cx)
{
    struct buf *b = cx->reply;
    struct utsname u;
    int64_t up_us = clock_mono_us() - cx->server->start_mono_us;
    int64_t port = cx->server->config ? cx->server->config->port : 0;
    if (uname(&u) != 0)
        u.nodename[0] = 0;
    const char *local = strrchr(cx->client->local, ':');
    bw_str(b, "host",
           port == 0 && local ? arena_printf(cx->op.arena, "%s%s", u.nodename, local)
                              : arena_printf(cx->op.arena, "%s:%lld", u.nodename, (long long)port));
    bw_str(b, "version", OV_COMPAT_VERSION);
    bw_str(b, "process", "octavod");
    bw_i64(b, "pid", getpid());
    bw_f64(b, "uptime", (double)(up_us / 1000000));
    bw_i64(b, "uptimeMillis", up_us / 1000);
    bw_i64(b, "uptimeEstimate", up_us / 1000000);
    bw_date(b, "localTime", clock_wall_ms());
    for (size_t i = 0; i < OV_LEN(sections); i++) {
        if (!wanted(cx, sections[i].name))
            continue;
        size_t at = bw_doc(b, sections[i].name);
        sections[i].write(cx);
        bw_end(b, at);
    }
    return OP_DONE;
}
