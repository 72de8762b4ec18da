/* What a transaction has written and not committed: the journal payload, serialised while it is filled, and a table of operations
 * over it for reading back (own writes) and for the memtable. Thread: the transaction's. */
#ifndef OV_WRITE_SET_H
#define OV_WRITE_SET_H

#include "server/base/base.h"
#include "server/base/buf.h"
#include "storage/engine.h"
#include "storage/txn/batch.h"

struct ws_op {
    uint64_t hash, keyspace;
    uint64_t at;       /* of the mutation in the payload */
    uint64_t bytes;    /* of the mutation, header included */
    uint64_t value_at; /* of the whole value: in the payload, or in `values` for a splice */
    uint32_t key_len, value_len;
    uint8_t type; /* enum mutation_type; 0: replaced by a later one */
    void *extra;  /* eng_commit's: a large version made before the lock */
};

struct ws_pre { /* a precondition */
    uint64_t hash, keyspace, version;
    size_t key_at, key_len; /* in pre_keys */
    enum eng_pre pre;
};

struct write_set {
    struct buf payload; /* header and mutations */
    struct buf values;  /* results of splices */
    struct ws_op *ops;
    size_t n, cap;   /* operations, replaced ones included */
    size_t live;     /* mutations that go into the journal */
    uint64_t dead;   /* bytes of replaced ones */
    uint32_t *table; /* open addressing by hash once there are many: index + 1 */
    size_t table_size;
    uint32_t *order; /* indexes of the first n_order operations with keys, by key */
    size_t n_order, order_cap, ordered_ops;
    struct ws_pre *pre;
    size_t n_pre, pre_cap;
    struct buf pre_keys;
    uint64_t changes; /* counts writes: scans see that they must look again */
};

void ws_init(struct write_set *w);
void ws_deinit(struct write_set *w);
void ws_clear(struct write_set *w); /* keeps modest buffers for the next use */

/* The buffered operation on the key, or NULL. A MUT_DELETE is one. */
struct ws_op *ws_find(const struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key);

void ws_put(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key, struct slice value,
            enum eng_put_kind kind);
void ws_del(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key);
void ws_splice(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key, uint64_t base_ts,
               struct slice value, const struct eng_edit *edits, size_t n);
void ws_log(struct write_set *w, struct slice record);
void ws_drop(struct write_set *w, uint64_t keyspace);
void ws_require(struct write_set *w, uint64_t hash, uint64_t keyspace, struct slice key, enum eng_pre pre,
                uint64_t version);

static inline struct slice ws_key(const struct write_set *w, const struct ws_op *o)
{
    return slice_of(w->payload.p + o->at + MUTATION_HEADER, o->key_len);
}
static inline struct slice ws_value(const struct write_set *w, const struct ws_op *o)
{
    return slice_of((o->type == MUT_SPLICE ? w->values.p : w->payload.p) + o->value_at, o->value_len);
}
static inline struct slice ws_pre_key(const struct write_set *w, const struct ws_pre *p)
{
    return slice_of(w->pre_keys.p + p->key_at, p->key_len);
}

/* The payload, whole and with its header. Offsets in operations stay right. Valid until the next change. */
struct slice ws_payload(struct write_set *w, bool one_ts);

/* Brings `order` up to date; positions found before are void. */
void ws_sort(struct write_set *w);
/* The first position in `order` whose key is >= (keyspace, key). */
size_t ws_lower_bound(const struct write_set *w, uint64_t keyspace, struct slice key);

#endif
