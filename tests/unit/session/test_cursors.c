/* Cursors between getMores: taken, given back, killed, timed out, of collections that go away. */
#include "server/session/cursors.h"

#include <stdlib.h>

#include "server/base/clock.h"
#include "tests/lib/json.h"
#include "tests/lib/reads.h"
#include "tests/lib/test.h"

struct table {
    struct fix f;
    struct cursors *cs;
};

static void table_new(struct table *t, int debug_pending)
{
    fix_new(&t->f, debug_pending);
    t->cs = cursors_new(t->f.db.e, NULL);
    atomic_store(&t->f.coll.refs, 1000); /* lives on the test's stack */
}

static void table_free(struct table *t)
{
    cursors_free(t->cs);
    fix_free(&t->f);
}

/* A cursor over all records. */
static struct cursor *made(struct table *t)
{
    struct cursor *c = cursor_new(t->cs);
    struct plan *plan = arena_zalloc(c->arena, sizeof(*plan));
    plan->kind = PLAN_COLLSCAN;
    c->plan = plan;
    c->ns = "t.c";
    c->coll = collection_ref(&t->f.coll);
    c->txn = eng_begin(t->f.db.e, ENG_TXN_READ_ONLY, 0);
    c->pipe = pipeline_new(c->arena, exec_open(c->arena, plan, c->coll, c->txn, 0, 0), NULL, NULL);
    return c;
}

/* Reads `n` documents on; the _id of the last one, -1 at the end. */
static int read_on(struct table *t, struct cursor *c, int n)
{
    struct pull pull = {NULL, &t->f.db.c, &t->f.err};
    const uint8_t *doc;
    int last = -1;
    while (n > 0) {
        enum exec_status s = pipeline_next(c->pipe, &pull, &doc);
        if (s == EXEC_EOF)
            return -1;
        if (s == EXEC_WAIT) {
            fix_wait(&t->f);
            continue;
        }
        ck_assert_int_eq(s, EXEC_ROW);
        last = bval_i32(bdoc_get(doc, "_id"));
        n--;
    }
    return last;
}

static int64_t open_cursors(struct table *t)
{
    struct cursors_stats st;
    cursors_stats(t->cs, &st);
    return st.open;
}

START_TEST(a_cursor_goes_on_where_it_was)
{
    struct table t;
    struct cursor *c;
    table_new(&t, _i);
    eng_step_enter(t.f.db.e);
    c = made(&t);
    ck_assert_int_eq(read_on(&t, c, 10), 9);
    int64_t id = cursors_add(t.cs, c);
    ck_assert_int_gt(id, 0);
    for (int at = 9; at + 100 < DOCS; at += 100) {
        fix_next_step(&t.f);
        ck_assert_int_eq(cursors_take(t.cs, id, &c), CURSOR_OK);
        ck_assert_int_eq(read_on(&t, c, 100), at + 100);
        cursors_give_back(t.cs, c);
    }
    ck_assert_int_eq(cursors_take(t.cs, id, &c), CURSOR_OK);
    ck_assert_int_eq(read_on(&t, c, 100), -1);
    ck_assert(pipeline_at_end(c->pipe));
    cursors_discard(t.cs, c);
    ck_assert_int_eq(cursors_take(t.cs, id, &c), CURSOR_NOT_FOUND);
    ck_assert_int_eq(open_cursors(&t), 0);
    ck_assert_int_eq(atomic_load(&t.f.coll.refs), 1000);
    eng_step_leave(t.f.db.e);
    table_free(&t);
}
END_TEST

START_TEST(a_document_taken_back_comes_again)
{
    struct table t;
    struct cursor *c;
    const uint8_t *doc;
    table_new(&t, 0);
    struct pull pull = {NULL, &t.f.db.c, &t.f.err};
    eng_step_enter(t.f.db.e);
    c = made(&t);
    ck_assert_int_eq(read_on(&t, c, 5), 4);
    ck_assert_int_eq(pipeline_next(c->pipe, &pull, &doc), EXEC_ROW);
    pipeline_unget(c->pipe, doc);
    int64_t id = cursors_add(t.cs, c);
    fix_next_step(&t.f);
    ck_assert_int_eq(cursors_take(t.cs, id, &c), CURSOR_OK);
    ck_assert_int_eq(pipeline_next(c->pipe, &pull, &doc), EXEC_ROW);
    ck_assert_int_eq(bval_i32(bdoc_get(doc, "_id")), 5);
    pipeline_unget(c->pipe, doc); /* once more */
    cursors_give_back(t.cs, c);
    ck_assert_int_eq(cursors_take(t.cs, id, &c), CURSOR_OK);
    ck_assert_int_eq(read_on(&t, c, 2), 6);
    cursors_discard(t.cs, c);
    eng_step_leave(t.f.db.e);
    table_free(&t);
}
END_TEST

