/* Pipelines: what is parsed and refused, what is pushed down, what comes out. */
#include <stdio.h>

#include "server/query/stage/stage.h"
#include "tests/lib/json.h"
#include "tests/lib/reads.h"
#include "tests/lib/test.h"

/* ---- parsing ---- */

static int parse(struct arena *a, const char *json, struct pipeline_spec *spec, struct err *err)
{
    char text[1000];
    snprintf(text, sizeof(text), "{p: %s}", json);
    err_clear(err);
    return pipeline_parse(a, bval_doc(bdoc_get(J(text), "p")), spec, err);
}

START_TEST(malformed_pipelines_are_refused)
{
    static const struct {
        const char *pipeline;
        int code;
        const char *msg; /* NULL: not looked at */
    } rows[] = {
        {"[1]", 14, "Each element of the 'pipeline' array must be an object"},
        {"[{}]", 40323, "A pipeline stage specification object must contain exactly one field."},
        {"[{~match: {}, ~limit: 1}]", 40323, NULL},
        {"[{~foo: {}}]", 40324, "Unrecognized pipeline stage name: '$foo'"},
        {"[{match: {}}]", 40324, "Unrecognized pipeline stage name: 'match'"},
        {"[{~Match: {}}]", 40324, NULL},
        {"[{~lookup: {}}]", 238, "the stage $lookup is not implemented"},
        {"[{~match: {}}, {~unwind: 'x'}]", 238, NULL},
        {"[{~match: 1}]", 15959, "the match filter must be an expression in an object"},
        {"[{~match: {a: {~foo: 1}}}]", 2, NULL},
        {"[{~limit: 0}]", 15958, "the limit must be positive"},
        {"[{~limit: -1}]", 5107201, "invalid argument to $limit stage: Expected a non-negative number in: $limit: -1"},
        {"[{~limit: 'x'}]", 5107201, "invalid argument to $limit stage: Expected a number in: $limit: \"x\""},
        {"[{~limit: 1.5}]", 5107201, "invalid argument to $limit stage: Expected an integer: $limit: 1.5"},
        {"[{~skip: -1}]", 5107200, NULL},
        {"[{~skip: null}]", 5107200, NULL},
        {"[{~sort: 1}]", 15973, "the $sort key specification must be an object"},
        {"[{~sort: {}}]", 15976, "$sort stage must have at least one sort key"},
        {"[{~sort: {a: 2}}]", 15975, NULL},
        {"[{~sort: {~natural: 1}}]", 16410, NULL},
        {"[{~sort: {a: 1, ~natural: 1}}]", 16410, NULL},
        {"[{~sort: {a: 'x'}}]", 15974, NULL},
        {"[{~project: 1}]", 15969, "$project specification must be an object"},
        {"[{~project: {}}]", 51272,
         "Invalid $project :: caused by :: projection specification must have at least one field"},
        {"[{~project: {a: 1, b: 0}}]", 31254, NULL},
        {"[{~count: 1}]", 40156, "the count field must be a non-empty string"},
        {"[{~count: ''}]", 40157, NULL},
        {"[{~count: '$x'}]", 40158, "the count field cannot be a $-prefixed path"},
        {"[{~count: 'a.b'}]", 40160, "the count field cannot contain '.'"},
        {"[{~group: 1}]", 15947, "a group's fields must be specified in an object"},
        {"[{~group: {}}]", 15955, "a group specification must include an _id"},
        {"[{~group: {n: {~sum: 1}}}]", 15955, NULL},
        {"[{~group: {_id: '$a'}}]", 238, NULL},
        {"[{~group: {_id: {a: 1}}}]", 238, NULL},
        {"[{~group: {_id: null, n: 1}}]", 40234, "The field 'n' must be an accumulator object"},
        {"[{~group: {_id: null, n: {}}}]", 40234, NULL},
        {"[{~group: {_id: null, n: {x: 1}}}]", 40234, NULL},
        {"[{~group: {_id: null, n: {~foo: 1}}}]", 15952, "unknown group operator '$foo'"},
        {"[{~group: {_id: null, n: {~sum: 1, ~avg: 1}}}]", 40238, "The field 'n' must specify one accumulator"},
        {"[{~group: {_id: null, n: {~avg: '$x'}}}]", 238, "the accumulator $avg is not implemented"},
        {"[{~group: {_id: null, n: {~sum: '$x'}}}]", 238, NULL},
        {"[{~group: {_id: null, 'a.b': {~sum: 1}}}]", 40235, "The field name 'a.b' cannot contain '.'"},
        {"[{~group: {_id: null, '~a': {~sum: 1}}}]", 40236, "The field name '$a' cannot be an operator name"},
        {"[{~group: {_id: null, n: {~sum: 1}, n: {~sum: 1}}}]", 16406, NULL},
    };
    struct arena *a = arena_new(0);
    struct err err;
    struct pipeline_spec spec;
    err_init(&err, a);
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        int rc = parse(a, rows[i].pipeline, &spec, &err);
        ck_assert_msg(rc == rows[i].code && err.code == rc, "%s: %d, %s", rows[i].pipeline, rc, err.msg);
        if (rows[i].msg)
            ck_assert_str_eq(err.msg, rows[i].msg);
    }
    arena_free(a);
}
END_TEST

