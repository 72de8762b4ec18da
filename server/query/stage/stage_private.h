/* Running stages. */
#ifndef OV_STAGE_PRIVATE_H
#define OV_STAGE_PRIVATE_H

#include "server/query/stage/stage.h"

struct stage {
    /* The next document, borrowed until the stage's next call or the end of the step. After WAIT or AGAIN: called again. EOF may be asked for again. */
    enum exec_status (*next)(struct stage *s, const struct pull *p, const uint8_t **doc);
    void (*close)(struct stage *s); /* its own memory that is not the arena's; may be NULL */
    struct stage *below;
};

/* A running stage over `below`, in `a`. */
struct stage *stage_open(struct arena *a, const struct stage_spec *spec, struct stage *below);
struct stage *count_open(struct arena *a, const struct stage_spec *spec); /* $count and $group: group.c */
/* The stage below all others where there is no execution: documents back to back (docs.c). */
struct stage *docs_open(struct arena *a, struct slice docs);
bool docs_at_end(const struct stage *s); /* of docs_open */

#endif
