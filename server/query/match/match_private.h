/* What the parser, the evaluator and the operator files share. */
#ifndef OV_MATCH_PRIVATE_H
#define OV_MATCH_PRIVATE_H

#include "server/base/arena.h"
#include "server/query/match/match.h"

/* Nesting of a filter, so that neither parsing nor evaluation outgrows the stack; a checked document (BSON_DEPTH_MAX) nests
 * less. */
#define MATCH_DEPTH_MAX   200
#define MATCH_NUMERIC_MAX 10   /* numeric parts of one path */
#define MATCH_SHOW_MAX    1000 /* bytes of a name or value of the client's in a message */
#define MATCH_MERGE_MAX \
    1024 /* children that move up when nested nodes are merged; beyond that copying would cost too much */
#define MATCH_REGEX_JIT   256         /* regexes of one filter that are compiled to machine code */
#define MATCH_REGEX_BYTES (64u << 20) /* compiled regexes of one filter */

/* ---- parsing: parse.c ---- */

struct parser {
    struct arena *a;
    struct err *err;
    int depth;
    bool plain; /* match_parse_plain */
    uint32_t n_regexes;
    size_t regex_bytes; /* held outside of the arena */
};

/* Children of a node that is being built. */
struct match_list {
    struct match **p;
    uint32_t n, cap;
};

/* One operator under a field, {path: {$name: e}}. `path` is NULL where the predicate is about a bare value ($elemMatch, $pull).
 * `sub` is the whole operator document, for $regex beside $options. Appends what it parsed to `out`; 0 or an error. */
typedef int (*match_parse_fn)(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                              struct match_list *out);
struct match_operator {
    const char *name;
    match_parse_fn parse;
};
const struct match_operator *match_operator_find(const char *name); /* under a field; NULL if unknown: table.c */
const struct match_operator *match_top_find(const char *name);      /* in place of a field; NULL if unknown: table.c */

/* New nodes; NULL with an error set when the arena is full. Values are copied into the arena. */
struct match *match_node(struct parser *ps, enum match_op op);
struct match *match_leaf(struct parser *ps, enum match_op op, const char *path);
struct match *match_leaf_value(struct parser *ps, enum match_op op, const char *path, struct bval v);
OV_MUST_CHECK int match_push(struct parser *ps, struct match_list *l,
                             struct match *m); /* m may be NULL: an error is set */
OV_MUST_CHECK int match_copy_value(struct parser *ps, struct bval v, struct bval *out);
int match_full(struct parser *ps); /* the arena's limit is reached */

/* The list as one node: constants are folded, nested nodes of the same kind merged, a single child stands for itself. */
struct match *match_and(struct parser *ps, const struct match_list *l);
struct match *match_or(struct parser *ps, const struct match_list *l);
struct match *match_not(struct parser *ps, struct match *child);

/* A whole filter document; the operators of one field; {path: v} without an operator. */
OV_MUST_CHECK int match_parse_filter(struct parser *ps, const uint8_t *filter, struct match **out);
OV_MUST_CHECK int match_parse_operators(struct parser *ps, const char *path, const uint8_t *sub,
                                        struct match_list *out);
OV_MUST_CHECK int match_parse_implicit(struct parser *ps, const char *path, struct bval v, struct match_list *out);

/* Does `v` look like {$op: …}? A DBRef ($ref and $id; with `incomplete` any of $ref, $id, $db) is a value. */
bool match_is_operators(struct bval v, bool incomplete);

/* `e` as the server's messages show it: name: value. */
const char *match_show(struct parser *ps, const struct belem *e);

/* Integral operands. The messages are the server's, behind `prefix`. */
OV_MUST_CHECK int match_operand_i64(struct parser *ps, const struct belem *e, int code, const char *prefix,
                                    int64_t *out);
OV_MUST_CHECK int match_operand_count(struct parser *ps, const struct belem *e, int code, const char *prefix,
                                      int64_t *out);

/* ---- operators, one file a family ---- */

