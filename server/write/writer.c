/* Entering, committing and leaving. */
#include "server/write/writer.h"

enum { SCRATCH_KEEP = 1024 * 1024, BUF_KEEP = 1024 * 1024 };

enum write_result writer_engine(struct writer *w, enum eng_result r)
{
    if (r == ENG_PENDING)
        return WRITE_WAIT;
    w->engine_result = r;
    return WRITE_ENGINE;
}

static enum write_result create(struct writer *w, struct err *err)
{
    bool existed;
    enum ddl_result r = catalog_create(w->c, w->db, w->name, NULL, &existed, w->call, err);
    w->creating =
        r == DDL_PENDING; /* then it must be asked again, even if another one makes the collection meanwhile */
    return r == DDL_OK ? WRITE_OK : r == DDL_PENDING ? WRITE_WAIT : WRITE_FAILED;
}

enum write_result writer_enter(struct writer *w, bool may_create, struct err *err)
{
    while (!w->entered) {
        if (!w->coll && !w->creating)
            w->coll = catalog_get(w->c, w->db, w->name);
        if (!w->coll) {
            if (!may_create)
                return WRITE_OK;
            enum write_result r = create(w, err);
            if (r != WRITE_OK)
                return r;
            continue; /* unless it has been dropped meanwhile */
        }
        switch (catalog_write_enter(w->c, w->coll, w->call)) {
        case ENG_OK:
            w->entered = true;
            w->txn = eng_begin(w->e, 0, 0);
            break;
        case ENG_PENDING:
            return WRITE_WAIT;
        default: /* not the newest definition */
            collection_unref(w->coll);
            w->coll = NULL;
        }
    }
    return WRITE_OK;
}

enum write_result writer_commit(struct writer *w)
{
    if (!w->txn)
        return WRITE_OK;
    if (OV_UNLIKELY(w->outcomes != NULL) && !w->committing && !w->outcomes->put(w->outcomes, w->txn)) {
        eng_abort(w->txn);
        w->batch = 0;
        return WRITE_FAILED;
    }
    w->committing = true;
    uint64_t ts = w->last_ts;
    enum eng_result r = eng_commit(w->txn, ENG_DUR_LOCAL, &ts, w->call);
    if (r == ENG_PENDING)
        return WRITE_WAIT;
    if (r == ENG_OK)
        w->last_ts = ts;
    w->committing = false;
    w->committed += r == ENG_OK ? w->batch : 0;
    w->batch = 0;
    return r == ENG_OK ? WRITE_OK : writer_engine(w, r);
}

enum write_result writer_lock(struct writer *w, uint64_t keyspace, struct slice key)
{
    enum eng_result r = eng_lock(w->txn, keyspace, key, w->call);
    if (OV_LIKELY(r == ENG_OK))
        return WRITE_OK;
    if (r != ENG_PENDING || w->batch == 0)
        return writer_engine(w, r);
    eng_call_cancel(w->e, w->call);
    return WRITE_RESTART;
}

void writer_drop_document(struct writer *w)
{
    if (w->batch == 0)
        eng_abort(w->txn);
}

static void leave(struct writer *w)
{
    eng_end(w->txn);
    w->txn = NULL;
    w->batch = 0;
    w->committing = false;
    if (w->entered)
        catalog_write_leave(w->c, w->coll);
    w->entered = false;
    collection_unref(w->coll);
    w->coll = NULL;
}

void writer_make_way(struct writer *w)
{
    if (w->entered && w->batch == 0 && OV_UNLIKELY(atomic_load_explicit(&w->coll->rt->ddl, memory_order_relaxed)))
        leave(w);
}

void writer_hold(struct writer *w)
{
    if (w->txn)
        eng_txn_hold(w->txn);
}

static void trim(struct buf *b)
{
    if (b->cap > BUF_KEEP)
        buf_free(b);
    b->len = 0;
}

struct arena *writer_next_document(struct writer *w)
{
    trim(&w->doc);
    trim(&w->key);
    if (w->documents++ == 0) /* most commands have but one */
        return w->arena;
    if (w->scratch && arena_used(w->scratch) > SCRATCH_KEEP) {
        arena_free(w->scratch);
        w->scratch = NULL;
    }
    if (w->scratch)
        arena_reset(w->scratch);
    else
        w->scratch = arena_new(0);
    return w->scratch;
}

void writer_cancel(struct writer *w)
{
    catalog_cancel(w->c, w->call);
    eng_call_cancel(w->e, w->call);
}

void writer_end(struct writer *w)
{
    leave(w);
    arena_free(w->scratch);
    w->scratch = NULL;
    buf_free(&w->doc);
    buf_free(&w->key);
}
