/* What the engine's own files share: the engine, its layers, a transaction. Nobody outside storage/ and tests includes it.
 *
 *   engine.c         open, close, layers, facts           engine_txn.c     transactions: reads, locks, buffered writes
 *   engine_commit.c  commit, durability, watchers         engine_scan.c    scans, scan_source.c
 *   engine_flush.c   sealing, memtables into runs         engine_merge.c   runs into larger ones
 *   engine_runs.c    which runs there are: load, publish  engine_replay.c  the journal's batches into the memtable
 *
 * LOCKS, in order: manifest_lock (edits, one at a time, with their publication; background threads) < flush_lock (which memtables
 * and runs there are) < commit_lock (the journal's tail, timestamps, the active memtable, counts, visible) < the journal's <
 * misc_lock (watchers, the error) < registry and limbo (RANK_EPOCH). */
#ifndef OV_ENGINE_PRIVATE_H
#define OV_ENGINE_PRIVATE_H

#include <stdatomic.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/mutex.h"
#include "storage/common/epoch.h"
#include "storage/common/key_hash.h"
#include "storage/engine.h"
#include "storage/file/file.h"
#include "storage/journal/journal.h"
#include "storage/manifest/manifest.h"
#include "storage/memtable/memtable.h"
#include "storage/run/run_set.h"
#include "storage/txn/call_states.h"
#include "storage/txn/counts.h"
#include "storage/txn/lock_table.h"
#include "storage/txn/snapshots.h"
#include "storage/txn/write_set.h"

enum {
    SEALED_MAX = 2,          /* sealed memtables that wait to be written; then writers wait, too */
    KEY_MAX = (1 << 24) - 1, /* what a mutation can tell */
    STAT_SHARDS = 32,
    FLUSH_DONE = 1024,  /* flush_progress of a whole memtable */
    HISTORY_SHARE = 16, /* superseded versions may take so much of a memtable before the oldest go */
    TRIM_MAX = 256,     /* so many are dealt with in one commit */
};
#define VALUE_MAX (64u * 1024 * 1024)   /* of one value */
#define TXN_MAX   (1024u * 1024 * 1024) /* of one batch */

/* What the database is made of, newest first. Immutable; replaced as a whole under flush_lock + commit_lock, freed by epoch. */
struct layers {
    struct epoch_garbage garbage;
    struct engine *e;
    struct memtable *active;
    struct memtable **sealed;
    size_t n_sealed;
    struct run_set *runs;
};

struct sealed { /* a sealed memtable on its way to a run */
    struct sealed *next;
    struct memtable *table;
    lsn_t end;        /* position after its last record */
    uint64_t last_ts; /* everything up to it lies in this memtable or in older ones */
    uint64_t number;  /* counts seals */
    struct count_delta *deltas;
    size_t n_deltas;
    struct manifest_drop *drops;
    size_t n_drops;
};

struct stat_shard { /* counters of hot paths; spread so that threads do not share lines */
    _Alignas(64) _Atomic uint64_t gets, scans, scan_rows, conflicts;
};

struct engine {
    struct eng_options opt;
    char *dir;
    const struct file_ops *files;
    bool own_files;
    struct eng_caps caps;
    struct journal *journal;
    struct manifest *manifest;
    struct mutex manifest_lock;
    struct cache *cache;
    uint64_t next_order;         /* of the next flush's runs; the flush's */
    _Atomic uint64_t flushed_ts; /* everything up to it is in runs */

    _Alignas(64) _Atomic uint64_t visible;
    _Atomic(struct layers *) layers;
    _Atomic uint64_t last_commit; /* like visible, but moved by commits only: what watchers wait for */
    _Atomic uint32_t n_watchers;

    _Alignas(64) struct mutex commit_lock;
    uint64_t last_ts;
    struct counts counts;
    struct manifest_drop *drops; /* of the active memtable */
    size_t n_drops, drops_cap;
    _Atomic lsn_t sealed_at; /* journal position of the last seal */
    _Atomic uint64_t commits, long_holds;

    _Alignas(64) struct mutex flush_lock;
    pthread_cond_t flush_cond;           /* work for a background thread, or some of it done */
    struct sealed *sealed, **sealed_end; /* oldest first */
    _Atomic uint32_t n_sealed;
    _Atomic uint32_t flush_progress; /* of the oldest sealed memtable: 0 .. FLUSH_DONE */
    struct eng_call *room;           /* commits that wait for a memtable to go */
    bool no_room;                    /* the last flush failed with ENOSPC and is tried again */
    bool closing;
    uint64_t seals, flushed; /* numbers of the last memtable sealed, and flushed */
    uint64_t flush_failures;
    bool flushing, merging;
    int64_t merge_not_before; /* after a failed merge; monotonic us */
    uint64_t runs_changes;    /* counts publications */
    uint64_t merge_seen;      /* runs_changes when there was nothing to merge, + 1 ... */
    int64_t merge_seen_at;    /* ... and when: monotonic us */
    _Atomic bool stop;        /* closing: flush and merge give up */
    pthread_t flush_thread, merge_thread;
    bool has_threads;
    _Atomic uint64_t stalls_us;

    struct mutex misc_lock;
    struct eng_call *watchers;
    struct eng_error error; /* the last failure */
    _Atomic bool failed;    /* read-only from here on */

    struct lock_table *locks;
    struct snapshots snapshots;
    struct epoch_limbo limbo;       /* layers, rows: the background threads empty it */
    struct epoch_limbo block_limbo; /* evicted blocks: whoever evicts does */
    struct stat_shard stats[STAT_SHARDS];
    _Atomic uint64_t debug_rand;
    lsn_t opened_at;  /* the journal's tail when it was opened */
    lsn_t replay_end; /* during replay: end of what is in the memtable */
    uint64_t replayed_bytes, replay_us;
    _Atomic uint64_t flushes, flush_bytes, merges, merge_bytes;
};

