/* $in and $nin: the values sorted and unique, found by binary search. Regexes in the list become an OR with the values (its
 * flag set: for the positional operator it is one predicate). A list of one value is a plain equality. */
#include <stdlib.h>

#include "server/query/match/match_private.h"

static int by_value(const void *a, const void *b)
{
    return bval_cmp(*(const struct bval *)a, *(const struct bval *)b);
}

static void sort_unique(struct match *m)
{
    uint32_t n = 0;
    qsort(m->values, m->n_values, sizeof *m->values, by_value);
    for (uint32_t i = 0; i < m->n_values; i++)
        if (n == 0 || bval_cmp(m->values[n - 1], m->values[i]) != 0)
            m->values[n++] = m->values[i];
    m->n_values = n;
}

/* The plain values of the list as one node; *out stays NULL if there are none. */
static int parse_values(struct parser *ps, const char *path, struct bval arr, uint32_t n, struct match **out)
{
    struct biter it;
    struct belem e;
    *out = NULL;
    if (n == 0)
        return 0;
    struct match *m = match_leaf(ps, MATCH_IN, path);
    if (!m)
        return ps->err->code;
    if (!(m->values = arena_alloc(ps->a, (size_t)n * sizeof *m->values)) || !(arr.p = arena_dup(ps->a, arr.p, arr.n)))
        return match_full(ps);
    biter_init(&it, bval_doc(arr));
    while (biter_next(&it, &e))
        if (e.v.type != BSON_TYPE_REGEX)
            m->values[m->n_values++] = e.v;
    sort_unique(m);
    if (m->n_values == 1) {
        m->op = MATCH_EQ;
        m->value = m->values[0];
    }
    *out = m;
    return 0;
}

static int parse_list(struct parser *ps, const char *path, const struct belem *list, struct match **out)
{
    struct match_list parts = {0};
    struct match *m;
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    int rc;
    *out = NULL;
    if (list->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_BAD_VALUE, "%s needs an array", list->name);
    biter_init(&it, bval_doc(list->v));
    while (biter_next(&it, &e)) {
        if (match_is_operators(e.v, false))
            return err_set(ps->err, ERR_BAD_VALUE, "cannot nest $ under $in");
        if (e.v.type == BSON_TYPE_UNDEFINED)
            return err_set(ps->err, ERR_BAD_VALUE, "InMatchExpression equality cannot be undefined");
        if (e.v.type == BSON_TYPE_REGEX) {
            if ((rc = match_regex_literal(ps, path, e.v, &parts)) != 0)
                return rc;
        } else {
            n++;
        }
    }
    if ((rc = parse_values(ps, path, list->v, n, &m)) != 0)
        return rc;
    if (m && (rc = match_push(ps, &parts, m)) != 0)
        return rc;
    if (!(*out = match_or(ps, &parts)))
        return ps->err->code;
    if ((*out)->op == MATCH_OR)
        (*out)->flag = true;
    return 0;
}

int match_in_of(struct parser *ps, const struct match_list *l, struct match **out)
{
    *out = NULL;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->p[i]->op != MATCH_EQ || !l->p[i]->path.text || strcmp(l->p[i]->path.text, l->p[0]->path.text) != 0)
            return 0;
    struct match *m = match_node(ps, MATCH_IN);
    if (!m)
        return ps->err->code;
    m->path = l->p[0]->path;
    if (!(m->values = arena_alloc(ps->a, (size_t)l->n * sizeof *m->values)))
        return match_full(ps);
    for (uint32_t i = 0; i < l->n; i++)
        m->values[m->n_values++] = l->p[i]->value;
    sort_unique(m);
    if (m->n_values > 1)
        *out = m;
    return 0;
}

int match_parse_in(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                   struct match_list *out)
{
    struct match *m;
    int rc = parse_list(ps, path, e, &m);
    return rc ? rc : match_push(ps, out, m);
}

int match_parse_nin(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                    struct match_list *out)
{
    struct match *m;
    int rc = parse_list(ps, path, e, &m);
    return rc ? rc : match_push(ps, out, match_not(ps, m));
}

bool match_test_in(const struct match *m, struct bval v, struct match_result *r)
{
    if (v.type == BSON_TYPE_UNDEFINED)
        return false; /* never an operand, and not null's equal */
    if (v.type == BSON_TYPE_EOD)
        v = BVAL_NULL; /* null stands for a missing field too */
    uint32_t lo = 0, hi = m->n_values;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = bval_cmp(v, m->values[mid]);
        if (c == 0)
            return true;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return false;
}
