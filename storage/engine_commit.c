/* Commit. Everything that can fail or takes long comes before the commit lock: limits, preconditions, room in the journal, large
 * versions, the checksum (R14). Under it: timestamps, the copy into the journal, the memtable, counts, visible: all or nothing, in one
 * order for the journal and for readers (R2, R12). Then locks are released, and whoever waits for the disk waits.
 *
 *   COMMIT_IDLE --published, ENG_DUR_JOURNALED--> COMMIT_SYNCING --synced, or the sync failed--> COMMIT_IDLE */
#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/crc.h"
#include "storage/engine_private.h"

enum { LONG_BYTES = 256 * 1024, LONG_US = 1000, PATIENCE = 16 };

/* ---- preconditions ---- */

static bool precondition_holds(enum eng_pre pre, enum eng_result found, uint64_t ts, uint64_t version)
{
    switch (pre) {
    case ENG_PRE_ABSENT:
        return found == ENG_NOT_FOUND;
    case ENG_PRE_PRESENT:
        return found == ENG_OK;
    case ENG_PRE_VERSION:
        return found == ENG_OK && ts == version;
    }
    return false;
}

/* Judges all of them by the newest versions. ENG_EXISTS names the first that fails. */
static enum eng_result check_preconditions(struct eng_txn *t, const struct layers *l)
{
    for (size_t i = 0; i < t->ws.n_pre; i++) {
        const struct ws_pre *p = &t->ws.pre[i];
        struct slice key = ws_pre_key(&t->ws, p), value;
        uint64_t ts;
        enum eng_result r = layers_get(t->e, l, p->hash, p->keyspace, key, UINT64_MAX, &value, &ts);
        if (r != ENG_OK && r != ENG_NOT_FOUND)
            return r;
        if (precondition_holds(p->pre, r, ts, p->version))
            continue;
        t->failed_keyspace = p->keyspace;
        t->failed_key.len = 0;
        buf_append(&t->failed_key, key.p, key.n);
        return ENG_EXISTS;
    }
    return ENG_OK;
}

/* ---- before the lock ---- */

static enum eng_result check_limits(const struct eng_txn *t)
{
    const struct eng_caps *caps = &t->e->caps;
    if (t->ws.payload.len - t->ws.dead > caps->max_txn_bytes)
        return ENG_TOO_LARGE;
    for (size_t i = 0; i < t->ws.n; i++)
        if (t->ws.ops[i].value_len > caps->max_value_bytes)
            return ENG_TOO_LARGE;
    return ENG_OK;
}

/* With as many sealed memtables as may be, the active one may fill up only as fast as the oldest is written out: writers are slowed to
 * the disk's pace, a little each, instead of being stopped dead when it is full. */
static bool ahead_of_flush(const struct engine *e)
{
    uint64_t limit = e->opt.memtable_bytes, used = memtable_bytes(layers_now(e)->active);
    return used > limit / 2 &&
           used - limit / 2 > limit / 2 * atomic_load_explicit(&e->flush_progress, memory_order_relaxed) / FLUSH_DONE;
}

/* Holding flush_lock: waits, or tells why waiting is no use. */
static enum eng_result wait_for_room(struct engine *e, bool full, struct eng_call *c)
{
    if (atomic_load(&e->failed))
        return ENG_READ_ONLY;
    if (atomic_load(&e->n_sealed) < SEALED_MAX)
        return ENG_OK;
    if (e->no_room)
        return full ? ENG_DISK_FULL : ENG_OK;
    if (!full && !ahead_of_flush(e))
        return ENG_OK;
    call_set_state(c, ENG_CALL_ROOM);
    c->waiting_on = e;
    c->next = e->room;
    e->room = c;
    return ENG_PENDING;
}

