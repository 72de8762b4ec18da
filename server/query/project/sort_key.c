/* The sort key of a document: for each field the value that counts, in the key encoding. What counts is what an index on the field would hold: an
 * array stands for its smallest element, or its largest where the order is descending; an empty one for undefined; what is missing for null. */
#include "server/query/project/project.h"

struct pick {
    const struct bpath *path;
    bool largest;
    struct bval best;
};

static void offer(struct pick *k, struct bval v)
{
    if (k->best.type == BSON_TYPE_EOD) {
        k->best = v;
        return;
    }
    int c = bval_cmp(v, k->best);
    if (k->largest ? c > 0 : c < 0)
        k->best = v;
}

static void pick_array(struct pick *k, struct bval array, uint32_t part);

/* A value at the end of `part` parts of the path. */
static void pick_value(struct pick *k, struct bval v, uint32_t part)
{
    for (;;) {
        if (v.type == BSON_TYPE_ARRAY) {
            pick_array(k, v, part);
            return;
        }
        if (part == k->path->n_parts) {
            offer(k, v.type == BSON_TYPE_EOD ? BVAL_NULL : v);
            return;
        }
        if (v.type != BSON_TYPE_DOCUMENT) {
            offer(k, BVAL_NULL);
            return;
        }
        v = bdoc_getn(v.p, k->path->parts[part].s, k->path->parts[part].n);
        part++;
    }
}

static void pick_elements(struct pick *k, struct bval array, uint32_t part)
{
    static const struct bval undefined = {BSON_TYPE_UNDEFINED, 0, (const uint8_t *)""};
    bool leaf = part == k->path->n_parts;
    struct biter it;
    struct belem e;
    if (bdoc_empty(array.p))
        offer(k, leaf ? undefined : BVAL_NULL);
    biter_init(&it, array.p);
    while (biter_next(&it, &e)) {
        if (leaf)
            offer(k, e.v); /* arrays inside as a whole */
        else if (e.v.type == BSON_TYPE_DOCUMENT)
            pick_value(k, e.v, part);
        else
            offer(k, BVAL_NULL);
    }
}

/* A numeric part names the element, if there is one. */
static void pick_array(struct pick *k, struct bval array, uint32_t part)
{
    int32_t index = part < k->path->n_parts ? k->path->parts[part].index : -1;
    struct biter it;
    struct belem e;
    biter_init(&it, array.p);
    for (int32_t i = 0; i <= index && biter_next(&it, &e); i++)
        if (i == index) {
            pick_value(k, e.v, part + 1);
            return;
        }
    pick_elements(k, array, part);
}

void sort_key(const struct sort_spec *s, const uint8_t *doc, struct buf *out)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct pick k = {&s->paths[i], s->dirs[i] < 0, BVAL_MISSING};
        pick_value(&k, bval_from_doc(doc), 0);
        bval_keyenc(out, k.best, k.largest);
    }
}
