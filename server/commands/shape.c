#include "server/commands/shape.h"

#include "server/commands/command.h"

enum { PATH_MAX_BYTES = 256 }; /* longer ones are cut in messages */

static bool has_type(const struct shape_field *f, struct bval v)
{
    return (f->types & SHAPE_BOOL && v.type == BSON_TYPE_BOOL) || (f->types & SHAPE_NUMBER && bval_is_number(v)) ||
           (f->types & SHAPE_STRING && v.type == BSON_TYPE_UTF8) ||
           (f->types & SHAPE_DOC && v.type == BSON_TYPE_DOCUMENT) ||
           (f->types & SHAPE_ARRAY && v.type == BSON_TYPE_ARRAY);
}

static const char *type_words(unsigned types)
{
    switch (types) {
    case SHAPE_BOOL:
        return "type 'bool'";
    case SHAPE_NUMBER:
        return "types '[long, int, decimal, double']";
    case SHAPE_BOOL | SHAPE_NUMBER:
        return "types '[bool, long, int, decimal, double']";
    case SHAPE_STRING:
        return "type 'string'";
    case SHAPE_ARRAY:
        return "type 'array'";
    case SHAPE_BOOL | SHAPE_DOC:
        return "types '[bool, object]'";
    default:
        return "type 'object'";
    }
}

static int wrong_type(struct err *err, const char *path, const char *name, struct bval v, const char *expected)
{
    return err_set(err, ERR_TYPE_MISMATCH, "BSON field '%s.%s' is the wrong type '%s', expected %s", path, name,
                   bval_type_name(v.type), expected);
}

static int check_number(struct err *err, const struct shape_field *f, struct bval v)
{
    int64_t n = bval_to_i64_clamped(v);
    if ((f->min == 0 && f->max == 0) || (n >= f->min && n <= f->max))
        return 0;
    return err_set(err, ERR_BAD_VALUE, "BSON field '%s' value must be %s %lld, actual value '%lld'", f->name,
                   n < f->min ? ">=" : "<=", (long long)(n < f->min ? f->min : f->max), (long long)n);
}

static int check_string(struct err *err, const char *path, const struct shape_field *f, struct bval v)
{
    uint32_t n;
    const char *s = bval_str(v, &n);
    if (f->flags & SHAPE_NO_NUL && strlen(s) != n)
        return err_set(err, ERR_BAD_VALUE, "BSON field '%s.%s' must not have a null byte", path, f->name);
    if (!f->words)
        return 0;
    for (const char *const *w = f->words; *w; w++)
        if (strcmp(*w, s) == 0)
            return 0;
    return err_set(err, ERR_BAD_VALUE, "Enumeration value '%s' for field '%s.%s' is not a valid value.", s, path,
                   f->name);
}

static int check_elements(struct err *err, const char *path, const struct shape_field *f, struct bval v)
{
    struct biter it;
    struct belem e;
    char name[PATH_MAX_BYTES];
    for (biter_init(&it, bval_doc(v)); f->flags & SHAPE_OF_DOCS && biter_next(&it, &e);) {
        if (e.v.type == BSON_TYPE_DOCUMENT || e.v.type == BSON_TYPE_NULL)
            continue;
        snprintf(name, sizeof(name), "%s.%s", f->name, e.name);
        return wrong_type(err, path, name, e.v, "type 'object'");
    }
    return 0;
}

static int check_value(struct err *err, const char *path, const struct shape_field *f, struct bval v)
{
    char inner[PATH_MAX_BYTES];
    if (!has_type(f, v))
        return wrong_type(err, path, f->name, v, type_words(f->types));
    if (bval_is_number(v))
        return check_number(err, f, v);
    if (v.type == BSON_TYPE_UTF8)
        return check_string(err, path, f, v);
    if (v.type == BSON_TYPE_ARRAY)
        return check_elements(err, path, f, v);
    if (v.type != BSON_TYPE_DOCUMENT || !f->fields)
        return 0;
    snprintf(inner, sizeof(inner), "%s.%s", path, f->name);
    return shape_check(err, inner, f->fields, bval_doc(v));
}

int shape_check_known(struct err *err, const char *path, const struct shape_field *fields, const uint8_t *doc)
{
    int rc = 0;
    for (const struct shape_field *f = fields; rc == 0 && f->name; f++) {
        struct bval v = bdoc_get(doc, f->name);
        bool null = v.type == BSON_TYPE_NULL || v.type == BSON_TYPE_UNDEFINED;
        if (!bval_is_missing(v) && (!null || f->flags & SHAPE_NO_NULL))
            rc = check_value(err, path, f, v);
        else if (f->flags & SHAPE_REQUIRED)
            rc = err_set(err, ERR_IDL_FAILED_TO_PARSE, "BSON field '%s.%s' is missing but a required field", path,
                         f->name);
    }
    return rc;
}

static bool is_known(const struct shape_field *fields, const char *name)
{
    for (; fields->name; fields++)
        if (strcmp(fields->name, name) == 0)
            return true;
    return false;
}

int shape_check(struct err *err, const char *path, const struct shape_field *fields, const uint8_t *doc)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, doc); biter_next(&it, &e);)
        if (!is_known(fields, e.name))
            return err_set(err, ERR_IDL_UNKNOWN_FIELD, "BSON field '%s.%s' is an unknown field.", path, e.name);
    return shape_check_known(err, path, fields, doc);
}

/* ---- collations ---- */

static const char *const case_first[] = {"upper", "lower", "off", NULL};
static const char *const alternates[] = {"non-ignorable", "shifted", NULL};
static const char *const variables[] = {"punct", "space", NULL};
static const struct shape_field collation_fields[] = {
    {"locale", SHAPE_STRING, SHAPE_REQUIRED, 0, 0, NULL, NULL},
    {"caseLevel", SHAPE_BOOL, 0, 0, 0, NULL, NULL},
    {"caseFirst", SHAPE_STRING, 0, 0, 0, case_first, NULL},
    {"strength", SHAPE_NUMBER, 0, 1, 5, NULL, NULL},
    {"numericOrdering", SHAPE_BOOL, 0, 0, 0, NULL, NULL},
    {"alternate", SHAPE_STRING, 0, 0, 0, alternates, NULL},
    {"maxVariable", SHAPE_STRING, 0, 0, 0, variables, NULL},
    {"normalization", SHAPE_BOOL, 0, 0, 0, NULL, NULL},
    {"backwards", SHAPE_BOOL, SHAPE_NO_NULL, 0, 0, NULL, NULL},
    {"version", SHAPE_STRING, 0, 0, 0, NULL, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL},
};

int shape_check_collation(struct err *err, const uint8_t *collation)
{
    uint32_t n;
    int rc = shape_check(err, "collation", collation_fields, collation);
    if (rc != 0)
        return rc;
    struct bval first = bdoc_get(collation, "caseFirst"), strength = bdoc_get(collation, "strength");
    if (first.type == BSON_TYPE_UTF8 && strcmp(bval_str(first, &n), "off") != 0 && bval_is_number(strength) &&
        bval_to_i64_clamped(strength) < 3 && !bval_truthy(bdoc_get(collation, "caseLevel")))
        return err_set(err, ERR_BAD_VALUE,
                       "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2");
    return 0;
}
