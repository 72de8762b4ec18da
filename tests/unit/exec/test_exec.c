/* Access paths, filters, sorts, skips and limits: the same rows whatever the engine answers late and wherever the steps end. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/reads.h"

/* ---- a host ---- */

/* The _ids that the plan gives, with blanks between them; then "!CODE" if it fails. */
static const char *fix_run(struct fix *f, const struct plan *plan, uint64_t skip, uint64_t limit)
{
    static char out[64 * 1024];
    size_t n = 0;
    struct exec_row row;
    struct engine *e = f->db.e;
    out[0] = 0;
    err_clear(&f->err);
    eng_step_enter(e);
    struct eng_txn *t = eng_begin(e, ENG_TXN_READ_ONLY, 0);
    struct exec *x = exec_open(f->a, plan, &f->coll, t, skip, limit);
    for (bool done = false; !done;) {
        enum exec_status s = exec_next(x, f->slices ? &f->op : NULL, &f->db.c, &row, &f->err);
        switch (s) {
        case EXEC_ROW:
            n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%d", n ? " " : "", bval_i32(bdoc_get(row.doc, "_id")));
            ck_assert_uint_eq(row.rid, (uint64_t)bval_i32(bdoc_get(row.doc, "_id")) + 1);
            if (!f->suspend)
                break;
            if (n % 3 == 0) { /* taken back, it comes again */
                exec_unget(x);
                n -= strlen(strrchr(out, ' ') ? strrchr(out, ' ') : out);
                out[n] = 0;
                if (n % 2) {
                    exec_suspend(x);
                    eng_txn_hold(t);
                    fix_next_step(f);
                }
                do
                    s = exec_next(x, NULL, &f->db.c, &row, &f->err);
                while (s == EXEC_WAIT); /* the wake-up is under way: this is polled */
                ck_assert_int_eq(s, EXEC_ROW);
                n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%d", n ? " " : "",
                                      bval_i32(bdoc_get(row.doc, "_id")));
            }
            exec_suspend(x);
            eng_txn_hold(t);
            fix_next_step(f);
            break;
        case EXEC_WAIT:
            fix_wait(f);
            break;
        case EXEC_AGAIN:
            fix_next_step(f);
            break;
        case EXEC_ERROR:
            snprintf(out + n, sizeof(out) - n, "!%d", f->err.code);
            done = true;
            break;
        case EXEC_EOF:
            ck_assert(exec_at_end(x));
            ck_assert_int_eq(exec_next(x, NULL, &f->db.c, &row, &f->err), EXEC_EOF);
            done = true;
            break;
        }
    }
    exec_close(x);
    eng_end(t);
    eng_step_leave(e);
    return out;
}

/* ---- what is expected ---- */

/* The ids that `match` lets through, in the order of `compare` (NULL: of the ids), from `skip` on, `limit` of them (0: all). */
static const char *expected(bool (*match)(int id), int (*compare)(const void *, const void *), size_t skip,
                            size_t limit)
{
    static char out[64 * 1024];
    static int ids[DOCS];
    size_t n = 0, len = 0;
    out[0] = 0;
    for (int i = 0; i < DOCS; i++)
        if (!match || match(i))
            ids[n++] = i;
    if (compare)
        qsort(ids, n, sizeof(*ids), compare);
    for (size_t i = skip; i < n && (!limit || i < skip + limit); i++)
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%d", len ? " " : "", ids[i]);
    return out;
}

