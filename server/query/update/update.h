/* Update documents: operators or a replacement, parsed once, applied to raw BSON giving the new document. Operators: table.c, one row and one
 * function each. Thread: a parsed update is immutable. */
#ifndef OV_UPDATE_H
#define OV_UPDATE_H

#include "protocol/bson/bson.h"
#include "server/query/match/match.h"

struct update;

struct update_edit { /* byte edits on the old document, ascending, not overlapping; added bytes point into the result */
    uint32_t offset, removed;
    uint32_t added_at, added; /* in the new document */
};
struct update_effect {
    bool changed;              /* false: the document is as before (nModified 0) */
    struct update_edit *edits; /* in the arena; n_edits 0 when the whole document is to be stored */
    uint32_t n_edits;
};

/* `u`: operators or replacement (a pipeline is refused by name until it is there). multi with a replacement: ERR_FAILED_TO_PARSE.
 * array_filters may be missing. Everything kept is copied into `a`. */
OV_MUST_CHECK int update_parse(struct arena *a, struct bval u, struct bval array_filters, bool multi,
                               struct update **out, struct err *err);
bool update_is_replacement(const struct update *u);
/* The top-level field names / dotted paths the update may touch, so that index maintenance can skip indexes: true if `index_path` can change. */
bool update_may_touch(const struct update *u, const char *index_path);

/* Applies to `doc` (not in `out`); the new document is appended to `out` (starts at the old out->len). array_index: the positional match or -1.
 * Errors in the real server's words (14 $inc on non-number, 28, 2 $push to non-array, 40 at parse, 66 _id, 17419 too large). */
OV_MUST_CHECK int update_apply(const struct update *u, const uint8_t *doc, int32_t array_index, struct arena *a,
                               struct buf *out, struct update_effect *effect, struct err *err);
/* The document that an upsert inserts: the filter's equalities, then the update ($setOnInsert included), _id first; an ObjectId if none says. */
OV_MUST_CHECK int update_upsert(const struct update *u, const struct match *filter, struct arena *a, struct buf *out,
                                struct bval *id, struct err *err);

/* Puts _id first (making one if missing), replaces top-level Timestamp(0,0) by ts (0: leaves them), checks what insert forbids (_id types, two _ids, nesting,
 * 16 MiB). Appends to out unless the document may be stored as it is: then *same is true and nothing is appended. */
OV_MUST_CHECK int insert_prepare(const uint8_t *doc, uint64_t ts, struct buf *out, bool *same, struct err *err);

#endif
