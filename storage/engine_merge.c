/* Merging in the background: choose, write, publish. The runs that are being merged are marked busy; flushes go on beside it.
 *
 * A failure leaves the database as it was: what was written is removed, and after a while it is tried again. Only an edit that the
 * manifest could not write makes the engine read-only. */
#include <stdlib.h>

#include "server/base/clock.h"
#include "storage/compact/merge.h"
#include "storage/compact/pick.h"
#include "storage/engine_private.h"

enum { WIDTH = 4, PAUSE_US = 10 * 1000 * 1000, LOOK_AGAIN_US = 30 * 1000 * 1000 };

struct job {
    struct engine *e;
    struct run_set *from; /* the runs to merge */
    struct run **below;   /* older ones that stay */
    size_t n_below;
    uint64_t order;
};

static int by_keyspace(const void *a, const void *b)
{
    uint64_t x = ((const struct keyspace_bytes *)a)->keyspace, y = ((const struct keyspace_bytes *)b)->keyspace;
    return (x > y) - (x < y);
}

/* How big the keyspaces are, by the fragments that hold one alone. */
static void measure(const struct run_set *from, struct big_list *list)
{
    size_t n = 0;
    for (size_t i = 0; i < from->n_runs; i++)
        n += from->runs[i]->n_fragments;
    struct keyspace_bytes *all = ov_malloc((n + 1) * sizeof(*all));
    n = 0;
    for (size_t i = 0; i < from->n_runs; i++)
        for (size_t k = 0; k < from->runs[i]->n_fragments; k++) {
            const struct fragment *f = &from->runs[i]->fragments[k];
            if (f->first_keyspace == f->last_keyspace)
                all[n++] = (struct keyspace_bytes){f->first_keyspace, f->raw_bytes};
        }
    qsort(all, n, sizeof(*all), by_keyspace);
    for (size_t i = 0, k; i < n; i = k) {
        uint64_t bytes = 0;
        for (k = i; k < n && all[k].keyspace == all[i].keyspace; k++)
            bytes += all[k].bytes;
        runs_note_bytes(list, all[i].keyspace, bytes);
    }
    free(all);
}

/* Chooses under manifest_lock, so that the runs do not change meanwhile, and marks them. */
static bool choose(struct job *j, struct big_list *list)
{
    struct engine *e = j->e;
    mutex_lock(&e->manifest_lock);
    struct run_set *set = runs_now(e);
    struct run **chosen = ov_malloc((set->n_runs + 1) * sizeof(struct run *));
    struct pick_options opt = {.width = WIDTH,
                               .tiny_bytes = e->opt.memtable_bytes / 16,
                               .oldest = list->oldest,
                               .gone = runs_gone,
                               .arg = list};
    size_t n = set->n_runs && !atomic_load(&e->failed) ? pick_merge(set, &opt, chosen) : 0;
    if (n) {
        j->from = run_set_new(chosen, n);
        j->order = j->from->runs[0]->order;
        j->below = ov_malloc((set->n_runs + 1) * sizeof(struct run *));
        for (size_t i = 0; i < n; i++)
            chosen[i]->busy = true;
        for (size_t i = 0; i < set->n_runs; i++)
            if (!set->runs[i]->busy && set->runs[i]->order <= j->order) {
                j->below[j->n_below++] = set->runs[i];
                run_ref(set->runs[i]);
            }
    }
    mutex_unlock(&e->manifest_lock);
    run_set_unref(set);
    free(chosen);
    return n != 0;
}

static enum eng_result write_merged(struct job *j, const struct keep *keep, struct big_list *list, struct output *out,
                                    struct eng_error *err)
{
    struct merge m = {
        .from = j->from, .below = j->below, .n_below = j->n_below, .keep = keep, .gone = runs_gone, .arg = list};
    enum eng_result r = merge_runs(&m, out, err);
    if (r == ENG_OK)
        r = output_finish(out, err);
    return r;
}

