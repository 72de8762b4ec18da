/* LOCK -> HEAD (the session's first row: which txnNumber was last) -> ROWS (all of them, if they matter) -> RUN
 *
 * SESSION ROW: keyspace KEYSPACE_SESSION 0; key = session id (16) ‖ number of the row (4, big-endian), one row for each batch that the
 * command has committed; value, little-endian:
 *   offset  size  field
 *      0      1   version (1)
 *      1      1   image: 0 none, 1 the document before, 2 after
 *      2      8   txnNumber
 *     10      8   wall clock of the commit, ms
 *     18      4   n: statements
 *     22      …   n times: statement id (4), enum retry_kind (1); if RETRY_UPSERTED also the type of the _id (1), its length (4), its bytes
 *      …      …   the image, a BSON document
 * A newer txnNumber writes over the rows from 0 on; what is left of older ones behind its own is told by their txnNumber and means nothing.
 * Rows 0 … k of one txnNumber are written in that order: one that is missing in between was lost. */
#include "server/session/retry.h"

#include <stdlib.h>

#include "index/index.h"
#include "server/base/clock.h"

enum { ROW_VERSION = 1, ROW_HEAD = 22, ROW_KEY = 20, STATEMENT_HEAD = 5, ID_HEAD = 5 };
#define SESSION_ROWS keyspace_id(KEYSPACE_SESSION, 0)

static void row_key(const uint8_t lsid[16], uint32_t number, uint8_t out[ROW_KEY])
{
    memcpy(out, lsid, 16);
    store_be32(out + 16, number);
}

/* ---- reading rows ---- */

struct row {
    int64_t txn_number, wall_ms;
    uint32_t n;
    enum retry_image image_kind;
    struct slice rest;
};

static bool row_parse(struct slice v, struct row *out)
{
    if (v.n < ROW_HEAD || v.p[0] != ROW_VERSION || v.p[1] > RETRY_IMAGE_AFTER)
        return false;
    *out = (struct row){
        .txn_number = (int64_t)load_le64(v.p + 2),
        .wall_ms = (int64_t)load_le64(v.p + 10),
        .n = load_le32(v.p + 18),
        .image_kind = v.p[1],
        .rest = slice_of(v.p + ROW_HEAD, v.n - ROW_HEAD),
    };
    return true;
}

/* The next statement of a row; *rest moves behind it. The bytes of an _id are borrowed. */
static bool statement_parse(struct slice *rest, struct retry_statement *out)
{
    size_t used = STATEMENT_HEAD;
    if (rest->n < STATEMENT_HEAD)
        return false;
    *out = (struct retry_statement){.id = (int32_t)load_le32(rest->p), .kind = rest->p[4], .upserted = BVAL_MISSING};
    if (out->kind == RETRY_UPSERTED) {
        if (rest->n < STATEMENT_HEAD + ID_HEAD)
            return false;
        uint32_t n = load_le32(rest->p + 6);
        if (rest->n - STATEMENT_HEAD - ID_HEAD < n)
            return false;
        out->upserted = (struct bval){rest->p[5], n, rest->p + STATEMENT_HEAD + ID_HEAD};
        used += ID_HEAD + n;
    }
    *rest = slice_of(rest->p + used, rest->n - used);
    return true;
}

static struct retry_statement *add_done(struct retry *r)
{
    if (r->n_done == r->cap_done) {
        uint32_t cap = OV_MAX(16, r->cap_done * 2);
        struct retry_statement *more = arena_alloc(r->arena, cap * sizeof(*more));
        if (r->n_done)
            memcpy(more, r->done, r->n_done * sizeof(*more));
        r->done = more;
        r->cap_done = cap;
    }
    return &r->done[r->n_done++];
}

/* Keeps what a row of our txnNumber tells. */
static bool row_keep(struct retry *r, const struct row *row)
{
    struct slice rest = row->rest;
    struct retry_statement *s = NULL;
    for (uint32_t i = 0; i < row->n; i++) {
        s = add_done(r);
        if (!statement_parse(&rest, s))
            return false;
        s->upserted.p = s->upserted.n ? arena_dup(r->arena, s->upserted.p, s->upserted.n) : s->upserted.p;
    }
    if (row->image_kind == RETRY_IMAGE_NONE || !s)
        return true;
    if (rest.n < 5 || bdoc_len(rest.p) != rest.n)
        return false;
    s->image_kind = row->image_kind;
    s->image = arena_dup(r->arena, rest.p, rest.n);
    return true;
}

