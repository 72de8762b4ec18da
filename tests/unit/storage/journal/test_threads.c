/* The journal with its threads: group commit, sync by interval, preparing ahead, cancelling. Run under the thread
 * sanitizer, too. */
#include <pthread.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "tests/unit/storage/journal/journal_test.h"

struct shared {
    struct journal *j;
    struct mutex commit; /* the engine's commit lock */
    _Atomic int acknowledged;
};

struct caller {
    struct eng_call c; /* first */
    pthread_mutex_t m;
    pthread_cond_t cond;
    bool woken;
};

static void wake(struct eng_call *c)
{
    struct caller *w = (struct caller *)c;
    pthread_mutex_lock(&w->m);
    w->woken = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->m);
}

static void wait_woken(struct caller *w)
{
    pthread_mutex_lock(&w->m);
    while (!w->woken)
        pthread_cond_wait(&w->cond, &w->m);
    w->woken = false;
    pthread_mutex_unlock(&w->m);
}

static void caller_init(struct caller *w)
{
    eng_call_init(&w->c, wake);
    pthread_mutex_init(&w->m, NULL);
    pthread_cond_init(&w->cond, NULL);
    w->woken = false;
}

static void commit(struct shared *s, struct caller *w, size_t n, lsn_t *end)
{
    uint8_t *p = calloc(1, n);
    bool done = false;

    while (!done) {
        enum eng_result r = journal_reserve(s->j, n, &w->c);
        if (r == ENG_PENDING) {
            wait_woken(w);
            continue;
        }
        ck_assert_int_eq(r, ENG_OK);
        mutex_lock(&s->commit);
        if ((done = journal_fits(s->j, n)))
            journal_append(s->j, slice_of(p, n), crc32c(0, p, n), 1, 1, end);
        mutex_unlock(&s->commit);
    }
    free(p);
}

static void *committer(void *arg)
{
    struct shared *s = arg;
    struct caller w;
    lsn_t end = 0;

    caller_init(&w);
    for (int i = 0; i < 300; i++) {
        commit(s, &w, (size_t)(i * 97 % 4000), &end);
        if (i % 3 == 0) {
            while (journal_sync(s->j, end, &w.c) == ENG_PENDING)
                wait_woken(&w);
            ck_assert(journal_synced(s->j) >= end);
        } else {
            while (journal_write(s->j, end, &w.c) == ENG_PENDING)
                wait_woken(&w);
            ck_assert(journal_written(s->j) >= end);
        }
        atomic_fetch_add(&s->acknowledged, 1);
    }
    return NULL;
}

static struct journal *open_threaded(const struct file_ops *files, uint32_t interval_ms, struct rig *r)
{
    struct journal_options o = {
        .files = files, .segment_bytes = 256 * 1024, .first_bytes = 16 * 1024, .commit_interval_ms = interval_ms};
    struct journal *j;
    uint64_t ts;
    ck_assert_int_eq(journal_open(&o, rig_see, r, &j, &ts, &r->err), ENG_OK);
    return j;
}

START_TEST(many_threads_commit_write_and_sync)
{
    struct rig r;
    struct shared s = {0};
    struct eng_stats st = {0};
    pthread_t t[4];
    rig_init(&r);
    mutex_init(&s.commit, RANK_COMMIT);
    s.j = open_threaded(file_fault_ops(r.disk), 5, &r);
    for (size_t i = 0; i < OV_LEN(t); i++)
        pthread_create(&t[i], NULL, committer, &s);
    for (size_t i = 0; i < OV_LEN(t); i++)
        pthread_join(t[i], NULL);
    journal_release(s.j, journal_synced(s.j) - 300000);
    journal_stats(s.j, &st);
    ck_assert_int_gt(st.journal_syncs, 0);
    journal_close(s.j);
    ck_assert_int_eq(atomic_load(&s.acknowledged), 1200);
    r.segment_bytes = 256 * 1024;
    mutex_destroy(&s.commit);
    rig_free(&r);
}
END_TEST

START_TEST(one_sync_serves_all_who_wait)
{
    struct rig r;
    struct shared s = {0};
    struct eng_stats before = {0}, after = {0};
    struct caller w[20];
    lsn_t end[20];
    rig_init(&r);
    mutex_init(&s.commit, RANK_COMMIT);
    s.j = open_threaded(file_fault_ops(r.disk), 60000, &r);
    journal_stats(s.j, &before);
    for (int i = 0; i < 20; i++) {
        caller_init(&w[i]);
        commit(&s, &w[i], 100, &end[i]);
    }
    for (int i = 0; i < 20; i++)
        if (journal_sync(s.j, end[i], &w[i].c) == ENG_PENDING)
            wait_woken(&w[i]);
    journal_stats(s.j, &after);
    ck_assert_int_ge(journal_synced(s.j), end[19]);
    ck_assert_int_le(after.journal_syncs - before.journal_syncs, 3);
    journal_close(s.j);
    rig_free(&r);
}
END_TEST

START_TEST(what_nobody_waits_for_is_synced_by_the_interval)
{
    struct rig r;
    struct shared s = {0};
    struct caller w;
    lsn_t end;
    int64_t until = clock_mono_us() + 10000000;
    rig_init(&r);
    mutex_init(&s.commit, RANK_COMMIT);
    s.j = open_threaded(file_fault_ops(r.disk), 20, &r);
    caller_init(&w);
    usleep(100000); /* the thread goes to sleep for good */
    commit(&s, &w, 100, &end);
    while (journal_synced(s.j) < end && clock_mono_us() < until)
        usleep(1000);
    ck_assert_int_ge(journal_synced(s.j), end);
    while (journal_written(s.j) < end + RECORD_HEAD && clock_mono_us() < until)
        usleep(1000);
    ck_assert_int_ge(journal_written(s.j), end + RECORD_HEAD); /* R3: the MARK */
    journal_close(s.j);
    rig_free(&r);
}
END_TEST

START_TEST(cancelled_while_the_disk_works)
{
    struct rig r;
    struct shared s = {0};
    struct caller w;
    lsn_t end;
    rig_init(&r);
    mutex_init(&s.commit, RANK_COMMIT);
    s.j = open_threaded(file_fault_ops(r.disk), 1, &r);
    for (int i = 0; i < 500; i++) {
        caller_init(&w);
        commit(&s, &w, 10, &end);
        if (journal_sync(s.j, end, &w.c) == ENG_PENDING)
            journal_cancel(s.j, &w.c);
        memset(&w, 0xee, sizeof(w)); /* nobody touches it from here on */
    }
    journal_close(s.j);
    rig_free(&r);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, many_threads_commit_write_and_sync);
    tcase_add_test(tc, one_sync_serves_all_who_wait);
    tcase_add_test(tc, what_nobody_waits_for_is_synced_by_the_interval);
    tcase_add_test(tc, cancelled_while_the_disk_works);
}
TEST_MAIN("storage/journal/threads", add_tests)
