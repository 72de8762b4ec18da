/* The engine in tests. */
#include "tests/lib/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/base/assert.h"

static void woken(struct eng_call *c)
{
    atomic_store(&OV_CONTAINER(c, struct db, c)->woken, 1);
}

static void must(struct db *d, enum eng_result r, const char *what)
{
    if (r == ENG_OK)
        return;
    struct eng_error err;
    eng_error(d->e, &err);
    fprintf(stderr, "%s: %s %s\n", what, eng_result_name(r), err.msg);
    abort();
}

enum eng_result db_try_open(struct db *d, struct eng_error *err)
{
    if (!d->opt.files)
        d->opt.files = file_mem_ops(d->disk);
    eng_call_init(&d->c, woken);
    return engine_open(&d->opt, &d->e, err);
}

void db_open(struct db *d)
{
    struct eng_error err;
    enum eng_result r = db_try_open(d, &err);
    if (r != ENG_OK) {
        fprintf(stderr, "engine_open: %s %s\n", eng_result_name(r), err.msg);
        abort();
    }
}

void db_new(struct db *d)
{
    *d = (struct db){.disk = file_mem_new(),
                     .opt = {.dir = "", .manual = true, .memtable_bytes = 1 << 20, .segment_bytes = 1 << 20}};
    db_open(d);
}

void db_close(struct db *d)
{
    engine_close(d->e);
    d->e = NULL;
}

void db_free(struct db *d)
{
    db_close(d);
    if (d->disk)
        file_mem_free(d->disk);
}

void db_reopen(struct db *d)
{
    db_close(d);
    db_open(d);
}

static void onto_copy(struct db *d)
{
    struct file_mem *copy = file_mem_copy(d->disk);
    db_close(d); /* its last writes go to the old disk */
    file_mem_free(d->disk);
    d->disk = copy;
    d->opt.files = NULL;
    db_open(d);
}

void db_kill(struct db *d)
{
    must(d, DB_WAIT(d, eng_handover(d->e, &d->c)), "eng_handover");
    onto_copy(d);
}

void db_power_loss(struct db *d, uint64_t seed)
{
    file_mem_crash(d->disk, seed);
    onto_copy(d);
}

void db_pump(struct db *d)
{
    if (!d->opt.manual)
        usleep(50);
    else
        eng_background_step(d->e);
}

void db_work(struct db *d)
{
    while (eng_background_step(d->e))
        ;
}

enum eng_result db_commit(struct db *d, struct eng_txn *t, enum eng_durability how, uint64_t *ts)
{
    return DB_WAIT(d, eng_commit(t, how, ts, &d->c));
}

void db_put(struct db *d, uint64_t keyspace, const char *key, const char *value)
{
    struct eng_row row;
    eng_step_enter(d->e);
    struct eng_txn *t = eng_begin(d->e, 0, 0);
    enum eng_result r = DB_WAIT(d, eng_get(t, keyspace, S(key), ENG_GET_NEWEST, &row, &d->c));
    OV_ASSERT(r == ENG_OK || r == ENG_NOT_FOUND);
    eng_put(t, keyspace, S(key), S(value), r == ENG_OK ? ENG_UPDATE : ENG_INSERT);
    must(d, db_commit(d, t, ENG_DUR_LOCAL, NULL), "eng_commit");
    eng_end(t);
    eng_step_leave(d->e);
}

void db_del(struct db *d, uint64_t keyspace, const char *key)
{
    eng_step_enter(d->e);
    struct eng_txn *t = eng_begin(d->e, 0, 0);
    eng_del(t, keyspace, S(key));
    must(d, db_commit(d, t, ENG_DUR_LOCAL, NULL), "eng_commit");
    eng_end(t);
    eng_step_leave(d->e);
}

static const char *text_of(struct slice v)
{
    static char out[64 * 1024];
    snprintf(out, sizeof(out), "%.*s", (int)v.n, (const char *)v.p);
    return out;
}

const char *db_read(struct db *d, struct eng_txn *t, uint64_t keyspace, const char *key, uint32_t flags)
{
    struct eng_row row;
    enum eng_result r = DB_WAIT(d, eng_get(t, keyspace, S(key), flags, &row, &d->c));
    if (r == ENG_NOT_FOUND)
        return NULL;
    must(d, r, "eng_get");
    return text_of(row.value);
}

const char *db_get(struct db *d, uint64_t keyspace, const char *key)
{
    eng_step_enter(d->e);
    struct eng_txn *t = eng_begin(d->e, ENG_TXN_READ_ONLY, 0);
    const char *v = db_read(d, t, keyspace, key, ENG_GET_SNAPSHOT);
    eng_end(t);
    eng_step_leave(d->e);
    return v;
}

const char *db_scan(struct db *d, struct eng_txn *t, const struct eng_range *range)
{
    static char out[256 * 1024];
    size_t n = 0;
    struct eng_page page;
    struct eng_scan *s = eng_scan_open(t, range);
    out[0] = 0;
    do {
        must(d, DB_WAIT(d, eng_scan_next(s, &page, &d->c)), "eng_scan_next");
        for (size_t i = 0; i < page.n; i++) {
            const struct eng_row *r = &page.rows[i];
            n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s=%.*s", n ? " " : "", (int)r->key.n,
                                  (const char *)r->key.p, (int)r->value.n, (const char *)r->value.p);
            OV_ASSERT(n < sizeof(out));
        }
    } while (page.more);
    eng_scan_close(s);
    return out;
}

const char *db_all(struct db *d, uint64_t keyspace, bool reverse)
{
    eng_step_enter(d->e);
    struct eng_txn *t = eng_begin(d->e, ENG_TXN_READ_ONLY, 0);
    const char *all = db_scan(d, t, &(struct eng_range){.keyspace = keyspace, .reverse = reverse, .page_rows = 3});
    eng_end(t);
    eng_step_leave(d->e);
    return all;
}

void db_sync(struct db *d)
{
    must(d, DB_WAIT(d, eng_sync(d->e, &d->c)), "eng_sync");
}

void db_flush(struct db *d)
{
    must(d, eng_flush(d->e), "eng_flush");
}