START_TEST(one_at_a_time_has_a_cursor)
{
    struct table t;
    struct cursor *c, *other;
    table_new(&t, 0);
    eng_step_enter(t.f.db.e);
    int64_t id = cursors_add(t.cs, made(&t));
    ck_assert_int_eq(cursors_take(t.cs, id, &c), CURSOR_OK);
    ck_assert_int_eq(cursors_take(t.cs, id, &other), CURSOR_BUSY);
    ck_assert_ptr_null(other);
    cursors_give_back(t.cs, c);
    ck_assert_int_eq(cursors_take(t.cs, id, &other), CURSOR_OK);
    ck_assert_ptr_eq(c, other);
    cursors_give_back(t.cs, c);
    ck_assert_int_eq(cursors_take(t.cs, id + 1, &other), CURSOR_NOT_FOUND);
    eng_step_leave(t.f.db.e);
    table_free(&t); /* closes it */
}
END_TEST

START_TEST(killing_frees_idle_cursors_at_once_and_taken_ones_later)
{
    struct table t;
    struct cursor *c;
    table_new(&t, 0);
    eng_step_enter(t.f.db.e);
    int64_t idle = cursors_add(t.cs, made(&t)), taken = cursors_add(t.cs, made(&t)),
            ended = cursors_add(t.cs, made(&t));
    ck_assert(cursors_kill(t.cs, idle));
    ck_assert(!cursors_kill(t.cs, idle));
    ck_assert_int_eq(cursors_take(t.cs, idle, &c), CURSOR_NOT_FOUND);
    ck_assert_int_eq(atomic_load(&t.f.coll.refs), 1002);

    ck_assert_int_eq(cursors_take(t.cs, taken, &c), CURSOR_OK);
    ck_assert(!cursor_killed(c));
    ck_assert(cursors_kill(t.cs, taken));
    ck_assert(!cursors_kill(t.cs, taken));
    ck_assert(cursor_killed(c));
    cursors_give_back(t.cs, c);
    ck_assert_int_eq(atomic_load(&t.f.coll.refs), 1001);

    ck_assert_int_eq(cursors_take(t.cs, ended, &c), CURSOR_OK);
    ck_assert(cursors_kill(t.cs, ended));
    cursors_discard(t.cs, c);
    ck_assert_int_eq(atomic_load(&t.f.coll.refs), 1000);
    ck_assert_int_eq(open_cursors(&t), 0);
    eng_step_leave(t.f.db.e);
    table_free(&t);
}
END_TEST

START_TEST(idle_cursors_time_out)
{
    struct table t;
    struct cursor *c, *lasting, *busy;
    struct cursors_stats st;
    table_new(&t, 0);
    eng_step_enter(t.f.db.e);
    lasting = made(&t);
    lasting->no_timeout = true;
    int64_t ids[3] = {cursors_add(t.cs, made(&t)), cursors_add(t.cs, lasting), cursors_add(t.cs, made(&t))};
    ck_assert_int_eq(cursors_take(t.cs, ids[2], &busy), CURSOR_OK);
    eng_step_leave(t.f.db.e);
    int64_t now = clock_mono_us();
    cursors_tick(t.cs, now + CURSOR_IDLE_US / 2);
    ck_assert_int_eq(open_cursors(&t), 3);
    cursors_tick(t.cs, now + CURSOR_IDLE_US + 1000000);
    cursors_stats(t.cs, &st);
    ck_assert_int_eq(st.open, 2);
    ck_assert_int_eq(st.no_timeout, 1);
    ck_assert_int_eq(st.timed_out, 1);
    eng_step_enter(t.f.db.e);
    ck_assert_int_eq(cursors_take(t.cs, ids[0], &c), CURSOR_NOT_FOUND);
    ck_assert_int_eq(cursors_take(t.cs, ids[1], &c), CURSOR_OK);
    cursors_give_back(t.cs, c);
    cursors_give_back(t.cs, busy);
    eng_step_leave(t.f.db.e);
    table_free(&t);
}
END_TEST

