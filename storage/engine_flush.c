/* Sealing: a full memtable gives place to a new one and goes on its way to a run. */
#include <stdlib.h>

#include "storage/engine_private.h"

bool flush_wanted(const struct engine *e)
{
    return memtable_bytes(layers_now(e)->active) >= e->opt.memtable_bytes ||
           (e->journal && journal_tail(e->journal) - atomic_load_explicit(&e->sealed_at, memory_order_relaxed) >= e->opt.replay_bytes);
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
    atomic_store(&e->sealed_at, s->end);
    return s;
}

bool flush_seal(struct engine *e, bool force)
{
    mutex_lock(&e->flush_lock);
    struct layers *l = layers_now(e);
    if (!flush_wanted(e) && !(force && (memtable_keys(l->active) || e->n_drops))) {
        mutex_unlock(&e->flush_lock); /* somebody else has done it */
        return true;
    }
    if (e->journal && atomic_load(&e->n_sealed) >= SEALED_MAX) {
        mutex_unlock(&e->flush_lock);
        return false;
    }
    struct memtable *m = memtable_new(e->opt.memtable_bytes), **sealed = ov_malloc((l->n_sealed + 1) * sizeof(struct memtable *));
    sealed[0] = l->active;
    memcpy(sealed + 1, l->sealed, l->n_sealed * sizeof(struct memtable *));
    struct layers *next = layers_new(e, m, sealed, l->n_sealed + 1);
    memtable_unref(m);
    free(sealed);
    mutex_lock(&e->commit_lock);
    struct sealed *s = take_active(e, l->active);
    layers_publish(e, next);
    mutex_unlock(&e->commit_lock);
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
            break;
        }
    c->next = NULL;
    c->waiting_on = NULL;
    c->state = ENG_CALL_IDLE;
    mutex_unlock(&e->flush_lock);
}

void flush_start(struct engine *e)
{
}

void flush_stop(struct engine *e)
{
}
