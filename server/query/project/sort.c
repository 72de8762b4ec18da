/* Sort specifications. */
#include "server/query/project/project_private.h"

static int parse_natural(const uint8_t *spec, struct bval v, struct sort_spec *out, struct err *err)
{
    int64_t n;
    struct biter it;
    struct belem e;
    uint32_t fields = 0;
    for (biter_init(&it, spec); biter_next(&it, &e);)
        fields++;
    if (fields > 1 || !bval_to_i64(v, true, &n) || (n != 1 && n != -1))
        return err_set(err, ERR_BAD_VALUE, "$natural sort cannot be set to a value other than -1 or 1.");
    out->natural = (int8_t)n;
    return 0;
}

static int parse_direction(const struct belem *e, int8_t *dir, struct err *err)
{
    int64_t n;
    if (e->v.type == BSON_TYPE_DOCUMENT) {
        struct bval meta = bdoc_get(e->v.p, "$meta");
        if (bval_is_missing(meta))
            return err_set(err, 17312, "$meta is the only expression supported by $sort right now");
        return err_set(err, ERR_NOT_IMPLEMENTED, "$meta in the sort of '%s' is not implemented", e->name);
    }
    if (!bval_is_number(e->v))
        return err_set(err, 15974, "Illegal key in $sort specification: %s: %s", e->name,
                       err->arena ? bval_shell(err->arena, e->v) : bval_type_name(e->v.type));
    if (!bval_to_i64(e->v, false, &n) || (n != 1 && n != -1))
        return err_set(err, 15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)");
    *dir = (int8_t)n;
    return 0;
}

static int parse_path(struct arena *a, const char *name, struct sort_spec *out, struct err *err)
{
    struct bpath *path = &out->paths[out->n];
    int rc = bpath_parse(a, name, path, err);
    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < path->n_parts; i++)
        if (path->parts[i].s[0] == '$')
            return err_set(err, 16410,
                           "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    for (uint32_t i = 0; i < out->n; i++)
        if (strcmp(out->paths[i].text, name) == 0)
            return err_set(err, 7472500, "$sort key must not contain duplicate keys (duplicate: '%s')", name);
    return 0;
}

int sort_parse(struct arena *a, const uint8_t *spec, struct sort_spec *out, struct err *err)
{
    struct biter it;
    struct belem e;
    int rc;
    *out = (struct sort_spec){0};
    struct bval natural = bdoc_get(spec, "$natural");
    if (!bval_is_missing(natural))
        return parse_natural(spec, natural, out, err);
    if (bdoc_empty(spec))
        return 0;
    out->paths = arena_alloc(a, SORT_FIELDS_MAX * sizeof(*out->paths));
    out->dirs = arena_alloc(a, SORT_FIELDS_MAX);
    if (!out->paths || !out->dirs)
        return err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "The sort needs more memory than the operation may use");
    biter_init(&it, spec);
    while (biter_next(&it, &e)) {
        if (out->n == SORT_FIELDS_MAX)
            return err_set(err, 13103, "too many compound keys");
        if ((rc = parse_direction(&e, &out->dirs[out->n], err)) != 0 || (rc = parse_path(a, e.name, out, err)) != 0)
            return rc;
        out->n++;
    }
    return 0;
}
