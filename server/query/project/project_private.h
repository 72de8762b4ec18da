/* The tree of a projection: {a: 1, b: {c: 1}} is a root with the leaf a and the inner node b. */
#ifndef OV_PROJECT_PRIVATE_H
#define OV_PROJECT_PRIVATE_H

#include "server/query/project/project.h"

#define SORT_FIELDS_MAX 32
#define NODE_TABLE_FROM 8 /* children from which on a node has a hash table of them */

/* What a leaf does, besides being included or excluded. */
enum node_op { NODE_PLAIN, NODE_SLICE, NODE_ELEM_MATCH, NODE_POSITIONAL };

struct node {
    const char *name;
    uint32_t name_n;
    uint32_t n_children;          /* 0: a leaf */
    struct node *children, *last; /* list in the order of the specification */
    struct node *next;
    struct node **table; /* of table_size places, by name; NULL while there are few children */
    uint32_t table_size; /* a power of two, over twice n_children */
    struct node *up;     /* the parent */
    enum node_op op;
    bool has_skip; /* NODE_SLICE: [skip, limit] */
    int32_t skip, limit;
    const struct match *elem; /* NODE_ELEM_MATCH: {name: {$elemMatch: …}} */
    bool positional;          /* a NODE_POSITIONAL, or on the way to it */
};

struct project {
    struct node root;
    bool inclusion;
    bool elems;                 /* there are leaves NODE_ELEM_MATCH, all below the root */
    const struct match *filter; /* find's */
    bool positional;
};

struct node *node_find(const struct node *parent, const char *name, uint32_t n); /* or NULL */

/* ---- operators of find on a document: operators.c ---- */

struct applying {
    const struct project *p;
    const uint8_t *doc;
    struct buf *out;
    struct err *err;
    uint32_t arrays; /* how many arrays the walk is in */
    uint32_t nested; /* and how many of them are elements of one */
    int rc;          /* an error has been set */
};
/* Appends the slice that `node` says of an array: a value without its head. */
void apply_slice(struct applying *ap, const struct node *node, const uint8_t *array);
/* Appends the field with the one element that matches, or nothing. */
void apply_elem_match(struct applying *ap, const struct node *node);
/* Leaves of the array that was written at out->p + start only the element at the filter's index. */
void apply_positional(struct applying *ap, size_t start);

#endif
