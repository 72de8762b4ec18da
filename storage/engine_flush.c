/* Sealing and flushing. A full memtable gives place to a new one and goes on its way to runs:
 *
 *   active --flush_seal--> sealed --flush_oldest: journal synced (R6), runs written, manifest edit--> runs; its journal is released
 *
 * What can go wrong: a full disk (tried again; meanwhile writers that find no room get ENG_DISK_FULL, R10), and anything else: the engine
 * turns read-only, with all that it has still in memory and in the journal. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "storage/compact/flush.h"

#include "storage/engine_private.h"

bool flush_wanted(const struct engine *e)
{
    return memtable_bytes(layers_now(e)->active) >= e->opt.memtable_bytes ||
           (e->journal && journal_tail(e->journal) - atomic_load_explicit(&e->sealed_at, memory_order_relaxed) >=
                              e->opt.replay_bytes);
}

void flush_free_sealed(struct sealed *s)
{
    memtable_unref(s->table);
    free(s->deltas);
    free(s->drops);
    free(s);
}

/* Takes what belongs to the active memtable with it. */
static struct sealed *take_active(struct engine *e, struct memtable *m)
{
    struct sealed *s = ov_calloc(1, sizeof(*s));
    ASSERT_HELD(&e->commit_lock);
    s->table = m;
    memtable_ref(m);
    s->end = e->journal ? journal_tail(e->journal) : e->replay_end;
    s->n_deltas = counts_take(&e->counts, &s->deltas);
    s->drops = e->drops;
    s->n_drops = e->n_drops;
    e->drops = NULL;
    e->n_drops = e->drops_cap = 0;
    s->last_ts = e->last_ts;
    atomic_store(&e->sealed_at, s->end);
    return s;
}

bool flush_seal(struct engine *e, bool force)
{
    mutex_lock(&e->flush_lock);
    struct layers *l = layers_now(e);
    mutex_lock(&e->commit_lock);
    bool any = memtable_keys(l->active) || e->n_drops;
    mutex_unlock(&e->commit_lock);
    if (!flush_wanted(e) && !(force && any)) {
        mutex_unlock(&e->flush_lock); /* somebody else has done it */
        return true;
    }
    if (e->journal && atomic_load(&e->n_sealed) >= SEALED_MAX) {
        mutex_unlock(&e->flush_lock);
        return false;
    }
    struct memtable *m = memtable_new(e->opt.memtable_bytes),
                    **sealed = ov_malloc((l->n_sealed + 1) * sizeof(struct memtable *));
    sealed[0] = l->active;
    memcpy(sealed + 1, l->sealed, l->n_sealed * sizeof(struct memtable *));
    struct layers *next = layers_new(e, m, sealed, l->n_sealed + 1, l->runs);
    memtable_unref(m);
    free(sealed);
    mutex_lock(&e->commit_lock);
    struct sealed *s = take_active(e, l->active);
    layers_publish(e, next);
    mutex_unlock(&e->commit_lock);
    s->number = ++e->seals;
    *e->sealed_end = s;
    e->sealed_end = &s->next;
    atomic_fetch_add(&e->n_sealed, 1);
    pthread_cond_broadcast(&e->flush_cond);
    mutex_unlock(&e->flush_lock);
    return true;
}

void flush_leave_room(struct engine *e, struct eng_call *c)
{
    mutex_lock(&e->flush_lock);
    for (struct eng_call **at = &e->room; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            c->next = NULL;
            c->waiting_on = NULL;
            call_set_state(c, ENG_CALL_IDLE);
            break;
        }
    mutex_unlock(&e->flush_lock);
}

/* ---- one flush ---- */

enum { TIERS_CALM = 12, TIER_PAUSE_US = 500, PAUSE_MAX_US = 20 * 1000 };

static void wake_room(struct engine *e)
{
    ASSERT_HELD(&e->flush_lock);
    while (e->room) {
        struct eng_call *c = e->room;
        e->room = c->next;
        c->next = NULL;
        c->waiting_on = NULL;
        call_set_state(c, ENG_CALL_IDLE);
        c->wake(c);
    }
}

/* Called now and then while runs are written: lets writers on as far as the flush has come. */
static bool go_on(void *arg)
{
    struct big_list *list = arg;
    struct engine *e = list->e;
    list->done += OUTPUT_TICK;
    atomic_store_explicit(&e->flush_progress,
                          (uint32_t)OV_MIN(list->done * FLUSH_DONE / list->keys, (uint64_t)FLUSH_DONE),
                          memory_order_relaxed);
    mutex_lock(&e->flush_lock);
    wake_room(e);
    size_t tiers = layers_now(e)->runs->n_tiers;
    mutex_unlock(&e->flush_lock);
    /* Merges do not keep up: flushes, and with them writers, are slowed the more, the more places a read has to look in. */
    if (tiers > TIERS_CALM && !e->opt.manual)
        usleep((useconds_t)OV_MIN((tiers - TIERS_CALM) * TIER_PAUSE_US, (size_t)PAUSE_MAX_US));
    return runs_stop(list);
}

