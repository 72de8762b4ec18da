/* The manifest: which files make up the database, as an append-only log of checksummed edits (`MANIFEST-<n>`, named by
 * `CURRENT`, swapped by rename when it has grown). Format and invariants: storage/README.md. An edit is atomic: it is
 * there whole or not at all. */
#ifndef OV_MANIFEST_H
#define OV_MANIFEST_H

#include "server/base/base.h"
#include "storage/engine.h"
#include "storage/file/file.h"

struct manifest;

struct manifest_run { /* a live run file */
    uint64_t id;      /* runs/<16 hex digits>.run; never reused */
    uint64_t order;   /* newer data has the larger order; reads go from the largest down */
    uint64_t bytes;
    uint64_t min_ts, max_ts;
};
struct manifest_count { /* exact keys of a keyspace as of the flushed position */
    uint64_t keyspace;
    int64_t count;
};
struct manifest_drop { /* a dropped keyspace whose data may still lie in runs */
    uint64_t keyspace, ts;
};

struct manifest_edit { /* one atomic change */
    const struct manifest_run *add;
    size_t n_add;
    const uint64_t *remove; /* run ids */
    size_t n_remove;
    const struct manifest_count *counts; /* deltas */
    size_t n_counts;
    const struct manifest_drop *drops;
    size_t n_drops;
    const uint64_t *forget; /* dropped keyspaces of which nothing is left */
    size_t n_forget;
    uint64_t replay_from; /* journal position from which recovery starts; 0 = unchanged */
    uint64_t synced;      /* what the journal knew durable (R3); 0 = unchanged */
    uint64_t max_ts;      /* largest timestamp in runs; 0 = unchanged */
    uint32_t epoch;       /* of the journal; 0 = unchanged */
};

struct
    manifest_state { /* what is in force; runs sorted by order, then id; counts, drops by keyspace; a count may be 0 */
    const struct manifest_run *runs;
    size_t n_runs;
    const struct manifest_count *counts;
    size_t n_counts;
    const struct manifest_drop *drops;
    size_t n_drops;
    uint64_t replay_from, synced, max_ts, next_run_id;
    uint32_t epoch;
};

/* Opens or creates. Errors: ENG_IO, ENG_DISK_FULL, ENG_CORRUPT (damage before the last edit, or a newer format). A torn
 * last edit is dropped.
 * Thread: start-up only. */
OV_MUST_CHECK enum eng_result manifest_open(const struct file_ops *files, struct manifest **out, struct eng_error *err);
void manifest_close(struct manifest *m);
/* Writes and syncs one edit, then applies it to the state. On failure nothing is applied; DISK_FULL may be tried again,
 * any other failure makes the manifest refuse further edits. Thread: flush. */
OV_MUST_CHECK enum eng_result manifest_apply(struct manifest *m, const struct manifest_edit *edit,
                                             struct eng_error *err);
const struct manifest_state *manifest_state(const struct manifest *m); /* valid until the next apply */
uint64_t manifest_new_run_id(
    struct manifest *m); /* taken ids are not given out again after a restart if they were used */

#endif
