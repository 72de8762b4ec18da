/* Removal of the rows of sessions that have not written for long. A session's rows go one by one: they are looked at under its lock, so that
 * none goes that a command has just written or is about to read. Its row 0 is the newest or as old as all others, and goes like them. */
#include "index/index.h"
#include "server/session/retry.h"

enum { ROWS_A_TICK = 256, TICK_BYTES = 1024 * 1024, WALL_AT = 10, LSID = 16 };
#define SESSION_ROWS keyspace_id(KEYSPACE_SESSION, 0)

static bool too_old(struct slice value, int64_t now_ms)
{
    return value.n >= WALL_AT + 8 && now_ms - (int64_t)load_le64(value.p + WALL_AT) > RETRY_EXPIRE_MS;
}

static void no_wake(struct eng_call *c)
{
    (void)c;
}

/* What cannot be had at once is left for the next round. */
static bool at_once(struct engine *e, struct eng_call *c, enum eng_result r)
{
    if (r == ENG_PENDING)
        eng_call_cancel(e, c);
    return r == ENG_OK;
}

/* The session's first row tells when it last began to write; a row of a later batch is younger by less than a command takes. */
static bool session_is_old(struct engine *e, struct eng_txn *t, const uint8_t *key, int64_t now_ms, struct eng_call *c)
{
    uint8_t head[20] = {0};
    struct eng_row row;
    memcpy(head, key, LSID);
    enum eng_result r = eng_get(t, SESSION_ROWS, slice_of(head, sizeof(head)), ENG_GET_NEWEST, &row, c);
    if (r == ENG_NOT_FOUND)
        return true;
    return at_once(e, c, r) && too_old(row.value, now_ms);
}

static void remove_row(struct engine *e, const uint8_t *key, size_t n, int64_t now_ms)
{
    struct eng_call c;
    struct eng_row row;
    eng_call_init(&c, no_wake);
    struct eng_txn *t = eng_begin(e, 0, 0);
    if (at_once(e, &c, eng_lock(t, SESSION_ROWS, slice_of(key, LSID), &c)) && session_is_old(e, t, key, now_ms, &c) &&
        at_once(e, &c, eng_get(t, SESSION_ROWS, slice_of(key, n), ENG_GET_NEWEST, &row, &c)) &&
        too_old(row.value, now_ms)) {
        eng_del(t, SESSION_ROWS, slice_of(key, n));
        (void)at_once(e, &c, eng_commit(t, ENG_DUR_LOCAL, NULL, &c));
    }
    eng_end(t);
}

/* Keys of one page that seem to be old; the page is borrowed, so they are copied. Moves `s` on. */
static size_t find_old(struct retry_sweep *s, struct engine *e, int64_t now_ms, uint8_t (*out)[20])
{
    struct eng_call c;
    struct eng_page page = {0};
    size_t n = 0;
    eng_call_init(&c, no_wake);
    struct eng_txn *t = eng_begin(e, ENG_TXN_READ_ONLY, 0);
    struct eng_scan *scan = eng_scan_open(t, &(struct eng_range){
                                                 .keyspace = SESSION_ROWS,
                                                 .from = slice_of(s->at, s->going ? sizeof(s->at) : 0),
                                                 .page_rows = ROWS_A_TICK,
                                                 .page_bytes = TICK_BYTES,
                                             });
    if (at_once(e, &c, eng_scan_next(scan, &page, &c))) {
        for (size_t i = 0; i < page.n; i++)
            if (page.rows[i].key.n == 20 && too_old(page.rows[i].value, now_ms))
                memcpy(out[n++], page.rows[i].key.p, 20);
        s->going = page.more && page.n;
        if (s->going)
            memcpy(s->at, page.rows[page.n - 1].key.p, OV_MIN(page.rows[page.n - 1].key.n, sizeof(s->at) - 1));
    }
    eng_scan_close(scan);
    eng_end(t);
    return n;
}

void retry_tick(struct retry_sweep *s, struct engine *e, int64_t now_wall_ms)
{
    uint8_t old[ROWS_A_TICK][20];
    eng_step_enter(e);
    size_t n = find_old(s, e, now_wall_ms, old);
    for (size_t i = 0; i < n; i++)
        remove_row(e, old[i], sizeof(old[i]), now_wall_ms);
    eng_step_leave(e);
}
