/* One statement that updates or removes what a filter finds: finds candidates, locks each, looks at its newest version, changes it. */
#ifndef OV_MODIFY_H
#define OV_MODIFY_H

#include "server/query/exec/exec.h"
#include "server/write/change.h"

enum modify_stage {
    MODIFY_START,
    MODIFY_BY_ID,     /* where the filter names one _id: its record id */
    MODIFY_CANDIDATE, /* else: the next one of the plan */
    MODIFY_LOCK,
    MODIFY_READ,
    MODIFY_CHANGE,
    MODIFY_COMMIT, /* then `after_commit` */
    MODIFY_NONE,   /* nothing was found */
    MODIFY_UPSERT,
    MODIFY_DONE,
};

struct modify {
    /* Set by the caller; all of it lives as long as the statement. */
    struct arena *arena; /* of the statement */
    const struct match *filter;
    const struct update *update; /* NULL: removes */
    bool multi, upsert;
    bool keep_before, keep_after; /* images are wanted (not with multi) */
    const struct sort_spec *sort; /* NULL: none */
    struct bval hint;             /* BSON_TYPE_EOD: none */
    const char *verb;             /* "update", "delete", "findAndModify": stands in messages */
    /* Results, once OK. */
    uint64_t matched, changed;
    struct bval upserted;          /* the new _id, in w->arena; BSON_TYPE_EOD: none was inserted */
    const uint8_t *before, *after; /* images; until the writer's next document */
    /* Its own: zero at first. */
    enum modify_stage stage, after_commit;
    bool exact; /* the filter is nothing but {_id: x} */
    bool by_id, again;
    uint32_t retries;
    struct plan plan;
    struct eng_txn *reader;
    struct exec *exec;
    uint32_t candidates;      /* that it has given */
    uint64_t rid, matched_ts; /* of the candidate; the version that the plan has matched, 0 if none */
    int32_t array_index;
    struct update_effect effect;
    struct change change;
};

/* Goes on. The collection is entered by it. OK: done and committed. FAILED: err tells the client; what was changed before stays committed. */
OV_MUST_CHECK enum write_result modify_step(struct writer *w, struct modify *m, struct err *err);
/* Closes what is open, however far it is; before writer_end and before the struct is used again. */
void modify_end(struct modify *m);

#endif
