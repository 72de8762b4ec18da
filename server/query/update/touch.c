/* Can an update change what an index on a path holds? Array indexes and positional parts do not count on either side. */
#include "server/query/update/update_private.h"

/* The next part of *s that is a name; false at the end. */
static bool next_name(const char **s, struct part *out)
{
    while (**s) {
        size_t n = strcspn(*s, ".");
        *out = part_of(*s, (uint32_t)n);
        *s += n + ((*s)[n] == '.');
        if (out->kind == PART_NAME && out->index == UPDATE_NO_INDEX)
            return true;
    }
    return false;
}

static bool overlap(const char *a, const char *b)
{
    struct part pa, pb;
    for (;;) {
        if (!next_name(&a, &pa) || !next_name(&b, &pb))
            return true; /* one is the other, or inside it */
        if (pa.n != pb.n || memcmp(pa.s, pb.s, pa.n) != 0)
            return false;
    }
}

bool update_may_touch(const struct update *u, const char *index_path)
{
    if (u->replacement || strchr(index_path, '$'))
        return true;
    for (uint32_t i = 0; i < u->n_leaves; i++)
        if (overlap(u->leaves[i].path, index_path))
            return true;
    return false;
}
