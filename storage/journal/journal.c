/* Opening and closing the journal, and its facts. Opening: find the segments, replay (replay.c), decide where the tail
 * is, make what was read but perhaps not synced durable (R5), drop what lies beyond, and begin a new epoch (R1).
 * What can go wrong: everything before the START record is synced may be interrupted; the next opening finds the same
 * state and comes to the same decision. */
#include "storage/journal/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "storage/journal/journal_private.h"

struct names {
    lsn_t *v;
    size_t n, cap;
};

static void note_name(void *arg, const char *name)
{
    struct names *names = arg;
    lsn_t first;

    if (!segment_parse_name(name, &first))
        return;
    if (names->n == names->cap) {
        names->cap = names->cap ? names->cap * 2 : 16;
        names->v = ov_realloc(names->v, names->cap * sizeof(*names->v));
    }
    names->v[names->n++] = first;
}

static int compare_lsn(const void *a, const void *b)
{
    lsn_t x = *(const lsn_t *)a, y = *(const lsn_t *)b;
    return (x > y) - (x < y);
}

static enum eng_result open_failed(struct eng_error *err, int rc, const char *what)
{
    err->result = journal_disk_full(rc) ? ENG_DISK_FULL : ENG_IO;
    snprintf(err->msg, sizeof(err->msg), "%s: %s", what, strerror(rc));
    return err->result;
}

static enum eng_result open_segments(struct journal *j, struct eng_error *err)
{
    struct names names = {0};
    struct segment **end = &j->segments;
    enum eng_result res = ENG_OK;
    int rc;

    if ((rc = j->fs->mkdir(j->fs, "journal")) != 0 || (rc = j->fs->sync_dir(j->fs, "")) != 0)
        return open_failed(err, rc, "cannot create the folder journal");
    if ((rc = j->fs->list(j->fs, "journal", note_name, &names)) != 0)
        res = open_failed(err, rc, "cannot list the folder journal");
    (void)!j->fs->remove(j->fs, SEGMENT_TMP);
    if (names.n)
        qsort(names.v, names.n, sizeof(*names.v), compare_lsn);
    for (size_t i = 0; i < names.n && res == ENG_OK; i++) {
        rc = segment_open(j->fs, names.v[i], end);
        if (rc == EPROTO) {
            err->result = res = ENG_CORRUPT;
            snprintf(err->msg, sizeof(err->msg), "journal segment %016" PRIx64 ".oj is of a newer format", names.v[i]);
        } else if (rc != 0) {
            res = journal_io_error(err, rc, "cannot open", names.v[i]);
        } else {
            end = &(*end)->next;
        }
    }
    free(names.v);
    return res;
}

static void set_aside(struct journal *j, struct segment *s)
{
    unsigned kept = 0;

    for (struct segment *r = j->released; r; r = r->next)
        kept++;
    if (!s->broken && s->file_size == s->size && s->size == j->opt.segment_bytes && kept < RELEASED_MAX) {
        s->next = j->released;
        j->released = s;
    } else {
        segment_remove(j->fs, s);
    }
}

/* Keeps the segments from the starting point to the cut; the others are made over later or removed. What follows the
 * cut may hold valid records: they are of a lower epoch than our START, and no replay reads them again (R1). */
static struct segment *keep_needed(struct journal *j, lsn_t from, lsn_t cut)
{
    struct segment *all = j->segments, **end = &j->segments, *s, *active = NULL;

    j->segments = NULL;
    while ((s = all) != NULL) {
        bool needed = !s->broken && s->first <= cut && (segment_end(s) > from || segment_end(s) > cut);
        all = s->next;
        s->next = NULL;
        if (!needed || active) {
            set_aside(j, s);
            continue;
        }
        *end = s;
        end = &s->next;
        if (cut >= s->first && cut < segment_end(s))
            active = s;
    }
    return active;
}

