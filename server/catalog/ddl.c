/* Changes of the catalog, one at a time a collection (R21):
 *
 *   TURN  --first in line--> DRAIN --no writer holds the old definition--> LOCK --new keyspaces have numbers--> COMMIT --published--> over
 *
 * Announced means rt->ddl is set: writers that come now wait. What is pending between two calls is found again by its eng_call. */
#include <stdlib.h>

#include "server/base/rand.h"
#include "server/catalog/catalog_private.h"

enum ddl_kind { DDL_CREATE, DDL_DROP, DDL_INDEX_ADD, DDL_INDEX_READY, DDL_INDEX_DROP, DDL_RENAME, DDL_OPTIONS };
enum ddl_phase { TURN, DRAIN, LOCK, COMMIT };

struct request {
    enum ddl_kind kind;
    const char *db, *name;
    const uint8_t *options;        /* create, set_options */
    const char *to_db, *to_name;   /* rename; else NULL */
    bool drop_target;              /* rename */
    const struct collection *from; /* set_options: what the options were made from */
    bool *stale;                   /* set_options */
    const struct index_def *index; /* set_options: one of `from`, or NULL */
    const uint8_t *spec;           /* and what it becomes */
    bool *existed;                 /* create */
    const struct index_def *defs;  /* index_add */
    const char *const *names;      /* index_ready, index_drop */
    uint32_t n;
};

struct ddl {
    struct ddl *next;
    struct eng_call *call;
    struct ns_key key, to; /* `to`: of a rename; else empty */
    enum ddl_phase phase;
    bool waiting, announced, entered; /* for its turn or for writers; writers wait; takes part in the database */
    struct collection *old, *fresh;   /* references */
    struct collection *target;        /* likewise: what a rename takes the place of; announced like `old` */
    struct eng_txn *txn;
};

struct waiter {
    struct waiter *next;
    struct eng_call *call;
    struct collection_rt *rt;
};

/* ---- who waits for whom ---- */

static void wake_waiters(struct catalog *c, const struct collection_rt *rt)
{
    ASSERT_HELD(&c->ddl_lock);
    for (struct waiter **at = &c->waiters; *at;) {
        struct waiter *w = *at;
        if (w->rt != rt) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->call->wake(w->call);
        atomic_fetch_sub(&c->pending, 1); /* after the wake-up: catalog_cancel trusts a zero */
        free(w);
    }
}

static void add_waiter(struct catalog *c, struct collection_rt *rt, struct eng_call *call)
{
    ASSERT_HELD(&c->ddl_lock);
    struct waiter *w = ov_malloc(sizeof(*w));
    *w = (struct waiter){.next = c->waiters, .call = call, .rt = rt};
    c->waiters = w;
    atomic_fetch_add(&c->pending, 1);
}

bool ddl_wait_for(struct catalog *c, struct collection_rt *rt, struct eng_call *call)
{
    mutex_lock(&c->ddl_lock);
    bool wait = atomic_load(&rt->ddl);
    if (wait)
        add_waiter(c, rt, call);
    mutex_unlock(&c->ddl_lock);
    return wait;
}

bool catalog_await_change(struct catalog *c, struct collection *coll, struct eng_call *call)
{
    /* A change publishes first and wakes under the lock afterwards: what is still in force here will be followed by a wake-up. */
    mutex_lock(&c->ddl_lock);
    struct collection *now = catalog_get(c, coll->db, coll->name);
    bool wait = now == coll;
    if (wait)
        add_waiter(c, coll->rt, call);
    mutex_unlock(&c->ddl_lock);
    collection_unref(now);
    return wait;
}

static void wake_ddl(struct ddl *d)
{
    if (d->waiting) {
        d->waiting = false;
        d->call->wake(d->call);
    }
}

void ddl_writer_left(struct catalog *c, struct collection_rt *rt)
{
    mutex_lock(&c->ddl_lock);
    for (struct ddl *d = c->ddl; d; d = d->next)
        if (d->announced && (d->old->rt == rt || (d->target && d->target->rt == rt)))
            wake_ddl(d);
    mutex_unlock(&c->ddl_lock);
}

