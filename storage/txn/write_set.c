/* The write set. One key has one live operation: a later write replaces the earlier one and takes over what it meant for the count
 * (insert + update = insert, delete + insert = update, insert + delete = nothing). Replaced mutations are squeezed out of the payload
 * when it is asked for. */
#include "storage/txn/write_set.h"

#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "storage/common/key_hash.h"

enum {
    SCAN_BELOW = 8,           /* so few operations are searched one by one */
    KEEP_BYTES = 1024 * 1024, /* buffers above that are given back */
    SPLICE_ABOVE = 2048,      /* smaller values are logged whole: a replay without bases is simpler and quicker */
};

void ws_init(struct write_set *w)
{
    *w = (struct write_set){0};
}

void ws_deinit(struct write_set *w)
{
    buf_free(&w->payload);
    buf_free(&w->values);
    buf_free(&w->pre_keys);
    free(w->ops);
    free(w->table);
    free(w->order);
    free(w->pre);
}

static void shrink(struct buf *b)
{
    b->len = 0;
    if (b->cap > KEEP_BYTES)
        buf_free(b);
}

void ws_clear(struct write_set *w)
{
    shrink(&w->payload);
    shrink(&w->values);
    shrink(&w->pre_keys);
    if (w->cap > KEEP_BYTES / sizeof(*w->ops)) {
        free(w->ops);
        w->ops = NULL;
        w->cap = 0;
    }
    if (w->order_cap > KEEP_BYTES / sizeof(*w->order)) {
        free(w->order);
        w->order = NULL;
        w->order_cap = 0;
    }
    if (w->table_size) {
        if (w->n > SCAN_BELOW && w->table_size <= 4096) {
            memset(w->table, 0, w->table_size * sizeof(*w->table));
        } else if (w->n > SCAN_BELOW) {
            free(w->table);
            w->table = NULL;
            w->table_size = 0;
        }
    }
    w->n = w->live = w->n_order = w->ordered_ops = w->n_pre = 0;
    w->dead = 0;
    w->changes++;
}

static bool same_key(const struct write_set *w, const struct ws_op *o, uint64_t hash, uint64_t keyspace,
                     struct slice key)
{
    return o->hash == hash && o->type != 0 && o->type < MUT_DROP && o->keyspace == keyspace &&
           slice_eq(ws_key(w, o), key);
}

struct ws_op *ws_find(const struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key)
{
    if (w->n <= SCAN_BELOW) {
        for (size_t i = w->n; i-- > 0;)
            if (same_key(w, &w->ops[i], hash, keyspace, key))
                return &w->ops[i];
        return NULL;
    }
    for (size_t at = hash & (w->table_size - 1);; at = (at + 1) & (w->table_size - 1)) {
        uint32_t i = w->table[at];
        if (i == 0)
            return NULL;
        if (same_key(w, &w->ops[i - 1], hash, keyspace, key))
            return &w->ops[i - 1];
    }
}

static void table_add(struct write_set *w, size_t i)
{
    size_t at = w->ops[i].hash & (w->table_size - 1);
    while (w->table[at])
        at = (at + 1) & (w->table_size - 1);
    w->table[at] = (uint32_t)i + 1;
}

/* Called with the new operation in place. Few operations leave the table empty. */
static void index_last(struct write_set *w)
{
    if (w->n <= SCAN_BELOW)
        return;
    if (w->n * 2 > w->table_size || w->n == SCAN_BELOW + 1) {
        if (w->n * 2 > w->table_size) {
            free(w->table);
            w->table_size = OV_MAX(64, w->table_size * 2);
            w->table = ov_calloc(w->table_size, sizeof(*w->table));
        }
        for (size_t i = 0; i < w->n; i++)
            if (w->ops[i].type < MUT_DROP)
                table_add(w, i);
        return;
    }
    if (w->ops[w->n - 1].type < MUT_DROP)
        table_add(w, w->n - 1);
}

