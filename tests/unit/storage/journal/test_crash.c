/* The journal's crash matrix: one workload (appends of all sizes, writes, syncs, releases, full disks) over every
 * single call to the disk, with a power cut, EIO, ENOSPC or a failed sync there, several seeds each; then a second life
 * with a power cut of its own. What must hold each time: replay hands out a prefix of what was appended, whole and
 * unchanged, no shorter than what was promised: all that was synced after a power cut, all that was written after the
 * death of the process, all that an earlier replay had found. */
#include <errno.h>
#include <stdlib.h>

#include "server/base/rand.h"
#include "tests/unit/storage/journal/journal_test.h"

enum { MODEL_MAX = 600 };

struct model { /* what was appended, by index; the survivors of each life stay, the others are forgotten */
    struct {
        uint32_t id, len;
        lsn_t end;
    } v[MODEL_MAX];
    size_t n, first;         /* replay starts behind v[first - 1] */
    size_t written, durable; /* so many are with the kernel, on the disk */
    uint64_t max_ts;
    uint32_t next_id;
};

struct life {
    struct file_fault *disk;
    struct model *m;
    struct journal *j;
    lsn_t from, known_synced;
    size_t seen;
    const char *what;
    uint64_t n, seed;
};

/* Not ck_assert: libcheck notes each one in a file, and there are millions. */
#define CHECK(l, x)                                                                                   \
    do {                                                                                              \
        if (!(x))                                                                                     \
            ck_abort_msg("%s: %s at call %llu, seed %llu", #x, (l)->what, (unsigned long long)(l)->n, \
                         (unsigned long long)(l)->seed);                                              \
    } while (0)

static enum eng_result check_record(void *arg, const struct journal_record *r, struct eng_error *err)
{
    struct life *l = arg;
    size_t k = l->m->first + l->seen++;

    CHECK(l, k < l->m->n);
    CHECK(l, r->payload.n == l->m->v[k].len);
    CHECK(l, r->end == l->m->v[k].end);
    CHECK(l, load_le32(r->payload.p) == l->m->v[k].id);
    for (size_t i = 4; i < r->payload.n; i++)
        CHECK(l, r->payload.p[i] == (uint8_t)(l->m->v[k].id * 7 + i));
    return ENG_OK;
}

static enum eng_result life_open(struct life *l, const struct file_ops *files, uint64_t *last_ts, struct eng_error *err)
{
    struct journal_options o = {.files = files,
                                .segment_bytes = 32 * 1024,
                                .first_bytes = 16 * 1024,
                                .commit_interval_ms = 100,
                                .manual = true,
                                .replay_from = l->from,
                                .known_synced = l->known_synced};
    l->seen = 0;
    return journal_open(&o, check_record, l, &l->j, last_ts, err);
}

static int wakes;
static void no_wake(struct eng_call *c)
{
    wakes++;
}

/* False when there is no room or the journal has failed. */
static bool make_room(struct life *l, size_t n)
{
    struct eng_call c;
    eng_call_init(&c, no_wake);
    for (;;) {
        enum eng_result r = journal_reserve(l->j, n, &c);
        if (r != ENG_PENDING)
            return r == ENG_OK;
        mutex_lock(&l->j->lock);
        for (int before = wakes; wakes == before;) /* not asked again before it is woken */
            CHECK(l, prepare_step(l->j));
        mutex_unlock(&l->j->lock);
    }
}

static void append(struct life *l, size_t n)
{
    struct model *m = l->m;
    uint8_t *p = malloc(n);
    uint32_t id = ++m->next_id;

    store_le32(p, id);
    for (size_t i = 4; i < n; i++)
        p[i] = (uint8_t)(id * 7 + i);
    if (make_room(l, n)) {
        CHECK(l, m->n < MODEL_MAX);
        m->v[m->n].id = id;
        m->v[m->n].len = (uint32_t)n;
        m->max_ts = id;
        journal_append(l->j, slice_of(p, n), crc32c(0, p, n), id, 1, &m->v[m->n].end);
        m->n++;
    }
    free(p);
}

static void promise(struct life *l)
{
    struct model *m = l->m;
    while (m->written < m->n && m->v[m->written].end <= journal_written(l->j))
        m->written++;
    while (m->durable < m->n && m->v[m->durable].end <= journal_synced(l->j))
        m->durable++;
}

static void workload(struct life *l, struct rand_gen *g, int steps)
{
    struct model *m = l->m;
    struct eng_call c;

    eng_call_init(&c, no_wake);
    for (int i = 0; i < steps && !atomic_load(&l->j->failed); i++) {
        switch (rand_below(g, 16)) {
        default:
            append(l, 4 + rand_below(g, 700));
            break;
        case 8:
        case 9:
            append(l, 4 + rand_below(g, 9000));
            break;
        case 10:
            append(l, 4 + rand_below(g, 60000));
            break;
        case 11:
        case 12:
            (void)!journal_write(l->j, journal_tail(l->j), &c);
            break;
        case 13:
            (void)!journal_sync_blocking(l->j, journal_tail(l->j));
            break;
        case 14:
            (void)journal_background_step(l->j);
            break;
        case 15: /* a flush: the manifest (safe elsewhere) notes where to start, old segments go */
            if (m->n > m->first + 20 && journal_sync_blocking(l->j, journal_tail(l->j)) == ENG_OK) {
                promise(l);
                m->first = m->n - 10;
                l->from = m->v[m->first - 1].end;
                l->known_synced = journal_synced(l->j);
                journal_release(l->j, l->from);
            }
            break;
        }
        promise(l);
    }
}