START_TEST(cursors_of_a_dropped_collection_do_not_stay)
{
    struct table t;
    table_new(&t, 0);
    eng_step_enter(t.f.db.e);
    struct cursor *c = made(&t);
    c->no_timeout = true;
    cursors_add(t.cs, c);
    eng_step_leave(t.f.db.e);
    atomic_store(&t.f.rt.dropped, true);
    cursors_tick(t.cs, clock_mono_us()); /* its client still gets to know */
    ck_assert_int_eq(open_cursors(&t), 1);
    cursors_tick(t.cs, clock_mono_us() + CURSOR_IDLE_US / 5);
    ck_assert_int_eq(open_cursors(&t), 0);
    ck_assert_int_eq(atomic_load(&t.f.coll.refs), 1000);
    table_free(&t);
}
END_TEST

START_TEST(an_idle_cursor_pins_no_snapshot)
{
    struct table t;
    struct eng_stats st;
    table_new(&t, 0);
    eng_step_enter(t.f.db.e);
    struct cursor *c = made(&t);
    ck_assert_int_eq(read_on(&t, c, 10), 9);
    eng_txn_hold(c->txn); /* as after a wait */
    eng_stats(t.f.db.e, &st);
    ck_assert_uint_gt(st.snapshots_open, 0);
    cursors_add(t.cs, c);
    eng_stats(t.f.db.e, &st);
    ck_assert_uint_eq(st.snapshots_open, 0);
    eng_step_leave(t.f.db.e);
    table_free(&t);
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 3000, SHARED = 8 };
struct worker {
    struct table *t;
    _Atomic int64_t *ids;
    pthread_t thread;
    unsigned seed;
    int read, busy, gone;
};

static void woken(struct eng_call *c)
{
    (void)c;
}

/* Reads on in cursors that others read on in, kills some, and puts new ones in their place. */
static void *work(void *arg)
{
    struct worker *w = arg;
    struct cursor *c;
    struct eng_call call;
    struct err err;
    struct arena *a = arena_new(0);
    eng_call_init(&call, woken);
    err_init(&err, a);
    struct pull pull = {NULL, &call, &err};
    for (int i = 0; i < ROUNDS; i++) {
        const uint8_t *doc;
        _Atomic int64_t *slot = &w->ids[(unsigned)rand_r(&w->seed) % SHARED];
        int64_t id = atomic_load(slot);
        eng_step_enter(w->t->f.db.e);
        if (i % 16 == 0) {
            cursors_kill(w->t->cs, id);
            atomic_store(slot, cursors_add(w->t->cs, made(w->t)));
        }
        enum cursor_found found = cursors_take(w->t->cs, id, &c);
        if (found == CURSOR_OK && pipeline_next(c->pipe, &pull, &doc) == EXEC_ROW) {
            w->read++;
            cursors_give_back(w->t->cs, c);
        } else if (found == CURSOR_OK) {
            cursors_discard(w->t->cs, c);
        }
        w->busy += found == CURSOR_BUSY;
        w->gone += found == CURSOR_NOT_FOUND;
        eng_step_leave(w->t->f.db.e);
        if (i % 500 == 0)
            cursors_tick(w->t->cs, clock_mono_us());
    }
    arena_free(a);
    return NULL;
}

START_TEST(threads_share_the_table)
{
    struct table t;
    struct worker w[THREADS];
    _Atomic int64_t ids[SHARED];
    table_new(&t, 0);
    eng_step_enter(t.f.db.e);
    for (int i = 0; i < SHARED; i++)
        ids[i] = cursors_add(t.cs, made(&t));
    eng_step_leave(t.f.db.e);
    for (unsigned i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.t = &t, .ids = ids, .seed = i};
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    int all = 0, read = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        all += w[i].read + w[i].busy + w[i].gone;
        read += w[i].read;
    }
    ck_assert_int_le(all, THREADS * ROUNDS); /* the rest met an end */
    ck_assert_int_gt(read, THREADS * ROUNDS / 4);
    cursors_free(t.cs);
    ck_assert_int_eq(atomic_load(&t.f.coll.refs), 1000);
    fix_free(&t.f);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_cursor_goes_on_where_it_was, 0, 3);
    tcase_add_test(tc, a_document_taken_back_comes_again);
    tcase_add_test(tc, one_at_a_time_has_a_cursor);
    tcase_add_test(tc, killing_frees_idle_cursors_at_once_and_taken_ones_later);
    tcase_add_test(tc, idle_cursors_time_out);
    tcase_add_test(tc, cursors_of_a_dropped_collection_do_not_stay);
    tcase_add_test(tc, an_idle_cursor_pins_no_snapshot);
    tcase_add_test(tc, threads_share_the_table);
}
TEST_MAIN("session/cursors", add_tests)
