/* Helpers of the journal's tests: a journal on a faulty disk, stepped by hand, and what replay hands out. */
#ifndef OV_JOURNAL_TEST_H
#define OV_JOURNAL_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "server/base/buf.h"
#include "server/base/crc.h"
#include "storage/journal/journal_private.h"
#include "tests/lib/file_fault.h"
#include "tests/lib/test.h"

struct rig {
    struct file_fault *disk;
    struct journal *j;
    lsn_t from, known_synced;
    uint64_t segment_bytes, last_ts;
    struct buf seen; /* first bytes of each record that replay handed out, up to '.', one after the other */
    size_t n_seen, seen_bytes;
    struct eng_error err;
};

static inline void rig_init(struct rig *r)
{
    *r = (struct rig){.segment_bytes = 64 * 1024};
    r->disk = file_fault_new(&(struct fault_plan){0});
    buf_init(&r->seen);
}

static inline struct file_mem *rig_disk(struct rig *r)
{
    return file_fault_disk(r->disk);
}

static inline enum eng_result rig_see(void *arg, const struct journal_record *rec, struct eng_error *err)
{
    struct rig *r = arg;
    size_t n = 0;

    while (n < rec->payload.n && n < 8 && rec->payload.p[n] != '.')
        n++;
    buf_append(&r->seen, rec->payload.p, n);
    buf_byte(&r->seen, ' ');
    r->n_seen++;
    r->seen_bytes += rec->payload.n;
    return ENG_OK;
}

static inline enum eng_result rig_try_open(struct rig *r)
{
    struct journal_options o = {.files = file_fault_ops(r->disk),
                                .segment_bytes = r->segment_bytes,
                                .first_bytes = 16 * 1024,
                                .commit_interval_ms = 100,
                                .manual = true,
                                .replay_from = r->from,
                                .known_synced = r->known_synced};
    r->seen.len = r->n_seen = r->seen_bytes = 0;
    return journal_open(&o, rig_see, r, &r->j, &r->last_ts, &r->err);
}

static inline void rig_open(struct rig *r)
{
    enum eng_result res = rig_try_open(r);
    ck_assert_msg(res == ENG_OK, "journal_open: %d %s", res, r->err.msg);
}

/* What replay handed out: "a b c ". */
static inline const char *rig_seen(struct rig *r)
{
    buf_byte(&r->seen, 0);
    r->seen.len--;
    return (const char *)r->seen.p;
}

static inline void rig_free(struct rig *r)
{
    journal_close(r->j);
    file_fault_free(r->disk);
    buf_free(&r->seen);
}

/* The process dies; power = true: the machine, too, and what was not synced is kept, lost or torn by `seed`. */
static inline void rig_die(struct rig *r, bool power, uint64_t seed)
{
    file_fault_power_off(r->disk);
    journal_close(r->j);
    r->j = NULL;
    if (power)
        file_mem_crash(rig_disk(r), seed);
    file_fault_restart(r->disk, false, &(struct fault_plan){.seed = seed});
}

static int rig_wakes;
static inline void rig_wake(struct eng_call *c)
{
    rig_wakes++;
}

static inline void rig_make_room(struct rig *r, size_t n)
{
    struct eng_call c;
    enum eng_result res;

    eng_call_init(&c, rig_wake);
    while ((res = journal_reserve(r->j, n, &c)) == ENG_PENDING) {
        mutex_lock(&r->j->lock);
        for (int before = rig_wakes; rig_wakes == before;)
            ck_assert(prepare_step(r->j)); /* not journal_background_step: nothing is to be synced by the way */
        mutex_unlock(&r->j->lock);
    }
    ck_assert_int_eq(res, ENG_OK);
    ck_assert(journal_fits(r->j, n));
}

/* A batch whose payload is `name`, a dot, and filling up to n bytes. Returns its end. */
static inline lsn_t rig_append_at(struct rig *r, const char *name, size_t n, uint64_t ts)
{
    size_t len = strlen(name);
    uint8_t *p = malloc(n + len + 1);
    lsn_t end;

    memset(p, 'x', n + len + 1);
    memcpy(p, name, len);
    if (n > len)
        p[len] = '.';
    n = OV_MAX(n, len);
    rig_make_room(r, n);
    journal_append(r->j, slice_of(p, n), crc32c(0, p, n), ts, 1, &end);
    free(p);
    return end;
}

static inline lsn_t rig_append(struct rig *r, const char *name, size_t n)
{
    return rig_append_at(r, name, n, 1);
}

static inline void rig_write(struct rig *r)
{
    struct eng_call c;
    eng_call_init(&c, rig_wake);
    ck_assert_int_eq(journal_write(r->j, journal_tail(r->j), &c), ENG_OK);
}

static inline void rig_sync(struct rig *r)
{
    ck_assert_int_eq(journal_sync_blocking(r->j, journal_tail(r->j)), ENG_OK);
}

/* Damage at a journal position. */
static inline const char *rig_file(struct rig *r, lsn_t at, uint64_t *offset)
{
    static char path[SEGMENT_PATH_BYTES];
    lsn_t best = 0;

    for (lsn_t first = 0; first <= at; first += 4096) {
        segment_path(first, path);
        if (file_mem_exists(rig_disk(r), path))
            best = first;
    }
    segment_path(best, path);
    *offset = at - best;
    return path;
}

static inline void rig_zero(struct rig *r, lsn_t at, uint64_t n)
{
    uint64_t offset;
    const char *path = rig_file(r, at, &offset);
    file_mem_zero(rig_disk(r), path, offset, n);
}

static inline void rig_flip(struct rig *r, lsn_t at)
{
    uint64_t offset;
    const char *path = rig_file(r, at, &offset);
    file_mem_flip(rig_disk(r), path, offset);
}

#endif