static int damaged(struct err *err)
{
    return err_set(err, ERR_DATA_CORRUPTION_DETECTED, "a row of a session's retryable writes is damaged");
}

/* ---- beginning ---- */

static const char *session_text(const struct retry *r)
{
    const uint8_t *u = r->lsid; /* then the digest of the user's name, which is empty */
    return arena_printf(r->arena,
                        "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x - "
                        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= -  - ",
                        u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
                        u[15]);
}

static enum retry_status engine(enum eng_result r, enum eng_result *out)
{
    *out = r;
    return r == ENG_PENDING ? RETRY_WAIT : RETRY_ENGINE;
}

static enum retry_status take_lock(struct retry *r, enum eng_result *out)
{
    if (!r->txn)
        r->txn = eng_begin(r->e, 0, 0);
    enum eng_result er = eng_lock(r->txn, SESSION_ROWS, slice_of(r->lsid, sizeof(r->lsid)), r->call);
    if (er != ENG_OK)
        return engine(er, out);
    eng_refresh(r->txn);
    r->stage = RETRY_HEAD;
    return RETRY_READY;
}

static enum retry_status read_head(struct retry *r, enum eng_result *out, struct err *err)
{
    uint8_t key[ROW_KEY];
    struct eng_row found;
    struct row row;
    row_key(r->lsid, 0, key);
    enum eng_result er = eng_get(r->txn, SESSION_ROWS, slice_of(key, sizeof(key)), ENG_GET_NEWEST, &found, r->call);
    if (er != ENG_OK && er != ENG_NOT_FOUND)
        return engine(er, out);
    r->stage = r->many ? RETRY_ROWS : RETRY_RUN;
    if (er == ENG_NOT_FOUND)
        return RETRY_READY;
    r->rows = 1;
    if (!row_parse(found.value, &row))
        return damaged(err), RETRY_FAILED;
    if (row.txn_number > r->txn_number) {
        (void)err_set(err, ERR_TRANSACTION_TOO_OLD,
                      "Retryable write with txnNumber %lld is prohibited on session %s because a newer retryable write "
                      "with txnNumber %lld has already started on this session.",
                      (long long)r->txn_number, session_text(r), (long long)row.txn_number);
        return RETRY_FAILED;
    }
    if (row.txn_number == r->txn_number)
        r->stage = RETRY_ROWS;
    return RETRY_READY;
}

static int take_row(struct retry *r, const struct eng_row *found, struct err *err)
{
    struct row row;
    if (found->key.n != ROW_KEY || !row_parse(found->value, &row))
        return damaged(err);
    uint32_t number = load_be32(found->key.p + 16);
    r->rows = number + 1;
    if (row.txn_number != r->txn_number)
        return 0;
    if (number != r->next_row)
        return err_set(err, ERR_INCOMPLETE_TRANSACTION_HISTORY,
                       "Incomplete history detected for transaction %lld on session %s", (long long)r->txn_number,
                       session_text(r));
    r->next_row++;
    return row_keep(r, &row) ? 0 : damaged(err);
}

static int by_id(const void *a, const void *b)
{
    int32_t x = ((const struct retry_statement *)a)->id, y = ((const struct retry_statement *)b)->id;
    return x < y ? -1 : x > y;
}

static enum retry_status read_rows(struct retry *r, enum eng_result *out, struct err *err)
{
    uint8_t from[ROW_KEY], to[ROW_KEY];
    struct eng_page page = {.more = true};
    row_key(r->lsid, 0, from);
    row_key(r->lsid, UINT32_MAX, to);
    if (!r->scan)
        r->scan = eng_scan_open(r->txn, &(struct eng_range){.keyspace = SESSION_ROWS,
                                                            .from = slice_of(from, sizeof(from)),
                                                            .to = slice_of(to, sizeof(to))});
    while (page.more) {
        enum eng_result er = eng_scan_next(r->scan, &page, r->call);
        if (er != ENG_OK)
            return engine(er, out);
        for (size_t i = 0; i < page.n; i++)
            if (take_row(r, &page.rows[i], err) != 0)
                return RETRY_FAILED;
    }
    eng_scan_close(r->scan);
    r->scan = NULL;
    if (r->n_done)
        qsort(r->done, r->n_done, sizeof(*r->done), by_id);
    r->stage = RETRY_RUN;
    return RETRY_READY;
}

