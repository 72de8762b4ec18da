/* A run: an immutable file of sorted versions. Its data lies in fragments: consecutive blocks of one big keyspace, or of several small
 * ones, with an index and a filter over them. Opening reads the trailer and the directory of fragments, nothing else.
 *
 * RUN FILE runs/<id, 16 hex digits>.run: frames (block.h) of data, each fragment's index behind its blocks, the directory, the trailer
 * DIRECTORY
 *      0      4   n: fragments        4      4   0
 *      8      .   fragments: index_offset (8), index_len (4), n_blocks (4), first keyspace (8), last keyspace (8), first_key_len (4),
 *                 last_key_len (4), entries (8), deletions (8), raw bytes (8), disk bytes (8), min_ts (8), max_ts (8), first key, last key
 * TRAILER, the last 64 bytes
 *      0      8   "OVRUN\0\0\0"       8      4   version: 1          12      4   directory frame's length
 *     16      8   id                 24      8   directory's offset  32      8   entries
 *     40      8   min_ts             48      8   max_ts              56      4   0        60      4   crc32c of bytes 0 .. 59
 * F1  Fragments are in ascending order and do not overlap.
 * F2  A run enters the manifest only when it is synced, and the journal is synced beyond its last version (R6).
 * To change any of this: raise RUN_VERSION, keep the old reader. */
#ifndef OV_RUN_H
#define OV_RUN_H

#include <stdatomic.h>

#include "server/base/base.h"
#include "storage/engine.h"
#include "storage/file/file.h"

enum { RUN_VERSION = 1, RUN_TRAILER = 64, RUN_FRAGMENT = 88, RUN_PATH_MAX = 32 };

struct fragment {
    uint64_t index_offset;
    uint32_t index_len, n_blocks;
    uint64_t first_keyspace, last_keyspace;
    struct slice first, last; /* keys */
    uint64_t entries, deletions, raw_bytes, disk_bytes, min_ts, max_ts;
};

struct run {
    uint64_t id, order, bytes, min_ts, max_ts, entries;
    struct fragment *fragments; /* their keys lie in `directory` */
    size_t n_fragments;
    uint8_t *directory;
    struct file *file;
    const struct file_ops *files;
    _Atomic uint32_t refs;
    _Atomic bool doomed; /* the file goes with the last reference */
    bool busy;           /* being merged; the engine's, under flush_lock */
};

void run_path(uint64_t id, char out[RUN_PATH_MAX]); /* "runs/….run" */

/* Opens the run that the manifest names. One reference. Errors: ENG_IO, ENG_CORRUPT. Thread: any; blocks on disk. */
OV_MUST_CHECK enum eng_result run_open(const struct file_ops *files, uint64_t id, uint64_t order, struct run **out,
                                       struct eng_error *err);
void run_ref(struct run *r);
void run_unref(struct run *r);

/* Parses a directory frame's contents; `dir` must outlive the result. False if it makes no sense. */
OV_MUST_CHECK bool run_parse_directory(struct slice dir, uint64_t limit, struct fragment **out, size_t *n);

/* Does any fragment of a overlap one of b? */
bool run_overlap(const struct run *a, const struct run *b);
/* Can (keyspace, key) be in the run, by the fragments' bounds? */
bool run_covers(const struct run *r, uint64_t keyspace, struct slice key);

/* ---- writing ---- */

struct run_writer;

/* Starts a new file. */
OV_MUST_CHECK enum eng_result run_writer_new(const struct file_ops *files, uint64_t id, enum eng_compression codec,
                                             struct run_writer **out, struct eng_error *err);
/* The next version, in order (D1); `kind` is enum version_kind's number. */
OV_MUST_CHECK enum eng_result run_writer_add(struct run_writer *w, uint64_t keyspace, struct slice key, uint64_t ts,
                                             uint8_t kind, struct slice value, struct eng_error *err);
uint64_t run_writer_bytes(const struct run_writer *w); /* written so far, about */
bool run_writer_same_key(const struct run_writer *w, uint64_t keyspace,
                         struct slice key); /* is it the key added last? */
/* Writes what is left, the directory and the trailer, and syncs. The caller syncs the folder. Tells the file's size and timestamps. */
OV_MUST_CHECK enum eng_result run_writer_finish(struct run_writer *w, uint64_t *bytes, uint64_t *min_ts,
                                                uint64_t *max_ts, struct eng_error *err);
void run_writer_free(struct run_writer *w); /* removes a file that was not finished; accepts NULL */

/* Fills *err for a failed file operation: ENG_DISK_FULL for ENOSPC and EDQUOT, else ENG_IO. Returns it. */
enum eng_result run_io_error(struct eng_error *err, int errnum, const char *what, const char *path, uint64_t at);

#endif
