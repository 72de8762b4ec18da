/* $collStats: the pipeline's first stage, which gives one document about the collection. Measured as for the command collStats, in slices, before the
 * pipeline behind it starts. */
#include <unistd.h>

#include "server/base/clock.h"
#include "server/commands/crud_read_private.h"
#include "server/commands/measure.h"
#include "server/conf/config.h"

#define WALK_BYTES (256ull * 1024 * 1024)

struct coll_stats_source {
    struct measure m;
    const char *coll;
    const struct stage_spec *stage;
    const struct pipeline_spec *rest;
    uint64_t budget;
};

void coll_stats_source_begin(struct command_ctx *cx, struct reading *r, const char *coll,
                             const struct stage_spec *stage, const struct pipeline_spec *rest)
{
    struct coll_stats_source *s = arena_zalloc(cx->op.arena, sizeof(*s));
    *s = (struct coll_stats_source){.coll = coll, .stage = stage, .rest = rest, .budget = WALK_BYTES};
    struct collection *c = catalog_get(cx->server->catalog, cx->req->db, coll);
    if (c)
        measure_begin(&s->m, cx, c);
    collection_unref(c);
    r->cur->ns = arena_printf(r->cur->arena, "%s.%s", cx->req->db, coll);
    r->stats = s;
}

static void put_host(struct command_ctx *cx, struct buf *b)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    bw_str(b, "host",
           arena_printf(cx->op.arena, "%s:%lld", host, cx->server->config ? (long long)cx->server->config->port : 0LL));
}

static struct slice make_document(struct command_ctx *cx, struct reading *r, const struct coll_stats_source *s)
{
    struct buf b;
    buf_init(&b);
    size_t doc = bw_begin(&b);
    bw_str(&b, "ns", r->cur->ns);
    put_host(cx, &b);
    bw_date(&b, "localTime", clock_wall_ms());
    if (s->stage->storage_stats) {
        size_t at = bw_doc(&b, "storageStats");
        measure_put(&b, &s->m, (int64_t)s->stage->n);
        bw_end(&b, at);
    }
    if (s->stage->count)
        bw_i64(&b, "count", s->m.count);
    bw_end(&b, doc);
    struct slice copy = slice_of(arena_dup(r->cur->arena, b.p, b.len), b.len);
    buf_free(&b);
    return copy;
}

enum op_status coll_stats_source_step(struct command_ctx *cx, struct reading *r)
{
    struct coll_stats_source *s = r->stats;
    if (s->stage->count && !s->m.coll)
        return command_fail(cx, ERR_NAMESPACE_NOT_FOUND,
                            "Unable to retrieve count in $collStats stage :: caused by :: Collection [%s] not found.",
                            r->cur->ns);
    if (s->m.coll && s->stage->storage_stats) {
        enum op_status st = measure_step(&s->m, cx, &s->budget);
        if (st != OP_DONE || cx->op.err.code != 0)
            return st;
    }
    r->cur->pipe = pipeline_of_docs(r->cur->arena, make_document(cx, r, s), s->rest, NULL);
    coll_stats_source_end(r);
    return OP_DONE;
}

void coll_stats_source_end(struct reading *r)
{
    if (r->stats && r->stats->m.coll)
        measure_end(&r->stats->m);
    r->stats = NULL;
}
