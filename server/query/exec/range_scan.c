/* One range of one keyspace, in pages, across steps. A scan of the engine remembers where its page ended; what is lost between steps is
 * the rest of a page. So a suspended scan that has rows left is closed and opened again at the first of them. */
#include "server/query/exec/exec_private.h"

void range_scan_init(struct range_scan *r, const struct eng_range *range)
{
    *r = (struct range_scan){.range = *range};
    buf_init(&r->place);
}

static void open_scan(struct range_scan *r, struct eng_txn *t)
{
    struct eng_range range = r->range;
    if (r->placed != PLACE_START) {
        /* `from` is inside the range and `to` outside; a key with a zero behind it is the next one. */
        if ((r->placed == PLACE_PAST) != range.reverse)
            buf_byte(&r->place, 0);
        if (range.reverse)
            range.to = buf_slice(&r->place);
        else
            range.from = buf_slice(&r->place);
    }
    r->scan = eng_scan_open(t, &range);
}

enum exec_status range_scan_peek(struct range_scan *r, struct eng_txn *t, struct eng_call *call,
                                 const struct eng_row **row, struct err *err)
{
    if (r->has_head) {
        *row = &r->head;
        return EXEC_ROW;
    }
    while (r->at == r->page.n) {
        if (r->last_page)
            return EXEC_EOF;
        if (!r->scan)
            open_scan(r, t);
        r->at = 0;
        enum eng_result res = eng_scan_next(r->scan, &r->page, call);
        if (OV_UNLIKELY(res != ENG_OK)) {
            r->page.n = 0;
            return exec_engine(res, err);
        }
        r->last_page = !r->page.more;
    }
    *row = &r->page.rows[r->at];
    return EXEC_ROW;
}

static void keep_head(struct range_scan *r, const struct eng_row *row)
{
    OV_ASSERT(row->value.n <= sizeof(r->head_value)); /* a record id, or nothing */
    if (row->value.n)
        memcpy(r->head_value, row->value.p, row->value.n);
    r->head = (struct eng_row){buf_slice(&r->place), slice_of(r->head_value, row->value.n), row->ts};
    r->has_head = true;
}

void range_scan_suspend(struct range_scan *r)
{
    if (r->at < r->page.n) {
        const struct eng_row *row = &r->page.rows[r->at];
        r->place.len = 0;
        buf_append(&r->place, row->key.p, row->key.n);
        r->placed = PLACE_AT;
        r->last_page = false;
        if (r->keeps_head)
            keep_head(r, row);
        eng_scan_close(r->scan);
        r->scan = NULL;
    }
    r->page = (struct eng_page){0};
    r->at = 0;
}

void range_scan_close(struct range_scan *r)
{
    eng_scan_close(r->scan);
    r->scan = NULL;
    buf_free(&r->place);
}
