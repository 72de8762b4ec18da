/* What the journal's own files share: the record format, segments, the state of an open journal. */
#ifndef OV_JOURNAL_PRIVATE_H
#define OV_JOURNAL_PRIVATE_H

#include <stdatomic.h>

#include "server/base/mutex.h"
#include "storage/journal/journal.h"

/* JOURNAL SEGMENT: file journal/<first, 16 hex digits>.oj covers the positions first .. first + size - 1; offset in the
 * file = lsn - first
 *   offset  size  field
 *      0      8   magic "octavoJ1"
 *      8      4   version: JOURNAL_VERSION
 *     12      4   zero
 *     16      8   first: as in the name
 *     24      8   size: of the file, a power of two
 *     32      4   seed: random, made anew whenever the file is recycled; starts the crc of every record header in this segment
 *     36      4   epoch of the process that made the segment
 *     40     20   zero
 *     60      4   crc32c of bytes 0 .. 59
 *   2048     64   the same again: a rotten sector does not cost the whole segment
 *   4096          records
 *
 * JOURNAL RECORD: little-endian, starts on an 8-byte boundary, never crosses a segment
 *      0      4   header_crc: crc32c, started with the segment's seed, of bytes 4 .. 63
 *      4      4   len: payload bytes
 *      8      4   payload_crc: crc32c of the payload (0 in a PAD, whose payload is whatever lies there)
 *     12      1   type: enum journal_type
 *     13      1   flags: JOURNAL_FIRST, JOURNAL_LAST part of a batch
 *     14      2   version: JOURNAL_VERSION
 *     16      8   lsn of this record
 *     24      8   synced_lsn: what was known durable when this record was written; at most lsn
 *     32      8   term: 0 on a single node
 *     40      8   index: a counter
 *     48      8   first_ts; of a START the largest timestamp seen before it (R11)
 *     56      4   count: operations of the batch
 *     60      4   epoch of the writing process
 *     64    len   payload, then 0-7 zero bytes
 * Invariants J1 .. J10: storage/README.md. */
#define JOURNAL_VERSION   1
#define SEGMENT_MAGIC     "octavoJ1"
#define SEGMENT_HEAD      4096u
#define SEGMENT_HEAD_COPY 2048u
#define RECORD_HEAD       64u
#define SEGMENT_MAX       ((uint64_t)1 << 30)
#define JOURNAL_PAGE      4096u

enum { JOURNAL_FIRST = 1, JOURNAL_LAST = 2 };

struct record_head {
    uint32_t header_crc, len, payload_crc;
    uint8_t type, flags;
    uint16_t version;
    uint64_t lsn, synced_lsn, term, index, first_ts;
    uint32_t count, epoch;
};
_Static_assert(sizeof(struct record_head) == RECORD_HEAD, "on-disk layout");

struct segment {
    lsn_t first;
    uint64_t size;
    uint32_t seed;
    uint64_t file_size; /* found at opening; under `size` when the file was cut */
    bool broken;        /* no valid header: all its bytes count as bad (R4) */
    struct file *f;
    struct segment *next; /* by position */
};

static inline lsn_t segment_end(const struct segment *s)
{
    return s->first + s->size;
}
/* What a prepared segment adds to next_room: a batch may be cut here, so one record header is taken off. */
static inline uint64_t segment_room(const struct segment *s)
{
    return s->size - SEGMENT_HEAD - RECORD_HEAD;
}
static inline uint64_t record_bytes(uint64_t payload)
{
    return RECORD_HEAD + ((payload + 7) & ~(uint64_t)7);
}

/* ---- record.c ---- */

/* Sets header_crc. */
void record_seal(struct record_head *h, uint32_t seed);
/* Is this the header of a record that belongs at `lsn` of `s`? True says nothing about the payload. */
bool record_head_valid(const struct record_head *h, const struct segment *s, lsn_t lsn);
/* The position behind a record that ends at `end` in `s`: there, or the next segment's first record if no header fits
 * any more (J1). */
lsn_t record_next(const struct segment *s, lsn_t end);

/* ---- segment.c ---- */

#define SEGMENT_PATH_BYTES 48
#define SEGMENT_TMP        "journal/next.tmp" /* a segment in the making; nothing of it counts */

void segment_path(lsn_t first, char out[SEGMENT_PATH_BYTES]);
bool segment_parse_name(const char *name, lsn_t *first);
/* Makes the file for [first, first + size): zero-filled, synced, its name synced. Errno; on failure nothing is left.
 * old: a released segment to be made over, with the same size; closed and freed whatever comes (NULL = a new file). */
OV_MUST_CHECK int segment_make(const struct file_ops *fs, lsn_t first, uint64_t size, uint32_t epoch,
                               struct segment *old, struct segment **out, uint64_t *zeroed);
/* Opens and reads the header. 0 also when it is damaged (broken is set); EPROTO when the format is newer. */
OV_MUST_CHECK int segment_open(const struct file_ops *fs, lsn_t first, struct segment **out);
/* Zero-fills from `from` (file offset) to the segment's size. */
OV_MUST_CHECK int segment_zero(const struct file_ops *fs, struct segment *s, uint64_t from);
void segment_close(const struct file_ops *fs, struct segment *s);  /* and frees; accepts NULL */
void segment_remove(const struct file_ops *fs, struct segment *s); /* the file too */

/* ---- replay.c ---- */

