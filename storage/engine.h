/* The storage engine's face: byte keys, byte values, timestamps. It knows nothing of BSON, documents, commands or indexes.
 * Fit for a second implementation on a distributed engine: nothing here assumes that an answer is immediate.
 *
 * POLLED CALLS. What reads, locks, commits or waits takes a `struct eng_call` and returns ENG_OK with the result now (the local
 * engine nearly always), or ENG_PENDING: then it calls c->wake(c) once, later, from any thread, and the caller calls the same
 * function again with the same arguments and the same `c`. No call blocks on a lock of a document, nothing recurses.
 *
 * STEPS. A thread that uses the engine stands inside eng_step_enter .. eng_step_leave. What is borrowed (rows, values) is valid until
 * the next call on the same scan, or to eng_step_leave, whichever is first; nothing is borrowed over a wait.
 *
 * THREADS. A transaction and its scans belong to one thread at a time. Everything else: any thread, inside a step, unless said.
 * KEYS. memcmp order. A keyspace id (64 bits, top byte: its kind) plus a tuple; ids are never reused.
 * TIMESTAMPS. seconds << 32 | counter: the order of commits, and the sequence number of versions. 0 is none. */
#ifndef OV_ENGINE_H
#define OV_ENGINE_H

#include "server/base/base.h"

struct engine;
struct eng_txn;
struct eng_scan;
struct file_ops; /* storage/file/file.h; only tests and engine_open's caller name one */

enum eng_result {
    ENG_OK = 0,
    ENG_PENDING,          /* call again after the wake-up */
    ENG_NOT_FOUND,        /* get: no version visible */
    ENG_EXISTS,           /* commit: a precondition failed; eng_txn_failed_key says which. Nothing happened */
    ENG_CONFLICT,         /* a multi-document transaction met a newer version or a held lock (R23). Nothing happened */
    ENG_UNKNOWN,          /* the commit may or may not survive: its write or sync failed after it was published */
    ENG_TOO_LARGE,        /* past a limit of struct eng_caps; nothing happened */
    ENG_SNAPSHOT_TOO_OLD, /* the asked-for read timestamp is no longer kept */
    ENG_DISK_FULL,        /* no room for the next segment; writes go on when there is (R10). Nothing happened */
    ENG_READ_ONLY,        /* an earlier failed write or sync made the engine refuse writes until restart (R10) */
    ENG_IO,               /* a read failed; eng_error tells file and offset */
    ENG_CORRUPT,          /* a checksum does not fit; eng_error tells file and offset */
    ENG_CANCELLED,        /* eng_call_cancel ended the wait */
    ENG_UNAVAILABLE,      /* distributed engines only: try again; the local one never answers it */
};

const char *eng_result_name(enum eng_result r); /* "ENG_OK" …: for logs and tests */

struct eng_call {
    void (*wake)(
        struct eng_call *c); /* set by the caller; must only post: it can run on any thread, under engine mutexes */
    /* the engine's own */
    struct eng_call *next;
    void *waiting_on; /* what holds it; NULL while it waits for nothing */
    int state;
    uint64_t need;
};
static inline void eng_call_init(struct eng_call *c, void (*wake)(struct eng_call *))
{
    *c = (struct eng_call){.wake = wake};
}
/* Ends the wait of a pending call (maxTimeMS, killOp, a closed socket): no wake-up comes after it returns, though one may have come
 * just before. The transaction is then aborted or used on by the caller. Thread: the transaction's. */
void eng_call_cancel(struct engine *e, struct eng_call *c);

/* ---- life ---- */

enum eng_compression { ENG_COMPRESS_NONE, ENG_COMPRESS_LZ4, ENG_COMPRESS_ZSTD, ENG_COMPRESS_SNAPPY };

