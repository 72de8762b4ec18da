/* Writers beside an index build: whatever they do to documents that the build has passed, or has not reached, the index is right in the end:
 * nothing is missing, and no key that was removed meanwhile comes back (R20). */
#include "server/write/index_build.h"
#include "tests/unit/write/bed.h"

static struct bed bed;

#define DDL(call)                                                      \
    for (enum ddl_result r = DDL_PENDING; r != DDL_OK;) {              \
        eng_step_enter(bed.db.e);                                      \
        r = call;                                                      \
        eng_step_leave(bed.db.e);                                      \
        ck_assert_msg(r != DDL_ERROR, "%s", err.msg);                  \
        while (r == DDL_PENDING && !atomic_exchange(&bed.db.woken, 0)) \
            db_pump(&bed.db);                                          \
    }

static const char *const NAMES[] = {"i"};

static void add_index(struct arena *a, const char *json_spec)
{
    struct index_def def;
    struct err err;
    err_init(&err, a);
    ck_assert_int_eq(index_parse(a, J(json_spec), &def, &err), 0);
    DDL(catalog_index_add(bed.server.catalog, "t", "c", &def, 1, &bed.db.c, &err));
}

/* n steps of the build; all if n is negative. */
static void build(struct arena *a, struct index_build *b, int n)
{
    struct err err;
    err_init(&err, a);
    for (; n != 0; n--) {
        eng_step_enter(bed.db.e);
        enum build_result r = index_build_step(b, NULL, &bed.db.c, &err);
        eng_step_leave(bed.db.e);
        ck_assert_msg(r != BUILD_FAILED, "%s", err.msg);
        if (r == BUILD_DONE)
            return;
        for (int i = 0; r == BUILD_WAIT && i < 100 && !atomic_exchange(&bed.db.woken, 0); i++)
            db_pump(&bed.db);
    }
}

static void publish(struct arena *a)
{
    struct err err;
    err_init(&err, a);
    DDL(catalog_index_ready(bed.server.catalog, "t", "c", NAMES, 1, &bed.db.c, &err));
}

static void writes_beside(const char *spec, int before)
{
    struct arena *a = arena_new(0);
    bed_new(&bed, 1);
    RUN(&bed, "insert",
        "{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 2}, {_id: 3, a: 3}, {_id: 4, a: 4}, {_id: 5, a: [5, "
        "6]}]}",
        "{ n: 5 }");
    add_index(a, spec);
    struct index_build *b = index_build_new(a, bed.db.e, bed.server.catalog, "t", "c", NAMES, 1);
    build(a, b, before);
    struct run *up = run_new(&bed, "update", J("{update: 'c', updates: [{q: {_id: 1}, u: {~set: {a: 11}}}]}"));
    struct run *del = run_new(&bed, "delete", J("{delete: 'c', deletes: [{q: {_id: 2}, limit: 1}]}"));
    struct run *swap = run_new(
        &bed, "update", J("{update: 'c', updates: [{q: {_id: 3}, u: {~set: {b: 1}}}, {q: {_id: 5}, u: {a: 7}}]}"));
    struct run *in = run_new(&bed, "insert", J("{insert: 'c', documents: [{_id: 6, a: 22}, {_id: 7, a: [8, 9]}]}"));
    for (int i = 0; !up->done || !del->done || !swap->done || !in->done; i++) {
        ck_assert_msg(i < 50, "a writer waits for ever");
        run_on(up);
        run_on(del);
        run_on(swap);
        run_on(in);
        build(a, b, 1);
    }
    ck_assert_str_eq(run_end(up), "{ n: 1, nModified: 1 }");
    ck_assert_str_eq(run_end(del), "{ n: 1 }");
    ck_assert_str_eq(run_end(swap), "{ n: 2, nModified: 2 }");
    ck_assert_str_eq(run_end(in), "{ n: 2 }");
    build(a, b, -1);
    eng_step_enter(bed.db.e);
    index_build_end(b);
    eng_step_leave(bed.db.e);
    publish(a);
    bed_agree(&bed, "c");
    bed_free(&bed);
    arena_free(a);
}

START_TEST(r20_a_plain_index)
{
    writes_beside("{key: {a: 1}, name: 'i'}", _i);
}
END_TEST

START_TEST(r20_a_unique_index)
{
    writes_beside("{key: {a: 1}, name: 'i', unique: true}", _i);
}
END_TEST

START_TEST(r20_a_sparse_index)
{
    writes_beside("{key: {b: 1}, name: 'i', sparse: true}", _i);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, r20_a_plain_index, 0, 40);
    tcase_add_loop_test(tc, r20_a_unique_index, 0, 40);
    tcase_add_loop_test(tc, r20_a_sparse_index, 0, 40);
}

TEST_MAIN("write/building", add_tests)
