/* BEGIN -> CHANGE -> (FLUSH); a lock that others hold while documents are in the batch: RESTART -> BEGIN. */
#include "server/write/insert.h"

static enum write_result begin(struct writer *w, struct insert *in, const uint8_t *doc, struct err *err)
{
    enum write_result r = writer_enter(w, true, err);
    bool same;
    if (r != WRITE_OK)
        return r;
    struct arena *a = writer_next_document(w);
    if (insert_prepare(doc, in->keep_empty_ts ? 0 : eng_now(w->e), &w->doc, &same, err) != 0)
        return WRITE_FAILED;
    in->change = (struct change){.arena = a, .after = same ? doc : w->doc.p};
    in->stage = INSERT_CHANGE;
    return WRITE_OK;
}

static enum write_result go_on(struct writer *w, struct insert *in, const uint8_t *doc, struct err *err)
{
    enum write_result r;
    for (;;) {
        switch (in->stage) {
        case INSERT_BEGIN:
            if ((r = begin(w, in, doc, err)) != WRITE_OK)
                return r; /* fall through */
        case INSERT_CHANGE:
            r = change_step(w, &in->change, err);
            if (r == WRITE_OK && !writer_batch_full(w))
                return r;
            if (r != WRITE_OK && r != WRITE_RESTART)
                return r;
            in->stage = r == WRITE_OK ? INSERT_FLUSH : INSERT_RESTART;
            break;
        case INSERT_RESTART:
            if ((r = writer_commit(w)) != WRITE_OK)
                return r;
            in->stage = INSERT_BEGIN;
            break;
        case INSERT_FLUSH:
            return writer_commit(w);
        }
    }
}

enum write_result insert_step(struct writer *w, struct insert *in, const uint8_t *doc, struct err *err)
{
    enum write_result r = go_on(w, in, doc, err);
    if (r == WRITE_WAIT || r == WRITE_AGAIN) {
        writer_hold(w);
        return r;
    }
    if (r == WRITE_FAILED && w->entered)
        writer_drop_document(w);
    in->stage = INSERT_BEGIN;
    return r;
}