struct eng_options {
    const char *dir;                  /* data directory; exists */
    const struct file_ops *files;     /* NULL: the operating system's */
    uint64_t memtable_bytes;          /* seal the memtable at this size; 0 = 64 MiB */
    uint64_t replay_bytes;            /* seal also when the journal since the last seal reaches this; 0 = 192 MiB */
    uint64_t segment_bytes;           /* largest journal segment, power of two, 1 MiB .. 1 GiB; 0 = 64 MiB */
    uint64_t cache_bytes;             /* hard cap of the block cache; 0 = 256 MiB */
    uint32_t commit_interval_ms;      /* how often the journal is synced when nobody asks; 0 = 100 */
    enum eng_compression compression; /* of run blocks */
    bool manual;                      /* tests: no background threads; eng_background_step does their work */
    int debug_pending; /* tests: 0 never, 1 at random, 2 whenever allowed: answer ENG_PENDING first, wake at once */
    uint64_t debug_seed;
};

struct eng_error { /* why engine_open failed, or the last failure: fixed buffer, for the log and the client */
    enum eng_result result;
    char msg[400]; /* one line; names file and offset where there is one */
};

/* Opens the database in opt->dir, creating it if empty, replaying the journal from the last flush on. Sets *out.
 * Errors: ENG_IO, ENG_CORRUPT (bytes that were known durable are damaged, or a newer format), ENG_DISK_FULL; err says more.
 * Thread: start-up only; blocks on disk. */
OV_MUST_CHECK enum eng_result engine_open(const struct eng_options *opt, struct engine **out, struct eng_error *err);

/* Syncs the journal and closes. No call may be pending, no transaction open. Thread: the one that opened; blocks on disk. */
void engine_close(struct engine *e);

/* Why the engine is read-only, or the last read error. Copies into *out; result is ENG_OK when all is well. */
void eng_error(struct engine *e, struct eng_error *out);

struct eng_caps { /* limits and abilities as data: the layers above never ask which engine this is */
    uint64_t max_key_bytes, max_value_bytes, max_txn_bytes;
    uint32_t max_txn_seconds;
    bool splice;      /* edits are stored as such; false: whole values */
    bool local_locks; /* eng_lock really excludes; false: preconditions decide at commit */
};
const struct eng_caps *eng_caps(const struct engine *e);

/* ---- steps ---- */

void eng_step_enter(
    struct engine *e); /* opens this thread's epoch guard: memtables, runs and blocks stay. Nests not. Never blocks */
void eng_step_leave(struct engine *e); /* closes it; everything borrowed in it is invalid from here */

/* ---- transactions ---- */

enum eng_txn_flags {
    ENG_TXN_READ_ONLY = 1, /* writes are a bug */
    ENG_TXN_MULTI =
        2, /* multi-document transaction: one snapshot, own writes read back, ENG_CONFLICT instead of waiting (R23);
                              commit gives all its operations one timestamp. Without it: a sequence of single-shot batches on one handle */
};

/* A transaction on a snapshot of everything published (read_ts = 0), or as of read_ts. Never fails; the caller ends it with eng_end. */
struct eng_txn *eng_begin(struct engine *e, uint32_t flags, uint64_t read_ts);
void eng_end(struct eng_txn *t); /* aborts what was not committed, releases locks and snapshot, frees; accepts NULL */
uint64_t eng_snapshot(const struct eng_txn *t); /* the timestamp it reads at */
void eng_refresh(struct eng_txn *t);            /* not MULTI: from here on reads at the newest published timestamp */
/* The handle is to survive eng_step_leave: registers its snapshot so that its versions are kept. (A handle used within one step costs
 * no registration.) Called by the layer above before WAIT and AGAIN, and again harmlessly. */
void eng_txn_hold(struct eng_txn *t);
/* The opposite of hold for a cursor between getMores: gives the snapshot up; the next use reads at a newer one. */
void eng_txn_release(struct eng_txn *t);

enum eng_get_flags {
    ENG_GET_SNAPSHOT = 0,
    ENG_GET_NEWEST =
        1, /* the newest version, for writers that hold the key's lock; own buffered writes first, in both modes */
};
struct eng_row {
    struct slice key; /* the tuple, without the keyspace id */
    struct slice value;
    uint64_t ts; /* version: the timestamp that wrote it; 0 for one of the transaction's own buffered writes */
};

/* The row at `key`. ENG_NOT_FOUND if none. *out is borrowed (see STEPS). */
OV_MUST_CHECK enum eng_result eng_get(struct eng_txn *t, uint64_t keyspace, struct slice key, uint32_t flags,
                                      struct eng_row *out, struct eng_call *c);

