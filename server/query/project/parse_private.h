/* Parsing a projection: what its files share. */
#ifndef OV_PROJECT_PARSE_PRIVATE_H
#define OV_PROJECT_PARSE_PRIVATE_H

#include "server/query/project/tree.h"

enum kind { KIND_OPEN, KIND_INCLUSION, KIND_EXCLUSION };

struct parse {
    struct arena *a;
    struct err *err;
    struct project *out;
    bool find; /* else a $project stage */
    enum kind kind;
    bool id_given;      /* _id or a field of it */
    bool id_in, id_out; /* _id as a whole */
    bool has_slice, has_elem, has_positional, has_meta;
    struct err later; /* the first error that parsing meets only once everything else is right */
};

int project_no_memory(struct err *err);
/* A new leaf at a dotted path below `at`; 31249 and 31250 where it collides, the errors of field paths. */
OV_MUST_CHECK int project_add(struct parse *p, struct node *at, const char *text, struct node **leaf);
/* Inclusion or exclusion, as the field `name` says: 31253, 31254 where it was the other. */
OV_MUST_CHECK int project_agree(struct parse *p, enum kind kind, const char *name);

/* ---- operators.c's other half: parse_operators.c ---- */

/* The field {e->name: {op: …}}, one operator alone; its path has been checked. */
OV_MUST_CHECK int project_parse_operator(struct parse *p, struct node *at, const struct belem *e,
                                         const struct belem *op);
/* The field {"path.$": true}. */
OV_MUST_CHECK int project_parse_positional(struct parse *p, struct node *at, const struct belem *e);
/* The field {e->name: value} with a value that is neither a number nor a document. */
OV_MUST_CHECK int project_parse_literal(struct parse *p, struct node *at, const struct belem *e);

/* Is there an expression of this name? names.c */
bool project_is_expression(const char *name);

#endif
