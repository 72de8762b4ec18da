/* Fills indexes that were added as building to a collection that has documents, while writers go on. Writers maintain a building index like
 * any other, so the build only adds what is missing: it walks a snapshot, and for each document locks it, reads its newest version, and adds
 * the entries that are not there. In batches, in slices of an operation. */
#ifndef OV_INDEX_BUILD_H
#define OV_INDEX_BUILD_H

#include "server/catalog/catalog.h"
#include "server/op/operation.h"

struct index_build;
enum build_result {
    BUILD_DONE,  /* every document has its entries: to be published as ready */
    BUILD_AGAIN, /* the slice is over */
    BUILD_WAIT,  /* call->wake comes */
    BUILD_FAILED, /* err tells: 11000, 171, 276 (index or collection dropped meanwhile) … the indexes are to be dropped */
};

/* A build of the indexes `names` of db.name; everything is copied into `a`, which also keeps what a failure tells. */
struct index_build *index_build_new(struct arena *a, struct engine *e, struct catalog *c, const char *db,
                                    const char *name, const char *const *names, uint32_t n);
/* Goes on. Inside a step; `op` ends slices (NULL: never), `call` is the same each time. */
OV_MUST_CHECK enum build_result index_build_step(struct index_build *b, struct operation *op, struct eng_call *call,
                                                 struct err *err);
uint64_t index_build_documents(const struct index_build *b); /* looked at so far */
/* Gives up what it holds, however far it is; inside a step. A pending call is to be cancelled by the caller before. Accepts NULL. */
void index_build_end(struct index_build *b);

#endif
