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
    if (r->placed && range.reverse)
        range.to = buf_slice(&r->place);
    else if (r->placed)
        range.from = buf_slice(&r->place);
    r->scan = eng_scan_open(t, &range);
}

enum exec_status range_scan_peek(struct range_scan *r, struct eng_txn *t, struct eng_call *call,
                                 const struct eng_row **row, struct err *err)
{
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

void range_scan_suspend(struct range_scan *r)
{
    if (r->at < r->page.n) {
        struct slice key = r->page.rows[r->at].key;
        r->place.len = 0;
        buf_append(&r->place, key.p, key.n);
        if (r->range.reverse)
            buf_byte(&r->place, 0); /* the range's end is outside: the first key behind this one */
        r->placed = true;
        r->last_page = false;
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
