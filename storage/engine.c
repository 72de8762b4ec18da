/* The engine's life: open (manifest, runs, journal), close, the layers it is made of, and facts about it. */
#include "storage/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/rand.h"
#include "storage/engine_private.h"

const char *eng_result_name(enum eng_result r)
{
    static const char *const names[] = {
        "ENG_OK",      "ENG_PENDING",   "ENG_NOT_FOUND",        "ENG_EXISTS",      "ENG_CONFLICT",
        "ENG_UNKNOWN", "ENG_TOO_LARGE", "ENG_SNAPSHOT_TOO_OLD", "ENG_DISK_FULL",   "ENG_READ_ONLY",
        "ENG_IO",      "ENG_CORRUPT",   "ENG_CANCELLED",        "ENG_UNAVAILABLE",
    };
    return (size_t)r < OV_LEN(names) ? names[r] : "?";
}

/* ---- layers ---- */

static void layers_free(struct epoch_garbage *g)
{
    struct layers *l = (struct layers *)g;
    memtable_unref(l->active);
    for (size_t i = 0; i < l->n_sealed; i++)
        memtable_unref(l->sealed[i]);
    run_set_unref(l->runs);
    free(l->sealed);
    free(l);
}

struct layers *layers_new(struct engine *e, struct memtable *active, struct memtable *const *sealed, size_t n_sealed,
                          struct run_set *runs)
{
    struct layers *l = ov_calloc(1, sizeof(*l));
    l->e = e;
    l->active = active;
    memtable_ref(active);
    l->sealed = ov_malloc((n_sealed + 1) * sizeof(struct memtable *));
    l->n_sealed = n_sealed;
    for (size_t i = 0; i < n_sealed; i++) {
        l->sealed[i] = sealed[i];
        memtable_ref(sealed[i]);
    }
    l->runs = runs;
    run_set_ref(runs);
    return l;
}

void layers_publish(struct engine *e, struct layers *next)
{
    struct layers *old = layers_now(e);
    atomic_store_explicit(&e->layers, next, memory_order_release);
    if (old)
        epoch_retire(&e->limbo, &old->garbage, layers_free);
}

/* ---- errors ---- */

void engine_note_error(struct engine *e, const struct eng_error *err)
{
    mutex_lock(&e->misc_lock);
    if (!atomic_load(&e->failed)) /* the first reason for read-only stays */
        e->error = *err;
    mutex_unlock(&e->misc_lock);
}

void engine_fail(struct engine *e, const struct eng_error *err)
{
    char text[sizeof(err->msg) * 2];
    engine_note_error(e, err);
    if (!atomic_exchange(&e->failed, true))
        log_line(LOG_ERROR, "STORAGE", 5220001, "The engine failed; writes are refused until restart", "\"error\":%s",
                 log_quote(err->msg, strlen(err->msg), text, sizeof(text)));
}

void engine_read_failed(struct engine *e, const struct eng_error *err)
{
    char text[sizeof(err->msg) * 2];
    if (err->result != ENG_IO && err->result != ENG_CORRUPT)
        return;
    mutex_lock(&e->misc_lock);
    bool again = strcmp(e->error.msg, err->msg) == 0; /* by each query that meets the block: one line is enough */
    mutex_unlock(&e->misc_lock);
    engine_note_error(e, err);
    if (!again)
        log_line(LOG_ERROR, "STORAGE", 5220004, "A read of the data files failed", "\"error\":%s",
                 log_quote(err->msg, strlen(err->msg), text, sizeof(text)));
}

void engine_warn(const struct eng_error *err, int id, const char *what)
{
    char text[sizeof(err->msg) * 2];
    log_line(LOG_WARNING, "STORAGE", id, what, "\"error\":%s",
             log_quote(err->msg, strlen(err->msg), text, sizeof(text)));
}

void eng_error(struct engine *e, struct eng_error *out)
{
    journal_error(e->journal, out);
    if (out->result != ENG_OK)
        return;
    mutex_lock(&e->misc_lock);
    *out = e->error;
    mutex_unlock(&e->misc_lock);
}

