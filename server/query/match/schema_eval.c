/* Does a value obey a schema? Keywords say nothing about values of other types than their own. */
#include <stdlib.h>

#include "server/query/match/schema.h"

static bool obeys(const struct schema *s, struct bval v);

int schema_by_slice(const void *a, const void *b)
{
    return slice_cmp(*(const struct slice *)a, *(const struct slice *)b);
}

/* ---- scalars ---- */

static int64_t code_points(struct bval v)
{
    uint32_t n;
    int64_t points = 0;
    const char *s = bval_str(v, &n);
    for (uint32_t i = 0; i < n; i++)
        points += ((uint8_t)s[i] & 0xc0) != 0x80;
    return points;
}

static bool within(int64_t n, int64_t min, int64_t max)
{
    return (min < 0 || n >= min) && (max < 0 || n <= max);
}

static bool string_obeys(const struct schema *s, struct bval v)
{
    if ((s->min_length >= 0 || s->max_length >= 0) && !within(code_points(v), s->min_length, s->max_length))
        return false;
    return !s->pattern || match_test_regex(s->pattern, v, NULL);
}

static bool number_obeys(const struct schema *s, struct bval v)
{
    return (!s->minimum || match_test_compare(s->minimum, v, NULL)) &&
           (!s->maximum || match_test_compare(s->maximum, v, NULL)) &&
           (!s->has_multiple || schema_is_multiple(v, s->multiple));
}

/* ---- arrays ---- */

static bool item_obeys(const struct schema *s, struct bval v, int64_t i)
{
    if (s->items)
        return obeys(s->items, v);
    if (!s->is_tuple)
        return true;
    if (i < s->tuple.n)
        return obeys(s->tuple.p[i], v);
    return !s->no_additional_items && (!s->additional_items || obeys(s->additional_items, v));
}

static bool array_obeys(const struct schema *s, struct bval v)
{
    struct biter it;
    struct belem e;
    int64_t n = 0;
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e); n++)
        if (!item_obeys(s, e.v, n))
            return false;
    return within(n, s->min_items, s->max_items) && !(s->unique_items && schema_has_duplicates(bval_doc(v)));
}

/* ---- objects ---- */

static struct slice name_of(const struct belem *e)
{
    return slice_of(e->name, e->name_n);
}

/* Are all the names there? One walk over the document, whatever their number. */
static bool has_all(const struct schema_names *names, const uint8_t *doc)
{
    enum { FEW = 64 };
    uint64_t few = 0;
    uint8_t *many = names->n > FEW ? ov_calloc(names->n, 1) : NULL;
    uint32_t left = names->n;
    struct biter it;
    struct belem e;
    for (biter_init(&it, doc); left > 0 && biter_next(&it, &e);) {
        struct slice name = name_of(&e);
        const struct slice *found = bsearch(&name, names->p, names->n, sizeof *names->p, schema_by_slice);
        if (!found)
            continue;
        uint32_t i = (uint32_t)(found - names->p);
        bool before = many ? many[i] : few >> i & 1;
        left -= !before;
        if (many)
            many[i] = 1;
        else
            few |= (uint64_t)1 << i;
    }
    free(many);
    return left == 0;
}

/* The first property of this name, or NULL. */
static const struct schema_property *property(const struct schema *s, struct slice name)
{
    uint32_t lo = 0, hi = s->n_properties;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (slice_cmp(s->properties[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->n_properties && slice_eq(s->properties[lo].name, name) ? &s->properties[lo] : NULL;
}

static bool field_obeys(const struct schema *s, const struct belem *e)
{
    struct slice name = name_of(e);
    const struct schema_property *p = property(s, name), *end = s->properties + s->n_properties;
    bool known = p != NULL;
    for (; p && p < end && slice_eq(p->name, name); p++)
        if (!obeys(p->schema, e->v))
            return false;
    for (uint32_t i = 0; i < s->n_patterns; i++) {
        if (!match_regex_text(s->patterns[i].regex, e->name, e->name_n))
            continue;
        known = true;
        if (!obeys(s->patterns[i].schema, e->v))
            return false;
    }
    return known ||
           (!s->no_additional_properties && (!s->additional_properties || obeys(s->additional_properties, e->v)));
}

static bool dependencies_obeyed(const struct schema *s, struct bval v)
{
    for (uint32_t i = 0; i < s->n_dependencies; i++) {
        const struct schema_dependency *d = &s->dependencies[i];
        if (bval_is_missing(bdoc_getn(bval_doc(v), (const char *)d->name.p, d->name.n)))
            continue;
        if (d->schema ? !obeys(d->schema, v) : !has_all(&d->names, bval_doc(v)))
            return false;
    }
    return true;
}

static bool object_obeys(const struct schema *s, struct bval v)
{
    struct biter it;
    struct belem e;
    int64_t n = 0;
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e); n++)
        if (!field_obeys(s, &e))
            return false;
    return within(n, s->min_properties, s->max_properties) &&
           (s->required.n == 0 || has_all(&s->required, bval_doc(v))) && dependencies_obeyed(s, v);
}

/* ---- all ---- */

static bool logic_obeyed(const struct schema *s, struct bval v)
{
    uint32_t met = 0;
    for (uint32_t i = 0; i < s->all_of.n; i++)
        if (!obeys(s->all_of.p[i], v))
            return false;
    bool any = s->any_of.n == 0;
    for (uint32_t i = 0; !any && i < s->any_of.n; i++)
        any = obeys(s->any_of.p[i], v);
    if (!any || (s->not_ && obeys(s->not_, v)))
        return false;
    for (uint32_t i = 0; met < 2 && i < s->one_of.n; i++)
        met += obeys(s->one_of.p[i], v);
    if (s->one_of.n > 0 && met != 1)
        return false;
    bool listed = !s->has_enum;
    for (uint32_t i = 0; !listed && i < s->n_values; i++)
        listed = schema_equal(s->values[i], v);
    return listed;
}

static bool obeys(const struct schema *s, struct bval v)
{
    if (s->types && !(s->types & match_type_bit(v.type)))
        return false;
    bool of_its_type = v.type == BSON_TYPE_DOCUMENT ? object_obeys(s, v)
                       : v.type == BSON_TYPE_ARRAY  ? array_obeys(s, v)
                       : v.type == BSON_TYPE_UTF8   ? string_obeys(s, v)
                       : bval_is_number(v)          ? number_obeys(s, v)
                                                    : true;
    return of_its_type && logic_obeyed(s, v);
}

bool match_test_schema(const struct match *m, const uint8_t *doc)
{
    return obeys(m->priv, bval_from_doc(doc));
}
