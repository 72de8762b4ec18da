/* Sizes of one collection. */
#include "server/commands/measure.h"

void measure_begin(struct measure *m, struct command_ctx *cx, struct collection *coll)
{
    struct engine *e = cx->server->engine;
    uint64_t disk, logical;
    *m = (struct measure){.coll = collection_ref(coll), .n_indexes = coll->n_indexes};
    eng_keyspace_size(e, coll->records, &disk, &logical);
    m->count = eng_count(e, coll->records);
    m->storage = (int64_t)disk;
    m->size = (int64_t)logical;
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        eng_keyspace_size(e, coll->indexes[i].keyspace, &disk, &logical);
        m->index_sizes[i] = (int64_t)disk;
        m->index_storage += (int64_t)disk;
    }
}

static void close_scan(struct measure *m)
{
    eng_scan_close(m->scan);
    eng_end(m->txn);
    m->scan = NULL;
    m->txn = NULL;
}

void measure_end(struct measure *m)
{
    close_scan(m);
    collection_unref(m->coll);
    m->coll = NULL;
}

static void open_scan(struct measure *m, struct command_ctx *cx)
{
    m->size = 0;
    m->txn = eng_begin(cx->server->engine, ENG_TXN_READ_ONLY, 0);
    m->scan = eng_scan_open(m->txn, &(struct eng_range){.keyspace = m->coll->records});
}

enum op_status measure_step(struct measure *m, struct command_ctx *cx, uint64_t *budget)
{
    struct eng_page page;
    if (!m->scan) {
        if (m->size > MEASURE_WALK_BYTES || *budget == 0)
            return OP_DONE;
        open_scan(m, cx);
    }
    do {
        uint64_t bytes = 0;
        enum eng_result r = eng_scan_next(m->scan, &page, &cx->call);
        if (r == ENG_PENDING) {
            eng_txn_hold(m->txn);
            return OP_WAIT;
        }
        if (r != ENG_OK)
            return command_engine_error(cx, r);
        for (size_t i = 0; i < page.n; i++)
            bytes += page.rows[i].value.n;
        m->size += (int64_t)bytes;
        *budget -= OV_MIN(*budget, bytes);
        if (page.more && op_slice_over(&cx->op)) {
            eng_txn_hold(m->txn);
            return OP_AGAIN;
        }
    } while (page.more);
    close_scan(m);
    return OP_DONE;
}

/* ---- told ---- */

static void put_number(struct buf *b, const char *name, int64_t v) /* int, if it is small enough */
{
    if (v >= INT32_MIN && v <= INT32_MAX)
        bw_i32(b, name, (int32_t)v);
    else
        bw_i64(b, name, v);
}

void measure_put(struct buf *b, const struct measure *m, int64_t scale)
{
    put_number(b, "size", m->size / scale);
    put_number(b, "count", m->count);
    if (m->count)
        put_number(b, "avgObjSize", m->size / m->count);
    bw_i32(b, "numOrphanDocs", 0);
    put_number(b, "storageSize", m->storage / scale);
    if (m->coll)
        bw_bool(b, "capped", bval_truthy(bdoc_get(m->coll->options, "capped")));
    bw_i32(b, "nindexes", (int32_t)m->n_indexes);
    size_t at = bw_arr(b, "indexBuilds");
    uint32_t n = 0;
    char scratch[12];
    for (uint32_t i = 0; i < m->n_indexes; i++)
        if (m->coll->indexes[i].state == INDEX_BUILDING)
            bw_str(b, bw_index(n++, scratch), m->coll->indexes[i].name);
    bw_end(b, at);
    put_number(b, "totalIndexSize", m->index_storage / scale);
    put_number(b, "totalSize", (m->storage + m->index_storage) / scale);
    at = bw_doc(b, "indexSizes");
    for (uint32_t i = 0; i < m->n_indexes; i++)
        put_number(b, m->coll->indexes[i].name, m->index_sizes[i] / scale);
    bw_end(b, at);
    put_number(b, "scaleFactor", scale);
}
