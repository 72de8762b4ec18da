/* $count, and $group as far as it is there: one group, whose accumulators add constants up. */
#include "server/query/stage/stage_private.h"

struct counting {
    struct stage s;
    const struct stage_spec *spec;
    int64_t n;
    struct buf out;
    bool done;
};

/* A count as the server sends it: an int while it fits. */
static void append_count(struct buf *b, const char *name, int64_t n)
{
    if (n <= INT32_MAX)
        bw_i32(b, name, (int32_t)n);
    else
        bw_i64(b, name, n);
}

/* n times the constant: integers widen to long and then to double, as sums do. */
static void append_sum(struct buf *b, const struct group_field *f, int64_t n)
{
    int64_t add, sum;
    if (f->add.type == BSON_TYPE_DOUBLE) {
        bw_f64(b, f->name, bval_f64(f->add) * (double)n);
        return;
    }
    add = bval_i64(f->add);
    if (__builtin_mul_overflow(add, n, &sum))
        bw_f64(b, f->name, (double)add * (double)n);
    else if (f->add.type == BSON_TYPE_INT32 && sum >= INT32_MIN && sum <= INT32_MAX)
        bw_i32(b, f->name, (int32_t)sum);
    else
        bw_i64(b, f->name, sum);
}

static void make_result(struct counting *k)
{
    const struct stage_spec *spec = k->spec;
    size_t doc = bw_begin(&k->out);
    if (spec->kind == STAGE_COUNT) {
        append_count(&k->out, spec->name, k->n);
    } else {
        bw_val(&k->out, "_id", spec->id);
        for (uint32_t i = 0; i < spec->n_fields; i++)
            append_sum(&k->out, &spec->fields[i], k->n);
    }
    bw_end(&k->out, doc);
}

static enum exec_status count_next(struct stage *s, const struct pull *p, const uint8_t **doc)
{
    struct counting *k = OV_CONTAINER(s, struct counting, s);
    const uint8_t *ignored;
    enum exec_status st;
    if (k->done)
        return EXEC_EOF;
    while ((st = s->below->next(s->below, p, &ignored)) == EXEC_ROW)
        k->n++;
    if (st != EXEC_EOF)
        return st;
    k->done = true;
    if (k->n == 0)
        return EXEC_EOF; /* no document, no group */
    make_result(k);
    *doc = k->out.p;
    return EXEC_ROW;
}

static void count_close(struct stage *s)
{
    buf_free(&OV_CONTAINER(s, struct counting, s)->out);
}

struct stage *count_open(struct arena *a, const struct stage_spec *spec)
{
    struct counting *k = arena_zalloc(a, sizeof(*k));
    k->spec = spec;
    buf_init(&k->out);
    k->s.next = count_next;
    k->s.close = count_close;
    return &k->s;
}
