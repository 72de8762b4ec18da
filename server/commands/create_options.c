/* The options of create: first each by itself, then what they say together, at last what this server has. */
#include "server/commands/create_options.h"

#include "server/base/clock.h"
#include "server/commands/shape.h"

#define END                          \
    {                                \
        NULL, 0, 0, 0, 0, NULL, NULL \
    }
enum { YEAR_SECONDS = 31536000 };

static const char *const granularities[] = {"seconds", "minutes", "hours", NULL};
static const struct shape_field timeseries[] = {
    {"timeField", SHAPE_STRING, SHAPE_REQUIRED | SHAPE_NO_NUL, 0, 0, NULL, NULL},
    {"metaField", SHAPE_STRING, SHAPE_NO_NUL, 0, 0, NULL, NULL},
    {"granularity", SHAPE_STRING, 0, 0, 0, granularities, NULL},
    {"bucketMaxSpanSeconds", SHAPE_NUMBER, 0, 1, YEAR_SECONDS, NULL, NULL},
    {"bucketRoundingSeconds", SHAPE_NUMBER, 0, 1, YEAR_SECONDS, NULL, NULL},
    END,
};
static const struct shape_field images[] = {
    {"enabled", SHAPE_BOOL, SHAPE_REQUIRED, 0, 0, NULL, NULL},
    END,
};
static const char *const levels[] = {"off", "strict", "moderate", NULL}, *const actions[] = {"error", "warn", NULL};
static const struct shape_field options[] = {
    {"capped", SHAPE_BOOL | SHAPE_NUMBER, 0, 0, 0, NULL, NULL},
    {"autoIndexId", SHAPE_BOOL | SHAPE_NUMBER, 0, 0, 0, NULL, NULL},
    {"idIndex", SHAPE_DOC, 0, 0, 0, NULL, NULL},
    {"size", SHAPE_NUMBER, 0, 1, (int64_t)1 << 50, NULL, NULL},
    {"max", SHAPE_NUMBER, 0, INT64_MIN, INT32_MAX, NULL, NULL},
    {"validationLevel", SHAPE_STRING, 0, 0, 0, levels, NULL},
    {"validationAction", SHAPE_STRING, 0, 0, 0, actions, NULL},
    {"storageEngine", SHAPE_DOC, 0, 0, 0, NULL, NULL},
    {"viewOn", SHAPE_STRING, 0, 0, 0, NULL, NULL},
    {"pipeline", SHAPE_ARRAY, SHAPE_OF_DOCS, 0, 0, NULL, NULL},
    {"collation", SHAPE_DOC, 0, 0, 0, NULL, NULL},
    {"timeseries", SHAPE_DOC, 0, 0, 0, NULL, timeseries},
    {"expireAfterSeconds", SHAPE_NUMBER, 0, 0, 0, NULL, NULL},
    {"changeStreamPreAndPostImages", SHAPE_DOC, 0, 0, 0, NULL, images},
    END,
};

static bool given(struct command_ctx *cx, const char *field)
{
    struct bval v = bdoc_get(cx->req->body, field);
    return !bval_is_missing(v) && v.type != BSON_TYPE_NULL && v.type != BSON_TYPE_UNDEFINED;
}

static const uint8_t *doc_of(struct command_ctx *cx, const char *field)
{
    static const uint8_t empty[5] = {5};
    return given(cx, field) ? bval_doc(bdoc_get(cx->req->body, field)) : empty;
}

static int refuse(struct command_ctx *cx, const char *what)
{
    return err_set(&cx->op.err, ERR_INVALID_OPTIONS, "%s", what);
}

/* ---- each by itself ---- */

static int check_collation(struct command_ctx *cx)
{
    return given(cx, "collation") ? shape_check_collation(&cx->op.err, doc_of(cx, "collation")) : 0;
}

static const char *text_of(const uint8_t *doc, const char *field)
{
    uint32_t n;
    struct bval v = bdoc_get(doc, field);
    return v.type == BSON_TYPE_UTF8 ? bval_str(v, &n) : NULL;
}

static int check_buckets(struct command_ctx *cx, const uint8_t *ts)
{
    struct bval most = bdoc_get(ts, "bucketMaxSpanSeconds"), rounding = bdoc_get(ts, "bucketRoundingSeconds");
    if (!bval_is_missing(bdoc_get(ts, "granularity")))
        return bval_is_number(rounding)
                   ? refuse(cx, "Timeseries 'bucketRoundingSeconds' and 'granularity' cannot both be set")
                   : 0;
    if (bval_is_number(most) != bval_is_number(rounding))
        return refuse(cx, "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each "
                          "other");
    if (!bval_is_number(most))
        return 0;
    if (bval_to_i64_clamped(most) != bval_to_i64_clamped(rounding))
        return refuse(cx, "Timeseries 'bucketRoundingSeconds' needs to be equal to 'bucketMaxSpanSeconds'");
    return 0;
}