static enum eng_result publish(struct job *j, const struct output *out, struct eng_error *err)
{
    size_t n = j->from->n_runs;
    uint64_t *ids = ov_malloc(n * sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        ids[i] = j->from->runs[i]->id;
    struct manifest_edit edit = {.add = out->runs, .n_add = out->n, .remove = ids, .n_remove = n};
    enum eng_result r = runs_publish(j->e, &edit, out->opened, out->n, j->from->runs, n, NULL, err);
    if (r != ENG_OK && r != ENG_DISK_FULL)
        engine_fail(j->e, err);
    free(ids);
    return r;
}

static void end_job(struct job *j, bool done)
{
    mutex_lock(&j->e->manifest_lock);
    for (size_t i = 0; i < j->from->n_runs && !done; i++)
        j->from->runs[i]->busy = false;
    mutex_unlock(&j->e->manifest_lock);
    for (size_t i = 0; i < j->n_below; i++)
        run_unref(j->below[i]);
    free(j->below);
    run_set_unref(j->from);
}

static enum eng_result merge_once(struct engine *e)
{
    struct job j = {.e = e};
    struct eng_error err = {0};
    uint64_t *snapshots;
    struct keep keep = {.floor = epoch_floor(e, atomic_load(&e->visible))};
    keep.n = snapshots_list(&e->snapshots, 0, &snapshots); /* steps first, then the registry */
    keep.snapshots = snapshots;
    struct big_list list = {.e = e, .gone_before = atomic_load(&e->flushed_ts), .oldest = keep_oldest(&keep)};
    if (!choose(&j, &list)) {
        free(snapshots);
        return ENG_NOT_FOUND;
    }
    /* From here on no read at an earlier time may begin. Reads that began since the list was made are newer than all runs' data. */
    uint64_t *again;
    size_t n_again = snapshots_list(&e->snapshots, OV_MIN(keep.floor, j.from->max_ts), &again);
    free(snapshots);
    keep.snapshots = again;
    keep.n = n_again;
    list.oldest = keep_oldest(&keep);
    measure(j.from, &list);
    struct output out = {
        .files = e->files,
        .codec = e->opt.compression,
        .order = j.order,
        .new_id = runs_new_id,
        .alone = runs_alone,
        .stop = runs_stop,
        .arg = &list,
    };
    bool told = false;
    enum eng_result r = write_merged(&j, &keep, &list, &out, &err);
    if (r == ENG_OK) {
        r = publish(&j, &out, &err);
        told = r != ENG_DISK_FULL; /* an edit whose sync failed may be on the disk all the same: its runs stay */
    }
    if (r == ENG_OK) {
        atomic_fetch_add(&e->merges, 1);
        atomic_fetch_add(&e->merge_bytes, out.bytes);
    } else if (r != ENG_CANCELLED) {
        engine_note_error(e, &err);
        engine_warn(&err, 5220002, "Runs could not be merged; it will be tried again");
    }
    output_free(&out, told);
    end_job(&j, r == ENG_OK);
    free(again);
    free(list.all);
    epoch_collect(&e->limbo);
    return r;
}

enum eng_result merge_some(struct engine *e)
{
    int64_t now = clock_mono_us();
    mutex_lock(&e->flush_lock);
    /* The same runs are looked at again only now and then: a snapshot may have been closed meanwhile. */
    bool seen = !e->opt.manual && e->merge_seen == e->runs_changes + 1 && now - e->merge_seen_at < LOOK_AGAIN_US;
    bool mine = !e->merging && !seen && now >= e->merge_not_before;
    if (mine)
        e->merging = true;
    uint64_t changes = e->runs_changes;
    mutex_unlock(&e->flush_lock);
    if (!mine)
        return ENG_NOT_FOUND;
    enum eng_result r = merge_once(e);
    mutex_lock(&e->flush_lock);
    e->merging = false;
    if (r == ENG_NOT_FOUND) {
        e->merge_seen = changes + 1;
        e->merge_seen_at = now;
    } else if (r != ENG_OK) {
        e->merge_not_before = now + PAUSE_US;
    }
    mutex_unlock(&e->flush_lock);
    return r == ENG_OK ? ENG_OK : ENG_NOT_FOUND;
}
