/* find's projection (inclusion, exclusion) and sort specifications. Thread: parsed ones are immutable. */
#ifndef OV_PROJECT_H
#define OV_PROJECT_H

#include "protocol/bson/bson.h"
#include "server/query/match/match.h"

struct project;
/* NULL in *out for an empty projection. Errors: 31253/31254 mixing, 31249/31250 collisions; $slice, $elemMatch, positional, expressions: refused by
 * name with ERR_NOT_IMPLEMENTED until they are there. */
OV_MUST_CHECK int project_parse(struct arena *a, const uint8_t *spec, struct project **out, struct err *err);
/* Appends the projected document to out. */
void project_apply(const struct project *p, const uint8_t *doc, struct buf *out);

struct sort_spec {
    struct bpath *paths;
    int8_t *dirs; /* 1 or -1 */
    uint32_t n;
    int8_t natural; /* {$natural: 1 | -1}: n is 0 */
};
/* Errors: 15974 / 15975 in find's words (ERR_BAD_VALUE "Illegal key in $sort specification"). n 0 and natural 0 for an empty one. */
OV_MUST_CHECK int sort_parse(struct arena *a, const uint8_t *spec, struct sort_spec *out, struct err *err);
/* Appends a byte string whose memcmp order is the sort order of documents (array keys: smallest for 1, largest for -1; fields below one array come
 * from the same element). sort_key_checked: ERR_BAD_VALUE where two fields go through different arrays, as the real server; nothing is appended
 * then. sort_key takes such fields one by one. */
void sort_key(const struct sort_spec *s, const uint8_t *doc, struct buf *out);
OV_MUST_CHECK int sort_key_checked(const struct sort_spec *s, const uint8_t *doc, struct buf *out, struct err *err);

#endif
