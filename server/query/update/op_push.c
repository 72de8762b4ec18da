/* $push with $each, $position, $slice, $sort, done in that order whatever the order in the update. */
#include "server/query/update/operators.h"

struct sort_key {
    struct part *parts;
    uint32_t n_parts;
    bool descending;
};

struct push {
    struct bval *values;
    uint32_t n;
    bool has_position, has_slice, has_sort;
    int64_t position, slice;
    struct sort_key *keys; /* of $sort; none: whole values */
    uint32_t n_keys;
    bool descending;
};

/* ---- parsing ---- */

static int parse_sort_key(struct parse *p, const struct belem *e, struct sort_key *key, struct err *err)
{
    int64_t direction;
    if (!bval_to_i64(e->v, true, &direction) || (direction != 1 && direction != -1))
        return err_set(err, ERR_BAD_VALUE, "The $sort element value must be either 1 or -1");
    if (e->name_n == 0)
        return err_set(err, ERR_BAD_VALUE, "The $sort field cannot be empty");
    int rc = parse_path(p->a, e->name, &key->parts, &key->n_parts, err);
    if (rc == ERR_EMPTY_FIELD_NAME)
        return err_set(err, ERR_BAD_VALUE, "The $sort field is a dotted field but has an empty part: %s", e->name);
    key->descending = direction < 0;
    return rc;
}

static int parse_sort(struct parse *p, struct bval v, struct push *push, struct err *err)
{
    struct biter it;
    struct belem e;
    int64_t direction;

    push->has_sort = true;
    if (bval_is_number(v)) {
        if (!bval_to_i64(v, true, &direction) || (direction != 1 && direction != -1))
            return err_set(err, ERR_BAD_VALUE, "The $sort element value must be either 1 or -1");
        push->descending = direction < 0;
        return 0;
    }
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(
            err, ERR_BAD_VALUE,
            "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields");
    uint32_t n = array_count(bval_doc(v));
    if (n == 0)
        return err_set(err, ERR_BAD_VALUE, "The $sort pattern is empty when it should be a set of fields.");
    if (!(push->keys = arena_alloc(p->a, n * sizeof(*push->keys))))
        return out_of_memory(err);
    biter_init(&it, bval_doc(v));
    while (biter_next(&it, &e)) {
        int rc = parse_sort_key(p, &e, &push->keys[push->n_keys], err);
        if (rc)
            return rc;
        push->n_keys++;
    }
    return 0;
}

static int parse_clause(struct parse *p, const struct belem *e, struct push *push, struct err *err)
{
    if (strcmp(e->name, "$each") == 0) {
        if (e->v.type != BSON_TYPE_ARRAY)
            return err_set(err, ERR_BAD_VALUE, "The argument to $each in $push must be an array but it was of type: %s",
                           bval_type_name(e->v.type));
        push->values = array_items(p->a, bval_doc(e->v), 0, &push->n);
        return push->values ? 0 : out_of_memory(err);
    }
    if (strcmp(e->name, "$position") == 0) {
        push->has_position = true;
        if (!bval_to_i64(e->v, true, &push->position))
            return err_set(err, ERR_BAD_VALUE, "The value for $position must be an integer value, not of type: %s",
                           bval_type_name(e->v.type));
        return 0;
    }
    if (strcmp(e->name, "$slice") == 0) {
        push->has_slice = true;
        if (!bval_to_i64(e->v, true, &push->slice))
            return err_set(err, ERR_BAD_VALUE, "The value for $slice must be an integer value but was given type: %s",
                           bval_type_name(e->v.type));
        return 0;
    }
    if (strcmp(e->name, "$sort") == 0)
        return parse_sort(p, e->v, push, err);
    return err_set(err, ERR_BAD_VALUE, "Unrecognized clause in $push: %s", e->name);
}

