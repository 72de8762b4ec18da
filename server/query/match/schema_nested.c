/* Keywords of $jsonSchema that hold schemas or lists: about objects, arrays and any value. */
#include <stdlib.h>

#include "server/query/match/schema_parse.h"

static uint32_t count(struct bval v)
{
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e);)
        n++;
    return n;
}

static bool copy_slice(struct parser *ps, const void *p, size_t n, struct slice *out)
{
    const char *copy = arena_strndup(ps->a, p, n);
    *out = slice_of(copy, copy ? n : 0);
    return copy != NULL;
}

/* Strings of an array, sorted. `of` and `twice` word the errors: an element that is no string, and (with its text) one that is there twice. */
static int parse_names(struct parser *ps, struct bval v, const char *of, const char *twice, struct schema_names *out)
{
    struct biter it;
    struct belem e;
    uint32_t n;
    out->p = arena_alloc(ps->a, count(v) * sizeof *out->p);
    if (!out->p)
        return match_full(ps);
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e); out->n++) {
        if (e.v.type != BSON_TYPE_UTF8)
            return err_set(ps->err, ERR_TYPE_MISMATCH, "%s%s", of, bval_type_name(e.v.type));
        const char *s = bval_str(e.v, &n);
        if (!copy_slice(ps, s, n, &out->p[out->n]))
            return match_full(ps);
    }
    qsort(out->p, out->n, sizeof *out->p, schema_by_slice);
    for (uint32_t i = 1; i < out->n; i++)
        if (slice_eq(out->p[i - 1], out->p[i]))
            return err_set(ps->err, ERR_FAILED_TO_PARSE, "%s%.*s", twice, (int)OV_MIN(out->p[i].n, MATCH_SHOW_MAX),
                           (const char *)out->p[i].p);
    return 0;
}

/* ---- objects ---- */

int schema_required(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_TYPE_MISMATCH,
                       "$jsonSchema keyword 'required' must be an array, but found an element of type %s",
                       bval_type_name(e->v.type));
    if (bdoc_empty(bval_doc(e->v)))
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema keyword 'required' cannot be an empty array");
    return parse_names(ps, e->v,
                       "$jsonSchema keyword 'required' must be an array of strings, but found an element of type: ",
                       "$jsonSchema keyword 'required' array cannot contain duplicate values: ", &s->required);
}

int schema_properties(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    struct biter it;
    struct belem f;
    int rc;
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return schema_mismatch(ps, e, "an object");
    s->properties = arena_alloc(ps->a, count(e->v) * sizeof *s->properties);
    if (!s->properties)
        return match_full(ps);
    for (biter_init(&it, bval_doc(e->v)); biter_next(&it, &f); s->n_properties++) {
        struct schema_property *p = &s->properties[s->n_properties];
        if (f.v.type != BSON_TYPE_DOCUMENT)
            return err_set(ps->err, ERR_TYPE_MISMATCH, "Nested schema for $jsonSchema property '%s' must be an object",
                           f.name);
        if (!copy_slice(ps, f.name, f.name_n, &p->name))
            return match_full(ps);
        if ((rc = schema_parse(ps, bval_doc(f.v), &p->schema)) != 0)
            return rc;
    }
    qsort(s->properties, s->n_properties, sizeof *s->properties, schema_by_slice);
    return 0;
}

int schema_pattern_properties(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    struct biter it;
    struct belem f;
    int rc;
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return schema_mismatch(ps, e, "an object");
    s->patterns = arena_alloc(ps->a, count(e->v) * sizeof *s->patterns);
    if (!s->patterns)
        return match_full(ps);
    for (biter_init(&it, bval_doc(e->v)); biter_next(&it, &f); s->n_patterns++) {
        struct schema_pattern *p = &s->patterns[s->n_patterns];
        if (f.v.type != BSON_TYPE_DOCUMENT)
            return err_set(ps->err, ERR_TYPE_MISMATCH,
                           "$jsonSchema keyword 'patternProperties' has property '%s' which is not an object", f.name);
        if ((rc = schema_parse(ps, bval_doc(f.v), &p->schema)) != 0 ||
            (rc = schema_regex(ps, f.name, f.name_n, &p->regex)) != 0)
            return rc;
    }
    return 0;
}

/* A schema, or a boolean: none, or no restriction. */
static int parse_additional(struct parser *ps, const struct belem *e, const char *what, bool *none, struct schema **out)
{
    if (e->v.type == BSON_TYPE_BOOL) {
        *none = !bval_bool(e->v);
        return 0;
    }
    return e->v.type == BSON_TYPE_DOCUMENT ? schema_parse(ps, bval_doc(e->v), out) : schema_mismatch(ps, e, what);
}

int schema_additional_properties(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    return parse_additional(ps, e, "an object or a boolean", &s->no_additional_properties, &s->additional_properties);
}

