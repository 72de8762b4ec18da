/* collStats, dbStats, dataSize. What is measured how: measure.h. */
#include <sys/statvfs.h>

#include "server/base/clock.h"
#include "server/commands/admin.h"
#include "server/commands/measure.h"
#include "server/conf/config.h"

const char *const coll_stats_fields[] = {"scale", "verbose", "waitForLock", "numericOnly", NULL};
const char *const db_stats_fields[] = {"scale", "freeStorage", NULL};
const char *const data_size_fields[] = {"keyPattern", "min", "max", "estimate", NULL};

#define WALK_ALL_BYTES (256ull * 1024 * 1024) /* dbStats: through all collections together */

struct stats {
    struct measure m;
    bool measuring;
    uint64_t budget;
    int64_t scale, start_us;
    /* dbStats */
    struct collection **all; /* references */
    size_t n, cap, at;
    struct arena *arena;
    int64_t objects, size, storage, indexes, index_storage;
};

static void cleanup(struct command_ctx *cx)
{
    struct stats *s = cx->state;
    eng_call_cancel(cx->server->engine, &cx->call);
    measure_end(&s->m);
    for (size_t i = 0; i < s->n; i++)
        collection_unref(s->all[i]);
    s->n = 0;
}

static struct stats *new_stats(struct command_ctx *cx)
{
    struct stats *s = arena_zalloc(cx->op.arena, sizeof(*s));
    s->arena = cx->op.arena;
    s->budget = WALK_ALL_BYTES;
    s->scale = 1;
    s->start_us = clock_mono_us();
    cx->state = s;
    cx->cleanup = cleanup;
    return s;
}

/* The step of a command about one collection. True: *out is the answer now; else s->m is measured. */
static bool measure_one(struct command_ctx *cx, struct stats *s, enum op_status *out)
{
    *out = OP_DONE;
    if (op_check_interrupt(&cx->op) != 0)
        return true;
    *out = measure_step(&s->m, cx, &s->budget);
    return *out != OP_DONE || cx->op.err.code != 0;
}

/* ---- collStats ---- */

static enum op_status coll_stats_reply(struct command_ctx *cx, const char *ns, const struct measure *m, int64_t scale)
{
    bw_str(cx->reply, "ns", ns);
    measure_put(cx->reply, m, scale);
    return OP_DONE;
}

enum op_status cmd_coll_stats(struct command_ctx *cx)
{
    static const struct measure nothing;
    struct stats *s = cx->state;
    const char *name;
    enum op_status out;
    if (arg_collection(cx, &name) != 0)
        return OP_DONE;
    const char *ns = arena_printf(cx->op.arena, "%s.%s", cx->req->db, name);
    if (!s) {
        int64_t scale;
        if (arg_i64(cx, "scale", 1, 1, &scale) != 0)
            return OP_DONE;
        struct collection *coll = catalog_get(cx->server->catalog, cx->req->db, name);
        if (!coll)
            return coll_stats_reply(cx, ns, &nothing, scale);
        s = new_stats(cx);
        s->scale = scale;
        measure_begin(&s->m, cx, coll);
        collection_unref(coll);
    }
    return measure_one(cx, s, &out) ? out : coll_stats_reply(cx, ns, &s->m, s->scale);
}

/* ---- dbStats ---- */

static void note(void *arg, struct collection *coll)
{
    struct stats *s = arg;
    if (s->n == s->cap) {
        size_t cap = OV_MAX(64, s->cap * 2);
        struct collection **all = arena_alloc(s->arena, cap * sizeof(struct collection *));
        if (s->n)
            memcpy(all, s->all, s->n * sizeof(struct collection *));
        s->all = all;
        s->cap = cap;
    }
    s->all[s->n++] = collection_ref(coll);
}

static void add(struct stats *s)
{
    const struct measure *m = &s->m;
    s->objects += m->count;
    s->size += m->size;
    s->storage += m->storage;
    s->indexes += m->n_indexes;
    s->index_storage += m->index_storage;
}

