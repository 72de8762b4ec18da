/* Children of a node by name: a list while there are few, a hash table when there are many, so that neither a specification of a hundred
 * thousand fields nor a wide document makes work that grows with the square. */
#include "server/query/project/tree.h"
#include "server/query/project/project_private.h"

#include <xxhash.h>

static uint32_t place(const struct node *parent, const char *name, uint32_t n)
{
    return (uint32_t)XXH3_64bits(name, n) & (parent->table_size - 1);
}

struct node *node_find(const struct node *parent, const char *name, uint32_t n)
{
    if (!parent->table) {
        for (struct node *c = parent->children; c; c = c->next)
            if (c->name_n == n && memcmp(c->name, name, n) == 0)
                return c;
        return NULL;
    }
    for (uint32_t i = place(parent, name, n); parent->table[i]; i = (i + 1) & (parent->table_size - 1)) {
        struct node *c = parent->table[i];
        if (c->name_n == n && memcmp(c->name, name, n) == 0)
            return c;
    }
    return NULL;
}

static void table_put(struct node *parent, struct node *child)
{
    uint32_t i = place(parent, child->name, child->name_n);
    while (parent->table[i])
        i = (i + 1) & (parent->table_size - 1);
    parent->table[i] = child;
}

static bool table_grow(struct arena *a, struct node *parent)
{
    uint32_t size = parent->table_size ? parent->table_size * 2 : NODE_TABLE_FROM * 4;
    struct node **table = arena_zalloc(a, size * sizeof(*table));
    if (!table)
        return false;
    parent->table = table;
    parent->table_size = size;
    for (struct node *c = parent->children; c; c = c->next)
        table_put(parent, c);
    return true;
}

struct node *node_add(struct arena *a, struct node *parent, const char *name, uint32_t n)
{
    struct node *c = arena_zalloc(a, sizeof(*c));
    if (!c)
        return NULL;
    c->name = name;
    c->name_n = n;
    c->up = parent;
    if (parent->last)
        parent->last->next = c;
    else
        parent->children = c;
    parent->last = c;
    parent->n_children++;
    if (parent->n_children * 2 > parent->table_size && parent->n_children > NODE_TABLE_FROM)
        return table_grow(a, parent) ? c : NULL;
    if (parent->table)
        table_put(parent, c);
    return c;
}

void node_remove(struct node *parent, const char *name, uint32_t n)
{
    struct node kept = *parent;
    struct node *next;
    parent->children = parent->last = NULL;
    parent->n_children = 0;
    for (struct node *c = kept.children; c; c = next) {
        next = c->next;
        if (c->name_n == n && memcmp(c->name, name, n) == 0)
            continue;
        c->next = NULL;
        if (parent->last)
            parent->last->next = c;
        else
            parent->children = c;
        parent->last = c;
        parent->n_children++;
    }
    if (parent->table) {
        memset(parent->table, 0, parent->table_size * sizeof(*parent->table));
        for (struct node *c = parent->children; c; c = c->next)
            table_put(parent, c);
    }
}
