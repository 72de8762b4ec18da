/* The manifest's state and the coding of edits: pure functions of bytes, so that what comes from disk is judged in one
 * place. */
#include <stdlib.h>

#include "server/base/arena.h"
#include "storage/manifest/manifest_private.h"

void state_deinit(struct state *st)
{
    free((void *)st->s.runs);
    free((void *)st->s.counts);
    free((void *)st->s.drops);
    *st = (struct state){0};
}

/* ---- writing ---- */

void edit_encode(const struct manifest_edit *e, uint64_t next_run_id, struct buf *out)
{
    buf_le64(out, e->replay_from);
    buf_le64(out, e->synced);
    buf_le64(out, e->max_ts);
    buf_le64(out, next_run_id);
    buf_le32(out, e->epoch);
    buf_le32(out, (uint32_t)e->n_add);
    buf_le32(out, (uint32_t)e->n_remove);
    buf_le32(out, (uint32_t)e->n_counts);
    buf_le32(out, (uint32_t)e->n_drops);
    buf_le32(out, (uint32_t)e->n_forget);
    for (size_t i = 0; i < e->n_add; i++) {
        buf_le64(out, e->add[i].id);
        buf_le64(out, e->add[i].order);
        buf_le64(out, e->add[i].bytes);
        buf_le64(out, e->add[i].min_ts);
        buf_le64(out, e->add[i].max_ts);
    }
    for (size_t i = 0; i < e->n_remove; i++)
        buf_le64(out, e->remove[i]);
    for (size_t i = 0; i < e->n_counts; i++) {
        buf_le64(out, e->counts[i].keyspace);
        buf_le64(out, (uint64_t)e->counts[i].count);
    }
    for (size_t i = 0; i < e->n_drops; i++) {
        buf_le64(out, e->drops[i].keyspace);
        buf_le64(out, e->drops[i].ts);
    }
    for (size_t i = 0; i < e->n_forget; i++)
        buf_le64(out, e->forget[i]);
}

void state_encode(struct state *st, struct buf *out)
{
    struct manifest_state *s = &st->s;
    struct manifest_count *v = (struct manifest_count *)s->counts;
    size_t n = 0;

    for (size_t i = 0; i < s->n_counts; i++) {
        if (v[i].count != 0)
            v[n++] = v[i];
    }
    s->n_counts = n;
    edit_encode(&(struct manifest_edit){.add = s->runs,
                                        .n_add = s->n_runs,
                                        .counts = s->counts,
                                        .n_counts = s->n_counts,
                                        .drops = s->drops,
                                        .n_drops = s->n_drops,
                                        .replay_from = s->replay_from,
                                        .synced = s->synced,
                                        .max_ts = s->max_ts,
                                        .epoch = s->epoch},
                s->next_run_id, out);
}

/* ---- applying ---- */

static void *grow(const void *v, size_t n, size_t more, size_t *cap, size_t size)
{
    if (n + more <= *cap)
        return (void *)v;
    *cap = OV_MAX(n + more, *cap * 2);
    return ov_realloc((void *)v, *cap * size);
}

static bool run_before(const struct manifest_run *a, const struct manifest_run *b)
{
    return a->order != b->order ? a->order < b->order : a->id < b->id;
}

static bool has_run(const struct manifest_state *s, uint64_t id)
{
    for (size_t i = 0; i < s->n_runs; i++) {
        if (s->runs[i].id == id)
            return true;
    }
    return false;
}

static bool remove_run(struct state *st, uint64_t id)
{
    struct manifest_run *v = (struct manifest_run *)st->s.runs;

    for (size_t i = 0; i < st->s.n_runs; i++) {
        if (v[i].id == id) {
            memmove(v + i, v + i + 1, (--st->s.n_runs - i) * sizeof(*v));
            return true;
        }
    }
    return false;
}

static bool add_run(struct state *st, const struct manifest_run *r)
{
    struct manifest_run *v;
    size_t i = st->s.n_runs;

    if (r->id == 0 || has_run(&st->s, r->id))
        return false;
    v = grow(st->s.runs, st->s.n_runs, 1, &st->runs_cap, sizeof(*v));
    st->s.runs = v;
    while (i > 0 && run_before(r, &v[i - 1]))
        i--;
    memmove(v + i + 1, v + i, (st->s.n_runs++ - i) * sizeof(*v));
    v[i] = *r;
    st->s.next_run_id = OV_MAX(st->s.next_run_id, r->id + 1);
    return true;
}

/* Index of `keyspace` in v[0 .. n), whose elements are `size` bytes and start with the keyspace; or where it would go. */
static size_t find(const void *v, size_t n, size_t size, uint64_t keyspace, bool *there)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (load_le64((const char *)v + mid * size) < keyspace)
            lo = mid + 1;
        else
            hi = mid;
    }
    *there = lo < n && load_le64((const char *)v + lo * size) == keyspace;
    return lo;
}

static void set_drop(struct state *st, uint64_t keyspace, uint64_t ts)
{
    bool there;
    size_t at = find(st->s.drops, st->s.n_drops, sizeof(struct manifest_drop), keyspace, &there);
    struct manifest_drop *v = grow(st->s.drops, st->s.n_drops, 1, &st->drops_cap, sizeof(*v));

    st->s.drops = v;
    if (!there)
        memmove(v + at + 1, v + at, (st->s.n_drops++ - at) * sizeof(*v));
    v[at] = (struct manifest_drop){.keyspace = keyspace, .ts = ts};
}

