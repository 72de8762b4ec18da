/* What a filter pins by equality: for look-ups by _id and for the fields of an upserted document. */
#include "server/query/match/match_private.h"

bool match_equality(const struct match *m, const char *path, struct bval *out)
{
    if (m->op == MATCH_EQ && m->path.text && strcmp(m->path.text, path) == 0) {
        *out = m->value;
        return true;
    }
    if (m->op == MATCH_AND)
        for (uint32_t i = 0; i < m->n_children; i++)
            if (match_equality(m->children[i], path, out))
                return true;
    return false;
}

/* One-branch $or, and $in and $all of one value, are no longer there: the parser has made equalities of them. */
void match_equalities(const struct match *m, void (*fn)(void *arg, const struct bpath *path, struct bval v), void *arg)
{
    if (m->op == MATCH_EQ && m->path.text)
        fn(arg, &m->path, m->value);
    else if (m->op == MATCH_AND)
        for (uint32_t i = 0; i < m->n_children; i++)
            match_equalities(m->children[i], fn, arg);
}
