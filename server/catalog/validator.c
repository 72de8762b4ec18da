/* The validator of a definition: its filter is parsed once, into the definition's arena, where all writers share it. */
#include "server/catalog/catalog_private.h"
#include "server/query/match/match.h"

static bool is(struct bval v, const char *text)
{
    uint32_t n;
    return v.type == BSON_TYPE_UTF8 && strcmp(bval_str(v, &n), text) == 0;
}

int definition_validator(struct collection *coll, struct err *err)
{
    struct bval filter = bdoc_get(coll->options, "validator"), level = bdoc_get(coll->options, "validationLevel");
    struct match *m;
    if (filter.type != BSON_TYPE_DOCUMENT || bdoc_empty(bval_doc(filter)))
        return 0;
    int rc = match_parse(coll->arena, bval_doc(filter), &m, err);
    if (rc != 0)
        return rc;
    coll->validator_moderate = is(level, "moderate");
    coll->validator_warns = is(bdoc_get(coll->options, "validationAction"), "warn");
    coll->validator = is(level, "off") || m->op == MATCH_TRUE ? NULL : m;
    return 0;
}
