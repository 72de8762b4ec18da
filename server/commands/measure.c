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