bool engine_defer(struct engine *e, struct eng_call *c)
{
    if (!c || c->waiting_on || (call_state(c) != ENG_CALL_IDLE && call_state(c) != ENG_CALL_DEFERRED))
        return false;
    if (call_state(c) == ENG_CALL_DEFERRED) { /* the second time round */
        call_set_state(c, ENG_CALL_IDLE);
        return false;
    }
    if (e->opt.debug_pending == 1) {
        uint64_t x = atomic_fetch_add_explicit(&e->debug_rand, 0x9E3779B97F4A7C15u, memory_order_relaxed);
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
        x = (x ^ x >> 27) * 0x94D049BB133111EBu;
        if ((x >> 40) & 1)
            return false;
    }
    call_set_state(c, ENG_CALL_DEFERRED);
    c->wake(c);
    return true;
}

/* ---- life ---- */

static void set_defaults(struct eng_options *o)
{
    if (!o->memtable_bytes)
        o->memtable_bytes = 64u << 20;
    if (!o->replay_bytes)
        o->replay_bytes = 192u << 20;
    if (!o->segment_bytes)
        o->segment_bytes = 64u << 20;
    if (!o->cache_bytes)
        o->cache_bytes = 256u << 20;
    if (!o->commit_interval_ms)
        o->commit_interval_ms = 100;
}

static struct engine *engine_alloc(const struct eng_options *opt)
{
    struct engine *e = aligned_alloc(64, (sizeof(*e) + 63) / 64 * 64);
    OV_ASSERT(e);
    memset(e, 0, sizeof(*e));
    e->opt = *opt;
    set_defaults(&e->opt);
    e->dir = ov_strdup(opt->dir ? opt->dir : "");
    e->opt.dir = e->dir;
    e->files = opt->files ? opt->files : file_posix_new(e->dir);
    e->own_files = !opt->files;
    e->caps = (struct eng_caps){.max_key_bytes = KEY_MAX,
                                .max_value_bytes = VALUE_MAX,
                                .max_txn_bytes = TXN_MAX,
                                .max_txn_seconds = 60,
                                .splice = true,
                                .local_locks = true};
    mutex_init(&e->manifest_lock, RANK_MANIFEST);
    mutex_init(&e->flush_lock, RANK_FLUSH);
    mutex_init(&e->commit_lock, RANK_COMMIT);
    mutex_init(&e->misc_lock, RANK_JOURNAL);
    cond_init(&e->flush_cond);
    e->sealed_end = &e->sealed;
    counts_init(&e->counts);
    snapshots_init(&e->snapshots);
    epoch_limbo_init(&e->limbo);
    epoch_limbo_init(&e->block_limbo);
    e->locks = lock_table_new();
    e->cache = cache_new(e->opt.cache_bytes, &e->block_limbo);
    e->debug_rand = opt->debug_seed;
    return e;
}

static void engine_free(struct engine *e)
{
    struct layers *l = layers_now(e);
    if (l)
        layers_free(&l->garbage);
    epoch_limbo_deinit(&e->limbo);
    epoch_limbo_deinit(&e->block_limbo);
    while (e->sealed) {
        struct sealed *s = e->sealed;
        e->sealed = s->next;
        flush_free_sealed(s);
    }
    cache_free(e->cache);
    manifest_close(e->manifest);
    lock_table_free(e->locks);
    snapshots_deinit(&e->snapshots);
    counts_deinit(&e->counts);
    free(e->drops);
    mutex_destroy(&e->manifest_lock);
    mutex_destroy(&e->flush_lock);
    mutex_destroy(&e->commit_lock);
    mutex_destroy(&e->misc_lock);
    pthread_cond_destroy(&e->flush_cond);
    if (e->own_files)
        file_posix_free(e->files);
    free(e->dir);
    free(e);
}

static void load_manifest(struct engine *e)
{
    const struct manifest_state *s = manifest_state(e->manifest);
    mutex_lock(&e->commit_lock);
    for (size_t i = 0; i < s->n_counts; i++)
        atomic_store(&counts_get(&e->counts, s->counts[i].keyspace)->n, s->counts[i].count);
    for (size_t i = 0; i < s->n_drops; i++)
        atomic_store(&counts_get(&e->counts, s->drops[i].keyspace)->dropped, s->drops[i].ts);
    e->last_ts = s->max_ts;
    atomic_store(&e->visible, s->max_ts);
    atomic_store(&e->sealed_at, s->replay_from);
    e->replay_end = s->replay_from;
    atomic_store(&e->flushed_ts, s->max_ts);
    mutex_unlock(&e->commit_lock);
}

