/* $jsonSchema (draft 4, with bsonType): a table of keywords, one row and one function each. The schema of a property is parsed as the whole is. */
#include <stdlib.h>

#include "server/query/match/schema.h"

struct keywords;
typedef int (*keyword_fn)(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s);

static int parse_schema(struct parser *ps, const uint8_t *doc, struct schema **out);

static int mismatch(struct parser *ps, const struct belem *e, const char *what)
{
    return err_set(ps->err, ERR_TYPE_MISMATCH, "$jsonSchema keyword '%s' must be %s", e->name, what);
}

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

/* ---- the keywords that are there, by place in the table ---- */

enum {
    TITLE,
    DESCRIPTION,
    TYPE,
    BSON_TYPE,
    PATTERN,
    MAX_LENGTH,
    MIN_LENGTH,
    MULTIPLE_OF,
    MAXIMUM,
    EXCLUSIVE_MAXIMUM,
    MINIMUM,
    EXCLUSIVE_MINIMUM,
    ENCRYPT,
    ENCRYPT_METADATA,
    REQUIRED,
    PROPERTIES,
    PATTERN_PROPERTIES,
    ADDITIONAL_PROPERTIES,
    MIN_PROPERTIES,
    MAX_PROPERTIES,
    DEPENDENCIES,
    MIN_ITEMS,
    MAX_ITEMS,
    UNIQUE_ITEMS,
    ITEMS,
    ADDITIONAL_ITEMS,
    ALL_OF,
    ANY_OF,
    ONE_OF,
    NOT,
    ENUM,
    KEYWORDS
};
struct keywords {
    struct belem e[KEYWORDS]; /* name NULL: not there */
};

/* ---- types ---- */

static int parse_type_name(struct parser *ps, const struct belem *e, bool json, struct bval v, uint32_t *bits)
{
    static const char *const json_names[] = {"array", "boolean", "null", "number", "object", "string"};
    uint32_t n, bit = 0;
    if (v.type != BSON_TYPE_UTF8)
        return err_set(ps->err, ERR_TYPE_MISMATCH, "$jsonSchema keyword '%s' array elements must be strings", e->name);
    const char *s = bval_str(v, &n);
    if (json && n == 7 && memcmp(s, "integer", 7) == 0)
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema type 'integer' is not currently supported.");
    bool known = !json;
    for (size_t i = 0; !known && i < OV_LEN(json_names); i++)
        known = strlen(json_names[i]) == n && memcmp(json_names[i], s, n) == 0;
    if (known && json && n == 7 && s[0] == 'b')
        bit = match_type_bit(BSON_TYPE_BOOL);
    else if (known)
        bit = match_type_alias(s, n);
    if (!bit)
        return err_set(ps->err, ERR_BAD_VALUE, "Unknown type name alias: %.*s", (int)OV_MIN(n, MATCH_SHOW_MAX), s);
    if ((*bits & bit) == bit)
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema keyword '%s' has duplicate value: %.*s", e->name,
                       (int)OV_MIN(n, MATCH_SHOW_MAX), s);
    *bits |= bit;
    return 0;
}

static int parse_type(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    struct biter it;
    struct belem t;
    bool json = e->name[0] == 't';
    int rc = 0;
    if (e->v.type == BSON_TYPE_UTF8)
        return parse_type_name(ps, e, json, e->v, &s->types);
    if (e->v.type != BSON_TYPE_ARRAY)
        return mismatch(ps, e, "either a string or an array of strings");
    for (biter_init(&it, bval_doc(e->v)); rc == 0 && biter_next(&it, &t);)
        rc = parse_type_name(ps, e, json, t.v, &s->types);
    if (rc == 0 && !s->types)
        rc = err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema keyword '%s' must name at least one type", e->name);
    return rc;
}

/* ---- scalars ---- */

static int parse_regex(struct parser *ps, const char *text, uint32_t n, const struct match **out)
{
    struct match_list list = {0};
    if (memchr(text, 0, n))
        return err_set(ps->err, ERR_BAD_VALUE, "Regular expression cannot contain an embedded null byte");
    uint8_t *p = arena_zalloc(ps->a, n + 2); /* the pattern, then no flags */
    if (!p)
        return match_full(ps);
    memcpy(p, text, n);
    int rc = match_regex_literal(ps, NULL, (struct bval){BSON_TYPE_REGEX, n + 2, p}, &list);
    if (rc == 0)
        *out = list.p[0];
    return rc;
}