static int check_timeseries(struct command_ctx *cx)
{
    const uint8_t *ts = doc_of(cx, "timeseries");
    const char *time = text_of(ts, "timeField"), *meta = text_of(ts, "metaField");
    if (!given(cx, "timeseries"))
        return 0;
    if (strchr(time, '.'))
        return refuse(cx, "The time field of a time-series collection cannot contain '.'");
    if (meta && strchr(meta, '.'))
        return refuse(cx, "The meta field of a time-series collection cannot contain '.'");
    if (meta && strcmp(meta, "_id") == 0)
        return refuse(cx, "The field specified in 'metaField' cannot be '_id'");
    if (meta && strcmp(meta, time) == 0)
        return refuse(cx, "The field specified in 'metaField' cannot be the same as 'timeField'");
    return check_buckets(cx, ts);
}

static int check_seconds(struct command_ctx *cx)
{
    if (!given(cx, "expireAfterSeconds"))
        return 0;
    int64_t n = bval_to_i64_clamped(bdoc_get(cx->req->body, "expireAfterSeconds"));
    if (n < 0)
        return refuse(cx, "TTL index 'expireAfterSeconds' option cannot be less than 0");
    if (n > clock_wall_ms() / 1000)
        return refuse(cx, "TTL index 'expireAfterSeconds' option must be within an acceptable range");
    if (given(cx, "timeseries") || given(cx, "clusteredIndex"))
        return 0;
    return refuse(cx, "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' "
                      "option is specified");
}

/* ---- the index of _id ---- */

static bool is_id_key(const uint8_t *key)
{
    struct biter it;
    struct belem e;
    int64_t n;
    biter_init(&it, key);
    return biter_next(&it, &e) && strcmp(e.name, "_id") == 0 && bval_to_i64(e.v, true, &n) && n == 1 &&
           !biter_next(&it, &e);
}

static int check_id_version(struct command_ctx *cx, struct bval v)
{
    int64_t n;
    if (bval_is_missing(v))
        return 0;
    if (!bval_is_number(v))
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH,
                       "The field 'v' must be a number, but got %s :: caused by :: create.idIndex",
                       bval_type_name(v.type));
    if (!bval_to_i64(v, true, &n))
        return err_set(&cx->op.err, ERR_BAD_VALUE,
                       "Index version must be representable as a 32-bit integer, but got %s",
                       bval_shell(cx->op.arena, v));
    if (n == 1 || n == 2)
        return 0;
    return err_set(&cx->op.err, ERR_CANNOT_CREATE_INDEX,
                   "Invalid index specification { v: %lld }; cannot create an index with v=%lld", (long long)n,
                   (long long)n);
}

static int check_id_fields(struct command_ctx *cx, const uint8_t *spec)
{
    static const char *const allowed[] = {"key", "name", "v", "ns", "collation"};
    struct biter it;
    struct belem e;
    for (biter_init(&it, spec); biter_next(&it, &e);) {
        size_t i = 0;
        while (i < OV_LEN(allowed) && strcmp(allowed[i], e.name) != 0)
            i++;
        if (i == OV_LEN(allowed))
            return err_set(&cx->op.err, ERR_INVALID_INDEX_SPECIFICATION_OPTION,
                           "The field '%s' is not valid for an _id index specification. Specification: %s", e.name,
                           bval_shell(cx->op.arena, bval_from_doc(spec)));
    }
    return 0;
}

static int check_id_index(struct command_ctx *cx)
{
    const uint8_t *spec = doc_of(cx, "idIndex");
    struct err *err = &cx->op.err;
    if (!given(cx, "idIndex"))
        return 0;
    struct bval key = bdoc_get(spec, "key"), name = bdoc_get(spec, "name"), collation = bdoc_get(spec, "collation");
    if (!bval_is_missing(key) && key.type != BSON_TYPE_DOCUMENT)
        return err_set(err, ERR_TYPE_MISMATCH, "The field 'key' must be an object, but got %s",
                       bval_type_name(key.type));
    if (!bval_is_missing(key) && !is_id_key(bval_doc(key)))
        return err_set(err, ERR_BAD_VALUE, "The field 'key' for an _id index must be {_id: 1}, but got %s",
                       bval_shell(cx->op.arena, key));
    if (!bval_is_missing(name) && name.type != BSON_TYPE_UTF8)
        return err_set(err, ERR_TYPE_MISMATCH, "The field 'name' must be a string, but got %s",
                       bval_type_name(name.type));
    int rc = check_id_version(cx, bdoc_get(spec, "v"));
    if (rc != 0 || (rc = check_id_fields(cx, spec)) != 0)
        return rc;
    if (bval_is_missing(key) || bval_is_missing(name))
        return err_set(err, ERR_FAILED_TO_PARSE, "The '%s' field is a required property of an index specification",
                       bval_is_missing(key) ? "key" : "name");
    if (text_of(spec, "name")[0] == 0)
        return err_set(err, ERR_CANNOT_CREATE_INDEX, "index name cannot be empty");
    if (collation.type == BSON_TYPE_DOCUMENT && bval_cmp(collation, bdoc_get(cx->req->body, "collation")) != 0)
        return err_set(err, ERR_BAD_VALUE, "The _id index must have the same collation as the collection");
    return 0;
}