int push_parse(struct parse *p, struct leaf *l, struct err *err)
{
    struct push *push = arena_zalloc(p->a, sizeof(*push));
    struct biter it;
    struct belem e;

    if (!push)
        return out_of_memory(err);
    l->priv = push;
    if (l->arg.type != BSON_TYPE_DOCUMENT || bval_is_missing(bdoc_get(bval_doc(l->arg), "$each"))) {
        push->values = arena_dup(p->a, &l->arg, sizeof(l->arg));
        push->n = 1;
        return push->values ? 0 : out_of_memory(err);
    }
    biter_init(&it, bval_doc(l->arg));
    while (biter_next(&it, &e)) {
        if (e.v.p != bdoc_get(bval_doc(l->arg), e.name).p)
            return err_set(err, ERR_BAD_VALUE, "Only one %s is supported.", e.name);
        int rc = parse_clause(p, &e, push, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- applying ---- */

/* A document's field by dotted path; null where it leads nowhere, as the sort sees it. */
static struct bval sort_value(struct bval v, const struct sort_key *key)
{
    for (uint32_t i = 0; i < key->n_parts; i++) {
        struct biter it;
        struct belem e;
        bool found = false;
        if (v.type != BSON_TYPE_DOCUMENT && (i == 0 || v.type != BSON_TYPE_ARRAY))
            return BVAL_NULL;
        biter_init(&it, bval_doc(v));
        while (!found && biter_next(&it, &e))
            found = e.name_n == key->parts[i].n && memcmp(e.name, key->parts[i].s, e.name_n) == 0;
        if (!found)
            return BVAL_NULL;
        v = e.v;
    }
    return v;
}

static int item_cmp(const struct push *push, struct bval a, struct bval b)
{
    if (!push->n_keys) {
        int c = bval_cmp(a, b);
        return push->descending ? -c : c;
    }
    for (uint32_t i = 0; i < push->n_keys; i++) {
        const struct sort_key *key = &push->keys[i];
        int c = bval_cmp(sort_value(a, key), sort_value(b, key));
        if (c)
            return key->descending ? -c : c;
    }
    return 0;
}

/* A stable merge sort from the bottom; `tmp` has room for n. The sorted items are in *items or *tmp, and *items then points there. */
static void sort_items(const struct push *push, struct bval **items, struct bval *tmp, uint32_t n)
{
    struct bval *from = *items, *to = tmp;
    for (uint64_t width = 1; width < n; width *= 2) {
        for (uint64_t lo = 0; lo < n; lo += 2 * width) {
            uint64_t mid = OV_MIN(lo + width, n), hi = OV_MIN(lo + 2 * width, n), i = lo, j = mid;
            for (uint64_t k = lo; k < hi; k++)
                to[k] = i < mid && (j >= hi || item_cmp(push, from[i], from[j]) <= 0) ? from[i++] : from[j++];
        }
        struct bval *swap = from;
        from = to;
        to = swap;
    }
    *items = from;
}

static uint32_t insert_at(const struct push *push, uint32_t count)
{
    if (!push->has_position || push->position >= (int64_t)count)
        return count;
    if (push->position >= 0)
        return (uint32_t)push->position;
    return push->position < -(int64_t)count ? 0 : (uint32_t)(count + push->position);
}

int push_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    const struct push *push = l->priv;
    const uint8_t *arr = NULL;
    uint32_t count = 0;

    if (!bval_is_missing(t->old)) {
        if (t->old.type != BSON_TYPE_ARRAY)
            return err_set(ap->err, ERR_BAD_VALUE, "The field '%s' must be an array but is of type %s in document {%s}",
                           t->path, bval_type_name(t->old.type), apply_id_text(ap));
        arr = bval_doc(t->old);
        if (!push->has_position && !push->has_slice && !push->has_sort)
            return push->n ? target_append(ap, t, array_count(arr), push->values, push->n) : 0;
    }
    struct bval *items = array_items(ap->a, arr, push->n, &count);
    if (!items)
        return out_of_memory(ap->err);
    uint32_t at = insert_at(push, count), n = count + push->n;
    memmove(items + at + push->n, items + at, (count - at) * sizeof(*items));
    if (push->n)
        memcpy(items + at, push->values, push->n * sizeof(*items));
    if (push->has_sort) {
        struct bval *tmp = arena_alloc(ap->a, n * sizeof(*tmp));
        if (!tmp)
            return out_of_memory(ap->err);
        sort_items(push, &items, tmp, n);
    }
    if (push->has_slice && push->slice >= 0 && push->slice < n)
        n = (uint32_t)push->slice;
    if (push->has_slice && push->slice < 0 && push->slice > -(int64_t)n) {
        items += n + push->slice;
        n = (uint32_t)-push->slice;
    }
    return target_set_array(ap, t, items, n);
}
