/* Transactions up to their commit: the handle, reads, document locks, buffered writes.
 *
 * A handle used within one step registers nowhere: the step's floor protects its snapshot (txn/epoch.h). eng_txn_hold registers it for
 * later steps; a multi-document transaction is registered from the start. Handles and their buffers go round in a free list of the
 * thread, so that begin and end allocate nothing. */
#include <stdlib.h>

#include "storage/engine_private.h"

enum { POOL_MAX = 32, BORROWED_MAX = 1024 * 1024 };

struct eng_txn *eng_begin(struct engine *e, uint32_t flags, uint64_t read_ts)
{
    struct epoch_slot *slot = epoch_slot_get();
    struct eng_txn *t = slot->txns;
    OV_DASSERT(epoch_inside(e));
    if (OV_LIKELY(t != NULL)) {
        slot->txns = t->next;
        slot->n_txns--;
    } else {
        t = ov_calloc(1, sizeof(*t));
        ws_init(&t->ws);
    }
    if (t->borrowed && (t->slot != slot || t->step != slot->steps))
        arena_reset(t->borrowed);
    t->e = e;
    t->flags = flags;
    t->lost = t->released = t->oversized = false;
    t->slot = slot;
    t->step = slot->steps;
    t->phase = COMMIT_IDLE;
    t->stalled_since = 0;
    t->snapshot = atomic_load_explicit(&e->visible, memory_order_acquire);
    if (read_ts && read_ts < t->snapshot) {
        t->snapshot = read_ts;
        t->lost = !snapshots_add_past(&e->snapshots, &t->held, read_ts);
    } else if (flags & ENG_TXN_MULTI) {
        snapshots_add(&e->snapshots, &t->held, t->snapshot);
    }
    return t;
}

void txn_release_locks(struct eng_txn *t)
{
    /* Held until the versions are in the memtable (R14), and given back in the order in which they were taken. */
    for (size_t i = 0; i < t->n_locks; i++)
        lock_release(t->e->locks, t->locks[i]);
    t->n_locks = 0;
}

void eng_abort(struct eng_txn *t)
{
    ws_clear(&t->ws);
    txn_release_locks(t);
    t->oversized = false;
    t->phase = COMMIT_IDLE;
    t->stalled_since = 0;
}

static void free_txn(struct eng_txn *t)
{
    ws_deinit(&t->ws);
    buf_free(&t->failed_key);
    free(t->locks);
    free(t);
}

struct old_rows {
    struct epoch_garbage garbage;
    struct arena *arena;
};

static void free_old_rows(struct epoch_garbage *g)
{
    struct old_rows *o = (struct old_rows *)g;
    arena_free(o->arena);
    free(o);
}

/* Rows that were read from the write set stay until the step ends, though the handle goes. */
static void retire_borrowed(struct eng_txn *t)
{
    struct old_rows *o = ov_malloc(sizeof(*o));
    o->arena = t->borrowed;
    t->borrowed = NULL;
    epoch_retire(&t->e->limbo, &o->garbage, free_old_rows);
}

void eng_end(struct eng_txn *t)
{
    if (!t)
        return;
    OV_ASSERT(!t->scans); /* eng_scan_close comes first */
    if (t->ws.n || t->ws.n_pre)
        ws_clear(&t->ws);
    txn_release_locks(t);
    snapshots_remove(&t->e->snapshots, &t->held);
    struct epoch_slot *slot = epoch_slot_get();
    if (t->borrowed && (arena_used(t->borrowed) > BORROWED_MAX || slot->n_txns == POOL_MAX || t->slot != slot))
        retire_borrowed(t); /* else reset by its next use in another step */
    if (slot->n_txns == POOL_MAX) {
        free_txn(t);
        return;
    }
    t->next = slot->txns;
    slot->txns = t;
    slot->n_txns++;
}

uint64_t eng_snapshot(const struct eng_txn *t)
{
    return t->snapshot;
}

