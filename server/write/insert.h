/* Documents inserted one after the other, committed in sub-batches. */
#ifndef OV_INSERT_H
#define OV_INSERT_H

#include "server/write/change.h"

enum insert_stage { INSERT_BEGIN, INSERT_CHANGE, INSERT_RESTART, INSERT_FLUSH };
struct insert {         /* zero at first; the same for all documents of a command */
    bool keep_empty_ts; /* set by the caller: top-level Timestamp(0, 0) is stored as it is */
    enum insert_stage stage;
    struct change change;
};

/* Goes on with `doc`, which stays where it is until the answer is OK or FAILED; makes the collection if need be. OK: in the writer's batch, or
 * committed with it; FAILED: this document is not inserted, others may be. */
OV_MUST_CHECK enum write_result insert_step(struct writer *w, struct insert *in, const uint8_t *doc, struct err *err);

#endif
