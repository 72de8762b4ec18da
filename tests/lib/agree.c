/* Every document's keys are made anew and looked up; as many entries as keys then means that there are no others. */
#include "tests/lib/agree.h"

#include <stdio.h>

static char what[400];

static bool entries_of(struct db *d, struct eng_txn *t, struct collection *coll, const struct index_def *def,
                       const struct eng_row *record, struct arena *a, uint64_t *n)
{
    struct keyset keys;
    struct err err;
    err_init(&err, a);
    if (keygen(def, record->value.p, a, &keys, &err) != 0) {
        snprintf(what, sizeof(what), "%s %s: %s", coll->ns, def->name, err.msg);
        return false;
    }
    for (size_t i = 0; i < keys.n; i++) {
        bool unique = def->unique || def->is_id;
        struct eng_row row;
        uint8_t *key = arena_alloc(a, keys.keys[i].n + 8);
        memcpy(key, keys.keys[i].p, keys.keys[i].n);
        memcpy(key + keys.keys[i].n, record->key.p, 8);
        enum eng_result r = DB_WAIT(d, eng_get(t, def->keyspace, slice_of(key, keys.keys[i].n + (unique ? 0 : 8)),
                                               ENG_GET_NEWEST, &row, &d->c));
        if (r != ENG_OK || (unique && memcmp(row.value.p, record->key.p, 8) != 0)) {
            snprintf(what, sizeof(what), "%s %s: record %llu %s", coll->ns, def->name,
                     (unsigned long long)load_be64(record->key.p),
                     r == ENG_OK ? "has lost its key to another one" : "lacks an entry");
            return false;
        }
    }
    if (keys.multikey & ~atomic_load(&def->rt->multikey)) {
        snprintf(what, sizeof(what), "%s %s: a multikey bit is missing", coll->ns, def->name);
        return false;
    }
    *n += keys.n;
    return true;
}

/* Counts the rows of a keyspace; with `coll`, looks at each as a document. */
static bool walk(struct db *d, struct eng_txn *t, uint64_t keyspace, struct collection *coll, uint64_t *n,
                 uint64_t *n_entries)
{
    struct eng_range range = {.keyspace = keyspace};
    struct eng_scan *scan = eng_scan_open(t, &range);
    struct eng_page page = {.more = true};
    struct arena *a = arena_new(0);
    bool good = true;
    *n = 0;
    while (good && page.more) {
        if (DB_WAIT(d, eng_scan_next(scan, &page, &d->c)) != ENG_OK) {
            snprintf(what, sizeof(what), "a scan has failed");
            good = false;
            break;
        }
        for (size_t i = 0; good && i < page.n; i++) {
            for (uint32_t x = 0; good && coll && x < coll->n_indexes; x++)
                good = entries_of(d, t, coll, &coll->indexes[x], &page.rows[i], a, &n_entries[x]);
            arena_reset(a);
        }
        *n += page.n;
    }
    eng_scan_close(scan);
    arena_free(a);
    return good;
}

static bool look(struct db *d, struct eng_txn *t, struct collection *coll)
{
    uint64_t keys[INDEX_MAX] = {0}, n, entries;
    if (!walk(d, t, coll->records, coll, &n, keys))
        return false;
    if (eng_count(d->e, coll->records) != (int64_t)n) {
        snprintf(what, sizeof(what), "%s: %llu documents are counted as %lld", coll->ns, (unsigned long long)n,
                 (long long)eng_count(d->e, coll->records));
        return false;
    }
    for (uint32_t x = 0; x < coll->n_indexes; x++) {
        const struct index_def *def = &coll->indexes[x];
        if (!walk(d, t, def->keyspace, NULL, &entries, NULL))
            return false;
        if (entries != keys[x] || eng_count(d->e, def->keyspace) != (int64_t)entries) {
            snprintf(what, sizeof(what), "%s %s: %llu keys, %llu entries, counted as %lld", coll->ns, def->name,
                     (unsigned long long)keys[x], (unsigned long long)entries,
                     (long long)eng_count(d->e, def->keyspace));
            return false;
        }
    }
    return true;
}

const char *agree(struct db *d, struct collection *coll)
{
    eng_step_enter(d->e);
    struct eng_txn *t = eng_begin(d->e, ENG_TXN_READ_ONLY, 0);
    bool good = look(d, t, coll);
    eng_end(t);
    eng_step_leave(d->e);
    return good ? NULL : what;
}
