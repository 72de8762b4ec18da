/* Projection specifications. A path is put into the tree first (where it can collide), then it decides, or must agree with, the kind: inclusion or
 * exclusion; _id goes with both. What computes (values, expressions) is refused by name, once all else is right. */
#include "server/query/project/parse_private.h"

int project_no_memory(struct err *err)
{
    return err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "The projection needs more memory than the operation may use");
}

static int check_names(struct err *err, const struct bpath *path)
{
    for (uint32_t i = 0; i < path->n_parts; i++)
        if (path->parts[i].s[0] == '$')
            return err_set(err, 16410,
                           "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    return 0;
}

int project_add(struct parse *p, struct node *at, const char *text, struct node **leaf)
{
    struct bpath path;
    int rc = bpath_parse(p->a, text, &path, p->err);
    if (rc == 0)
        rc = check_names(p->err, &path);
    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < path.n_parts; i++) {
        const struct bpath_part *part = &path.parts[i];
        bool last = i + 1 == path.n_parts;
        struct node *child = node_find(at, part->s, part->n);
        if (child && last)
            return err_set(p->err, 31250, "Path collision at %s", path.text);
        if (child && child->n_children == 0)
            return err_set(p->err, 31249, "Path collision at %s remaining portion %s", path.text, path.parts[1].s);
        if (!child && !(child = node_add(p->a, at, part->s, part->n)))
            return project_no_memory(p->err);
        at = child;
    }
    *leaf = at;
    return 0;
}

int project_agree(struct parse *p, enum kind kind, const char *name)
{
    if (p->kind != KIND_OPEN && p->kind != kind)
        return kind == KIND_INCLUSION
                   ? err_set(p->err, 31253, "Cannot do inclusion on field %s in exclusion projection", name)
                   : err_set(p->err, 31254, "Cannot do exclusion on field %s in inclusion projection", name);
    p->kind = kind;
    return 0;
}

/* Is the path one that ends in ".$"? Inside of a path there is none. */
static int check_positional(struct parse *p, const struct belem *e, bool *positional)
{
    *positional = e->name_n > 2 && memcmp(e->name + e->name_n - 2, ".$", 2) == 0;
    if (strstr(e->name, ".$."))
        return err_set(p->err, 31394,
                       "As of 4.4, it's illegal to specify positional operator in the middle of a path."
                       "Positional projection may only be used at the end, for example: a.b.$. If the query "
                       "previously used a form like a.b.$.d, remove the parts following the '$' and the results "
                       "will be equivalent.");
    if (*positional && !p->find)
        return err_set(p->err, 31324, "Cannot use positional projection in aggregation projection");
    return 0;
}

static int parse_flag(struct parse *p, struct node *at, const struct belem *e)
{
    bool in = bval_truthy(e->v), whole_id = at == &p->out->root && strcmp(e->name, "_id") == 0;
    struct node *leaf;
    int rc = project_add(p, at, e->name, &leaf);
    if (rc != 0)
        return rc;
    if (!whole_id)
        return project_agree(p, in ? KIND_INCLUSION : KIND_EXCLUSION, e->name);
    p->id_in = in;
    p->id_out = !in;
    return 0;
}

static int parse_fields(struct parse *p, struct node *at, const uint8_t *spec, int depth);

static int parse_object(struct parse *p, struct node *at, const struct belem *e, int depth)
{
    struct biter it;
    struct belem first, second;
    struct bpath path;
    biter_init(&it, e->v.p);
    if (!biter_next(&it, &first))
        return err_set(p->err, 51270, "An empty sub-projection is not a valid value. Found empty object at path");
    int rc = bpath_parse(p->a, e->name, &path, p->err);
    if (rc == 0)
        rc = check_names(p->err, &path);
    if (rc != 0)
        return rc;
    if (first.name[0] == '$' && !biter_next(&it, &second))
        return project_parse_operator(p, at, e, &first);
    if (depth > BSON_DEPTH_MAX)
        return err_set(p->err, ERR_OVERFLOW, "FieldPath is too long");
    for (uint32_t i = 0; i < path.n_parts; i++) { /* the way to it, shared with other fields */
        struct node *child = node_find(at, path.parts[i].s, path.parts[i].n);
        if (child && child->n_children == 0)
            return err_set(p->err, 31250, "Path collision at %s", e->name);
        if (!child && !(child = node_add(p->a, at, path.parts[i].s, path.parts[i].n)))
            return project_no_memory(p->err);
        at = child;
    }
    return parse_fields(p, at, e->v.p, depth + 1);
}

