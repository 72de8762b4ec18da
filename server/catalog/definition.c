/* Definitions of collections, and how they lie in their rows:
 *   {v: 1, uuid: BinData(4), records: keyspace, options: {…}, indexes: [{keyspace, ready: bool, spec: {…}}, …]}
 * A definition owns an arena with everything that it points to but the run-time parts, which all versions share. */
#include <stdlib.h>

#include "server/catalog/catalog_private.h"

enum { ROW_VERSION = 1, UUID_SUBTYPE = 4 };

const uint8_t EMPTY_DOC[] = {5, 0, 0, 0, 0};
/* {v: 2, key: {_id: 1}, name: "_id_"} */
const uint8_t ID_INDEX_SPEC[] = {
    46,  0, 0, 0, 16, 'v', 0, 2, 0,   0,   0,   3,   'k', 'e', 'y', 0, 14, 0,   0,   0,   16,  '_', 'i',
    'd', 0, 1, 0, 0,  0,   0, 2, 'n', 'a', 'm', 'e', 0,   5,   0,   0, 0,  '_', 'i', 'd', '_', 0,   0,
};
_Static_assert(sizeof(ID_INDEX_SPEC) == 46, "the length that it states");

struct shared_rt {
    struct collection_rt pub; /* first */
    _Atomic int refs;
};
struct shared_index_rt {
    struct index_rt pub; /* first */
    _Atomic int refs;
};

static struct collection_rt *share_rt(struct collection_rt *rt)
{
    struct shared_rt *s = (struct shared_rt *)rt;
    if (!s)
        s = ov_calloc(1, sizeof(*s));
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return &s->pub;
}

static struct index_rt *share_index_rt(struct index_rt *rt)
{
    struct shared_index_rt *s = (struct shared_index_rt *)rt;
    if (!s)
        s = ov_calloc(1, sizeof(*s));
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return &s->pub;
}

static void free_definition(struct collection *coll)
{
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        struct shared_index_rt *s = (struct shared_index_rt *)coll->indexes[i].rt;
        if (s && atomic_fetch_sub(&s->refs, 1) == 1)
            free(s);
    }
    struct shared_rt *s = (struct shared_rt *)coll->rt;
    if (atomic_fetch_sub(&s->refs, 1) == 1)
        free(s);
    arena_free(coll->arena);
}

void collection_unref(struct collection *coll)
{
    if (coll && atomic_fetch_sub_explicit(&coll->refs, 1, memory_order_acq_rel) == 1)
        free_definition(coll);
}

static int make_index(struct collection *coll, uint32_t i, const struct definition_index *from, struct err *err)
{
    struct index_def *def = &coll->indexes[i];
    const uint8_t *spec = arena_dup(coll->arena, from->spec, bdoc_len(from->spec));
    int rc = index_parse(coll->arena, spec, def, err);
    if (rc == 0)
        rc = catalog_index_filter(coll->arena, def, err);
    if (rc != 0)
        return rc;
    def->is_id = i == 0;
    def->keyspace = from->keyspace;
    def->state = from->state;
    def->rt = share_index_rt(from->rt);
    coll->n_indexes = i + 1;
    return 0;
}

struct collection *definition_new(const struct definition *d, struct err *err)
{
    struct arena *a = arena_new(0);
    struct collection *coll = arena_zalloc(a, sizeof(*coll));
    coll->arena = a;
    coll->refs = 1;
    coll->ns = arena_printf(a, "%s.%s", d->db, d->name);
    coll->db = arena_strndup(a, d->db, strlen(d->db));
    coll->name = coll->ns + strlen(d->db) + 1;
    memcpy(coll->uuid, d->uuid, sizeof(coll->uuid));
    coll->records = d->records;
    coll->options = arena_dup(a, d->options, bdoc_len(d->options));
    coll->indexes = arena_zalloc(a, d->n_indexes * sizeof(*coll->indexes));
    coll->rt = share_rt(d->rt);
    if (definition_validator(coll, err) != 0) {
        free_definition(coll);
        return NULL;
    }
    for (uint32_t i = 0; i < d->n_indexes; i++)
        if (make_index(coll, i, &d->indexes[i], err) != 0) {
            free_definition(coll);
            return NULL;
        }
    return coll;
}