static void forget(struct state *st, uint64_t keyspace)
{
    struct manifest_drop *v = (struct manifest_drop *)st->s.drops;
    struct manifest_count *c = (struct manifest_count *)st->s.counts;
    bool there;
    size_t at = find(v, st->s.n_drops, sizeof(*v), keyspace, &there);

    if (there)
        memmove(v + at, v + at + 1, (--st->s.n_drops - at) * sizeof(*v));
    at = find(c, st->s.n_counts, sizeof(*c), keyspace, &there);
    if (there)
        c[at].count = 0; /* goes when the state is next written whole */
}

static int compare_keyspace(const void *a, const void *b)
{
    uint64_t x = ((const struct manifest_count *)a)->keyspace, y = ((const struct manifest_count *)b)->keyspace;
    return (x > y) - (x < y);
}

/* Keyspaces that are there are changed in place; new ones are sorted and merged in, from the back, in one go: with a
 * hundred thousand keyspaces an insertion each would be slow. */
static void add_counts(struct state *st, const uint8_t *p, size_t n)
{
    struct manifest_count *fresh = ov_malloc((n + 1) * sizeof(*fresh)), *v;
    size_t n_fresh = 0, old, to;
    bool there;

    for (size_t i = 0; i < n; i++, p += EDIT_PAIR) {
        size_t at = find(st->s.counts, st->s.n_counts, sizeof(*v), load_le64(p), &there);
        if (there) {
            v = (struct manifest_count *)&st->s.counts[at];
            v->count = (int64_t)((uint64_t)v->count + load_le64(p + 8));
        } else {
            fresh[n_fresh++] = (struct manifest_count){.keyspace = load_le64(p), .count = (int64_t)load_le64(p + 8)};
        }
    }
    qsort(fresh, n_fresh, sizeof(*fresh), compare_keyspace);
    for (size_t i = 1, k = 0; i < n_fresh; i++) { /* the same keyspace twice in one edit */
        if (fresh[i].keyspace == fresh[k].keyspace)
            fresh[k].count = (int64_t)((uint64_t)fresh[k].count + (uint64_t)fresh[i].count);
        else
            fresh[++k] = fresh[i];
        if (i + 1 == n_fresh)
            n_fresh = k + 1;
    }
    v = grow(st->s.counts, st->s.n_counts, n_fresh, &st->counts_cap, sizeof(*v));
    st->s.counts = v;
    for (old = st->s.n_counts, to = old + n_fresh; n_fresh > 0;) {
        if (old > 0 && v[old - 1].keyspace > fresh[n_fresh - 1].keyspace) {
            v[--to] = v[--old];
        } else {
            v[--to] = fresh[--n_fresh];
            st->s.n_counts++;
        }
    }
    free(fresh);
}

bool state_apply(struct state *st, struct slice payload)
{
    const uint8_t *p = payload.p;
    struct manifest_state *s = &st->s;
    uint64_t n[5], bytes = EDIT_FIXED;
    static const size_t sizes[5] = {EDIT_RUN, EDIT_ID, EDIT_PAIR, EDIT_PAIR, EDIT_ID};

    if (payload.n < EDIT_FIXED)
        return false;
    for (int i = 0; i < 5; i++) {
        n[i] = load_le32(p + 36 + 4 * i);
        bytes += n[i] * sizes[i];
    }
    if (bytes != payload.n)
        return false;
    s->replay_from = load_le64(p) ? load_le64(p) : s->replay_from;
    s->synced = OV_MAX(s->synced, load_le64(p + 8));
    s->max_ts = OV_MAX(s->max_ts, load_le64(p + 16));
    s->next_run_id = OV_MAX(s->next_run_id, load_le64(p + 24));
    s->epoch = OV_MAX(s->epoch, load_le32(p + 32));
    p += EDIT_FIXED;
    /* Removals first: a merge may leave a run that takes the place of another, never its id. */
    for (uint64_t i = 0; i < n[1]; i++) {
        if (!remove_run(st, load_le64(p + n[0] * EDIT_RUN + i * EDIT_ID)))
            return false;
    }
    for (uint64_t i = 0; i < n[0]; i++, p += EDIT_RUN) {
        struct manifest_run r = {.id = load_le64(p),
                                 .order = load_le64(p + 8),
                                 .bytes = load_le64(p + 16),
                                 .min_ts = load_le64(p + 24),
                                 .max_ts = load_le64(p + 32)};
        if (!add_run(st, &r))
            return false;
    }
    p += n[1] * EDIT_ID;
    add_counts(st, p, (size_t)n[2]);
    p += n[2] * EDIT_PAIR;
    for (uint64_t i = 0; i < n[3]; i++, p += EDIT_PAIR)
        set_drop(st, load_le64(p), load_le64(p + 8));
    for (uint64_t i = 0; i < n[4]; i++, p += EDIT_ID)
        forget(st, load_le64(p));
    return true;
}

bool edit_fits(const struct state *st, const struct manifest_edit *e)
{
    for (size_t i = 0; i < e->n_remove; i++) {
        if (!has_run(&st->s, e->remove[i]))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (e->remove[k] == e->remove[i])
                return false;
        }
    }
    for (size_t i = 0; i < e->n_add; i++) {
        if (e->add[i].id == 0 || has_run(&st->s, e->add[i].id))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (e->add[k].id == e->add[i].id)
                return false;
        }
    }
    return true;
}
