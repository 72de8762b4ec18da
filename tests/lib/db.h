/* An engine for tests: in manual mode on a disk in memory unless told otherwise, with calls that do the waiting. A call that fails where
 * it should not aborts with its name. Thread: one at a time, outside a step, unless said. */
#ifndef OV_TEST_DB_H
#define OV_TEST_DB_H

#include <stdatomic.h>

#include "storage/engine.h"
#include "tests/lib/file_mem.h"

struct db {
    struct file_mem *disk;
    struct eng_options opt;
    struct engine *e;
    struct eng_call c;
    _Atomic int woken;
};

/* A new disk and an empty database on it. */
void db_new(struct db *d);
void db_free(struct db *d);
void db_open(struct db *d); /* aborts if it cannot be opened */
enum eng_result db_try_open(struct db *d, struct eng_error *err);
void db_close(struct db *d);
void db_reopen(struct db *d); /* a clean stop and a start */
void db_kill(struct db *d);   /* hands over, then kill -9: goes on with a copy of the disk as it was */
void db_power_loss(struct db *d, uint64_t seed); /* the same, but what was not synced is lost */

/* Waits for a polled call: does background work until it is woken, and calls again. */
#define DB_WAIT(d, call)                             \
    __extension__({                                  \
        enum eng_result db_r;                        \
        while ((db_r = (call)) == ENG_PENDING)       \
            while (!atomic_exchange(&(d)->woken, 0)) \
                db_pump(d);                          \
        db_r;                                        \
    })
void db_pump(struct db *d); /* one piece of background work, or a short sleep if threads do it */
void db_work(struct db *d); /* all of it */

/* One operation in a step and transaction of its own. Values are text. */
void db_put(struct db *d, uint64_t keyspace, const char *key, const char *value); /* insert, or update if it is there */
void db_del(struct db *d, uint64_t keyspace, const char *key);
const char *db_get(struct db *d, uint64_t keyspace, const char *key); /* NULL if absent; a static buffer */
/* "a=1 b=2": the keyspace in order, or backwards; a static buffer. */
const char *db_all(struct db *d, uint64_t keyspace, bool reverse);
void db_sync(struct db *d);
void db_flush(struct db *d);

/* Inside a step of the caller's. */
const char *db_read(struct db *d, struct eng_txn *t, uint64_t keyspace, const char *key, uint32_t flags);
const char *db_scan(struct db *d, struct eng_txn *t, const struct eng_range *range);
enum eng_result db_commit(struct db *d, struct eng_txn *t, enum eng_durability how, uint64_t *ts);

#define S(text) slice_str(text)

#endif
