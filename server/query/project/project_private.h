/* The tree of a projection: {a: 1, b: {c: 1}} is a root with the leaf a and the inner node b. */
#ifndef OV_PROJECT_PRIVATE_H
#define OV_PROJECT_PRIVATE_H

#include "server/query/project/project.h"

#define SORT_FIELDS_MAX 32
#define NODE_TABLE_FROM 8 /* children from which on a node has a hash table of them */

struct node {
    const char *name;
    uint32_t name_n;
    uint32_t n_children;          /* 0: a leaf */
    struct node *children, *last; /* list in the order of the specification */
    struct node *next;
    struct node **table; /* of table_size places, by name; NULL while there are few children */
    uint32_t table_size; /* a power of two, over twice n_children */
};

struct project {
    struct node root;
    bool inclusion;
};

struct node *node_find(const struct node *parent, const char *name, uint32_t n); /* or NULL */

#endif