static enum eng_result open_all(struct engine *e, struct eng_error *err)
{
    enum eng_result r = manifest_open(e->files, &e->manifest, err);
    if (r != ENG_OK)
        return r;
    load_manifest(e);
    struct run_set *runs;
    if ((r = runs_load(e, &runs, err)) != ENG_OK)
        return r;
    struct memtable *m = memtable_new(e->opt.memtable_bytes);
    mutex_lock(&e->flush_lock);
    layers_publish(e, layers_new(e, m, NULL, 0, runs));
    mutex_unlock(&e->flush_lock);
    memtable_unref(m);
    run_set_unref(runs);
    const struct manifest_state *s = manifest_state(e->manifest);
    struct journal_options opt = {
        .files = e->files,
        .segment_bytes = e->opt.segment_bytes,
        .commit_interval_ms = e->opt.commit_interval_ms,
        .manual = e->opt.manual,
        .replay_from = s->replay_from,
        .known_synced = s->synced,
        .known_ts = s->max_ts,
        .known_epoch = s->epoch,
    };
    uint64_t last_ts = 0;
    int64_t start = clock_mono_us();
    if ((r = journal_open(&opt, replay_batch, e, &e->journal, &last_ts, err)) != ENG_OK)
        return r;
    e->opened_at = journal_tail(e->journal);
    e->replay_us = (uint64_t)(clock_mono_us() - start);
    /* R11: above everything seen, records that were cut included. Never 0, so that a snapshot of the empty database is a timestamp, too. */
    mutex_lock(&e->commit_lock);
    e->last_ts = OV_MAX(OV_MAX(e->last_ts, last_ts), (uint64_t)(clock_wall_ms() / 1000) << 32);
    atomic_store(&e->visible, e->last_ts);
    atomic_store(&e->last_commit, e->last_ts);
    mutex_unlock(&e->commit_lock);
    return ENG_OK;
}

enum eng_result engine_open(const struct eng_options *opt, struct engine **out, struct eng_error *err)
{
    *out = NULL;
    *err = (struct eng_error){0};
    struct engine *e = engine_alloc(opt);
    enum eng_result r = open_all(e, err);
    if (r != ENG_OK) {
        err->result = r;
        journal_close(e->journal);
        engine_free(e);
        return r;
    }
    flush_start(e);
    *out = e;
    return ENG_OK;
}

void engine_close(struct engine *e)
{
    if (!e)
        return;
    flush_stop(e);
    OV_ASSERT(!e->watchers && !e->room); /* a call is still pending */
    journal_close(e->journal);
    engine_free(e);
}

const struct eng_caps *eng_caps(const struct engine *e)
{
    return &e->caps;
}

void eng_step_enter(struct engine *e)
{
    OV_ASSERT(!epoch_mine || atomic_load_explicit(&epoch_mine->epoch, memory_order_relaxed) == 0);
    epoch_enter(e, &e->visible);
}

void eng_step_leave(struct engine *e)
{
    OV_DASSERT(epoch_inside(e));
    epoch_leave();
}

/* ---- facts ---- */

uint64_t eng_visible(const struct engine *e)
{
    return atomic_load_explicit(&e->visible, memory_order_acquire);
}

uint64_t eng_now(struct engine *e)
{
    uint64_t second = (uint64_t)(clock_wall_ms() / 1000) << 32;
    if (atomic_load_explicit(&e->visible, memory_order_acquire) < second) {
        /* Time itself is published, so that a read at this timestamp need not wait for the next write. */
        mutex_lock(&e->commit_lock);
        e->last_ts = OV_MAX(e->last_ts, second);
        atomic_store(&e->visible, e->last_ts);
        mutex_unlock(&e->commit_lock);
    }
    return atomic_load_explicit(&e->visible, memory_order_acquire);
}

