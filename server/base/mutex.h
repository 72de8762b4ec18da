/* Mutexes with ranks: a thread locks only a rank higher than every rank it holds; debug builds check it. Nothing here is
 * held across a WAIT or I/O, except where a row says so. Document locks are not mutexes (storage/txn/lock_table.h). */
#ifndef OV_MUTEX_H
#define OV_MUTEX_H

#include <pthread.h>

#include "server/base/assert.h"
#include "server/base/base.h"

enum lock_rank {
    RANK_DDL = 5,      /* the list of running DDL and index builds */
    RANK_CATALOG = 10, /* swapping the catalog's tables */
    RANK_SESSION = 15, /* sessions, cursors */
    RANK_RUNNING = 17, /* lists of commands under way */
    RANK_FAILPOINT = 18,
    RANK_DOCLOCK = 30, /* one stripe of the document lock table: its mutex, not the document locks */
    RANK_MANIFEST =
        35,          /* edits of the manifest, one after the other: held across their I/O, by background threads only */
    RANK_FLUSH = 40, /* which memtables and runs make up the database: swapping the version */
    RANK_COMMIT = 50,  /* journal tail, timestamps, active memtable, visible: short, no I/O under it */
    RANK_JOURNAL = 60, /* waiters for durability; which segment is next */
    RANK_CACHE = 70,   /* one shard of the block cache */
    RANK_EPOCH = 80,
    RANK_WORKER = 84, /* the worker pool's queue: wake-ups post to it under mutexes of the engine */
    RANK_LOOP = 85,   /* a loop's queue of posted work: likewise */
    RANK_LOG = 90,    /* the server log: anyone may log while holding anything */
};

struct mutex {
    pthread_mutex_t m;
    enum lock_rank rank;
#ifdef OV_DEBUG
    pthread_t owner;
    bool held;
#endif
};

void mutex_init(struct mutex *m, enum lock_rank rank);
void mutex_destroy(struct mutex *m);
void mutex_lock(struct mutex *m); /* debug: aborts when the order is broken */
void mutex_unlock(struct mutex *m);
/* Waits on c, giving m up meanwhile; timeout_us < 0 waits for ever. Returns false on a timeout. */
bool mutex_wait(struct mutex *m, pthread_cond_t *c, int64_t timeout_us);
void cond_init(pthread_cond_t *c);      /* on the monotonic clock, which mutex_wait uses */
bool mutex_held(const struct mutex *m); /* debug: by this thread; release: always true */
#define ASSERT_HELD(m) OV_DASSERT(mutex_held(m))
void mutex_assert_none_held(void); /* debug: this thread holds none (before WAIT and I/O) */

#endif
