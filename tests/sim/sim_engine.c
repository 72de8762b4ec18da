/* The engine against a model. One to four clients, each with its own keys in a common keyspace, write, splice, delete, run transactions,
 * keep snapshots and read through them in all ways; meanwhile memtables are flushed and runs merged. A phase ends with a clean stop, a
 * kill, a power cut, or a disk that fails on the way; then what the engine finds again is compared with what it had promised:
 *
 *   - each client's keys are as they were after one of its commits, not earlier than the last that it was told is safe;
 *   - what survives is a prefix of all commits by timestamp;
 *   - counts are exact (R17).
 *
 * SEED=n repeats one round, ROUNDS=n bounds them, OPS=n sets the operations of a phase. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/clock.h"
#include "server/base/rand.h"
#include "storage/engine.h"
#include "tests/lib/file_fault.h"
#include "tests/lib/model.h"

enum { CLIENTS_MAX = 4, SNAPSHOTS = 3, KS_DATA = 100, KS_SHARED = 101, KS_SCRATCH = 1000 };

struct held {
    struct eng_txn *txn;
    struct model_state state;
};

struct client {
    struct sim *sim;
    uint32_t id;
    pthread_t thread;
    struct rand_gen rand;
    struct model model;
    struct held held[SNAPSHOTS];
    struct eng_call call;
    _Atomic int woken;
    uint64_t safe_kill, safe_power; /* numbers of commits that must survive a kill; a power cut */
    uint64_t increments;            /* of the shared counter, in this phase, that were acknowledged */
    bool in_step, stopped;
    uint64_t looked_back, too_old;
    uint64_t scratch; /* its keyspace of the moment */
};

struct sim {
    uint64_t seed;
    uint32_t n_clients, ops;
    bool faults;
    struct file_fault *disk;
    struct engine *e;
    struct client clients[CLIENTS_MAX];
    _Atomic bool stop;
    _Atomic uint64_t scratch_ids;
    uint64_t counter_low; /* the shared counter is at least that */
};

static uint64_t current_seed;

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "SEED=%" PRIu64 " %s:%d: %s\n", current_seed, __FILE__, __LINE__, #x); \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void wake(struct eng_call *c)
{
    struct client *cl = OV_CONTAINER(c, struct client, call);
    atomic_store(&cl->woken, 1);
}

static void enter(struct client *c)
{
    eng_step_enter(c->sim->e);
    c->in_step = true;
}

static void leave(struct client *c)
{
    eng_step_leave(c->sim->e);
    c->in_step = false;
}

static void wait_for(struct client *c, const char *what)
{
    for (int64_t until = clock_mono_us() + 60 * 1000 * 1000; !atomic_exchange(&c->woken, 0);) {
        if (clock_mono_us() > until) {
            fprintf(stderr, "SEED=%" PRIu64 " no wake-up for %s\n", current_seed, what);
            abort();
        }
        usleep(20);
    }
}

