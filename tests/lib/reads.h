/* A collection made by hand, for tests of what reads: documents, index entries, and the steps of a host. */
#ifndef OV_TEST_READS_H
#define OV_TEST_READS_H

#include "server/query/exec/exec.h"
#include "tests/lib/db.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

enum { DOCS = 700 };

struct fix {
    struct db db;
    struct arena *a;
    struct collection coll;
    struct collection_rt rt;
    struct index_def indexes[3]; /* _id_, a_1 (several documents a key; arrays), b_1_c_1 */
    struct index_rt index_rt[3];
    struct operation op;
    struct err err;
    bool slices;  /* every slice is over at once */
    bool suspend; /* after each row the step ends */
    int steps;
};

/* Documents {_id: i, a: i % 10, b: i % 3, c: i * 7 % 700}, record id i + 1; half of them in a run on disk. */
void fix_new(struct fix *f, int debug_pending);
void fix_free(struct fix *f);
void fix_put(struct fix *f, uint64_t keyspace, struct slice key, struct slice value);
void fix_delete_doc(struct fix *f,
                    int id); /* the record alone: its index entries stay, as for a reader with an older page */
struct slice fix_key(struct fix *f, const char *json_array); /* of integers: their keys, one after the other */
struct slice fix_after(struct fix *f, struct slice key);     /* above all keys that begin with it */
struct plan_interval fix_interval(struct fix *f, const char *from, const char *upto); /* both ends included */
/* Ends the step and waits for the wake-up, or just ends it; then enters the next. */
void fix_wait(struct fix *f);
void fix_next_step(struct fix *f);

#endif