static bool same_key(const struct ns_key *a, const struct ns_key *b)
{
    return a->n && slice_eq(slice_of(a->bytes, a->n), slice_of(b->bytes, b->n));
}

static bool overlaps(const struct ddl *a, const struct ddl *b) /* a name that both are about */
{
    return same_key(&a->key, &b->key) || same_key(&a->key, &b->to) || same_key(&a->to, &b->key) ||
           same_key(&a->to, &b->to);
}

/* First come first served for each name: a rename holds two, and cannot deadlock since it holds neither before it is first for both. */
static bool my_turn(struct catalog *c, struct ddl *d)
{
    mutex_lock(&c->ddl_lock);
    const struct ddl *before = c->ddl;
    while (before != d && !overlaps(before, d))
        before = before->next;
    d->waiting = before != d;
    bool first = !d->waiting;
    mutex_unlock(&c->ddl_lock);
    return first;
}

static void announce(struct catalog *c, struct ddl *d)
{
    mutex_lock(&c->ddl_lock);
    d->announced = true;
    atomic_store(&d->old->rt->ddl, 1);
    if (d->target)
        atomic_store(&d->target->rt->ddl, 1);
    mutex_unlock(&c->ddl_lock);
}

static bool drained(struct catalog *c, struct ddl *d)
{
    if (!d->announced)
        return true;
    OV_ASSERT(d->old); /* only what is there can be announced */
    mutex_lock(&c->ddl_lock);
    bool none = atomic_load(&d->old->rt->writers) == 0 && (!d->target || atomic_load(&d->target->rt->writers) == 0);
    d->waiting = !none;
    mutex_unlock(&c->ddl_lock);
    return none;
}

static struct ddl *find(struct catalog *c, const struct eng_call *call)
{
    if (atomic_load(&c->pending) == 0)
        return NULL;
    mutex_lock(&c->ddl_lock);
    struct ddl *d = c->ddl;
    while (d && d->call != call)
        d = d->next;
    mutex_unlock(&c->ddl_lock);
    return d;
}

static struct ddl *enqueue(struct catalog *c, const struct request *q, struct eng_call *call, struct err *err)
{
    if (names_check(q->db, q->name, err) != 0 || (q->to_name && names_check(q->to_db, q->to_name, err) != 0))
        return NULL;
    struct ddl *d = ov_calloc(1, sizeof(*d));
    d->call = call;
    OV_ASSERT(ns_key_make(&d->key, q->db, q->name));
    if (q->to_name)
        OV_ASSERT(ns_key_make(&d->to, q->to_db, q->to_name));
    mutex_lock(&c->ddl_lock);
    *c->ddl_end = d;
    c->ddl_end = &d->next;
    atomic_fetch_add(&c->pending, 1);
    mutex_unlock(&c->ddl_lock);
    return d;
}

static void unlink_ddl(struct catalog *c, struct ddl *d)
{
    struct ddl **at = &c->ddl;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    if (c->ddl_end == &d->next)
        c->ddl_end = at;
}

/* Over, in whatever way: lets writers and the next in line go on. */
static void finish(struct catalog *c, struct ddl *d)
{
    eng_end(d->txn);
    mutex_lock(&c->ddl_lock);
    unlink_ddl(c, d);
    struct collection *const held[] = {d->old, d->target};
    for (size_t i = 0; i < OV_LEN(held); i++) {
        if (d->announced && held[i])
            atomic_store(&held[i]->rt->ddl, 0);
        if (held[i])
            wake_waiters(c, held[i]->rt);
    }
    for (struct ddl *next = c->ddl; next; next = next->next)
        if (overlaps(next, d))
            wake_ddl(next);
    atomic_fetch_sub(&c->pending, 1);
    mutex_unlock(&c->ddl_lock);
    if (d->entered) /* a key begins with the database's name and a NUL */
        names_leave(c, (const char *)(d->to.n ? d->to.bytes : d->key.bytes));
    collection_unref(d->old);
    collection_unref(d->target);
    collection_unref(d->fresh);
    free(d);
}

