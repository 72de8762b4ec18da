/* The front of a pipeline, told as an access to the collection. */
#include "server/query/stage/stage.h"

static uint32_t n_conditions(const struct match *m)
{
    return m->op == MATCH_AND ? m->n_children : 1;
}

static void add_conditions(struct match *to, struct match *m)
{
    if (m->op != MATCH_AND) {
        to->children[to->n_children++] = m;
        return;
    }
    memcpy(to->children + to->n_children, m->children, m->n_children * sizeof(struct match *));
    to->n_children += m->n_children;
}

/* Both, as one flat conjunction: so the planner sees all conditions. NULL past the arena's limit. */
static struct match *both(struct arena *a, struct match *x, struct match *y)
{
    if (x->op == MATCH_TRUE)
        return y;
    if (y->op == MATCH_TRUE)
        return x;
    struct match *m = arena_zalloc(a, sizeof(*m));
    struct match **children = arena_alloc(a, (n_conditions(x) + n_conditions(y)) * sizeof(*children));
    if (!m || !children)
        return NULL;
    m->op = MATCH_AND;
    m->children = children;
    add_conditions(m, x);
    add_conditions(m, y);
    return m;
}

/* Skips and limits in any order are one skip and one limit, as long as something is left. */
static bool fold(const struct stage_spec *s, struct access_spec *out)
{
    if (s->kind == STAGE_LIMIT) {
        out->limit = out->limit ? OV_MIN(out->limit, s->n) : s->n;
        return true;
    }
    if (s->kind != STAGE_SKIP || (out->limit && out->limit <= s->n) || out->skip > (uint64_t)INT64_MAX - s->n)
        return false;
    out->skip += s->n;
    out->limit -= out->limit ? s->n : 0;
    return true;
}

int pipeline_push_down(struct arena *a, struct pipeline_spec *p, struct access_spec *out, struct err *err)
{
    uint32_t i = 0;
    *out = (struct access_spec){.filter = arena_zalloc(a, sizeof(*out->filter))};
    if (out->filter)
        out->filter->op = MATCH_TRUE;
    for (; out->filter && i < p->n && p->stages[i].kind == STAGE_MATCH; i++)
        out->filter = both(a, out->filter, p->stages[i].match);
    if (!out->filter)
        return err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "the pipeline exceeds the operation's memory limit");
    if (i < p->n && p->stages[i].kind == STAGE_SORT)
        out->sort = p->stages[i++].sort;
    while (i < p->n && fold(&p->stages[i], out))
        i++;
    p->stages += i;
    p->n -= i;
    return 0;
}