static enum op_status db_stats_reply(struct command_ctx *cx, const struct stats *s)
{
    struct buf *b = cx->reply;
    double scale = (double)s->scale;
    struct statvfs fs;
    bw_str(b, "db", cx->req->db);
    bw_i64(b, "collections", (int64_t)s->n);
    bw_i64(b, "views", 0);
    bw_i64(b, "objects", s->objects);
    bw_f64(b, "avgObjSize", s->objects ? (double)s->size / (double)s->objects : 0);
    bw_f64(b, "dataSize", (double)s->size / scale);
    bw_f64(b, "storageSize", (double)s->storage / scale);
    bw_i64(b, "indexes", s->indexes);
    bw_f64(b, "indexSize", (double)s->index_storage / scale);
    bw_f64(b, "totalSize", (double)(s->storage + s->index_storage) / scale);
    bw_i64(b, "scaleFactor", s->scale);
    if (cx->server->config && cx->server->config->db_path && statvfs(cx->server->config->db_path, &fs) == 0) {
        double unit = (double)fs.f_frsize / scale;
        bw_f64(b, "fsUsedSize", (double)(fs.f_blocks - fs.f_bfree) * unit);
        bw_f64(b, "fsTotalSize", (double)fs.f_blocks * unit);
    }
    return OP_DONE;
}

enum op_status cmd_db_stats(struct command_ctx *cx)
{
    struct stats *s = cx->state;
    enum op_status out;
    if (!s) {
        int64_t scale, free_storage;
        if (arg_i64(cx, "scale", 1, 1, &scale) != 0 || arg_i64(cx, "freeStorage", 0, 0, &free_storage) != 0)
            return OP_DONE;
        s = new_stats(cx);
        s->scale = scale;
        catalog_each(cx->server->catalog, cx->req->db, note, s);
    }
    for (; s->at < s->n; s->at++) {
        if (!s->measuring)
            measure_begin(&s->m, cx, s->all[s->at]);
        s->measuring = true;
        if (measure_one(cx, s, &out))
            return out;
        add(s);
        measure_end(&s->m);
        s->measuring = false;
    }
    return db_stats_reply(cx, s);
}

/* ---- dataSize ---- */

static struct collection *data_size_collection(struct command_ctx *cx)
{
    static const char *const refused[] = {"keyPattern", "min", "max"};
    const char *ns;
    bool estimate;
    if (arg_string(cx, cx->req->name, &ns, true) != 0 || arg_bool(cx, "estimate", false, &estimate) != 0)
        return NULL;
    for (size_t i = 0; i < OV_LEN(refused); i++)
        if (!bval_is_missing(bdoc_get(cx->req->body, refused[i]))) {
            command_fail(cx, ERR_NOT_IMPLEMENTED, "the option '%s' of dataSize is not implemented", refused[i]);
            return NULL;
        }
    const char *dot = strchr(ns, '.');
    if (!dot || dot == ns || !dot[1]) {
        command_fail(cx, ERR_INVALID_NAMESPACE, "Invalid namespace specified '%s'", ns);
        return NULL;
    }
    return catalog_get(cx->server->catalog, arena_strndup(cx->op.arena, ns, (size_t)(dot - ns)), dot + 1);
}

enum op_status cmd_data_size(struct command_ctx *cx)
{
    struct stats *s = cx->state;
    enum op_status out;
    if (!s) {
        struct collection *coll = data_size_collection(cx);
        if (cx->op.err.code)
            return OP_DONE;
        s = new_stats(cx);
        if (coll)
            measure_begin(&s->m, cx, coll);
        collection_unref(coll);
    }
    if (s->m.coll && measure_one(cx, s, &out))
        return out;
    bw_bool(cx->reply, "estimate", bval_truthy(bdoc_get(cx->req->body, "estimate")));
    bw_i64(cx->reply, "size", s->m.size);
    bw_i64(cx->reply, "numObjects", s->m.count);
    bw_i64(cx->reply, "millis", (clock_mono_us() - s->start_us) / 1000);
    return OP_DONE;
}
