/* Writing a memtable out. The memtable is sealed: nothing in it changes any more. */
#include "storage/compact/flush.h"

enum { NODE_COST = 32 };

void flush_measure(const struct memtable *m, void (*fn)(void *arg, uint64_t keyspace, uint64_t bytes), void *arg)
{
    uint64_t keyspace = 0, bytes = 0;
    bool any = false;
    for (const struct mt_node *n = memtable_first(m); n; n = mt_next(n)) {
        if (any && n->keyspace != keyspace) {
            fn(arg, keyspace, bytes);
            bytes = 0;
        }
        any = true;
        keyspace = n->keyspace;
        bytes += NODE_COST + n->key_len + atomic_load_explicit(&n->newest, memory_order_acquire)->len;
    }
    if (any)
        fn(arg, keyspace, bytes);
}

enum eng_result flush_memtable(const struct memtable *m, const struct keep *keep,
                               bool (*gone)(void *arg, uint64_t keyspace), void *arg, struct output *out,
                               struct eng_error *err)
{
    uint64_t keyspace = 0;
    bool known = false, skip = false;
    for (const struct mt_node *n = memtable_first(m); n; n = mt_next(n)) {
        if (!known || n->keyspace != keyspace) {
            keyspace = n->keyspace;
            known = true;
            skip = gone(arg, keyspace);
        }
        if (skip)
            continue;
        uint64_t until = UINT64_MAX;
        for (const struct mt_version *v = atomic_load_explicit(&n->newest, memory_order_acquire); v;
             v = atomic_load_explicit(&v->older, memory_order_acquire)) {
            /* The newest one always goes out, a deletion too: older layers may hold the key. */
            if (until == UINT64_MAX || keep_needs(keep, v->ts, until)) {
                enum eng_result r = output_add(out, keyspace, mt_key(n), v->ts, v->kind, mt_value(v), err);
                if (r != ENG_OK)
                    return r;
            }
            until = v->ts;
        }
    }
    return ENG_OK;
}