static enum eng_result write_runs(struct engine *e, const struct sealed *s, struct output *out, struct eng_error *err)
{
    struct big_list *list = out->arg;
    struct keep keep = {.floor = epoch_floor(e, atomic_load(&e->visible))};
    uint64_t *snapshots;
    /* Steps first, then the registry: a snapshot that moves from the one to the other is seen in at least one. */
    keep.n = snapshots_list(&e->snapshots, OV_MIN(keep.floor, s->last_ts), &snapshots);
    keep.snapshots = snapshots;
    list->gone_before = s->last_ts; /* drops that go into the manifest with this memtable, or are there */
    list->oldest = keep_oldest(&keep);
    flush_measure(s->table, runs_note_bytes, list);
    enum eng_result r = flush_memtable(s->table, &keep, runs_gone, list, out, err);
    if (r == ENG_OK)
        r = output_finish(out, err);
    free(snapshots);
    return r;
}

static enum eng_result publish(struct engine *e, const struct sealed *s, const struct output *out,
                               struct eng_error *err)
{
    struct manifest_count *counts = ov_malloc((s->n_deltas + 1) * sizeof(*counts));
    for (size_t i = 0; i < s->n_deltas; i++)
        counts[i] = (struct manifest_count){s->deltas[i].keyspace, s->deltas[i].delta};
    struct manifest_edit edit = {
        .add = out->runs,
        .n_add = out->n,
        .counts = counts,
        .n_counts = s->n_deltas,
        .drops = s->drops,
        .n_drops = s->n_drops,
        .replay_from = s->end,
        .synced = journal_synced(e->journal),
        .max_ts = s->last_ts,
        .epoch = journal_epoch(e->journal),
    };
    enum eng_result r = runs_publish(e, &edit, out->opened, out->n, NULL, 0, s, err);
    free(counts);
    return r;
}

static enum eng_result flush_one(struct engine *e, const struct sealed *s, struct eng_error *err)
{
    enum eng_result r = journal_sync_blocking(e->journal, s->end); /* R6 */
    if (r != ENG_OK) {
        journal_error(e->journal, err);
        return r;
    }
    struct big_list list = {.e = e, .keys = memtable_keys(s->table) + 1};
    struct output out = {
        .files = e->files,
        .codec = e->opt.compression,
        .order = e->next_order,
        .new_id = runs_new_id,
        .alone = runs_alone,
        .stop = go_on,
        .arg = &list,
    };
    bool told = false;
    r = write_runs(e, s, &out, err);
    if (r == ENG_OK) {
        r = publish(e, s, &out, err);
        told = r != ENG_DISK_FULL; /* an edit whose sync failed may be on the disk all the same: its runs stay */
    }
    if (r == ENG_OK) {
        e->next_order++;
        atomic_store(&e->flushed_ts, s->last_ts);
        atomic_fetch_add(&e->flushes, 1);
        atomic_fetch_add(&e->flush_bytes, out.bytes);
    }
    output_free(&out, told);
    free(list.all);
    return r;
}

enum eng_result flush_oldest(struct engine *e)
{
    struct eng_error err = {0};
    mutex_lock(&e->flush_lock);
    struct sealed *s = e->sealed;
    if (!s || e->flushing || atomic_load(&e->failed)) {
        mutex_unlock(&e->flush_lock);
        return ENG_NOT_FOUND;
    }
    e->flushing = true;
    mutex_unlock(&e->flush_lock);
    enum eng_result r = flush_one(e, s, &err);
    if (r != ENG_OK && r != ENG_DISK_FULL && r != ENG_CANCELLED)
        engine_fail(e, &err);
    mutex_lock(&e->flush_lock);
    e->flushing = false;
    atomic_store(&e->flush_progress, 0);
    bool news = r == ENG_DISK_FULL && !e->no_room;
    e->no_room = r == ENG_DISK_FULL;
    if (r == ENG_OK) {
        e->sealed = s->next;
        if (!e->sealed)
            e->sealed_end = &e->sealed;
        e->flushed = s->number;
        atomic_fetch_sub(&e->n_sealed, 1);
    } else {
        e->flush_failures++;
    }
    wake_room(e);
    pthread_cond_broadcast(&e->flush_cond);
    mutex_unlock(&e->flush_lock);
    if (r == ENG_OK) {
        journal_release(e->journal, s->end);
        flush_free_sealed(s);
    } else if (r == ENG_DISK_FULL) {
        engine_note_error(e, &err);
        if (news)
            engine_warn(&err, 5220003, "There is no room for a run; writes go on when there is");
    }
    epoch_collect(&e->limbo);
    return r;
}

