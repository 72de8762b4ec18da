/* The table of collections, and what operations do with a definition that they hold. */
#include "server/catalog/catalog.h"

#include <stdlib.h>

#include "server/catalog/catalog_private.h"

int catalog_open(struct engine *e, struct catalog **out, struct err *err)
{
    struct catalog *c = NULL;
    OV_ASSERT(posix_memalign((void **)&c, 64, sizeof(*c)) == 0);
    memset(c, 0, sizeof(*c));
    c->e = e;
    c->ddl_end = &c->ddl;
    c->next_keyspace = c->next_version = 1;
    c->dbs = map_new();
    mutex_init(&c->ddl_lock, RANK_DDL);
    mutex_init(&c->db_lock, RANK_CATALOG);
    for (int i = 0; i < SHARDS; i++) {
        mutex_init(&c->shards[i].lock, RANK_CATALOG);
        c->shards[i].table = map_new();
    }
    int rc = catalog_load(c, err);
    if (rc != 0) {
        catalog_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

void catalog_close(struct catalog *c)
{
    if (!c)
        return;
    OV_ASSERT(atomic_load(&c->pending) == 0);
    for (int i = 0; i < SHARDS; i++) {
        size_t pos = 0;
        struct slice key;
        void *coll;
        while (map_next(c->shards[i].table, &pos, &key, &coll))
            collection_unref(coll);
        map_free(c->shards[i].table);
        mutex_destroy(&c->shards[i].lock);
    }
    names_free(c);
    mutex_destroy(&c->db_lock);
    mutex_destroy(&c->ddl_lock);
    free(c);
}

/* ---- the table ---- */

static struct shard *shard_of(struct catalog *c, const struct ns_key *k)
{
    return &c->shards[hash_bytes(k->bytes, k->n) >> 58]; /* the table itself uses the low bits */
    _Static_assert(SHARDS == 1 << (64 - 58), "six bits");
}

struct collection *catalog_get(struct catalog *c, const char *db, const char *name)
{
    struct ns_key k;
    if (!ns_key_make(&k, db, name))
        return NULL;
    struct shard *s = shard_of(c, &k);
    mutex_lock(&s->lock);
    struct collection *coll = map_get(s->table, slice_of(k.bytes, k.n));
    if (coll)
        collection_ref(coll);
    mutex_unlock(&s->lock);
    return coll;
}

void catalog_publish(struct catalog *c, const char *db, const char *name, struct collection *coll)
{
    struct ns_key k;
    OV_ASSERT(ns_key_make(&k, db, name));
    struct shard *s = shard_of(c, &k);
    mutex_lock(&s->lock);
    struct slice key = slice_of(k.bytes, k.n);
    struct collection *old = coll ? map_put(s->table, key, coll) : map_remove(s->table, key);
    mutex_unlock(&s->lock);
    collection_unref(old);
}

static int by_ns(const void *a, const void *b)
{
    const struct collection *x = *(struct collection *const *)a, *y = *(struct collection *const *)b;
    int r = strcmp(x->db, y->db);
    return r ? r : strcmp(x->name, y->name);
}

struct found {
    struct collection **all;
    size_t n, cap;
};

static void collect(struct shard *s, const char *db, struct found *f)
{
    size_t pos = 0;
    struct slice key;
    void *value;
    mutex_lock(&s->lock);
    while (map_next(s->table, &pos, &key, &value)) {
        struct collection *coll = value;
        if (db && strcmp(coll->db, db) != 0)
            continue;
        if (f->n == f->cap) {
            f->cap = OV_MAX(64, f->cap * 2);
            f->all = ov_realloc(f->all, f->cap * sizeof(struct collection *));
        }
        f->all[f->n++] = collection_ref(coll);
    }
    mutex_unlock(&s->lock);
}

void catalog_each(struct catalog *c, const char *db, void (*fn)(void *arg, struct collection *coll), void *arg)
{
    struct found f = {0};
    for (int i = 0; i < SHARDS; i++)
        collect(&c->shards[i], db, &f);
    if (f.n)
        qsort(f.all, f.n, sizeof(struct collection *), by_ns);
    for (size_t i = 0; i < f.n; i++) {
        fn(arg, f.all[i]);
        collection_unref(f.all[i]);
    }
    free(f.all);
}

/* ---- writers ---- */

enum eng_result catalog_write_enter(struct catalog *c, struct collection *coll, struct eng_call *call)
{
    struct collection_rt *rt = coll->rt;
    for (;;) {
        /* Either DDL sees this writer, or the writer sees the DDL: both are sequentially consistent. */
        atomic_fetch_add(&rt->writers, 1);
        if (OV_LIKELY(!atomic_load(&rt->ddl)))
            break;
        catalog_write_leave(c, coll);
        if (ddl_wait_for(c, rt, call))
            return ENG_PENDING;
    }
    if (OV_LIKELY(atomic_load(&rt->version) == coll->version))
        return ENG_OK;
    catalog_write_leave(c, coll);
    return ENG_CONFLICT;
}

void catalog_write_leave(struct catalog *c, struct collection *coll)
{
    struct collection_rt *rt = coll->rt;
    if (atomic_fetch_sub(&rt->writers, 1) == 1 && OV_UNLIKELY(atomic_load(&rt->ddl)))
        ddl_writer_left(c, rt);
}

enum eng_result catalog_next_rid(struct collection *coll, struct eng_txn *t, uint64_t *rid, struct eng_call *call)
{
    _Atomic uint64_t *next = &coll->rt->next_rid;
    if (OV_UNLIKELY(atomic_load_explicit(next, memory_order_relaxed) == 0)) {
        uint8_t key[8];
        size_t n = 0;
        enum eng_result r = eng_last_key(t, coll->records, key, sizeof(key), &n, call);
        if (r != ENG_OK && r != ENG_NOT_FOUND)
            return r;
        uint64_t none = 0, first = r == ENG_OK && n == sizeof(key) ? load_be64(key) + 1 : 1;
        atomic_compare_exchange_strong(next, &none, first); /* whoever was first has looked at the same rows */
    }
    *rid = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
    return ENG_OK;
}

/* The batch adds the row itself unless a committed one is seen: the batch of whoever set the bit in memory may fail or come later. */
static void store_bit(struct index_def *def, uint8_t bit, struct eng_txn *t)
{
    uint8_t key[9];
    struct eng_row row;
    store_be64(key, def->keyspace);
    key[8] = bit;
    enum eng_result r = eng_get(t, MULTIKEY_ROWS, slice_of(key, sizeof(key)), ENG_GET_SNAPSHOT, &row, NULL);
    if (r != ENG_OK)
        eng_put(t, MULTIKEY_ROWS, slice_of(key, sizeof(key)), slice_of("", 1), ENG_UPDATE);
    else if (row.ts)
        atomic_fetch_or(&def->rt->multikey_stored, 1u << bit);
}

void catalog_set_multikey(struct catalog *c, struct collection *coll, struct index_def *def, uint32_t bits,
                          struct eng_txn *t)
{
    uint32_t open = bits & ~atomic_load_explicit(&def->rt->multikey_stored, memory_order_relaxed);
    if (OV_LIKELY(!open))
        return;
    atomic_fetch_or(&def->rt->multikey, bits); /* before the keys can be seen: planners must not trust the absence */
    for (uint8_t bit = 0; bit < INDEX_FIELDS_MAX; bit++)
        if (open >> bit & 1)
            store_bit(def, bit, t);
}
