/* Random documents, indexes, filters and orders: a plan finds every document that matches, and gives the order that it claims. */
#include <stdio.h>
#include <stdlib.h>

#include "server/query/plan/plan.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"
#include <stdarg.h>

enum { DOCS = 24, ROUNDS = 2000, QUERIES = 10 };

static uint64_t seed_state;
static struct arena *arena;
static struct err err;

static uint32_t pick(uint32_t n) /* 0 .. n - 1 */
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    seed_state ^= seed_state << 17;
    return (uint32_t)((seed_state * 0x2545F4914F6CDD1Du >> 33) % n);
}

/* ---- text of random things ---- */

struct text {
    char s[4096];
    size_t n;
};
static void OV_PRINTF(2, 3) add(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    t->n += (size_t)vsnprintf(t->s + t->n, sizeof(t->s) - t->n, fmt, ap);
    va_end(ap);
    ck_assert_uint_lt(t->n, sizeof(t->s));
}

static const char *const scalars[] = {"1",
                                      "2",
                                      "3",
                                      "4",
                                      "2.5",
                                      "-1",
                                      "0",
                                      "null",
                                      "'x'",
                                      "'xy'",
                                      "'y'",
                                      "''",
                                      "true",
                                      "false",
                                      "{$minKey: 1}",
                                      "{$maxKey: 1}",
                                      "{$numberDouble: 'NaN'}",
                                      "{$numberLong: '3'}",
                                      "{$numberDecimal: '2.5'}",
                                      "{$date: {$numberLong: '7'}}",
                                      "{}",
                                      "[]"};

static void scalar(struct text *t)
{
    add(t, "%s", scalars[pick(pick(2) ? 4 : OV_LEN(scalars))]);
}

static void value(struct text *t, int depth);
static void object(struct text *t, int depth)
{
    static const char *const names[] = {"b", "c", "0", "1"};
    const char *comma = "";
    add(t, "{");
    for (size_t i = 0; i < OV_LEN(names) && t->n < 3000; i++)
        if (pick(i < 2 ? 2 : 12) == 0) {
            add(t, "%s'%s': ", comma, names[i]);
            value(t, depth - 1);
            comma = ", ";
        }
    add(t, "}");
}
static void value(struct text *t, int depth)
{
    uint32_t kind = depth > 0 ? pick(8) : 0;
    if (kind == 7) {
        object(t, depth);
    } else if (kind == 6) {
        uint32_t n = pick(4);
        add(t, "[");
        for (uint32_t i = 0; i < n; i++) {
            add(t, "%s", i ? ", " : "");
            if (pick(2) && depth > 1)
                object(t, depth);
            else
                value(t, depth - 1);
        }
        add(t, "]");
    } else {
        scalar(t);
    }
}

static const uint8_t *document(int id)
{
    struct text t = {.n = 0};
    add(&t, "{_id: %d", id);
    for (const char *f = "abc"; *f; f++)
        if (pick(4)) {
            add(&t, ", %c: ", *f);
            value(&t, 3);
        }
    add(&t, "}");
    return J(t.s);
}

static const char *const paths[] = {"a",     "a",   "b",     "c",     "a.b", "a.c",  "a.0",
                                    "a.b.c", "_id", "a.b.0", "a.0.b", "a.1", "b.0.0"};
static const char *path(void)
{
    return paths[pick(OV_LEN(paths))];
}

static const uint8_t *pattern(void)
{
    struct text t = {.n = 0};
    const char *used[3];
    uint32_t n = 0, want = 1 + pick(3);
    add(&t, "{");
    while (n < want) {
        const char *p = path();
        bool again = false;
        for (uint32_t i = 0; i < n; i++)
            again |= strcmp(used[i], p) == 0;
        if (again) {
            want--;
            continue;
        }
        add(&t, "%s'%s': %d", n ? ", " : "", p, pick(2) ? 1 : -1);
        used[n++] = p;
    }
    add(&t, "}");
    return J(t.s);
}

static void condition(struct text *t)
{
    static const char *const ops[] = {"~eq", "~gt", "~gte", "~lt", "~lte"};
    switch (pick(11)) {
    case 0:
        add(t, "{~in: [");
        for (uint32_t i = 0, n = pick(4); i < n; i++) {
            add(t, "%s", i ? ", " : "");
            value(t, 1);
        }
        add(t, "]}");
        return;
    case 1:
        add(t, "{~exists: %s}", pick(2) ? "true" : "false");
        return;
    case 2:
        add(t, "{~regex: '%s'}", pick(2) ? "^x" : "y");
        return;
    case 3:
        add(t, "{~gte: ");
        scalar(t);
        add(t, ", ~lt: ");
        scalar(t);
        add(t, "}");
        return;
    case 4:
        add(t, "{~ne: ");
        scalar(t);
        add(t, "}");
        return;
    case 5:
        add(t, "{~exists: %s, %s: null}", pick(4) ? "true" : "false", ops[pick(OV_LEN(ops))]);
        return;
    case 6:
        add(t, "{~not: {%s: ", ops[pick(OV_LEN(ops))]);
        value(t, 1);
        add(t, "}}");
        return;
    default:
        add(t, "{%s: ", ops[pick(OV_LEN(ops))]);
        value(t, 2);
        add(t, "}");
    }
}

