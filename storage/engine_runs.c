/* Which runs there are: from the manifest at start-up, and after each flush or merge. Also what both ask about keyspaces: is it big, is it
 * gone? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/engine_private.h"

enum { BIG_SHARE = 16, BIG_MIN = 64 * 1024 }; /* a sixteenth of a memtable */

/* ---- start-up ---- */

struct names {
    char (*all)[RUN_PATH_MAX];
    size_t n, cap;
};

static void note_name(void *arg, const char *name)
{
    struct names *l = arg;
    if (strlen(name) + sizeof("runs/") > RUN_PATH_MAX) /* none of ours */
        return;
    if (l->n == l->cap) {
        l->cap = OV_MAX(64, l->cap * 2);
        l->all = ov_realloc(l->all, l->cap * sizeof(*l->all));
    }
    snprintf(l->all[l->n++], RUN_PATH_MAX, "runs/%.20s", name);
}

static bool is_live(const struct manifest_state *s, const char *path)
{
    char live[RUN_PATH_MAX];
    for (size_t i = 0; i < s->n_runs; i++) {
        run_path(s->runs[i].id, live);
        if (strcmp(path, live) == 0)
            return true;
    }
    return false;
}

/* What a crash left half-written, or not yet removed. */
static enum eng_result remove_strays(struct engine *e, struct eng_error *err)
{
    struct names l = {0};
    const struct manifest_state *s = manifest_state(e->manifest);
    int rc = e->files->list(e->files, "runs", note_name, &l);
    for (size_t i = 0; i < l.n && rc == 0; i++) {
        size_t len = strlen(l.all[i]);
        if (len > 4 && strcmp(l.all[i] + len - 4, ".run") == 0 && !is_live(s, l.all[i]))
            rc = e->files->remove(e->files, l.all[i]);
    }
    free(l.all);
    return rc == 0 ? ENG_OK : run_io_error(err, rc, "tidy up", "runs", 0);
}

enum eng_result runs_load(struct engine *e, struct run_set **out, struct eng_error *err)
{
    const struct manifest_state *s = manifest_state(e->manifest);
    *out = NULL;
    int rc = e->files->mkdir(e->files, "runs");
    if (rc == 0)
        rc = e->files->sync_dir(e->files, "");
    if (rc != 0)
        return run_io_error(err, rc, "make", "runs", 0);
    enum eng_result r = remove_strays(e, err);
    struct run **runs = ov_calloc(s->n_runs + 1, sizeof(struct run *));
    size_t n = 0;
    e->next_order = 1;
    for (size_t i = 0; i < s->n_runs && r == ENG_OK; i++) {
        const struct manifest_run *m = &s->runs[i];
        r = run_open(e->files, m->id, m->order, &runs[n], err);
        if (r == ENG_OK && runs[n++]->bytes != m->bytes) {
            char path[RUN_PATH_MAX];
            run_path(m->id, path);
            r = err->result = ENG_CORRUPT;
            snprintf(err->msg, sizeof(err->msg), "%s has %" PRIu64 " bytes, the manifest says %" PRIu64, path,
                     runs[n - 1]->bytes, m->bytes);
        }
        e->next_order = OV_MAX(e->next_order, m->order + 1);
    }
    if (r == ENG_OK)
        *out = run_set_new(runs, n);
    for (size_t i = 0; i < n; i++)
        run_unref(runs[i]);
    free(runs);
    return r;
}

/* ---- what flush and merge ask ---- */

void runs_note_bytes(void *list, uint64_t keyspace, uint64_t bytes)
{
    struct big_list *l = list;
    if (bytes < OV_MAX((uint64_t)BIG_MIN, l->e->opt.memtable_bytes / BIG_SHARE))
        return;
    if (l->n == l->cap) {
        l->cap = OV_MAX(16, l->cap * 2);
        l->all = ov_realloc(l->all, l->cap * sizeof(*l->all));
    }
    OV_DASSERT(l->n == 0 || l->all[l->n - 1].keyspace < keyspace);
    l->all[l->n++] = (struct keyspace_bytes){keyspace, bytes};
}

bool runs_alone(void *list, uint64_t keyspace)
{
    const struct big_list *l = list;
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (l->all[mid].keyspace < keyspace)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < l->n && l->all[lo].keyspace == keyspace;
}

