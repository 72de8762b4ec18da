/* The registry of snapshots that outlive a step: their versions stay. (A snapshot used within one step needs no entry: epoch_floor.)
 * Thread: any. */
#ifndef OV_SNAPSHOTS_H
#define OV_SNAPSHOTS_H

#include "server/base/base.h"
#include "server/base/mutex.h"

struct snapshot { /* lies inside the transaction */
    struct snapshot *prev, *next;
    uint64_t ts;
    bool open;
};

struct snapshots {
    struct mutex lock;   /* RANK_EPOCH */
    struct snapshot all; /* ring, ascending by ts */
    size_t n;
    uint64_t
        lost; /* versions needed by reads below this may be gone: registered readers excepted, no read may start there */
};

void snapshots_init(struct snapshots *s);
void snapshots_deinit(struct snapshots *s);
void snapshots_add(struct snapshots *s, struct snapshot *x, uint64_t ts);
/* The same for a read at an asked-for time: false if what it needs may be gone (R19), and then nothing is registered. */
OV_MUST_CHECK bool snapshots_add_past(struct snapshots *s, struct snapshot *x, uint64_t ts);
void snapshots_remove(struct snapshots *s, struct snapshot *x); /* harmless if not registered */

/* The oldest registered one, at most `limit`. */
uint64_t snapshots_oldest(struct snapshots *s, uint64_t limit, size_t *n);
/* The same, and in one step forbids new reads at times below the answer: for whoever drops superseded versions up to it. */
uint64_t snapshots_forget(struct snapshots *s, uint64_t limit);
/* All of them, ascending, without repeats, into a malloc'd array; forbids new reads below `limit`. */
size_t snapshots_list(struct snapshots *s, uint64_t limit, uint64_t **out);

#endif