static int backwards(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

static int by_a(const void *a, const void *b) /* the index's order: then by record id */
{
    int x = *(const int *)a, y = *(const int *)b;
    return x % 10 != y % 10 ? x % 10 - y % 10 : x - y;
}

static int by_a_down(const void *a, const void *b)
{
    return -by_a(a, b);
}

static int by_c(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b, c = x * 7 % DOCS - y * 7 % DOCS;
    return c ? c : x - y;
}

static int by_c_down(const void *a, const void *b)
{
    return -by_c(a, b);
}

static bool a_2_to_4(int id)
{
    return id % 10 >= 2 && id % 10 <= 4;
}

static bool a_1_or_8(int id)
{
    return id % 10 == 1 || id % 10 == 8;
}

static bool b_is_2(int id)
{
    return id % 3 == 2;
}

static bool b_0_or_2(int id)
{
    return id % 3 != 1;
}

/* Libcheck cannot print texts of that length. */
static void check_same(const char *got, const char *want)
{
    size_t i = 0;
    while (got[i] && got[i] == want[i])
        i++;
    ck_assert_msg(got[i] == want[i], "from byte %zu on: got %.60s, want %.60s", i, got + i, want + i);
}

/* Runs the plan however it can be interrupted. */
#define CHECK_RUNS(f, plan, match, compare, skip, limit)                      \
    do {                                                                      \
        for (int how = 0; how < 4; how++) {                                   \
            (f)->slices = how & 1;                                            \
            (f)->suspend = how & 2;                                           \
            const char *want = expected((match), (compare), (skip), (limit)); \
            check_same(fix_run((f), (plan), (skip), (limit)), want);          \
        }                                                                     \
    } while (0)

#define CHECK_ALL(f, plan, match, compare)                \
    do {                                                  \
        CHECK_RUNS(f, plan, match, compare, 0, 0);        \
        CHECK_RUNS(f, plan, match, compare, 0, 1);        \
        CHECK_RUNS(f, plan, match, compare, 5, 140);      \
        CHECK_RUNS(f, plan, match, compare, 2 * DOCS, 0); \
    } while (0)

static struct match *filter_of(struct fix *f, const char *json)
{
    struct match *m;
    ck_assert_int_eq(match_parse(f->a, J(json), &m, &f->err), 0);
    return m;
}

/* ---- tests: each with an engine that never, sometimes, always answers late ---- */

START_TEST(all_records_in_order_and_backwards)
{
    struct fix f;
    fix_new(&f, _i);
    struct plan plan = {.kind = PLAN_COLLSCAN};
    CHECK_ALL(&f, &plan, NULL, NULL);
    plan.filter = filter_of(&f, "{b: 2}");
    CHECK_ALL(&f, &plan, b_is_2, NULL);
    plan.filter = NULL;
    plan.reverse = true;
    CHECK_ALL(&f, &plan, NULL, backwards);
    ck_assert_int_gt(f.steps, 0);
    fix_free(&f);
}
END_TEST

START_TEST(an_empty_plan_gives_nothing)
{
    struct fix f;
    fix_new(&f, _i);
    struct plan plan = {.kind = PLAN_EMPTY};
    ck_assert_str_eq(fix_run(&f, &plan, 0, 0), "");
    fix_free(&f);
}
END_TEST

START_TEST(one_key_is_looked_up)
{
    struct fix f;
    fix_new(&f, _i);
    struct plan_interval at = {.from = fix_key(&f, "[17]")};
    struct plan plan = {.kind = PLAN_POINTS, .index = &f.indexes[0], .intervals = &at, .n_intervals = 1};
    ck_assert_str_eq(fix_run(&f, &plan, 0, 0), "17");
    ck_assert_str_eq(fix_run(&f, &plan, 0, 1), "17");
    ck_assert_str_eq(fix_run(&f, &plan, 1, 0), "");
    f.suspend = true;
    ck_assert_str_eq(fix_run(&f, &plan, 0, 0), "17");
    plan.filter = filter_of(&f, "{_id: 17, b: 1}");
    ck_assert_str_eq(fix_run(&f, &plan, 0, 0), "");
    plan.filter = NULL;
    at.from = fix_key(&f, "[5000]");
    ck_assert_str_eq(fix_run(&f, &plan, 0, 0), "");
    at.from = fix_key(&f, "[30]");
    fix_delete_doc(&f, 30);
    ck_assert_str_eq(fix_run(&f, &plan, 0, 0), "");
    fix_free(&f);
}
END_TEST

START_TEST(many_keys_are_looked_up_in_their_order)
{
    struct fix f;
    fix_new(&f, _i);
    enum { N = 400 }; /* every second one is there */
    struct plan_interval *at = arena_zalloc(f.a, N * sizeof(*at));
    char text[40], want[8000] = "", back[8000] = "";
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "[%d]", i % 2 ? i : i + 1000);
        at[i].from = fix_key(&f, text);
    }
    for (int i = 1; i < N; i += 2) {
        sprintf(want + strlen(want), "%s%d", i > 1 ? " " : "", i);
        sprintf(back + strlen(back), "%s%d", i > 1 ? " " : "", N - i);
    }
    struct plan plan = {.kind = PLAN_POINTS, .index = &f.indexes[0], .intervals = at, .n_intervals = N};
    for (int how = 0; how < 4; how++) {
        f.slices = how & 1;
        f.suspend = how & 2;
        plan.reverse = false;
        ck_assert_str_eq(fix_run(&f, &plan, 0, 0), want);
        ck_assert_str_eq(fix_run(&f, &plan, 2, 3), "5 7 9");
        plan.reverse = true;
        ck_assert_str_eq(fix_run(&f, &plan, 0, 0), back);
    }
    fix_free(&f);
}
END_TEST