int64_t eng_count(const struct engine *e, uint64_t keyspace)
{
    const struct count *k = counts_find(&e->counts, keyspace);
    return k ? atomic_load_explicit(&k->n, memory_order_relaxed) : 0;
}

void eng_stats(struct engine *e, struct eng_stats *out)
{
    *out = (struct eng_stats){0};
    journal_stats(e->journal, out);
    for (size_t i = 0; i < STAT_SHARDS; i++) {
        out->gets += atomic_load_explicit(&e->stats[i].gets, memory_order_relaxed);
        out->scans += atomic_load_explicit(&e->stats[i].scans, memory_order_relaxed);
        out->scan_rows += atomic_load_explicit(&e->stats[i].scan_rows, memory_order_relaxed);
        out->conflicts += atomic_load_explicit(&e->stats[i].conflicts, memory_order_relaxed);
    }
    out->commits = atomic_load(&e->commits);
    out->commit_bytes = journal_tail(e->journal) - e->opened_at;
    out->lock_waits = lock_waits(e->locks);
    out->stalls_us = atomic_load(&e->stalls_us);
    out->long_commit_holds = atomic_load(&e->long_holds);
    out->flushes = atomic_load(&e->flushes);
    out->flush_bytes = atomic_load(&e->flush_bytes);
    out->merges = atomic_load(&e->merges);
    out->merge_bytes = atomic_load(&e->merge_bytes);
    out->memtable_sealed = atomic_load(&e->n_sealed);
    out->replayed_bytes = e->replayed_bytes;
    out->replay_us = e->replay_us;
    size_t open;
    out->oldest_snapshot = snapshots_oldest(&e->snapshots, eng_visible(e), &open);
    out->snapshots_open = open;
    mutex_lock(&e->flush_lock); /* layers stay */
    const struct layers *l = layers_now(e);
    out->memtable_bytes = memtable_bytes(l->active);
    for (size_t i = 0; i < l->n_sealed; i++)
        out->memtable_bytes += memtable_bytes(l->sealed[i]);
    out->runs = l->runs->n_runs;
    for (size_t i = 0; i < l->runs->n_runs; i++)
        out->run_disk_bytes += l->runs->runs[i]->bytes;
    mutex_unlock(&e->flush_lock);
    struct cache_stats cs;
    cache_stats(e->cache, &cs);
    out->cache_bytes = cs.bytes;
    out->cache_hits = cs.hits;
    out->cache_misses = cs.misses;
    out->cache_evictions = cs.evictions;
}

/* Blocks of one keyspace in a fragment that it shares with others. */
static void add_shared(struct engine *e, struct run *r, const struct fragment *f, uint64_t keyspace, uint64_t *disk,
                       uint64_t *logical)
{
    struct block *b;
    struct eng_error err;
    if (cache_read(e->cache, r, f->index_offset, f->index_len, 0, FRAME_INDEX, &b, &err) != ENG_OK) {
        engine_note_error(e, &err);
        return;
    }
    for (uint32_t i = index_find(&b->index, keyspace, slice_of(NULL, 0)); i < b->index.n; i++) {
        struct index_entry x = index_get(&b->index, i);
        if (x.keyspace > keyspace)
            break;
        *disk += x.frame_len;
        *logical += x.raw_len;
    }
}

void eng_keyspace_size(struct engine *e, uint64_t keyspace, uint64_t *disk, uint64_t *logical)
{
    *disk = *logical = 0;
    OV_DASSERT(epoch_inside(e));
    const struct run_set *s = layers_now(e)->runs;
    for (size_t i = 0; i < s->n_runs; i++)
        for (size_t k = 0; k < s->runs[i]->n_fragments; k++) {
            const struct fragment *f = &s->runs[i]->fragments[k];
            if (f->first_keyspace == keyspace && f->last_keyspace == keyspace) {
                *disk += f->disk_bytes;
                *logical += f->raw_bytes;
            } else if (f->first_keyspace <= keyspace && keyspace <= f->last_keyspace) {
                add_shared(e, s->runs[i], f, keyspace, disk, logical);
            }
        }
}
