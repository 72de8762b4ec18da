/* Index specifications as createIndexes gets them, and as they are stored: parsing what it wrote gives the same again. */
#include <math.h>

#include "index/index_private.h"

#define NAME_MAX_BYTES 255

static const uint8_t ID_PATTERN[] = {14, 0, 0, 0, BSON_TYPE_INT32, '_', 'i', 'd', 0, 1, 0, 0, 0, 0};

/* ---- fields of a specification ---- */

enum treatment {
    TAKEN,      /* read elsewhere */
    FLAG,       /* a boolean that is kept if true */
    KEPT,       /* without effect here; shown as given */
    DROPPED,    /* of old versions: not even kept */
    EXPIRY,     /* a number of seconds, kept as int */
    FILTER,     /* a document that is kept */
    UNLESS_OFF, /* not there yet: refused unless false or an empty document */
    REFUSED,    /* not there yet */
};
static const struct {
    const char *name;
    enum treatment how;
} fields[] = {
    {"v", TAKEN},
    {"key", TAKEN},
    {"name", TAKEN},
    {"unique", FLAG},
    {"sparse", FLAG},
    {"background", FLAG},
    {"ns", DROPPED},
    {"dropDups", DROPPED},
    {"storageEngine", UNLESS_OFF},
    {"hidden", FLAG},
    {"prepareUnique", UNLESS_OFF},
    {"clustered", UNLESS_OFF},
    {"collation", UNLESS_OFF},
    {"expireAfterSeconds", EXPIRY},
    {"partialFilterExpression", FILTER},
    {"wildcardProjection", REFUSED},
    {"columnstoreProjection", REFUSED},
    {"weights", REFUSED},
    {"default_language", REFUSED},
    {"language_override", REFUSED},
    {"textIndexVersion", REFUSED},
    {"2dsphereIndexVersion", REFUSED},
    {"bits", REFUSED},
    {"min", REFUSED},
    {"max", REFUSED},
    {"bucketSize", REFUSED},
    {"coarsestIndexedLevel", REFUSED},
    {"finestIndexedLevel", REFUSED},
    {"originalSpec", REFUSED},
};