void definition_of(const struct collection *coll, struct definition *out)
{
    *out = (struct definition){.db = coll->db,
                               .name = coll->name,
                               .uuid = coll->uuid,
                               .records = coll->records,
                               .options = coll->options,
                               .n_indexes = coll->n_indexes,
                               .rt = coll->rt};
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        const struct index_def *def = &coll->indexes[i];
        out->indexes[i] =
            (struct definition_index){.spec = def->spec, .keyspace = def->keyspace, .state = def->state, .rt = def->rt};
    }
}

void definition_write(const struct definition *d, struct buf *out)
{
    size_t doc = bw_begin(out);
    bw_i32(out, "v", ROW_VERSION);
    bw_bin(out, "uuid", UUID_SUBTYPE, d->uuid, 16);
    bw_i64(out, "records", (int64_t)d->records);
    bw_rawdoc(out, "options", d->options);
    size_t all = bw_arr(out, "indexes");
    for (uint32_t i = 0; i < d->n_indexes; i++) {
        char scratch[12];
        size_t one = bw_doc(out, bw_index(i, scratch));
        bw_i64(out, "keyspace", (int64_t)d->indexes[i].keyspace);
        bw_bool(out, "ready", d->indexes[i].state == INDEX_READY);
        bw_rawdoc(out, "spec", d->indexes[i].spec);
        bw_end(out, one);
    }
    bw_end(out, all);
    bw_end(out, doc);
}

static bool read_index(const uint8_t *doc, struct definition_index *out)
{
    struct bval ks = bdoc_get(doc, "keyspace"), ready = bdoc_get(doc, "ready"), spec = bdoc_get(doc, "spec");
    if (ks.type != BSON_TYPE_INT64 || ready.type != BSON_TYPE_BOOL || spec.type != BSON_TYPE_DOCUMENT)
        return false;
    *out = (struct definition_index){.keyspace = (uint64_t)bval_i64(ks),
                                     .state = bval_bool(ready) ? INDEX_READY : INDEX_BUILDING,
                                     .spec = bval_doc(spec)};
    return true;
}

static bool read_indexes(const uint8_t *arr, struct definition *out)
{
    struct biter it;
    struct belem e;
    biter_init(&it, arr);
    while (biter_next(&it, &e)) {
        if (out->n_indexes == INDEX_MAX || e.v.type != BSON_TYPE_DOCUMENT ||
            !read_index(bval_doc(e.v), &out->indexes[out->n_indexes]))
            return false;
        out->n_indexes++;
    }
    return out->n_indexes > 0;
}

bool definition_read(struct slice key, struct slice value, struct arena *a, struct definition *out)
{
    *out = (struct definition){0};
    const uint8_t *dot = key.n ? memchr(key.p, '.', key.n) : NULL;
    struct err err;
    err_init(&err, a);
    if (!dot || bson_check(value.p, value.n, BSON_DEPTH_MAX, &err) != 0)
        return false;
    struct bval v = bdoc_get(value.p, "v"), uuid = bdoc_get(value.p, "uuid"), records = bdoc_get(value.p, "records");
    struct bval options = bdoc_get(value.p, "options"), indexes = bdoc_get(value.p, "indexes");
    if (v.type != BSON_TYPE_INT32 || bval_i32(v) != ROW_VERSION || uuid.type != BSON_TYPE_BINARY ||
        uuid.n != 4 + 1 + 16 || records.type != BSON_TYPE_INT64 || options.type != BSON_TYPE_DOCUMENT ||
        indexes.type != BSON_TYPE_ARRAY)
        return false;
    out->db = arena_strndup(a, (const char *)key.p, (size_t)(dot - key.p));
    out->name = arena_strndup(a, (const char *)dot + 1, key.n - (size_t)(dot + 1 - key.p));
    out->uuid = uuid.p + 5;
    out->records = (uint64_t)bval_i64(records);
    out->options = bval_doc(options);
    return read_indexes(bval_doc(indexes), out);
}
