/* How large is a collection? For collStats, dbStats and dataSize. Counts are the engine's; bytes on disk are those of the runs that hold its keys.
 * The bytes of the documents are summed by a walk, in slices, while little of the collection is in runs: what is in memory is not kept by
 * keyspace. Of larger collections it is what their runs hold, which is soon nearly everything. */
#ifndef OV_COMMANDS_MEASURE_H
#define OV_COMMANDS_MEASURE_H

#include "server/commands/command.h"

#define MEASURE_WALK_BYTES (32u * 1024 * 1024)

struct measure {
    int64_t count, size;            /* documents, their bytes */
    int64_t storage, index_storage; /* on disk */
    uint32_t n_indexes;
    int64_t index_sizes[INDEX_MAX]; /* on disk, in the order of the definition */
    /* its own */
    struct collection *coll;
    struct eng_txn *txn;
    struct eng_scan *scan;
};

/* Takes a reference of its own; the struct is overwritten. */
void measure_begin(struct measure *m, struct command_ctx *cx, struct collection *coll);
/* DONE: measured, or cx->op.err is set; AGAIN, WAIT as a handler. *budget: bytes that may be walked through yet; lowered. */
enum op_status measure_step(struct measure *m, struct command_ctx *cx, uint64_t *budget);
/* Appends the fields of collStats and $collStats; sizes divided by scale. */
void measure_put(struct buf *b, const struct measure *m, int64_t scale);
void measure_end(struct measure *m); /* idempotent; a pending call is cancelled before */

#endif
