/* Filters: a query document parsed once into a tree, then evaluated over raw BSON. Operators: table.c, one row and one function each.
 * Public tree: the planner reads it. Thread: a parsed tree is immutable and may be shared. */
#ifndef OV_MATCH_H
#define OV_MATCH_H

#include "protocol/bson/bson.h"

/* clang-format off */
enum match_op {
    MATCH_AND, MATCH_OR, MATCH_NOR, MATCH_NOT,              /* children */
    MATCH_EQ, MATCH_LT, MATCH_LTE, MATCH_GT, MATCH_GTE,     /* path, value */
    MATCH_IN,                                               /* path, values (sorted, unique) */
    MATCH_EXISTS,                                           /* path, flag: true or false */
    MATCH_TRUE, MATCH_FALSE,
    MATCH_TYPE, MATCH_SIZE, MATCH_MOD, MATCH_ELEM_MATCH, MATCH_REGEX, MATCH_BITS, /* path, private operands */
    MATCH_SCHEMA, /* $jsonSchema on the whole document: no path */
    MATCH_VALUE_IS, MATCH_VALUE_OBJECT, /* roots of match_parse_value: equal to `value`; a document that children[0] accepts */
};
/* clang-format on */
/* $ne is NOT(EQ), $nin is NOT(IN); an implicit and of several fields is one AND. Folded while parsing: a list of one value is
 * EQ, an $or of equalities of one field is an IN, regexes in $in are branches of an OR beside the IN, $all is an AND; nested ANDs and ORs are one (unless huge); AND, OR and NOT have no
 * TRUE or FALSE below them. MATCH_REGEX: `value` is the regex. */

struct match {
    enum match_op op;
    struct bpath path;   /* of leaf nodes */
    struct bval value;   /* operand, in the parse arena */
    struct bval *values; /* MATCH_IN */
    uint32_t n_values;
    bool flag;               /* MATCH_EXISTS; of an OR: it stands for one $in */
    struct match **children; /* MATCH_AND … MATCH_NOT */
    uint32_t n_children;
    const void *priv; /* operands of the later operators */
};

struct match_result {
    int32_t array_index; /* index in the (outermost) array that the last leaf under AND matched at, for the positional
                                 operator; or -1. Last in the order of the real server, which asks its leaves sorted by
                                 operator, then path */
    const struct match *leaf; /* the one that it is from */
};

/* Parses a filter; the tree and copies of all operands live in `a`. An empty filter gives MATCH_TRUE.
 * Errors (the real server's words): ERR_BAD_VALUE unknown operator / $in needs an array …; an operator that is known but not there yet is
 * refused by name with ERR_NOT_IMPLEMENTED. */
OV_MUST_CHECK int match_parse(struct arena *a, const uint8_t *filter, struct match **out, struct err *err);
/* The same where operators that need more than the document have no place (in a projection): $where, $text, $near, $expr and $jsonSchema are
 * told so, in the real server's words. */
OV_MUST_CHECK int match_parse_plain(struct arena *a, const uint8_t *filter, struct match **out, struct err *err);
/* Does the document match? `r` may be NULL. Allocates nothing. */
bool match_doc(const struct match *m, const uint8_t *doc, struct match_result *r);
/* Does one value (an array element for $pull) match `m` parsed from a condition document {$gt: 1} or a sub-filter? */
OV_MUST_CHECK int match_parse_value(struct arena *a, struct bval cond, struct match **out, struct err *err);
bool match_value(const struct match *m, struct bval v);
/* Of a MATCH_REGEX: what every string that it matches begins with, for index bounds; false if that is not known. *exact: strings
 * that begin so match, without trying. (The regex also matches a stored regex equal to `value`.) Borrowed from the tree. */
bool match_regex_prefix(const struct match *m, struct slice *prefix, bool *exact);
/* The value that the filter pins `path` to by equality ($eq or {path: v}, at the top or under $and), for upserts and _id look-ups. */
bool match_equality(const struct match *m, const char *path, struct bval *out);
/* Calls fn(path, value) for each equality that an upsert takes over: top level, $and, one-branch $or, $in/$all of one value. */
void match_equalities(const struct match *m, void (*fn)(void *arg, const struct bpath *path, struct bval v), void *arg);

#endif
