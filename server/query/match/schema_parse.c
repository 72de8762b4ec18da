/* $jsonSchema (draft 4, with bsonType): a table of keywords, one row and one function each. The schema of a property is parsed as the whole is. */
#include "server/query/match/schema_parse.h"

int schema_mismatch(struct parser *ps, const struct belem *e, const char *what)
{
    return err_set(ps->err, ERR_TYPE_MISMATCH, "$jsonSchema keyword '%s' must be %s", e->name, what);
}

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
        return schema_mismatch(ps, e, "either a string or an array of strings");
    for (biter_init(&it, bval_doc(e->v)); rc == 0 && biter_next(&it, &t);)
        rc = parse_type_name(ps, e, json, t.v, &s->types);
    if (rc == 0 && !s->types)
        rc = err_set(ps->err, ERR_FAILED_TO_PARSE, "$jsonSchema keyword '%s' must name at least one type", e->name);
    return rc;
}

/* ---- scalars ---- */

int schema_regex(struct parser *ps, const char *text, uint32_t n, const struct match **out)
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
        return schema_mismatch(ps, e, "a string");
    const char *text = bval_str(e->v, &n);
    return schema_regex(ps, text, n, &s->pattern);
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
        return schema_mismatch(ps, e, "a number");
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
            return schema_mismatch(ps, exclusive, "a boolean");
        is_strict = bval_bool(exclusive->v);
    }
    if (!bval_is_number(e->v))
        return schema_mismatch(ps, e, "a number");
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
    return e->v.type == BSON_TYPE_UTF8 ? 0 : schema_mismatch(ps, e, "of type string");
}

static int parse_encrypt(struct parser *ps, const struct keywords *k, const struct belem *e, struct schema *s)
{
    return err_set(ps->err, ERR_NOT_IMPLEMENTED, "the $jsonSchema keyword '%s' is not implemented", e->name);
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
    [REQUIRED] = {"required", schema_required},
    [PROPERTIES] = {"properties", schema_properties},
    [PATTERN_PROPERTIES] = {"patternProperties", schema_pattern_properties},
    [ADDITIONAL_PROPERTIES] = {"additionalProperties", schema_additional_properties},
    [MIN_PROPERTIES] = {"minProperties", parse_min_properties},
    [MAX_PROPERTIES] = {"maxProperties", parse_max_properties},
    [DEPENDENCIES] = {"dependencies", schema_dependencies},
    [MIN_ITEMS] = {"minItems", parse_min_items},
    [MAX_ITEMS] = {"maxItems", parse_max_items},
    [UNIQUE_ITEMS] = {"uniqueItems", schema_unique},
    [ITEMS] = {"items", schema_items},
    [ADDITIONAL_ITEMS] = {"additionalItems", schema_additional_items},
    [ALL_OF] = {"allOf", schema_logical},
    [ANY_OF] = {"anyOf", schema_logical},
    [ONE_OF] = {"oneOf", schema_logical},
    [NOT] = {"not", schema_not},
    [ENUM] = {"enum", schema_enum},
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

int schema_parse(struct parser *ps, const uint8_t *doc, struct schema **out)
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
    int rc = schema_parse(ps, bval_doc(e->v), &s);
    if (rc != 0)
        return rc;
    struct match *m = match_node(ps, MATCH_SCHEMA);
    if (m)
        m->priv = s;
    return match_push(ps, out, m);
}
