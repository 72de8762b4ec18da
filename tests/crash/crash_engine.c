/* The engine when the power fails, or the disk does, at every call of a workload that commits, flushes, merges and drops keyspaces.
 *
 * The workload is a fixed row of commits; commit i leaves a state that expected() can tell. After each accident the engine is opened
 * again, says how far it got (n), and must then hold exactly the state after commit n, with n not below what was acknowledged.
 * ROUNDS=n: so many seeds at each power cut (default 2). SEED=n: the first seed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/assert.h"
#include "storage/engine.h"
#include "tests/lib/file_fault.h"

enum { COMMITS = 72, KEYS = 13, KS_DATA = 10, KS_NUMBER = 11, KS_TEMP = 20, TEMP_EVERY = 12, VALUE_MAX_BYTES = 6000 };

static uint64_t seed_of_run;
static uint64_t point; /* of the accident */
static const char *accident = "";
static int passed;

#define MUST(x)                                                                                                    \
    do {                                                                                                           \
        if (!(x)) {                                                                                                \
            fprintf(stderr, "SEED=%" PRIu64 ": %s at call %" PRIu64 ": %s:%d: %s\n", seed_of_run, accident, point, \
                    __FILE__, __LINE__, #x);                                                                       \
            abort();                                                                                               \
        }                                                                                                          \
    } while (0)

struct told {  /* what a client was told */
    int last;  /* the last commit that returned OK */
    int kill;  /* survives a kill */
    int power; /* survives a power cut */
};

struct run {
    struct file_fault *disk;
    const struct file_ops *files;
    struct engine *e;
    struct eng_call c;
    struct told told;
};

/* ---- what each commit does ---- */

static bool deletes(int i, int key)
{
    return i % 11 == 5 && key == (i + 3) % KEYS;
}

/* The value that commit i gives its key. Every fourth one is an insertion into the one before: a splice, where that is long enough. */
static size_t value_after(int i, int key, char *out);

static size_t fresh_value(int i, char *out)
{
    size_t n = (size_t)(i % 5) * 1100 + 10;
    int head = snprintf(out, VALUE_MAX_BYTES, "<%d>", i);
    memset(out + head, 'a' + i % 26, n);
    return (size_t)head + n;
}

/* The last commit up to i that wrote the key; 0 if it is absent after i. */
static int writer_of(int i, int key)
{
    for (; i > 0; i--) {
        if (i % KEYS == key)
            return i;
        if (deletes(i, key))
            return 0;
    }
    return 0;
}

static size_t value_after(int i, int key, char *out)
{
    int w = writer_of(i, key);
    if (w == 0)
        return SIZE_MAX;
    if (w % 4 != 1 || writer_of(w - 1, key) == 0)
        return fresh_value(w, out);
    char old[VALUE_MAX_BYTES];
    size_t n = value_after(w - 1, key, old);
    int head = snprintf(out, VALUE_MAX_BYTES, "[%d]", w);
    OV_ASSERT((size_t)head + n < VALUE_MAX_BYTES);
    memcpy(out + head, old, n);
    return (size_t)head + n;
}

static struct slice key_text(int key, char out[8])
{
    return slice_of(out, (size_t)snprintf(out, 8, "k%d", key));
}

/* ---- running it ---- */

static bool woken;

static void wake(struct eng_call *c)
{
    woken = true;
    (void)c;
}

/* Background work until the call is done; a disk that stays full ends it. */
#define WAIT(r, x)                                   \
    __extension__({                                  \
        enum eng_result res_;                        \
        woken = false;                               \
        while ((res_ = (x)) == ENG_PENDING) {        \
            for (int tries_ = 0; !woken; tries_++) { \
                eng_background_step((r)->e);         \
                MUST(tries_ < 10000);                \
            }                                        \
            woken = false;                           \
        }                                            \
        res_;                                        \
    })

static enum eng_result try_open(struct run *r, struct eng_error *err)
{
    struct eng_options opt = {.dir = "",
                              .files = r->files,
                              .manual = true,
                              .memtable_bytes = 48 * 1024,
                              .segment_bytes = 1 << 20,
                              .compression = ENG_COMPRESS_LZ4};
    eng_call_init(&r->c, wake);
    r->e = NULL;
    return engine_open(&opt, &r->e, err);
}

static void must_open(struct run *r)
{
    struct eng_error err;
    enum eng_result res = try_open(r, &err);
    if (res != ENG_OK)
        fprintf(stderr, "engine_open: %s %s\n", eng_result_name(res), err.msg);
    MUST(res == ENG_OK);
}

static enum eng_result fill(struct run *r, struct eng_txn *t, int i)
{
    char space[8], value[VALUE_MAX_BYTES];
    int key = i % KEYS;
    struct slice k = key_text(key, space);
    struct eng_row row;
    size_t n = value_after(i, key, value);
    enum eng_result res = WAIT(r, eng_get(t, KS_DATA, k, ENG_GET_NEWEST, &row, &r->c));
    if (res != ENG_OK && res != ENG_NOT_FOUND)
        return res;
    if (res == ENG_OK && value[0] == '[') {
        struct eng_edit edit = {.added = slice_of(value, n - row.value.n)};
        eng_splice(t, KS_DATA, k, row.ts, slice_of(value, n), &edit, 1);
    } else {
        eng_put(t, KS_DATA, k, slice_of(value, n), res == ENG_OK ? ENG_UPDATE : ENG_INSERT);
    }
    int gone = (i + 3) % KEYS;
    if (deletes(i, gone) && writer_of(i - 1, gone))
        eng_del(t, KS_DATA, key_text(gone, space));
    uint8_t number[4];
    store_le32(number, (uint32_t)i);
    eng_put(t, KS_NUMBER, slice_str("n"), slice_of(number, 4), i > 1 ? ENG_UPDATE : ENG_INSERT);
    eng_put(t, (uint64_t)(KS_TEMP + i / TEMP_EVERY), slice_of(number, 4), slice_of(value, n), ENG_INSERT);
    if (i % TEMP_EVERY == TEMP_EVERY / 2 && i > TEMP_EVERY)
        eng_drop_keyspace(t, (uint64_t)(KS_TEMP + i / TEMP_EVERY - 1));
    return ENG_OK;
}

static enum eng_result commit(struct run *r, int i)
{
    eng_step_enter(r->e);
    struct eng_txn *t = eng_begin(r->e, i % 5 == 0 ? ENG_TXN_MULTI : 0, 0);
    bool sync = i % 7 == 3;
    enum eng_result res = fill(r, t, i);
    if (res == ENG_OK)
        res = WAIT(r, eng_commit(t, sync ? ENG_DUR_JOURNALED : ENG_DUR_LOCAL, NULL, &r->c));
    eng_end(t);
    eng_step_leave(r->e);
    if (res == ENG_OK || res == ENG_UNKNOWN)
        r->told.last = i;
    if (res == ENG_OK && sync)
        r->told.kill = r->told.power = i;
    return res;
}

/* A full disk is waited out, anything else ends the workload. */
static bool go_on(struct run *r, enum eng_result res, int *full)
{
    if (res != ENG_DISK_FULL)
        return false;
    MUST(++*full < 200);
    eng_background_step(r->e);
    return true;
}

static bool workload(struct run *r, int from)
{
    int full = 0;
    for (int i = from; i <= COMMITS; i++) {
        enum eng_result res;
        while ((res = commit(r, i)) != ENG_OK && go_on(r, res, &full))
            ;
        if (res != ENG_OK)
            return false;
        if (i % 3 == 0) {
            if (WAIT(r, eng_handover(r->e, &r->c)) != ENG_OK)
                return false;
            r->told.kill = i;
        }
        if (i % 17 == 9) {
            while ((res = eng_flush(r->e)) != ENG_OK && go_on(r, res, &full))
                ;
            if (res != ENG_OK)
                return false;
            r->told.kill = r->told.power = i; /* R6: a run is never ahead of the synced journal */
        }
        for (int k = 0; k < 3; k++)
            eng_background_step(r->e);
    }
    return true;
}

/* ---- checking ---- */

static int found_number(struct run *r)
{
    struct eng_row row;
    eng_step_enter(r->e);
    struct eng_txn *t = eng_begin(r->e, ENG_TXN_READ_ONLY, 0);
    enum eng_result res = WAIT(r, eng_get(t, KS_NUMBER, slice_str("n"), 0, &row, &r->c));
    MUST(res == ENG_OK || res == ENG_NOT_FOUND);
    int n = res == ENG_OK ? (int)load_le32(row.value.p) : 0;
    eng_end(t);
    eng_step_leave(r->e);
    return n;
}

/* Is the state the one after commit n? */
static void check_state(struct run *r, int n)
{
    char space[8], want[VALUE_MAX_BYTES];
    int64_t count = 0;
    struct eng_row row;
    eng_step_enter(r->e);
    struct eng_txn *t = eng_begin(r->e, ENG_TXN_READ_ONLY, 0);
    for (int key = 0; key < KEYS; key++) {
        size_t len = value_after(n, key, want);
        enum eng_result res = WAIT(r, eng_get(t, KS_DATA, key_text(key, space), 0, &row, &r->c));
        MUST(res == (len == SIZE_MAX ? ENG_NOT_FOUND : ENG_OK));
        MUST(res != ENG_OK || slice_eq(row.value, slice_of(want, len)));
        count += res == ENG_OK;
    }
    MUST(eng_count(r->e, KS_DATA) == count); /* R17 */
    struct eng_page page;
    struct eng_scan *s = eng_scan_open(t, &(struct eng_range){.keyspace = KS_DATA, .reverse = n % 2});
    MUST(WAIT(r, eng_scan_next(s, &page, &r->c)) == ENG_OK && (int64_t)page.n == count && !page.more);
    eng_scan_close(s);
    for (int k = 0; k <= n / TEMP_EVERY; k++) {
        int first = OV_MAX(k * TEMP_EVERY, 1), last = OV_MIN(n, (k + 1) * TEMP_EVERY - 1),
            drop = (k + 1) * TEMP_EVERY + TEMP_EVERY / 2;
        MUST(eng_count(r->e, (uint64_t)(KS_TEMP + k)) == (n >= drop ? 0 : last - first + 1));
    }
    eng_end(t);
    eng_step_leave(r->e);
}

/* After an accident: opens, checks, writes the rest of the workload, checks again. */
static int check_and_go_on(struct run *r, int at_least)
{
    must_open(r);
    int n = found_number(r);
    MUST(n >= at_least && n <= r->told.last + 1);
    check_state(r, n);
    return n;
}

static void finish(struct run *r, int n)
{
    r->told.last = n;
    MUST(workload(r, n + 1));
    check_state(r, COMMITS);
    engine_close(r->e);
    must_open(r);
    MUST(found_number(r) == COMMITS);
    check_state(r, COMMITS);
    engine_close(r->e);
    passed++;
}

/* The workload on a new disk with this plan; the engine is closed afterwards. True if the plan's call was reached. */
static bool accident_at(struct run *r, const struct fault_plan *plan)
{
    struct eng_error err;
    *r = (struct run){.disk = file_fault_new(plan)};
    r->files = file_fault_ops(r->disk);
    if (try_open(r, &err) == ENG_OK) {
        (void)workload(r, 1);
        engine_close(r->e);
    }
    return file_fault_fired(r->disk);
}

static void power_cuts(uint64_t first_seed, uint64_t rounds)
{
    accident = "power cut";
    bool fired = true;
    for (point = 1; fired; point++)
        for (uint64_t k = 0; k < rounds && fired; k++) {
            struct run r;
            seed_of_run = first_seed + k;
            fired = accident_at(&r, &(struct fault_plan){.crash_at = point, .seed = seed_of_run * 7919 + point});
            if (fired) {
                r.files = file_fault_survivor(r.disk);
                finish(&r, check_and_go_on(&r, r.told.power));
            }
            file_fault_free(r.disk);
        }
}

/* Power fails again while the first failure is recovered from. */
static void two_power_cuts(uint64_t first_seed)
{
    accident = "second power cut";
    for (uint64_t n = 20;; n += 23) {
        bool fired = false, again = true;
        for (point = 1; again; point += 3) {
            struct run r;
            seed_of_run = first_seed;
            fired = accident_at(&r, &(struct fault_plan){.crash_at = n, .seed = seed_of_run * 31 + n});
            if (!fired) {
                file_fault_free(r.disk);
                break;
            }
            struct eng_error err;
            file_fault_restart(r.disk, true, &(struct fault_plan){.crash_at = point, .seed = seed_of_run * 17 + point});
            if (try_open(&r, &err) == ENG_OK)
                engine_close(r.e);
            again = file_fault_fired(r.disk);
            r.files = file_fault_survivor(r.disk);
            finish(&r, check_and_go_on(&r, r.told.power));
            file_fault_free(r.disk);
        }
        if (!fired)
            return;
    }
}

/* A call fails; then the process is killed, or the power goes. */
static void failures(uint64_t first_seed, int err, uint32_t kinds, uint64_t fail_for, const char *what)
{
    accident = what;
    bool fired = true;
    for (point = 1; fired; point++)
        for (int power = 0; power < 2 && fired; power++) {
            struct run r;
            seed_of_run = first_seed;
            struct fault_plan plan = {
                .fail_at = point, .fail_errno = err, .kinds = kinds, .fail_for = fail_for, .seed = first_seed + point};
            fired = accident_at(&r, &plan);
            if (fired) {
                struct fault_plan none = {.seed = first_seed + point * 3};
                file_fault_restart(r.disk, power, &none);
                int n = check_and_go_on(&r, power ? r.told.power : r.told.kill);
                /* R5: what is answered after the restart must not vanish with the next power cut. */
                file_fault_power_off(r.disk);
                engine_close(r.e);
                file_fault_restart(r.disk, true, &none);
                r.told.last = OV_MAX(r.told.last, n);
                n = check_and_go_on(&r, n);
                finish(&r, n);
            }
            file_fault_free(r.disk);
        }
}

/* ENOSPC for a while must pass without a trace: no restart, nothing refused for good (R10). */
static void full_disks(uint64_t first_seed)
{
    accident = "full disk";
    bool fired = true;
    for (point = 1; fired; point++) {
        struct run r;
        struct eng_error err;
        struct fault_plan plan = {.fail_at = point,
                                  .fail_errno = ENOSPC,
                                  .kinds = FAULT_ALLOCATE,
                                  .fail_for = 1 + point % 4,
                                  .seed = first_seed + point};
        seed_of_run = first_seed;
        r = (struct run){.disk = file_fault_new(&plan)};
        r.files = file_fault_ops(r.disk);
        if (try_open(&r, &err) != ENG_OK) {
            MUST(err.result == ENG_DISK_FULL && file_fault_fired(r.disk));
        } else {
            MUST(workload(&r, 1));
            check_state(&r, COMMITS);
            engine_close(r.e);
            passed++;
        }
        fired = file_fault_fired(r.disk);
        file_fault_free(r.disk);
    }
}

struct found {
    struct run *r;
    char path[64];
    size_t at;
    const char *text;
};

static void look_in(void *arg, const char *name)
{
    struct found *f = arg;
    char path[64];
    size_t n;
    snprintf(path, sizeof(path), "journal/%.40s", name);
    const uint8_t *p = file_mem_get(file_fault_disk(f->r->disk), path, &n);
    const uint8_t *hit = memmem(p, n, f->text, strlen(f->text));
    if (hit) {
        memcpy(f->path, path, sizeof(path));
        f->at = (size_t)(hit - p);
    }
}

/* R3: rot in the last record that was acknowledged as durable is not taken for a torn tail. */
static void rot_in_the_last_record(void)
{
    accident = "rot";
    point = 0;
    for (int clean = 0; clean < 2; clean++) {
        struct run r = {.disk = file_fault_new(&(struct fault_plan){.seed = 1})};
        struct eng_error err;
        r.files = file_fault_ops(r.disk);
        must_open(&r);
        MUST(workload(&r, 1));
        eng_step_enter(r.e);
        struct eng_txn *t = eng_begin(r.e, 0, 0);
        eng_put(t, KS_DATA, slice_str("last"), slice_str("the very last acknowledged value"), ENG_INSERT);
        MUST(WAIT(&r, eng_commit(t, ENG_DUR_JOURNALED, NULL, &r.c)) == ENG_OK);
        eng_end(t);
        eng_step_leave(r.e);
        for (int i = 0; i < 10; i++)
            eng_background_step(r.e); /* a MARK record follows */
        if (!clean)
            file_fault_power_off(r.disk);
        engine_close(r.e);
        struct found f = {.r = &r, .text = "the very last acknowledged value"};
        file_fault_restart(r.disk, false, &(struct fault_plan){.seed = 1});
        MUST(r.files->list(r.files, "journal", look_in, &f) == 0 && f.path[0]);
        file_mem_flip(file_fault_disk(r.disk), f.path, f.at + 3);
        MUST(try_open(&r, &err) == ENG_CORRUPT && strstr(err.msg, "journal"));
        file_fault_free(r.disk);
        passed++;
    }
}

int main(void)
{
    const char *seed = getenv("SEED"), *rounds = getenv("ROUNDS");
    uint64_t first = seed && *seed ? strtoull(seed, NULL, 10) : 1,
             n = rounds && *rounds ? strtoull(rounds, NULL, 10) : 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    rot_in_the_last_record();
    full_disks(first);
    failures(first, EIO, 0, 0, "EIO");
    failures(first, EIO, FAULT_DATASYNC, 0, "failed sync");
    failures(first, ENOSPC, FAULT_WRITES, 1, "ENOSPC");
    two_power_cuts(first);
    power_cuts(first, OV_MIN(n, (uint64_t)5));
    printf("suite crash/engine: %d passed, 0 failed\n", passed); /* a failure aborts, with its point */
    return 0;
}
