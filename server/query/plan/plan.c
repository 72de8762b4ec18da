/* The choice of an access path. Every index that is ready is looked at and gets a score from its bounds and its order alone: the same
 * question gets the same plan each time, and no data is read. The order of preference:
 *   1. whole keys of a unique index: at most so many rows
 *   2. more leading fields at points, then ranges on the next one, then the asked order
 *   3. the asked order, or the entries of a sparse index, without bounds
 *   4. all records
 * and among equals the index with fewer fields, then the older one. */
#include "server/query/plan/plan_private.h"

enum { SCORE_PRESENT = 1, SCORE_ORDER = 2, SCORE_RANGE = 4, SCORE_POINT = 8, SCORE_UNIQUE = 1024 };

struct planner {
    struct arena *arena;
    const struct match *filter;
    const struct sort_spec *sort; /* NULL: any order will do, but for `natural` */
    int natural;                  /* asked direction of the records themselves, or 0 */
    uint64_t snapshot_ts;
    struct err *err;
    struct bounds_ctx bounds;
};

static int out_of_memory(struct planner *p)
{
    return err_set(p->err, ERR_EXCEEDED_MEMORY_LIMIT, "no memory left for the plan of the query");
}

static bool ready(const struct planner *p, const struct index_def *def)
{
    return def->state == INDEX_READY && !def->hidden &&
           atomic_load_explicit(&def->rt->ready_ts, memory_order_acquire) <= p->snapshot_ts;
}

/* Has it keys of all documents that match? Its multikey bits tell nothing about others. */
static bool covers(const struct planner *p, const struct index_def *def)
{
    return !def->partial || filter_implies(p->filter, def->partial->arg);
}

/* ---- one index ---- */

/* Fields that may go through one array: a document can match by different elements of it, whose values stand in different keys. */
static bool may_bound(const struct choice *c, uint32_t field)
{
    for (uint32_t i = 0; i < field; i++)
        if (choice_shares_array(c, i, field))
            return false;
    return true;
}

static int bound_fields(struct planner *p, struct choice *c)
{
    for (uint32_t i = 0; i < c->def->n_fields && may_bound(c, i); i++) {
        struct bounds *b = &c->fields[i];
        int rc = bounds_of(&p->bounds, p->filter, &c->def->paths[i], c->multikey >> i & 1, b);
        if (rc < 0)
            return out_of_memory(p);
        if (rc == 0)
            return 0;
        c->usable |= !b->missing;
        if (b->n == 0) {
            c->empty = true;
            return 0;
        }
        if (i > 0 && b->n > 1 && (uint64_t)b->n * c->n_intervals > PLAN_POINTS_MAX)
            return 0;
        c->n_intervals *= b->n;
        c->n_bounded = i + 1;
        if (!b->points)
            return 0;
        c->n_points = i + 1;
    }
    return 0;
}

static bool whole_keys(const struct choice *c)
{
    return (c->def->unique || c->def->is_id) && c->n_points == c->def->n_fields;
}

static void set_score(struct choice *c)
{
    int score = (int)c->n_points * SCORE_POINT;
    if (c->n_bounded > c->n_points)
        score += c->fields[c->n_points].full ? (c->def->sparse ? SCORE_PRESENT : 0) : SCORE_RANGE;
    if (c->sorted)
        score += SCORE_ORDER;
    if (whole_keys(c))
        score += SCORE_UNIQUE;
    c->score = score;
}

static int consider(struct planner *p, const struct index_def *def, struct choice *c)
{
    c->def = def;
    c->multikey = atomic_load_explicit(&def->rt->multikey, memory_order_acquire);
    c->n_points = c->n_bounded = c->merge_field = 0;
    c->n_intervals = 1;
    c->usable = !def->sparse;
    c->empty = c->sorted = c->reverse = c->merge = false;
    int rc = bound_fields(p, c);
    if (rc == 0 && !c->empty && p->sort)
        choice_order(c, p->sort);
    set_score(c);
    return rc;
}

/* The keys of one record differ in multikey fields alone: where each of them is held at one value, it has one key. */
static bool may_repeat(const struct choice *c)
{
    for (uint32_t i = 0; i < c->def->n_fields; i++)
        if ((c->multikey >> i & 1) && (i >= c->n_points || c->fields[i].n > 1))
            return true;
    return false;
}

static int use(struct planner *p, const struct choice *c, struct plan *out)
{
    if (c->empty) {
        out->kind = PLAN_EMPTY;
        out->sorted = true;
        return 0;
    }
    bool whole = whole_keys(c);
    bool one = whole && c->n_intervals == 1;
    struct choice plain = *c;
    if (whole)
        plain.merge = false;
    out->kind = whole ? PLAN_POINTS : PLAN_IXSCAN;
    out->index = c->def;
    out->sorted = !p->sort || one || (c->sorted && !(whole && c->merge));
    out->reverse = out->sorted && c->reverse && p->sort;
    out->merge = plain.merge;
    out->dedup = may_repeat(c);
    out->multikey = c->multikey;
    return choice_intervals(p->arena, &plain, out) ? 0 : out_of_memory(p);
}

/* ---- all of them ---- */

static void collscan(const struct planner *p, bool reverse, struct plan *out)
{
    out->kind = PLAN_COLLSCAN;
    out->reverse = reverse;
    out->sorted = !p->sort;
}

