/* Stages that let documents through, one by one or in another order: $match, $skip, $limit, $sort, $project. */
#include "server/base/assert.h"
#include "server/query/stage/stage_private.h"

struct simple { /* $match, $skip, $limit */
    struct stage s;
    const struct stage_spec *spec;
    uint64_t done;
};

static enum exec_status match_next(struct stage *s, const struct pull *p, const uint8_t **doc)
{
    const struct match *m = OV_CONTAINER(s, struct simple, s)->spec->match;
    enum exec_status st;
    do
        st = s->below->next(s->below, p, doc);
    while (st == EXEC_ROW && !match_doc(m, *doc, NULL));
    return st;
}

static enum exec_status skip_next(struct stage *s, const struct pull *p, const uint8_t **doc)
{
    struct simple *k = OV_CONTAINER(s, struct simple, s);
    enum exec_status st;
    while ((st = s->below->next(s->below, p, doc)) == EXEC_ROW && k->done < k->spec->n)
        k->done++;
    return st;
}

static enum exec_status limit_next(struct stage *s, const struct pull *p, const uint8_t **doc)
{
    struct simple *k = OV_CONTAINER(s, struct simple, s);
    if (k->done == k->spec->n)
        return EXEC_EOF;
    enum exec_status st = s->below->next(s->below, p, doc);
    k->done += st == EXEC_ROW;
    return st;
}

/* ---- $sort ---- */

struct sorting {
    struct stage s;
    struct sorter *sorter;
    bool collected;
};

static enum exec_status sort_next(struct stage *s, const struct pull *p, const uint8_t **doc)
{
    struct sorting *k = OV_CONTAINER(s, struct sorting, s);
    struct exec_row row = {.array_index = -1};
    while (!k->collected) {
        enum exec_status st = s->below->next(s->below, p, &row.doc);
        if (st == EXEC_ROW) {
            if (sorter_add(k->sorter, &row, p->err) != 0)
                return EXEC_ERROR;
        } else if (st == EXEC_EOF) {
            sorter_finish(k->sorter);
            k->collected = true;
        } else {
            return st;
        }
    }
    if (!k->sorter || !sorter_next(k->sorter, &row)) {
        sorter_free(k->sorter); /* many sorts in a row are not all in memory at once */
        k->sorter = NULL;
        return EXEC_EOF;
    }
    *doc = row.doc;
    return EXEC_ROW;
}

static void sort_close(struct stage *s)
{
    sorter_free(OV_CONTAINER(s, struct sorting, s)->sorter);
}

/* ---- $project ---- */

struct projecting {
    struct stage s;
    const struct project *project;
    struct buf out;
};

static enum exec_status project_next(struct stage *s, const struct pull *p, const uint8_t **doc)
{
    struct projecting *k = OV_CONTAINER(s, struct projecting, s);
    const uint8_t *from;
    enum exec_status st = s->below->next(s->below, p, &from);
    if (st != EXEC_ROW)
        return st;
    if (!k->project) {
        *doc = from;
        return EXEC_ROW;
    }
    k->out.len = 0;
    if (project_apply(k->project, from, &k->out, p->err) != 0)
        return EXEC_ERROR;
    *doc = k->out.p;
    return EXEC_ROW;
}

static void project_close(struct stage *s)
{
    buf_free(&OV_CONTAINER(s, struct projecting, s)->out);
}

/* ---- opening ---- */

static struct stage *simple_open(struct arena *a, const struct stage_spec *spec,
                                 enum exec_status (*next)(struct stage *, const struct pull *, const uint8_t **))
{
    struct simple *k = arena_zalloc(a, sizeof(*k));
    k->spec = spec;
    k->s.next = next;
    return &k->s;
}

static struct stage *sort_open(struct arena *a, const struct stage_spec *spec)
{
    struct sorting *k = arena_zalloc(a, sizeof(*k));
    k->sorter = sorter_new(&spec->sort, 0);
    k->s.next = sort_next;
    k->s.close = sort_close;
    return &k->s;
}

static struct stage *project_open(struct arena *a, const struct stage_spec *spec)
{
    struct projecting *k = arena_zalloc(a, sizeof(*k));
    k->project = spec->project;
    buf_init(&k->out);
    k->s.next = project_next;
    k->s.close = project_close;
    return &k->s;
}

struct stage *stage_open(struct arena *a, const struct stage_spec *spec, struct stage *below)
{
    struct stage *s = NULL;
    switch (spec->kind) {
    case STAGE_MATCH:
        s = simple_open(a, spec, match_next);
        break;
    case STAGE_SKIP:
        s = simple_open(a, spec, skip_next);
        break;
    case STAGE_LIMIT:
        s = simple_open(a, spec, limit_next);
        break;
    case STAGE_SORT:
        s = sort_open(a, spec);
        break;
    case STAGE_PROJECT:
        s = project_open(a, spec);
        break;
    case STAGE_COUNT:
    case STAGE_GROUP:
        s = count_open(a, spec);
        break;
    case STAGE_COLL_STATS: /* the command has made its document, and cut it off */
        break;
    }
    OV_ASSERT(s);
    s->below = below;
    return s;
}
