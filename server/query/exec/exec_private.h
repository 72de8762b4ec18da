/* An execution and its parts: what the files of this folder share. */
#ifndef OV_EXEC_PRIVATE_H
#define OV_EXEC_PRIVATE_H

#include "server/query/exec/exec.h"
#include "server/query/exec/sorter.h"

/* ---- one range of one keyspace (range_scan.c) ---- */

/* A scan that can be put away: while suspended it holds a key and nothing of the engine's. */
struct range_scan {
    struct eng_range range;
    struct eng_scan *scan;
    struct eng_page page; /* borrowed */
    size_t at;            /* the next row of the page */
    bool last_page;
    bool
        keeps_head; /* an index entry that was peeked at survives a suspension: scans that are merged need their heads all at once */
    bool has_head;       /* `head` is the next row, instead of the page's */
    struct eng_row head; /* key in `place`, value in `head_value` */
    uint8_t head_value[8];
    enum { PLACE_START, PLACE_AT, PLACE_PAST } placed; /* goes on at, or behind, `place` instead of the range's start */
    struct buf place;
};
void range_scan_init(struct range_scan *r, const struct eng_range *range);
/* ROW: *row is the next one, borrowed; it stays the next until range_scan_take. */
enum exec_status range_scan_peek(struct range_scan *r, struct eng_txn *t, struct eng_call *call,
                                 const struct eng_row **row, struct err *err);
static inline const struct eng_row *range_scan_row(const struct range_scan *r) /* that peek gave */
{
    return r->has_head ? &r->head : &r->page.rows[r->at];
}
static inline void range_scan_take(struct range_scan *r)
{
    if (r->has_head) {
        r->has_head = false;
        r->placed = PLACE_PAST;
    } else {
        r->at++;
    }
}
void range_scan_suspend(struct range_scan *r);
void range_scan_close(struct range_scan *r);

/* ---- record ids that were given before (rid_set.c) ---- */

struct rid_set {
    uint64_t *slots; /* 0 is free: record ids start at 1 */
    size_t n, cap;
};
bool rid_set_add(struct rid_set *s, uint64_t rid); /* false: it is in it */
void rid_set_free(struct rid_set *s);

/* ---- record ids whose documents are fetched together (fetch.c) ---- */

enum { FETCH_ROWS = 128 };
struct fetch {
    size_t n, at, want; /* ids; the next to give; how many make it worth fetching */
    bool fetched;       /* `rows` from `at` on are there, borrowed */
    uint64_t rids[FETCH_ROWS];
    uint8_t bytes[FETCH_ROWS][8];
    struct slice keys[FETCH_ROWS];
    struct eng_row rows[FETCH_ROWS];
};

/* ---- the whole ---- */

struct exec {
    const struct plan *plan;
    const struct collection *coll;
    struct eng_txn *txn;
    struct arena *arena;
    uint64_t skip, limit, skipped, given;
    uint64_t keys_examined, docs_examined, matched;
    /* The next document of the access path, matching or not. */
    enum exec_status (*access)(struct exec *x, struct eng_call *call, struct exec_row *row, struct err *err);
    /* Record ids into the batch: ROW if it holds some, EOF if none are left. */
    enum exec_status (*fill)(struct exec *x, struct eng_call *call, struct err *err);
    void (*access_unget)(struct exec *x);
    bool eof;
    bool examined;            /* something since the last AGAIN: a slice that begins late still gets on */
    uint32_t next;            /* POINTS: the next key; IXSCAN one after the other: intervals begun */
    uint8_t point;            /* single POINT: see access.c */
    uint64_t rid;             /* single POINT: what the index says */
    struct range_scan *scans; /* COLLSCAN and IXSCAN: 1; merged: one an interval */
    uint32_t n_scans;
    uint32_t *heap;          /* merged: scans with a row, the next one first */
    uint32_t n_heap, primed; /* scans that have been put into it */
    bool root_taken;         /* the first one's row has been taken: it has to be asked for its next */
    struct fetch *fetch;
    bool dedup; /* plan->dedup, or the index has become multikey since */
    struct rid_set seen;
    struct sorter *sorter;
    bool collected;
};

void access_open(struct exec *x);
void access_suspend(struct exec *x);
bool access_at_end(const struct exec *x);
void access_close(struct exec *x);

enum exec_status fetch_next(struct exec *x, struct eng_call *call, struct exec_row *row, struct err *err);
void fetch_unget(struct exec *x);
struct fetch *fetch_of(struct exec *x);
void fetch_add(struct exec *x, uint64_t rid); /* unless it has been given, where that can be */

enum exec_status merge_fill(struct exec *x, struct eng_call *call, struct err *err);

/* PENDING: WAIT. What is not OK: ERROR with the client's words in *err. */
enum exec_status exec_engine(enum eng_result r, struct err *err);

#endif