static int parse_pattern(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    uint32_t n;
    if (e->v.type != BSON_TYPE_UTF8)
        return mismatch(ps, e, "a string");
    const char *text = bval_str(e->v, &n);
    return parse_regex(ps, text, n, &s->pattern);
}

static int parse_amount(struct parser *ps, const struct belem *e, int64_t *out)
{
    return match_operand_count(ps, e, ERR_FAILED_TO_PARSE, "", out);
}

#define AMOUNT(fn, field)                                                                               \
    static int fn(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s) \
    {                                                                                                   \
        return parse_amount(ps, e, &s->field);                                                          \
    }
AMOUNT(parse_min_length, min_length)
AMOUNT(parse_max_length, max_length)
AMOUNT(parse_min_items, min_items)
AMOUNT(parse_max_items, max_items)
AMOUNT(parse_min_properties, min_properties)
AMOUNT(parse_max_properties, max_properties)
#undef AMOUNT

static int parse_multiple(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (!bval_is_number(e->v))
        return mismatch(ps, e, "a number");
    if (bval_to_f64(e->v) <= 0)
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema keyword '%s' must have a positive value", e->name);
    s->has_multiple = true;
    return match_copy_value(ps, e->v, &s->multiple);
}

/* `exclusive`: the keyword beside it. */
static int parse_limit(struct parser *ps, const struct belem *e, const struct belem *exclusive, enum match_op or_equal,
                       enum match_op strictly, const struct match **out)
{
    bool is_strict = false;
    if (exclusive->name) {
        if (exclusive->v.type != BSON_TYPE_BOOL)
            return mismatch(ps, exclusive, "a boolean");
        is_strict = bval_bool(exclusive->v);
    }
    if (!bval_is_number(e->v))
        return mismatch(ps, e, "a number");
    struct match *m = match_leaf_value(ps, is_strict ? strictly : or_equal, NULL, e->v);
    *out = m;
    return m ? 0 : ps->err->code;
}

static int parse_maximum(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    return parse_limit(ps, e, &k->e[EXCLUSIVE_MAXIMUM], MATCH_LTE, MATCH_LT, &s->maximum);
}

static int parse_minimum(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    return parse_limit(ps, e, &k->e[EXCLUSIVE_MINIMUM], MATCH_GTE, MATCH_GT, &s->minimum);
}

/* Needs the limit beside it, which has read it then. */
static int parse_exclusive(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    bool max = e->name[10] == 'a'; /* exclusiveM… */
    if (k->e[max ? MAXIMUM : MINIMUM].name)
        return 0;
    return err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema keyword '%s' must be a present if %s is present",
                   max ? "maximum" : "minimum", e->name);
}

static int parse_text(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    return e->v.type == BSON_TYPE_UTF8 ? 0 : mismatch(ps, e, "of type string");
}

static int parse_encrypt(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    return err_set(ps->err, ERR_NOT_IMPLEMENTED, "the $jsonSchema keyword '%s' is not implemented", e->name);
}

/* ---- objects ---- */

static int parse_required(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
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

static int parse_properties(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    struct biter it;
    struct belem f;
    int rc;
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return mismatch(ps, e, "an object");
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
        if ((rc = parse_schema(ps, bval_doc(f.v), &p->schema)) != 0)
            return rc;
    }
    qsort(s->properties, s->n_properties, sizeof *s->properties, schema_by_slice);
    return 0;
}

