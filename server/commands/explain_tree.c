/* The plan as clients read it: a tree of stages, each with its input. Our executions know no such tree; what they do is told in its words. */
#include "server/base/clock.h"
#include "server/commands/explain_private.h"

struct tree { /* stages from the root on, each the input of the one before */
    struct command_ctx *cx;
    struct buf *out;
    const char *root;
    bool stats;
    int64_t ms;
    size_t open[8];
    uint32_t n;
};

void explain_put_number(struct buf *b, const char *name, int64_t n)
{
    if (n >= INT32_MIN && n <= INT32_MAX)
        bw_i32(b, name, (int32_t)n);
    else
        bw_i64(b, name, n);
}

static void stage(struct tree *t, const char *name, int64_t returned)
{
    t->open[t->n] = bw_doc(t->out, t->n ? "inputStage" : t->root);
    t->n++;
    bw_str(t->out, "stage", name);
    if (t->stats) {
        explain_put_number(t->out, "nReturned", returned);
        explain_put_number(t->out, "executionTimeMillisEstimate", t->ms);
    }
}

static void counter(struct tree *t, const char *name, uint64_t n)
{
    if (t->stats)
        explain_put_number(t->out, name, (int64_t)n);
}

/* ---- the access path ---- */

/* Which parts of the fields' paths have held arrays: of a dotted path that is not known, and the whole is left out. */
static void put_multikey(struct tree *t, const struct index_def *def)
{
    uint32_t bits = atomic_load_explicit(&def->rt->multikey, memory_order_relaxed);
    bw_bool(t->out, "isMultiKey", bits != 0);
    for (uint32_t i = 0; i < def->n_fields; i++)
        if ((bits >> i & 1) && def->paths[i].n_parts > 1)
            return;
    size_t paths = bw_doc(t->out, "multiKeyPaths");
    for (uint32_t i = 0; i < def->n_fields; i++) {
        size_t at = bw_arr(t->out, def->paths[i].text);
        if (bits >> i & 1)
            bw_str(t->out, "0", def->paths[i].text);
        bw_end(t->out, at);
    }
    bw_end(t->out, paths);
}

static void index_scan(struct tree *t, const struct plan *p, const struct exec_counts *n)
{
    const struct index_def *def = p->index;
    stage(t, "IXSCAN", (int64_t)n->docs);
    bw_rawdoc(t->out, "keyPattern", def->key_pattern);
    bw_str(t->out, "indexName", def->name);
    put_multikey(t, def);
    bw_bool(t->out, "isUnique", def->unique || def->is_id);
    bw_bool(t->out, "isSparse", def->sparse);
    bw_bool(t->out, "isPartial", !bval_is_missing(bdoc_get(def->spec, "partialFilterExpression")));
    bw_i32(t->out, "indexVersion", 2);
    bw_str(t->out, "direction", p->reverse ? "backward" : "forward");
    if (!plan_put_bounds(t->cx->op.arena, p, t->out))
        bw_str(t->out, "warning", "index bounds omitted due to BSON size limit for explain");
    counter(t, "keysExamined", n->keys);
}

static bool is_indexed(const struct index_def *def, const char *name)
{
    for (uint32_t i = 0; i < def->n_fields; i++)
        if (strcmp(def->paths[i].text, name) == 0)
            return true;
    return false;
}

/* The conditions that documents are matched by, but for those on fields of the index, which the bounds show. */
static void put_filter(struct tree *t, const struct explain *e, const struct index_def *def)
{
    struct biter it;
    struct belem f;
    bool any = false;
    if (!e->filter)
        return;
    for (biter_init(&it, e->filter); biter_next(&it, &f);)
        any |= !def || !is_indexed(def, f.name);
    if (!any)
        return;
    size_t at = bw_doc(t->out, "filter");
    for (biter_init(&it, e->filter); biter_next(&it, &f);)
        if (!def || !is_indexed(def, f.name))
            bw_val(t->out, f.name, f.v);
    bw_end(t->out, at);
}

