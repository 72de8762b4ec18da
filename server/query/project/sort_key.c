/* The sort key of a document: of the keys that an index with the fields of the sort would hold for it, the first one in the order, encoded. So an
 * array stands for its smallest element where the order is ascending, or for its largest where it is descending; fields below one array come from
 * the same element of it; an empty array is undefined, what is missing is null. */
#include "server/query/project/project.h"
#include "server/query/project/project_private.h"

struct search {
    const struct sort_spec *s;
    bool any;      /* `best` is set */
    bool parallel; /* two fields go through different arrays */
    struct bval best[SORT_FIELDS_MAX];
};

/* One key being made: the fields in `open` are at part[i] of their paths, in the document at hand; the others have their value. */
struct key {
    uint32_t open;
    uint32_t part[SORT_FIELDS_MAX];
    struct bval v[SORT_FIELDS_MAX];
};

static void offer(struct search *k, const struct key *key)
{
    int c = 0;
    for (uint32_t i = 0; k->any && c == 0 && i < k->s->n; i++) {
        c = bval_cmp(key->v[i], k->best[i]);
        c = k->s->dirs[i] < 0 ? -c : c;
    }
    if (k->any && c >= 0)
        return;
    memcpy(k->best, key->v, k->s->n * sizeof(*key->v));
    k->any = true;
}

static struct bval element(const uint8_t *array, int32_t index)
{
    struct biter it;
    struct belem e;
    biter_init(&it, array);
    for (int32_t i = 0; i <= index && biter_next(&it, &e); i++)
        if (i == index)
            return e.v;
    return BVAL_MISSING;
}

/* Goes down the path from *part, by index too, to its end or to an array that has to be gone through. */
static struct bval descend(const struct bpath *path, const uint8_t *doc, uint32_t *part)
{
    struct bval v = bdoc_getn(doc, path->parts[*part].s, path->parts[*part].n);
    for (++*part; *part < path->n_parts; ++*part) {
        const struct bpath_part *p = &path->parts[*part];
        if (v.type == BSON_TYPE_DOCUMENT) {
            v = bdoc_getn(v.p, p->s, p->n);
        } else if (v.type == BSON_TYPE_ARRAY) {
            struct bval e = p->index >= 0 ? element(v.p, p->index) : BVAL_MISSING;
            if (bval_is_missing(e))
                return v;
            v = e;
        } else {
            return BVAL_MISSING;
        }
    }
    return v;
}

static void search_elements(struct search *k, const struct key *key, uint32_t through, const uint8_t *array);

/* doc NULL: something that is no document and has no fields. */
static void search_doc(struct search *k, struct key *key, const uint8_t *doc)
{
    const uint8_t *array = NULL;
    uint32_t through = 0; /* fields that go through it */
    for (uint32_t i = 0; i < k->s->n; i++) {
        if (!(key->open & 1u << i))
            continue;
        struct bval v = doc ? descend(&k->s->paths[i], doc, &key->part[i]) : BVAL_MISSING;
        if (v.type == BSON_TYPE_ARRAY) {
            if (array && array != v.p) {
                k->parallel = true;
                return;
            }
            array = v.p;
            through |= 1u << i;
        } else {
            key->v[i] = bval_is_missing(v) ? BVAL_NULL : v;
            key->open &= ~(1u << i);
        }
    }
    if (array)
        search_elements(k, key, through, array);
    else
        offer(k, key);
}

static void search_element(struct search *k, const struct key *key, uint32_t through, struct bval v)
{
    struct key next;
    next.open = key->open;
    memcpy(next.part, key->part, k->s->n * sizeof(*next.part));
    memcpy(next.v, key->v, k->s->n * sizeof(*next.v));
    for (uint32_t i = 0; i < k->s->n; i++)
        if (through & 1u << i && next.part[i] == k->s->paths[i].n_parts) {
            next.v[i] = v; /* arrays inside as a whole */
            next.open &= ~(1u << i);
        }
    search_doc(k, &next, v.type == BSON_TYPE_DOCUMENT ? v.p : NULL);
}

static void search_elements(struct search *k, const struct key *key, uint32_t through, const uint8_t *array)
{
    static const struct bval undefined = {BSON_TYPE_UNDEFINED, 0, (const uint8_t *)""};
    struct biter it;
    struct belem e;
    if (bdoc_empty(array))
        search_element(k, key, through, undefined);
    biter_init(&it, array);
    while (biter_next(&it, &e) && !k->parallel)
        search_element(k, key, through, e.v);
}

/* false: parallel arrays, nothing appended. */
static bool append_key(const struct sort_spec *s, const uint8_t *doc, struct buf *out)
{
    struct search k;
    struct key key;
    if (s->n == 0)
        return true;
    k.s = s;
    k.any = k.parallel = false;
    key.open = s->n == 32 ? UINT32_MAX : (1u << s->n) - 1;
    memset(key.part, 0, s->n * sizeof(*key.part));
    memset(key.v, 0, s->n * sizeof(*key.v));
    memset(k.best, 0, s->n * sizeof(*k.best));
    search_doc(&k, &key, doc);
    for (uint32_t i = 0; i < s->n && !k.parallel; i++)
        bval_keyenc(out, k.best[i], s->dirs[i] < 0);
    return !k.parallel;
}

int sort_key_checked(const struct sort_spec *s, const uint8_t *doc, struct buf *out, struct err *err)
{
    if (!append_key(s, doc, out))
        return err_set(err, ERR_BAD_VALUE, "cannot sort with keys that are parallel arrays");
    return 0;
}

void sort_key(const struct sort_spec *s, const uint8_t *doc, struct buf *out)
{
    if (append_key(s, doc, out))
        return;
    for (uint32_t i = 0; i < s->n; i++) { /* each field by itself: alone it has no parallel */
        struct sort_spec one = {&s->paths[i], &s->dirs[i], 1, 0};
        append_key(&one, doc, out);
    }
}
