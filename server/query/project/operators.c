/* What the operators of find do to a document: $slice, $elemMatch and the positional operator. */
#include "server/query/project/project_private.h"

void apply_slice(struct applying *ap, const struct node *node, const uint8_t *array)
{
    struct biter it;
    struct belem e;
    char scratch[12];
    int64_t n = 0, first, last, at = 0;
    for (biter_init(&it, array); biter_next(&it, &e);)
        n++;
    if (node->has_skip) {
        first = node->skip < 0 ? OV_MAX(n + node->skip, (int64_t)0) : OV_MIN((int64_t)node->skip, n);
        last = OV_MIN(first + node->limit, n);
    } else {
        first = node->limit < 0 ? OV_MAX(n + node->limit, (int64_t)0) : 0;
        last = node->limit < 0 ? n : OV_MIN((int64_t)node->limit, n);
    }
    size_t start = bw_begin(ap->out);
    for (biter_init(&it, array); at < last && biter_next(&it, &e); at++)
        if (at >= first)
            bw_val(ap->out, bw_index((uint32_t)(at - first), scratch), e.v);
    bw_end(ap->out, start);
}

static bool element(const uint8_t *array, int32_t index, struct belem *out)
{
    struct biter it;
    biter_init(&it, array);
    while (biter_next(&it, out))
        if (index-- == 0)
            return true;
    return false;
}

void apply_elem_match(struct applying *ap, const struct node *node)
{
    struct match_result found = {.array_index = -1};
    struct belem e;
    if (!match_doc(node->elem, ap->doc, &found) || found.array_index < 0)
        return;
    struct bval array = bdoc_get(ap->doc, node->name);
    if (!element(bval_doc(array), found.array_index, &e))
        return;
    bw_valn(ap->out, node->name, node->name_n, (struct bval){BSON_TYPE_ARRAY, 0, NULL});
    size_t start = bw_begin(ap->out);
    bw_val(ap->out, "0", e.v);
    bw_end(ap->out, start);
}

void apply_positional(struct applying *ap, size_t start)
{
    static const uint8_t empty[] = {5, 0, 0, 0, 0};
    enum { HEAD = 4 + 3 }; /* the length, then type and name "0" */
    struct match_result found = {.array_index = -1};
    struct belem e;
    if (!match_doc(ap->p->filter, ap->doc, &found))
        found.array_index = -1;
    uint8_t *array = ap->out->p + start;
    ap->out->len = start;
    if (found.array_index < 0) {
        ap->rc = err_set(ap->err, 51246, "positional operator '.$' couldn't find a matching element in the array");
        buf_append(ap->out, empty, sizeof(empty));
        return;
    }
    if (!element(array, found.array_index, &e)) {
        ap->rc = err_set(ap->err, 51247, "positional operator '.$' element mismatch");
        buf_append(ap->out, empty, sizeof(empty));
        return;
    }
    uint8_t type = e.v.type;
    uint32_t n = e.v.n;
    memmove(array + HEAD, e.v.p, n); /* towards the front: an element has a type and a name, too */
    array[4] = type;
    array[5] = '0';
    array[6] = 0;
    array[HEAD + n] = 0;
    store_le32(array, HEAD + n + 1);
    ap->out->len = start + HEAD + n + 1;
}
