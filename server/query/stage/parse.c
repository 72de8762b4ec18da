/* Pipelines out of BSON: the table of stages. */
#include "server/query/stage/parse_private.h"

enum { STAGES_MAX = 1000 };

/* ---- stages without a file of their own ---- */

static int parse_match(struct parse *p, struct bval v, struct stage_spec *out)
{
    out->kind = STAGE_MATCH;
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, 15959, "the match filter must be an expression in an object");
    return match_parse(p->arena, bval_doc(v), &out->match, p->err);
}

static int parse_sort(struct parse *p, struct bval v, struct stage_spec *out)
{
    out->kind = STAGE_SORT;
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, 15973, "the $sort key specification must be an object");
    if (!bval_is_missing(
            bdoc_get(bval_doc(v), "$natural"))) /* the order of records is find's alone: here it is a path */
        return err_set(p->err, 16410,
                       "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    int rc = sort_parse(p->arena, bval_doc(v), &out->sort, p->err);
    if (rc != 0)
        return rc;
    return out->sort.n ? 0 : err_set(p->err, 15976, "$sort stage must have at least one sort key");
}

/* A whole number of 64 bits that is not negative. */
static int parse_amount(struct parse *p, const char *stage, int code, struct bval v, uint64_t *out)
{
    int64_t n;
    const char *shown = bval_shell(p->arena, v);
    if (!bval_is_number(v))
        return err_set(p->err, code, "invalid argument to %s stage: Expected a number in: %s: %s", stage, stage, shown);
    if (!bval_to_i64(v, true, &n))
        return err_set(p->err, code, "invalid argument to %s stage: Expected an integer: %s: %s", stage, stage, shown);
    if (n < 0)
        return err_set(p->err, code, "invalid argument to %s stage: Expected a non-negative number in: %s: %s", stage,
                       stage, shown);
    *out = (uint64_t)n;
    return 0;
}

static int parse_skip(struct parse *p, struct bval v, struct stage_spec *out)
{
    out->kind = STAGE_SKIP;
    return parse_amount(p, "$skip", 5107200, v, &out->n);
}

static int parse_limit(struct parse *p, struct bval v, struct stage_spec *out)
{
    out->kind = STAGE_LIMIT;
    int rc = parse_amount(p, "$limit", 5107201, v, &out->n);
    if (rc == 0 && out->n == 0)
        rc = err_set(p->err, 15958, "the limit must be positive");
    return rc;
}

static int parse_project(struct parse *p, struct bval v, struct stage_spec *out)
{
    out->kind = STAGE_PROJECT;
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, 15969, "$project specification must be an object");
    int rc = bdoc_empty(bval_doc(v)) ? err_set(p->err, 51272, "projection specification must have at least one field")
                                     : project_parse(p->arena, bval_doc(v), &out->project, p->err);
    if (rc != 0)
        err_prefix(p->err, "Invalid $project :: caused by :: ");
    return rc;
}

static int parse_count(struct parse *p, struct bval v, struct stage_spec *out)
{
    uint32_t n;
    out->kind = STAGE_COUNT;
    if (v.type != BSON_TYPE_UTF8)
        return err_set(p->err, 40156, "the count field must be a non-empty string");
    const char *name = bval_str(v, &n);
    if (n == 0)
        return err_set(p->err, 40157, "the count field must be a non-empty string");
    if (name[0] == '$')
        return err_set(p->err, 40158, "the count field cannot be a $-prefixed path");
    if (memchr(name, 0, n))
        return err_set(p->err, 40159, "the count field cannot contain a null byte");
    if (memchr(name, '.', n))
        return err_set(p->err, 40160, "the count field cannot contain '.'");
    out->name = arena_strndup(p->arena, name, n);
    return 0;
}

static int coll_stats_option(struct parse *p, const struct belem *e, struct stage_spec *out)
{
    if (strcmp(e->name, "latencyStats") == 0 || strcmp(e->name, "queryExecStats") == 0)
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "the option '%s' of $collStats is not implemented", e->name);
    bool storage = strcmp(e->name, "storageStats") == 0;
    if (!storage && strcmp(e->name, "count") != 0)
        return err_set(p->err, ERR_IDL_UNKNOWN_FIELD, "BSON field '$collStats.%s' is an unknown field.", e->name);
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, ERR_TYPE_MISMATCH,
                       "BSON field '$collStats.%s' is the wrong type '%s', expected type 'object'", e->name,
                       bval_type_name(e->v.type));
    *(storage ? &out->storage_stats : &out->count) = true;
    struct bval scale = storage ? bdoc_get(bval_doc(e->v), "scale") : BVAL_MISSING;
    int64_t n = 1;
    if (bval_is_missing(scale))
        return 0;
    if (!bval_is_number(scale) || !bval_to_i64(scale, false, &n) || n < 1)
        return err_set(p->err, ERR_BAD_VALUE, "scale has to be a number >= 1, not %s", bval_shell(p->arena, scale));
    out->n = (uint64_t)n;
    return 0;
}

