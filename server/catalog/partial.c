/* The filters of partial indexes: which ones an index may have, and what they look at. */
#include "server/catalog/catalog_private.h"
#include "server/query/match/match.h"

enum { SHOWN_INDENT = 4 };

static bool wanted(const void *arg, const uint8_t *doc)
{
    return match_doc(arg, doc, NULL);
}

/* ---- the tree of a filter as messages show it: a node a line, children further to the right ---- */

static const char *name_of(enum match_op op)
{
    static const char *const names[] = {
        [MATCH_AND] = "$and",    [MATCH_OR] = "$or",        [MATCH_NOR] = "$nor",
        [MATCH_NOT] = "$not",    [MATCH_EQ] = "$eq",        [MATCH_LT] = "$lt",
        [MATCH_LTE] = "$lte",    [MATCH_GT] = "$gt",        [MATCH_GTE] = "$gte",
        [MATCH_IN] = "$in",      [MATCH_EXISTS] = "exists", [MATCH_TYPE] = "$type",
        [MATCH_SIZE] = "$size",  [MATCH_MOD] = "$mod",      [MATCH_ELEM_MATCH] = "$elemMatch",
        [MATCH_REGEX] = "regex", [MATCH_BITS] = "$bits",
    };
    return op < OV_LEN(names) && names[op] ? names[op] : "";
}

static void put(struct buf *b, const char *s)
{
    buf_append(b, s, strlen(s));
}

static void indent(struct buf *b, uint32_t level)
{
    for (uint32_t i = 0; i < level * SHOWN_INDENT; i++)
        put(b, " ");
}

static void show(struct arena *a, struct buf *b, const struct match *m, uint32_t level)
{
    bool negated = m->op == MATCH_EXISTS && !m->flag;
    if (negated) {
        indent(b, level++);
        put(b, "$not\n");
    }
    indent(b, level);
    if (m->path.text) {
        put(b, m->path.text);
        put(b, " ");
    }
    put(b, name_of(m->op));
    if (m->value.type != BSON_TYPE_EOD) {
        put(b, " ");
        put(b, bval_shell(a, m->value));
    }
    put(b, "\n");
    for (uint32_t i = 0; i < m->n_children && m->children; i++)
        show(a, b, m->children[i], level + 1);
}

static int unsupported(struct arena *a, const struct match *m, struct err *err)
{
    struct buf b;
    buf_init(&b);
    show(a, &b, m, 0);
    int rc = err_set(err, ERR_CANNOT_CREATE_INDEX, "Expression not supported in partial index: %.*s", (int)b.len, b.p);
    buf_free(&b);
    return rc;
}

/* ---- what is allowed ---- */

static int check(struct arena *a, const struct match *m, struct err *err)
{
    switch (m->op) {
    case MATCH_EXISTS:
        return m->flag ? 0 : unsupported(a, m, err);
    case MATCH_EQ:
    case MATCH_LT:
    case MATCH_LTE:
    case MATCH_GT:
    case MATCH_GTE:
    case MATCH_IN:
    case MATCH_TYPE:
    case MATCH_TRUE:
    case MATCH_FALSE:
        return 0;
    case MATCH_AND:
    case MATCH_OR:
        break;
    default:
        return unsupported(a, m, err);
    }
    for (uint32_t i = 0; i < m->n_children; i++) {
        int rc = check(a, m->children[i], err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static uint32_t count_leaves(const struct match *m)
{
    uint32_t n = m->n_children == 0;
    for (uint32_t i = 0; i < m->n_children; i++)
        n += count_leaves(m->children[i]);
    return n;
}

static void list_paths(const struct match *m, const char **paths, uint32_t *n)
{
    if (m->n_children == 0 && m->path.text)
        paths[(*n)++] = m->path.text;
    for (uint32_t i = 0; i < m->n_children; i++)
        list_paths(m->children[i], paths, n);
}

int catalog_index_filter(struct arena *a, struct index_def *def, struct err *err)
{
    struct match *m;
    int rc;
    if (!def->filter)
        return 0;
    if ((rc = match_parse(a, def->filter, &m, err)) != 0 || (rc = check(a, m, err)) != 0)
        return rc;
    struct index_partial *p = arena_zalloc(a, sizeof(*p));
    const char **paths = arena_alloc(a, count_leaves(m) * sizeof(*paths));
    if (!p || !paths)
        return err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "no memory left for the filter of index %s", def->name);
    p->wanted = wanted;
    p->arg = m;
    p->paths = paths;
    list_paths(m, paths, &p->n_paths);
    def->partial = p;
    return 0;
}