enum commit_phase { COMMIT_IDLE, COMMIT_SYNCING };

struct eng_txn {
    struct engine *e;
    uint32_t flags;
    bool lost;      /* asked for a time that is no longer kept */
    bool oversized; /* a buffered write was refused: its key is too long */
    bool released;  /* gave its snapshot up */
    uint64_t snapshot;
    struct snapshot held;
    struct epoch_slot *slot; /* the step it was last used in */
    uint64_t step;
    struct write_set ws;
    struct lock **locks;
    size_t n_locks, locks_cap;
    enum commit_phase phase;
    lsn_t commit_end;
    uint64_t commit_ts;
    int64_t stalled_since; /* of a commit that waits for room; 0 */
    struct buf failed_key;
    uint64_t failed_keyspace;
    struct arena *borrowed; /* copies of own buffered values that were read */
    struct eng_scan *scans; /* open ones */
    struct eng_txn *next;   /* in the free list */
};

static inline struct layers *layers_now(const struct engine *e)
{
    return atomic_load_explicit(&e->layers, memory_order_acquire);
}

/* engine.c */
void engine_fail(struct engine *e, const struct eng_error *err);         /* read-only from here on */
void engine_warn(const struct eng_error *err, int id, const char *what); /* a line in the log; id as log_line's */
void engine_note_error(struct engine *e, const struct eng_error *err);
void engine_read_failed(struct engine *e, const struct eng_error *err); /* notes it, and tells the log once */
struct layers *layers_new(struct engine *e, struct memtable *active, struct memtable *const *sealed, size_t n_sealed,
                          struct run_set *runs);
void layers_publish(struct engine *e,
                    struct layers *next);                /* holding flush_lock, and commit_lock if `active` changes */
bool engine_defer(struct engine *e, struct eng_call *c); /* debug_pending */
static inline bool eng_defer(struct engine *e, struct eng_call *c)
{
    return OV_UNLIKELY(e->opt.debug_pending != 0) && engine_defer(e, c);
}

/* engine_txn.c */
void txn_new_step(struct eng_txn *t);
/* To be called first by whatever reads: notices a new step. */
static inline void txn_use(struct eng_txn *t)
{
    OV_DASSERT(epoch_inside(t->e));
    if (OV_UNLIKELY(t->slot != epoch_mine || t->step != epoch_mine->steps))
        txn_new_step(t);
}
void txn_move_snapshot(struct eng_txn *t, uint64_t ts); /* to a newer one */
void txn_release_locks(struct eng_txn *t);
/* The newest version of a key with ts <= snapshot; ENG_NOT_FOUND also for a deletion, *ts then tells the deletion's (0: none at all). */
OV_MUST_CHECK enum eng_result layers_get(struct engine *e, const struct layers *l, uint64_t hash, uint64_t keyspace,
                                         struct slice key, uint64_t snapshot, struct slice *value, uint64_t *ts);

/* engine_scan.c */
void scan_keep_snapshots(struct eng_txn *t);    /* registers the snapshots of open scans */
void scan_release_snapshots(struct eng_txn *t); /* gives them up */

/* engine_flush.c */
bool flush_wanted(const struct engine *e); /* is the active memtable full? */
/* Seals it if it is full, or (force) if it is not empty; false if there is no place for another sealed one. Start-up ignores that limit. */
bool flush_seal(struct engine *e, bool force);
void flush_free_sealed(struct sealed *s);
void flush_leave_room(struct engine *e, struct eng_call *c);
/* Writes the oldest sealed memtable out. ENG_NOT_FOUND: there is none, or another thread is at it. */
enum eng_result flush_oldest(struct engine *e);
void flush_start(struct engine *e); /* the background threads; nothing in manual mode */
void flush_stop(struct engine *e);

/* engine_merge.c */
enum eng_result merge_some(struct engine *e); /* one merge; ENG_NOT_FOUND: nothing to do */

/* engine_runs.c */
struct keyspace_bytes {
    uint64_t keyspace, bytes;
};
struct big_list { /* keyspaces of some size, ascending: they get files of their own */
    struct engine *e;
    struct keyspace_bytes *all;
    size_t n, cap;
    uint64_t gone_before, oldest; /* for runs_gone */
    uint64_t keys, done;          /* a flush's: of its memtable, and about so many written */
};
OV_MUST_CHECK enum eng_result runs_load(struct engine *e, struct run_set **out, struct eng_error *err);
void runs_note_bytes(void *list, uint64_t keyspace, uint64_t bytes);
bool runs_alone(void *list, uint64_t keyspace);
bool runs_gone(void *list, uint64_t keyspace); /* dropped at or before gone_before, and no snapshot is older */
bool runs_stop(void *list);
uint64_t runs_new_id(void *list);
struct run_set *runs_now(struct engine *e); /* with a reference */
/* One manifest edit with its publication: `drop` (may be NULL) is the sealed memtable that `add` replaces. */
OV_MUST_CHECK enum eng_result runs_publish(struct engine *e, struct manifest_edit *edit, struct run *const *add,
                                           size_t n_add, struct run *const *remove, size_t n_remove,
                                           const struct sealed *drop, struct eng_error *err);

/* engine_replay.c */
enum eng_result replay_batch(void *arg, const struct journal_record *r, struct eng_error *err);

/* engine_commit.c */
void engine_apply_drop(struct engine *e, uint64_t keyspace, uint64_t ts); /* holding commit_lock */

#endif
