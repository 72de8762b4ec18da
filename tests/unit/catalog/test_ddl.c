/* The order of DDL (R21): announce, drain, journal, publish. */
#include "server/catalog/catalog.h"
#include "tests/lib/db.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

struct caller {
    struct eng_call call;
    int woken;
};

static struct db d;
static struct catalog *c;
static struct err err;
static struct arena *a;

static void wake(struct eng_call *call)
{
    OV_CONTAINER(call, struct caller, call)->woken++;
}

static void caller_init(struct caller *x)
{
    x->woken = 0;
    eng_call_init(&x->call, wake);
}

static void set_up(void)
{
    bool existed;
    db_new(&d);
    d.opt.debug_pending = 2; /* each commit is late once */
    db_reopen(&d);
    a = arena_new(0);
    err_init(&err, a);
    ck_assert_int_eq(catalog_open(d.e, &c, &err), 0);
    struct caller x;
    caller_init(&x);
    enum ddl_result r = DDL_PENDING;
    while (r == DDL_PENDING) {
        eng_step_enter(d.e);
        r = catalog_create(c, "t", "c", NULL, &existed, &x.call, &err);
        eng_step_leave(d.e);
        db_pump(&d);
    }
    ck_assert_int_eq(r, DDL_OK);
}

static void tear_down(void)
{
    catalog_close(c);
    db_free(&d);
    arena_free(a);
}

static enum ddl_result drop(struct caller *x)
{
    eng_step_enter(d.e);
    enum ddl_result r = catalog_drop(c, "t", "c", &x->call, &err);
    eng_step_leave(d.e);
    return r;
}

static enum ddl_result add_index(struct caller *x)
{
    static struct index_def def;
    ck_assert_int_eq(index_parse(a, J("{key: {k: 1}, name: 'k_1'}"), &def, &err), 0);
    eng_step_enter(d.e);
    enum ddl_result r = catalog_index_add(c, "t", "c", &def, 1, &x->call, &err);
    eng_step_leave(d.e);
    return r;
}

static bool stored(const char *ns)
{
    return db_get(&d, keyspace_id(KEYSPACE_CATALOG, 0), ns) != NULL;
}

/* _i: drop, or an index to be added. */
START_TEST(r21_ddl_drains_writers_and_new_ones_wait)
{
    enum ddl_result (*ddl)(struct caller *) = _i ? add_index : drop;
    struct caller changer, early, late;
    caller_init(&changer);
    caller_init(&early);
    caller_init(&late);
    struct collection *coll = catalog_get(c, "t", "c");
    uint32_t n_indexes = coll->n_indexes;
    ck_assert_int_eq(catalog_write_enter(c, coll, &early.call), ENG_OK);

    /* Announced: who is inside goes on, who comes waits, and nothing is changed yet. */
    ck_assert_int_eq(ddl(&changer), DDL_PENDING);
    ck_assert_int_eq(ddl(&changer), DDL_PENDING);
    ck_assert_int_eq(changer.woken, 0);
    ck_assert_int_eq(catalog_write_enter(c, coll, &late.call), ENG_PENDING);
    struct collection *now = catalog_get(c, "t", "c");
    ck_assert_ptr_eq(now, coll);
    collection_unref(now);

    /* Drained: it goes on. */
    catalog_write_leave(c, coll);
    ck_assert_int_eq(changer.woken, 1);
    enum ddl_result r;
    while ((r = ddl(&changer)) == DDL_PENDING) {
        /* Journaled before it is published: nobody sees it earlier. */
        now = catalog_get(c, "t", "c");
        ck_assert_ptr_eq(now, coll);
        collection_unref(now);
        ck_assert_int_eq(late.woken, 0);
        db_pump(&d);
    }
    ck_assert_int_eq(r, DDL_OK);
    ck_assert_int_eq(late.woken, 1);
    ck_assert_int_eq(catalog_write_enter(c, coll, &late.call), ENG_CONFLICT); /* the old definition is over */
    now = catalog_get(c, "t", "c");
    if (_i) {
        ck_assert_uint_eq(now->n_indexes, n_indexes + 1);
        ck_assert_int_eq(catalog_write_enter(c, now, &late.call), ENG_OK);
        catalog_write_leave(c, now);
    } else {
        ck_assert_ptr_null(now);
    }
    collection_unref(now);
    collection_unref(coll);
    ck_assert(stored("t.c") == (_i != 0));
}
END_TEST

START_TEST(r21_ddl_that_gives_up_lets_the_writers_on)
{
    struct caller changer, early, late;
    caller_init(&changer);
    caller_init(&early);
    caller_init(&late);
    struct collection *coll = catalog_get(c, "t", "c");
    ck_assert_int_eq(catalog_write_enter(c, coll, &early.call), ENG_OK);
    ck_assert_int_eq(drop(&changer), DDL_PENDING);
    ck_assert_int_eq(catalog_write_enter(c, coll, &late.call), ENG_PENDING);
    eng_step_enter(d.e);
    catalog_cancel(c, &changer.call); /* its time limit, say */
    eng_step_leave(d.e);
    ck_assert_int_eq(late.woken, 1);
    ck_assert_int_eq(catalog_write_enter(c, coll, &late.call), ENG_OK);
    catalog_write_leave(c, coll);
    catalog_write_leave(c, coll);
    ck_assert_int_eq(changer.woken, 0);
    collection_unref(coll);
    ck_assert(stored("t.c"));
}
END_TEST

START_TEST(r21_one_ddl_at_a_time)
{
    struct caller first, second, writer;
    caller_init(&first);
    caller_init(&second);
    caller_init(&writer);
    struct collection *coll = catalog_get(c, "t", "c");
    ck_assert_int_eq(catalog_write_enter(c, coll, &writer.call), ENG_OK);
    ck_assert_int_eq(add_index(&first), DDL_PENDING);
    ck_assert_int_eq(drop(&second), DDL_PENDING);
    catalog_write_leave(c, coll);
    for (int i = 0; i < 5; i++) { /* the drain is over, but it is not its turn: it does not get anywhere */
        ck_assert_int_eq(drop(&second), DDL_PENDING);
        db_pump(&d);
    }
    while (add_index(&first) == DDL_PENDING)
        db_pump(&d);
    ck_assert_int_gt(second.woken, 0);
    struct collection *now = catalog_get(c, "t", "c");
    ck_assert_ptr_ne(now, coll);
    collection_unref(now);
    while (drop(&second) == DDL_PENDING)
        db_pump(&d);
    ck_assert_ptr_null(catalog_get(c, "t", "c"));
    collection_unref(coll);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, r21_ddl_drains_writers_and_new_ones_wait, 0, 2);
    tcase_add_test(tc, r21_ddl_that_gives_up_lets_the_writers_on);
    tcase_add_test(tc, r21_one_ddl_at_a_time);
}

TEST_MAIN("catalog/ddl", add_tests)