/* The segment for the next record, with room for one. */
static enum eng_result make_active(struct journal *j, lsn_t from, lsn_t cut, struct eng_error *err)
{
    struct segment *s = keep_needed(j, from, cut), *last = j->segments;
    uint64_t zeroed = 0;
    int rc = 0;

    if (!s) {
        lsn_t first = cut - SEGMENT_HEAD;
        while (last && last->next)
            last = last->next;
        if ((rc = segment_make(j->fs, first, prepare_size(j, last, 0), j->epoch, NULL, &s, &zeroed)) != 0)
            return journal_io_error(err, rc, "cannot prepare", first);
        if (last)
            last->next = s;
        else
            j->segments = s;
    } else if (s->file_size < s->size) { /* somebody cut it behind the tail */
        if ((rc = j->fs->allocate(s->f, s->size)) == 0)
            rc = segment_zero(j->fs, s, OV_MAX(s->file_size, cut - s->first));
        zeroed = s->size - s->file_size;
        s->file_size = s->size;
    }
    if (rc == 0)
        rc = j->fs->sync_dir(j->fs, "journal");
    if (rc != 0)
        return journal_io_error(err, rc, "cannot prepare", s->first);
    j->zero_bytes += zeroed;
    append_activate(j, s, cut);
    return ENG_OK;
}

static enum eng_result start_epoch(struct journal *j, lsn_t cut, uint64_t last_ts, struct eng_error *err)
{
    enum eng_result res;

    journal_store(&j->written, cut);
    journal_store(&j->synced, cut); /* R5 has just seen to it */
    mutex_lock(&j->lock);
    append_record(j, JOURNAL_START, last_ts);
    j->data_end = journal_load(&j->tail);
    res = sync_now(j);
    mutex_unlock(&j->lock);
    if (res != ENG_OK) {
        *err = j->error;
        err->result = res = ENG_IO;
    }
    return res;
}

static enum eng_result recover(struct journal *j, journal_replay_fn fn, void *arg, uint64_t *last_ts,
                               struct eng_error *err)
{
    const struct journal_options *o = &j->opt;
    struct replay r = {
        .fs = j->fs, .from = o->replay_from, .synced = o->known_synced, .fn = fn, .arg = arg, .last_ts = o->known_ts};
    enum eng_result res;

    if ((res = open_segments(j, err)) != ENG_OK)
        return res;
    r.segments = j->segments;
    if ((res = replay_run(&r, err)) != ENG_OK || (res = replay_rewrite(&r, err)) != ENG_OK)
        return res;
    if (OV_MAX(r.epoch, o->known_epoch) == UINT32_MAX) {
        err->result = ENG_CORRUPT;
        snprintf(err->msg, sizeof(err->msg), "the journal has no epochs left");
        return ENG_CORRUPT;
    }
    j->epoch = OV_MAX(r.epoch, o->known_epoch) + 1;
    j->index = r.index;
    j->replayed_bytes = r.bytes;
    *last_ts = r.last_ts;
    if ((res = make_active(j, r.from, r.cut, err)) != ENG_OK)
        return res;
    return start_epoch(j, r.cut, r.last_ts, err);
}