static int parse_field(struct parse *p, struct node *at, const struct belem *e, int depth)
{
    bool positional, flag = bval_is_number(e->v) || e->v.type == BSON_TYPE_BOOL;
    int rc = check_positional(p, e, &positional);
    if (rc != 0)
        return rc;
    if (positional && e->v.type == BSON_TYPE_DOCUMENT)
        return err_set(p->err, 31271, "positional projection cannot be used with an expression or sub object");
    if (positional && !flag)
        return err_set(p->err, 31308, "positional projection cannot be used with a literal");
    if (positional)
        return project_parse_positional(p, at, e);
    if (flag)
        return parse_flag(p, at, e);
    return e->v.type == BSON_TYPE_DOCUMENT ? parse_object(p, at, e, depth) : project_parse_literal(p, at, e);
}

static int parse_fields(struct parse *p, struct node *at, const uint8_t *spec, int depth)
{
    struct biter it;
    struct belem e;
    biter_init(&it, spec);
    while (biter_next(&it, &e)) {
        if (depth == 0 && strncmp(e.name, "_id", 3) == 0 && (e.name[3] == 0 || e.name[3] == '.'))
            p->id_given = true;
        int rc = parse_field(p, at, &e, depth);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* No field has told whether this is an inclusion. $slice alone keeps the other fields, $elemMatch alone doesn't. */
static enum kind default_kind(const struct parse *p)
{
    if (p->has_slice || (p->has_meta && !p->has_elem && p->find))
        return p->id_in ? KIND_INCLUSION : KIND_EXCLUSION;
    return p->has_elem || p->has_meta || !p->id_out ? KIND_INCLUSION : KIND_EXCLUSION;
}

/* _id: an inclusion has it unless told otherwise, an exclusion unless it excludes it. */
static int settle_id(struct parse *p)
{
    struct node *root = &p->out->root;
    if (p->kind == KIND_OPEN)
        p->kind = default_kind(p);
    p->out->inclusion = p->kind == KIND_INCLUSION;
    if (p->out->inclusion ? p->id_out : p->id_in)
        node_remove(root, "_id", 3);
    else if (p->out->inclusion && !p->id_given && !node_add(p->a, root, "_id", 3))
        return project_no_memory(p->err);
    return 0;
}

static int parse(struct arena *a, const uint8_t *spec, const struct match *filter, struct project **out,
                 struct err *err)
{
    *out = NULL;
    if (bdoc_empty(spec))
        return 0;
    struct project *project = arena_zalloc(a, sizeof(*project));
    if (!project)
        return project_no_memory(err);
    struct parse p = {.a = a, .err = err, .out = project, .find = filter != NULL};
    err_init(&p.later, a);
    project->filter = filter;
    int rc = parse_fields(&p, &project->root, spec, 0);
    if (rc == 0)
        rc = settle_id(&p);
    if (rc == 0 && p.later.code != 0)
        rc = err_set(err, p.later.code, "%s", p.later.msg);
    if (rc != 0)
        return rc;
    project->elems = p.has_elem;
    project->positional = p.has_positional;
    *out = project;
    return 0;
}

int project_parse(struct arena *a, const uint8_t *spec, struct project **out, struct err *err)
{
    return parse(a, spec, NULL, out, err);
}

int project_parse_find(struct arena *a, const uint8_t *spec, const struct match *filter, struct project **out,
                       struct err *err)
{
    return parse(a, spec, filter, out, err);
}
