/* Pipelines: a chain of stages that pull documents, over an execution. Parsed from the pipeline of aggregate; find is one without stages.
 * Stages: parse.c, one row and one function each. Thread: one at a time. */
#ifndef OV_STAGE_H
#define OV_STAGE_H

#include "server/query/exec/exec.h"
#include "server/query/exec/sorter.h"

struct pull {             /* whom a call is for */
    struct operation *op; /* may be NULL */
    struct eng_call *call;
    struct err *err;
};

/* ---- parsing ---- */

enum stage_kind {
    STAGE_MATCH,
    STAGE_SORT,
    STAGE_SKIP,
    STAGE_LIMIT,
    STAGE_PROJECT,
    STAGE_COUNT,
    STAGE_GROUP,
    STAGE_COLL_STATS
};
struct group_field { /* an accumulator that adds a constant up */
    const char *name;
    struct bval add;
};
struct stage_spec {
    enum stage_kind kind;
    struct match *match;
    struct sort_spec sort;
    uint64_t n; /* skip, limit */
    struct project *project;
    const char *name; /* $count */
    struct bval id;   /* $group: a constant */
    struct group_field *fields;
    uint32_t n_fields;
    bool count, storage_stats; /* $collStats: what is asked for; `n` is the scale */
};
struct pipeline_spec {
    struct stage_spec *stages;
    uint32_t n;
    const char *first_name; /* of the first stage; NULL if there is none */
};
/* `array` is a BSON array; everything is copied into `a`. Errors in the real server's words; a stage, accumulator or expression that is known
 * but not there yet: ERR_NOT_IMPLEMENTED, by name. STAGE_COLL_STATS only comes first: the command makes its document (pipeline_of_docs). */
OV_MUST_CHECK int pipeline_parse(struct arena *a, const uint8_t *array, struct pipeline_spec *out, struct err *err);

/* What the access to the collection can do itself, cut off the front of the specification: filter, then sort, then skip and limit.
 * Equivalent to the stages that are gone. */
struct access_spec {
    struct match *filter; /* never NULL */
    struct sort_spec sort;
    uint64_t skip, limit;
};
OV_MUST_CHECK int pipeline_push_down(struct arena *a, struct pipeline_spec *p, struct access_spec *out,
                                     struct err *err);

/* ---- running ---- */

struct pipeline;
/* Over `x`, which it closes; stages of `spec` (NULL: none) that are left. `last`: a projection to be applied by pipeline_emit; NULL: none.
 * A $project at the spec's end becomes it. `a`, spec and last live as long as the pipeline. */
struct pipeline *pipeline_new(struct arena *a, struct exec *x, const struct pipeline_spec *spec,
                              const struct project *last);
/* Over documents that are there already, back to back; they live as long as the pipeline. Otherwise as pipeline_new; there is no exec. */
struct pipeline *pipeline_of_docs(struct arena *a, struct slice docs, const struct pipeline_spec *spec,
                                  const struct project *last);
/* The next document, before the last projection: borrowed until the next call, or until the step ends. WAIT, AGAIN as exec_next. */
enum exec_status pipeline_next(struct pipeline *p, const struct pull *pull, const uint8_t **doc);
/* Appends the document as the client is to see it; nothing on an error. Errors: of project_apply. */
OV_MUST_CHECK int pipeline_emit(const struct pipeline *p, const uint8_t *doc, struct buf *out, struct err *err);
/* Takes back the document that was given last: it comes again, in a later step too. */
void pipeline_unget(struct pipeline *p, const uint8_t *doc);
bool pipeline_at_end(const struct pipeline *p);             /* known to have no more, without reading on */
void pipeline_suspend(struct pipeline *p);                  /* as exec_suspend */
const struct exec *pipeline_exec(const struct pipeline *p); /* NULL: pipeline_of_docs */
void pipeline_close(struct pipeline *p);                    /* accepts NULL */

#endif