void catalog_cancel(struct catalog *c, struct eng_call *call)
{
    if (atomic_load(&c->pending) == 0)
        return;
    mutex_lock(&c->ddl_lock);
    for (struct waiter **at = &c->waiters; *at;) {
        struct waiter *w = *at;
        if (w->call != call) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        atomic_fetch_sub(&c->pending, 1);
        free(w);
    }
    mutex_unlock(&c->ddl_lock);
    struct ddl *d = find(c, call);
    if (!d)
        return;
    if (d->txn)
        eng_call_cancel(c->e, call);
    finish(c, d);
}

/* ---- what is to be done ---- */

static enum ddl_result refuse(struct err *err, int code, const char *what, const struct request *q)
{
    err_set(err, code, "%s: %s.%s", what, q->db, q->name);
    return DDL_ERROR;
}

/* DDL_PENDING: there is something to do. */
static enum ddl_result check_create(struct catalog *c, struct ddl *d, const struct request *q, struct err *err)
{
    *q->existed = d->old != NULL;
    if (!d->old) {
        if (names_enter(c, q->db, err) != 0)
            return DDL_ERROR;
        d->entered = true;
        return DDL_PENDING;
    }
    if (!q->options || bdoc_cmp(q->options, d->old->options) == 0)
        return DDL_OK;
    struct arena *a = arena_new(0);
    err_set(err, ERR_NAMESPACE_EXISTS, "namespace %s already exists, but with different options: %s", d->old->ns,
            bval_shell(a, bval_from_doc(d->old->options)));
    arena_free(a);
    return DDL_ERROR;
}

static bool named(const struct request *q, const char *name)
{
    for (uint32_t i = 0; i < q->n; i++)
        if (strcmp(q->names[i], name) == 0)
            return true;
    return false;
}

static enum ddl_result check_names(struct ddl *d, const struct request *q, struct err *err)
{
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t j = 0;
        while (j < d->old->n_indexes && strcmp(d->old->indexes[j].name, q->names[i]) != 0)
            j++;
        if (j == d->old->n_indexes) {
            err_set(err, ERR_INDEX_NOT_FOUND, "index not found with name [%s]", q->names[i]);
            return DDL_ERROR;
        }
        if (j == 0 && q->kind == DDL_INDEX_DROP) {
            err_set(err, ERR_INVALID_OPTIONS, "cannot drop _id index");
            return DDL_ERROR;
        }
    }
    return DDL_PENDING;
}

static enum ddl_result check_add(struct ddl *d, const struct request *q, struct err *err)
{
    for (uint32_t i = 0; i < q->n; i++) {
        for (uint32_t j = 0; j < d->old->n_indexes; j++)
            if (strcmp(d->old->indexes[j].name, q->defs[i].name) == 0) {
                err_set(err, ERR_INDEX_ALREADY_EXISTS, "Index already exists with name: %s", q->defs[i].name);
                return DDL_ERROR;
            }
        if (d->old->n_indexes + q->n > INDEX_MAX) {
            struct arena *a = arena_new(0);
            err_set(err, ERR_CANNOT_CREATE_INDEX, "add index fails, too many indexes for %s key:%s", d->old->ns,
                    bval_shell(a, bval_from_doc(q->defs[i].key_pattern)));
            arena_free(a);
            return DDL_ERROR;
        }
    }
    return DDL_PENDING;
}

static enum ddl_result check_rename(struct catalog *c, struct ddl *d, const struct request *q, struct err *err)
{
    if (!d->old) {
        err_set(err, ERR_NAMESPACE_NOT_FOUND, "Source collection %s.%s does not exist", q->db, q->name);
        return DDL_ERROR;
    }
    for (uint32_t i = 0; i < d->old->n_indexes; i++)
        if (d->old->indexes[i].state == INDEX_BUILDING) { /* it goes by the name */
            err_set(err, 12587, "cannot perform operation: an index build is currently running for collection '%s'",
                    d->old->ns);
            return DDL_ERROR;
        }
    d->target = catalog_get(c, q->to_db, q->to_name);
    if (d->target && !q->drop_target) {
        err_set(err, ERR_NAMESPACE_EXISTS, "target namespace exists");
        return DDL_ERROR;
    }
    if (names_enter(c, q->to_db, err) != 0)
        return DDL_ERROR;
    d->entered = true;
    return DDL_PENDING;
}