static int find_field(const char *name)
{
    for (size_t i = 0; i < OV_LEN(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool is_off(struct bval v)
{
    if (v.type == BSON_TYPE_DOCUMENT) {
        struct bval locale = bdoc_get(bval_doc(v), "locale"); /* of a collation: the simple one is none */
        uint32_t n;
        return bdoc_empty(bval_doc(v)) ||
               (locale.type == BSON_TYPE_UTF8 && strcmp(bval_str(locale, &n), "simple") == 0);
    }
    return v.type == BSON_TYPE_BOOL && !bval_bool(v);
}

/* Whole seconds; those of NaN are the most there are, those of numbers out of range the nearest that are in it. */
static int64_t expiry_seconds(struct bval v)
{
    int64_t seconds;
    double d = bval_to_f64(v);
    if (isnan(d))
        return INT32_MAX;
    if (bval_to_i64(v, false, &seconds))
        return seconds;
    return d < 0 ? INT64_MIN : INT64_MAX;
}

/* A field of the _id index besides key and name: mongod takes a handful only. */
static bool allowed_for_id(const char *name)
{
    static const char *const names[] = {"v", "key", "name", "ns", "collation"};
    for (size_t i = 0; i < OV_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int check_expiry(struct bval v, const uint8_t *spec, struct arena *a, struct err *err)
{
    const char *shown = bval_shell(a, bval_from_doc(spec));
    int64_t seconds;
    if (!bval_is_number(v))
        return err_set(
            err, ERR_CANNOT_CREATE_INDEX,
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'. Index spec: %s",
            bval_type_name(v.type), shown);
    seconds = expiry_seconds(v);
    if (seconds < 0)
        return err_set(err, ERR_CANNOT_CREATE_INDEX,
                       "TTL index 'expireAfterSeconds' option cannot be less than 0. Index spec: %s", shown);
    if (seconds > INT32_MAX)
        return err_set(
            err, ERR_CANNOT_CREATE_INDEX,
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number "
            "than %lld. Index spec: %s",
            (long long)seconds, shown);
    return 0;
}

static int check_field(const struct belem *e, const uint8_t *spec, bool id, struct arena *a, struct err *err)
{
    int i = find_field(e->name);
    if (i < 0)
        return err_set(err, ERR_INVALID_INDEX_SPECIFICATION_OPTION,
                       "The field '%s' is not valid for an index specification. Specification: %s", e->name,
                       bval_shell(a, bval_from_doc(spec)));
    if (id && strcmp(e->name, "hidden") == 0 && bval_truthy(e->v))
        return err_set(err, ERR_BAD_VALUE, "can't hide _id index");
    if (id && !allowed_for_id(e->name))
        return err_set(err, ERR_INVALID_INDEX_SPECIFICATION_OPTION,
                       "The field '%s' is not valid for an _id index specification. Specification: %s", e->name,
                       bval_shell(a, bval_from_doc(spec)));
    switch (fields[i].how) {
    case FLAG:
        if (e->v.type != BSON_TYPE_BOOL && !bval_is_number(e->v))
            return err_set(err, ERR_TYPE_MISMATCH, "The field '%s' has value %s: %s, which is not convertible to bool",
                           e->name, e->name, bval_shell(a, e->v));
        return 0;
    case EXPIRY:
        return check_expiry(e->v, spec, a, err);
    case FILTER:
        if (e->v.type != BSON_TYPE_DOCUMENT)
            return err_set(err, ERR_TYPE_MISMATCH, "The field '%s' must be an object, but got %s", e->name,
                           bval_type_name(e->v.type));
        return 0;
    case UNLESS_OFF:
        if (is_off(e->v))
            return 0;
        /* fall through */
    case REFUSED:
        return err_set(err, ERR_NOT_IMPLEMENTED, "the index option '%s' is not implemented", e->name);
    default:
        return 0;
    }
}

/* ---- the key pattern ---- */

static int check_name_in_key(const char *name, struct err *err)
{
    if (!*name)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "Index keys cannot be an empty field.");
    if (strstr(name, "$**"))
        return err_set(err, ERR_NOT_IMPLEMENTED, "wildcard indexes are not implemented");
    if (name[0] == '.' || name[strlen(name) - 1] == '.' || strstr(name, ".."))
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "Index keys cannot contain an empty field.");
    /* $ may start a part only in the fields of a DBRef */
    for (const char *part = name; part; part = strchr(part, '.')) {
        part += *part == '.';
        size_t n = strcspn(part, ".");
        if (*part == '$' && !(n == 3 && !strncmp(part, "$id", 3)) && !(n == 4 && !strncmp(part, "$ref", 4)) &&
            !(n == 3 && !strncmp(part, "$db", 3)))
            return err_set(err, ERR_CANNOT_CREATE_INDEX,
                           "Index key contains an illegal field name: field name starts with '$'.");
    }
    return 0;
}

static int check_plugin(struct bval v, struct err *err)
{
    static const char *const known[] = {"text", "2d", "2dsphere", "hashed"};
    uint32_t n;
    const char *plugin = bval_str(v, &n);
    if (n == 0)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "Values in the index key pattern cannot be empty strings.");
    for (size_t i = 0; i < OV_LEN(known); i++)
        if (strcmp(known[i], plugin) == 0)
            return err_set(err, ERR_NOT_IMPLEMENTED, "%s indexes are not implemented", plugin);
    return err_set(err, ERR_CANNOT_CREATE_INDEX, "Unknown index plugin '%s'", plugin);
}

static int key_direction(struct bval v, int8_t *dir, struct err *err)
{
    if (v.type == BSON_TYPE_UTF8)
        return check_plugin(v, err);
    if (!bval_is_number(v))
        return err_set(
            err, ERR_CANNOT_CREATE_INDEX,
            "Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings "
            "are allowed.",
            bval_type_name(v.type));
    double d = bval_to_f64(v);
    if (isnan(d))
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "Values in the index key pattern cannot be NaN.");
    if (d == 0)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "Values in the index key pattern cannot be 0.");
    *dir = d > 0 ? 1 : -1;
    return 0;
}

static int full(struct err *err)
{
    return err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "no memory left for the index specification");
}

static int parse_pattern(struct arena *a, struct index_def *out, struct err *err)
{
    struct biter it;
    struct belem e;
    int rc = 0;
    for (biter_init(&it, out->key_pattern); biter_next(&it, &e);)
        out->n_fields++;
    if (out->n_fields == 0)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "Index keys cannot be empty.");
    if (out->n_fields > INDEX_FIELDS_MAX)
        return err_set(err, 13103, "too many compound keys");
    out->paths = arena_alloc(a, out->n_fields * sizeof(*out->paths));
    out->dirs = arena_alloc(a, out->n_fields);
    if (!out->paths || !out->dirs)
        return full(err);
    uint32_t i = 0;
    for (biter_init(&it, out->key_pattern); rc == 0 && biter_next(&it, &e); i++) {
        rc = check_name_in_key(e.name, err);
        if (rc == 0)
            rc = key_direction(e.v, &out->dirs[i], err);
        if (rc == 0)
            rc = bpath_parse(a, e.name, &out->paths[i], err);
    }
    return rc;
}

/* ---- name, version ---- */

static int parse_name(struct bval v, struct arena *a, struct index_def *out, struct err *err)
{
    uint32_t n;
    if (bval_is_missing(v))
        return err_set(err, ERR_FAILED_TO_PARSE, "The 'name' field is a required property of an index specification");
    if (v.type != BSON_TYPE_UTF8)
        return err_set(err, ERR_TYPE_MISMATCH, "The field 'name' must be a string, but got %s", bval_type_name(v.type));
    const char *name = bval_str(v, &n);
    if (n == 0)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "index name cannot be empty");
    if (strlen(name) != n)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "index name cannot contain NUL bytes");
    if (strcmp(name, "*") == 0)
        return err_set(err, ERR_BAD_VALUE, "The index name '*' is not valid.");
    if (n > NAME_MAX_BYTES)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "index name is too long: %u bytes, at most %d are allowed", n,
                       NAME_MAX_BYTES);
    out->name = arena_strndup(a, name, n);
    return out->name ? 0 : full(err);
}

