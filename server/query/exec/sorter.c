/* Rows in the order of their sort keys. */
#include "server/query/exec/sorter.h"

#include <stdlib.h>

#include "server/base/assert.h"

/* A larger `top` is sorted in full: its heap would not stay in the processor's cache. */
enum { TOP_MAX = 16384, RUN_ROWS = 4096 };

struct entry {
    uint64_t head; /* the first bytes of the key, big-endian: most comparisons end here */
    uint8_t *data; /* key, document */
    uint32_t key_n;
    int32_t array_index;
    uint64_t rid, ts, seq;
    size_t cap; /* bytes at `data`; top-k reuses them */
};
struct run { /* sorted; entries[at .. end) are still to come */
    size_t at, end;
};
struct sorter {
    const struct sort_spec *spec;
    size_t top; /* 0: all */
    struct arena *arena;
    struct buf key;
    struct entry *entries; /* top-k: a heap with the last one first, until finish */
    size_t n, cap;
    struct run *runs;                /* a heap by their first entries, after finish */
    size_t n_runs, runs_cap, sorted; /* entries in runs */
    uint64_t seq;
    size_t bytes;
    const struct entry *last; /* given last */
    bool again;               /* … and taken back */
};

struct sorter *sorter_new(const struct sort_spec *spec, uint64_t top)
{
    struct sorter *s = ov_calloc(1, sizeof(*s));
    s->spec = spec;
    s->top = top <= TOP_MAX ? (size_t)top : 0;
    buf_init(&s->key);
    return s;
}

static uint64_t head_of(const uint8_t *key, size_t n)
{
    uint8_t first[8] = {0};
    memcpy(first, key, OV_MIN(n, sizeof(first)));
    return load_be64(first);
}

static int compare(const struct entry *a, const struct entry *b)
{
    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    int c = slice_cmp(slice_of(a->data, a->key_n), slice_of(b->data, b->key_n));
    return c ? c : (a->seq > b->seq) - (a->seq < b->seq);
}

static int compare_entries(const void *a, const void *b)
{
    return compare(a, b);
}

static int too_much(struct err *err)
{
    return err_set(err, ERR_QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED,
                   "Sort exceeded memory limit of %u bytes, but did not opt in to external sorting.", SORT_MEMORY_MAX);
}

static void set(struct entry *e, const struct buf *key, const struct exec_row *row, uint64_t seq)
{
    e->head = head_of(key->p, key->len);
    e->key_n = (uint32_t)key->len;
    e->array_index = row->array_index;
    e->rid = row->rid;
    e->ts = row->ts;
    e->seq = seq;
    memcpy(e->data, key->p, key->len);
    memcpy(e->data + key->len, row->doc, bdoc_len(row->doc));
}

static struct entry *new_entry(struct sorter *s)
{
    if (s->n == s->cap) {
        s->cap = OV_MAX((size_t)64, s->cap * 2);
        s->entries = ov_realloc(s->entries, s->cap * sizeof(*s->entries));
    }
    s->entries[s->n] = (struct entry){0};
    return &s->entries[s->n++];
}

/* ---- only the first few ---- */

static void sift_last_down(struct sorter *s) /* from the heap's root */
{
    struct entry *h = s->entries, moving = h[0];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->n; i = child) {
        if (child + 1 < s->n && compare(&h[child + 1], &h[child]) > 0)
            child++;
        if (compare(&h[child], &moving) <= 0)
            break;
        h[i] = h[child];
    }
    h[i] = moving;
}

