/* Running a pipeline: the chain, the document that was taken back, the last projection. */
#include "server/query/stage/stage_private.h"

struct exec_stage {
    struct stage s;
    struct exec *x;
};
struct pipeline {
    struct exec_stage over_exec;
    struct exec *x; /* NULL: over documents that were there already */
    struct stage *bottom, *top;
    const struct project *last;
    struct buf taken_back;
    bool again, eof;
};

static enum exec_status exec_stage_next(struct stage *s, const struct pull *p, const uint8_t **doc)
{
    struct exec_row row;
    enum exec_status st = exec_next(OV_CONTAINER(s, struct exec_stage, s)->x, p->op, p->call, &row, p->err);
    *doc = st == EXEC_ROW ? row.doc : NULL;
    return st;
}

/* `bottom` and what stands above it. */
static void build(struct pipeline *p, struct arena *a, struct stage *bottom, const struct pipeline_spec *spec,
                  const struct project *last)
{
    uint32_t n = spec ? spec->n : 0;
    p->bottom = p->top = bottom;
    p->last = last;
    buf_init(&p->taken_back);
    if (n && !last && spec->stages[n - 1].kind == STAGE_PROJECT)
        p->last = spec->stages[--n].project;
    for (uint32_t i = 0; i < n; i++)
        p->top = stage_open(a, &spec->stages[i], p->top);
}

struct pipeline *pipeline_new(struct arena *a, struct exec *x, const struct pipeline_spec *spec,
                              const struct project *last)
{
    struct pipeline *p = arena_zalloc(a, sizeof(*p));
    p->x = p->over_exec.x = x;
    p->over_exec.s.next = exec_stage_next;
    build(p, a, &p->over_exec.s, spec, last);
    return p;
}

struct pipeline *pipeline_of_docs(struct arena *a, struct slice docs, const struct pipeline_spec *spec,
                                  const struct project *last)
{
    struct pipeline *p = arena_zalloc(a, sizeof(*p));
    build(p, a, docs_open(a, docs), spec, last);
    return p;
}

enum exec_status pipeline_next(struct pipeline *p, const struct pull *pull, const uint8_t **doc)
{
    if (OV_UNLIKELY(p->again)) {
        p->again = false;
        *doc = p->taken_back.p;
        return EXEC_ROW;
    }
    if (p->eof)
        return EXEC_EOF;
    enum exec_status s = p->top->next(p->top, pull, doc);
    p->eof = s == EXEC_EOF;
    return s;
}

int pipeline_emit(const struct pipeline *p, const uint8_t *doc, struct buf *out, struct err *err)
{
    if (p->last)
        return project_apply(p->last, doc, out, err);
    buf_append(out, doc, bdoc_len(doc));
    return 0;
}

void pipeline_unget(struct pipeline *p, const uint8_t *doc)
{
    if (doc != p->taken_back.p) {
        p->taken_back.len = 0;
        buf_append(&p->taken_back, doc, bdoc_len(doc));
    }
    p->again = true;
}

bool pipeline_at_end(const struct pipeline *p)
{
    if (p->again || p->eof)
        return !p->again;
    return p->top == p->bottom && (p->x ? exec_at_end(p->x) : docs_at_end(p->bottom));
}

void pipeline_suspend(struct pipeline *p)
{
    if (p->x)
        exec_suspend(p->x);
}

const struct exec *pipeline_exec(const struct pipeline *p)
{
    return p->x;
}

void pipeline_close(struct pipeline *p)
{
    if (!p)
        return;
    for (struct stage *s = p->top; s; s = s->below)
        if (s->close)
            s->close(s);
    exec_close(p->x);
    buf_free(&p->taken_back);
}