void txn_move_snapshot(struct eng_txn *t, uint64_t ts)
{
    if (t->scans)
        scan_keep_snapshots(t);
    if (t->held.open) {
        snapshots_remove(&t->e->snapshots, &t->held);
        snapshots_add(&t->e->snapshots, &t->held, ts);
    }
    t->snapshot = ts;
    t->lost = false;
}

void txn_new_step(struct eng_txn *t)
{
    if (t->borrowed)
        arena_reset(t->borrowed);
    t->slot = epoch_mine;
    t->step = epoch_mine->steps;
    if (!t->held.open) { /* given up, or never kept: goes on at a newer one */
        OV_ASSERT(!(t->flags & ENG_TXN_MULTI));
        t->snapshot = atomic_load_explicit(&t->e->visible, memory_order_acquire);
        t->released = false;
    }
}

void eng_refresh(struct eng_txn *t)
{
    OV_ASSERT(!(t->flags & ENG_TXN_MULTI));
    txn_use(t);
    uint64_t now = atomic_load_explicit(&t->e->visible, memory_order_acquire);
    if (now != t->snapshot)
        txn_move_snapshot(t, now);
}

void eng_txn_hold(struct eng_txn *t)
{
    txn_use(t);
    if (!t->held.open)
        snapshots_add(&t->e->snapshots, &t->held, t->snapshot);
    if (t->scans)
        scan_keep_snapshots(t);
}

void eng_txn_release(struct eng_txn *t)
{
    OV_ASSERT(!(t->flags & ENG_TXN_MULTI));
    snapshots_remove(&t->e->snapshots, &t->held);
    scan_release_snapshots(t);
    t->released = true;
}

/* ---- reads ---- */

enum eng_result layers_get(struct engine *e, const struct layers *l, uint64_t hash, uint64_t keyspace, struct slice key,
                           uint64_t snapshot, struct slice *value, uint64_t *ts)
{
    /* A newer layer always has the newer versions of a key: the first one that fits is the one. */
    for (size_t i = 0; i <= l->n_sealed; i++) {
        const struct mt_node *n = memtable_find(i ? l->sealed[i - 1] : l->active, hash, keyspace, key);
        struct mt_version *v = n ? mt_version_at(n, snapshot) : NULL;
        if (!v)
            continue;
        *ts = v->ts;
        *value = mt_value(v);
        return v->kind == VERSION_DELETE ? ENG_NOT_FOUND : ENG_OK;
    }
    *ts = 0;
    *value = slice_of(NULL, 0);
    if (l->runs->n_runs == 0)
        return ENG_NOT_FOUND;
    struct entry found;
    struct eng_error err;
    err.result = ENG_OK;
    enum eng_result r = run_set_get(l->runs, e->cache, hash, keyspace, key, snapshot, &found, &err);
    if (OV_UNLIKELY(r != ENG_OK)) {
        if (r != ENG_NOT_FOUND)
            engine_read_failed(e, &err);
        return r;
    }
    *ts = found.ts;
    *value = found.value;
    return found.kind == VERSION_DELETE ? ENG_NOT_FOUND : ENG_OK;
}

/* Is there a version of the key after `ts`? Runs that are older as a whole are not read. */
static enum eng_result changed_since(struct engine *e, const struct layers *l, uint64_t hash, uint64_t keyspace,
                                     struct slice key, uint64_t ts, bool *changed)
{
    for (size_t i = 0; i <= l->n_sealed; i++) {
        const struct mt_node *n = memtable_find(i ? l->sealed[i - 1] : l->active, hash, keyspace, key);
        if (n) {
            *changed = atomic_load_explicit(&n->newest, memory_order_acquire)->ts > ts;
            return ENG_OK;
        }
    }
    *changed = false;
    if (l->runs->max_ts <= ts)
        return ENG_OK;
    struct slice value;
    uint64_t newest;
    enum eng_result r = layers_get(e, l, hash, keyspace, key, UINT64_MAX, &value, &newest);
    *changed = newest > ts;
    return r == ENG_NOT_FOUND ? ENG_OK : r;
}