static bool better(const struct choice *x, const struct choice *y)
{
    if (x->score != y->score)
        return x->score > y->score;
    if (x->n_intervals != y->n_intervals && x->n_points == y->n_points)
        return x->n_intervals < y->n_intervals;
    return x->def->n_fields < y->def->n_fields;
}

static int choose(struct planner *p, const struct collection *coll, struct plan *out)
{
    struct choice pair[2], *best = NULL, *next = &pair[0];
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        if (!ready(p, &coll->indexes[i]) || !covers(p, &coll->indexes[i]))
            continue;
        int rc = consider(p, &coll->indexes[i], next);
        if (rc != 0)
            return rc;
        if (next->empty)
            return use(p, next, out);
        if (!next->usable || next->score == 0 || (best && !better(next, best)))
            continue;
        best = next;
        next = best == &pair[0] ? &pair[1] : &pair[0];
    }
    if (best)
        return use(p, best, out);
    collscan(p, false, out);
    return 0;
}

/* ---- hints ---- */

static const struct index_def *hinted(const struct planner *p, const struct collection *coll, struct bval hint)
{
    uint32_t n;
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        const struct index_def *def = &coll->indexes[i];
        bool same = hint.type == BSON_TYPE_UTF8 ? strcmp(bval_str(hint, &n), def->name) == 0
                                                : bdoc_cmp(bval_doc(hint), def->key_pattern) == 0;
        if (same && ready(p, def))
            return def;
    }
    return NULL;
}

static bool no_hint(struct bval hint)
{
    return hint.type == BSON_TYPE_EOD || (hint.type == BSON_TYPE_DOCUMENT && bdoc_empty(bval_doc(hint)));
}

/* What a hint may be, whatever the collection has. *dir: of a hint of the records themselves, or 0. */
static int check_hint(struct planner *p, struct bval hint, int *dir)
{
    int64_t n;
    struct biter it;
    struct belem e;
    *dir = 0;
    if (hint.type != BSON_TYPE_UTF8 && hint.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, ERR_FAILED_TO_PARSE, "Hint must be a string or an object");
    struct bval v = hint.type == BSON_TYPE_DOCUMENT ? bdoc_get(bval_doc(hint), "$natural") : BVAL_MISSING;
    if (bval_is_missing(v)) {
        if (p->natural)
            return err_set(p->err, ERR_BAD_VALUE, "index hint not allowed with $natural sort order");
        return 0;
    }
    biter_init(&it, bval_doc(hint));
    bool alone = biter_next(&it, &e) && !biter_next(&it, &e);
    if (!alone || !bval_to_i64(v, true, &n) || (n != 1 && n != -1))
        return err_set(p->err, ERR_BAD_VALUE, "$natural hint cannot be set to a value other than -1 or 1.");
    if (p->natural && n != p->natural)
        return err_set(p->err, ERR_BAD_VALUE, "$natural hint must be in the same direction as $natural sort order");
    *dir = (int)n;
    return 0;
}

/* A sparse or partial index is used as asked, without the documents that it leaves out. */
static int by_hint(struct planner *p, const struct collection *coll, struct bval hint, struct plan *out)
{
    struct choice c;
    int dir, rc = check_hint(p, hint, &dir);
    if (rc != 0 || !coll)
        return rc;
    if (dir) {
        collscan(p, dir < 0, out);
        return 0;
    }
    const struct index_def *def = hinted(p, coll, hint);
    if (!def)
        return err_set(p->err, ERR_BAD_VALUE, "hint provided does not correspond to an existing index");
    rc = consider(p, def, &c);
    return rc == 0 ? use(p, &c, out) : rc;
}

/* ---- {_id: x} ---- */

static int by_id(struct planner *p, const struct index_def *def, struct bval id, struct plan *out)
{
    out->intervals = arena_alloc(p->arena, sizeof(*out->intervals));
    struct slice key = key_encode_arena(p->arena, id, def->dirs[0] < 0);
    if (!out->intervals || !key.p)
        return out_of_memory(p);
    out->kind = PLAN_POINTS;
    out->index = def;
    out->sorted = true;
    out->n_intervals = 1;
    out->intervals[0] = (struct plan_interval){.from = key, .to = key};
    return 0;
}

int plan_make(struct arena *a, const struct collection *coll, const struct match *filter, const struct sort_spec *sort,
              struct bval hint, uint64_t snapshot_ts, struct plan *out, struct err *err)
{
    struct planner p = {.arena = a,
                        .filter = filter,
                        .sort = sort && sort->n ? sort : NULL,
                        .natural = sort ? sort->natural : 0,
                        .snapshot_ts = snapshot_ts,
                        .err = err,
                        .bounds = {.arena = a}};
    *out = (struct plan){.kind = PLAN_EMPTY, .sorted = true, .filter = filter, .sort = sort};
    if (!no_hint(hint))
        return by_hint(&p, coll, hint, out);
    if (!coll || filter->op == MATCH_FALSE)
        return 0;
    if (filter->op == MATCH_EQ && strcmp(filter->path.text, "_id") == 0 && coll->n_indexes && coll->indexes[0].is_id &&
        filter->value.type != BSON_TYPE_ARRAY && ready(&p, &coll->indexes[0]))
        return by_id(&p, &coll->indexes[0], filter->value, out);
    if (p.natural) {
        collscan(&p, p.natural < 0, out);
        return 0;
    }
    if (filter->op == MATCH_TRUE && !p.sort) {
        collscan(&p, false, out);
        return 0;
    }
    return choose(&p, coll, out);
}
