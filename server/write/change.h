/* One document inserted, replaced or removed, with its index entries: all or nothing goes into the writer's batch. */
#ifndef OV_CHANGE_H
#define OV_CHANGE_H

#include "server/query/update/update.h"
#include "server/write/writer.h"

enum change_stage { CHANGE_KEYS, CHANGE_LOCK, CHANGE_OWNERS, CHANGE_STORE };

struct change {
    /* Set by the caller. `before` was read under the lock of the record. */
    struct arena *arena;         /* of the document */
    uint64_t rid;                /* 0 for an insert: one is taken */
    const uint8_t *before;       /* NULL: an insert */
    uint64_t before_ts;          /* its version */
    const uint8_t *after;        /* NULL: a removal; stable until the change is done */
    const struct update *update; /* what made `after`, to leave indexes alone that it cannot touch; may be NULL */
    const struct update_effect *effect; /* its edits; may be NULL */
    bool before_kept;                   /* it outlives the step */
    /* Its own: zero at first. */
    enum change_stage stage;
    struct change_index *indexes;
    uint32_t n_indexes, index; /* the index and key in hand */
    size_t key, removed_key;
    const struct index_def *dup; /* after 11000: which index, and the key's values */
    const struct bval *dup_values;
};

/* Goes on. OK: in the batch. FAILED: 11000 (err->info: keyPattern, keyValue), 171: nothing of it is in the batch. WAIT: call again in a later
 * step; `before` has been copied then. RESTART: see writer_lock. */
OV_MUST_CHECK enum write_result change_step(struct writer *w, struct change *ch, struct err *err);

#endif
