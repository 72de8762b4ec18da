/* Random updates of random documents. Whatever comes: the result is well-formed, the edits make it from the old bytes, "changed" means that
 * bytes differ; several operators in one pass do what one update after the other does; what sets a state does nothing the second time. */
#include "server/base/rand.h"
#include "tests/unit/update/harness.h"

static const char *const names[] = {"a", "b", "c", "0", "1", "2", "10", "x"};

static struct rand_gen gen;

static uint32_t below(uint32_t n)
{
    return (uint32_t)rand_below(&gen, n);
}

static void put_value(struct buf *b, const char *name, int depth);

static void put_fields(struct buf *b, int depth, bool array)
{
    char scratch[12];
    uint32_t n = below(5), from = below(OV_LEN(names));
    for (uint32_t i = 0; i < n; i++)
        put_value(b, array ? bw_index(i, scratch) : names[(from + i * 3) % OV_LEN(names)], depth + 1);
}

static void put_value(struct buf *b, const char *name, int depth)
{
    static const char text[] = "a text of some length, cut anywhere, of which edits leave what is alike";
    size_t start;
    switch (below(depth > 3 ? 5 : 9)) {
    case 0:
        bw_i32(b, name, (int32_t)below(4));
        break;
    case 1:
        bw_i64(b, name, below(2) ? INT64_MAX - below(3) : below(4));
        break;
    case 2:
        bw_f64(b, name, below(8) / 2.0);
        break;
    case 3:
        bw_strn(b, name, text, below(sizeof(text)));
        break;
    case 4:
        bw_null(b, name);
        break;
    case 5:
    case 6:
        start = bw_doc(b, name);
        put_fields(b, depth, false);
        bw_end(b, start);
        break;
    default:
        start = bw_arr(b, name);
        put_fields(b, depth, true);
        bw_end(b, start);
    }
}

static void make_doc(struct buf *b)
{
    b->len = 0;
    size_t start = bw_begin(b);
    bw_i32(b, "_id", 1);
    put_fields(b, 0, false);
    bw_end(b, start);
}

enum { OPS = 14 };
static const char *const ops[OPS] = {"$set", "$unset", "$min",  "$max", "$addToSet", "$pullAll", "$pull",
                                     "$inc", "$mul",   "$push", "$pop", "$bit",      "$push",    "$setOnInsert"};
enum { IDEMPOTENT = 7 }; /* the first so many */

struct one {
    uint32_t op;
    char path[64];
    struct buf arg; /* a document with the operand as its only field, named by the path */
};

static void put_operand(struct one *o)
{
    struct buf *b = &o->arg;
    b->len = 0;
    size_t start = bw_begin(b), inner;
    switch (o->op) {
    case 5:
        inner = bw_arr(b, o->path);
        put_fields(b, 2, true);
        bw_end(b, inner);
        break;
    case 6:
        bw_i32(b, o->path, (int32_t)below(4));
        break;
    case 7:
    case 8:
        bw_i32(b, o->path, (int32_t)below(4));
        break;
    case 10:
        bw_i32(b, o->path, below(2) ? 1 : -1);
        break;
    case 11:
        inner = bw_doc(b, o->path);
        bw_i32(b, below(2) ? "or" : "and", (int32_t)below(9));
        bw_end(b, inner);
        break;
    case 12: {
        inner = bw_doc(b, o->path);
        size_t each = bw_arr(b, "$each");
        put_fields(b, 3, true);
        bw_end(b, each);
        if (below(2))
            bw_i32(b, "$position", (int32_t)below(9) - 4);
        if (below(2))
            bw_i32(b, "$slice", (int32_t)below(9) - 4);
        if (below(2))
            bw_i32(b, "$sort", below(2) ? 1 : -1);
        bw_end(b, inner);
        break;
    }
    default:
        put_value(b, o->path, 2);
    }
    bw_end(b, start);
}

static void make_one(struct one *o)
{
    uint32_t parts = 1 + below(3);
    size_t n = 0;
    o->op = below(OPS);
    for (uint32_t i = 0; i < parts; i++)
        n += (size_t)snprintf(o->path + n, sizeof(o->path) - n, "%s%s", i ? "." : "", names[below(OV_LEN(names))]);
    put_operand(o);
}

