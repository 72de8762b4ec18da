/* The table of cursors: by id, and a list of the idle ones, the longest idle first. */
#include "server/session/cursors.h"

#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/map.h"
#include "server/base/rand.h"

enum { ARENAS_MAX = 64 };

struct cursors {
    struct engine *engine;
    struct mutex mutex;
    struct map *by_id;
    struct cursor idle; /* ring */
    int64_t no_timeout, timed_out;
    struct arena *arenas[ARENAS_MAX]; /* free ones */
    size_t n_arenas;
};

struct cursors *cursors_new(struct engine *e, struct catalog *catalog)
{
    struct cursors *cs = ov_calloc(1, sizeof(*cs));
    (void)catalog; /* a cursor holds its collection, which tells that it was dropped */
    cs->engine = e;
    mutex_init(&cs->mutex, RANK_SESSION);
    cs->by_id = map_new();
    cs->idle.next = cs->idle.prev = &cs->idle;
    return cs;
}

/* ---- one cursor ---- */

struct cursor *cursor_new(struct cursors *cs)
{
    struct arena *a = NULL;
    mutex_lock(&cs->mutex);
    if (cs->n_arenas)
        a = cs->arenas[--cs->n_arenas];
    mutex_unlock(&cs->mutex);
    if (!a)
        a = arena_new(0);
    struct cursor *c = arena_alloc(a, sizeof(*c));
    cursor_init(c, a);
    c->own_arena = true;
    return c;
}

void cursor_init(struct cursor *c, struct arena *a)
{
    memset(c, 0, sizeof(*c));
    c->arena = a;
}

static void give_arena(struct cursors *cs, struct arena *a)
{
    arena_reset(a);
    mutex_lock(&cs->mutex);
    if (cs->n_arenas < ARENAS_MAX) {
        cs->arenas[cs->n_arenas++] = a;
        a = NULL;
    }
    mutex_unlock(&cs->mutex);
    arena_free(a);
}

void cursor_free(struct cursors *cs, struct cursor *c)
{
    pipeline_close(c->pipe);
    eng_end(c->txn);
    collection_unref(c->coll);
    c->pipe = NULL;
    c->txn = NULL;
    c->coll = NULL;
    if (c->own_arena)
        give_arena(cs, c->arena);
}

/* ---- the table: under its mutex ---- */

static struct slice key_of(const int64_t *id)
{
    return slice_of(id, sizeof(*id));
}

static void into_idle(struct cursors *cs, struct cursor *c, int64_t now)
{
    c->taken = false;
    c->idle_since_us = now;
    c->prev = cs->idle.prev;
    c->next = &cs->idle;
    c->prev->next = c->next->prev = c;
}

static void out_of_idle(struct cursor *c)
{
    c->prev->next = c->next;
    c->next->prev = c->prev;
    c->next = c->prev = NULL;
    c->taken = true;
}

static void remove_id(struct cursors *cs, struct cursor *c)
{
    map_remove(cs->by_id, key_of(&c->id));
    cs->no_timeout -= c->no_timeout;
}

/* ---- its face ---- */

static void put_to_sleep(struct cursor *c)
{
    pipeline_suspend(c->pipe);
    if (c->txn) /* none: it reads nothing that is stored */
        eng_txn_release(c->txn);
}

int64_t cursors_add(struct cursors *cs, struct cursor *c)
{
    int64_t now = clock_mono_us();
    OV_ASSERT(c->own_arena && c->id == 0);
    put_to_sleep(c);
    mutex_lock(&cs->mutex);
    do { /* 63 bits that nobody can guess */
        rand_secure(&c->id, sizeof(c->id));
        c->id &= INT64_MAX;
    } while (c->id == 0 || map_get(cs->by_id, key_of(&c->id)));
    map_put(cs->by_id, key_of(&c->id), c);
    cs->no_timeout += c->no_timeout;
    into_idle(cs, c, now);
    int64_t id = c->id;
    mutex_unlock(&cs->mutex);
    return id;
}

enum cursor_found cursors_take(struct cursors *cs, int64_t id, struct cursor **out)
{
    enum cursor_found found = CURSOR_OK;
    mutex_lock(&cs->mutex);
    struct cursor *c = map_get(cs->by_id, key_of(&id));
    if (!c)
        found = CURSOR_NOT_FOUND;
    else if (c->taken)
        found = CURSOR_BUSY;
    else
        out_of_idle(c);
    mutex_unlock(&cs->mutex);
    *out = found == CURSOR_OK ? c : NULL;
    return found;
}