/* A buffered write of the transaction itself. Copied: later writes move the buffer. */
static bool read_own(struct eng_txn *t, uint64_t hash, uint64_t keyspace, struct slice key, struct slice *value,
                     enum eng_result *r)
{
    const struct ws_op *o = ws_find(&t->ws, hash, keyspace, key);
    if (!o)
        return false;
    *value = slice_of(NULL, 0);
    *r = ENG_NOT_FOUND;
    if (o->type != MUT_DELETE) {
        if (!t->borrowed)
            t->borrowed = arena_new(0);
        *value = arena_slice(t->borrowed, ws_value(&t->ws, o));
        *r = ENG_OK;
    }
    return true;
}

static enum eng_result get_one(struct eng_txn *t, const struct layers *l, uint64_t hash, uint64_t keyspace,
                               struct slice key, uint32_t flags, struct eng_row *out)
{
    enum eng_result r;
    out->key = key;
    out->ts = 0;
    if (t->ws.n && read_own(t, hash, keyspace, key, &out->value, &r))
        return r;
    r = layers_get(t->e, l, hash, keyspace, key, flags & ENG_GET_NEWEST ? UINT64_MAX : t->snapshot, &out->value,
                   &out->ts);
    return r;
}

static struct stat_shard *stats_of(struct eng_txn *t)
{
    return &t->e->stats[t->slot->index % STAT_SHARDS];
}

enum eng_result eng_get(struct eng_txn *t, uint64_t keyspace, struct slice key, uint32_t flags, struct eng_row *out,
                        struct eng_call *c)
{
    *out = (struct eng_row){0};
    if (eng_defer(t->e, c))
        return ENG_PENDING;
    txn_use(t);
    if (OV_UNLIKELY(t->lost && !(flags & ENG_GET_NEWEST)))
        return ENG_SNAPSHOT_TOO_OLD;
    atomic_fetch_add_explicit(&stats_of(t)->gets, 1, memory_order_relaxed);
    return get_one(t, layers_now(t->e), key_hash(keyspace, key), keyspace, key, flags, out);
}

enum eng_result eng_multi_get(struct eng_txn *t, uint64_t keyspace, const struct slice *keys, size_t n, uint32_t flags,
                              struct eng_row *out, struct eng_call *c)
{
    enum { GROUP = 16 };
    if (eng_defer(t->e, c))
        return ENG_PENDING;
    txn_use(t);
    if (OV_UNLIKELY(t->lost && !(flags & ENG_GET_NEWEST)))
        return ENG_SNAPSHOT_TOO_OLD;
    atomic_fetch_add_explicit(&stats_of(t)->gets, n, memory_order_relaxed);
    const struct layers *l = layers_now(t->e);
    uint64_t hash[GROUP];
    for (size_t at = 0; at < n; at += GROUP) { /* the cache misses of a group overlap */
        size_t m = OV_MIN(n - at, (size_t)GROUP);
        for (size_t i = 0; i < m; i++) {
            hash[i] = key_hash(keyspace, keys[at + i]);
            memtable_prefetch(l->active, hash[i]);
        }
        for (size_t i = 0; i < m; i++) {
            struct eng_row *row = &out[at + i];
            enum eng_result r = get_one(t, l, hash[i], keyspace, keys[at + i], flags, row);
            if (r == ENG_NOT_FOUND)
                row->value = slice_of(NULL, 0);
            else if (r != ENG_OK)
                return r;
        }
    }
    return ENG_OK;
}

/* ---- locks ---- */

static void remember_lock(struct eng_txn *t, struct lock *l)
{
    if (t->n_locks == t->locks_cap) {
        t->locks_cap = OV_MAX(16, t->locks_cap * 2);
        t->locks = ov_realloc(t->locks, t->locks_cap * sizeof(struct lock *));
    }
    t->locks[t->n_locks++] = l;
}