static int parse_pattern_properties(struct parser *ps, const struct keywords *k, const struct belem *e,
                                    struct schema *s)
{
    struct biter it;
    struct belem f;
    int rc;
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return mismatch(ps, e, "an object");
    s->patterns = arena_alloc(ps->a, count(e->v) * sizeof *s->patterns);
    if (!s->patterns)
        return match_full(ps);
    for (biter_init(&it, bval_doc(e->v)); biter_next(&it, &f); s->n_patterns++) {
        struct schema_pattern *p = &s->patterns[s->n_patterns];
        if (f.v.type != BSON_TYPE_DOCUMENT)
            return err_set(ps->err, ERR_TYPE_MISMATCH,
                           "$jsonSchema keyword 'patternProperties' has property '%s' which is not an object", f.name);
        if ((rc = parse_schema(ps, bval_doc(f.v), &p->schema)) != 0 ||
            (rc = parse_regex(ps, f.name, f.name_n, &p->regex)) != 0)
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
    return e->v.type == BSON_TYPE_DOCUMENT ? parse_schema(ps, bval_doc(e->v), out) : mismatch(ps, e, what);
}

static int parse_additional_properties(struct parser *ps, const struct keywords *k, const struct belem *e,
                                       struct schema *s)
{
    return parse_additional(ps, e, "an object or a boolean", &s->no_additional_properties, &s->additional_properties);
}

static int parse_dependency(struct parser *ps, const struct belem *f, struct schema_dependency *d)
{
    const char *of = "in $jsonSchema keyword 'dependencies'";
    if (!copy_slice(ps, f->name, f->name_n, &d->name))
        return match_full(ps);
    if (f->v.type == BSON_TYPE_DOCUMENT)
        return parse_schema(ps, bval_doc(f->v), &d->schema);
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

static int parse_dependencies(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    struct biter it;
    struct belem f;
    int rc = 0;
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return mismatch(ps, e, "an object");
    s->dependencies = arena_zalloc(ps->a, count(e->v) * sizeof *s->dependencies);
    if (!s->dependencies)
        return match_full(ps);
    for (biter_init(&it, bval_doc(e->v)); rc == 0 && biter_next(&it, &f);)
        rc = parse_dependency(ps, &f, &s->dependencies[s->n_dependencies++]);
    return rc;
}

/* ---- arrays ---- */

static int parse_unique(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_BOOL)
        return mismatch(ps, e, "a boolean");
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
        if ((rc = parse_schema(ps, bval_doc(f.v), &out->p[out->n])) != 0)
            return rc;
    }
    return 0;
}

static int parse_items(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type == BSON_TYPE_DOCUMENT)
        return parse_schema(ps, bval_doc(e->v), &s->items);
    if (e->v.type != BSON_TYPE_ARRAY)
        return err_set(ps->err, ERR_TYPE_MISMATCH, "$jsonSchema keyword 'items' must be an array or an object, not %s",
                       bval_type_name(e->v.type));
    s->is_tuple = true;
    return parse_list(ps, e, "requires that each element of the array is an object, but found a", &s->tuple);
}

static int parse_additional_items(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_BOOL && e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(ps->err, ERR_TYPE_MISMATCH,
                       "$jsonSchema keyword 'additionalItems' must be either an object or a boolean, but got a %s",
                       bval_type_name(e->v.type));
    return parse_additional(ps, e, "", &s->no_additional_items, &s->additional_items);
}

/* ---- any value ---- */

static int parse_logical(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_ARRAY)
        return mismatch(ps, e, "an array");
    if (bdoc_empty(bval_doc(e->v)))
        return err_set(ps->err, ERR_BAD_VALUE, "$jsonSchema keyword '%s' must be a non-empty array", e->name);
    return parse_list(ps, e, "must be an array of objects, but found an element of type",
                      e->name[0] == 'o'   ? &s->one_of
                      : e->name[1] == 'l' ? &s->all_of
                                          : &s->any_of);
}

static int parse_not(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(ps->err, ERR_TYPE_MISMATCH,
                       "$jsonSchema keyword 'not' must be an object, but found an element of type %s",
                       bval_type_name(e->v.type));
    return parse_schema(ps, bval_doc(e->v), &s->not_);
}