#define WAIT(c, x)                        \
    __extension__({                       \
        enum eng_result r_;               \
        while ((r_ = (x)) == ENG_PENDING) \
            wait_for(c, #x);              \
        r_;                               \
    })

/* After this the client does no more in this phase. */
static bool broken(struct client *c, enum eng_result r)
{
    if (r == ENG_READ_ONLY || r == ENG_UNKNOWN || r == ENG_IO) {
        MUST(c->sim->faults);
        c->stopped = true;
        return true;
    }
    if (r == ENG_DISK_FULL) {
        MUST(c->sim->faults);
        usleep(1000);
        return true;
    }
    return false;
}

/* ---- keys and values ---- */

static struct slice key_of(uint32_t client, uint32_t key, char out[16])
{
    return slice_of(out, (size_t)snprintf(out, 16, "%03u/%u", key % 1000, client % 10));
}

static struct model_value *random_value(struct client *c)
{
    uint64_t kind = rand_below(&c->rand, 100);
    size_t n = kind < 70   ? rand_below(&c->rand, 200)
               : kind < 97 ? 1000 + rand_below(&c->rand, 8000)
                           : rand_below(&c->rand, 120000);
    struct model_value *v = model_value_new(n);
    uint64_t x = rand_next(&c->rand) | 1;
    for (size_t i = 0; i < n; i++) {
        if (i % 16 == 0)
            x = x * 6364136223846793005u + 1442695040888963407u;
        v->bytes[i] = (uint8_t)(x >> 33);
    }
    return v;
}

/* ---- writing ---- */

struct batch {
    struct model_change changes[16];
    size_t n;
};

static struct model_value *batch_value(struct client *c, const struct batch *b, uint32_t key)
{
    for (size_t i = b->n; i-- > 0;)
        if (b->changes[i].key == key)
            return b->changes[i].value;
    return c->model.now.values[key];
}

static void batch_add(struct batch *b, uint32_t key, struct model_value *v)
{
    OV_ASSERT(b->n < OV_LEN(b->changes));
    b->changes[b->n++] = (struct model_change){key, v};
}

static void splice_one(struct client *c, struct eng_txn *t, struct slice key, struct model_value *old, uint64_t base,
                       struct model_value **out)
{
    uint32_t at = (uint32_t)rand_below(&c->rand, old->n + 1),
             removed = (uint32_t)rand_below(&c->rand, OV_MIN(old->n - at, (size_t)64) + 1);
    char text[64];
    size_t n = (size_t)snprintf(text, sizeof(text), "<%" PRIx64 ">", rand_next(&c->rand) >> rand_below(&c->rand, 64));
    struct model_value *v = model_value_new(old->n - removed + n);
    memcpy(v->bytes, old->bytes, at);
    memcpy(v->bytes + at, text, n);
    memcpy(v->bytes + at + n, old->bytes + at + removed, old->n - at - removed);
    struct eng_edit edit = {.offset = at, .removed = removed, .added = slice_of(text, n)};
    eng_splice(t, KS_DATA, key, base, slice_of(v->bytes, v->n), &edit, 1);
    *out = v;
}

/* One change of a random key, buffered in t and noted in b. */
static enum eng_result change_one(struct client *c, struct eng_txn *t, struct batch *b)
{
    char space[16];
    uint32_t k = (uint32_t)rand_below(&c->rand, MODEL_KEYS);
    struct slice key = key_of(c->id, k, space);
    struct model_value *old = batch_value(c, b, k);
    struct eng_row row;
    enum eng_result r = WAIT(c, eng_lock(t, KS_DATA, key, &c->call));
    if (r != ENG_OK)
        return r;
    r = WAIT(c, eng_get(t, KS_DATA, key, ENG_GET_NEWEST, &row, &c->call));
    MUST(r == (old ? ENG_OK : ENG_NOT_FOUND) || c->sim->faults);
    if (r != ENG_OK && r != ENG_NOT_FOUND)
        return r;
    MUST(!old || slice_eq(row.value, slice_of(old->bytes, old->n)));
    struct model_value *v = NULL;
    uint64_t what = rand_below(&c->rand, 10);
    if (old && what < 2) {
        eng_del(t, KS_DATA, key);
    } else if (old && what < 6 && row.ts) {
        splice_one(c, t, key, old, row.ts, &v);
    } else {
        v = random_value(c);
        eng_put(t, KS_DATA, key, slice_of(v->bytes, v->n), old ? ENG_UPDATE : ENG_INSERT);
    }
    batch_add(b, k, v);
    return ENG_OK;
}

/* Which commit this is, under a key of its own: tells after a crash how far the client got. */
static void put_number(struct client *c, struct eng_txn *t)
{
    uint8_t key[4], value[8];
    store_be32(key, c->id);
    store_le64(value, model_commits(&c->model) + 1);
    eng_put(t, KS_SHARED, slice_of(key, 4), slice_of(value, 8), model_commits(&c->model) ? ENG_UPDATE : ENG_INSERT);
}

static void forget(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        model_value_unref(b->changes[i].value);
    b->n = 0;
}

static void after_commit(struct client *c, struct batch *b, uint64_t ts, bool synced)
{
    struct model_change *all = ov_malloc((b->n + 1) * sizeof(*all));
    memcpy(all, b->changes, b->n * sizeof(*all));
    model_commit(&c->model, ts, all, b->n);
    if (synced)
        c->safe_power = c->safe_kill = model_commits(&c->model);
}

static void write_some(struct client *c)
{
    struct batch b = {0};
    bool multi = rand_below(&c->rand, 3) == 0;
    enter(c);
    struct eng_txn *t = eng_begin(c->sim->e, multi ? ENG_TXN_MULTI : 0, 0);
    size_t n = 1 + rand_below(&c->rand, multi ? 12 : 3);
    enum eng_result r = ENG_OK;
    for (size_t i = 0; i < n && r == ENG_OK; i++) {
        r = change_one(c, t, &b);
        if (multi && i % 4 == 3) { /* a later command of the transaction */
            leave(c);
            enter(c);
        }
    }
    if (r == ENG_OK && rand_below(&c->rand, 10) == 0)
        eng_log(t, slice_str("a record for whoever reads the log"));
    if (r == ENG_OK && multi && rand_below(&c->rand, 8) == 0) {
        eng_abort(t);
        forget(&b);
    } else if (r == ENG_OK) {
        uint64_t ts = 0;
        bool sync = rand_below(&c->rand, 8) == 0;
        put_number(c, t);
        r = WAIT(c, eng_commit(t, sync ? ENG_DUR_JOURNALED : ENG_DUR_LOCAL, &ts, &c->call));
        if (r == ENG_OK)
            after_commit(c, &b, ts, sync);
        else if (r == ENG_UNKNOWN) /* published; its timestamp is not told */
            after_commit(c, &b, eng_visible(c->sim->e), false);
        else
            forget(&b);
    } else {
        forget(&b);
    }
    eng_end(t);
    leave(c);
    MUST(r == ENG_OK || broken(c, r));
}

/* A counter that all clients increase: each increment finds the last one. */
static void increment(struct client *c)
{
    struct eng_row row;
    enter(c);
    struct eng_txn *t = eng_begin(c->sim->e, 0, 0);
    struct slice key = slice_str("counter");
    enum eng_result r = WAIT(c, eng_lock(t, KS_SHARED, key, &c->call));
    if (r == ENG_OK)
        r = WAIT(c, eng_get(t, KS_SHARED, key, ENG_GET_NEWEST, &row, &c->call));
    if (r == ENG_OK || r == ENG_NOT_FOUND) {
        uint8_t value[8];
        store_le64(value, (r == ENG_OK ? load_le64(row.value.p) : 0) + 1);
        eng_put(t, KS_SHARED, key, slice_of(value, 8), r == ENG_OK ? ENG_UPDATE : ENG_INSERT);
        r = WAIT(c, eng_commit(t, ENG_DUR_LOCAL, NULL, &c->call));
        c->increments += r == ENG_OK;
    }
    eng_end(t);
    leave(c);
    MUST(r == ENG_OK || broken(c, r));
}

/* A keyspace of the client's own that comes and goes. */
static void scratch(struct client *c)
{
    struct sim *s = c->sim;
    enter(c);
    struct eng_txn *t = eng_begin(s->e, 0, 0);
    if (c->scratch && rand_below(&c->rand, 6) == 0) {
        eng_drop_keyspace(t, c->scratch);
        c->scratch = 0;
    } else {
        if (!c->scratch)
            c->scratch = KS_SCRATCH + atomic_fetch_add(&s->scratch_ids, 1);
        uint8_t key[4];
        uint64_t id = c->scratch;
        store_be32(key, (uint32_t)rand_next(&c->rand));
        struct model_value *v = random_value(c);
        eng_put(t, id, slice_of(key, 4), slice_of(v->bytes, v->n), ENG_INSERT);
        model_value_unref(v);
    }
    enum eng_result r = WAIT(c, eng_commit(t, ENG_DUR_LOCAL, NULL, &c->call));
    eng_end(t);
    leave(c);
    MUST(r == ENG_OK || broken(c, r));
}

/* ---- reading ---- */

static void check_row(struct client *c, const struct model_state *s, uint32_t k, enum eng_result r, struct slice value)
{
    const struct model_value *want = s->values[k];
    if (r != ENG_OK && r != ENG_NOT_FOUND) {
        MUST(broken(c, r));
        return;
    }
    MUST(r == (want ? ENG_OK : ENG_NOT_FOUND));
    MUST(!want || slice_eq(value, slice_of(want->bytes, want->n)));
}

static void check_points(struct client *c, struct eng_txn *t, const struct model_state *s)
{
    char space[16][16];
    struct slice keys[16];
    uint32_t ks[16];
    struct eng_row rows[16];
    for (int i = 0; i < 16; i++) {
        ks[i] = (uint32_t)rand_below(&c->rand, MODEL_KEYS);
        keys[i] = key_of(c->id, ks[i], space[i]);
    }
    if (rand_below(&c->rand, 2)) {
        enum eng_result r = WAIT(c, eng_multi_get(t, KS_DATA, keys, 16, 0, rows, &c->call));
        for (int i = 0; i < 16; i++)
            check_row(c, s, ks[i], r != ENG_OK ? r : rows[i].value.p ? ENG_OK : ENG_NOT_FOUND, rows[i].value);
        return;
    }
    for (int i = 0; i < 16; i++) {
        struct eng_row row;
        enum eng_result r = WAIT(c, eng_get(t, KS_DATA, keys[i], 0, &row, &c->call));
        check_row(c, s, ks[i], r, row.value);
    }
}

/* The client's own rows in a page: each is what the model says, and none is left out. *next: the first key index still to come. */
static void check_page(struct client *c, const struct model_state *s, const struct eng_page *p, bool reverse, int *next)
{
    for (size_t i = 0; i < p->n; i++) {
        char text[16];
        struct slice key = p->rows[i].key;
        MUST(key.n < sizeof(text));
        memcpy(text, key.p, key.n);
        text[key.n] = 0;
        uint32_t k = (uint32_t)atoi(text), client = (uint32_t)atoi(text + 4);
        MUST(i == 0 || (slice_cmp(p->rows[i - 1].key, key) < 0) != reverse);
        if (client != c->id)
            continue;
        while (*next != (int)k) { /* those left out must be absent */
            MUST(*next >= 0 && *next < MODEL_KEYS && !s->values[*next]);
            *next += reverse ? -1 : 1;
        }
        check_row(c, s, k, ENG_OK, p->rows[i].value);
        *next += reverse ? -1 : 1;
    }
}

/* Scans a part of the common keyspace, perhaps over several steps, perhaps skipping ahead. */
static void check_scan(struct client *c, struct eng_txn *t, const struct model_state *s, bool may_leave)
{
    char from[16], to[16];
    uint32_t lo = (uint32_t)rand_below(&c->rand, MODEL_KEYS),
             hi = lo + (uint32_t)rand_below(&c->rand, MODEL_KEYS - lo + 1);
    bool whole = rand_below(&c->rand, 3) == 0, reverse = rand_below(&c->rand, 2);
    struct eng_range range = {
        .keyspace = KS_DATA, .reverse = reverse, .page_rows = 1 + (uint32_t)rand_below(&c->rand, 20)};
    if (whole) {
        lo = 0;
        hi = MODEL_KEYS;
    } else {
        range.from = key_of(0, lo, from);
        range.to = key_of(0, hi, to);
    }
    int next = reverse ? (int)hi - 1 : (int)lo;
    struct eng_page page;
    struct eng_scan *scan = eng_scan_open(t, &range);
    do {
        enum eng_result r = WAIT(c, eng_scan_next(scan, &page, &c->call));
        if (r != ENG_OK) {
            MUST(broken(c, r));
            eng_scan_close(scan);
            return;
        }
        check_page(c, s, &page, reverse, &next);
        uint64_t what = rand_below(&c->rand, 8);
        if (may_leave && what == 0) {
            eng_txn_hold(t);
            leave(c);
            enter(c);
        } else if (page.more && what == 1) {
            int skip = next + (reverse ? -1 : 1) * (int)rand_below(&c->rand, 5);
            if (skip >= (int)lo && skip < (int)hi) {
                char space[16];
                eng_scan_seek(scan, key_of(reverse ? 9 : 0, (uint32_t)skip, space));
                next = skip;
            }
        }
    } while (page.more);
    eng_scan_close(scan);
    for (int end = reverse ? (int)lo - 1 : (int)hi; next != end; next += reverse ? -1 : 1)
        MUST(next >= 0 && next < MODEL_KEYS && !s->values[next]);
}

static void check_now(struct client *c)
{
    enter(c);
    struct eng_txn *t = eng_begin(c->sim->e, ENG_TXN_READ_ONLY, 0);
    if (rand_below(&c->rand, 2))
        check_points(c, t, &c->model.now);
    else
        check_scan(c, t, &c->model.now, true);
    eng_end(t);
    leave(c);
}

/* Opens a snapshot, reads through one, or closes it. */
static void use_snapshot(struct client *c)
{
    struct held *h = &c->held[rand_below(&c->rand, SNAPSHOTS)];
    enter(c);
    if (!h->txn) {
        h->txn =
            eng_begin(c->sim->e, rand_below(&c->rand, 2) ? ENG_TXN_READ_ONLY : ENG_TXN_READ_ONLY | ENG_TXN_MULTI, 0);
        eng_txn_hold(h->txn);
        model_state_copy(&h->state, &c->model.now);
    } else if (rand_below(&c->rand, 5) == 0) {
        eng_end(h->txn);
        h->txn = NULL;
        model_state_clear(&h->state);
    } else if (rand_below(&c->rand, 2)) {
        check_points(c, h->txn, &h->state);
    } else {
        check_scan(c, h->txn, &h->state, true);
    }
    leave(c);
}

/* Reads as of one of the client's own commits: as it was then, or refused. */
static void look_back(struct client *c)
{
    struct model_state then = {0};
    uint64_t last = model_commits(&c->model), n = OV_MIN(last + 1 - c->model.first, (uint64_t)60);
    if (n == 0)
        return;
    uint64_t number = last - rand_below(&c->rand, n), ts = model_ts_of(&c->model, number);
    model_at(&c->model, number, &then);
    enter(c);
    struct eng_txn *t = eng_begin(c->sim->e, ENG_TXN_READ_ONLY, ts);
    struct eng_row row;
    char space[16];
    enum eng_result r = WAIT(c, eng_get(t, KS_DATA, key_of(c->id, 0, space), 0, &row, &c->call));
    if (r == ENG_SNAPSHOT_TOO_OLD) {
        c->too_old++;
    } else {
        check_row(c, &then, 0, r, row.value);
        check_scan(c, t, &then, true);
        check_points(c, t, &then);
        c->looked_back++;
    }
    eng_end(t);
    leave(c);
    model_state_clear(&then);
}

static void make_safe(struct client *c)
{
    uint64_t number = model_commits(&c->model);
    enum eng_result r;
    if (rand_below(&c->rand, 4)) {
        if ((r = WAIT(c, eng_handover(c->sim->e, &c->call))) == ENG_OK)
            c->safe_kill = number;
    } else {
        if ((r = WAIT(c, eng_sync(c->sim->e, &c->call))) == ENG_OK)
            c->safe_kill = c->safe_power = number;
    }
    MUST(r == ENG_OK || broken(c, r));
}

static void *client_main(void *arg)
{
    struct client *c = arg;
    for (uint32_t i = 0; i < c->sim->ops && !c->stopped && !atomic_load(&c->sim->stop); i++) {
        uint64_t what = rand_below(&c->rand, 100);
        if (what < 45) {
            write_some(c);
        } else if (what < 55) {
            increment(c);
        } else if (what < 60) {
            scratch(c);
        } else if (what < 75) {
            check_now(c);
        } else if (what < 87) {
            use_snapshot(c);
        } else if (what < 90) {
            look_back(c);
        } else if (what < 99) {
            make_safe(c);
        } else {
            enum eng_result r = eng_flush(c->sim->e);
            MUST(r == ENG_OK || broken(c, r));
        }
    }
    for (int i = 0; i < SNAPSHOTS; i++) {
        eng_end(c->held[i].txn);
        c->held[i].txn = NULL;
        model_state_clear(&c->held[i].state);
    }
    return NULL;
}

/* ---- phases ---- */

static void open_engine(struct sim *s, struct rand_gen *g)
{
    struct eng_options opt = {
        .dir = "",
        .files = file_fault_ops(s->disk),
        .memtable_bytes = 128u << (10 + rand_below(g, 3)),
        .replay_bytes = 2u << 20,
        .segment_bytes = 1u << 20,
        .cache_bytes = 256u << (10 + rand_below(g, 4)),
        .commit_interval_ms = 5,
        .compression = (enum eng_compression)rand_below(g, 4),
        .debug_pending = (int)rand_below(g, 3),
        .debug_seed = rand_next(g),
    };
    struct eng_error err;
    enum eng_result r = engine_open(&opt, &s->e, &err);
    if (r != ENG_OK) {
        fprintf(stderr, "SEED=%" PRIu64 " engine_open: %s %s\n", s->seed, eng_result_name(r), err.msg);
        abort();
    }
}

static uint64_t read_number(struct sim *s, struct client *c, struct slice key)
{
    struct eng_row row;
    struct eng_txn *t = eng_begin(s->e, ENG_TXN_READ_ONLY, 0);
    enum eng_result r = WAIT(c, eng_get(t, KS_SHARED, key, 0, &row, &c->call));
    MUST(r == ENG_OK || r == ENG_NOT_FOUND);
    uint64_t n = r == ENG_OK ? load_le64(row.value.p) : 0;
    eng_end(t);
    return n;
}

/* Compares what was found with what was promised, and takes it as the new truth. */
static void check_survivors(struct sim *s, bool clean, bool power)
{
    uint64_t number[CLIENTS_MAX], newest = 0;
    int64_t count = 0;
    for (uint32_t i = 0; i < s->n_clients; i++) {
        struct client *c = &s->clients[i];
        uint8_t key[4];
        store_be32(key, i);
        enter(c);
        number[i] = read_number(s, c, slice_of(key, 4));
        leave(c);
        MUST(number[i] <= model_commits(&c->model));
        MUST(number[i] >= (clean ? model_commits(&c->model) : power ? c->safe_power : c->safe_kill));
        newest = OV_MAX(newest, model_ts_of(&c->model, number[i]));
    }
    for (uint32_t i = 0; i < s->n_clients; i++) {
        struct client *c = &s->clients[i];
        MUST(model_ts_of(&c->model, number[i] + 1) > newest); /* a prefix: nothing older than a survivor is lost */
        model_rewind(&c->model, number[i]);
        c->safe_kill = c->safe_power = number[i];
        count += (int64_t)model_state_count(&c->model.now);
        enter(c);
        struct eng_txn *t = eng_begin(s->e, ENG_TXN_READ_ONLY, 0);
        for (int k = 0; k < 4; k++)
            check_scan(c, t, &c->model.now, false);
        check_points(c, t, &c->model.now);
        eng_end(t);
        leave(c);
        c->scratch = 0;
    }
    MUST(eng_count(s->e, KS_DATA) == count); /* R17 */
    struct client *c = &s->clients[0];
    uint64_t acknowledged = 0;
    for (uint32_t i = 0; i < s->n_clients; i++)
        acknowledged += s->clients[i].increments;
    enter(c);
    uint64_t counter = read_number(s, c, slice_str("counter"));
    leave(c);
    MUST(counter >= s->counter_low);
    MUST(!clean || counter == s->counter_low + acknowledged);
    s->counter_low = counter;
    for (uint32_t i = 0; i < s->n_clients; i++)
        s->clients[i].increments = 0;
}

static void phase(struct sim *s, struct rand_gen *g)
{
    uint64_t how = rand_below(g, 4);
    struct fault_plan none = {.seed = rand_next(g)}, plan = none;
    s->faults = how == 3;
    open_engine(s, g);
    atomic_store(&s->stop, false);
    if (s->faults) {
        plan.fail_at = 1 + rand_below(g, 400);
        plan.kinds = FAULT_WRITES | FAULT_PREAD;
        if (rand_below(g, 2)) {
            plan.fail_errno = 28; /* ENOSPC */
            plan.kinds = FAULT_ALLOCATE | FAULT_PWRITE;
            plan.fail_for = 1 + rand_below(g, 5);
        }
        file_fault_set_plan(s->disk, &plan);
    }
    for (uint32_t i = 0; i < s->n_clients; i++) {
        struct client *c = &s->clients[i];
        c->stopped = false;
        eng_call_init(&c->call, wake);
        atomic_store(&c->woken, 0);
        rand_seed(&c->rand, rand_next(g));
        MUST(pthread_create(&c->thread, NULL, client_main, c) == 0);
    }
    for (uint32_t i = 0; i < s->n_clients; i++)
        pthread_join(s->clients[i].thread, NULL);
    bool power = how == 2 || (how == 3 && rand_below(g, 2));
    if (how == 0)
        engine_close(s->e);
    else
        file_fault_power_off(s->disk); /* from here on nothing reaches the disk */
    if (how != 0)
        engine_close(s->e);
    file_fault_restart(s->disk, power, &none);
    open_engine(s, g);
    for (uint32_t i = 0; i < s->n_clients; i++)
        eng_call_init(&s->clients[i].call, wake);
    s->faults = false;
    check_survivors(s, how == 0, power);
    engine_close(s->e);
}

static void round_of(uint64_t seed, uint32_t ops)
{
    struct rand_gen g;
    struct sim s = {.seed = seed, .ops = ops};
    current_seed = seed;
    rand_seed(&g, seed);
    s.n_clients = 1 + (uint32_t)rand_below(&g, CLIENTS_MAX);
    s.disk = file_fault_new(&(struct fault_plan){.seed = seed});
    for (uint32_t i = 0; i < s.n_clients; i++) {
        s.clients[i].sim = &s;
        s.clients[i].id = i;
        model_init(&s.clients[i].model);
    }
    for (uint64_t n = 2 + rand_below(&g, 5); n > 0; n--)
        phase(&s, &g);
    if (getenv("VERBOSE"))
        for (uint32_t i = 0; i < s.n_clients; i++)
            printf("client %u: %" PRIu64 " reads in the past, %" PRIu64 " refused\n", i, s.clients[i].looked_back,
                   s.clients[i].too_old);
    for (uint32_t i = 0; i < s.n_clients; i++)
        model_deinit(&s.clients[i].model);
    file_fault_free(s.disk);
}

int main(void)
{
    const char *seed = getenv("SEED"), *rounds = getenv("ROUNDS"), *ops = getenv("OPS");
    uint32_t n_ops = ops && *ops ? (uint32_t)atoi(ops) : 1500;
    uint64_t first = seed && *seed ? strtoull(seed, NULL, 10) : (uint64_t)clock_wall_ms(),
             n = seed && *seed       ? 1
                 : rounds && *rounds ? strtoull(rounds, NULL, 10)
                                     : 5;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (uint64_t i = 0; i < n; i++)
        round_of(first + i, n_ops); /* a failure aborts, with its seed */
    printf("suite sim/engine: %" PRIu64 " passed, 0 failed\n", n);
    return 0;
}
