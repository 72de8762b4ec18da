/* Which versions somebody may still need: asked by flush and merge alike. */
#ifndef OV_COMPACT_KEEP_H
#define OV_COMPACT_KEEP_H

#include "server/base/base.h"

struct keep {
    uint64_t floor;            /* any snapshot at or after it may exist, or come to exist */
    const uint64_t *snapshots; /* the registered ones, ascending */
    size_t n;
};

/* Is there a snapshot s with from <= s < until? Then the version written at `from` and superseded at `until` must stay. */
static inline bool keep_needs(const struct keep *k, uint64_t from, uint64_t until)
{
    if (until > k->floor)
        return true;
    size_t lo = 0, hi = k->n;
    while (lo < hi) { /* the first snapshot >= from */
        size_t mid = (lo + hi) / 2;
        if (k->snapshots[mid] < from)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < k->n && k->snapshots[lo] < until;
}

/* No snapshot is older than this. */
static inline uint64_t keep_oldest(const struct keep *k)
{
    return k->n && k->snapshots[0] < k->floor ? k->snapshots[0] : k->floor;
}

#endif
