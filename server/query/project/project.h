/* Projections (inclusion, exclusion, the operators of find) and sort specifications. Thread: parsed ones are immutable. */
#ifndef OV_PROJECT_H
#define OV_PROJECT_H

#include "protocol/bson/bson.h"
#include "server/query/match/match.h"

struct project;
/* The projection of a $project stage; NULL in *out for an empty one. `spec` and the arena live as long as it.
 * Errors: 31253/31254 mixing, 31249/31250 collisions, 31324 positional; computed values are refused by name with ERR_NOT_IMPLEMENTED. */
OV_MUST_CHECK int project_parse(struct arena *a, const uint8_t *spec, struct project **out, struct err *err);
/* The same in the language of find: $slice means the projection operator, and $elemMatch and the positional operator are there, which
 * gives the element that `filter` (never NULL, the find's own) matches. */
OV_MUST_CHECK int project_parse_find(struct arena *a, const uint8_t *spec, const struct match *filter,
                                     struct project **out, struct err *err);
bool project_is_positional(const struct project *p);
/* Appends the projected document to out; nothing on an error. Errors: 51246 and 51247, of the positional operator alone. */
OV_MUST_CHECK int project_apply(const struct project *p, const uint8_t *doc, struct buf *out, struct err *err);

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
