/* Which runs to merge next. Pure functions over what is known of the runs. */
#ifndef OV_COMPACT_PICK_H
#define OV_COMPACT_PICK_H

#include "storage/run/run_set.h"

struct pick_options {
    uint32_t width;                             /* merge when so many layers of about one size lie on each other */
    uint64_t tiny_bytes;                        /* smaller runs are gathered */
    uint64_t oldest;                            /* no snapshot is older: deletions up to it are garbage */
    bool (*gone)(void *arg, uint64_t keyspace); /* a dropped keyspace that nobody can see any more */
    void *arg;
};

/* Fills out[] (room for set->n_runs) with the runs to merge into one place, and returns their number; 0: nothing to do.
 * Runs marked busy are left alone. The answer is closed: any other run that overlaps one of them is newer than all of them, or older
 * than each one that it overlaps. */
size_t pick_merge(const struct run_set *set, const struct pick_options *opt, struct run **out);

#endif
