/* A document's way: LOCK_DOC, GET_DOC, its keys, LOCK_KEYS (unique indexes, R22), GET_ENTRIES, then the missing entries go into the batch.
 * Whatever is pending is called again as it was; what has been found out about the document stays in `scratch` meanwhile.
 *
 * No deadlock: a writer locks one document, then keys. The build holds the locks of a whole batch, so it never waits while it holds any of
 * earlier documents: then it commits the batch first and starts over with the document.
 * Between slices nothing is held: neither locks nor a snapshot nor the catalog's writers' count. Documents that come after the indexes were
 * added have entries by their writers, so each slice may read a newer snapshot. */
#include "server/write/index_build.h"

#include <stdlib.h>

#include "server/write/dup_error.h"

enum { BATCH_DOCS = 64, BATCH_BYTES = 256 * 1024, SCRATCH_KEEP = 1024 * 1024 };
enum stage { LOCK_DOC, GET_DOC, LOCK_KEYS, GET_ENTRIES };
enum verdict { GO_ON, STOP_AGAIN, STOP_WAIT, STOP_FAILED };

struct index_build {
    struct engine *e;
    struct catalog *c;
    const char *db, *name;
    const char *const *names;
    uint32_t n;
    uint64_t keyspaces[INDEX_MAX]; /* 0 until first seen */
    struct arena *arena;

    struct collection *coll; /* while entered as a writer; else NULL */
    struct index_def *defs[INDEX_MAX];
    struct eng_txn *txn;    /* while entered */
    struct eng_txn *reader; /* of the walk; over a wait only while the scan itself is pending */
    struct eng_scan *scan;
    bool committing;
    uint32_t batch;           /* documents in it */
    uint64_t next, looked_at; /* record id to go on with */
    bool end;                 /* no more documents */

    /* The document in hand. */
    bool in_hand;
    enum stage stage;
    uint8_t rid[8];
    struct arena *scratch;
    struct keyset sets[INDEX_MAX];
    uint32_t set; /* LOCK_KEYS: the next one to lock */
    size_t key;
};

struct index_build *index_build_new(struct arena *a, struct engine *e, struct catalog *c, const char *db,
                                    const char *name, const char *const *names, uint32_t n)
{
    OV_ASSERT(n <= INDEX_MAX);
    struct index_build *b = arena_zalloc(a, sizeof(*b));
    const char **copy = arena_alloc(a, n * sizeof(*copy));
    for (uint32_t i = 0; i < n; i++)
        copy[i] = arena_strndup(a, names[i], strlen(names[i]));
    b->e = e;
    b->c = c;
    b->db = arena_strndup(a, db, strlen(db));
    b->name = arena_strndup(a, name, strlen(name));
    b->names = copy;
    b->n = n;
    b->arena = a;
    b->scratch = arena_new(0);
    return b;
}

uint64_t index_build_documents(const struct index_build *b)
{
    return b->looked_at;
}

/* ---- coming and going ---- */

static void close_scan(struct index_build *b)
{
    eng_scan_close(b->scan);
    eng_end(b->reader);
    b->scan = NULL;
    b->reader = NULL;
}

static void leave(struct index_build *b)
{
    if (!b->coll)
        return;
    close_scan(b);
    eng_end(b->txn);
    b->txn = NULL;
    b->batch = 0;
    b->committing = b->in_hand = false;
    catalog_write_leave(b->c, b->coll);
    collection_unref(b->coll);
    b->coll = NULL;
}

void index_build_end(struct index_build *b)
{
    if (!b)
        return;
    leave(b);
    arena_free(b->scratch);
    b->scratch = NULL;
}

/* The definitions of the indexes, in the collection's order, which is that of their keyspaces. */
static bool find_indexes(struct index_build *b)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < b->coll->n_indexes; i++) {
        struct index_def *def = &b->coll->indexes[i];
        for (uint32_t j = 0; j < b->n; j++)
            if (strcmp(def->name, b->names[j]) == 0 && (!b->keyspaces[j] || b->keyspaces[j] == def->keyspace)) {
                b->keyspaces[j] = def->keyspace;
                b->defs[found++] = def;
            }
    }
    return found == b->n;
}

static enum verdict enter(struct index_build *b, struct eng_call *call, struct err *err)
{
    enum eng_result r;
    do {
        collection_unref(b->coll);
        b->coll = catalog_get(b->c, b->db, b->name);
        if (!b->coll) {
            err_set(err, ERR_INDEX_BUILD_ABORTED, "Index build aborted: the collection %s.%s was dropped", b->db,
                    b->name);
            return STOP_FAILED;
        }
        r = catalog_write_enter(b->c, b->coll, call);
    } while (r == ENG_CONFLICT);
    if (r != ENG_OK) {
        collection_unref(b->coll);
        b->coll = NULL;
        return STOP_WAIT;
    }
    b->txn = eng_begin(b->e, 0, 0);
    if (find_indexes(b))
        return GO_ON;
    err_set(err, ERR_INDEX_BUILD_ABORTED, "Index build aborted: an index of %s was dropped", b->coll->ns);
    return STOP_FAILED;
}

