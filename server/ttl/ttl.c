/* One pass: a list of the expiring indexes, then for each a removal of what its filter finds:
 *
 *   {field: {$lte: now - expireAfterSeconds}}   dates only, by type bracketing; of an array one element is enough, so its smallest counts
 *
 * and what the filter of a partial index asks. */
#include "server/ttl/ttl.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/write/modify.h"

struct ttl {
    struct engine *engine;
    struct catalog *catalog;
    pthread_t thread;
    struct mutex lock; /* guards woken, stop */
    pthread_cond_t changed;
    bool woken, stop;
    _Atomic int64_t sleep_secs, passes, deleted;
    _Atomic bool enabled;
    struct op_host host;
    struct operation op;
    struct eng_call call;
};

struct job { /* an index */
    const char *db, *name, *index;
    const uint8_t *filter; /* of a partial one, or NULL */
    const char *field;
    int64_t after_ms;
    bool hidden;
    struct job *next;
};
struct jobs {
    struct arena *arena;
    struct job *first, **last;
};

/* ---- waiting ---- */

static void signal_change(struct ttl *t, bool stop)
{
    mutex_lock(&t->lock);
    t->woken = true;
    t->stop |= stop;
    pthread_cond_broadcast(&t->changed);
    mutex_unlock(&t->lock);
}

static void wake_op(struct op_host *h, struct operation *op)
{
    (void)op;
    signal_change(OV_CONTAINER(h, struct ttl, host), false);
}

static void wake_call(struct eng_call *c)
{
    signal_change(OV_CONTAINER(c, struct ttl, call), false);
}

/* Until something wakes; false once it is to end. */
static bool await_wake(struct ttl *t)
{
    mutex_lock(&t->lock);
    while (!t->woken && !t->stop)
        mutex_wait(&t->lock, &t->changed, -1);
    t->woken = false;
    bool go_on = !t->stop;
    mutex_unlock(&t->lock);
    return go_on;
}

static bool may_go_on(struct ttl *t)
{
    mutex_lock(&t->lock);
    bool go_on = !t->stop;
    mutex_unlock(&t->lock);
    return go_on && ttl_enabled(t);
}

/* Until the next pass; false once it is to end. */
static bool await_pass(struct ttl *t)
{
    int64_t since = clock_mono_us();
    mutex_lock(&t->lock);
    for (;;) {
        int64_t left = since + ttl_sleep_secs(t) * 1000000 - clock_mono_us();
        if (t->stop || left <= 0)
            break;
        mutex_wait(&t->lock, &t->changed, left);
    }
    bool go_on = !t->stop;
    mutex_unlock(&t->lock);
    return go_on;
}

/* ---- the list ---- */

static const char *copy(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

static void add_jobs(void *arg, struct collection *coll)
{
    struct jobs *jobs = arg;
    struct arena *a = jobs->arena;
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        const struct index_def *def = &coll->indexes[i];
        if (def->expire_after < 0 || def->state != INDEX_READY)
            continue;
        struct job *j = arena_zalloc(a, sizeof(*j));
        *j = (struct job){.db = copy(a, coll->db),
                          .name = copy(a, coll->name),
                          .index = copy(a, def->name),
                          .field = copy(a, def->paths[0].text),
                          .after_ms = def->expire_after * INT64_C(1000),
                          .hidden = def->hidden,
                          .filter = def->filter ? arena_dup(a, def->filter, bdoc_len(def->filter)) : NULL};
        *jobs->last = j;
        jobs->last = &j->next;
    }
}

/* ---- one index ---- */

static const uint8_t *make_filter(struct arena *a, const struct job *j)
{
    struct buf b;
    char scratch[12];
    buf_init(&b);
    size_t doc = bw_begin(&b), all = bw_arr(&b, "$and");
    size_t one = bw_doc(&b, bw_index(0, scratch)), field = bw_doc(&b, j->field);
    bw_date(&b, "$lte", clock_wall_ms() - j->after_ms);
    bw_end(&b, field);
    bw_end(&b, one);
    if (j->filter)
        bw_rawdoc(&b, bw_index(1, scratch), j->filter);
    bw_end(&b, all);
    bw_end(&b, doc);
    const uint8_t *out = arena_dup(a, b.p, b.len);
    buf_free(&b);
    return out;
}

/* The index by name, in a value of BSON; a hidden one cannot be asked for. */
static struct bval make_hint(struct arena *a, const struct job *j)
{
    struct buf b;
    if (j->hidden)
        return BVAL_MISSING;
    buf_init(&b);
    size_t doc = bw_begin(&b);
    bw_str(&b, "hint", j->index);
    bw_end(&b, doc);
    struct bval v = bdoc_get(arena_dup(a, b.p, b.len), "hint");
    buf_free(&b);
    return v;
}