/* Appends a mutation with its key and room for its value. */
static struct ws_op *add(struct write_set *w, enum mutation_type type, uint64_t hash, uint64_t keyspace,
                         struct slice key, size_t value_len)
{
    if (w->payload.len == 0) {
        buf_reserve(&w->payload, BATCH_HEADER);
        w->payload.len = BATCH_HEADER;
    }
    if (w->n == w->cap) {
        w->cap = OV_MAX(16, w->cap * 2);
        w->ops = ov_realloc(w->ops, w->cap * sizeof(*w->ops));
    }
    size_t bytes = MUTATION_HEADER + key.n + value_len;
    uint8_t *at = buf_reserve(&w->payload, bytes);
    batch_put_mutation(at, type, keyspace, key.n, value_len);
    if (key.n)
        memcpy(at + MUTATION_HEADER, key.p, key.n);
    struct ws_op *o = &w->ops[w->n++];
    *o = (struct ws_op){
        .hash = hash,
        .keyspace = keyspace,
        .at = w->payload.len,
        .bytes = bytes,
        .value_at = w->payload.len + MUTATION_HEADER + key.n,
        .key_len = (uint32_t)key.n,
        .value_len = (uint32_t)value_len,
        .type = (uint8_t)type,
    };
    w->payload.len += bytes;
    w->live++;
    w->changes++;
    index_last(w);
    return o;
}

/* Takes the earlier operation on the key out; returns its type, 0 if there was none. */
static int replace(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key)
{
    struct ws_op *old = w->n ? ws_find(w, hash, keyspace, key) : NULL;
    if (!old)
        return 0;
    int type = old->type;
    old->type = 0;
    w->live--;
    w->dead += old->bytes;
    w->changes++;
    return type;
}

static enum mutation_type composed(int earlier, enum mutation_type type)
{
    if (earlier == MUT_INSERT)
        return MUT_INSERT;
    if (earlier != 0)
        return MUT_UPDATE;
    return type;
}

void ws_put(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key, struct slice value,
            enum eng_put_kind kind)
{
    enum mutation_type type = composed(replace(w, hash, keyspace, key), kind == ENG_INSERT ? MUT_INSERT : MUT_UPDATE);
    struct ws_op *o = add(w, type, hash, keyspace, key, value.n);
    if (value.n)
        memcpy(w->payload.p + o->value_at, value.p, value.n);
}

void ws_del(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key)
{
    if (replace(w, hash, keyspace, key) != MUT_INSERT) /* inserted and deleted: the world never saw it */
        add(w, MUT_DELETE, hash, keyspace, key, 0);
}

void ws_splice(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key, uint64_t base_ts,
               struct slice value, const struct eng_edit *edits, size_t n)
{
    size_t bytes = value.n > SPLICE_ABOVE ? splice_bytes(edits, n) : SIZE_MAX;
    int earlier = base_ts && bytes < value.n ? replace(w, hash, keyspace, key) : -1;
    if (earlier != 0) { /* small, not smaller, or the base is a buffered value: whole */
        if (earlier > 0) {
            struct ws_op *o = add(w, composed(earlier, MUT_UPDATE), hash, keyspace, key, value.n);
            memcpy(w->payload.p + o->value_at, value.p, value.n);
        } else {
            ws_put(w, hash, keyspace, key, value, ENG_UPDATE);
        }
        return;
    }
    struct ws_op *o = add(w, MUT_SPLICE, hash, keyspace, key, bytes);
    splice_put(w->payload.p + o->value_at, base_ts, value, edits, n);
    o->value_at = w->values.len;
    o->value_len = (uint32_t)value.n;
    buf_append(&w->values, value.p, value.n);
}

void ws_log(struct write_set *w, struct slice record)
{
    struct ws_op *o = add(w, MUT_LOG, 0, 0, slice_of(NULL, 0), record.n);
    if (record.n)
        memcpy(w->payload.p + o->value_at, record.p, record.n);
}