void cursors_give_back(struct cursors *cs, struct cursor *c)
{
    int64_t now = clock_mono_us();
    put_to_sleep(c);
    mutex_lock(&cs->mutex);
    bool killed = cursor_killed(c);
    if (!killed)
        into_idle(cs, c, now);
    mutex_unlock(&cs->mutex);
    if (killed)
        cursor_free(cs, c);
}

void cursors_discard(struct cursors *cs, struct cursor *c)
{
    mutex_lock(&cs->mutex);
    if (!cursor_killed(c))
        remove_id(cs, c);
    mutex_unlock(&cs->mutex);
    cursor_free(cs, c);
}

/* Out of the table. True: it is idle, and the caller's to free. */
static bool kill_locked(struct cursors *cs, struct cursor *c)
{
    bool idle = !c->taken;
    remove_id(cs, c);
    if (idle)
        out_of_idle(c);
    else
        atomic_store_explicit(&c->killed, true, memory_order_relaxed);
    return idle;
}

bool cursors_kill(struct cursors *cs, int64_t id)
{
    mutex_lock(&cs->mutex);
    struct cursor *c = map_get(cs->by_id, key_of(&id)), *idle = c && kill_locked(cs, c) ? c : NULL;
    mutex_unlock(&cs->mutex);
    if (idle)
        cursor_free(cs, idle);
    return c != NULL;
}

static struct slice session_of(const struct cursor *c)
{
    return slice_of(c->lsid, sizeof(c->lsid));
}

void cursors_kill_sessions(struct cursors *cs, const struct map *sessions)
{
    size_t pos = 0, n = 0;
    struct slice key;
    void *value;
    mutex_lock(&cs->mutex);
    struct cursor **found = ov_malloc((map_count(cs->by_id) + 1) * sizeof(struct cursor *));
    while (map_next(cs->by_id, &pos, &key, &value)) {
        struct cursor *c = value;
        if (c->has_lsid && map_get(sessions, session_of(c)))
            found[n++] = c;
    }
    for (size_t i = 0; i < n; i++)
        if (!kill_locked(cs, found[i]))
            found[i] = NULL;
    mutex_unlock(&cs->mutex);
    for (size_t i = 0; i < n; i++)
        if (found[i])
            cursor_free(cs, found[i]);
    free(found);
}

/* ---- time ---- */

static bool dropped(const struct cursor *c)
{
    return c->coll && atomic_load_explicit(&c->coll->rt->dropped, memory_order_relaxed);
}

/* Idle cursors that have to go, chained by `next`. A dropped collection's stay a while, so that the next getMore learns why. */
static struct cursor *take_old(struct cursors *cs, int64_t now, bool all)
{
    enum { DROPPED_STAY_US = 60 * 1000000 };
    struct cursor *old = NULL, *next;
    mutex_lock(&cs->mutex);
    for (struct cursor *c = cs->idle.next; c != &cs->idle; c = next) {
        int64_t idle = now - c->idle_since_us;
        next = c->next;
        if (!all && !(idle >= CURSOR_IDLE_US && !c->no_timeout) && !(idle >= DROPPED_STAY_US && dropped(c)))
            continue;
        out_of_idle(c);
        remove_id(cs, c);
        cs->timed_out += !all;
        c->next = old;
        old = c;
    }
    mutex_unlock(&cs->mutex);
    return old;
}

static void free_chain(struct cursors *cs, struct cursor *c)
{
    if (!c)
        return;
    eng_step_enter(cs->engine);
    for (struct cursor *next; c; c = next) {
        next = c->next;
        cursor_free(cs, c);
    }
    eng_step_leave(cs->engine);
}

void cursors_tick(struct cursors *cs, int64_t now_mono_us)
{
    free_chain(cs, take_old(cs, now_mono_us, false));
}

void cursors_free(struct cursors *cs)
{
    if (!cs)
        return;
    free_chain(cs, take_old(cs, 0, true));
    OV_ASSERT(map_count(cs->by_id) == 0);
    while (cs->n_arenas)
        arena_free(cs->arenas[--cs->n_arenas]);
    map_free(cs->by_id);
    mutex_destroy(&cs->mutex);
    free(cs);
}

void cursors_stats(struct cursors *cs, struct cursors_stats *out)
{
    mutex_lock(&cs->mutex);
    *out = (struct cursors_stats){(int64_t)map_count(cs->by_id), cs->no_timeout, cs->timed_out};
    mutex_unlock(&cs->mutex);
}
