/* Paths as a tree. Built from the sorted list in one pass, so that an update of a million fields costs n log n. */
#include "server/query/update/update_private.h"

#include <stdlib.h>

struct part part_of(const char *s, uint32_t n)
{
    struct part p = {.s = s, .n = n, .index = UPDATE_NO_INDEX, .kind = PART_NAME};
    if (n == 0)
        return p;
    if (s[0] == '$') {
        if (n == 1)
            p.kind = PART_POSITIONAL;
        else if (s[1] == '[' && s[n - 1] == ']')
            p.kind = n == 3 ? PART_ALL : PART_FILTER;
        return p;
    }
    if (s[0] == '0' && n > 1)
        return p;
    uint64_t v = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return p;
        if (v < UPDATE_HUGE_INDEX)
            v = v * 10 + (uint64_t)(s[i] - '0');
    }
    p.index = v < UPDATE_HUGE_INDEX ? (uint32_t)v : UPDATE_HUGE_INDEX;
    return p;
}

/* Digits by value (the longer is the larger), before names by bytes. */
int part_cmp(const struct part *a, const struct part *b)
{
    bool da = a->index != UPDATE_NO_INDEX, db = b->index != UPDATE_NO_INDEX;
    if (da != db)
        return da ? -1 : 1;
    if (da && a->n != b->n)
        return a->n < b->n ? -1 : 1;
    uint32_t n = OV_MIN(a->n, b->n);
    int c = memcmp(a->s, b->s, n);
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

static int place_cmp(const void *x, const void *y)
{
    const struct place *a = x, *b = y;
    for (uint32_t i = 0; i < a->n_parts && i < b->n_parts; i++) {
        int c = part_cmp(&a->parts[i], &b->parts[i]);
        if (c)
            return c;
    }
    if (a->n_parts != b->n_parts)
        return a->n_parts < b->n_parts ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static uint32_t shared_parts(const struct place *a, const struct place *b)
{
    uint32_t i = 0;
    while (i < a->n_parts && i < b->n_parts && part_cmp(&a->parts[i], &b->parts[i]) == 0)
        i++;
    return i;
}

static bool is_array_part(const struct part *p)
{
    return p->kind == PART_ALL || p->kind == PART_FILTER;
}

/* Length in bytes of the first n parts of the path. */
static uint32_t prefix_bytes(const struct place *p, uint32_t n)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += p->parts[i].n + 1;
    return bytes ? bytes - 1 : 0;
}

/* In sorted order all that has a path as its prefix follows it at once: neighbours show every conflict. The one that the client's order
 * meets first is reported. */
static int check_conflicts(const struct place *places, uint32_t n, struct err *err)
{
    const struct place *later = NULL;
    uint32_t at = 0, best = UINT32_MAX;

    for (uint32_t i = 1; i < n; i++) {
        const struct place *a = &places[i - 1], *b = &places[i];
        uint32_t shared = shared_parts(a, b);
        bool conflict = shared == a->n_parts || (is_array_part(&a->parts[shared]) != is_array_part(&b->parts[shared]));
        const struct place *second = a->order > b->order ? a : b;
        if (conflict && second->order < best) {
            best = second->order;
            later = second;
            at = prefix_bytes(second, shared);
        }
    }
    if (!later)
        return 0;
    return err_set(err, ERR_CONFLICTING_UPDATE_OPERATORS, "Updating the path '%s' would create a conflict at '%.*s'",
                   later->path, (int)at, later->path);
}

static int build(struct arena *a, const struct place *places, uint32_t n, uint32_t depth, struct node *node,
                 struct err *err)
{
    if (n == 1 && places[0].n_parts == depth) {
        node->leaf = places[0].leaf;
        node->path = places[0].path;
        return 0;
    }
    uint32_t groups = 0;
    for (uint32_t i = 0; i < n; i++)
        groups += i == 0 || part_cmp(&places[i - 1].parts[depth], &places[i].parts[depth]) != 0;
    node->children = arena_zalloc(a, groups * sizeof(*node->children));
    if (!node->children)
        return out_of_memory(err);
    for (uint32_t i = 0; i < n;) {
        uint32_t end = i + 1;
        while (end < n && part_cmp(&places[i].parts[depth], &places[end].parts[depth]) == 0)
            end++;
        struct node *child = &node->children[node->n++];
        child->part = places[i].parts[depth];
        int rc = build(a, places + i, end - i, depth + 1, child, err);
        if (rc)
            return rc;
        i = end;
    }
    return 0;
}

int tree_build(struct arena *a, struct place *places, uint32_t n, struct node *root, struct err *err)
{
    memset(root, 0, sizeof(*root));
    if (n == 0)
        return 0;
    if (n > 1)
        qsort(places, n, sizeof(*places), place_cmp);
    int rc = check_conflicts(places, n, err);
    return rc ? rc : build(a, places, n, 0, root, err);
}

static const struct node *search(const struct node *n, const struct part *part)
{
    uint32_t lo = 0, hi = n->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = part_cmp(&n->children[mid].part, part);
        if (c == 0)
            return &n->children[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const struct node *tree_child(const struct node *n, const char *name, uint32_t name_n)
{
    if (n->n > 8) {
        struct part part = part_of(name, name_n);
        return search(n, &part);
    }
    for (uint32_t i = 0; i < n->n; i++)
        if (n->children[i].part.n == name_n && memcmp(n->children[i].part.s, name, name_n) == 0)
            return &n->children[i];
    return NULL;
}

const struct node *tree_child_at(const struct node *n, uint32_t index)
{
    if (n->n > 8) {
        char scratch[12];
        const char *s = bw_index(index, scratch);
        struct part part = {.s = s, .n = (uint32_t)strlen(s), .index = index, .kind = PART_NAME};
        return search(n, &part);
    }
    for (uint32_t i = 0; i < n->n; i++)
        if (n->children[i].part.index == index)
            return &n->children[i];
    return NULL;
}