START_TEST(the_front_is_pushed_down)
{
    static const struct {
        const char *pipeline;
        uint32_t conditions, keys; /* of the filter and the sort */
        uint64_t skip, limit;
        uint32_t left; /* stages */
    } rows[] = {
        {"[]", 0, 0, 0, 0, 0},
        {"[{~match: {}}, {~match: {a: 1}}]", 1, 0, 0, 0, 0},
        {"[{~match: {a: 1}}, {~match: {b: 1, c: 1}}, {~sort: {x: 1, y: -1}}]", 3, 2, 0, 0, 0},
        {"[{~limit: 10}, {~skip: 4}]", 0, 0, 4, 6, 0},
        {"[{~skip: 4}, {~limit: 10}]", 0, 0, 4, 10, 0},
        {"[{~skip: 4}, {~skip: 3}, {~limit: 10}, {~limit: 2}]", 0, 0, 7, 2, 0},
        {"[{~limit: 3}, {~skip: 3}]", 0, 0, 0, 3, 1}, /* nothing can be left: not a limit of 0, which is none */
        {"[{~limit: 3}, {~match: {a: 1}}]", 0, 0, 0, 3, 1},
        {"[{~limit: 3}, {~sort: {a: 1}}]", 0, 0, 0, 3, 1},
        {"[{~project: {a: 1}}, {~match: {a: 1}}]", 0, 0, 0, 0, 2},
        {"[{~match: {a: 1}}, {~skip: 2}, {~group: {_id: 1, n: {~sum: 1}}}]", 1, 0, 2, 0, 1},
    };
    struct arena *a = arena_new(0);
    struct err err;
    err_init(&err, a);
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        struct pipeline_spec spec;
        struct access_spec access;
        ck_assert_int_eq(parse(a, rows[i].pipeline, &spec, &err), 0);
        ck_assert_int_eq(pipeline_push_down(a, &spec, &access, &err), 0);
        const struct match *m = access.filter;
        uint32_t conditions = m->op == MATCH_TRUE ? 0 : m->op == MATCH_AND ? m->n_children : 1;
        ck_assert_msg(conditions == rows[i].conditions && access.sort.n == rows[i].keys &&
                          access.skip == rows[i].skip && access.limit == rows[i].limit && spec.n == rows[i].left,
                      "%s: %u conditions, %u keys, skip %lu, limit %lu, %u stages", rows[i].pipeline, conditions,
                      access.sort.n, (unsigned long)access.skip, (unsigned long)access.limit, spec.n);
    }
    arena_free(a);
}
END_TEST

/* ---- running ---- */

/* The documents that the pipeline gives, as the shell shows them. `pushed`: with an access path that does what it can. */
static const char *run(struct fix *f, const char *json, bool pushed)
{
    static struct buf out;
    struct pipeline_spec spec;
    struct access_spec access = {0};
    struct buf doc;
    const uint8_t *d;
    buf_init(&doc);
    out.len = 0;
    ck_assert_msg(parse(f->a, json, &spec, &f->err) == 0, "%s: %s", json, f->err.msg);
    if (pushed)
        ck_assert_int_eq(pipeline_push_down(f->a, &spec, &access, &f->err), 0);
    struct plan plan = {.kind = PLAN_COLLSCAN, .filter = access.filter, .sort = &access.sort};
    struct pull pull = {f->slices ? &f->op : NULL, &f->db.c, &f->err};
    eng_step_enter(f->db.e);
    struct eng_txn *t = eng_begin(f->db.e, ENG_TXN_READ_ONLY, 0);
    struct exec *x = exec_open(f->a, &plan, &f->coll, t, access.skip, access.limit);
    struct pipeline *p = pipeline_new(f->a, x, &spec, NULL);
    for (enum exec_status s; (s = pipeline_next(p, &pull, &d)) != EXEC_EOF;) {
        ck_assert_msg(s != EXEC_ERROR, "%s", f->err.msg);
        if (s == EXEC_WAIT) {
            fix_wait(f);
        } else if (s == EXEC_AGAIN) {
            fix_next_step(f);
        } else {
            if (f->suspend) { /* between two batches */
                pipeline_unget(p, d);
                pipeline_suspend(p);
                eng_txn_hold(t);
                fix_next_step(f);
                ck_assert_int_eq(pipeline_next(p, &pull, &d), EXEC_ROW);
            }
            doc.len = 0;
            ck_assert_int_eq(pipeline_emit(p, d, &doc, &f->err), 0);
            bval_to_shell(&out, bval_from_doc(doc.p), 1000);
            buf_byte(&out, '\n');
        }
    }
    ck_assert(pipeline_at_end(p));
    pipeline_close(p);
    eng_end(t);
    eng_step_leave(f->db.e);
    buf_byte(&out, 0);
    buf_free(&doc);
    return (const char *)out.p;
}