/* Opens on a disk that works, and judges. */
static void judge(struct life *l, const struct file_ops *files, bool power)
{
    struct model *m = l->m;
    struct eng_error err;
    uint64_t last_ts;
    enum eng_result res = life_open(l, files, &last_ts, &err);

    if (res != ENG_OK)
        ck_abort_msg("%s: %s at call %llu, seed %llu", err.msg, l->what, (unsigned long long)l->n,
                     (unsigned long long)l->seed);
    CHECK(l, m->first + l->seen >= (power ? m->durable : m->written));
    if (m->first + l->seen > m->first)
        CHECK(l, last_ts >= m->v[m->first + l->seen - 1].id);
    m->n = m->written = m->durable = m->first + l->seen; /* R5: what a replay hands out is durable */
}

/* One life with the plan, then a second one with a power cut at a random call, then a last look. Returns whether the
 * plan's call came. */
static bool visit(const char *what, const struct fault_plan *plan, uint64_t n, uint64_t seed, bool power)
{
    struct model *m = calloc(1, sizeof(*m));
    struct life l = {.disk = file_fault_new(plan), .m = m, .what = what, .n = n, .seed = seed};
    struct fault_plan second = {.seed = seed * 3 + 1};
    struct eng_error err;
    struct rand_gen g;
    uint64_t last_ts;
    bool fired;

    rand_seed(&g, seed);
    if (life_open(&l, file_fault_ops(l.disk), &last_ts, &err) == ENG_OK)
        workload(&l, &g, 60);
    fired = file_fault_fired(l.disk);
    if (power)
        file_fault_power_off(l.disk);
    journal_close(l.j);
    file_fault_restart(l.disk, power, &second);

    judge(&l, file_fault_ops(l.disk), power);
    second.crash_at = file_fault_calls(l.disk) + 1 + rand_below(&g, 40);
    journal_close(l.j);
    file_fault_restart(l.disk, false, &second);
    if (life_open(&l, file_fault_ops(l.disk), &last_ts, &err) == ENG_OK) {
        CHECK(&l, m->first + l.seen == m->n);
        workload(&l, &g, 40);
    }
    file_fault_power_off(l.disk);
    journal_close(l.j);
    judge(&l, file_fault_survivor(l.disk), true);
    journal_close(l.j);
    file_fault_free(l.disk);
    free(m);
    return fired;
}

/* CRASH_SEED=n takes other seeds; CRASH_SEEDS=n how many (the crash suite takes more than the unit tests do). */
static void matrix(const char *what, struct fault_plan plan, bool power, uint64_t seeds)
{
    uint64_t from = getenv("CRASH_SEED") ? strtoull(getenv("CRASH_SEED"), NULL, 0) : 1;
    if (getenv("CRASH_SEEDS"))
        seeds = strtoull(getenv("CRASH_SEEDS"), NULL, 0);
    uint64_t calls = 0;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        bool fired = true;
        for (uint64_t n = 1; fired; n++) {
            plan.seed = seed * 1000003 + n;
            if (plan.crash_at)
                plan.crash_at = n;
            else
                plan.fail_at = n;
            fired = visit(what, &plan, n, seed, power);
            calls += fired;
        }
    }
    ck_assert_msg(calls > 5 * seeds, "%s: only %llu calls were visited", what, (unsigned long long)calls);
}

START_TEST(power_cut_at_every_call)
{
    matrix("power cut", (struct fault_plan){.crash_at = 1}, true, 8);
}
END_TEST

START_TEST(eio_at_every_call_then_the_process_dies)
{
    matrix("EIO", (struct fault_plan){.fail_at = 1}, false, 3);
}
END_TEST

START_TEST(eio_at_every_call_then_power_goes)
{
    matrix("EIO and power cut", (struct fault_plan){.fail_at = 1}, true, 3);
}
END_TEST

START_TEST(full_disk_at_every_place_that_takes_room)
{
    matrix("ENOSPC", (struct fault_plan){.fail_at = 1, .fail_errno = ENOSPC, .kinds = FAULT_ALLOCATE | FAULT_OPEN},
           true, 6);
    matrix("ENOSPC for long",
           (struct fault_plan){.fail_at = 1, .fail_for = 5, .fail_errno = ENOSPC, .kinds = FAULT_WRITES}, false, 3);
}
END_TEST

START_TEST(failed_sync_everywhere)
{
    matrix("failed sync", (struct fault_plan){.fail_at = 1, .kinds = FAULT_DATASYNC}, false, 10);
    matrix("failed sync and power cut", (struct fault_plan){.fail_at = 1, .kinds = FAULT_DATASYNC}, true, 10);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, power_cut_at_every_call);
    tcase_add_test(tc, eio_at_every_call_then_the_process_dies);
    tcase_add_test(tc, eio_at_every_call_then_power_goes);
    tcase_add_test(tc, full_disk_at_every_place_that_takes_room);
    tcase_add_test(tc, failed_sync_everywhere);
}
TEST_MAIN("storage/journal/crash", add_tests)
