/* bulkWrite, between its parts: the request as it was sent (bulk_write_ops.c) and its run (bulk_write.c). */
#ifndef OV_BULK_WRITE_PRIVATE_H
#define OV_BULK_WRITE_PRIVATE_H

#include "server/commands/write_batch.h"
#include "server/write/modify.h"

enum bulk_kind { BULK_INSERT, BULK_UPDATE, BULK_DELETE };

struct bulk_ns { /* one of nsInfo */
    const char *db, *coll;
};
struct bulk_op { /* borrowed from the request */
    enum bulk_kind kind;
    uint32_t ns;             /* its place in nsInfo */
    const uint8_t *document; /* of an insert */
    const uint8_t *filter, *sort;
    struct bval u, array_filters, hint;
    bool multi, upsert;
};
struct bulk_request {
    struct write_items ops; /* from the first one on */
    struct bulk_ns *ns;
    uint32_t n_ns;
    bool ordered, errors_only;
    int64_t batch_size;
};

/* Reads and checks the whole command, every operation of it. Nonzero: op.err is set; nothing is to be run. */
OV_MUST_CHECK int bulk_request_read(struct command_ctx *cx, struct bulk_request *out);
/* One of ops. Cannot fail for one that bulk_request_read has seen. */
OV_MUST_CHECK int bulk_op_read(struct command_ctx *cx, const uint8_t *item, struct bulk_op *out);
/* What an update or a delete means: found out when it is its turn, so that a bad one fails alone. `sort` is filled if the operation has one. */
OV_MUST_CHECK int bulk_op_parse(struct command_ctx *cx, const struct bulk_op *op, struct arena *a,
                                struct sort_spec *sort, struct modify *out);

#endif