/* Many at once: out[i].value.p is NULL where keys[i] has no row. Rows are borrowed until the next eng_multi_get or the step's end. */
OV_MUST_CHECK enum eng_result eng_multi_get(struct eng_txn *t, uint64_t keyspace, const struct slice *keys, size_t n,
                                            uint32_t flags, struct eng_row *out, struct eng_call *c);

/* The document lock of (keyspace, key): FIFO; ENG_PENDING while another holds it (MULTI: ENG_CONFLICT at once, also when the newest
 * version is later than the snapshot). Held until commit, abort or end. Locking twice by one transaction is one lock. */
OV_MUST_CHECK enum eng_result eng_lock(struct eng_txn *t, uint64_t keyspace, struct slice key, struct eng_call *c);

/* Buffered writes: no I/O, bytes are copied. What a batch does to the exact count of its keyspace is told by the kind (R17).
 * One batch holds a key once (a MULTI transaction composes: the last write wins, a splice is applied to its own buffered value). */
enum eng_put_kind { ENG_INSERT, ENG_UPDATE };
void eng_put(struct eng_txn *t, uint64_t keyspace, struct slice key, struct slice value, enum eng_put_kind kind);
void eng_del(struct eng_txn *t, uint64_t keyspace, struct slice key); /* the key exists */

/* An update told as byte edits on the version `base_ts` (which the caller read under the key's lock); `value` is the whole new value,
 * from which checksum and memory version are made, so a caller that has no edits calls eng_put. The journal holds only the edits when
 * that is smaller. Edits are in ascending order of offset in the OLD value and do not overlap. */
struct eng_edit {
    uint32_t offset;  /* in the old value */
    uint32_t removed; /* bytes taken out there */
    struct slice added;
};
void eng_splice(struct eng_txn *t, uint64_t keyspace, struct slice key, uint64_t base_ts, struct slice value,
                const struct eng_edit *edits, size_t n);

/* Preconditions of the next commit, judged under the commit's own rules; a failed one gives ENG_EXISTS. */
enum eng_pre { ENG_PRE_ABSENT, ENG_PRE_PRESENT, ENG_PRE_VERSION };
void eng_require(struct eng_txn *t, uint64_t keyspace, struct slice key, enum eng_pre pre, uint64_t version);
struct slice eng_txn_failed_key(const struct eng_txn *t, uint64_t *keyspace);

/* A change record for the oplog, stored atomically with the commit; opaque here. */
void eng_log(struct eng_txn *t, struct slice record);

/* In the same commit: the keyspace is gone from its timestamp on. Nobody reads or writes it any more (the catalog sees to that). */
void eng_drop_keyspace(struct eng_txn *t, uint64_t keyspace);

size_t eng_txn_bytes(const struct eng_txn *t);  /* bytes buffered: callers cut sub-batches at 64 documents or 256 KiB */
size_t eng_txn_writes(const struct eng_txn *t); /* operations buffered */

enum eng_durability {
    ENG_DUR_LOCAL, /* in the journal; with the kernel once eng_handover has returned ENG_OK */
    ENG_DUR_JOURNALED, /* OK only after fdatasync: PENDING meanwhile (group commit); locks are released at publish, before the sync */
};
/* Commits and publishes what is buffered, releases the locks, empties the write set; the handle stays usable (not MULTI: with a newer
 * snapshot that sees this commit). An empty batch is OK. *commit_ts (may be NULL) is the last timestamp used.
 * Errors: EXISTS, CONFLICT, TOO_LARGE, DISK_FULL, READ_ONLY: nothing happened, the write set is emptied, locks are released.
 * UNKNOWN: published, then its sync failed. */
OV_MUST_CHECK enum eng_result eng_commit(struct eng_txn *t, enum eng_durability d, uint64_t *commit_ts,
                                         struct eng_call *c);
void eng_abort(
    struct eng_txn
        *t); /* empties the write set, releases the locks; the handle stays usable (MULTI: only for eng_end) */

/* Hands everything published so far to the kernel, so that it survives the death of this process. To be called once a loop turn, before
 * the turn's replies leave; cheap when there is nothing. OK, PENDING, READ_ONLY. Thread: any, inside or outside a step. */
