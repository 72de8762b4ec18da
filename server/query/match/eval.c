/* Trees on documents and values. Inner nodes recurse (the parser bounds their depth), leaves walk their path and ask the
 * operator's test (table.c) about each value reached. Nothing is allocated, nothing can fail.
 *
 * The positional index is that of the last leaf that matched inside an array, under AND alone: what $or, $nor and $not
 * found says nothing about one element. (An $or that stands for one $in, flag set, does record.) */
#include "server/query/match/match_private.h"

struct walk {
    const struct match *m;
    match_test_fn test;
    struct match_result *r;
};

/* The order in which the real server asks the leaves of an AND: the last to match inside an array tells the positional index. */
static int leaf_rank(const struct match *m)
{
    static const enum match_op order[] = {MATCH_ELEM_MATCH, MATCH_SIZE, MATCH_EQ,    MATCH_LTE, MATCH_LT,
                                          MATCH_GT,         MATCH_GTE,  MATCH_REGEX, MATCH_MOD, MATCH_EXISTS,
                                          MATCH_IN,         MATCH_BITS, MATCH_TYPE};
    for (int i = 0; i < (int)OV_LEN(order); i++)
        if (order[i] == m->op)
            return i;
    return (int)OV_LEN(order);
}

static void record(struct match_result *r, const struct match *m, int32_t index)
{
    if (r->leaf && r->leaf != m) {
        int c = leaf_rank(r->leaf) - leaf_rank(m);
        if (c == 0 && m->path.text && r->leaf->path.text)
            c = strcmp(r->leaf->path.text, m->path.text);
        if (c > 0)
            return;
    }
    r->leaf = m;
    r->array_index = index;
}

static bool try_value(void *arg, struct bval v, bool in_array, int32_t index)
{
    const struct walk *w = arg;
    struct match_result inner = {.array_index = -1};
    if (!w->test(w->m, v, w->r ? &inner : NULL))
        return false;
    if (w->r && (index >= 0 || inner.array_index >= 0))
        record(w->r, w->m, index >= 0 ? index : inner.array_index);
    return true;
}

/* An array at the end of a path: each element, then the whole. */
static bool try_array(const struct match *m, match_test_fn test, struct bval arr, struct match_result *r)
{
    struct biter it;
    struct belem e;
    biter_init(&it, bval_doc(arr));
    for (int32_t i = 0; biter_next(&it, &e); i++) {
        if (test(m, e.v, NULL)) {
            if (r)
                record(r, m, i);
            return true;
        }
    }
    return test(m, arr, NULL); /* the whole array: no element of it */
}

static inline bool leaf_on_value(const struct match *m, struct bval v, bool expand, struct match_result *r)
{
    const struct match_test *t = &match_tests[m->op];
    if (expand && t->expand && v.type == BSON_TYPE_ARRAY)
        return try_array(m, t->test, v, r);
    struct match_result inner = {.array_index = -1};
    if (!t->test(m, v, r ? &inner : NULL))
        return false;
    if (r && inner.array_index >= 0)
        record(r, m, inner.array_index);
    return true;
}

static bool leaf_on_doc(const struct match *m, const uint8_t *doc, struct match_result *r)
{
    if (OV_LIKELY(m->path.n_parts == 1)) /* no walk for the everyday case: a field of the document itself */
        return leaf_on_value(m, bdoc_get(doc, m->path.text), true, r);
    struct walk w = {m, match_tests[m->op].test, r};
    return bpath_walk(&m->path, doc, match_tests[m->op].expand, try_value, &w);
}

static bool eval_doc(const struct match *m, const uint8_t *doc, struct match_result *r)
{
    switch (m->op) {
    case MATCH_AND:
        for (uint32_t i = 0; i < m->n_children; i++)
            if (!eval_doc(m->children[i], doc, r))
                return false;
        return true;
    case MATCH_OR:
        for (uint32_t i = 0; i < m->n_children; i++)
            if (eval_doc(m->children[i], doc, m->flag ? r : NULL))
                return true;
        return false;
    case MATCH_NOR:
    case MATCH_NOT:
        for (uint32_t i = 0; i < m->n_children; i++)
            if (eval_doc(m->children[i], doc, NULL))
                return false;
        return true;
    case MATCH_TRUE:
        return true;
    case MATCH_FALSE:
        return false;
    case MATCH_SCHEMA:
        return match_test_schema(m, doc);
    case MATCH_EXISTS:
        if (!m->flag)
            return !leaf_on_doc(m, doc, NULL);
        return leaf_on_doc(m, doc, r);
    default:
        return leaf_on_doc(m, doc, r);
    }
}

bool match_doc(const struct match *m, const uint8_t *doc, struct match_result *r)
{
    if (r)
        *r = (struct match_result){.array_index = -1};
    if (eval_doc(m, doc, r))
        return true;
    if (r)
        r->array_index = -1;
    return false;
}

bool match_bare(const struct match *m, struct bval v, bool expand)
{
    switch (m->op) {
    case MATCH_AND:
        for (uint32_t i = 0; i < m->n_children; i++)
            if (!match_bare(m->children[i], v, expand))
                return false;
        return true;
    case MATCH_OR:
        for (uint32_t i = 0; i < m->n_children; i++)
            if (match_bare(m->children[i], v, expand))
                return true;
        return false;
    case MATCH_NOR:
    case MATCH_NOT:
        for (uint32_t i = 0; i < m->n_children; i++)
            if (match_bare(m->children[i], v, expand))
                return false;
        return true;
    case MATCH_TRUE:
        return true;
    case MATCH_FALSE:
        return false;
    case MATCH_SCHEMA: /* of a document */
        return v.type == BSON_TYPE_DOCUMENT && match_test_schema(m, bval_doc(v));
    case MATCH_EXISTS:
        return leaf_on_value(m, v, expand, NULL) == m->flag;
    default:
        return leaf_on_value(m, v, expand, NULL);
    }
}

bool match_value(const struct match *m, struct bval v)
{
    if (m->op == MATCH_VALUE_IS)
        return bval_eq(m->value, v);
    if (m->op == MATCH_VALUE_OBJECT)
        return v.type == BSON_TYPE_DOCUMENT && eval_doc(m->children[0], bval_doc(v), NULL);
    return match_bare(m, v, true);
}
