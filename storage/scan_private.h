/* A scan and its sources: what engine_scan.c and scan_source.c share. */
#ifndef OV_SCAN_PRIVATE_H
#define OV_SCAN_PRIVATE_H

#include "storage/engine_private.h"

enum source_kind { SOURCE_OWN, SOURCE_MEMTABLE, SOURCE_RUNS };

struct source {
    enum source_kind kind;
    bool valid; /* holds an entry of the range */
    bool deleted;
    struct slice key, value;
    uint64_t ts;
    const struct memtable *table;
    const struct mt_node *node;
    size_t at;             /* SOURCE_OWN: position in the write set's order */
    struct tier_iter iter; /* SOURCE_RUNS */
};

struct eng_scan {
    struct eng_txn *txn;
    struct eng_scan *next, **back; /* in the transaction's list; the pool */
    uint64_t keyspace;
    struct buf from, to; /* the range */
    bool to_end, reverse, keys_only;
    uint32_t page_rows, page_bytes;
    struct buf place;       /* where to go on: a key */
    bool placed, inclusive; /* has it moved from the range's start? is `place` itself still to come? */
    bool done;
    uint64_t snapshot;
    struct snapshot held;    /* its own registration, if it differs from the transaction's */
    struct epoch_slot *slot; /* the step it was last used in */
    uint64_t step;
    uint64_t own_changes; /* write_set.changes then */
    bool ready;           /* the sources stand where the last page ended */
    struct source *sources;
    size_t n, cap;
    struct eng_row *rows;
    size_t rows_cap;
    uint8_t *
        copied; /* debug_pending: the page's bytes, freed by the next call, so that sanitizers see who keeps them longer */
};

/* Sets all sources up at the scan's place; those without an entry in the range are left out. Errors: as reading runs. */
OV_MUST_CHECK enum eng_result scan_set_up(struct eng_scan *s, struct eng_error *err);
/* To the source's next entry in the range that the snapshot sees; not valid if there is none. */
OV_MUST_CHECK enum eng_result scan_advance(const struct eng_scan *s, struct source *src, struct eng_error *err);

#endif
