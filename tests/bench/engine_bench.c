/* What an operation of the engine costs: microseconds of this thread's CPU and of wall time, on real files in a temporary folder.
 *     engine_bench [rows] [value bytes] [folder]         default: 50000 rows of 1024 bytes, in /tmp
 * Rows are loaded in order and at random, read one by one and many at once, updated, scanned; once out of the memtable, once out of cached
 * blocks after a flush; then reads and updates again from two threads. Every 32 commits are handed over together, as a loop's turn does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/rand.h"
#include "storage/engine.h"

enum { ORDERED = 1, RANDOM = 2, TURN = 32, MANY = 64 };

struct worker {
    struct eng_call call;
    pthread_mutex_t m;
    pthread_cond_t cond;
    bool woken;
    struct rand_gen rand;
    size_t rows, n;
    void (*work)(struct worker *w);
    double wall, cpu;
};

static struct engine *e;
static uint8_t *value;
static size_t value_bytes, all_rows;

static void wake(struct eng_call *c)
{
    struct worker *w = OV_CONTAINER(c, struct worker, call);
    pthread_mutex_lock(&w->m);
    w->woken = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->m);
}

static void sleep_until_woken(struct worker *w)
{
    pthread_mutex_lock(&w->m);
    while (!w->woken)
        pthread_cond_wait(&w->cond, &w->m);
    w->woken = false;
    pthread_mutex_unlock(&w->m);
}

#define MUST(w, x)                        \
    do {                                  \
        enum eng_result r_;               \
        while ((r_ = (x)) == ENG_PENDING) \
            sleep_until_woken(w);         \
        OV_ASSERT(r_ == ENG_OK);          \
    } while (0)

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- operations ---- */

static uint64_t scatter(uint64_t i)
{
    i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9u;
    i = (i ^ i >> 27) * 0x94D049BB133111EBu;
    return i ^ i >> 31;
}

static void end_turn(struct worker *w, size_t i)
{
    if (i % TURN == TURN - 1)
        MUST(w, eng_handover(e, &w->call));
}

static void insert(struct worker *w, uint64_t keyspace, uint64_t id)
{
    uint8_t key[8];
    store_be64(key, id);
    eng_step_enter(e);
    struct eng_txn *t = eng_begin(e, 0, 0);
    eng_put(t, keyspace, slice_of(key, 8), slice_of(value, value_bytes), ENG_INSERT);
    MUST(w, eng_commit(t, ENG_DUR_LOCAL, NULL, &w->call));
    eng_end(t);
    eng_step_leave(e);
}

static void load_ordered(struct worker *w)
{
    for (size_t i = 0; i < w->n; i++) {
        insert(w, ORDERED, i);
        end_turn(w, i);
    }
}

static void load_random(struct worker *w)
{
    for (size_t i = 0; i < w->n; i++) {
        insert(w, RANDOM, scatter(i));
        end_turn(w, i);
    }
}

static void point_reads(struct worker *w)
{
    for (size_t i = 0; i < w->n; i++) {
        uint8_t key[8];
        struct eng_row row;
        store_be64(key, rand_below(&w->rand, all_rows));
        eng_step_enter(e);
        struct eng_txn *t = eng_begin(e, ENG_TXN_READ_ONLY, 0);
        MUST(w, eng_get(t, ORDERED, slice_of(key, 8), 0, &row, &w->call));
        eng_end(t);
        eng_step_leave(e);
    }
}

static void many_at_once(struct worker *w)
{
    uint8_t keys[MANY][8];
    struct slice slices[MANY];
    struct eng_row rows[MANY];
    for (size_t i = 0; i < w->n; i += MANY) {
        uint64_t from = rand_below(&w->rand, all_rows - MANY * 5);
        for (size_t k = 0; k < MANY; k++) {
            store_be64(keys[k], from + k * 5);
            slices[k] = slice_of(keys[k], 8);
        }
        eng_step_enter(e);
        struct eng_txn *t = eng_begin(e, ENG_TXN_READ_ONLY, 0);
        MUST(w, eng_multi_get(t, ORDERED, slices, MANY, 0, rows, &w->call));
        eng_end(t);
        eng_step_leave(e);
    }
}

static void updates(struct worker *w)
{
    for (size_t i = 0; i < w->n; i++) {
        uint8_t key[8];
        struct eng_row row;
        store_be64(key, rand_below(&w->rand, all_rows));
        struct slice k = slice_of(key, 8);
        eng_step_enter(e);
        struct eng_txn *t = eng_begin(e, 0, 0);
        MUST(w, eng_lock(t, ORDERED, k, &w->call));
        MUST(w, eng_get(t, ORDERED, k, ENG_GET_NEWEST, &row, &w->call));
        eng_put(t, ORDERED, k, slice_of(value, value_bytes), ENG_UPDATE);
        MUST(w, eng_commit(t, ENG_DUR_LOCAL, NULL, &w->call));
        eng_end(t);
        eng_step_leave(e);
        end_turn(w, i);
    }
}