/* Room in the memtable: a full one is sealed; if too many sealed ones wait for the disk, the commit waits, too. */
static enum eng_result memtable_room(struct eng_txn *t, struct eng_call *c)
{
    struct engine *e = t->e;
    for (;;) {
        bool full = flush_wanted(e) && !flush_seal(e, false);
        if (OV_LIKELY(!full &&
                      (atomic_load_explicit(&e->n_sealed, memory_order_relaxed) < SEALED_MAX || !ahead_of_flush(e))))
            break;
        mutex_lock(&e->flush_lock);
        enum eng_result r = wait_for_room(e, full, c);
        mutex_unlock(&e->flush_lock);
        if (r == ENG_PENDING && !t->stalled_since)
            t->stalled_since = clock_mono_us();
        if (r != ENG_OK)
            return r;
        if (!full)
            break;
    }
    if (OV_UNLIKELY(t->stalled_since != 0)) {
        atomic_fetch_add_explicit(&e->stalls_us, (uint64_t)(clock_mono_us() - t->stalled_since), memory_order_relaxed);
        t->stalled_since = 0;
    }
    return ENG_OK;
}

static void prepare_large(struct eng_txn *t)
{
    for (size_t i = 0; i < t->ws.n; i++) {
        struct ws_op *o = &t->ws.ops[i];
        if (o->type && o->type < MUT_DROP && memtable_wants_large(o->value_len))
            o->extra = memtable_large(ws_value(&t->ws, o));
    }
}

static void drop_large(struct eng_txn *t)
{
    for (size_t i = 0; i < t->ws.n; i++) {
        memtable_large_free(t->ws.ops[i].extra);
        t->ws.ops[i].extra = NULL;
    }
}

/* ---- under the lock ---- */

void engine_apply_drop(struct engine *e, uint64_t keyspace, uint64_t ts)
{
    ASSERT_HELD(&e->commit_lock);
    struct count *k = counts_get(&e->counts, keyspace);
    counts_add(&e->counts, k, -atomic_load_explicit(&k->n, memory_order_relaxed));
    atomic_store_explicit(&k->dropped, ts, memory_order_release);
    if (e->n_drops == e->drops_cap) {
        e->drops_cap = OV_MAX(16, e->drops_cap * 2);
        e->drops = ov_realloc(e->drops, e->drops_cap * sizeof(*e->drops));
    }
    e->drops[e->n_drops++] = (struct manifest_drop){keyspace, ts};
}

static void apply(struct eng_txn *t, struct memtable *m, uint64_t ts, bool one_ts)
{
    struct engine *e = t->e;
    struct count *k = NULL;
    int64_t delta = 0;
    for (size_t i = 0; i < t->ws.n; i++) {
        struct ws_op *o = &t->ws.ops[i];
        if (o->type == 0)
            continue;
        if (o->type < MUT_DROP) {
            enum version_kind kind = o->type == MUT_INSERT   ? VERSION_INSERT
                                     : o->type == MUT_DELETE ? VERSION_DELETE
                                                             : VERSION_UPDATE;
            memtable_add(m, o->hash, o->keyspace, ws_key(&t->ws, o), ts, kind, ws_value(&t->ws, o), o->extra);
            o->extra = NULL;
            if (kind != VERSION_UPDATE) {
                if (!k || k->keyspace != o->keyspace) {
                    if (k)
                        counts_add(&e->counts, k, delta);
                    k = counts_get(&e->counts, o->keyspace);
                    delta = 0;
                }
                delta += kind == VERSION_INSERT ? 1 : -1;
            }
        } else if (o->type == MUT_DROP) {
            if (k)
                counts_add(&e->counts, k, delta);
            k = NULL;
            engine_apply_drop(e, o->keyspace, ts);
        }
        if (!one_ts)
            ts++;
    }
    if (k)
        counts_add(&e->counts, k, delta);
}

/* Frees superseded versions in the active memtable that nobody can need any more, when there are many. The newest ones are left for reads
 * at a time just past (R19). Large ones are left to the caller, who frees them outside the lock. */
static struct mt_version *trim(struct engine *e, struct memtable *m)
{
    struct mt_version *large = NULL;
    uint64_t keep = e->opt.memtable_bytes / HISTORY_SHARE;
    if (memtable_superseded(m) <= keep + keep / 16)
        return NULL;
    /* Steps first, then the registry: a snapshot that moves from the one to the other is seen in at least one. */
    uint64_t limit = OV_MIN(epoch_floor(e, atomic_load(&e->visible)), memtable_trim_target(m, keep, TRIM_MAX));
    limit = snapshots_forget(&e->snapshots, limit);
    memtable_trim(m, limit, &large);
    return large;
}

