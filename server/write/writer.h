/* A writing command's hold on its collection: enters it (making it first, where asked), owns the transaction that locks and buffers, and
 * commits in sub-batches. What happens to one document is change.h; how documents are found is modify.h.
 *
 * Deadlocks: a writer locks one document, then its unique keys in order (R22). A batch holds the locks of its earlier documents too, so a
 * writer never waits for a lock with documents in its batch: it commits them first and starts over with the document in hand. */
#ifndef OV_WRITER_H
#define OV_WRITER_H

#include "server/catalog/catalog.h"
#include "server/op/operation.h"

enum write_result {
    WRITE_OK,
    WRITE_WAIT,    /* call->wake comes; call the same again */
    WRITE_AGAIN,   /* the slice is over; call the same again */
    WRITE_FAILED,  /* err tells; the writer goes on to be usable, earlier documents are still in its batch */
    WRITE_RESTART, /* the batch is to be committed, then the document in hand begun anew */
    WRITE_ENGINE,  /* w->engine_result tells; the batch is gone */
};
/* Keeps what a retry of the command is to be told, in the batch that does it (server/session/retry.h). */
struct write_outcomes {
    /* A document has just entered the batch: `before` is NULL for an insertion, `after` for a removal. */
    void (*note)(struct write_outcomes *o, const uint8_t *before, const uint8_t *after);
    /* The batch is about to be committed. False: it must not be; the command's error tells why. */
    bool (*put)(struct write_outcomes *o, struct eng_txn *t);
};

enum { WRITE_BATCH_DOCS = 64, WRITE_BATCH_BYTES = 256 * 1024 };

struct writer {
    /* Set by the caller, who owns all of it; they live as long as the writer. */
    struct engine *e;
    struct catalog *c;
    struct operation *op;  /* ends slices; NULL: never */
    struct eng_call *call; /* the same for all */
    struct arena *arena;   /* the command's: errors and results live there */
    const char *db, *name;
    bool bypass_validation;          /* bypassDocumentValidation */
    struct write_outcomes *outcomes; /* NULL: nobody asks */
    /* To be read. */
    struct collection *coll; /* while entered; NULL: there is none */
    struct eng_txn *txn;     /* while entered */
    enum eng_result engine_result;
    uint32_t batch;     /* documents changed and not committed */
    uint64_t committed; /* documents changed and committed */
    uint64_t last_ts;   /* of the last commit; 0: none */
    /* Its own. */
    bool entered, committing;
    bool creating;         /* the catalog was told to make the collection and has not answered */
    uint32_t documents;    /* begun so far */
    struct arena *scratch; /* of the second and later documents */
    struct buf doc, key;
};

/* Resolves the name and enters as a writer. Without such a collection: makes it if `create` says so, else OK with w->coll NULL.
 * Does nothing if entered already. Errors: names (73), 13297 … */
OV_MUST_CHECK enum write_result writer_enter(struct writer *w, bool create, struct err *err);
/* Commits what is in the batch, not waiting for the disk. OK, WAIT; ENGINE, or FAILED by w->outcomes: nothing of the batch happened. */
OV_MUST_CHECK enum write_result writer_commit(struct writer *w);
/* Locks a record or a unique key. RESTART instead of a wait while documents are in the batch: their locks may be what the other one needs. */
OV_MUST_CHECK enum write_result writer_lock(struct writer *w, uint64_t keyspace, struct slice key);
/* A document has come to nothing: lets go of its locks if the batch is empty. (Else they go with the batch, and writer_lock does not wait.) */
void writer_drop_document(struct writer *w);
/* Is the batch to be committed before the next document? Also at the end of a slice: nothing is locked while others run. */
static inline bool writer_batch_full(const struct writer *w)
{
    return w->batch >= WRITE_BATCH_DOCS || (w->batch && eng_txn_bytes(w->txn) >= WRITE_BATCH_BYTES);
}
/* Leaves the collection if DDL waits for it; nothing may be in hand or in the batch. */
void writer_make_way(struct writer *w);
/* Before WAIT and AGAIN. */
void writer_hold(struct writer *w);
/* Memory for the next document, valid until the one after it. */
struct arena *writer_next_document(struct writer *w);
/* Keeps a result of the engine. PENDING: WRITE_WAIT, else WRITE_ENGINE. */
enum write_result writer_engine(struct writer *w, enum eng_result r);
/* Ends what is pending for w->call: before writer_end where a command ends early. Inside a step. */
void writer_cancel(struct writer *w);
/* Gives up what is not committed, leaves the collection, frees. Nothing may be pending. Inside a step. Idempotent. */
void writer_end(struct writer *w);

#endif