START_TEST(pipelines_give_the_same_however_they_are_run)
{
    static const struct {
        const char *pipeline, *want; /* documents are {_id: i, a: i % 10, b: i % 3, c: i * 7 % 700}, i below 700 */
    } rows[] = {
        {"[{~match: {a: 3}}, {~match: {b: 1}}, {~limit: 2}]",
         "{ _id: 13, a: 3, b: 1, c: 91 }\n{ _id: 43, a: 3, b: 1, c: 301 }\n"},
        {"[{~limit: 5}, {~match: {_id: {~gte: 4}}}]", "{ _id: 4, a: 4, b: 1, c: 28 }\n"},
        {"[{~limit: 2}, {~skip: 2}]", ""},
        {"[{~match: {_id: {~gte: 10}}}, {~skip: 3}, {~limit: 1}, {~project: {a: 1}}]", "{ _id: 13, a: 3 }\n"},
        {"[{~project: {a: 1}}, {~match: {b: 1}}]", ""},
        {"[{~project: {b: 0}}, {~match: {a: 2}}, {~limit: 1}]", "{ _id: 2, a: 2, c: 14 }\n"},
        {"[{~sort: {c: -1}}, {~limit: 2}, {~project: {c: 1, _id: 0}}]", "{ c: 693 }\n{ c: 693 }\n"},
        {"[{~limit: 600}, {~sort: {c: -1, _id: 1}}, {~skip: 1}, {~limit: 1}, {~project: {c: 1}}]",
         "{ _id: 199, c: 693 }\n"},
        {"[{~sort: {a: 1}}, {~sort: {b: -1}}, {~sort: {_id: -1}}, {~limit: 2}, {~sort: {_id: 1}}, {~project: {a: 1}}]",
         "{ _id: 698, a: 8 }\n{ _id: 699, a: 9 }\n"},
        {"[{~match: {b: 2}}, {~count: 'k'}]", "{ k: 233 }\n"},
        {"[{~match: {b: 7}}, {~count: 'k'}]", ""},
        {"[{~match: {b: 2}}, {~skip: 3}, {~limit: 10}, {~group: {_id: 1, n: {~sum: 1}}}]", "{ _id: 1, n: 10 }\n"},
        {"[{~group: {_id: null, n: {~sum: 2}, m: {~count: {}}, f: {~sum: 0.5}}}]",
         "{ _id: null, n: 1400, m: 700, f: 350.0 }\n"},
        {"[{~match: {b: 7}}, {~group: {_id: null, n: {~sum: 1}}}]", ""},
        {"[{~group: {_id: 'x', n: {~sum: 2000000000}}}, {~project: {n: 1}}]", NULL},
        {"[{~count: 'k'}, {~match: {k: 700}}, {~count: 'n'}]", "{ n: 1 }\n"},
    };
    struct fix f;
    fix_new(&f, _i);
    for (size_t i = 0; i < OV_LEN(rows); i++)
        for (int how = 0; how < 8; how++) {
            f.slices = how & 1;
            f.suspend = how & 2;
            const char *got = run(&f, rows[i].pipeline, how & 4);
            if (rows[i].want)
                ck_assert_msg(strcmp(got, rows[i].want) == 0, "%s: %s", rows[i].pipeline, got);
            else
                ck_assert_msg(strstr(got, "1400000000000") != NULL, "%s", got); /* a long */
        }
    fix_free(&f);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, malformed_pipelines_are_refused);
    tcase_add_test(tc, the_front_is_pushed_down);
    tcase_add_loop_test(tc, pipelines_give_the_same_however_they_are_run, 0, 3);
}
TEST_MAIN("stage/pipeline", add_tests)