static void access_path(struct tree *t, const struct explain *e, const struct plan *p, const struct exec_counts *n)
{
    switch (p->kind) {
    case PLAN_EMPTY:
        stage(t, "EOF", 0);
        return;
    case PLAN_COLLSCAN:
        stage(t, "COLLSCAN", (int64_t)n->matched);
        put_filter(t, e, NULL);
        bw_str(t->out, "direction", p->reverse ? "backward" : "forward");
        counter(t, "docsExamined", n->docs);
        return;
    case PLAN_POINTS:
        if (p->n_intervals == 1 && p->index->is_id) {
            stage(t, "IDHACK", (int64_t)n->matched);
            counter(t, "keysExamined", n->keys);
            counter(t, "docsExamined", n->docs);
            return;
        }
        break;
    case PLAN_IXSCAN:
        break;
    }
    stage(t, "FETCH", (int64_t)n->matched);
    put_filter(t, e, p->index);
    counter(t, "docsExamined", n->docs);
    index_scan(t, p, n);
}

/* ---- above it ---- */

static bool sorts(const struct plan *p)
{
    return p->sort && p->sort->n && !p->sorted && p->kind != PLAN_EMPTY;
}

/* Fields by their whole names, taken or left out. */
static bool is_simple(const uint8_t *projection)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, projection); biter_next(&it, &e);)
        if (strchr(e.name, '.') || !(bval_is_number(e.v) || e.v.type == BSON_TYPE_BOOL))
            return false;
    return true;
}

static void top_stage(struct tree *t, const struct explain *e, const struct reading *r, const struct exec_counts *n)
{
    switch (e->top) {
    case TOP_NONE:
        return;
    case TOP_COUNT:
    case TOP_FAST_COUNT:
        stage(t, e->top == TOP_COUNT ? "COUNT" : "RECORD_STORE_FAST_COUNT", 0);
        counter(t, "nCounted", (uint64_t)r->counted);
        counter(t, "nSkipped", n->skipped);
        return;
    case TOP_UPDATE:
        stage(t, "UPDATE", 0);
        counter(t, "nMatched", (uint64_t)r->counted);
        counter(t, "nWouldModify", (uint64_t)e->would_modify);
        counter(t, "nWouldUpsert", e->upsert && r->counted == 0);
        return;
    case TOP_DELETE:
        stage(t, "DELETE", 0);
        counter(t, "nWouldDelete", (uint64_t)r->counted);
        return;
    }
}

void explain_put_plan(struct command_ctx *cx, const struct explain *e, const struct reading *r, const char *root,
                      bool stats)
{
    struct tree t = {.cx = cx, .out = cx->reply, .root = root, .stats = stats};
    const struct plan *p = r->cur->plan;
    struct exec_counts n = {0};
    if (r->exec)
        exec_counts(r->exec, &n);
    t.ms = (clock_mono_us() - e->began_us) / 1000;
    top_stage(&t, e, r, &n);
    if (e->limit > 0 && !(p && sorts(p))) {
        stage(&t, "LIMIT", (int64_t)n.given);
        explain_put_number(t.out, "limitAmount", e->limit);
    }
    if (e->projection && !bdoc_empty(e->projection)) {
        stage(&t, is_simple(e->projection) ? "PROJECTION_SIMPLE" : "PROJECTION_DEFAULT", (int64_t)n.given);
        bw_rawdoc(t.out, "transformBy", e->projection);
    }
    if (e->skip > 0 && e->top != TOP_FAST_COUNT) {
        stage(&t, "SKIP", (int64_t)n.given);
        explain_put_number(t.out, "skipAmount", e->skip);
    }
    if (p && sorts(p)) {
        stage(&t, "SORT", (int64_t)(n.given + n.skipped));
        if (e->sort)
            bw_rawdoc(t.out, "sortPattern", e->sort);
        bw_i32(t.out, "memLimit", SORT_MEMORY_MAX);
        if (e->limit > 0)
            explain_put_number(t.out, "limitAmount", e->limit + e->skip);
        bw_str(t.out, "type", "simple");
    }
    if (p)
        access_path(&t, e, p, &n);
    while (t.n)
        bw_end(t.out, t.open[--t.n]);
}
