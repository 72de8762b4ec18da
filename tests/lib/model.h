/* What one client of the engine believes: a fixed set of keys that it alone writes, their values now, as of a snapshot, and after each of
 * its commits. Thread: one at a time. */
#ifndef OV_TEST_MODEL_H
#define OV_TEST_MODEL_H

#include "server/base/base.h"

enum { MODEL_KEYS = 96 };

struct model_value {
    uint32_t refs;
    size_t n;
    uint8_t bytes[];
};

struct model_state {
    struct model_value *values[MODEL_KEYS]; /* NULL: absent */
};

struct model_change {
    uint32_t key;
    struct model_value *value; /* NULL: deleted */
};

struct model_commit {
    uint64_t ts;
    struct model_change *changes;
    size_t n;
};

struct model {
    struct model_state base, now; /* before the first commit of the log; after the last */
    struct model_commit *log;
    size_t n, cap;  /* commits since base */
    uint64_t first; /* number of the first commit in the log */
};

struct model_value *model_value_new(size_t n);              /* one reference; bytes to be filled in */
struct model_value *model_value_ref(struct model_value *v); /* accepts NULL */
void model_value_unref(struct model_value *v);              /* accepts NULL */

void model_state_copy(struct model_state *to, const struct model_state *from);
void model_state_clear(struct model_state *s);
size_t model_state_count(const struct model_state *s);

void model_init(struct model *m);
void model_deinit(struct model *m);
/* One commit: takes the changes over (array and references). */
void model_commit(struct model *m, uint64_t ts, struct model_change *changes, size_t n);
uint64_t model_commits(const struct model *m); /* number of the last commit */
/* Number of the commit after commit `number`; its timestamp, or UINT64_MAX if there is none. */
uint64_t model_ts_of(const struct model *m, uint64_t number);
/* The state after commit `number`, which is in the log or just before it; *out is empty before. */
void model_at(const struct model *m, uint64_t number, struct model_state *out);
/* Goes back to the state after commit `number`, which becomes the base. */
void model_rewind(struct model *m, uint64_t number);

#endif
