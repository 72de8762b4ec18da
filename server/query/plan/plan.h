/* Planning: which index, which bounds. Reads filter trees and index definitions, no data. Thread: any. */
#ifndef OV_PLAN_H
#define OV_PLAN_H

#include "index/index.h"
#include "server/catalog/catalog.h"
#include "server/query/match/match.h"
#include "server/query/project/project.h"

enum plan_kind {
    PLAN_EMPTY,    /* no document can match, or no collection */
    PLAN_COLLSCAN, /* all records in order (or backwards) */
    PLAN_POINTS,   /* whole keys of a unique or _id index: one look-up each ($in sorted); at most one row a key */
    PLAN_IXSCAN,   /* intervals of one index in scan order, merged without sorting where that gives the asked order */
};
struct plan_interval { /* byte range of encoded keys: from <= key < to */
    struct slice from, to;
    uint32_t prefix; /* with plan.merge: bytes before the fields of the asked order, equal in all its keys */
};
struct plan {
    enum plan_kind kind;
    const struct index_def *index;   /* POINTS, IXSCAN */
    struct plan_interval *intervals; /* in key order */
    uint32_t n_intervals;
    bool reverse;
    bool sorted; /* rows come in the asked order: no sort stage */
    /* Each interval gives rows in the asked order: exec merges them on what follows each one's prefix. Not set (rows of interval after
     * interval): the whole is in that order already, or need not be. */
    bool merge;
    bool dedup;                 /* a record can come several times */
    uint32_t multikey;          /* of the index, when the plan was made: `dedup` holds for that */
    const struct match *filter; /* the whole: each fetched document must still match it */
    const struct sort_spec *sort;
};
/* `coll` may be NULL (PLAN_EMPTY). hint: BSON_TYPE_EOD none, string (index name) or document (key pattern or {$natural: ±1});
 * unknown: ERR_BAD_VALUE "hint provided does not correspond to an existing index". snapshot_ts: indexes ready later are ignored. */
OV_MUST_CHECK int plan_make(struct arena *a, const struct collection *coll, const struct match *filter,
                            const struct sort_spec *sort, struct bval hint, uint64_t snapshot_ts, struct plan *out,
                            struct err *err);

/* Appends indexBounds: {field: ["[5, 10)" …] …} of a POINTS or IXSCAN plan to the open document, as explain shows it. False: too many to be
 * shown, nothing is appended. */
bool plan_put_bounds(struct arena *a, const struct plan *p, struct buf *out);

#endif