/* Signals are the main thread's business. */
static void start_threads(struct journal *j)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    OV_ASSERT(pthread_create(&j->sync_thread, NULL, sync_thread_main, j) == 0);
    OV_ASSERT(pthread_create(&j->prepare_thread, NULL, prepare_thread_main, j) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool power_of_two(uint64_t n)
{
    return n && (n & (n - 1)) == 0;
}

static void free_all(struct journal *j)
{
    struct segment *lists[] = {j->segments, j->released}, *s;

    for (size_t i = 0; i < OV_LEN(lists); i++) {
        while ((s = lists[i]) != NULL) {
            lists[i] = s->next;
            segment_close(j->fs, s);
        }
    }
    for (int i = 0; i < 2; i++) {
        free(j->pend[i].p);
        free(j->pend[i].pieces);
    }
    pthread_cond_destroy(&j->work);
    pthread_cond_destroy(&j->done);
    pthread_cond_destroy(&j->prepare_work);
    mutex_destroy(&j->lock);
    free(j);
}

enum eng_result journal_open(const struct journal_options *opt, journal_replay_fn replay, void *arg,
                             struct journal **out, uint64_t *last_ts, struct eng_error *err)
{
    struct journal *j = ov_calloc(1, sizeof(*j));
    enum eng_result res;

    *out = NULL;
    *last_ts = 0;
    *err = (struct eng_error){0};
    j->fs = opt->files;
    j->opt = *opt;
    if (!j->opt.first_bytes)
        j->opt.first_bytes = (uint64_t)1 << 20;
    j->opt.first_bytes = OV_MIN(j->opt.first_bytes, j->opt.segment_bytes);
    OV_ASSERT(power_of_two(j->opt.segment_bytes) && power_of_two(j->opt.first_bytes) &&
              j->opt.first_bytes >= 4 * SEGMENT_HEAD && j->opt.segment_bytes <= SEGMENT_MAX);
    mutex_init(&j->lock, RANK_JOURNAL);
    cond_init(&j->work);
    cond_init(&j->done);
    cond_init(&j->prepare_work);
    if ((res = recover(j, replay, arg, last_ts, err)) != ENG_OK) {
        free_all(j);
        return res;
    }
    if (!j->opt.manual)
        start_threads(j);
    *out = j;
    return ENG_OK;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    mutex_lock(&j->lock);
    OV_ASSERT(!j->wait_sync.first && !j->wait_write.first && !j->wait_space.first);
    j->stop = true;
    pthread_cond_signal(&j->work);
    pthread_cond_signal(&j->prepare_work);
    mutex_unlock(&j->lock);
    if (!j->opt.manual) {
        pthread_join(j->sync_thread, NULL);
        pthread_join(j->prepare_thread, NULL);
    }
    mutex_lock(&j->lock);
    if (sync_now(j) == ENG_OK && j->marked < journal_load(&j->synced) && append_mark_fits(j)) {
        append_record(j, JOURNAL_MARK, 0); /* R3: a clean stop leaves nothing that could pass for a torn tail */
        (void)!sync_now(j);
    }
    mutex_unlock(&j->lock);
    free_all(j);
}

bool journal_background_step(struct journal *j)
{
    bool did;

    OV_ASSERT(j->opt.manual);
    mutex_lock(&j->lock);
    did = sync_step(j) || prepare_step(j);
    mutex_unlock(&j->lock);
    return did;
}

lsn_t journal_tail(const struct journal *j)
{
    return journal_load(&j->tail);
}

lsn_t journal_written(const struct journal *j)
{
    return journal_load(&j->written);
}

lsn_t journal_synced(const struct journal *j)
{
    return journal_load(&j->synced);
}

uint32_t journal_epoch(const struct journal *j)
{
    return j->epoch;
}

void journal_error(struct journal *j, struct eng_error *out)
{
    mutex_lock(&j->lock);
    *out = j->error;
    mutex_unlock(&j->lock);
}

void journal_stats(struct journal *j, struct eng_stats *out)
{
    mutex_lock(&j->lock);
    out->journal_writes = j->n_writes;
    out->journal_syncs = j->n_syncs;
    out->journal_sync_us = j->sync_us;
    out->journal_zero_bytes = j->zero_bytes;
    out->journal_recycled = j->n_recycled;
    out->journal_segments = 0;
    out->journal_disk_bytes = 0;
    for (int i = 0; i < 2; i++) {
        for (struct segment *s = i ? j->released : j->segments; s; s = s->next) {
            out->journal_segments++;
            out->journal_disk_bytes += s->size;
        }
    }
    out->replayed_bytes = j->replayed_bytes;
    mutex_unlock(&j->lock);
}