/* ---- threads ---- */

enum { RETRY_US = 250 * 1000, IDLE_US = 1000 * 1000, LIMBO_US = 5 * 1000 };

static void lower_priority(void)
{
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10); /* foreground first; a failure does no harm */
}

static void *flush_main(void *arg)
{
    struct engine *e = arg;
    pthread_setname_np(pthread_self(), "flush"); /* at full priority: whoever commits may be waiting for it */
    mutex_lock(&e->flush_lock);
    while (!e->closing) {
        bool work = e->sealed && !atomic_load(&e->failed);
        if (!work || e->no_room) {
            bool limbo = atomic_load_explicit(&e->limbo.n, memory_order_relaxed) != 0;
            mutex_wait(&e->flush_lock, &e->flush_cond, work ? RETRY_US : limbo ? LIMBO_US : IDLE_US);
            if (e->closing)
                break;
        }
        mutex_unlock(&e->flush_lock);
        if (flush_oldest(e) == ENG_NOT_FOUND)
            epoch_collect(&e->limbo);
        mutex_lock(&e->flush_lock);
    }
    mutex_unlock(&e->flush_lock);
    return NULL;
}

static void *merge_main(void *arg)
{
    struct engine *e = arg;
    pthread_setname_np(pthread_self(), "merge");
    lower_priority();
    mutex_lock(&e->flush_lock);
    while (!e->closing) {
        mutex_unlock(&e->flush_lock);
        enum eng_result r = merge_some(e);
        mutex_lock(&e->flush_lock);
        if (r != ENG_OK && !e->closing)
            mutex_wait(&e->flush_lock, &e->flush_cond, IDLE_US);
    }
    mutex_unlock(&e->flush_lock);
    return NULL;
}

void flush_start(struct engine *e)
{
    if (e->opt.manual)
        return;
    OV_ASSERT(pthread_create(&e->flush_thread, NULL, flush_main, e) == 0);
    OV_ASSERT(pthread_create(&e->merge_thread, NULL, merge_main, e) == 0);
    e->has_threads = true;
}

void flush_stop(struct engine *e)
{
    if (!e->has_threads)
        return;
    mutex_lock(&e->flush_lock);
    e->closing = true;
    atomic_store(&e->stop, true);
    pthread_cond_broadcast(&e->flush_cond);
    mutex_unlock(&e->flush_lock);
    pthread_join(e->flush_thread, NULL);
    pthread_join(e->merge_thread, NULL);
}

/* ---- on demand ---- */

static enum eng_result why_not(struct engine *e)
{
    if (atomic_load(&e->failed))
        return ENG_READ_ONLY;
    return e->no_room ? ENG_DISK_FULL : ENG_OK;
}

/* manual mode: does the flushing itself. */
static enum eng_result flush_here(struct engine *e)
{
    for (;;) {
        bool sealed = flush_seal(e, true);
        enum eng_result r = ENG_OK;
        while (r == ENG_OK)
            r = flush_oldest(e);
        if (r != ENG_NOT_FOUND || atomic_load(&e->failed))
            return r == ENG_NOT_FOUND || r == ENG_IO || r == ENG_CORRUPT ? ENG_READ_ONLY : r;
        if (sealed)
            return ENG_OK;
    }
}

enum eng_result eng_flush(struct engine *e)
{
    if (atomic_load(&e->failed))
        return ENG_READ_ONLY;
    if (e->opt.manual)
        return flush_here(e);
    enum eng_result r = ENG_OK;
    bool sealed = false;
    uint64_t number = 0;
    mutex_lock(&e->flush_lock);
    uint64_t failures = e->flush_failures;
    for (;;) {
        if (!sealed) {
            mutex_unlock(&e->flush_lock);
            sealed = flush_seal(e, true);
            mutex_lock(&e->flush_lock);
            number = e->seals;
        }
        if (sealed && e->flushed >= number)
            break;
        if (e->flush_failures != failures && (r = why_not(e)) != ENG_OK)
            break;
        pthread_cond_broadcast(&e->flush_cond);
        mutex_wait(&e->flush_lock, &e->flush_cond, RETRY_US);
        if (atomic_load(&e->failed)) {
            r = ENG_READ_ONLY;
            break;
        }
    }
    mutex_unlock(&e->flush_lock);
    return r;
}

bool eng_background_step(struct engine *e)
{
    OV_ASSERT(e->opt.manual);
    if (journal_background_step(e->journal))
        return true;
    mutex_lock(&e->flush_lock); /* layers stay */
    bool full = flush_wanted(e);
    mutex_unlock(&e->flush_lock);
    if (full && flush_seal(e, false))
        return true;
    if (flush_oldest(e) == ENG_OK)
        return true;
    return merge_some(e) == ENG_OK;
}
