/* What the manifest's own files share: the format and the state. */
#ifndef OV_MANIFEST_PRIVATE_H
#define OV_MANIFEST_PRIVATE_H

#include "server/base/buf.h"
#include "storage/manifest/manifest.h"

/* CURRENT: the 26 bytes "MANIFEST-" + number as 16 hex digits + newline: the file in force.
 *
 * MANIFEST FILE
 *   offset  size  field
 *      0      8   magic "octavoM1"
 *      8      4   version: MANIFEST_VERSION
 *     12      4   seed: random; starts the crc of every edit in this file
 *     16      8   number: as in the name
 *     24      4   zero
 *     28      4   crc32c of bytes 0 .. 27
 *     32          edits, one after the other; the first one is the whole state
 *
 * EDIT: little-endian, starts on an 8-byte boundary
 *      0      4   crc32c, started with the file's seed, of bytes 4 .. 15 and the payload
 *      4      4   len: payload bytes
 *      8      8   number of the edit in this file, from 0
 *     16    len   payload, then 0-7 zero bytes
 *
 * PAYLOAD
 *      0     32   replay_from, synced, max_ts, next_run_id (8 each; 0 = unchanged)
 *     32      4   epoch (0 = unchanged)
 *     36     20   how many: runs added, run ids removed, count deltas, drops, drops forgotten (4 each)
 *     56          the runs (id, order, bytes, min_ts, max_ts: 8 each), ids (8), deltas (keyspace, delta: 8 each),
 *                 drops (keyspace, ts: 8 each), forgotten keyspaces (8)
 * Invariants M1 .. M5: storage/README.md. */
#define MANIFEST_VERSION 1
#define MANIFEST_MAGIC   "octavoM1"

enum {
    MANIFEST_HEAD = 32,
    EDIT_HEAD = 16,
    EDIT_FIXED = 56,
    EDIT_RUN = 40,
    EDIT_PAIR = 16,
    EDIT_ID = 8,
};

/* ---- state.c: what is in force; no I/O ---- */

struct state {
    struct manifest_state s; /* its arrays are ours, in spite of the const */
    size_t runs_cap, counts_cap, drops_cap;
};

void state_deinit(struct state *st);
/* Appends the edit's payload; next_run_id is told beside it. */
void edit_encode(const struct manifest_edit *e, uint64_t next_run_id, struct buf *out);
void state_encode(struct state *st,
                  struct buf *out); /* as one edit that makes it from nothing; counts of 0 are dropped first */
/* Applies a payload from disk. False if it is malformed or does not fit the state: damage; the state is then unusable. */
OV_MUST_CHECK bool state_apply(struct state *st, struct slice payload);
/* Would state_apply take it? For edits of our own, before they are written. */
bool edit_fits(const struct state *st, const struct manifest_edit *e);

#endif