bool runs_gone(void *list, uint64_t keyspace)
{
    const struct big_list *l = list;
    const struct count *k = counts_find(&l->e->counts, keyspace);
    uint64_t at = k ? atomic_load_explicit(&k->dropped, memory_order_acquire) : 0;
    return at != 0 && at <= l->gone_before && at <= l->oldest;
}

bool runs_stop(void *list)
{
    return atomic_load_explicit(&((struct big_list *)list)->e->stop, memory_order_relaxed);
}

uint64_t runs_new_id(void *list)
{
    struct engine *e = ((struct big_list *)list)->e;
    mutex_lock(&e->manifest_lock);
    uint64_t id = manifest_new_run_id(e->manifest);
    mutex_unlock(&e->manifest_lock);
    return id;
}

/* ---- publishing ---- */

static struct run_set *changed_set(const struct run_set *old, struct run *const *add, size_t n_add,
                                   struct run *const *remove, size_t n_remove)
{
    struct run **runs = ov_malloc((old->n_runs + n_add + 1) * sizeof(struct run *));
    size_t n = 0;
    for (size_t i = 0; i < old->n_runs; i++) {
        bool goes = false;
        for (size_t k = 0; k < n_remove; k++)
            goes |= remove[k] == old->runs[i];
        if (!goes)
            runs[n++] = old->runs[i];
    }
    for (size_t i = 0; i < n_add; i++)
        runs[n++] = add[i];
    struct run_set *s = run_set_new(runs, n);
    free(runs);
    return s;
}

/* Dropped keyspaces of which no run, present or to come, holds anything. */
static size_t forgettable(struct engine *e, const struct run_set *set, uint64_t *out)
{
    const struct manifest_state *s = manifest_state(e->manifest);
    size_t n = 0;
    for (size_t i = 0; i < s->n_drops; i++) {
        uint64_t ks = s->drops[i].keyspace;
        bool held = s->drops[i].ts > atomic_load(&e->flushed_ts);
        for (size_t r = 0; r < set->n_runs && !held; r++)
            for (size_t f = 0; f < set->runs[r]->n_fragments && !held; f++)
                held =
                    set->runs[r]->fragments[f].first_keyspace <= ks && ks <= set->runs[r]->fragments[f].last_keyspace;
        if (!held)
            out[n++] = ks;
    }
    return n;
}

static void swap_layers(struct engine *e, struct run_set *set, const struct sealed *drop)
{
    ASSERT_HELD(&e->flush_lock);
    struct layers *l = layers_now(e);
    struct memtable **sealed = ov_malloc((l->n_sealed + 1) * sizeof(struct memtable *));
    size_t n = 0;
    for (size_t i = 0; i < l->n_sealed; i++)
        if (!drop || l->sealed[i] != drop->table)
            sealed[n++] = l->sealed[i];
    layers_publish(e, layers_new(e, l->active, sealed, n, set));
    free(sealed);
}

struct run_set *runs_now(struct engine *e)
{
    mutex_lock(&e->flush_lock);
    struct run_set *s = layers_now(e)->runs;
    run_set_ref(s);
    mutex_unlock(&e->flush_lock);
    return s;
}

enum eng_result runs_publish(struct engine *e, struct manifest_edit *edit, struct run *const *add, size_t n_add,
                             struct run *const *remove, size_t n_remove, const struct sealed *drop,
                             struct eng_error *err)
{
    mutex_lock(&e->manifest_lock); /* runs change only under it: the set stays what it is until the swap */
    struct run_set *old = runs_now(e), *set = changed_set(old, add, n_add, remove, n_remove);
    run_set_unref(old);
    uint64_t *forget = ov_malloc((manifest_state(e->manifest)->n_drops + 1) * sizeof(*forget));
    edit->forget = forget;
    edit->n_forget = forgettable(e, set, forget);
    enum eng_result r = manifest_apply(e->manifest, edit, err);
    free(forget);
    if (r == ENG_OK) {
        mutex_lock(&e->flush_lock);
        swap_layers(e, set, drop);
        e->runs_changes++;
        mutex_unlock(&e->flush_lock);
        for (size_t i = 0; i < n_remove; i++)
            atomic_store(&remove[i]->doomed, true);
    }
    mutex_unlock(&e->manifest_lock);
    run_set_unref(set);
    return r;
}