static const uint8_t *update_of(struct buf *b, struct one *const *all, uint32_t n)
{
    b->len = 0;
    size_t start = bw_begin(b);
    for (uint32_t i = 0; i < n; i++)
        bw_rawdoc(b, ops[all[i]->op], all[i]->arg.p);
    bw_end(b, start);
    return b->p;
}

static void check_run(struct run *r, const uint8_t *doc, const uint8_t *u)
{
    struct err err;
    char *what = arena_printf(r->a, "%s on %s", text_of(r->a, u), text_of(r->a, doc));
    if (r->rc)
        return;
    err_init(&err, r->a);
    ck_assert_msg(bson_check(run_doc(r), r->out.len - 6, 110, &err) == 0, "%s: %s", what, err.msg);
    check_edits(r, doc, what);
    bool differs = bdoc_len(doc) != bdoc_len(run_doc(r)) || memcmp(doc, run_doc(r), bdoc_len(doc)) != 0;
    ck_assert_msg(differs == r->effect.changed, "%s: changed is %d", what, r->effect.changed);
}

/* Digits by value and before names, part by part: the order in which one pass makes new fields. */
static int path_cmp(const void *x, const void *y)
{
    const char *a = (*(struct one *const *)x)->path, *b = (*(struct one *const *)y)->path;
    while (*a && *b) {
        size_t na = strcspn(a, "."), nb = strcspn(b, ".");
        bool da = *a <= '9', db = *b <= '9';
        int c = da != db ? (da ? -1 : 1) : da && na != nb ? (na < nb ? -1 : 1) : strncmp(a, b, OV_MIN(na, nb));
        if (c)
            return c;
        a += na + (a[na] == '.');
        b += nb + (b[nb] == '.');
    }
    return *a ? 1 : *b ? -1 : 0;
}

static void compare_with_single_steps(struct run *whole, const uint8_t *doc, struct one **all, uint32_t n)
{
    struct buf u = {0}, now = {0};
    int rc = 0;
    buf_append(&now, doc, bdoc_len(doc));
    qsort(all, n, sizeof(*all), path_cmp);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        struct run r;
        run_update(&r, now.p, bval_from_doc(update_of(&u, &all[i], 1)), BVAL_MISSING, -1);
        rc = r.rc;
        if (rc == 0) {
            now.len = 0;
            buf_append(&now, run_doc(&r), bdoc_len(run_doc(&r)));
        }
        run_free(&r);
    }
    ck_assert_msg((rc == 0) == (whole->rc == 0), "%s: at once %d, one by one %d", text_of(whole->a, doc), whole->rc,
                  rc);
    if (rc == 0)
        check_doc(whole, now.p, "at once and one by one");
    buf_free(&u);
    buf_free(&now);
}

START_TEST(random_updates)
{
    struct buf doc = {0}, u = {0};
    struct one ones[4] = {0}, *all[4];
    int good = 0, changed = 0;

    rand_seed(&gen, 20240 + (uint64_t)_i);
    for (int round = 0; round < 4000; round++) {
        uint32_t n = 1 + below(4);
        bool idempotent = true;
        make_doc(&doc);
        for (uint32_t i = 0; i < n; i++) {
            make_one(all[i] = &ones[i]);
            idempotent &= ones[i].op < IDEMPOTENT;
        }
        struct run r, again;
        run_update(&r, doc.p, bval_from_doc(update_of(&u, all, n)), BVAL_MISSING, -1);
        check_run(&r, doc.p, u.p);
        if (r.rc == 0) {
            good++;
            changed += r.effect.changed;
            if (idempotent) {
                run_update(&again, run_doc(&r), bval_from_doc(u.p), BVAL_MISSING, -1);
                ck_assert_msg(again.rc == 0 && !again.effect.changed, "%s changes %s", text_of(r.a, u.p),
                              text_of(r.a, run_doc(&r)));
                run_free(&again);
            }
        }
        if (r.rc != ERR_CONFLICTING_UPDATE_OPERATORS)
            compare_with_single_steps(&r, doc.p, all, n);
        run_free(&r);
    }
    ck_assert_msg(good > 500 && changed > 300, "only %d of the updates did anything", changed);
    for (size_t i = 0; i < OV_LEN(ones); i++)
        buf_free(&ones[i].arg);
    buf_free(&doc);
    buf_free(&u);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, random_updates, 0, 4);
}

TEST_MAIN("update/random", add_tests)