static enum ddl_result check(struct catalog *c, struct ddl *d, const struct request *q, struct err *err)
{
    d->old = catalog_get(c, q->db, q->name);
    if (q->kind == DDL_CREATE)
        return check_create(c, d, q, err);
    if (q->kind == DDL_RENAME)
        return check_rename(c, d, q, err);
    if (q->kind == DDL_OPTIONS && d->old != q->from) {
        *q->stale = true;
        return DDL_OK;
    }
    if (!d->old)
        return q->kind == DDL_DROP ? refuse(err, ERR_NAMESPACE_NOT_FOUND, "ns not found", q)
                                   : refuse(err, ERR_NAMESPACE_NOT_FOUND, "ns does not exist", q);
    switch (q->kind) {
    case DDL_INDEX_ADD:
        return check_add(d, q, err);
    case DDL_INDEX_READY:
    case DDL_INDEX_DROP:
        return check_names(d, q, err);
    default:
        return DDL_PENDING;
    }
}

/* ---- the batch ---- */

static uint64_t new_keyspace(struct catalog *c, enum keyspace_kind kind)
{
    return keyspace_id(kind, atomic_fetch_add(&c->next_keyspace, 1));
}

static void new_uuid(uint8_t out[16]) /* version 4: random */
{
    rand_secure(out, 16);
    out[6] = (out[6] & 0x0f) | 0x40;
    out[8] = (out[8] & 0x3f) | 0x80;
}

static void add_indexes(struct catalog *c, const struct request *q, struct definition *def)
{
    for (uint32_t i = 0; i < q->n; i++) {
        enum keyspace_kind kind = q->defs[i].unique ? KEYSPACE_UNIQUE : KEYSPACE_INDEX;
        def->indexes[def->n_indexes++] = (struct definition_index){
            .spec = q->defs[i].spec, .keyspace = new_keyspace(c, kind), .state = INDEX_BUILDING};
    }
}

static void drop_indexes(const struct collection *old, const struct request *q, struct definition *def,
                         struct eng_txn *t)
{
    def->n_indexes = 0;
    for (uint32_t i = 0; i < old->n_indexes; i++) {
        if (named(q, old->indexes[i].name))
            eng_drop_keyspace(t, old->indexes[i].keyspace);
        else
            def->indexes[def->n_indexes++] = def->indexes[i];
    }
}

static void drop_keyspaces(const struct collection *old, struct eng_txn *t)
{
    eng_drop_keyspace(t, old->records);
    for (uint32_t i = 0; i < old->n_indexes; i++)
        eng_drop_keyspace(t, old->indexes[i].keyspace);
}

static bool takes_numbers(const struct request *q)
{
    return q->kind == DDL_CREATE || q->kind == DDL_INDEX_ADD;
}

static void put_counter(struct catalog *c, struct eng_txn *t)
{
    uint8_t value[8];
    store_le64(value, atomic_load(&c->next_keyspace));
    eng_put(t, CATALOG_ROWS, COUNTER_KEY, slice_of(value, 8), ENG_UPDATE);
}

/* What the definition becomes. `uuid` is where a new one goes. */
static void change_definition(struct catalog *c, struct ddl *d, const struct request *q, struct definition *def,
                              uint8_t uuid[16])
{
    if (d->old)
        definition_of(d->old, def);
    switch (q->kind) {
    case DDL_CREATE:
        new_uuid(uuid);
        *def = (struct definition){.db = q->db, .name = q->name, .uuid = uuid, .n_indexes = 1};
        def->options = q->options ? q->options : EMPTY_DOC;
        def->records = new_keyspace(c, KEYSPACE_DOCS);
        def->indexes[0] = (struct definition_index){
            .spec = ID_INDEX_SPEC, .keyspace = new_keyspace(c, KEYSPACE_UNIQUE), .state = INDEX_READY};
        break;
    case DDL_INDEX_ADD:
        add_indexes(c, q, def);
        break;
    case DDL_INDEX_READY:
        for (uint32_t i = 0; i < def->n_indexes; i++)
            if (named(q, d->old->indexes[i].name))
                def->indexes[i].state = INDEX_READY;
        break;
    case DDL_INDEX_DROP:
        drop_indexes(d->old, q, def, d->txn);
        break;
    case DDL_RENAME:
        def->db = q->to_db;
        def->name = q->to_name;
        def->rt = NULL; /* to whoever holds the old name the collection is gone */
        if (strcmp(q->db, q->to_db) != 0) {
            new_uuid(uuid);
            def->uuid = uuid;
        }
        break;
    case DDL_OPTIONS:
        def->options = q->options;
        for (uint32_t i = 0; i < def->n_indexes; i++)
            if (q->index == &d->old->indexes[i])
                def->indexes[i].spec = q->spec;
        break;
    case DDL_DROP:
        break;
    }
}