static enum verdict engine_failed(struct err *err, enum eng_result r)
{
    if (r == ENG_PENDING)
        return STOP_WAIT;
    if (r == ENG_DISK_FULL)
        err_set(err, 14031, "available disk space is not enough for the index build");
    else
        err_set(err, ERR_INTERNAL_ERROR, "the index build failed: %s", eng_result_name(r));
    return STOP_FAILED;
}

static enum verdict commit(struct index_build *b, struct eng_call *call, struct err *err)
{
    b->committing = true;
    enum eng_result r = eng_commit(b->txn, ENG_DUR_LOCAL, NULL, call);
    if (r != ENG_OK)
        return engine_failed(err, r);
    b->committing = false;
    b->batch = 0;
    return GO_ON;
}

/* ---- one document ---- */

static enum eng_result get_document(struct index_build *b, struct eng_call *call, struct err *err)
{
    struct eng_row row;
    enum eng_result r = eng_get(b->txn, b->coll->records, slice_of(b->rid, 8), ENG_GET_NEWEST, &row, call);
    if (r != ENG_OK)
        return r;
    struct slice doc = arena_slice(b->scratch, row.value); /* key sets point into it over waits */
    for (uint32_t i = 0; i < b->n; i++)
        if (keygen(b->defs[i], doc.p, b->scratch, &b->sets[i], err) != 0)
            return ENG_OK;
    return ENG_OK;
}

/* In the order in which writers do: by keyspace, then key. */
static enum eng_result lock_keys(struct index_build *b, struct eng_call *call)
{
    for (; b->set < b->n; b->set++, b->key = 0) {
        const struct index_def *def = b->defs[b->set];
        for (; def->unique && b->key < b->sets[b->set].n; b->key++) {
            enum eng_result r = eng_lock(b->txn, def->keyspace, b->sets[b->set].keys[b->key], call);
            if (r != ENG_OK)
                return r;
        }
    }
    return ENG_OK;
}

static struct slice entry_key(struct index_build *b, uint32_t set, size_t i)
{
    struct slice key = b->sets[set].keys[i];
    if (b->defs[set]->unique)
        return key;
    uint8_t *whole = arena_alloc(b->scratch, key.n + 8);
    memcpy(whole, key.p, key.n);
    memcpy(whole + key.n, b->rid, 8);
    return slice_of(whole, key.n + 8);
}

/* Adds the entries of one index that are not there. */
static enum eng_result add_entries(struct index_build *b, uint32_t set, struct eng_call *call, struct err *err)
{
    struct index_def *def = b->defs[set];
    const struct keyset *keys = &b->sets[set];
    struct slice *at = arena_alloc(b->scratch, keys->n * sizeof(*at));
    struct eng_row *rows = arena_alloc(b->scratch, keys->n * sizeof(*rows));
    for (size_t i = 0; i < keys->n; i++)
        at[i] = entry_key(b, set, i);
    enum eng_result r = eng_multi_get(b->txn, def->keyspace, at, keys->n, ENG_GET_NEWEST, rows, call);
    if (r != ENG_OK)
        return r;
    if (keys->multikey)
        catalog_set_multikey(b->c, b->coll, def, keys->multikey, b->txn);
    for (size_t i = 0; i < keys->n; i++) {
        if (!rows[i].value.p)
            eng_put(b->txn, def->keyspace, at[i], def->unique ? slice_of(b->rid, 8) : slice_of("", 0), ENG_INSERT);
        else if (def->unique && memcmp(rows[i].value.p, b->rid, 8) != 0)
            return dup_key_error(err, b->arena, b->coll->ns, def, keys->values[i]), ENG_OK;
    }
    return ENG_OK;
}

/* Goes on with the document in hand. ENG_OK: it is done (err: it cannot be). */
static enum eng_result go_on(struct index_build *b, struct eng_call *call, struct err *err)
{
    enum eng_result r;
    switch (b->stage) {
    case LOCK_DOC:
        if ((r = eng_lock(b->txn, b->coll->records, slice_of(b->rid, 8), call)) != ENG_OK)
            return r;
        b->stage = GET_DOC; /* fall through */
    case GET_DOC:
        r = get_document(b, call, err);
        if (r == ENG_NOT_FOUND)
            return ENG_OK; /* deleted since the snapshot */
        if (r != ENG_OK || err->code)
            return r;
        b->set = 0;
        b->key = 0;
        b->stage = LOCK_KEYS; /* fall through */
    case LOCK_KEYS:
        if ((r = lock_keys(b, call)) != ENG_OK)
            return r;
        b->set = 0;
        b->stage = GET_ENTRIES; /* fall through */
    case GET_ENTRIES:
        for (; b->set < b->n && !err->code; b->set++)
            if ((r = add_entries(b, b->set, call, err)) != ENG_OK)
                return r;
    }
    return ENG_OK;
}

