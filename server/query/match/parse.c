/* Filter documents to trees: the walk over a filter's fields and over one field's operators, nodes, and how lists of
 * children become one node. What an operator's operand may be is its own file's business (table.c names them).
 * Everything lives in the caller's arena; the first error ends the parse. */
#include "server/query/match/match_private.h"

int match_full(struct parser *ps)
{
    return err_set(ps->err, ERR_EXCEEDED_MEMORY_LIMIT, "the filter needs more memory than one operation may use");
}

struct match *match_node(struct parser *ps, enum match_op op)
{
    struct match *m = arena_zalloc(ps->a, sizeof *m);
    if (m)
        m->op = op;
    else
        match_full(ps);
    return m;
}

/* A numeric part is an index or a name, at each array on the way: a walk may try two ways for each. */
static int check_path(struct parser *ps, const struct bpath *path)
{
    int numeric = 0;
    for (uint32_t i = 0; i < path->n_parts; i++)
        numeric += path->parts[i].index >= 0;
    if (numeric > MATCH_NUMERIC_MAX)
        return err_set(ps->err, ERR_BAD_VALUE, "the path '%.*s' has more than %d numeric parts", MATCH_SHOW_MAX,
                       path->text, MATCH_NUMERIC_MAX);
    return 0;
}

struct match *match_leaf(struct parser *ps, enum match_op op, const char *path)
{
    struct match *m = match_node(ps, op);
    if (m && path && (bpath_parse_any(ps->a, path, &m->path, ps->err) != 0 || check_path(ps, &m->path) != 0))
        return NULL;
    return m;
}

int match_copy_value(struct parser *ps, struct bval v, struct bval *out)
{
    *out = v;
    if (v.n && !(out->p = arena_dup(ps->a, v.p, v.n)))
        return match_full(ps);
    return 0;
}

struct match *match_leaf_value(struct parser *ps, enum match_op op, const char *path, struct bval v)
{
    struct match *m = match_leaf(ps, op, path);
    if (m && match_copy_value(ps, v, &m->value) != 0)
        return NULL;
    return m;
}

int match_push(struct parser *ps, struct match_list *l, struct match *m)
{
    if (!m)
        return ps->err->code;
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 4;
        struct match **p = arena_alloc(ps->a, cap * sizeof *p);
        if (!p)
            return match_full(ps);
        if (l->n)
            memcpy(p, l->p, l->n * sizeof *p);
        l->p = p;
        l->cap = cap;
    }
    l->p[l->n++] = m;
    return 0;
}

static struct match *inner(struct parser *ps, enum match_op op, const struct match_list *l)
{
    struct match *m = match_node(ps, op);
    if (m) {
        m->children = l->p;
        m->n_children = l->n;
    }
    return m;
}

/* AND and OR are mirror images: `neutral` children fall out, one `absorbing` child decides. */
static struct match *fold(struct parser *ps, enum match_op op, const struct match_list *l)
{
    enum match_op neutral = op == MATCH_AND ? MATCH_TRUE : MATCH_FALSE;
    enum match_op absorbing = op == MATCH_AND ? MATCH_FALSE : MATCH_TRUE;
    struct match_list flat = {0};
    for (uint32_t i = 0; i < l->n; i++) {
        struct match *c = l->p[i];
        bool merge = c->op == op && !c->flag && c->n_children <= MATCH_MERGE_MAX;
        if (c->op == absorbing)
            return c;
        for (uint32_t k = 0; merge && k < c->n_children; k++)
            if (match_push(ps, &flat, c->children[k]) != 0)
                return NULL;
        if (!merge && c->op != neutral && match_push(ps, &flat, c) != 0)
            return NULL;
    }
    if (flat.n == 0)
        return match_node(ps, neutral);
    if (flat.n == 1)
        return flat.p[0];
    struct match *in = NULL;
    if (op == MATCH_OR && match_in_of(ps, &flat, &in) != 0)
        return NULL;
    return in ? in : inner(ps, op, &flat);
}

struct match *match_and(struct parser *ps, const struct match_list *l)
{
    return fold(ps, MATCH_AND, l);
}

struct match *match_or(struct parser *ps, const struct match_list *l)
{
    return fold(ps, MATCH_OR, l);
}

struct match *match_not(struct parser *ps, struct match *child)
{
    struct match_list one = {0};
    if (!child)
        return NULL;
    if (child->op == MATCH_TRUE || child->op == MATCH_FALSE)
        return match_node(ps, child->op == MATCH_TRUE ? MATCH_FALSE : MATCH_TRUE);
    return match_push(ps, &one, child) == 0 ? inner(ps, MATCH_NOT, &one) : NULL;
}

bool match_is_operators(struct bval v, bool incomplete)
{
    if (v.type != BSON_TYPE_DOCUMENT)
        return false;
    struct biter it;
    struct belem e;
    biter_init(&it, bval_doc(v));
    if (!biter_next(&it, &e) || e.name[0] != '$')
        return false;
    bool ref = false, id = false, db = false;
    do {
        ref |= strcmp(e.name, "$ref") == 0;
        id |= strcmp(e.name, "$id") == 0;
        db |= strcmp(e.name, "$db") == 0;
    } while (biter_next(&it, &e));
    return incomplete ? !ref && !id && !db : !ref || !id;
}

const char *match_show(struct parser *ps, const struct belem *e)
{
    struct buf b;
    buf_init(&b);
    bval_to_shell(&b, e->v, MATCH_SHOW_MAX);
    const char *s = arena_printf(ps->a, "%.*s: %.*s", MATCH_SHOW_MAX, e->name, (int)b.len, (const char *)b.p);
    buf_free(&b);
    return s ? s : "";
}