/* Fills the batch, and makes the new definition. */
static int prepare(struct catalog *c, struct ddl *d, const struct request *q, struct err *err)
{
    if (q->kind == DDL_DROP) {
        eng_del(d->txn, CATALOG_ROWS, slice_str(d->old->ns));
        drop_keyspaces(d->old, d->txn);
        return 0;
    }
    struct definition def;
    uint8_t uuid[16];
    change_definition(c, d, q, &def, uuid);
    d->fresh = definition_new(&def, err);
    if (!d->fresh)
        return err->code;
    struct buf row;
    buf_init(&row);
    definition_write(&def, &row);
    bool there = q->kind == DDL_RENAME ? d->target != NULL : d->old != NULL;
    if (q->kind == DDL_RENAME)
        eng_del(d->txn, CATALOG_ROWS, slice_str(d->old->ns));
    if (d->target)
        drop_keyspaces(d->target, d->txn);
    eng_put(d->txn, CATALOG_ROWS, slice_str(d->fresh->ns), buf_slice(&row), there ? ENG_UPDATE : ENG_INSERT);
    buf_free(&row);
    if (takes_numbers(q))
        put_counter(c, d->txn);
    return 0;
}

static void mark_gone(struct collection *coll)
{
    atomic_store(&coll->rt->dropped, true);
    atomic_store(&coll->rt->version, 0);
}

static void publish_rename(struct catalog *c, struct ddl *d, const struct request *q)
{
    mark_gone(d->old);
    catalog_publish(c, q->db, q->name, NULL);
    names_leave(c, q->db);
    if (d->target) {
        mark_gone(d->target);
        names_leave(c, q->to_db);
    }
}

static void publish(struct catalog *c, struct ddl *d, const struct request *q, uint64_t ts)
{
    struct collection *coll = d->fresh;
    if (!coll) { /* dropped */
        mark_gone(d->old);
        catalog_publish(c, q->db, q->name, NULL);
        names_leave(c, q->db);
        return;
    }
    for (uint32_t i = 0; i < coll->n_indexes; i++)
        if (coll->indexes[i].state == INDEX_READY &&
            (!d->old || (q->kind == DDL_INDEX_READY && named(q, coll->indexes[i].name))))
            atomic_store(&coll->indexes[i].rt->ready_ts, ts);
    if (!d->old)
        atomic_store(&coll->rt->next_rid, 1);
    /* Writers with the definition before `ready` go on: to them a building index is as any other. */
    coll->version = q->kind == DDL_INDEX_READY ? d->old->version : atomic_fetch_add(&c->next_version, 1);
    atomic_store(&coll->rt->version, coll->version);
    if (q->kind == DDL_RENAME)
        publish_rename(c, d, q);
    catalog_publish(c, coll->db, coll->name, coll);
    d->fresh = NULL;
    d->entered = false; /* the collection's now */
}

static void commit_error(struct err *err, enum eng_result r)
{
    if (r == ENG_DISK_FULL)
        err_set(err, 14031, "available disk space is not enough for the change of the catalog");
    else
        err_set(err, ERR_INTERNAL_ERROR, "the change of the catalog was not stored: %s", eng_result_name(r));
}