START_TEST(intervals_come_in_scan_order)
{
    struct fix f;
    fix_new(&f, _i);
    struct plan_interval in[2] = {fix_interval(&f, "[2]", "[4]")};
    struct plan plan = {.kind = PLAN_IXSCAN, .index = &f.indexes[1], .intervals = in, .n_intervals = 1};
    CHECK_ALL(&f, &plan, a_2_to_4, by_a);
    plan.reverse = true;
    CHECK_ALL(&f, &plan, a_2_to_4, by_a_down);
    in[0] = fix_interval(&f, "[1]", "[1]");
    in[1] = fix_interval(&f, "[8]", "[8]");
    plan.n_intervals = 2;
    CHECK_ALL(&f, &plan, a_1_or_8, by_a_down);
    plan.reverse = false;
    CHECK_ALL(&f, &plan, a_1_or_8, by_a);
    plan.filter = filter_of(&f, "{a: 8}");
    ck_assert_str_eq(fix_run(&f, &plan, 0, 3), "8 18 28");
    fix_free(&f);
}
END_TEST

START_TEST(intervals_are_merged_in_the_asked_order)
{
    struct fix f;
    fix_new(&f, _i);
    struct plan_interval in[3] = {fix_interval(&f, "[0]", "[0]"), fix_interval(&f, "[2]", "[2]"),
                                  fix_interval(&f, "[5]", "[5]")}; /* no key there */
    for (int i = 0; i < 3; i++)
        in[i].prefix = (uint32_t)in[i].from.n;
    struct plan plan = {
        .kind = PLAN_IXSCAN, .index = &f.indexes[2], .intervals = in, .n_intervals = 3, .merge = true, .sorted = true};
    CHECK_ALL(&f, &plan, b_0_or_2, by_c);
    plan.reverse = true;
    CHECK_ALL(&f, &plan, b_0_or_2, by_c_down);
    fix_free(&f);
}
END_TEST

START_TEST(a_record_with_many_keys_comes_once)
{
    struct fix f;
    fix_new(&f, _i);
    for (int k = 20; k < 60; k++) { /* as if documents 3 and 4 held arrays */
        char text[20];
        snprintf(text, sizeof(text), "[%d]", k);
        struct slice key = fix_key(&f, text);
        uint8_t *p = arena_alloc(f.a, key.n + 8);
        memcpy(p, key.p, key.n);
        for (uint64_t rid = 4; rid <= 5; rid++) {
            store_be64(p + key.n, rid);
            fix_put(&f, f.indexes[1].keyspace, slice_of(p, key.n + 8), slice_of(NULL, 0));
        }
    }
    struct plan_interval in = fix_interval(&f, "[20]", "[59]");
    struct plan plan = {.kind = PLAN_IXSCAN, .index = &f.indexes[1], .intervals = &in, .n_intervals = 1, .dedup = true};
    for (int how = 0; how < 4; how++) {
        f.slices = how & 1;
        f.suspend = how & 2;
        ck_assert_str_eq(fix_run(&f, &plan, 0, 0), "3 4");
    }
    fix_free(&f);
}
END_TEST

