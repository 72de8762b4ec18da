/* Does an index give the asked order? Fields that the bounds hold at one value may stand anywhere; the rest of the order has to be fields of
 * the index in a row, all forward or all backward. Lists of points before them ($in) are merged by what follows them.
 *
 * Multikey fields: an array sorts by its smallest (or largest) element. The first key that a scan meets is that one only if nothing keeps the
 * scan from some of the elements: no bounds on the field, nor on one that goes through the same array. */
#include "server/query/plan/plan_private.h"

bool choice_shares_array(const struct choice *c, uint32_t i, uint32_t j)
{
    const struct bpath_part *p = &c->def->paths[i].parts[0], *q = &c->def->paths[j].parts[0];
    return (c->multikey >> i & 1) && (c->multikey >> j & 1) && p->n == q->n && memcmp(p->s, q->s, p->n) == 0;
}

static bool constant(const struct choice *c, uint32_t field)
{
    return field < c->n_points && c->fields[field].n == 1 && !(c->multikey >> field & 1);
}

static bool fixed(const struct choice *c, const struct bpath *path)
{
    for (uint32_t i = 0; i < c->n_points; i++)
        if (constant(c, i) && path_equal(&c->def->paths[i], path))
            return true;
    return false;
}

static bool can_order(const struct choice *c, uint32_t field)
{
    if (path_numeric(&c->def->paths[field])) /* the order looks into documents of an array too */
        return false;
    if (c->def->sparse && (c->multikey >> field & 1)) /* elements without the field sort as null, and have no keys */
        return false;
    for (uint32_t i = 0; i < c->n_bounded; i++)
        if (!c->fields[i].full && choice_shares_array(c, i, field))
            return false;
    return true;
}

void choice_order(struct choice *c, const struct sort_spec *sort)
{
    int dir = 0;
    uint32_t i = 0, s = 0;
    bool merge = false;
    c->sorted = c->reverse = c->merge = false;
    while (s < sort->n) {
        if (fixed(c, &sort->paths[s])) {
            s++;
            continue;
        }
        if (i == c->def->n_fields)
            return;
        if (path_equal(&c->def->paths[i], &sort->paths[s])) {
            int d = c->def->dirs[i] * sort->dirs[s];
            if (!can_order(c, i) || (dir && d != dir))
                return;
            if (!dir)
                c->merge_field = i;
            dir = d;
            s++;
        } else if (i >= c->n_points) {
            return;
        } else if (c->fields[i].n > 1) {
            if (dir)
                return;
            merge = true;
        }
        i++;
    }
    merge &= dir != 0 && c->n_intervals > 1;
    if (merge && c->n_intervals > PLAN_MERGE_MAX)
        return;
    c->sorted = true;
    c->reverse = dir < 0;
    c->merge = merge;
}
