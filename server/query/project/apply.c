/* Projecting a document: its fields in their order, unchanged ones as runs of bytes. Below an array each document is projected; an inclusion drops
 * what else is in it, an exclusion keeps it. The elements of such an array are numbered anew. $slice does not reach into an array that is an
 * element of another, though inclusion and exclusion do. The positional operator is about the first array on its way, as it is after the
 * inclusion. What $elemMatch found comes last in an inclusion and stays where it was in an exclusion. */
#include "server/query/project/project_private.h"

static void include_doc(struct applying *ap, const struct node *node, const uint8_t *doc);
static void exclude_doc(struct applying *ap, const struct node *node, const uint8_t *doc);

static void include_array(struct applying *ap, const struct node *node, const uint8_t *array);

static void include_inner_array(struct applying *ap, const struct node *node, const uint8_t *array)
{
    ap->nested++;
    include_array(ap, node, array);
    ap->nested--;
}

static void include_array(struct applying *ap, const struct node *node, const uint8_t *array)
{
    struct buf *out = ap->out;
    struct biter it;
    struct belem e;
    char scratch[12];
    uint32_t n = 0;
    size_t start = bw_begin(out);
    ap->arrays++;
    biter_init(&it, array);
    while (biter_next(&it, &e)) {
        if (e.v.type != BSON_TYPE_DOCUMENT && e.v.type != BSON_TYPE_ARRAY)
            continue;
        bw_val(out, bw_index(n++, scratch), (struct bval){e.v.type, 0, NULL});
        if (e.v.type == BSON_TYPE_ARRAY)
            include_inner_array(ap, node, e.v.p);
        else
            include_doc(ap, node, e.v.p);
    }
    ap->arrays--;
    bw_end(out, start);
}

/* Type and name of a field whose value comes next. */
static void put_head(struct buf *out, const struct belem *e)
{
    bw_valn(out, e->name, e->name_n, (struct bval){e->v.type, 0, NULL});
}

/* A field that is wanted: its bytes are those from `from` to `to`. */
static void include_leaf(struct applying *ap, const struct node *leaf, const struct belem *e, const uint8_t *from,
                         const uint8_t *to)
{
    bool array = e->v.type == BSON_TYPE_ARRAY;
    if (leaf->op == NODE_ELEM_MATCH)
        return; /* comes last */
    if (leaf->op == NODE_SLICE && array && ap->nested == 0) {
        put_head(ap->out, e);
        apply_slice(ap, leaf, e->v.p);
        return;
    }
    buf_append(ap->out, from, (size_t)(to - from));
    if (leaf->op == NODE_POSITIONAL && array && ap->arrays == 0)
        apply_positional(ap, ap->out->len - e->v.n);
}

static void include_doc(struct applying *ap, const struct node *node, const uint8_t *doc)
{
    struct buf *out = ap->out;
    struct biter it;
    struct belem e;
    uint32_t left = node->n_children;
    size_t start = bw_begin(out);
    biter_init(&it, doc);
    for (const uint8_t *from = it.p; left > 0 && biter_next(&it, &e); from = it.p) {
        const struct node *child = node_find(node, e.name, e.name_n);
        if (!child)
            continue;
        left--; /* names are unique in practice: nothing is missed by stopping at the last one wanted */
        if (child->n_children == 0) {
            include_leaf(ap, child, &e, from, it.p);
        } else if (e.v.type == BSON_TYPE_DOCUMENT) {
            put_head(out, &e);
            include_doc(ap, child, e.v.p);
        } else if (e.v.type == BSON_TYPE_ARRAY) {
            put_head(out, &e);
            size_t at = out->len;
            include_array(ap, child, e.v.p);
            if (child->positional && ap->arrays == 0)
                apply_positional(ap, at);
        }
    }
    if (node == &ap->p->root && ap->p->elems)
        for (const struct node *c = node->children; c; c = c->next)
            if (c->op == NODE_ELEM_MATCH)
                apply_elem_match(ap, c);
    bw_end(out, start);
}

static void exclude_array(struct applying *ap, const struct node *node, const uint8_t *array);

static void exclude_inner_array(struct applying *ap, const struct node *node, const uint8_t *array)
{
    ap->nested++;
    exclude_array(ap, node, array);
    ap->nested--;
}

static void exclude_array(struct applying *ap, const struct node *node, const uint8_t *array)
{
    struct buf *out = ap->out;
    struct biter it;
    struct belem e;
    size_t start = bw_begin(out);
    ap->arrays++;
    biter_init(&it, array);
    for (const uint8_t *from = it.p; biter_next(&it, &e); from = it.p) {
        if (e.v.type == BSON_TYPE_DOCUMENT) {
            put_head(out, &e);
            exclude_doc(ap, node, e.v.p);
        } else if (e.v.type == BSON_TYPE_ARRAY) {
            put_head(out, &e);
            exclude_inner_array(ap, node, e.v.p);
        } else {
            buf_append(out, from, (size_t)(it.p - from));
        }
    }
    ap->arrays--;
    bw_end(out, start);
}

static void exclude_doc(struct applying *ap, const struct node *node, const uint8_t *doc)
{
    struct buf *out = ap->out;
    struct biter it;
    struct belem e;
    size_t start = bw_begin(out);
    biter_init(&it, doc);
    const uint8_t *kept = it.p; /* start of the run of fields that stay as they are */
    for (const uint8_t *from = it.p; biter_next(&it, &e); from = it.p) {
        const struct node *child = node_find(node, e.name, e.name_n);
        if (!child || (child->n_children > 0 && e.v.type != BSON_TYPE_DOCUMENT && e.v.type != BSON_TYPE_ARRAY))
            continue;
        if (child->op == NODE_SLICE && (e.v.type != BSON_TYPE_ARRAY || ap->nested > 0))
            continue;
        buf_append(out, kept, (size_t)(from - kept));
        kept = it.p;
        if (child->n_children == 0 && child->op != NODE_SLICE) {
            if (child->op == NODE_ELEM_MATCH)
                apply_elem_match(ap, child);
            continue;
        }
        put_head(out, &e);
        if (child->op == NODE_SLICE)
            apply_slice(ap, child, e.v.p);
        else if (e.v.type == BSON_TYPE_DOCUMENT)
            exclude_doc(ap, child, e.v.p);
        else
            exclude_array(ap, child, e.v.p);
    }
    buf_append(out, kept, (size_t)(it.end - kept));
    bw_end(out, start);
}

int project_apply(const struct project *p, const uint8_t *doc, struct buf *out, struct err *err)
{
    struct applying ap = {.p = p, .doc = doc, .out = out, .err = err};
    size_t before = out->len;
    if (p->inclusion)
        include_doc(&ap, &p->root, doc);
    else
        exclude_doc(&ap, &p->root, doc);
    if (OV_UNLIKELY(ap.rc != 0))
        out->len = before;
    return ap.rc;
}

bool project_is_positional(const struct project *p)
{
    return p->positional;
}