START_TEST(rows_are_sorted)
{
    struct fix f;
    fix_new(&f, _i);
    struct sort_spec sort;
    ck_assert_int_eq(sort_parse(f.a, J("{a: 1}"), &sort, &f.err), 0);
    struct plan plan = {.kind = PLAN_COLLSCAN, .sort = &sort};
    CHECK_ALL(&f, &plan, NULL, by_a);
    plan.filter = filter_of(&f, "{b: 2}");
    CHECK_ALL(&f, &plan, b_is_2, by_a);
    ck_assert_int_eq(sort_parse(f.a, J("{c: -1, _id: -1}"), &sort, &f.err), 0);
    plan.filter = filter_of(&f, "{b: {~ne: 1}}");
    struct plan_interval in = fix_interval(&f, "[0]", "[9]");
    plan =
        (struct plan){.kind = PLAN_IXSCAN, .index = &f.indexes[1], .intervals = &in, .n_intervals = 1, .sort = &sort};
    CHECK_RUNS(&f, &plan, NULL, by_c_down, 0, 0);
    CHECK_RUNS(&f, &plan, NULL, by_c_down, 3, 7);
    plan.sorted = true; /* no sort then */
    CHECK_RUNS(&f, &plan, NULL, by_a, 0, 0);
    fix_free(&f);
}
END_TEST

START_TEST(a_read_goes_on_at_a_newer_snapshot_by_key)
{
    struct fix f;
    fix_new(&f, _i);
    struct plan plan = {.kind = PLAN_COLLSCAN};
    struct exec_row row;
    int given = 0, last = -1;
    eng_step_enter(f.db.e);
    struct eng_txn *t = eng_begin(f.db.e, ENG_TXN_READ_ONLY, 0);
    struct exec *x = exec_open(f.a, &plan, &f.coll, t, 0, 0);
    for (enum exec_status s; (s = exec_next(x, NULL, &f.db.c, &row, &f.err)) != EXEC_EOF;) {
        ck_assert_int_ne(s, EXEC_ERROR);
        if (s == EXEC_ROW) {
            int id = bval_i32(bdoc_get(row.doc, "_id"));
            ck_assert_int_gt(id, last); /* none twice */
            last = id;
            given++;
        }
        if (given == 50 && s == EXEC_ROW) { /* between two getMores */
            exec_suspend(x);
            eng_txn_release(t);
            eng_step_leave(f.db.e);
            for (int i = 50; i < 150; i++)
                fix_delete_doc(&f, i);
            eng_step_enter(f.db.e);
        }
    }
    ck_assert_int_eq(given, DOCS - 100);
    ck_assert_int_eq(last, DOCS - 1);
    ck_assert_uint_ge(exec_docs_examined(x), DOCS - 100);
    exec_close(x);
    eng_end(t);
    eng_step_leave(f.db.e);
    fix_free(&f);
}
END_TEST

START_TEST(what_was_examined_is_counted)
{
    struct fix f;
    fix_new(&f, 0);
    struct plan_interval in = fix_interval(&f, "[2]", "[4]");
    struct plan plan = {.kind = PLAN_IXSCAN, .index = &f.indexes[1], .intervals = &in, .n_intervals = 1};
    struct exec_row row;
    eng_step_enter(f.db.e);
    struct eng_txn *t = eng_begin(f.db.e, ENG_TXN_READ_ONLY, 0);
    struct exec *x = exec_open(f.a, &plan, &f.coll, t, 0, 0);
    while (exec_next(x, NULL, &f.db.c, &row, &f.err) == EXEC_ROW)
        ;
    ck_assert_uint_eq(exec_keys_examined(x), DOCS * 3 / 10);
    ck_assert_uint_eq(exec_docs_examined(x), DOCS * 3 / 10);
    ck_assert_uint_eq(f.index_rt[1].accesses, 1);
    exec_close(x);
    eng_end(t);
    eng_step_leave(f.db.e);
    fix_free(&f);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, all_records_in_order_and_backwards, 0, 3);
    tcase_add_loop_test(tc, an_empty_plan_gives_nothing, 0, 3);
    tcase_add_loop_test(tc, one_key_is_looked_up, 0, 3);
    tcase_add_loop_test(tc, many_keys_are_looked_up_in_their_order, 0, 3);
    tcase_add_loop_test(tc, intervals_come_in_scan_order, 0, 3);
    tcase_add_loop_test(tc, intervals_are_merged_in_the_asked_order, 0, 3);
    tcase_add_loop_test(tc, a_record_with_many_keys_comes_once, 0, 3);
    tcase_add_loop_test(tc, rows_are_sorted, 0, 3);
    tcase_add_loop_test(tc, a_read_goes_on_at_a_newer_snapshot_by_key, 0, 3);
    tcase_add_test(tc, what_was_examined_is_counted);
}
TEST_MAIN("exec/exec", add_tests)