/* One call's worth. DDL_PENDING: not over. */
static enum ddl_result advance(struct catalog *c, struct ddl *d, const struct request *q, struct err *err)
{
    enum ddl_result done;
    enum eng_result r;
    uint64_t ts = 0;
    switch (d->phase) {
    case TURN:
        if (!my_turn(c, d))
            return DDL_PENDING;
        if ((done = check(c, d, q, err)) != DDL_PENDING)
            return done;
        if (d->old && q->kind != DDL_INDEX_READY)
            announce(c, d);
        d->phase = DRAIN; /* fall through */
    case DRAIN:
        if (!drained(c, d))
            return DDL_PENDING;
        d->txn = eng_begin(c->e, 0, 0);
        d->phase = LOCK; /* fall through */
    case LOCK:
        r = takes_numbers(q) ? eng_lock(d->txn, CATALOG_ROWS, COUNTER_KEY, d->call) : ENG_OK;
        if (r == ENG_PENDING)
            break;
        if (r != ENG_OK) {
            commit_error(err, r);
            return DDL_ERROR;
        }
        if (prepare(c, d, q, err) != 0)
            return DDL_ERROR;
        d->phase = COMMIT; /* fall through */
    case COMMIT:
        r = eng_commit(d->txn, ENG_DUR_LOCAL, &ts, d->call);
        if (r == ENG_PENDING)
            break;
        if (r != ENG_OK) {
            commit_error(err, r);
            return DDL_ERROR;
        }
        publish(c, d, q, ts);
        return DDL_OK;
    }
    eng_txn_hold(d->txn);
    return DDL_PENDING;
}

static enum ddl_result run(struct catalog *c, const struct request *q, struct eng_call *call, struct err *err)
{
    struct ddl *d = find(c, call);
    if (!d && !(d = enqueue(c, q, call, err)))
        return DDL_ERROR;
    enum ddl_result r = advance(c, d, q, err);
    if (r != DDL_PENDING)
        finish(c, d);
    return r;
}

enum ddl_result catalog_create(struct catalog *c, const char *db, const char *name, const uint8_t *options,
                               bool *existed, struct eng_call *call, struct err *err)
{
    return run(c, &(struct request){.kind = DDL_CREATE, .db = db, .name = name, .options = options, .existed = existed},
               call, err);
}

enum ddl_result catalog_drop(struct catalog *c, const char *db, const char *name, struct eng_call *call,
                             struct err *err)
{
    return run(c, &(struct request){.kind = DDL_DROP, .db = db, .name = name}, call, err);
}

enum ddl_result catalog_index_add(struct catalog *c, const char *db, const char *name, const struct index_def *defs,
                                  uint32_t n, struct eng_call *call, struct err *err)
{
    return run(c, &(struct request){.kind = DDL_INDEX_ADD, .db = db, .name = name, .defs = defs, .n = n}, call, err);
}

enum ddl_result catalog_index_ready(struct catalog *c, const char *db, const char *name, const char *const *names,
                                    uint32_t n, struct eng_call *call, struct err *err)
{
    return run(c, &(struct request){.kind = DDL_INDEX_READY, .db = db, .name = name, .names = names, .n = n}, call,
               err);
}

enum ddl_result catalog_index_drop(struct catalog *c, const char *db, const char *name, const char *const *names,
                                   uint32_t n, struct eng_call *call, struct err *err)
{
    return run(c, &(struct request){.kind = DDL_INDEX_DROP, .db = db, .name = name, .names = names, .n = n}, call, err);
}

enum ddl_result catalog_rename(struct catalog *c, const char *db, const char *name, const char *to_db,
                               const char *to_name, bool drop_target, struct eng_call *call, struct err *err)
{
    return run(
        c,
        &(struct request){
            .kind = DDL_RENAME, .db = db, .name = name, .to_db = to_db, .to_name = to_name, .drop_target = drop_target},
        call, err);
}

enum ddl_result catalog_set_options(struct catalog *c, const struct collection *from, const uint8_t *options,
                                    const struct index_def *index, const uint8_t *spec, bool *stale,
                                    struct eng_call *call, struct err *err)
{
    *stale = false;
    return run(c,
               &(struct request){.kind = DDL_OPTIONS,
                                 .db = from->db,
                                 .name = from->name,
                                 .options = options,
                                 .from = from,
                                 .index = index,
                                 .spec = spec,
                                 .stale = stale},
               call, err);
}
