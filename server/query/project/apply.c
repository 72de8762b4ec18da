/* Projecting a document: its fields in their order, unchanged ones as runs of bytes. Below an array each document is projected; an inclusion drops
 * what else is in it, an exclusion keeps it. The elements of such an array are numbered anew. */
#include "server/query/project/project_private.h"

static void include_doc(const struct node *node, const uint8_t *doc, struct buf *out);
static void exclude_doc(const struct node *node, const uint8_t *doc, struct buf *out);

static void include_array(const struct node *node, const uint8_t *array, struct buf *out)
{
    struct biter it;
    struct belem e;
    char scratch[12];
    uint32_t n = 0;
    size_t start = bw_begin(out);
    biter_init(&it, array);
    while (biter_next(&it, &e)) {
        if (e.v.type != BSON_TYPE_DOCUMENT && e.v.type != BSON_TYPE_ARRAY)
            continue;
        bw_val(out, bw_index(n++, scratch), (struct bval){e.v.type, 0, NULL});
        if (e.v.type == BSON_TYPE_ARRAY)
            include_array(node, e.v.p, out);
        else
            include_doc(node, e.v.p, out);
    }
    bw_end(out, start);
}

/* Type and name of a field whose value comes next. */
static void put_head(struct buf *out, const struct belem *e)
{
    bw_valn(out, e->name, e->name_n, (struct bval){e->v.type, 0, NULL});
}

static void include_doc(const struct node *node, const uint8_t *doc, struct buf *out)
{
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
            buf_append(out, from, (size_t)(it.p - from));
        } else if (e.v.type == BSON_TYPE_DOCUMENT) {
            put_head(out, &e);
            include_doc(child, e.v.p, out);
        } else if (e.v.type == BSON_TYPE_ARRAY) {
            put_head(out, &e);
            include_array(child, e.v.p, out);
        }
    }
    bw_end(out, start);
}

static void exclude_array(const struct node *node, const uint8_t *array, struct buf *out)
{
    struct biter it;
    struct belem e;
    size_t start = bw_begin(out);
    biter_init(&it, array);
    for (const uint8_t *from = it.p; biter_next(&it, &e); from = it.p) {
        if (e.v.type == BSON_TYPE_DOCUMENT) {
            put_head(out, &e);
            exclude_doc(node, e.v.p, out);
        } else if (e.v.type == BSON_TYPE_ARRAY) {
            put_head(out, &e);
            exclude_array(node, e.v.p, out);
        } else {
            buf_append(out, from, (size_t)(it.p - from));
        }
    }
    bw_end(out, start);
}

static void exclude_doc(const struct node *node, const uint8_t *doc, struct buf *out)
{
    struct biter it;
    struct belem e;
    size_t start = bw_begin(out);
    biter_init(&it, doc);
    const uint8_t *kept = it.p; /* start of the run of fields that stay as they are */
    for (const uint8_t *from = it.p; biter_next(&it, &e); from = it.p) {
        const struct node *child = node_find(node, e.name, e.name_n);
        if (!child || (child->n_children > 0 && e.v.type != BSON_TYPE_DOCUMENT && e.v.type != BSON_TYPE_ARRAY))
            continue;
        buf_append(out, kept, (size_t)(from - kept));
        kept = it.p;
        if (child->n_children == 0)
            continue;
        put_head(out, &e);
        if (e.v.type == BSON_TYPE_DOCUMENT)
            exclude_doc(child, e.v.p, out);
        else
            exclude_array(child, e.v.p, out);
    }
    buf_append(out, kept, (size_t)(it.end - kept));
    bw_end(out, start);
}

void project_apply(const struct project *p, const uint8_t *doc, struct buf *out)
{
    if (p->inclusion)
        include_doc(&p->root, doc, out);
    else
        exclude_doc(&p->root, doc, out);
}
