/* Document locks: a striped table of (keyspace, key), first come, first served. They are no mutexes: whoever must wait gets
 * ENG_PENDING and is woken when the lock has been handed to it.
 *
 * A lock is known by a 64-bit hash of its key, not by the key: two keys that share a hash share a lock. That is safe (a transaction
 * that takes both takes one lock; others merely wait), and spares copying and comparing keys. */
#ifndef OV_LOCK_TABLE_H
#define OV_LOCK_TABLE_H

#include "server/base/base.h"
#include "storage/engine.h"

struct lock_table;
struct lock; /* held by one owner; opaque */

enum lock_answer { LOCK_GOT, LOCK_MINE_ALREADY, LOCK_WAIT };

struct lock_table *lock_table_new(void);
void lock_table_free(struct lock_table *t); /* nothing may be locked; accepts NULL */

/* Takes the lock for `owner`. LOCK_GOT sets *out, to be given back by lock_release. LOCK_WAIT: c is in the queue (c NULL: it is not) and
 * will be woken when the lock is its own; then call lock_granted. Thread: any. */
enum lock_answer lock_acquire(struct lock_table *t, uint64_t hash, const void *owner, struct eng_call *c,
                              struct lock **out);
/* Has the lock that c waits for been handed to it? Sets *out then; c waits for nothing any more. Thread: the owner's. */
bool lock_granted(struct lock_table *t, struct eng_call *c, struct lock **out);
/* Leaves the queue, or gives back what has just been granted. */
void lock_cancel(struct lock_table *t, struct eng_call *c);
/* Gives the lock to the first in the queue, and wakes it. */
void lock_release(struct lock_table *t, struct lock *l);
uint64_t lock_waits(const struct lock_table *t); /* how often somebody had to wait, since the start */

#endif