static void note(struct write_outcomes *o, const uint8_t *before, const uint8_t *after);
static bool put(struct write_outcomes *o, struct eng_txn *t);

enum retry_status retry_begin(struct retry *r, enum eng_result *engine_result, struct err *err)
{
    enum retry_status s = RETRY_READY;
    r->outcomes = (struct write_outcomes){note, put};
    if (s == RETRY_READY && r->stage == RETRY_LOCK)
        s = take_lock(r, engine_result);
    if (s == RETRY_READY && r->stage == RETRY_HEAD)
        s = read_head(r, engine_result, err);
    if (s == RETRY_READY && r->stage == RETRY_ROWS)
        s = read_rows(r, engine_result, err);
    if (s == RETRY_WAIT)
        eng_txn_hold(r->txn);
    else if (s == RETRY_READY)
        eng_txn_release(r->txn); /* it holds the lock; no versions are kept for it */
    return s;
}

const struct retry_statement *retry_find(const struct retry *r, int32_t statement)
{
    struct retry_statement key = {.id = statement};
    return r->n_done ? bsearch(&key, r->done, r->n_done, sizeof(key), by_id) : NULL;
}

void retry_end(struct retry *r)
{
    eng_scan_close(r->scan);
    eng_end(r->txn);
    r->scan = NULL;
    r->txn = NULL;
    buf_free(&r->pending);
    buf_free(&r->image);
    buf_free(&r->value);
}

/* ---- writing rows ---- */

static void note(struct write_outcomes *o, const uint8_t *before, const uint8_t *after)
{
    struct retry *r = OV_CONTAINER(o, struct retry, outcomes);
    struct buf *b = &r->pending;
    buf_le32(b, (uint32_t)r->statement);
    r->n_pending++;
    if (!before && r->upserts) {
        struct bval id = bdoc_get(after, "_id");
        buf_byte(b, RETRY_UPSERTED);
        buf_byte(b, (uint8_t)id.type);
        buf_le32(b, id.n);
        buf_append(b, id.p, id.n);
    } else {
        buf_byte(b, !before ? RETRY_INSERTED : !after ? RETRY_REMOVED : RETRY_UPDATED);
    }
    const uint8_t *image = r->keep_image == RETRY_IMAGE_BEFORE  ? before
                           : r->keep_image == RETRY_IMAGE_AFTER ? after
                                                                : NULL;
    r->pending_image = image ? r->keep_image : RETRY_IMAGE_NONE;
    r->image.len = 0;
    if (image)
        buf_append(&r->image, image, bdoc_len(image));
}

void retry_drop_batch(struct retry *r)
{
    r->pending.len = r->image.len = 0;
    r->n_pending = 0;
    r->pending_image = RETRY_IMAGE_NONE;
}

static bool put(struct write_outcomes *o, struct eng_txn *t)
{
    struct retry *r = OV_CONTAINER(o, struct retry, outcomes);
    struct buf *v = &r->value;
    uint8_t key[ROW_KEY];
    if (!r->n_pending)
        return true;
    v->len = 0;
    buf_byte(v, ROW_VERSION);
    buf_byte(v, (uint8_t)r->pending_image);
    buf_le64(v, (uint64_t)r->txn_number);
    buf_le64(v, (uint64_t)clock_wall_ms());
    buf_le32(v, r->n_pending);
    buf_append(v, r->pending.p, r->pending.len);
    buf_append(v, r->image.p, r->image.len);
    row_key(r->lsid, r->next_row, key);
    eng_put(t, SESSION_ROWS, slice_of(key, sizeof(key)), buf_slice(v), r->next_row < r->rows ? ENG_UPDATE : ENG_INSERT);
    r->next_row++;
    r->rows = OV_MAX(r->rows, r->next_row);
    retry_drop_batch(r);
    return true;
}

/* ---- labels ---- */

bool retry_is_retriable(int code)
{
    static const int codes[] = {6,   7,   89,   91,    134,   189,   262,   358,   402,   406,   407,     412,
                                453, 462, 9001, 10107, 11600, 11602, 13435, 13436, 50915, 91331, 10045600};
    for (size_t i = 0; i < OV_LEN(codes); i++)
        if (codes[i] == code)
            return true;
    return false;
}