struct prepared { /* what was made before the lock */
    struct slice payload;
    uint32_t crc, seconds;
    const struct layers *layers; /* preconditions were judged by these … */
    uint64_t at;                 /* … as of this timestamp */
    bool impatient; /* they have changed often: judge under the lock, though a block might have to be read */
};

/* The short section. ENG_PENDING: what was checked before holds no more; check again. */
static enum eng_result publish(struct eng_txn *t, const struct prepared *p, struct mt_version **large)
{
    struct engine *e = t->e;
    bool one_ts = t->flags & ENG_TXN_MULTI;
    uint32_t count = one_ts ? 1 : (uint32_t)t->ws.live;
    mutex_lock(&e->commit_lock);
    const struct layers *l = layers_now(e);
    enum eng_result r = ENG_OK;
    if (!journal_fits(e->journal, p->payload.n) || atomic_load_explicit(&e->failed, memory_order_relaxed))
        r = ENG_PENDING;
    else if (t->ws.n_pre && (l != p->layers || e->last_ts != p->at))
        r = p->impatient ? check_preconditions(t, l) : ENG_PENDING;
    if (r != ENG_OK) {
        mutex_unlock(&e->commit_lock);
        return r;
    }
    struct memtable *m = l->active;
    uint64_t first = OV_MAX(e->last_ts, (uint64_t)p->seconds << 32) + 1, last = first + count - 1;
    journal_append(e->journal, p->payload, p->crc, first, count, &t->commit_end);
    apply(t, m, first, one_ts);
    e->last_ts = last;
    atomic_store(&e->visible, last);
    atomic_store(&e->last_commit, last);
    atomic_fetch_add_explicit(&e->commits, 1, memory_order_relaxed);
    *large = trim(e, m);
    mutex_unlock(&e->commit_lock);
    t->commit_ts = last;
    return ENG_OK;
}

/* ---- the whole ---- */

static void wake_watchers(struct engine *e)
{
    mutex_lock(&e->misc_lock);
    uint64_t now = atomic_load(&e->last_commit);
    for (struct eng_call **at = &e->watchers; *at;) {
        struct eng_call *c = *at;
        if (c->need >= now) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        atomic_fetch_sub(&e->n_watchers, 1);
        c->next = NULL;
        c->waiting_on = NULL;
        call_set_state(c, ENG_CALL_IDLE);
        c->wake(c);
    }
    mutex_unlock(&e->misc_lock);
}

static enum eng_result commit_now(struct eng_txn *t, struct eng_call *c)
{
    struct engine *e = t->e;
    enum eng_result r = check_limits(t);
    if (r != ENG_OK)
        return r;
    if (OV_UNLIKELY(atomic_load_explicit(&e->failed, memory_order_relaxed)))
        return ENG_READ_ONLY;
    if ((r = memtable_room(t, c)) != ENG_OK)
        return r;
    struct prepared p = {.payload = ws_payload(&t->ws, t->flags & ENG_TXN_MULTI),
                         .seconds = (uint32_t)(clock_wall_ms() / 1000)};
    p.crc = crc32c(0, p.payload.p, p.payload.n);
    bool prepared = false;
    struct mt_version *large = NULL;
    int64_t start = 0;
    for (int tries = 0;; tries++) {
        if ((r = journal_reserve(e->journal, p.payload.n, c)) != ENG_OK)
            break;
        p.layers = layers_now(e);
        p.at = atomic_load_explicit(&e->visible, memory_order_acquire);
        p.impatient = tries >= PATIENCE;
        if (t->ws.n_pre && (r = check_preconditions(t, p.layers)) != ENG_OK)
            break;
        if (!prepared)
            prepare_large(t);
        prepared = true;
        start = p.payload.n >= LONG_BYTES ? clock_mono_us() : 0;
        if ((r = publish(t, &p, &large)) != ENG_PENDING)
            break;
        if (atomic_load(&e->failed)) {
            r = ENG_READ_ONLY;
            break;
        }
    }
    if (prepared && r != ENG_OK)
        drop_large(t);
    if (start && r == ENG_OK && clock_mono_us() - start > LONG_US)
        atomic_fetch_add_explicit(&e->long_holds, 1, memory_order_relaxed);
    while (large) {
        struct mt_version *v = large;
        large = atomic_load_explicit(&v->older, memory_order_relaxed);
        memtable_large_free(v);
    }
    return r;
}