/* ---- together ---- */

/* Options that a collection of this kind cannot have. */
static int check_kind(struct command_ctx *cx, const char *kind, const char *const *excluded)
{
    for (; *excluded; excluded++)
        if (given(cx, *excluded))
            return err_set(&cx->op.err, ERR_INVALID_OPTIONS, "cannot specify '%s' together with '%s'", kind, *excluded);
    return 0;
}

static int check_together(struct command_ctx *cx)
{
    static const char *const of_view[] = {"idIndex", "timeseries", "clusteredIndex", "expireAfterSeconds", NULL};
    static const char *const of_series[] = {"capped",           "validator", "validationLevel",
                                            "validationAction", "idIndex",   "changeStreamPreAndPostImages",
                                            "viewOn",           NULL};
    const uint8_t *body = cx->req->body;
    bool capped = given(cx, "capped") && bval_truthy(bdoc_get(body, "capped"));
    bool recorded = bval_truthy(bdoc_get(doc_of(cx, "changeStreamPreAndPostImages"), "enabled"));
    int rc = 0;
    if (capped && !given(cx, "size"))
        return refuse(cx, "the 'size' field is required when 'capped' is true");
    if (!capped && (given(cx, "size") || given(cx, "max")))
        return refuse(cx, "the 'capped' field needs to be true when either the 'size' or 'max' fields are present");
    if (given(cx, "viewOn") && *text_of(body, "viewOn") == 0)
        return err_set(&cx->op.err, ERR_BAD_VALUE, "'viewOn' cannot be empty");
    if (given(cx, "viewOn") && recorded)
        return refuse(cx, "cannot enable 'changeStreamPreAndPostImages' on a view");
    if (given(cx, "viewOn") && (rc = check_kind(cx, "viewOn", of_view)) != 0)
        return rc;
    if (given(cx, "timeseries") && (rc = check_kind(cx, "timeseries", of_series)) != 0)
        return rc;
    if (given(cx, "clusteredIndex") && given(cx, "idIndex"))
        return refuse(cx, "The 'clusteredIndex' option is not supported with the 'idIndex' option");
    if (given(cx, "autoIndexId") && !bval_truthy(bdoc_get(body, "autoIndexId")))
        return refuse(cx, "autoIndexId:false is only allowed for collections in the local database");
    if (given(cx, "pipeline") && !given(cx, "viewOn"))
        return refuse(cx, "'pipeline' requires 'viewOn' to also be specified");
    return 0;
}

/* ---- what is there ---- */

static int not_there_yet(struct command_ctx *cx, const char *option)
{
    return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option '%s' of create is not implemented", option);
}

static int check_there(struct command_ctx *cx)
{
    static const char *const refused[] = {"viewOn", "timeseries", "clusteredIndex", "encryptedFields"};
    const char *locale = text_of(doc_of(cx, "collation"), "locale");
    for (size_t i = 0; i < OV_LEN(refused); i++)
        if (given(cx, refused[i]))
            return not_there_yet(cx, refused[i]);
    if (given(cx, "capped") && bval_truthy(bdoc_get(cx->req->body, "capped")))
        return not_there_yet(cx, "capped");
    if (locale && strcmp(locale, "simple") != 0)
        return not_there_yet(cx, "collation");
    if (bval_truthy(bdoc_get(doc_of(cx, "changeStreamPreAndPostImages"), "enabled")))
        return not_there_yet(cx, "changeStreamPreAndPostImages");
    return 0;
}

int create_options_check(struct command_ctx *cx)
{
    static int (*const checks[])(struct command_ctx *) = {check_collation, check_timeseries, check_id_index,
                                                          check_together,  check_seconds,    check_there};
    int rc = shape_check_known(&cx->op.err, "create", options, cx->req->body);
    for (size_t i = 0; rc == 0 && i < OV_LEN(checks); i++)
        rc = checks[i](cx);
    return rc;
}
