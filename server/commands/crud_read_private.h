/* What the commands that read share: arguments, the start of a read, batches. */
#ifndef OV_CRUD_READ_PRIVATE_H
#define OV_CRUD_READ_PRIVATE_H

#include "server/commands/crud_read.h"
#include "server/session/cursors.h"

enum { FIRST_BATCH = 101, BATCH_BYTES = BSON_DOC_MAX };

struct reading {         /* a read under way: the state of a command */
    struct cursor *cur;  /* NULL once it has gone into the table or is freed */
    struct cursor local; /* for reads that cannot outlast their command */
    struct exec *exec;
    const char *during; /* put in front of errors: "Executor error during find command" */
    bool during_ns;     /* … and the namespace */
    int64_t batch_size; /* documents of this batch at most; INT64_MAX: no limit */
    bool single_batch;
    const char *array; /* firstBatch, nextBatch */
    size_t cursor_at, array_at;
    uint32_t n;
    size_t bytes;
    int64_t counted;                 /* count */
    struct coll_stats_source *stats; /* $collStats under way, or NULL */
    void *own;                       /* the command's: distinct */
};

/* ---- arguments (crud_read_args.c) ---- */

/* Which of the (at most 64) names are fields of the body: bit i for names[i]. */
uint64_t fields_present(const uint8_t *body, const char *const *names);
/* Arguments that several commands share, refused or taken: collation, let, readConcern. Nonzero: op.err is set. */
OV_MUST_CHECK int arg_simple_collation(struct command_ctx *cx);
OV_MUST_CHECK int arg_empty_let(struct command_ctx *cx);
OV_MUST_CHECK int arg_read_concern(struct command_ctx *cx);
OV_MUST_CHECK int arg_hint(struct command_ctx *cx, struct bval *out); /* missing: type 0 */
/* An argument that must be absent or false. */
OV_MUST_CHECK int arg_refused_flag(struct command_ctx *cx, const char *field);

/* cursor: {batchSize}, of commands that answer by a cursor though they read no collection; INT64_MAX: not given. */
OV_MUST_CHECK int arg_cursor_batch_size(struct command_ctx *cx, int64_t *out);

/* ---- a read (crud_read.c) ---- */

/* False: the client's own last write is not visible yet (R13); the step answers WAIT, having asked for a wake-up. */
bool read_caught_up(struct command_ctx *cx);
/* A reading as cx->state, freed with the command; its transaction and collection (which may be missing: coll NULL). `outlasts`: it may become a
 * cursor, and gets an arena of its own: parse into r->cur->arena. */
struct reading *read_new(struct command_ctx *cx, bool outlasts);
void read_begin(struct command_ctx *cx, struct reading *r, const char *coll);
/* Plans and opens the execution. sort may be NULL. */
OV_MUST_CHECK int read_open(struct command_ctx *cx, struct reading *r, const struct match *filter,
                            const struct sort_spec *sort, struct bval hint, uint64_t skip, uint64_t limit);
/* In each later step: collection and index are still there. Nonzero: op.err is set. */
OV_MUST_CHECK int read_still_there(struct command_ctx *cx, struct reading *r);
/* Opens cursor: {firstBatch: [ in the reply. */
void read_open_batch(struct command_ctx *cx, struct reading *r, const char *array);
/* Goes on filling the batch; closes it when it is full. Then the cursor is in the table, or gone. */
enum op_status read_batch(struct command_ctx *cx, struct reading *r);
/* Documents back to back as the command's cursor: the first batch into the reply, a copy of the others stays in the table. Replaces cx->state and
 * cx->cleanup; never waits. */
enum op_status read_documents(struct command_ctx *cx, const char *ns, struct slice docs, int64_t batch_size);
/* ---- $collStats (coll_stats_stage.c): one document about the collection, measured in slices ---- */

/* For the first stage of a pipeline; `rest` are the stages behind it. */
void coll_stats_source_begin(struct command_ctx *cx, struct reading *r, const char *coll,
                             const struct stage_spec *stage, const struct pipeline_spec *rest);
/* DONE: r->cur->pipe is there, or op.err is set; WAIT, AGAIN. */
enum op_status coll_stats_source_step(struct command_ctx *cx, struct reading *r);
void coll_stats_source_end(struct reading *r); /* idempotent */

/* What exec_next or pipeline_next answered, if it was no row: WAIT, AGAIN, or an error. */
enum op_status read_stopped(struct command_ctx *cx, struct reading *r, enum exec_status s);

/* A find that is opened to be looked at, out of cx->req: its batch size counts for nothing. NULL: op.err is set. (find.c) */
struct reading *find_explained(struct command_ctx *cx);
/* The same of an aggregate; *n_above: so many of its last stages stand above the plan. (aggregate.c) */
struct reading *aggregate_explained(struct command_ctx *cx, uint32_t *n_above);
/* {aggregate, explain: true}: the whole reply. (explain.c) */
enum op_status explain_aggregate(struct command_ctx *cx);

#endif
