/* The journal: the append-only files in which a write becomes durable. Format and invariants: storage/README.md.
 * Rules R1-R5, R8-R10 of the engine's rule list live here. It knows records and positions, not what a payload means. */
#ifndef OV_JOURNAL_H
#define OV_JOURNAL_H

#include "server/base/base.h"
#include "storage/engine.h"
#include "storage/file/file.h"

struct journal;
typedef uint64_t lsn_t; /* byte position since the journal was born */

enum journal_type { JOURNAL_BATCH = 1, JOURNAL_START = 2, JOURNAL_MARK = 3, JOURNAL_PAD = 4 };

struct journal_options {
    const struct file_ops *files;
    uint64_t segment_bytes; /* largest segment, a power of two from 16 KiB on; the first ones are smaller (doubling) */
    uint64_t first_bytes;   /* size of the very first segment, a power of two; 0 = 1 MiB */
    uint32_t commit_interval_ms; /* how often the journal is synced when nobody asks */
    bool manual;                 /* no thread: journal_background_step does its work */
    lsn_t replay_from; /* where recovery starts (the manifest says): the end of a batch, or 0 for the journal's birth */
    lsn_t known_synced;   /* what the manifest recorded as durable (R3) */
    uint64_t known_ts;    /* largest timestamp the manifest knows (R11) */
    uint32_t known_epoch; /* epoch of the manifest's last edit */
};

struct journal_record { /* as replay sees it */
    lsn_t lsn, end;
    uint64_t first_ts;
    uint32_t count;       /* operations */
    struct slice payload; /* a whole batch, parts joined; valid during the call */
};
/* Called for every whole batch from replay_from on, in order. Not ENG_OK ends the opening with that result. */
typedef enum eng_result (*journal_replay_fn)(void *arg, const struct journal_record *r, struct eng_error *err);

/* Opens the journal in `journal/`, creating it if absent: replays, decides torn tail or corruption (J3, R1, R3, R4),
 * rewrites and syncs the tail above S (R5), starts a new epoch with a synced START record. Sets *out and *last_ts (the
 * largest timestamp seen, cut ones too: R11).
 * Errors: ENG_IO, ENG_CORRUPT, ENG_DISK_FULL. Thread: start-up only; blocks on disk. */
OV_MUST_CHECK enum eng_result journal_open(const struct journal_options *opt, journal_replay_fn replay, void *arg,
                                           struct journal **out, uint64_t *last_ts, struct eng_error *err);
void journal_close(struct journal *j); /* writes, syncs, closes; accepts NULL */

#define JOURNAL_BATCH_MAX ((size_t)1 << 30) /* payload bytes of a batch, all parts together */

/* Is there prepared space for a batch of n payload bytes? OK, or PENDING (being prepared; c is woken), DISK_FULL (the
 * attempt that the call waited for found no room; asking again tries again), READ_ONLY, TOO_LARGE (over
 * JOURNAL_BATCH_MAX).
 * Thread: any, not holding RANK_COMMIT. Callers check again, by journal_fits, under it. */
OV_MUST_CHECK enum eng_result journal_reserve(struct journal *j, size_t n, struct eng_call *c);
bool journal_fits(const struct journal *j, size_t n); /* holding RANK_COMMIT: the append below cannot fail */

/* Copies one batch (cut into parts where it must be) behind the tail and sets *end. payload_crc: crc32c(0, payload),
 * computed before the lock. Never fails: space was checked (R14). Durable against kill once journal_write covers *end,
 * against power loss once synced.
 * Thread: any, holding RANK_COMMIT; no I/O. */
void journal_append(struct journal *j, struct slice payload, uint32_t payload_crc, uint64_t first_ts, uint32_t count,
                    lsn_t *end);

lsn_t journal_tail(const struct journal *j);    /* end of what was appended */
lsn_t journal_written(const struct journal *j); /* end of what is with the kernel */
lsn_t journal_synced(const struct journal *j);  /* end of what is known durable */

/* Writes everything appended so far: one pwrite for all pending bytes. OK (at once if another thread has done it),
 * PENDING while another thread is writing what we need (c is woken), READ_ONLY after a failure. Thread: any, holding no
 * mutex. */
OV_MUST_CHECK enum eng_result journal_write(struct journal *j, lsn_t upto, struct eng_call *c);
/* OK once synced >= upto; PENDING (the journal thread's next fdatasync serves all who wait); READ_ONLY after a failure. */
OV_MUST_CHECK enum eng_result journal_sync(struct journal *j, lsn_t upto, struct eng_call *c);
/* The same, blocking: for the flush thread, which must not let a run get ahead of the journal (R6), and for tests. */
OV_MUST_CHECK enum eng_result journal_sync_blocking(struct journal *j, lsn_t upto);
void journal_cancel(struct journal *j, struct eng_call *c);

/* Everything below `lsn` is in runs: older segments are recycled (link count 1, no readers: R7) or removed. Thread:
 * flush. */
void journal_release(struct journal *j, lsn_t lsn);

uint32_t journal_epoch(const struct journal *j);
void journal_error(struct journal *j, struct eng_error *out); /* why it failed; ENG_OK when it has not */
void journal_stats(struct journal *j, struct eng_stats *out); /* fills the journal_ fields */
bool journal_background_step(struct journal *j);              /* manual mode */

#endif