static int check_version(struct bval v, struct arena *a, const uint8_t *spec, struct err *err)
{
    int64_t version;
    if (bval_is_missing(v))
        return 0;
    if (!bval_is_number(v))
        return err_set(err, ERR_TYPE_MISMATCH, "The field 'v' must be a number, but got %s", bval_type_name(v.type));
    if (!bval_to_i64(v, true, &version))
        return err_set(err, ERR_BAD_VALUE, "Index version must be representable as a 32-bit integer, but got %s",
                       bval_shell(a, v));
    if (version != 1 && version != 2)
        return err_set(err, ERR_CANNOT_CREATE_INDEX,
                       "Invalid index specification %s; cannot create an index with v=%lld",
                       bval_shell(a, bval_from_doc(spec)), (long long)version);
    return 0;
}

/* The specification as listIndexes shows it: v, key, name, then the rest as given, without what is off. */
static const uint8_t *normal_spec(struct arena *a, const uint8_t *spec, const struct index_def *def)
{
    struct buf b;
    struct biter it;
    struct belem e;
    int64_t version = 2;
    buf_init(&b);
    size_t at = bw_begin(&b);
    (void)bval_to_i64(bdoc_get(spec, "v"), true, &version);
    bw_i32(&b, "v", (int32_t)version);
    bw_rawdoc(&b, "key", def->key_pattern);
    bw_str(&b, "name", def->name);
    for (biter_init(&it, spec); biter_next(&it, &e);) {
        enum treatment how = fields[find_field(e.name)].how;
        if (how == FLAG && bval_truthy(e.v))
            bw_bool(&b, e.name, true);
        else if (how == EXPIRY)
            bw_i32(&b, e.name, def->expire_after);
        else if (how == KEPT || how == FILTER)
            bw_val(&b, e.name, e.v);
    }
    bw_end(&b, at);
    const uint8_t *copy = arena_dup(a, b.p, b.len);
    buf_free(&b);
    return copy;
}

/* What options have to do with each other and with the key. */
static int check_options(const struct index_def *def, const uint8_t *spec, struct arena *a, struct err *err)
{
    if (def->sparse && def->filter)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "cannot mix \"partialFilterExpression\" and \"sparse\" options");
    if (def->expire_after < 0)
        return 0;
    if (def->n_fields != 1)
        return err_set(err, ERR_CANNOT_CREATE_INDEX,
                       "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s",
                       bval_shell(a, bval_from_doc(spec)));
    if (strcmp(def->paths[0].text, "_id") == 0)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "The field '_id' cannot be used for a TTL index. Index spec: %s",
                       bval_shell(a, bval_from_doc(spec)));
    return 0;
}

static int read_options(struct arena *a, const uint8_t *spec, struct index_def *out, struct err *err)
{
    struct bval filter = bdoc_get(spec, "partialFilterExpression"), expiry = bdoc_get(spec, "expireAfterSeconds");
    out->unique = bval_truthy(bdoc_get(spec, "unique"));
    out->sparse = bval_truthy(bdoc_get(spec, "sparse"));
    out->hidden = bval_truthy(bdoc_get(spec, "hidden"));
    out->expire_after = bval_is_missing(expiry) ? -1 : (int32_t)expiry_seconds(expiry);
    if (!bval_is_missing(filter) && !(out->filter = arena_dup(a, bval_doc(filter), bdoc_len(bval_doc(filter)))))
        return full(err);
    return check_options(out, spec, a, err);
}

int index_parse(struct arena *a, const uint8_t *spec, struct index_def *out, struct err *err)
{
    struct biter it;
    struct belem e;
    struct bval key = bdoc_get(spec, "key");
    int rc = 0;
    *out = (struct index_def){.state = INDEX_BUILDING};
    if (key.type != BSON_TYPE_EOD && key.type != BSON_TYPE_DOCUMENT)
        return err_set(err, ERR_TYPE_MISMATCH, "The field 'key' must be an object, but got %s",
                       bval_type_name(key.type));
    bool id = key.type == BSON_TYPE_DOCUMENT && bdoc_cmp(bval_doc(key), ID_PATTERN) == 0;
    for (biter_init(&it, spec); rc == 0 && biter_next(&it, &e);)
        rc = check_field(&e, spec, id, a, err);
    if (rc != 0)
        return rc;
    if (bval_is_missing(key))
        return err_set(err, ERR_FAILED_TO_PARSE, "The 'key' field is a required property of an index specification");
    out->key_pattern = arena_dup(a, bval_doc(key), bdoc_len(bval_doc(key)));
    if (!out->key_pattern)
        return full(err);
    if ((rc = parse_pattern(a, out, err)) != 0 || (rc = parse_name(bdoc_get(spec, "name"), a, out, err)) != 0 ||
        (rc = check_version(bdoc_get(spec, "v"), a, spec, err)) != 0 || (rc = read_options(a, spec, out, err)) != 0)
        return rc;
    out->spec = normal_spec(a, spec, out);
    return out->spec ? 0 : full(err);
}