/* R23: the first to update wins. Deletions count. */
static enum eng_result check_unchanged(struct eng_txn *t, uint64_t hash, uint64_t keyspace, struct slice key)
{
    bool changed;
    enum eng_result r = changed_since(t->e, layers_now(t->e), hash, keyspace, key, t->snapshot, &changed);
    if (r != ENG_OK || !changed)
        return r;
    atomic_fetch_add_explicit(&stats_of(t)->conflicts, 1, memory_order_relaxed);
    return ENG_CONFLICT;
}

enum eng_result eng_lock(struct eng_txn *t, uint64_t keyspace, struct slice key, struct eng_call *c)
{
    struct lock *l;
    if (c && (call_state(c) == ENG_CALL_LOCK_WAITS || call_state(c) == ENG_CALL_LOCK_GRANTED)) {
        if (!lock_granted(t->e->locks, c, &l))
            return ENG_PENDING;
        remember_lock(t, l);
        return ENG_OK;
    }
    if (eng_defer(t->e, c))
        return ENG_PENDING;
    txn_use(t);
    uint64_t hash = key_hash(keyspace, key);
    bool multi = t->flags & ENG_TXN_MULTI;
    switch (lock_acquire(t->e->locks, hash, t, multi ? NULL : c, &l)) {
    case LOCK_GOT:
        remember_lock(t, l); /* kept in a conflict, too: the transaction is over anyway */
        return multi ? check_unchanged(t, hash, keyspace, key) : ENG_OK;
    case LOCK_MINE_ALREADY:
        return ENG_OK;
    case LOCK_WAIT:
        break;
    }
    if (!multi)
        return ENG_PENDING;
    atomic_fetch_add_explicit(&stats_of(t)->conflicts, 1, memory_order_relaxed);
    return ENG_CONFLICT;
}

/* ---- buffered writes ---- */

/* False: the key is too long, and the commit will say so. */
static bool may_write(struct eng_txn *t, struct slice key)
{
    OV_ASSERT(!(t->flags & ENG_TXN_READ_ONLY));
    if (OV_LIKELY(key.n <= t->e->caps.max_key_bytes))
        return true;
    t->oversized = true;
    return false;
}

void eng_put(struct eng_txn *t, uint64_t keyspace, struct slice key, struct slice value, enum eng_put_kind kind)
{
    if (may_write(t, key))
        ws_put(&t->ws, key_hash(keyspace, key), keyspace, key, value, kind);
}

void eng_del(struct eng_txn *t, uint64_t keyspace, struct slice key)
{
    if (may_write(t, key))
        ws_del(&t->ws, key_hash(keyspace, key), keyspace, key);
}

void eng_splice(struct eng_txn *t, uint64_t keyspace, struct slice key, uint64_t base_ts, struct slice value,
                const struct eng_edit *edits, size_t n)
{
    if (may_write(t, key))
        ws_splice(&t->ws, key_hash(keyspace, key), keyspace, key, base_ts, value, edits, n);
}

void eng_require(struct eng_txn *t, uint64_t keyspace, struct slice key, enum eng_pre pre, uint64_t version)
{
    ws_require(&t->ws, key_hash(keyspace, key), keyspace, key, pre, version);
}

struct slice eng_txn_failed_key(const struct eng_txn *t, uint64_t *keyspace)
{
    *keyspace = t->failed_keyspace;
    return buf_slice(&t->failed_key);
}

void eng_log(struct eng_txn *t, struct slice record)
{
    OV_ASSERT(!(t->flags & ENG_TXN_READ_ONLY));
    ws_log(&t->ws, record);
}

void eng_drop_keyspace(struct eng_txn *t, uint64_t keyspace)
{
    OV_ASSERT(!(t->flags & ENG_TXN_READ_ONLY));
    ws_drop(&t->ws, keyspace);
}

size_t eng_txn_bytes(const struct eng_txn *t)
{
    return t->ws.payload.len - t->ws.dead;
}

size_t eng_txn_writes(const struct eng_txn *t)
{
    return t->ws.live;
}