void ws_drop(struct write_set *w, uint64_t keyspace)
{
    add(w, MUT_DROP, 0, keyspace, slice_of(NULL, 0), 0);
}

void ws_require(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key, enum eng_pre pre,
                uint64_t version)
{
    if (w->n_pre == w->pre_cap) {
        w->pre_cap = OV_MAX(8, w->pre_cap * 2);
        w->pre = ov_realloc(w->pre, w->pre_cap * sizeof(*w->pre));
    }
    w->pre[w->n_pre++] = (struct ws_pre){.hash = hash,
                                         .keyspace = keyspace,
                                         .version = version,
                                         .key_at = w->pre_keys.len,
                                         .key_len = key.n,
                                         .pre = pre};
    buf_append(&w->pre_keys, key.p, key.n);
    buf_reserve(&w->pre_keys, 1); /* so that an empty key has a place */
}

/* Moves the live mutations together. */
static void squeeze(struct write_set *w)
{
    uint64_t to = BATCH_HEADER;
    for (size_t i = 0; i < w->n; i++) {
        struct ws_op *o = &w->ops[i];
        if (o->type == 0)
            continue;
        uint64_t back = o->at - to;
        if (back)
            memmove(w->payload.p + to, w->payload.p + o->at, o->bytes);
        o->at = to;
        if (o->type != MUT_SPLICE)
            o->value_at -= back;
        to += o->bytes;
    }
    w->payload.len = to;
    w->dead = 0;
}

struct slice ws_payload(struct write_set *w, bool one_ts)
{
    if (w->live == 0)
        return slice_of(NULL, 0);
    if (w->dead)
        squeeze(w);
    batch_put_header(w->payload.p, one_ts, (uint32_t)w->live);
    return buf_slice(&w->payload);
}

static int order_cmp(const void *a, const void *b, void *arg)
{
    const struct write_set *w = arg;
    const struct ws_op *x = &w->ops[*(const uint32_t *)a], *y = &w->ops[*(const uint32_t *)b];
    return key_cmp(x->keyspace, ws_key(w, x), y->keyspace, ws_key(w, y));
}

/* Sorts what came since the last time and merges it with the rest. */
void ws_sort(struct write_set *w)
{
    if (w->order_cap < w->n) {
        w->order_cap = w->cap;
        w->order = ov_realloc(w->order, w->order_cap * sizeof(*w->order));
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->n_order; i++)
        if (w->ops[w->order[i]].type != 0)
            w->order[kept++] = w->order[i];
    size_t n = kept;
    for (size_t i = w->ordered_ops; i < w->n; i++)
        if (w->ops[i].type != 0 && w->ops[i].type < MUT_DROP)
            w->order[n++] = (uint32_t)i;
    w->ordered_ops = w->n;
    w->n_order = n;
    if (n == kept)
        return;
    qsort_r(w->order + kept, n - kept, sizeof(*w->order), order_cmp, w);
    if (kept == 0 || order_cmp(&w->order[kept - 1], &w->order[kept], w) < 0)
        return;
    uint32_t *late = ov_malloc((n - kept) * sizeof(*late));
    memcpy(late, w->order + kept, (n - kept) * sizeof(*late));
    for (size_t a = kept, b = n - kept, to = n; b > 0;) { /* from the back, in place */
        if (a > 0 && order_cmp(&w->order[a - 1], &late[b - 1], w) > 0)
            w->order[--to] = w->order[--a];
        else
            w->order[--to] = late[--b];
    }
    free(late);
}

size_t ws_lower_bound(const struct write_set *w, uint64_t keyspace, struct slice key)
{
    size_t lo = 0, hi = w->n_order;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const struct ws_op *o = &w->ops[w->order[mid]];
        if (key_cmp(o->keyspace, ws_key(w, o), keyspace, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