enum eng_result eng_commit(struct eng_txn *t, enum eng_durability d, uint64_t *commit_ts, struct eng_call *c)
{
    struct engine *e = t->e;
    enum eng_result r;
    if (eng_defer(e, c))
        return ENG_PENDING;
    txn_use(t);
    if (t->phase == COMMIT_IDLE || t->ws.live) { /* SYNCING with new writes: the wait for the last ones was cancelled */
        if (t->oversized) {
            eng_abort(t);
            return ENG_TOO_LARGE;
        }
        if (t->ws.live == 0 && t->ws.n_pre == 0) {
            eng_abort(t);
            if (commit_ts)
                *commit_ts = t->snapshot;
            return ENG_OK;
        }
        if (t->ws.live == 0) { /* preconditions alone */
            r = check_preconditions(t, layers_now(e));
            t->commit_ts = t->snapshot;
            t->commit_end = 0;
        } else {
            r = commit_now(t, c);
        }
        if (r == ENG_PENDING)
            return r;
        bool wrote = t->ws.live != 0;
        eng_abort(t); /* the locks go at publish, before the sync: whoever comes next syncs later */
        if (r != ENG_OK)
            return r;
        if (wrote) {
            if (!(t->flags & ENG_TXN_MULTI))
                txn_move_snapshot(t, atomic_load_explicit(&e->visible, memory_order_acquire));
            if (OV_UNLIKELY(atomic_load(&e->n_watchers) != 0))
                wake_watchers(e);
        }
        t->phase = COMMIT_SYNCING;
    }
    if (d == ENG_DUR_JOURNALED && t->commit_end) {
        r = journal_sync(e->journal, t->commit_end, c);
        if (r == ENG_PENDING)
            return r;
        if (r != ENG_OK) {
            t->phase = COMMIT_IDLE;
            return ENG_UNKNOWN;
        }
    }
    t->phase = COMMIT_IDLE;
    if (commit_ts)
        *commit_ts = t->commit_ts;
    return ENG_OK;
}

enum eng_result eng_handover(struct engine *e, struct eng_call *c)
{
    lsn_t tail = journal_tail(e->journal);
    if (journal_written(e->journal) >= tail)
        return ENG_OK;
    if (eng_defer(e, c))
        return ENG_PENDING;
    return journal_write(e->journal, tail, c);
}

enum eng_result eng_sync(struct engine *e, struct eng_call *c)
{
    if (eng_defer(e, c))
        return ENG_PENDING;
    return journal_sync(e->journal, journal_tail(e->journal), c);
}

void eng_watch(struct engine *e, uint64_t ts, struct eng_call *c)
{
    mutex_lock(&e->misc_lock);
    atomic_fetch_add(&e->n_watchers, 1); /* before the look at last_commit, as a commit does it the other way round */
    if (atomic_load(&e->last_commit) > ts) {
        atomic_fetch_sub(&e->n_watchers, 1);
        c->wake(c);
    } else {
        c->need = ts;
        call_set_state(c, ENG_CALL_WATCH);
        c->waiting_on = e;
        c->next = e->watchers;
        e->watchers = c;
    }
    mutex_unlock(&e->misc_lock);
}

static void leave_watch(struct engine *e, struct eng_call *c)
{
    mutex_lock(&e->misc_lock);
    for (struct eng_call **at = &e->watchers; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            c->next = NULL;
            c->waiting_on = NULL;
            call_set_state(c, ENG_CALL_IDLE);
            atomic_fetch_sub(&e->n_watchers, 1);
            break;
        }
    mutex_unlock(&e->misc_lock);
}

void eng_call_cancel(struct engine *e, struct eng_call *c)
{
    int state = call_state(c);
    if (state == ENG_CALL_LOCK_WAITS || state == ENG_CALL_LOCK_GRANTED) {
        lock_cancel(e->locks, c);
        return;
    }
    /* Every queue is looked through, under its mutex, even if the call seems to be in none: a wake-up may just be on its way. */
    flush_leave_room(e, c);
    leave_watch(e, c);
    journal_cancel(e->journal, c);
    call_set_state(c, ENG_CALL_IDLE);
}
