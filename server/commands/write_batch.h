/* What insert, update and delete have in common: items from an array or a document sequence, ordered or not, writeErrors, the reply. */
#ifndef OV_WRITE_BATCH_H
#define OV_WRITE_BATCH_H

#include "server/commands/crud_write.h"
#include "server/commands/write_retry.h"
#include "server/write/writer.h"

#define WRITE_ITEMS_MAX 100000

struct write_items { /* all of one type: documents */
    bool sequence;
    const uint8_t *p, *end; /* of a sequence */
    struct biter it;
    uint32_t n;
};
/* Items in the command's array `field` or in a document sequence of that name. Nonzero: op.err is set. */
OV_MUST_CHECK int write_items_open(struct command_ctx *cx, const char *field, struct write_items *out);
OV_MUST_CHECK int write_items_check(struct command_ctx *cx, const struct write_items *items); /* their number */
bool write_items_next(struct write_items *items, const uint8_t **doc);

enum batch_stage {
    BATCH_NEXT,
    BATCH_ITEM,
    BATCH_FLUSH,
    BATCH_REPLY,
    BATCH_SYNC,
    BATCH_SESSION /* first of a retryable write */
};
struct write_batch {
    struct writer w;
    struct write_items items, all;
    bool ordered;
    const uint8_t *item; /* in hand */
    /* Goes on with the item: set by the command. */
    enum write_result (*step)(struct command_ctx *cx, struct write_batch *b);
    void (*end)(struct write_batch *b); /* closes what the item in hand has open; may be NULL */
    bool counts_changed;                /* update: the reply has nModified */
    struct write_retry *retry;          /* NULL: no retryable write */
    /* Results. */
    int64_t n, n_modified; /* insert: n comes from the writer */
    bool n_of_writer;
    struct buf upserted, errors; /* elements of the reply's arrays */
    uint32_t n_upserted, n_errors;
    /* Its own. */
    enum batch_stage stage;
    bool finished;       /* replied; nothing is pending */
    bool last, again;    /* after the flush: the end; a pause */
    uint32_t index;      /* of the item in hand */
    struct arena *arena; /* of statements after the first */
};

/* Reads what the three have in common out of the command; `field` names the items. False: cx->op.err is set. Sets cx->state and cleanup;
 * `b` is the first member of the command's state. */
OV_MUST_CHECK bool write_batch_start(struct command_ctx *cx, struct write_batch *b, const char *field);
/* The item in hand has inserted a document: into the reply. */
void write_batch_upserted(struct write_batch *b, struct bval id);
enum op_status write_batch_run(struct command_ctx *cx, struct write_batch *b);
/* Memory for what a statement is parsed into, until the next statement. */
struct arena *write_batch_arena(struct command_ctx *cx, struct write_batch *b);

/* May this command write to this collection, as it was sent? 73. */
OV_MUST_CHECK int write_check_ns(struct command_ctx *cx, const char *db, const char *coll);
OV_MUST_CHECK int write_check(struct command_ctx *cx, const char *coll);

#endif