static void locks(struct worker *w)
{
    for (size_t i = 0; i < w->n; i++) {
        uint8_t key[8];
        store_be64(key, i);
        eng_step_enter(e);
        struct eng_txn *t = eng_begin(e, 0, 0);
        MUST(w, eng_lock(t, ORDERED, slice_of(key, 8), &w->call));
        eng_end(t);
        eng_step_leave(e);
    }
}

static void scan(struct worker *w, uint64_t keyspace, bool reverse)
{
    struct eng_page page;
    size_t n = 0, sum = 0;
    do {
        struct eng_range range = {.keyspace = keyspace, .reverse = reverse};
        eng_step_enter(e);
        struct eng_txn *t = eng_begin(e, ENG_TXN_READ_ONLY, 0);
        struct eng_scan *s = eng_scan_open(t, &range);
        do {
            MUST(w, eng_scan_next(s, &page, &w->call));
            for (size_t i = 0; i < page.n; i++)
                sum += page.rows[i].value.p[0];
            n += page.n;
        } while (page.more && n < w->n);
        eng_scan_close(s);
        eng_end(t);
        eng_step_leave(e);
    } while (n < w->n);
    OV_ASSERT(sum > 0);
}

static void scan_ordered(struct worker *w)
{
    scan(w, ORDERED, false);
}
static void scan_random(struct worker *w)
{
    scan(w, RANDOM, false);
}
static void scan_backwards(struct worker *w)
{
    scan(w, ORDERED, true);
}

/* ---- running them ---- */

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    w->work(w);
    w->wall = now(CLOCK_MONOTONIC) - wall;
    w->cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    return NULL;
}

static void bench(const char *name, void (*work)(struct worker *w), size_t n, int threads)
{
    static struct worker w[8];
    pthread_t t[8];
    double cpu = 0, wall = 0;
    for (int i = 0; i < threads; i++) {
        w[i] = (struct worker){.work = work, .n = n / (size_t)threads};
        eng_call_init(&w[i].call, wake);
        pthread_mutex_init(&w[i].m, NULL);
        pthread_cond_init(&w[i].cond, NULL);
        rand_seed(&w[i].rand, (uint64_t)i + 1);
        OV_ASSERT(pthread_create(&t[i], NULL, worker_main, &w[i]) == 0);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
        cpu += w[i].cpu;
        wall = OV_MAX(wall, w[i].wall);
    }
    printf("%-44s %7.3f us CPU   %7.3f us wall\n", name, cpu / (double)n, wall / (double)n);
    fflush(stdout);
}

static void read_and_scan(const char *where, size_t n)
{
    char name[80];
    snprintf(name, sizeof(name), "get, %s", where);
    bench(name, point_reads, n, 1);
    snprintf(name, sizeof(name), "multi_get of %d, a key, %s", MANY, where);
    bench(name, many_at_once, n, 1);
    snprintf(name, sizeof(name), "scan of rows loaded in order, %s", where);
    bench(name, scan_ordered, n * 4, 1);
    snprintf(name, sizeof(name), "the same backwards, %s", where);
    bench(name, scan_backwards, n * 4, 1);
    snprintf(name, sizeof(name), "scan of rows loaded at random, %s", where);
    bench(name, scan_random, n * 4, 1);
}

int main(int argc, char **argv)
{
    size_t n = all_rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 50000;
    value_bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 1024;
    char dir[256], command[300];
    snprintf(dir, sizeof(dir), "%s/engine_bench.XXXXXX", argc > 3 ? argv[3] : "/tmp");
    OV_ASSERT(n > MANY * 5 && value_bytes > 0 && mkdtemp(dir));
    value = ov_malloc(value_bytes);
    memset(value, 'v', value_bytes);
    struct eng_options opt = {.dir = dir,
                              .memtable_bytes = OV_MAX((uint64_t)64 << 20, 3 * (uint64_t)n * (value_bytes + 200)),
                              .replay_bytes = UINT64_MAX / 2,
                              .compression = ENG_COMPRESS_LZ4};
    struct eng_error err;
    if (engine_open(&opt, &e, &err) != ENG_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    bench("insert in order, commit", load_ordered, n, 1);
    bench("insert at random, commit", load_random, n, 1);
    bench("step, begin, lock, unlock, end", locks, n, 1);
    read_and_scan("memtable", n);
    bench("lock, get, put, commit", updates, n, 1);
    bench("lock, get, put, commit, two threads", updates, n, 2);
    bench("get, two threads", point_reads, n, 2);
    OV_ASSERT(eng_flush(e) == ENG_OK);
    bench("(first scan after the flush: cold cache)", scan_ordered, n, 1);
    bench("(the other keyspace)", scan_random, n, 1);
    read_and_scan("cached blocks", n);
    bench("lock, get, put, commit over blocks", updates, n, 1);
    struct eng_stats st;
    eng_stats(e, &st);
    printf("cache: %.1f MB, %lu hits, %lu misses; runs: %lu, %.1f MB; stalls %.1f ms\n", (double)st.cache_bytes / 1e6,
           (unsigned long)st.cache_hits, (unsigned long)st.cache_misses, (unsigned long)st.runs,
           (double)st.run_disk_bytes / 1e6, (double)st.stalls_us / 1e3);
    engine_close(e);
    free(value);
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    return system(command) == 0 ? 0 : 1;
}
