/* Retryable writes: a command that carries a session and a txnNumber runs once, however often it is sent. What each of its statements has
 * done is a row of the session's, in the same batch as the write (R18): it survives what the write survives, and a retry answers from it.
 * A session is one command at a time: its lock is held from retry_begin to retry_end, so that a retry that overtakes its original waits.
 * A statement that changed nothing leaves nothing behind and is run anew. Rows go when the session has not written for half an hour. */
#ifndef OV_RETRY_H
#define OV_RETRY_H

#include "protocol/bson/bson.h"
#include "server/base/err.h"
#include "server/write/writer.h"

#define RETRY_EXPIRE_MS (30 * 60 * 1000LL)

enum retry_kind { RETRY_INSERTED = 1, RETRY_UPDATED, RETRY_UPSERTED, RETRY_REMOVED };
enum retry_image { RETRY_IMAGE_NONE, RETRY_IMAGE_BEFORE, RETRY_IMAGE_AFTER };
struct retry_statement { /* one that has changed a document */
    int32_t id;
    enum retry_kind kind;
    struct bval upserted; /* its _id; BSON_TYPE_EOD unless kind is UPSERTED */
    enum retry_image image_kind;
    const uint8_t *image; /* findAndModify's; NULL unless image_kind tells */
};

struct retry {
    struct write_outcomes outcomes; /* for the writer */
    /* Set by the caller, who owns all of it; zero else. */
    struct engine *e;
    struct eng_call *call;
    struct arena *arena; /* history and errors */
    uint8_t lsid[16];
    int64_t txn_number;
    bool many;                   /* it may take more than one batch */
    bool upserts;                /* an insertion is an upsert: its _id is kept */
    enum retry_image keep_image; /* RETRY_IMAGE_NONE: none */
    int32_t statement;           /* in hand: to be set before the document enters the batch */
    /* Its own. */
    struct eng_txn *txn; /* holds the session's lock, writes nothing */
    struct eng_scan *scan;
    enum { RETRY_LOCK, RETRY_HEAD, RETRY_ROWS, RETRY_RUN } stage;
    uint32_t rows;     /* that the session has on disk */
    uint32_t next_row; /* of this txnNumber */
    struct retry_statement *done;
    uint32_t n_done, cap_done;
    struct buf pending, image, value; /* of the batch that is being filled */
    uint32_t n_pending;
    enum retry_image pending_image;
};

enum retry_status {
    RETRY_READY,
    RETRY_WAIT,   /* call->wake comes; call the same again */
    RETRY_FAILED, /* err tells: 225 a newer txnNumber has been here, 217 rows are missing */
    RETRY_ENGINE, /* *engine_result tells */
};
/* Takes the session and reads what is known of txn_number. Inside a step; goes on where it waited. */
OV_MUST_CHECK enum retry_status retry_begin(struct retry *r, enum eng_result *engine_result, struct err *err);
/* What the statement did when it was first sent; NULL: it is to be run. After RETRY_READY; valid as long as the arena. */
const struct retry_statement *retry_find(const struct retry *r, int32_t statement);
/* The documents that entered the batch are not to be committed after all. */
void retry_drop_batch(struct retry *r);
/* Lets the session go. Nothing may be pending for the call. Inside a step; idempotent. */
void retry_end(struct retry *r);

/* Codes after which a driver tries once more (label RetryableWriteError). */
bool retry_is_retriable(int code);

struct retry_sweep { /* where the removal of old rows has got to; zero at first */
    uint8_t at[21];  /* behind the last key */
    bool going;
};
/* Looks at the next rows and removes those whose session has not written for RETRY_EXPIRE_MS; to be called about once a second. A session
 * that is in use stays. Outside a step; any one thread. */
void retry_tick(struct retry_sweep *s, struct engine *e, int64_t now_wall_ms);

#endif
