/* Documents that are in memory already, as the source of a pipeline: what the catalog or the server itself tells. */
#include "server/query/stage/stage_private.h"

struct docs {
    struct stage s;
    const uint8_t *p, *end;
};

static enum exec_status docs_next(struct stage *s, const struct pull *p, const uint8_t **doc)
{
    struct docs *d = OV_CONTAINER(s, struct docs, s);
    if (d->p == d->end)
        return EXEC_EOF;
    *doc = d->p;
    d->p += bdoc_len(d->p);
    return EXEC_ROW;
}

struct stage *docs_open(struct arena *a, struct slice docs)
{
    struct docs *d = arena_zalloc(a, sizeof(*d));
    d->s.next = docs_next;
    d->p = docs.p;
    d->end = d->p + docs.n;
    return &d->s;
}

bool docs_at_end(const struct stage *s)
{
    const struct docs *d = OV_CONTAINER(s, struct docs, s);
    return d->p == d->end;
}
