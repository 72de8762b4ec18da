/* A journal record's header: sealing and judging it. No I/O, no state; everything that comes from disk is judged here. */
#include "server/base/crc.h"
#include "storage/journal/journal_private.h"

static uint32_t head_crc(const struct record_head *h, uint32_t seed)
{
    return crc32c(seed, (const uint8_t *)h + 4, RECORD_HEAD - 4);
}

void record_seal(struct record_head *h, uint32_t seed)
{
    h->header_crc = head_crc(h, seed);
}

bool record_head_valid(const struct record_head *h, const struct segment *s, lsn_t lsn)
{
    if (h->lsn != lsn || h->header_crc != head_crc(h, s->seed))
        return false;
    /* What follows is true of everything we ever sealed: it guards against forged files, not against rot. */
    if (h->type < JOURNAL_BATCH || h->type > JOURNAL_PAD || h->version != JOURNAL_VERSION || h->epoch == 0)
        return false;
    if (h->type == JOURNAL_PAD && record_bytes(h->len) != segment_end(s) - lsn)
        return false;
    return h->synced_lsn <= lsn && record_bytes(h->len) <= segment_end(s) - lsn;
}

lsn_t record_next(const struct segment *s, lsn_t end)
{
    return segment_end(s) - end < RECORD_HEAD ? segment_end(s) + SEGMENT_HEAD : end;
}
