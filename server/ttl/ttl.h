/* Expiry: a thread that every so often removes the documents whose time has come, by the indexes that have expireAfterSeconds. It writes like a
 * client's delete does: in batches, each document looked at anew under its lock. */
#ifndef OV_TTL_H
#define OV_TTL_H

#include "server/catalog/catalog.h"

#define TTL_SLEEP_SECS 60

struct ttl;
struct ttl_stats {
    int64_t passes, deleted; /* since the start */
};

/* Starts the thread. Engine and catalog outlive it. Outside a step. */
struct ttl *ttl_start(struct engine *e, struct catalog *c, int64_t sleep_secs);
/* Interrupts what it is doing, joins, frees. Outside a step; accepts NULL. */
void ttl_stop(struct ttl *t);

/* Thread of these: any. */
void ttl_stats(const struct ttl *t, struct ttl_stats *out);
int64_t ttl_sleep_secs(const struct ttl *t);
void ttl_set_sleep_secs(struct ttl *t, int64_t secs); /* at least 1; counts from the end of the last pass */
bool ttl_enabled(const struct ttl *t);
void ttl_enable(struct ttl *t, bool on); /* off: a pass under way ends, none begins */

#endif
