/* $size, $all and $elemMatch. $size and $elemMatch are about the array that the path leads to, never about an array in it. */
#include "server/query/match/match_private.h"

/* {$elemMatch: {$gt: 1}}: the element is the value; {$elemMatch: {b: 1}}: the element is a document (or an array, its indexes
 * the names). */
enum { ELEM_OBJECT, ELEM_VALUE };

int match_parse_size(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                     struct match_list *out)
{
    int64_t n;
    int rc = match_operand_count(ps, e, ERR_BAD_VALUE, "Failed to parse $size. ", &n);
    if (rc != 0)
        return rc;
    if (n > INT32_MAX)
        return err_set(ps->err, ERR_BAD_VALUE, "Failed to parse $size. Cannot represent %s in an int",
                       match_show(ps, e));
    struct match *m = match_leaf(ps, MATCH_SIZE, path);
    if (m)
        m->n_values = (uint32_t)n;
    return match_push(ps, out, m);
}

bool match_test_size(const struct match *m, struct bval v, struct match_result *r)
{
    if (v.type != BSON_TYPE_ARRAY)
        return false;
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    biter_init(&it, bval_doc(v));
    while (n <= m->n_values && biter_next(&it, &e))
        n++;
    return n == m->n_values;
}

static bool names_tree(const char *name)
{
    return !strcmp(name, "$and") || !strcmp(name, "$or") || !strcmp(name, "$nor") || !strcmp(name, "$where") ||
           !strcmp(name, "$jsonSchema");
}

int match_parse_elem(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                     struct match_list *out)
{
    struct match_list list = {0};
    struct match *child;
    struct biter it;
    struct belem first;
    int rc;
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(ps->err, ERR_BAD_VALUE, "$elemMatch needs an Object");
    biter_init(&it, bval_doc(e->v));
    bool value = match_is_operators(e->v, true) && biter_next(&it, &first) && !names_tree(first.name);
    if (value) {
        rc = match_parse_operators(ps, NULL, bval_doc(e->v), &list);
        child = rc ? NULL : match_and(ps, &list);
    } else {
        rc = match_parse_filter(ps, bval_doc(e->v), &child);
    }
    if (rc != 0 || !child)
        return ps->err->code;
    struct match *m = match_leaf(ps, MATCH_ELEM_MATCH, path);
    struct match_list one = {0};
    if (!m || match_push(ps, &one, child) != 0)
        return ps->err->code;
    m->children = one.p;
    m->n_children = 1;
    m->flag = value;
    return match_push(ps, out, m);
}

bool match_test_elem(const struct match *m, struct bval v, struct match_result *r)
{
    if (v.type != BSON_TYPE_ARRAY)
        return false;
    struct biter it;
    struct belem e;
    biter_init(&it, bval_doc(v));
    for (int32_t i = 0; biter_next(&it, &e); i++) {
        bool hit = m->flag == ELEM_VALUE ? match_bare(m->children[0], e.v, false)
                                         : match_is_object(e.v) && match_doc(m->children[0], bval_doc(e.v), NULL);
        if (hit) {
            if (r)
                r->array_index = i;
            return true;
        }
    }
    return false;
}

/* The operator that a member of $all begins with, if it is a document that begins with one. */
static const struct match_operator *begins_with(struct bval v, struct belem *first)
{
    struct biter it;
    if (v.type != BSON_TYPE_DOCUMENT)
        return NULL;
    biter_init(&it, bval_doc(v));
    return biter_next(&it, first) ? match_operator_find(first->name) : NULL;
}

/* $all is an AND: of equalities (and regexes), or of $elemMatch alone. */
int match_parse_all(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                    struct match_list *out)
{
    struct match_list list = {0};
    struct biter it;
    struct belem c, elem;
    bool elems = false;
    int rc = 0;
    if (e->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_BAD_VALUE, "$all needs an array");
    if (bdoc_empty(bval_doc(e->v)))
        return match_push(ps, out, match_node(ps, MATCH_FALSE));
    biter_init(&it, bval_doc(e->v));
    for (bool first = true; rc == 0 && biter_next(&it, &c); first = false) {
        const struct match_operator *op = begins_with(c.v, &elem);
        bool is_elem = op && op->parse == match_parse_elem;
        if (first)
            elems = is_elem;
        if (elems && !is_elem)
            rc = err_set(ps->err, ERR_BAD_VALUE, "$all/$elemMatch has to be consistent");
        else if (elems)
            rc = match_parse_elem(ps, path, &elem, NULL, &list);
        else if (op)
            rc = err_set(ps->err, ERR_BAD_VALUE, "no $ expressions in $all");
        else
            rc = match_parse_implicit(ps, path, c.v, &list);
    }
    return rc ? rc : match_push(ps, out, match_and(ps, &list));
}