struct replay { /* in: the first block; out: the rest */
    const struct file_ops *fs;
    struct segment *segments; /* all there are, by position; stays the caller's */
    lsn_t from;               /* first record, or the end of one */
    lsn_t synced;             /* known durable so far; out: S */
    journal_replay_fn fn;
    void *arg;

    lsn_t cut; /* J3: the first position that is not part of the journal; the next record goes there */
    uint64_t last_ts, index, bytes; /* index: of the next record */
    uint32_t epoch;                 /* largest seen */
};
/* Walks, calls fn, searches what is beyond the first damage, judges. ENG_CORRUPT when bytes below S are bad. */
OV_MUST_CHECK enum eng_result replay_run(struct replay *r, struct eng_error *err);
/* R5: writes [synced, cut) again where it is, and syncs it. */
OV_MUST_CHECK enum eng_result replay_rewrite(struct replay *r, struct eng_error *err);

/* ---- journal.c, append.c, sync.c ---- */

struct piece { /* of pending bytes: a stretch of one segment */
    struct segment *seg;
    lsn_t at;
    size_t off, len; /* in pending.p */
};

struct pending { /* appended, not yet with the kernel */
    uint8_t *p;
    size_t len, cap;
    struct piece *pieces;
    size_t n, pieces_cap;
};

struct waiters {
    struct eng_call *first, *last;
};

struct journal {
    const struct file_ops *fs;
    struct journal_options opt;
    uint32_t epoch;

    struct mutex lock; /* RANK_JOURNAL: all below but the atomics' readers */

    /* Written under the lock, read anywhere. room and next_room are stored so that a reader without the lock errs only
     * towards "no". */
    _Atomic uint64_t tail, written, synced, room, next_room;
    _Atomic bool failed;

    /* tail */
    struct segment *segments; /* oldest first: full ones, active, prepared */
    struct segment *active;
    struct pending pend[2]; /* appended to: pend[cur]; the other one is being written, or empty */
    int cur;
    uint64_t index;
    lsn_t data_end;         /* end of the newest record that is worth a sync: not a MARK */
    lsn_t marked;           /* largest synced_lsn in any record appended (R3) */
    uint64_t prepare_below; /* room under which the next segment is wanted */

    /* writing and syncing */
    bool writing, syncing, idle, stop;
    lsn_t blocking_need; /* of journal_sync_blocking */
    int64_t dirty_since_us, synced_at_us;
    struct waiters wait_write, wait_sync, wait_space;
    int waking;          /* threads between taking waiters off a list and having woken them */
    pthread_cond_t work; /* journal thread: something to do */
    pthread_cond_t done; /* everybody else: a write, sync, preparation or wake-up has ended */
    pthread_t sync_thread, prepare_thread;

    /* preparing */
    bool prepare_wanted, preparing;
    uint64_t want_room;   /* next_room that somebody waits for */
    unsigned full;        /* so many callers have yet to be told DISK_FULL */
    int64_t full_told_us; /* when the log was last told of a full disk; 0: it is not full */
    pthread_cond_t prepare_work;
    struct segment *released; /* to be recycled, any order */

    struct eng_error error;
    uint64_t n_writes, n_syncs, sync_us, zero_bytes, n_recycled, replayed_bytes;
};

enum { RELEASED_MAX = 3 }; /* segments kept for recycling */

static inline uint64_t journal_load(const _Atomic uint64_t *p)
{
    return atomic_load_explicit(p, memory_order_acquire);
}
static inline void journal_store(_Atomic uint64_t *p, uint64_t v)
{
    atomic_store_explicit(p, v, memory_order_release);
}

/* Fills *err and returns its result: ENG_DISK_FULL for a full disk, else ENG_IO. */
enum eng_result journal_io_error(struct eng_error *err, int rc, const char *what, lsn_t segment);
bool journal_disk_full(int rc);

/* ---- append.c; lock held ---- */

/* START, with the largest timestamp known (R11: its record may overwrite the last trace of a cut one), or MARK;
 * append_mark_fits was true. */
void append_record(struct journal *j, enum journal_type type, uint64_t first_ts);
bool append_mark_fits(const struct journal *j);
void append_activate(struct journal *j, struct segment *s, lsn_t tail);

/* ---- wait.c: who waits for what; lock held on entry and return. The functions marked * give it up meanwhile. ---- */

enum eng_result wait_for(struct journal *j, struct waiters *w, struct eng_call *c, uint64_t need); /* ENG_PENDING */
void wait_wake(struct journal *j, struct waiters *w, uint64_t upto); /* * those who need at most `upto` */
/* * The first failure counts: everybody who waits is told, nothing is accepted any more (J4). */
void journal_fail(struct journal *j, int rc, const char *what, const struct segment *s);

/* ---- sync.c; lock held on entry and return, not meanwhile ---- */

OV_MUST_CHECK enum eng_result sync_now(struct journal *j); /* writes and syncs all that was appended */
bool sync_step(struct journal *j);                         /* one piece of work, if there is any that is due */
void *sync_thread_main(void *arg);

/* ---- prepare.c; lock held on entry and return, not meanwhile ---- */

uint64_t prepare_size(const struct journal *j, const struct segment *last,
                      uint64_t room); /* of the segment behind `last` (or NULL) */
void prepare_want(struct journal *j); /* the active segment is filling up */
bool prepare_step(struct journal *j);
void *prepare_thread_main(void *arg);

#endif