OV_MUST_CHECK enum eng_result eng_handover(struct engine *e, struct eng_call *c);
/* OK once everything published so far is synced: for j:true answers that wrote nothing themselves (R12). */
OV_MUST_CHECK enum eng_result eng_sync(struct engine *e, struct eng_call *c);

/* ---- scans ---- */

struct eng_range {
    uint64_t keyspace;
    struct slice from, to; /* from <= key < to; an empty `to` (p NULL) is the keyspace's end. Copied */
    bool reverse;          /* from the end of the range backwards */
    bool keys_only;        /* values may be left out */
    uint32_t page_rows;    /* at most so many rows a page; 0 = 128 */
    uint32_t page_bytes;   /* a page ends after the row that passes this; 0 = 256 KiB */
};
struct eng_page {
    const struct eng_row *rows; /* borrowed until the next call on this scan or the step's end */
    size_t n;
    bool more; /* false: this page ends the range */
};

/* A scan of the transaction's snapshot, own writes of a MULTI transaction included. Allocates little; never fails. */
struct eng_scan *eng_scan_open(struct eng_txn *t, const struct eng_range *range);
/* The next page (n may be 0 only with more = false). PENDING also after many deletions in a row, so that others can run. In a later step it seeks again by its last key, by itself. */
OV_MUST_CHECK enum eng_result eng_scan_next(struct eng_scan *s, struct eng_page *page, struct eng_call *c);
/* Moves on to `key` (at or after the current position in scan order): the next page starts there. For skipping over index keys. */
void eng_scan_seek(struct eng_scan *s, struct slice key);
void eng_scan_close(struct eng_scan *s); /* before eng_end; accepts NULL */

/* ---- facts ---- */

uint64_t eng_visible(const struct engine *e); /* the newest published timestamp */
uint64_t eng_now(struct engine *e);           /* a timestamp at or after visible, by the clock: for operationTime */
int64_t eng_count(const struct engine *e, uint64_t keyspace); /* exact number of keys at visible (R17); 0 if unknown */
/* The largest key of the keyspace, deleted ones not counted; ENG_NOT_FOUND when empty. For record ids (R26). */
OV_MUST_CHECK enum eng_result eng_last_key(struct eng_txn *t, uint64_t keyspace, uint8_t *out, size_t out_bytes,
                                           size_t *n, struct eng_call *c);

/* Fires c->wake once when something was published after `ts`; at once if it has been. */
void eng_watch(struct engine *e, uint64_t ts, struct eng_call *c);

struct eng_stats {                  /* true figures since start, unless said otherwise */
    uint64_t commits, commit_bytes; /* batches; journal bytes appended, headers included */
    uint64_t journal_writes, journal_syncs, journal_sync_us, journal_zero_bytes, journal_segments, journal_recycled;
    uint64_t journal_disk_bytes;              /* now */
    uint64_t memtable_bytes, memtable_sealed; /* now */
    uint64_t flushes, flush_bytes, merges, merge_bytes;
    uint64_t runs, run_disk_bytes; /* now */
    uint64_t cache_bytes, cache_hits, cache_misses, cache_evictions;
    uint64_t gets, scans, scan_rows, lock_waits, conflicts, stalls_us, long_commit_holds;
    uint64_t snapshots_open, oldest_snapshot; /* now */
    uint64_t replayed_bytes, replay_us;       /* of the last start */
};
void eng_stats(struct engine *e, struct eng_stats *out);
/* Bytes on disk of one keyspace's fragments, and uncompressed; memtable contents not counted. */
void eng_keyspace_size(struct engine *e, uint64_t keyspace, uint64_t *disk, uint64_t *logical);

/* ---- work in the background ---- */

/* Seals the active memtable and returns when it and all older ones are runs in the manifest (fsync command, tests, clean stop).
 * Blocks on disk; never on a loop. */
OV_MUST_CHECK enum eng_result eng_flush(struct engine *e);
/* manual mode: does one piece of background work (sync, prepare a segment, flush, merge); false if there was none. */
bool eng_background_step(struct engine *e);

#endif