static void take_in_hand(struct index_build *b, const uint8_t rid[8])
{
    b->in_hand = true;
    b->stage = LOCK_DOC;
    memcpy(b->rid, rid, 8);
    if (arena_used(b->scratch) > SCRATCH_KEEP) {
        arena_free(b->scratch);
        b->scratch = arena_new(0);
    } else {
        arena_reset(b->scratch);
    }
}

static enum verdict add_document(struct index_build *b, struct eng_call *call, struct err *err)
{
    for (;;) {
        enum eng_result r = go_on(b, call, err);
        if (err->code)
            return STOP_FAILED;
        if (r == ENG_OK)
            break;
        if (r != ENG_PENDING || b->batch == 0)
            return engine_failed(err, r);
        eng_call_cancel(b->e, call); /* not while others wait for the batch's locks: see above */
        enum verdict v = commit(b, call, err);
        if (v != GO_ON)
            return v;
        take_in_hand(b, b->rid);
    }
    b->in_hand = false;
    b->next = load_be64(b->rid) + 1;
    b->looked_at++;
    b->batch++;
    return GO_ON;
}

/* ---- the walk ---- */

static enum verdict add_page(struct index_build *b, const struct eng_page *page, struct operation *op,
                             struct eng_call *call, struct err *err)
{
    for (size_t i = 0; i < page->n; i++) {
        if (page->rows[i].key.n != 8)
            continue;
        take_in_hand(b, page->rows[i].key.p);
        enum verdict v = add_document(b, call, err);
        if (v == GO_ON && (b->batch >= BATCH_DOCS || eng_txn_bytes(b->txn) >= BATCH_BYTES))
            v = commit(b, call, err);
        if (v != GO_ON)
            return v;
        if (op && op_slice_over(op))
            return STOP_AGAIN;
    }
    return GO_ON;
}

static void open_scan(struct index_build *b)
{
    uint8_t from[8];
    store_be64(from, b->next);
    struct eng_range range = {.keyspace = b->coll->records, .from = slice_of(from, 8), .keys_only = true};
    b->reader = eng_begin(b->e, ENG_TXN_READ_ONLY, 0);
    b->scan = eng_scan_open(b->reader, &range);
}

static enum verdict walk(struct index_build *b, struct operation *op, struct eng_call *call, struct err *err)
{
    struct eng_page page = {.more = true};
    enum verdict v = GO_ON;
    if (!b->scan)
        open_scan(b);
    while (v == GO_ON && page.more) {
        enum eng_result r = eng_scan_next(b->scan, &page, call);
        if (r == ENG_PENDING) { /* the scan is kept: it knows how far it is among deletions */
            eng_txn_hold(b->reader);
            return STOP_WAIT;
        }
        v = r == ENG_OK ? add_page(b, &page, op, call, err) : engine_failed(err, r);
    }
    close_scan(b); /* opened again behind the last document */
    b->end = v == GO_ON;
    return v;
}

/* What a wait has interrupted. */
static enum verdict resume(struct index_build *b, struct eng_call *call, struct err *err)
{
    if (b->committing) {
        enum verdict v = commit(b, call, err);
        if (v != GO_ON)
            return v;
        if (b->in_hand) /* its locks are gone with the batch */
            take_in_hand(b, b->rid);
    }
    return b->in_hand ? add_document(b, call, err) : GO_ON;
}

enum build_result index_build_step(struct index_build *b, struct operation *op, struct eng_call *call, struct err *err)
{
    enum verdict v = b->coll ? resume(b, call, err) : enter(b, call, err);
    if (v == GO_ON && !b->end)
        v = walk(b, op, call, err);
    if ((v == GO_ON || v == STOP_AGAIN) && b->coll && b->batch) { /* not again after a commit that waited */
        enum verdict committed = commit(b, call, err);
        v = committed == GO_ON ? v : committed;
    }
    if (v == STOP_WAIT) {
        if (b->txn)
            eng_txn_hold(b->txn);
        return BUILD_WAIT;
    }
    leave(b);
    return v == STOP_FAILED ? BUILD_FAILED : v == STOP_AGAIN ? BUILD_AGAIN : BUILD_DONE;
}
