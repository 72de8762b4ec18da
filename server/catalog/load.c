/* Start-up: reads all rows; what was building when the last run ended is dropped. Runs on the main thread and may block. */
#include <semaphore.h>
#include <stdlib.h>

#include "server/base/log.h"
#include "server/catalog/catalog_private.h"

struct blocking { /* a call whose wake-up ends a wait */
    struct eng_call call;
    sem_t woken;
};

static void wake(struct eng_call *call)
{
    sem_post(&((struct blocking *)call)->woken);
}

#define WAIT_FOR(b, expr)                        \
    __extension__({                              \
        enum eng_result wait_r;                  \
        while ((wait_r = (expr)) == ENG_PENDING) \
            while (sem_wait(&(b)->woken) != 0)   \
                ;                                \
        wait_r;                                  \
    })

struct loader {
    struct catalog *c;
    struct err *err;
    struct map *index_rts;          /* keyspace, 8 bytes big-endian -> struct index_rt */
    struct collection **unfinished; /* with indexes that were building; references of their own */
    size_t n_unfinished, cap;
};

static void count_keyspace(struct catalog *c, uint64_t keyspace)
{
    uint64_t n = (keyspace & ((1ull << 56) - 1)) + 1;
    if (n > atomic_load(&c->next_keyspace))
        atomic_store(&c->next_keyspace, n);
}

static void note_unfinished(struct loader *l, struct collection *coll)
{
    if (l->n_unfinished == l->cap) {
        l->cap = OV_MAX(8, l->cap * 2);
        l->unfinished = ov_realloc(l->unfinished, l->cap * sizeof(struct collection *));
    }
    l->unfinished[l->n_unfinished++] = collection_ref(coll);
}

static int load_definition(struct loader *l, const struct definition *d)
{
    struct catalog *c = l->c;
    int rc = names_check(d->db, d->name, l->err);
    if (rc == 0)
        rc = names_enter(c, d->db, l->err);
    struct collection *coll = rc == 0 ? definition_new(d, l->err) : NULL;
    if (!coll)
        return l->err->code;
    bool building = false;
    count_keyspace(c, coll->records);
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        struct index_def *def = &coll->indexes[i];
        uint8_t key[8];
        count_keyspace(c, def->keyspace);
        store_be64(key, def->keyspace);
        map_put(l->index_rts, slice_of(key, 8), def->rt);
        def->rt->ready_ts = def->state == INDEX_READY ? eng_visible(c->e) : 0;
        building |= def->state == INDEX_BUILDING;
    }
    coll->version = c->next_version++;
    coll->rt->version = coll->version;
    if (building)
        note_unfinished(l, coll);
    catalog_publish(c, d->db, d->name, coll);
    return 0;
}

static int load_row(struct loader *l, const struct eng_row *row)
{
    if (slice_eq(row->key, COUNTER_KEY)) {
        if (row->value.n == 8 && load_le64(row->value.p) > l->c->next_keyspace)
            l->c->next_keyspace = load_le64(row->value.p);
        return 0;
    }
    struct arena *a = arena_new(0);
    struct definition d;
    int rc;
    if (definition_read(row->key, row->value, a, &d))
        rc = load_definition(l, &d);
    else
        rc = err_set(l->err, ERR_INTERNAL_ERROR, "The catalog's row of '%.*s' makes no sense",
                     (int)OV_MIN(row->key.n, 300), (const char *)row->key.p);
    arena_free(a);
    return rc;
}

static int load_multikey(struct loader *l, const struct eng_row *row)
{
    struct index_rt *rt = row->key.n == 9 ? map_get(l->index_rts, slice_of(row->key.p, 8)) : NULL;
    if (rt && row->key.p[8] < INDEX_FIELDS_MAX) {
        rt->multikey |= 1u << row->key.p[8];
        rt->multikey_stored |= 1u << row->key.p[8];
    }
    return 0;
}

static int load_keyspace(struct loader *l, struct blocking *b, uint64_t keyspace,
                         int (*load)(struct loader *, const struct eng_row *))
{
    struct eng_txn *t = eng_begin(l->c->e, ENG_TXN_READ_ONLY, 0);
    struct eng_scan *s = eng_scan_open(t, &(struct eng_range){.keyspace = keyspace});
    struct eng_page page = {.more = true};
    int rc = 0;
    while (rc == 0 && page.more) {
        enum eng_result r = WAIT_FOR(b, eng_scan_next(s, &page, &b->call));
        if (r != ENG_OK) {
            struct eng_error why = {0};
            eng_error(l->c->e, &why);
            rc = err_set(l->err, ERR_INTERNAL_ERROR, "The catalog cannot be read: %s",
                         why.result == r ? why.msg : eng_result_name(r));
        }
        for (size_t i = 0; rc == 0 && i < page.n; i++)
            rc = load(l, &page.rows[i]);
    }
    eng_scan_close(s);
    eng_end(t);
    return rc;
}

/* What is left of an index build that did not end: its entries are incomplete, and nobody waits for it any more. */
static int drop_unfinished(struct loader *l, struct blocking *b, struct collection *coll)
{
    struct definition d;
    definition_of(coll, &d);
    d.n_indexes = 0;
    struct eng_txn *t = eng_begin(l->c->e, 0, 0);
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        const struct index_def *def = &coll->indexes[i];
        char name[300], ns[300];
        if (def->state == INDEX_READY) {
            d.indexes[d.n_indexes++] = d.indexes[i];
            continue;
        }
        eng_drop_keyspace(t, def->keyspace);
        log_line(LOG_WARNING, "INDEX", 30001, "Dropping an index whose build did not end",
                 "\"namespace\":%s,\"index\":%s", log_quote(coll->ns, strlen(coll->ns), ns, sizeof(ns)),
                 log_quote(def->name, strlen(def->name), name, sizeof(name)));
    }
    struct collection *fresh = definition_new(&d, l->err);
    if (!fresh) {
        eng_end(t);
        return l->err->code;
    }
    struct buf row;
    buf_init(&row);
    definition_write(&d, &row);
    eng_put(t, CATALOG_ROWS, slice_str(coll->ns), buf_slice(&row), ENG_UPDATE);
    buf_free(&row);
    enum eng_result r = WAIT_FOR(b, eng_commit(t, ENG_DUR_LOCAL, NULL, &b->call));
    eng_end(t);
    fresh->version = coll->version;
    catalog_publish(l->c, d.db, d.name, fresh);
    return r == ENG_OK ? 0
                       : err_set(l->err, ERR_INTERNAL_ERROR, "The catalog cannot be written: %s", eng_result_name(r));
}

int catalog_load(struct catalog *c, struct err *err)
{
    struct loader l = {.c = c, .err = err, .index_rts = map_new()};
    struct blocking b;
    eng_call_init(&b.call, wake);
    sem_init(&b.woken, 0, 0);
    eng_step_enter(c->e);
    int rc = load_keyspace(&l, &b, CATALOG_ROWS, load_row);
    if (rc == 0)
        rc = load_keyspace(&l, &b, MULTIKEY_ROWS, load_multikey);
    for (size_t i = 0; i < l.n_unfinished; i++) {
        if (rc == 0)
            rc = drop_unfinished(&l, &b, l.unfinished[i]);
        collection_unref(l.unfinished[i]);
    }
    eng_step_leave(c->e);
    free(l.unfinished);
    map_free(l.index_rts);
    sem_destroy(&b.woken);
    return rc;
}