static int parse_dependency(struct parser *ps, const struct belem *f, struct schema_dependency *d)
{
    const char *of = "in $jsonSchema keyword 'dependencies'";
    if (!copy_slice(ps, f->name, f->name_n, &d->name))
        return match_full(ps);
    if (f->v.type == BSON_TYPE_DOCUMENT)
        return schema_parse(ps, bval_doc(f->v), &d->schema);
    if (f->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_TYPE_MISMATCH, "property '%s' %s must be either an object or an array", f->name,
                       of);
    if (bdoc_empty(bval_doc(f->v)))
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "property '%s' %s cannot be an empty array", f->name, of);
    const char *other =
        arena_printf(ps->a, "array '%s' %s can only contain strings, but found element of type: ", f->name, of);
    const char *twice = arena_printf(ps->a, "array '%s' %s contains duplicate element: ", f->name, of);
    return other && twice ? parse_names(ps, f->v, other, twice, &d->names) : match_full(ps);
}

int schema_dependencies(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    struct biter it;
    struct belem f;
    int rc = 0;
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return schema_mismatch(ps, e, "an object");
    s->dependencies = arena_zalloc(ps->a, count(e->v) * sizeof *s->dependencies);
    if (!s->dependencies)
        return match_full(ps);
    for (biter_init(&it, bval_doc(e->v)); rc == 0 && biter_next(&it, &f);)
        rc = parse_dependency(ps, &f, &s->dependencies[s->n_dependencies++]);
    return rc;
}

/* ---- arrays ---- */

int schema_unique(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_BOOL)
        return schema_mismatch(ps, e, "a boolean");
    s->unique_items = bval_bool(e->v);
    return 0;
}

/* Schemas in an array; `wrong` words the error about an element that is none. */
static int parse_list(struct parser *ps, const struct belem *e, const char *wrong, struct schema_list *out)
{
    struct biter it;
    struct belem f;
    int rc;
    out->p = arena_alloc(ps->a, count(e->v) * sizeof(struct schema *));
    if (!out->p)
        return match_full(ps);
    for (biter_init(&it, bval_doc(e->v)); biter_next(&it, &f); out->n++) {
        if (f.v.type != BSON_TYPE_DOCUMENT)
            return err_set(ps->err, ERR_TYPE_MISMATCH, "$jsonSchema keyword '%s' %s %s", e->name, wrong,
                           bval_type_name(f.v.type));
        if ((rc = schema_parse(ps, bval_doc(f.v), &out->p[out->n])) != 0)
            return rc;
    }
    return 0;
}

int schema_items(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type == BSON_TYPE_DOCUMENT)
        return schema_parse(ps, bval_doc(e->v), &s->items);
    if (e->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_TYPE_MISMATCH, "$jsonSchema keyword 'items' must be an array or an object, not %s",
                       bval_type_name(e->v.type));
    s->is_tuple = true;
    return parse_list(ps, e, "requires that each element of the array is an object, but found a", &s->tuple);
}

int schema_additional_items(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_BOOL && e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(ps->err, ERR_TYPE_MISMATCH,
                       "$jsonSchema keyword 'additionalItems' must be either an object or a boolean, but got a %s",
                       bval_type_name(e->v.type));
    return parse_additional(ps, e, "", &s->no_additional_items, &s->additional_items);
}

/* ---- any value ---- */

int schema_logical(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_ARRAY)
        return schema_mismatch(ps, e, "an array");
    if (bdoc_empty(bval_doc(e->v)))
        return err_set(ps->err, ERR_BAD_VALUE, "$jsonSchema keyword '%s' must be a non-empty array", e->name);
    return parse_list(ps, e, "must be an array of objects, but found an element of type",
                      e->name[0] == 'o'   ? &s->one_of
                      : e->name[1] == 'l' ? &s->all_of
                                          : &s->any_of);
}

int schema_not(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(ps->err, ERR_TYPE_MISMATCH,
                       "$jsonSchema keyword 'not' must be an object, but found an element of type %s",
                       bval_type_name(e->v.type));
    return schema_parse(ps, bval_doc(e->v), &s->not_);
}

int schema_enum(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    struct biter it;
    struct belem f;
    struct bval all;
    int rc;
    if (e->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_TYPE_MISMATCH,
                       "$jsonSchema keyword 'enum' must be an array, but found an element of type %s",
                       bval_type_name(e->v.type));
    if (bdoc_empty(bval_doc(e->v)))
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema keyword 'enum' cannot be an empty array");
    if (schema_has_duplicates(bval_doc(e->v)))
        return err_set(ps->err, ERR_FAILED_TO_PARSE,
                       "$jsonSchema keyword 'enum' array cannot contain duplicate values.");
    if ((rc = match_copy_value(ps, e->v, &all)) != 0)
        return rc;
    s->has_enum = true;
    s->values = arena_alloc(ps->a, count(all) * sizeof *s->values);
    if (!s->values)
        return match_full(ps);
    for (biter_init(&it, bval_doc(all)); biter_next(&it, &f);)
        s->values[s->n_values++] = f.v;
    return 0;
}