static void log_failure(const struct job *j, const char *why)
{
    char quoted[512];
    log_line(LOG_WARNING, "INDEX", 5400703, "Expired documents could not be removed",
             "\"namespace\":\"%s.%s\",\"error\":%s", j->db, j->name,
             log_quote(why, strlen(why), quoted, sizeof(quoted)));
}

/* Steps until it is done, as a host of operations does. AGAIN: it made way for DDL and is to be begun anew. */
static enum write_result run(struct ttl *t, struct writer *w, struct modify *m)
{
    for (;;) {
        t->op.slice_end_us = clock_mono_us() + OP_SLICE_US;
        eng_step_enter(t->engine);
        enum write_result r = modify_step(w, m, &t->op.err);
        bool ddl = r == WRITE_AGAIN && w->coll && atomic_load_explicit(&w->coll->rt->ddl, memory_order_relaxed);
        bool over = (r != WRITE_WAIT && r != WRITE_AGAIN) || ddl || !may_go_on(t);
        if (over) {
            writer_cancel(w);
            modify_end(m);
            writer_end(w);
        }
        eng_step_leave(t->engine);
        if (over)
            return r;
        if (r == WRITE_WAIT)
            (void)await_wake(t); /* a stop is seen by the next step */
        else
            sched_yield();
    }
}

static enum write_result expire(struct ttl *t, struct arena *a, const struct job *j)
{
    struct match *filter;
    t->op = (struct operation){.host = &t->host, .arena = a};
    err_init(&t->op.err, a);
    if (match_parse(a, make_filter(a, j), &filter, &t->op.err) != 0) {
        log_failure(j, t->op.err.msg);
        return WRITE_FAILED;
    }
    eng_call_init(&t->call, wake_call);
    struct writer w = {
        .e = t->engine, .c = t->catalog, .op = &t->op, .call = &t->call, .arena = a, .db = j->db, .name = j->name};
    struct modify m = {.arena = a, .filter = filter, .multi = true, .hint = make_hint(a, j), .verb = "delete"};
    enum write_result r = run(t, &w, &m);
    atomic_fetch_add_explicit(&t->deleted, (int64_t)w.committed, memory_order_relaxed);
    if (r == WRITE_FAILED && t->op.err.code != ERR_BAD_VALUE) /* that one: the index is not there any more */
        log_failure(j, t->op.err.msg);
    else if (r == WRITE_ENGINE)
        log_failure(j, "the engine did not take the batch");
    return r;
}

static void pass(struct ttl *t)
{
    struct jobs jobs = {.arena = arena_new(0)};
    struct arena *scratch = arena_new(0);
    jobs.last = &jobs.first;
    catalog_each(t->catalog, NULL, add_jobs, &jobs);
    for (const struct job *j = jobs.first; j && may_go_on(t);) {
        if (expire(t, scratch, j) != WRITE_AGAIN)
            j = j->next;
        arena_reset(scratch);
    }
    arena_free(scratch);
    arena_free(jobs.arena);
    atomic_fetch_add_explicit(&t->passes, 1, memory_order_relaxed);
}

/* ---- the thread ---- */

static void *monitor(void *arg)
{
    struct ttl *t = arg;
    log_set_thread_name("TTLMonitor");
    while (await_pass(t))
        if (ttl_enabled(t))
            pass(t);
    return NULL;
}

struct ttl *ttl_start(struct engine *e, struct catalog *c, int64_t sleep_secs)
{
    struct ttl *t = ov_calloc(1, sizeof(*t));
    t->engine = e;
    t->catalog = c;
    t->sleep_secs = sleep_secs;
    t->enabled = true;
    t->host.wake = wake_op;
    mutex_init(&t->lock, RANK_WORKER);
    cond_init(&t->changed);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* signals are for the thread that started us */
    int rc = pthread_create(&t->thread, NULL, monitor, t);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    OV_ASSERT(rc == 0);
    return t;
}

void ttl_stop(struct ttl *t)
{
    if (!t)
        return;
    signal_change(t, true);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->changed);
    mutex_destroy(&t->lock);
    free(t);
}

void ttl_stats(const struct ttl *t, struct ttl_stats *out)
{
    out->passes = atomic_load_explicit(&t->passes, memory_order_relaxed);
    out->deleted = atomic_load_explicit(&t->deleted, memory_order_relaxed);
}

int64_t ttl_sleep_secs(const struct ttl *t)
{
    return atomic_load_explicit(&t->sleep_secs, memory_order_relaxed);
}

void ttl_set_sleep_secs(struct ttl *t, int64_t secs)
{
    atomic_store_explicit(&t->sleep_secs, secs, memory_order_relaxed);
    signal_change(t, false);
}

bool ttl_enabled(const struct ttl *t)
{
    return atomic_load_explicit(&t->enabled, memory_order_relaxed);
}

void ttl_enable(struct ttl *t, bool on)
{
    atomic_store_explicit(&t->enabled, on, memory_order_relaxed);
}
