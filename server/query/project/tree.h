/* Building the tree of a projection. */
#ifndef OV_PROJECT_TREE_H
#define OV_PROJECT_TREE_H

#include "server/query/project/project_private.h"

/* A new last child; its name is borrowed. NULL when the arena's limit is reached. */
struct node *node_add(struct arena *a, struct node *parent, const char *name, uint32_t n);
void node_remove(struct node *parent, const char *name, uint32_t n);

#endif
