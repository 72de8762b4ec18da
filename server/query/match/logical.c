/* $and $or $nor in place of a field, $not under one; and the names that stand in place of a field but are no tree: $comment,
 * the constants, the parts of a DBRef, and what this server does not have. */
#include "server/query/match/match_private.h"

int match_parse_tree(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                     struct match_list *out)
{
    struct match_list list = {0};
    struct biter it;
    struct belem c;
    int rc;
    if (e->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_BAD_VALUE, "%s argument must be an array", e->name);
    if (bdoc_empty(bval_doc(e->v)))
        return err_set(ps->err, ERR_BAD_VALUE, "$and/$or/$nor must be a nonempty array");
    biter_init(&it, bval_doc(e->v));
    while (biter_next(&it, &c)) {
        struct match *m;
        if (c.v.type != BSON_TYPE_DOCUMENT)
            return err_set(ps->err, ERR_BAD_VALUE, "$or/$and/$nor entries need to be full objects");
        if ((rc = match_parse_filter(ps, bval_doc(c.v), &m)) != 0 || (rc = match_push(ps, &list, m)) != 0)
            return rc;
    }
    if (e->name[1] == 'a')
        return match_push(ps, out, match_and(ps, &list));
    struct match *any = match_or(ps, &list);
    if (e->name[1] == 'o' || !any)
        return match_push(ps, out, any);
    if (any->op != MATCH_OR || any->flag)
        return match_push(ps, out, match_not(ps, any));
    struct match *nor = match_node(ps, MATCH_NOR);
    if (nor) {
        nor->children = any->children;
        nor->n_children = any->n_children;
    }
    return match_push(ps, out, nor);
}

int match_parse_not(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                    struct match_list *out)
{
    struct match_list list = {0};
    int rc;
    if (e->v.type == BSON_TYPE_REGEX) {
        rc = match_regex_literal(ps, path, e->v, &list);
    } else {
        if (e->v.type != BSON_TYPE_DOCUMENT)
            return err_set(ps->err, ERR_BAD_VALUE, "$not needs a regex or a document");
        if (bdoc_empty(bval_doc(e->v)))
            return err_set(ps->err, ERR_BAD_VALUE, "$not cannot be empty");
        rc = match_parse_operators(ps, path, bval_doc(e->v), &list);
    }
    if (rc != 0)
        return rc;
    struct match *all = match_and(ps, &list);
    return match_push(ps, out, all ? match_not(ps, all) : NULL);
}

/* A remark for logs and profiles: any value, no meaning. */
int match_parse_comment(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                        struct match_list *out)
{
    return 0;
}

int match_parse_constant(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                         struct match_list *out)
{
    int64_t n;
    int rc = match_operand_i64(ps, e, ERR_FAILED_TO_PARSE, "", &n);
    if (rc != 0)
        return rc;
    if (n != 1)
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "%s must be an integer value of 1", e->name);
    return match_push(ps, out, match_node(ps, strcmp(e->name, "$alwaysTrue") == 0 ? MATCH_TRUE : MATCH_FALSE));
}

/* {$elemMatch: {$ref: 'c', $id: 1}}: fields like others, though their names begin with a dollar sign. */
int match_parse_dbref(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                      struct match_list *out)
{
    return match_parse_implicit(ps, e->name, e->v, out);
}

int match_parse_refused(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                        struct match_list *out)
{
    static const struct {
        const char *name;
        int code;
    } banned[] = {{"$where", ERR_BAD_VALUE},
                  {"$text", ERR_BAD_VALUE},
                  {"$expr", ERR_QUERY_FEATURE_NOT_ALLOWED},
                  {"$jsonSchema", ERR_QUERY_FEATURE_NOT_ALLOWED}};
    static const char *const near[] = {"$near", "$nearSphere", "$geoNear"};
    for (size_t i = 0; ps->plain && i < OV_LEN(banned); i++)
        if (strcmp(banned[i].name, e->name) == 0)
            return err_set(ps->err, banned[i].code, "%s is not allowed in this context", e->name);
    for (size_t i = 0; ps->plain && i < OV_LEN(near); i++)
        if (strcmp(near[i], e->name) == 0)
            return err_set(ps->err, 5626500, "$geoNear, $near, and $nearSphere are not allowed in this context");
    return err_set(ps->err, ERR_NOT_IMPLEMENTED, "the query operator %s is not implemented", e->name);
}

int match_parse_where(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                      struct match_list *out)
{
    return err_set(ps->err, ERR_BAD_VALUE, "$where cannot be applied to a field");
}
