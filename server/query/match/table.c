/* Every operator: its name, how it is parsed, how a value is tested. One row and one function each; the operators that this
 * server knows but does not have are rows too, so that they are refused by name. */
#include "server/query/match/match_private.h"

static const struct match_operator operators[] = {
    {"$eq", match_parse_compare},
    {"$gt", match_parse_compare},
    {"$gte", match_parse_compare},
    {"$lt", match_parse_compare},
    {"$lte", match_parse_compare},
    {"$ne", match_parse_ne},
    {"$in", match_parse_in},
    {"$nin", match_parse_nin},
    {"$not", match_parse_not},
    {"$exists", match_parse_exists},
    {"$type", match_parse_type},
    {"$size", match_parse_size},
    {"$all", match_parse_all},
    {"$elemMatch", match_parse_elem},
    {"$mod", match_parse_mod},
    {"$regex", match_parse_regex},
    {"$options", match_parse_regex},
    {"$bitsAllSet", match_parse_bits},
    {"$bitsAllClear", match_parse_bits},
    {"$bitsAnySet", match_parse_bits},
    {"$bitsAnyClear", match_parse_bits},
    {"$where", match_parse_where},
    /* not built */
    {"$geoWithin", match_parse_refused},
    {"$within", match_parse_refused},
    {"$geoIntersects", match_parse_refused},
    {"$near", match_parse_refused},
    {"$nearSphere", match_parse_refused},
    {"$geoNear", match_parse_refused},
    {"$maxDistance", match_parse_refused},
    {"$minDistance", match_parse_refused},
};

static const struct match_operator top[] = {
    {"$and", match_parse_tree},
    {"$or", match_parse_tree},
    {"$nor", match_parse_tree},
    {"$comment", match_parse_comment},
    {"$alwaysTrue", match_parse_constant},
    {"$alwaysFalse", match_parse_constant},
    {"$ref", match_parse_dbref},
    {"$id", match_parse_dbref},
    {"$db", match_parse_dbref},
    {"$jsonSchema", match_parse_schema},
    /* not built */
    {"$expr", match_parse_refused},
    {"$where", match_parse_refused},
    {"$text", match_parse_refused},
    {"$sampleRate", match_parse_refused},
};

static const struct match_operator *find(const struct match_operator *t, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(t[i].name, name) == 0)
            return &t[i];
    return NULL;
}

const struct match_operator *match_operator_find(const char *name)
{
    return find(operators, OV_LEN(operators), name);
}

const struct match_operator *match_top_find(const char *name)
{
    return find(top, OV_LEN(top), name);
}

const struct match_test match_tests[] = {
    [MATCH_EQ] = {match_test_eq, true},         [MATCH_LT] = {match_test_compare, true},
    [MATCH_LTE] = {match_test_compare, true},   [MATCH_GT] = {match_test_compare, true},
    [MATCH_GTE] = {match_test_compare, true},   [MATCH_IN] = {match_test_in, true},
    [MATCH_EXISTS] = {match_test_exists, true}, [MATCH_TYPE] = {match_test_type, true},
    [MATCH_SIZE] = {match_test_size, false},    [MATCH_ELEM_MATCH] = {match_test_elem, false},
    [MATCH_MOD] = {match_test_mod, true},       [MATCH_BITS] = {match_test_bits, true},
    [MATCH_REGEX] = {match_test_regex, true},
};