static int parse_enum(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
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

/* ---- the table ---- */

static const struct row {
    const char *name;
    keyword_fn parse;
} table[KEYWORDS] = {
    [TITLE] = {"title", parse_text},
    [DESCRIPTION] = {"description", parse_text},
    [TYPE] = {"type", parse_type},
    [BSON_TYPE] = {"bsonType", parse_type},
    [PATTERN] = {"pattern", parse_pattern},
    [MAX_LENGTH] = {"maxLength", parse_max_length},
    [MIN_LENGTH] = {"minLength", parse_min_length},
    [MULTIPLE_OF] = {"multipleOf", parse_multiple},
    [MAXIMUM] = {"maximum", parse_maximum},
    [EXCLUSIVE_MAXIMUM] = {"exclusiveMaximum", parse_exclusive},
    [MINIMUM] = {"minimum", parse_minimum},
    [EXCLUSIVE_MINIMUM] = {"exclusiveMinimum", parse_exclusive},
    [ENCRYPT] = {"encrypt", parse_encrypt},
    [ENCRYPT_METADATA] = {"encryptMetadata", parse_encrypt},
    [REQUIRED] = {"required", parse_required},
    [PROPERTIES] = {"properties", parse_properties},
    [PATTERN_PROPERTIES] = {"patternProperties", parse_pattern_properties},
    [ADDITIONAL_PROPERTIES] = {"additionalProperties", parse_additional_properties},
    [MIN_PROPERTIES] = {"minProperties", parse_min_properties},
    [MAX_PROPERTIES] = {"maxProperties", parse_max_properties},
    [DEPENDENCIES] = {"dependencies", parse_dependencies},
    [MIN_ITEMS] = {"minItems", parse_min_items},
    [MAX_ITEMS] = {"maxItems", parse_max_items},
    [UNIQUE_ITEMS] = {"uniqueItems", parse_unique},
    [ITEMS] = {"items", parse_items},
    [ADDITIONAL_ITEMS] = {"additionalItems", parse_additional_items},
    [ALL_OF] = {"allOf", parse_logical},
    [ANY_OF] = {"anyOf", parse_logical},
    [ONE_OF] = {"oneOf", parse_logical},
    [NOT] = {"not", parse_not},
    [ENUM] = {"enum", parse_enum},
};

static int find_keywords(struct parser *ps, const uint8_t *doc, struct keywords *k)
{
    static const char *const unsupported[] = {"$ref", "$schema", "default", "definitions", "format", "id"};
    struct biter it;
    struct belem e;
    for (biter_init(&it, doc); biter_next(&it, &e);) {
        int i = 0;
        while (i < KEYWORDS && strcmp(table[i].name, e.name) != 0)
            i++;
        for (size_t u = 0; i == KEYWORDS && u < OV_LEN(unsupported); u++)
            if (strcmp(unsupported[u], e.name) == 0)
                return err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema keyword '%s' is not currently supported",
                               e.name);
        if (i == KEYWORDS)
            return err_set(ps->err, ERR_FAILED_TO_PARSE, "Unknown $jsonSchema keyword: %s", e.name);
        if (k->e[i].name)
            return err_set(ps->err, ERR_FAILED_TO_PARSE, "Duplicate $jsonSchema keyword: %s", e.name);
        k->e[i] = e;
    }
    if (k->e[TYPE].name && k->e[BSON_TYPE].name)
        return err_set(ps->err, ERR_FAILED_TO_PARSE, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
    return 0;
}

static int parse_schema(struct parser *ps, const uint8_t *doc, struct schema **out)
{
    struct keywords k = {0};
    struct schema *s = arena_zalloc(ps->a, sizeof *s);
    if (!s)
        return match_full(ps);
    if (++ps->depth > MATCH_DEPTH_MAX)
        return err_set(ps->err, ERR_BAD_VALUE, "exceeded maximum query tree depth of %d", MATCH_DEPTH_MAX);
    s->min_length = s->max_length = s->min_items = s->max_items = s->min_properties = s->max_properties = -1;
    int rc = find_keywords(ps, doc, &k);
    for (int i = 0; rc == 0 && i < KEYWORDS; i++)
        if (k.e[i].name)
            rc = table[i].parse(ps, &k, &k.e[i], s);
    ps->depth--;
    *out = s;
    return rc;
}

int match_parse_schema(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                       struct match_list *out)
{
    struct schema *s;
    if (ps->plain)
        return match_parse_refused(ps, path, e, sub, out);
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(ps->err, ERR_TYPE_MISMATCH, "$jsonSchema must be an object");
    int rc = parse_schema(ps, bval_doc(e->v), &s);
    if (rc != 0)
        return rc;
    struct match *m = match_node(ps, MATCH_SCHEMA);
    if (m)
        m->priv = s;
    return match_push(ps, out, m);
}