int match_operand_i64(struct parser *ps, const struct belem *e, int code, const char *prefix, int64_t *out)
{
    *out = 0;
    if (!bval_is_number(e->v))
        return err_set(ps->err, code, "%sExpected a number in: %s", prefix, match_show(ps, e));
    if (bval_to_i64(e->v, true, out))
        return 0;
    double d = bval_to_f64(e->v);
    if (d != d && e->v.type == BSON_TYPE_DOUBLE)
        return err_set(ps->err, code, "%sExpected an integer, but found NaN in: %s", prefix, match_show(ps, e));
    if (e->v.type != BSON_TYPE_DOUBLE || d >= 9223372036854775808.0 || d < -9223372036854775808.0)
        return err_set(ps->err, code, "%sCannot represent as a 64-bit integer: %s", prefix, match_show(ps, e));
    return err_set(ps->err, code, "%sExpected an integer: %s", prefix, match_show(ps, e));
}

int match_operand_count(struct parser *ps, const struct belem *e, int code, const char *prefix, int64_t *out)
{
    int rc = match_operand_i64(ps, e, code, prefix, out);
    if (rc == 0 && *out < 0)
        rc = err_set(ps->err, code, "%sExpected a non-negative number in: %s", prefix, match_show(ps, e));
    return rc;
}

int match_parse_operators(struct parser *ps, const char *path, const uint8_t *sub, struct match_list *out)
{
    struct biter it;
    struct belem e;
    bool regex = false;
    int rc = 0;
    if (++ps->depth > MATCH_DEPTH_MAX)
        return err_set(ps->err, ERR_BAD_VALUE, "exceeded maximum query tree depth of %d", MATCH_DEPTH_MAX);
    biter_init(&it, sub);
    while (rc == 0 && biter_next(&it, &e)) {
        const struct match_operator *op = match_operator_find(e.name);
        if (op && op->parse == match_parse_regex) { /* reads all of `sub`: once, however often its names are there */
            if (regex)
                continue;
            regex = true;
        }
        rc = op ? op->parse(ps, path, &e, sub, out)
                : err_set(ps->err, ERR_BAD_VALUE, "unknown operator: %.*s", MATCH_SHOW_MAX, e.name);
    }
    ps->depth--;
    return rc;
}

int match_parse_implicit(struct parser *ps, const char *path, struct bval v, struct match_list *out)
{
    if (v.type == BSON_TYPE_REGEX)
        return match_regex_literal(ps, path, v, out);
    if (v.type == BSON_TYPE_UNDEFINED)
        return err_set(ps->err, ERR_BAD_VALUE, "cannot compare to undefined");
    return match_push(ps, out, match_leaf_value(ps, MATCH_EQ, path, v));
}

static int parse_field(struct parser *ps, const struct belem *e, struct match_list *out)
{
    if (e->name[0] == '$') {
        const struct match_operator *op = match_top_find(e->name);
        return op ? op->parse(ps, NULL, e, NULL, out)
                  : err_set(ps->err, ERR_BAD_VALUE,
                            "unknown top level operator: %.*s. If you have a field name that starts with a '$' symbol, "
                            "consider using $getField or $setField.",
                            MATCH_SHOW_MAX, e->name);
    }
    if (match_is_operators(e->v, false))
        return match_parse_operators(ps, e->name, bval_doc(e->v), out);
    return match_parse_implicit(ps, e->name, e->v, out);
}

int match_parse_filter(struct parser *ps, const uint8_t *filter, struct match **out)
{
    struct match_list list = {0};
    struct biter it;
    struct belem e;
    int rc = 0;
    *out = NULL;
    if (++ps->depth > MATCH_DEPTH_MAX)
        return err_set(ps->err, ERR_BAD_VALUE, "exceeded maximum query tree depth of %d", MATCH_DEPTH_MAX);
    biter_init(&it, filter);
    while (rc == 0 && biter_next(&it, &e))
        rc = parse_field(ps, &e, &list);
    ps->depth--;
    if (rc == 0 && !(*out = match_and(ps, &list)))
        rc = ps->err->code;
    return rc;
}

int match_parse(struct arena *a, const uint8_t *filter, struct match **out, struct err *err)
{
    struct parser ps = {.a = a, .err = err};
    return match_parse_filter(&ps, filter, out);
}

int match_parse_plain(struct arena *a, const uint8_t *filter, struct match **out, struct err *err)
{
    struct parser ps = {.a = a, .err = err, .plain = true};
    return match_parse_filter(&ps, filter, out);
}

/* What $pull and friends say about an array element: operators and regexes are tried as on a field that holds the element
 * (so on the elements of an array in the array), a document is a filter for elements that are documents, all else must be
 * equal. */
int match_parse_value(struct arena *a, struct bval cond, struct match **out, struct err *err)
{
    struct parser ps = {.a = a, .err = err};
    struct match_list list = {0};
    struct match *m;
    int rc;
    *out = NULL;
    if (match_is_operators(cond, false) || cond.type == BSON_TYPE_REGEX) {
        rc = cond.type == BSON_TYPE_REGEX ? match_regex_literal(&ps, NULL, cond, &list)
                                          : match_parse_operators(&ps, NULL, bval_doc(cond), &list);
        if (rc != 0)
            return rc;
        *out = match_and(&ps, &list);
        return *out ? 0 : err->code;
    }
    if (cond.type != BSON_TYPE_DOCUMENT) {
        *out = match_leaf_value(&ps, MATCH_VALUE_IS, NULL, cond);
        return *out ? 0 : err->code;
    }
    if ((rc = match_parse_filter(&ps, bval_doc(cond), &m)) != 0)
        return rc;
    if ((rc = match_push(&ps, &list, m)) != 0)
        return rc;
    *out = inner(&ps, MATCH_VALUE_OBJECT, &list);
    return *out ? 0 : err->code;
}