static int parse_coll_stats(struct parse *p, struct bval v, struct stage_spec *out)
{
    struct biter it;
    struct belem e;
    int rc = 0;
    out->kind = STAGE_COLL_STATS;
    out->n = 1;
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, 5447000, "$collStats must take a nested object but found: $collStats: %s",
                       bval_shell(p->arena, v));
    for (biter_init(&it, bval_doc(v)); rc == 0 && biter_next(&it, &e);)
        rc = coll_stats_option(p, &e, out);
    return rc;
}

/* Search needs a service beside the server, here and there. */
static int without_search(struct parse *p, const char *what)
{
    return err_set(
        p->err, ERR_SEARCH_NOT_ENABLED,
        "Using %s requires additional configuration. Please connect to Atlas or an AtlasCLI local deployment "
        "to enable. For more information on how to connect, see "
        "https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.",
        what);
}

static int parse_search(struct parse *p, struct bval v, struct stage_spec *out)
{
    return without_search(p, "$search and $vectorSearch aggregation stages");
}

static int parse_list_search_indexes(struct parse *p, struct bval v, struct stage_spec *out)
{
    return without_search(p, "Atlas Search Database Commands and the $listSearchIndexes aggregation stage");
}

/* ---- the table ---- */

static const struct row {
    const char *name;
    int (*parse)(struct parse *p, struct bval v, struct stage_spec *out); /* NULL: refused by name */
} table[] = {
    {"$addFields", NULL},
    {"$bucket", NULL},
    {"$bucketAuto", NULL},
    {"$changeStream", NULL},
    {"$changeStreamSplitLargeEvent", NULL},
    {"$collStats", parse_coll_stats},
    {"$count", parse_count},
    {"$currentOp", NULL},
    {"$densify", NULL},
    {"$documents", NULL},
    {"$facet", NULL},
    {"$fill", NULL},
    {"$geoNear", NULL},
    {"$graphLookup", NULL},
    {"$group", parse_group},
    {"$indexStats", NULL},
    {"$limit", parse_limit},
    {"$listCatalog", NULL},
    {"$listLocalSessions", NULL},
    {"$listSampledQueries", NULL},
    {"$listSearchIndexes", parse_list_search_indexes},
    {"$listSessions", NULL},
    {"$lookup", NULL},
    {"$match", parse_match},
    {"$merge", NULL},
    {"$out", NULL},
    {"$planCacheStats", NULL},
    {"$project", parse_project},
    {"$queryStats", NULL},
    {"$redact", NULL},
    {"$replaceRoot", NULL},
    {"$replaceWith", NULL},
    {"$sample", NULL},
    {"$search", parse_search},
    {"$searchMeta", parse_search},
    {"$set", NULL},
    {"$setWindowFields", NULL},
    {"$shardedDataDistribution", NULL},
    {"$skip", parse_skip},
    {"$sort", parse_sort},
    {"$sortByCount", NULL},
    {"$unionWith", NULL},
    {"$unset", NULL},
    {"$unwind", NULL},
    {"$vectorSearch", parse_search},
};

static int parse_stage(struct parse *p, struct bval v, struct stage_spec *out, const char **name)
{
    struct biter it;
    struct belem e, second;
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(p->err, ERR_TYPE_MISMATCH, "Each element of the 'pipeline' array must be an object");
    biter_init(&it, bval_doc(v));
    if (!biter_next(&it, &e) || biter_next(&it, &second))
        return err_set(p->err, 40323, "A pipeline stage specification object must contain exactly one field.");
    *name = arena_strndup(p->arena, e.name, e.name_n);
    for (size_t i = 0; i < OV_LEN(table); i++) {
        if (strcmp(table[i].name, e.name) != 0)
            continue;
        if (!table[i].parse)
            return err_set(p->err, ERR_NOT_IMPLEMENTED, "the stage %s is not implemented", e.name);
        return table[i].parse(p, e.v, out);
    }
    return err_set(p->err, 40324, "Unrecognized pipeline stage name: '%s'", e.name);
}

int pipeline_parse(struct arena *a, const uint8_t *array, struct pipeline_spec *out, struct err *err)
{
    struct parse p = {a, err};
    struct biter it;
    struct belem e;
    uint32_t n = 0, i = 0;
    const char *name = NULL;
    for (biter_init(&it, array); biter_next(&it, &e);)
        n++;
    *out = (struct pipeline_spec){0};
    if (n > STAGES_MAX)
        return err_set(err, 7749501, "Pipeline length must be no longer than %d stages.", STAGES_MAX);
    out->stages = arena_zalloc(a, n * sizeof(*out->stages));
    if (!out->stages)
        return err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "the pipeline exceeds the operation's memory limit");
    out->n = n;
    for (biter_init(&it, array); biter_next(&it, &e); i++) {
        int rc = parse_stage(&p, e.v, &out->stages[i], &name);
        if (rc != 0)
            return rc;
        if (i > 0 && out->stages[i].kind == STAGE_COLL_STATS)
            return err_set(err, 40602, "%s is only valid as the first stage in a pipeline", name);
        if (i == 0)
            out->first_name = name;
    }
    return 0;
}