static void clause(struct text *t, int depth)
{
    uint32_t n = pick(3);
    add(t, "{");
    for (uint32_t i = 0; i < n; i++) {
        if (depth > 0 && pick(6) == 0) {
            add(t, "%s'~%s': [", i ? ", " : "", pick(2) ? "or" : "and");
            clause(t, depth - 1);
            add(t, ", ");
            clause(t, depth - 1);
            add(t, "]");
            break; /* a second one of the name would hide the first */
        }
        add(t, "%s'%s': ", i ? ", " : "", paths[(pick(3) * 4 + i * 2) % OV_LEN(paths)]);
        condition(t);
    }
    add(t, "}");
}

/* ---- a collection in memory ---- */

struct entry {
    struct slice key; /* as in the engine */
    int doc;
};
struct world {
    struct collection coll;
    struct index_def defs[3];
    struct index_rt rts[3];
    const uint8_t *docs[DOCS];
    int n_docs;
    struct entry *entries[3];
    size_t n_entries[3];
};

static int by_key(const void *a, const void *b)
{
    return slice_cmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static void make_index(struct world *w, uint32_t i)
{
    struct buf b;
    buf_init(&b);
    size_t at = bw_begin(&b);
    const uint8_t *key = i ? pattern() : J("{_id: 1}");
    bw_rawdoc(&b, "key", key);
    bw_str(&b, "name", i ? "x" : "_id_");
    bool other = i && bval_is_missing(bdoc_get(key, "_id"));
    if (other && pick(3) == 0)
        bw_bool(&b, "sparse", true);
    if (other && pick(4) == 0)
        bw_bool(&b, "unique", true);
    bw_end(&b, at);
    ck_assert_int_eq(index_parse(arena, b.p, &w->defs[i], &err), 0);
    w->defs[i].is_id = i == 0;
    w->defs[i].state = INDEX_READY;
    w->defs[i].rt = &w->rts[i];
    buf_free(&b);
}

/* Would it give a unique index a key that another document holds? */
static bool collides(const struct world *w, const struct index_def *def, const struct keyset *set)
{
    for (int d = 0; d < w->n_docs && def->unique; d++) {
        struct keyset other;
        ck_assert_int_eq(keygen(def, w->docs[d], arena, &other, &err), 0);
        for (size_t i = 0; i < set->n; i++)
            for (size_t j = 0; j < other.n; j++)
                if (slice_eq(set->keys[i], other.keys[j]))
                    return true;
    }
    return false;
}

static void fill_index(struct world *w, uint32_t i)
{
    struct index_def *def = &w->defs[i];
    size_t cap = 0;
    w->entries[i] = NULL;
    w->n_entries[i] = 0;
    for (int d = 0; d < w->n_docs; d++) {
        struct keyset set;
        ck_assert_int_eq(keygen(def, w->docs[d], arena, &set, &err), 0);
        w->rts[i].multikey |= set.multikey;
        for (size_t k = 0; k < set.n; k++) {
            if (w->n_entries[i] == cap)
                w->entries[i] = ov_realloc(w->entries[i], (cap = cap ? 2 * cap : 64) * sizeof(struct entry));
            uint8_t *key = arena_alloc(arena, set.keys[k].n + 8);
            memcpy(key, set.keys[k].p, set.keys[k].n);
            store_be64(key + set.keys[k].n, (uint64_t)d);
            w->entries[i][w->n_entries[i]++] = (struct entry){slice_of(key, set.keys[k].n + (def->is_id ? 0 : 8)), d};
        }
    }
    if (w->n_entries[i])
        qsort(w->entries[i], w->n_entries[i], sizeof(struct entry), by_key);
}

static void make_world(struct world *w)
{
    memset(w, 0, sizeof(*w));
    for (uint32_t i = 0; i < OV_LEN(w->defs); i++)
        make_index(w, i);
    for (int d = 0; d < DOCS; d++) {
        const uint8_t *doc = document(d);
        struct keyset set;
        bool ok = true;
        for (uint32_t i = 0; i < OV_LEN(w->defs); i++)
            ok = ok && keygen(&w->defs[i], doc, arena, &set, &err) == 0 && /* parallel arrays stay out */
                 !collides(w, &w->defs[i], &set);
        if (ok)
            w->docs[w->n_docs++] = doc;
    }
    for (uint32_t i = 0; i < OV_LEN(w->defs); i++)
        fill_index(w, i);
    w->coll.indexes = w->defs;
    w->coll.n_indexes = OV_LEN(w->defs);
}

static const char *show(const uint8_t *doc)
{
    return bval_shell(arena, bval_from_doc(doc));
}

/* ---- what a plan reads, as the executor would ---- */

struct found {
    struct entry e;
    uint32_t prefix, interval;
};
static const struct plan *merging;
static int by_rest(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int c = slice_cmp(slice_of(x->e.key.p + x->prefix, x->e.key.n - x->prefix),
                      slice_of(y->e.key.p + y->prefix, y->e.key.n - y->prefix));
    return merging->reverse ? -c : c;
}

static bool inside(const struct plan *p, const struct plan_interval *iv, struct slice key)
{
    if (p->kind == PLAN_POINTS) {
        size_t n = p->index->is_id ? key.n : key.n - 8;
        return slice_cmp(iv->from, slice_of(key.p, n)) == 0;
    }
    return slice_cmp(iv->from, key) <= 0 && (!iv->to.p || slice_cmp(key, iv->to) < 0);
}

/* Documents in the order of the plan, each once; their number. */
static int run(const struct world *w, const struct plan *p, int *out)
{
    bool seen[DOCS] = {0};
    int n = 0;
    size_t m = 0;
    if (p->kind == PLAN_EMPTY)
        return 0;
    if (p->kind == PLAN_COLLSCAN) {
        for (int d = 0; d < w->n_docs; d++)
            out[n++] = p->reverse ? w->n_docs - 1 - d : d;
        return n;
    }
    uint32_t index = (uint32_t)(p->index - w->defs);
    size_t total = w->n_entries[index];
    struct found *f = ov_calloc(total * (p->n_intervals + 1) + 1, sizeof(*f));
    for (uint32_t k = 0; k < p->n_intervals; k++) {
        const struct plan_interval *iv = &p->intervals[p->reverse ? p->n_intervals - 1 - k : k];
        if (k + 1 < p->n_intervals)
            ck_assert_msg(slice_cmp(p->intervals[k].from, p->intervals[k + 1].from) < 0,
                          "intervals of %s are not in order", show(p->index->spec));
        for (size_t e = 0; e < total; e++) {
            const struct entry *at = &w->entries[index][p->reverse ? total - 1 - e : e];
            if (inside(p, iv, at->key))
                f[m++] = (struct found){*at, iv->prefix, k};
        }
    }
    merging = p;
    if (p->merge && m)
        qsort(f, m, sizeof(*f), by_rest);
    for (size_t i = 0; i < m; i++) {
        ck_assert(p->dedup || !seen[f[i].e.doc]); /* a plan that gives a record twice says so */
        if (!seen[f[i].e.doc])
            out[n++] = f[i].e.doc;
        seen[f[i].e.doc] = true;
    }
    free(f);
    return n;
}

static void check_query(const struct world *w, const uint8_t *filter, const uint8_t *order, struct bval hint,
                        bool whole)
{
    struct match *m;
    struct sort_spec sort = {0};
    struct plan plan;
    int docs[DOCS], n;
    bool found[DOCS] = {0};
    ck_assert_int_eq(match_parse(arena, filter, &m, &err), 0);
    if (order)
        ck_assert_int_eq(sort_parse(arena, order, &sort, &err), 0);
    ck_assert_int_eq(plan_make(arena, &w->coll, m, order ? &sort : NULL, hint, 1, &plan, &err), 0);
    n = run(w, &plan, docs);
    struct buf last = {0}, key = {0};
    bool any = false;
    for (int i = 0; i < n; i++) {
        found[docs[i]] = true;
        if (!plan.sorted || !order || !match_doc(m, w->docs[docs[i]], NULL))
            continue;
        key.len = 0;
        if (sort_key_checked(&sort, w->docs[docs[i]], &key, &err) != 0)
            continue;
        if (any)
            ck_assert_msg(slice_cmp(buf_slice(&last), buf_slice(&key)) <= 0, "order %s of %s by %s: %s comes late",
                          show(order), show(filter), show(plan.index->spec), show(w->docs[docs[i]]));
        any = true;
        last.len = 0;
        buf_append(&last, key.p, key.len);
    }
    buf_free(&last);
    buf_free(&key);
    whole |= plan.index && !plan.index->sparse; /* a sparse index that is asked for may lose some */
    for (int d = 0; d < w->n_docs && whole; d++)
        ck_assert_msg(found[d] || !match_doc(m, w->docs[d], NULL), "%s by %s of kind %d loses %s", show(filter),
                      plan.index ? show(plan.index->spec) : "none", plan.kind, show(w->docs[d]));
}

START_TEST(plans_find_every_match_and_keep_the_order)
{
    struct world w;
    arena = arena_new(0);
    err_init(&err, arena);
    for (int round = 0; round < ROUNDS / 10; round++) {
        seed_state = 0x9E3779B97F4A7C15u * (uint64_t)(_i * ROUNDS + round + 1);
        arena_reset(arena);
        make_world(&w);
        for (int q = 0; q < QUERIES; q++) {
            struct text t = {.n = 0};
            clause(&t, 2);
            const uint8_t *filter = J(t.s), *order = pick(2) ? pattern() : NULL;
            check_query(&w, filter, order, BVAL_MISSING, true);
            for (uint32_t i = 1; i < w.coll.n_indexes; i++)
                check_query(&w, filter, order, bval_from_doc(w.defs[i].key_pattern), false);
        }
        for (uint32_t i = 0; i < w.coll.n_indexes; i++)
            free(w.entries[i]);
    }
    arena_free(arena);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, plans_find_every_match_and_keep_the_order, 0, 10);
}
TEST_MAIN("plan/property", add_tests)
