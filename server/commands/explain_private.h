/* explain: a command that is looked at instead of run. */
#ifndef OV_EXPLAIN_PRIVATE_H
#define OV_EXPLAIN_PRIVATE_H

#include "server/commands/crud_read_private.h"
#include "server/query/update/update.h"

enum explain_top { TOP_NONE, TOP_COUNT, TOP_FAST_COUNT, TOP_UPDATE, TOP_DELETE };
struct explain {
    const uint8_t *inner; /* the command */
    bool run;             /* executionStats, allPlansExecution */
    bool all_plans;
    int64_t began_us;
    /* What the command asks of its collection: explain_target.c. Documents may be NULL. */
    const uint8_t *filter, *sort, *projection;
    int64_t skip, limit;
    enum explain_top top; /* the stage above the plan */
    bool upsert;
    bool only_first;             /* the change is of one document */
    const struct update *update; /* TOP_UPDATE, unless the document is removed */
    struct arena *scratch;       /* of each update that is tried */
    const uint8_t *stages;       /* of a pipeline: its array; NULL: no pipeline */
    uint32_t n_above;            /* so many of its last stages stand above the plan */
    bool pull_stages;            /* … and are run, too: they write nothing */
    /* What running it has shown. */
    int64_t would_modify;
};

/* Opens what cx->req (the command inside) would read, as cx->state. NULL: op.err is set; one that cannot be explained: 238. */
struct reading *explain_open(struct command_ctx *cx, struct explain *e);

/* Appends the plan as a tree of stages under the name `root`, with what they did if `stats`. */
void explain_put_plan(struct command_ctx *cx, const struct explain *e, const struct reading *r, const char *root,
                      bool stats);
/* A number as a client expects it: an int if it fits. */
void explain_put_number(struct buf *b, const char *name, int64_t n);

#endif