int match_parse_compare(struct parser *, const char *, const struct belem *, const uint8_t *,
                        struct match_list *); /* compare.c */
int match_parse_ne(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_in(struct parser *, const char *, const struct belem *, const uint8_t *,
                   struct match_list *); /* in.c */
int match_parse_nin(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
/* Two or more equalities of one field, and nothing else, as one $in in *out; NULL where the list is something else. */
OV_MUST_CHECK int match_in_of(struct parser *ps, const struct match_list *l, struct match **out);
int match_parse_tree(struct parser *, const char *, const struct belem *, const uint8_t *,
                     struct match_list *); /* logical.c */
int match_parse_not(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_comment(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_constant(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_dbref(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_refused(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_where(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_exists(struct parser *, const char *, const struct belem *, const uint8_t *,
                       struct match_list *); /* element.c */
int match_parse_type(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_size(struct parser *, const char *, const struct belem *, const uint8_t *,
                     struct match_list *); /* array.c */
int match_parse_all(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_elem(struct parser *, const char *, const struct belem *, const uint8_t *, struct match_list *);
int match_parse_mod(struct parser *, const char *, const struct belem *, const uint8_t *,
                    struct match_list *); /* number.c */
int match_parse_bits(struct parser *, const char *, const struct belem *, const uint8_t *,
                     struct match_list *); /* bits.c */
int match_parse_regex(struct parser *, const char *, const struct belem *, const uint8_t *,
                      struct match_list *); /* regex.c */
/* The literal that an anchored pattern begins with, into `out` (as long as the pattern); its length, 0 if there is none.
 * *exact: there is nothing behind it. regex_prefix.c */
size_t match_prefix_of(const char *pattern, const char *flags, char *out, bool *exact);
int match_regex_literal(struct parser *ps, const char *path, struct bval v, struct match_list *out);

int match_parse_schema(struct parser *, const char *, const struct belem *, const uint8_t *,
                       struct match_list *); /* schema_parse.c */

/* Types as bits, and by their aliases (0: unknown). element.c */
uint32_t match_type_bit(uint8_t type);
uint32_t match_type_alias(const char *name, uint32_t n);

/* ---- evaluation: eval.c ---- */

/* Does one value that the path reached satisfy the leaf? `v` may be missing. Only $elemMatch uses `r`. */
typedef bool (*match_test_fn)(const struct match *m, struct bval v, struct match_result *r);
struct match_test {
    match_test_fn test;
    bool expand; /* an array at the end of the path is tried element by element, then whole; else whole only */
};
extern const struct match_test match_tests[]; /* by enum match_op; NULL for inner nodes: table.c */

bool match_test_compare(const struct match *m, struct bval v, struct match_result *r);
bool match_test_eq(const struct match *m, struct bval v, struct match_result *r);
bool match_test_in(const struct match *m, struct bval v, struct match_result *r);
bool match_test_exists(const struct match *m, struct bval v, struct match_result *r);
bool match_test_type(const struct match *m, struct bval v, struct match_result *r);
bool match_test_size(const struct match *m, struct bval v, struct match_result *r);
bool match_test_elem(const struct match *m, struct bval v, struct match_result *r);
bool match_test_mod(const struct match *m, struct bval v, struct match_result *r);
bool match_test_bits(const struct match *m, struct bval v, struct match_result *r);
bool match_test_regex(const struct match *m, struct bval v, struct match_result *r);

bool match_regex_text(const struct match *m, const char *s, uint32_t n); /* of a MATCH_REGEX, on a text */
bool match_test_schema(const struct match *m, const uint8_t *doc);       /* schema_eval.c */

/* A tree whose leaves have no path, on one value. `expand`: arrays are tried element by element, as under a field. */
bool match_bare(const struct match *m, struct bval v, bool expand);

static inline bool match_is_object(struct bval v)
{
    return v.type == BSON_TYPE_DOCUMENT || v.type == BSON_TYPE_ARRAY;
}

#endif