static void sift_last_up(struct sorter *s)
{
    struct entry *h = s->entries, moving = h[s->n - 1];
    size_t i = s->n - 1;
    for (; i && compare(&moving, &h[(i - 1) / 2]) > 0; i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = moving;
}

static bool beyond_top(const struct sorter *s)
{
    const struct entry *root = &s->entries[0];
    int c = slice_cmp(buf_slice(&s->key), slice_of(root->data, root->key_n));
    return c >= 0; /* an equal one came first */
}

static int add_to_top(struct sorter *s, const struct exec_row *row, struct err *err)
{
    size_t need = s->key.len + bdoc_len(row->doc);
    bool full = s->n == s->top;
    if (full && beyond_top(s))
        return 0;
    struct entry *e = full ? &s->entries[0] : new_entry(s);
    if (e->cap < need) {
        size_t cap = e->cap ? need + need / 4 : need;
        if (s->bytes - e->cap + cap > SORT_MEMORY_MAX)
            return too_much(err);
        free(e->data);
        e->data = ov_malloc(cap);
        s->bytes += cap - e->cap;
        e->cap = cap;
    }
    set(e, &s->key, row, s->seq++);
    if (full)
        sift_last_down(s);
    else
        sift_last_up(s);
    return 0;
}

/* ---- all ---- */

static void end_run(struct sorter *s)
{
    if (s->sorted == s->n)
        return;
    if (s->n_runs == s->runs_cap) {
        s->runs_cap = OV_MAX((size_t)16, s->runs_cap * 2);
        s->runs = ov_realloc(s->runs, s->runs_cap * sizeof(*s->runs));
    }
    qsort(s->entries + s->sorted, s->n - s->sorted, sizeof(*s->entries), compare_entries);
    s->runs[s->n_runs++] = (struct run){s->sorted, s->n};
    s->sorted = s->n;
}

static int add_to_run(struct sorter *s, const struct exec_row *row, struct err *err)
{
    size_t need = s->key.len + bdoc_len(row->doc);
    s->bytes += need + sizeof(struct entry);
    if (s->bytes > SORT_MEMORY_MAX)
        return too_much(err);
    if (!s->arena)
        s->arena = arena_new(0);
    struct entry *e = new_entry(s);
    e->data = arena_alloc(s->arena, need);
    set(e, &s->key, row, s->seq++);
    if (s->n - s->sorted == RUN_ROWS)
        end_run(s);
    return 0;
}

int sorter_add(struct sorter *s, const struct exec_row *row, struct err *err)
{
    s->key.len = 0;
    sort_key(s->spec, row->doc, &s->key);
    return s->top ? add_to_top(s, row, err) : add_to_run(s, row, err);
}

/* ---- reading ---- */

static bool run_before(const struct sorter *s, const struct run *a, const struct run *b)
{
    return compare(&s->entries[a->at], &s->entries[b->at]) < 0;
}

static void sift_run(struct sorter *s, size_t i)
{
    struct run *h = s->runs, moving = h[i];
    for (size_t child; (child = 2 * i + 1) < s->n_runs; i = child) {
        if (child + 1 < s->n_runs && run_before(s, &h[child + 1], &h[child]))
            child++;
        if (!run_before(s, &h[child], &moving))
            break;
        h[i] = h[child];
    }
    h[i] = moving;
}

void sorter_finish(struct sorter *s)
{
    end_run(s);
    for (size_t i = s->n_runs / 2; i-- > 0;)
        sift_run(s, i);
}

static const struct entry *take(struct sorter *s)
{
    if (s->n_runs == 0)
        return NULL;
    struct run *first = &s->runs[0];
    const struct entry *e = &s->entries[first->at++];
    if (first->at == first->end)
        *first = s->runs[--s->n_runs];
    if (s->n_runs)
        sift_run(s, 0);
    return e;
}

bool sorter_next(struct sorter *s, struct exec_row *row)
{
    if (!s->again)
        s->last = take(s);
    s->again = false;
    if (!s->last)
        return false;
    const struct entry *e = s->last;
    *row = (struct exec_row){e->rid, e->ts, e->data + e->key_n, e->array_index};
    return true;
}

void sorter_unget(struct sorter *s)
{
    OV_ASSERT(s->last && !s->again);
    s->again = true;
}

bool sorter_at_end(const struct sorter *s)
{
    return s->n_runs == 0 && !s->again;
}

void sorter_free(struct sorter *s)
{
    if (!s)
        return;
    if (s->top)
        for (size_t i = 0; i < s->n; i++)
            free(s->entries[i].data);
    free(s->entries);
    free(s->runs);
    buf_free(&s->key);
    arena_free(s->arena);
    free(s);
}
