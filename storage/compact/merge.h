/* Several runs into one: each key's versions that somebody may need, deletions only as long as there is something to hide. */
#ifndef OV_COMPACT_MERGE_H
#define OV_COMPACT_MERGE_H

#include "storage/compact/keep.h"
#include "storage/compact/output.h"
#include "storage/run/run_set.h"

struct merge {
    const struct run_set *from;
    struct run *const
        *below; /* runs that are older than some of `from` and not among them: deletions of their keys stay */
    size_t n_below;
    const struct keep *keep;
    bool (*gone)(void *arg, uint64_t keyspace); /* dropped, and no snapshot is older than the drop */
    void *arg;
};

/* The output is not finished. Errors: ENG_IO, ENG_CORRUPT, ENG_DISK_FULL, ENG_CANCELLED. Thread: background; blocks on disk. */
OV_MUST_CHECK enum eng_result merge_runs(const struct merge *m, struct output *out, struct eng_error *err);

#endif
