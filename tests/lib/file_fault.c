/* Faults between engine and disk: see file_fault.h. The disk's own memory (what is synced, what is not) is file_mem's. */
#include "tests/lib/file_fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/rand.h"

struct file_fault {
    struct file_ops ops; /* first */
    struct file_mem *disk;
    const struct file_ops *inner;
    pthread_mutex_t lock; /* the fields below */
    struct fault_plan plan;
    uint64_t calls;
    bool fired, off;
    struct rand_gen rand;
};

struct fault_file {
    struct file_fault *d;
    struct file *inner;
};

enum verdict { GO_ON, FAIL, FAIL_AFTER, POWER_OFF };

static struct fault_file *ff(struct file *f)
{
    return (struct fault_file *)f;
}

static struct file_fault *fault_of(const struct file_ops *ops)
{
    return (struct file_fault *)ops;
}

/* Counts the call and says what becomes of it. FAIL_AFTER: it takes place, and fails all the same. *rnd is a random
 * number for the call. */
static enum verdict judge(struct file_fault *d, enum fault_kind kind, int *rc, uint64_t *rnd)
{
    const struct fault_plan *p = &d->plan;
    enum verdict v = GO_ON;

    *rc = 0;
    pthread_mutex_lock(&d->lock);
    *rnd = rand_next(&d->rand);
    if (d->off) {
        v = POWER_OFF;
    } else if (!p->kinds || (p->kinds & kind)) {
        d->calls++;
        if (p->crash_at && d->calls == p->crash_at) {
            d->off = d->fired = true;
            v = *rnd & 1 ? FAIL_AFTER : POWER_OFF;
        } else if (p->fail_at && d->calls >= p->fail_at && d->calls - p->fail_at < OV_MAX(p->fail_for, (uint64_t)1)) {
            d->fired = true;
            *rc = p->fail_errno ? p->fail_errno : EIO;
            v = *rc != ENOSPC && (*rnd & 1) ? FAIL_AFTER : FAIL;
        }
    }
    if (v != GO_ON && *rc == 0)
        *rc = EIO;
    pthread_mutex_unlock(&d->lock);
    return v;
}

/* For calls that are done whole or not at all. */
#define ALL_OR_NOTHING(d, kind, call)                  \
    do {                                               \
        int rc_;                                       \
        uint64_t rnd_;                                 \
        enum verdict v_ = judge(d, kind, &rc_, &rnd_); \
        if (v_ == GO_ON)                               \
            return call;                               \
        if (v_ == FAIL_AFTER)                          \
            (void)!(call);                             \
        return rc_;                                    \
    } while (0)

static int fault_open(const struct file_ops *ops, const char *path, uint32_t flags, struct file **out)
{
    struct file_fault *d = fault_of(ops);
    struct file *inner;
    struct fault_file *f;
    uint64_t rnd;
    int rc;

    *out = NULL;
    if (judge(d, FAULT_OPEN, &rc, &rnd) != GO_ON)
        return rc;
    if ((rc = d->inner->open(d->inner, path, flags, &inner)) != 0)
        return rc;
    f = ov_malloc(sizeof(*f));
    f->d = d;
    f->inner = inner;
    *out = (struct file *)f;
    return 0;
}

static void fault_close(struct file *f)
{
    if (!f)
        return;
    ff(f)->d->inner->close(ff(f)->inner);
    free(f);
}

static int fault_pread(struct file *f, void *p, size_t n, uint64_t at, size_t *got)
{
    uint64_t rnd;
    int rc;

    *got = 0;
    if (judge(ff(f)->d, FAULT_PREAD, &rc, &rnd) != GO_ON)
        return rc;
    return ff(f)->d->inner->pread(ff(f)->inner, p, n, at, got);
}

static int fault_pwrite(struct file *f, const void *p, size_t n, uint64_t at)
{
    struct file_fault *d = ff(f)->d;
    uint64_t rnd;
    int rc;
    enum verdict v = judge(d, FAULT_PWRITE, &rc, &rnd);

    if (v == GO_ON)
        return d->inner->pwrite(ff(f)->inner, p, n, at);
    if (v == FAIL_AFTER || (v == FAIL && rc == ENOSPC)) /* a short write */
        (void)!d->inner->pwrite(ff(f)->inner, p, n ? (size_t)((rnd >> 8) % n) : 0, at);
    return rc;
}

static int fault_size(struct file *f, uint64_t *out)
{
    uint64_t rnd;
    int rc;

    *out = 0;
    if (judge(ff(f)->d, FAULT_SIZE, &rc, &rnd) != GO_ON)
        return rc;
    return ff(f)->d->inner->size(ff(f)->inner, out);
}

static int fault_truncate(struct file *f, uint64_t size)
{
    ALL_OR_NOTHING(ff(f)->d, FAULT_TRUNCATE, ff(f)->d->inner->truncate(ff(f)->inner, size));
}

static int fault_allocate(struct file *f, uint64_t size)
{
    ALL_OR_NOTHING(ff(f)->d, FAULT_ALLOCATE, ff(f)->d->inner->allocate(ff(f)->inner, size));
}

static int fault_datasync(struct file *f)
{
    struct file_fault *d = ff(f)->d;
    uint64_t rnd;
    int rc;
    enum verdict v = judge(d, FAULT_DATASYNC, &rc, &rnd);

    if (v == GO_ON)
        return d->inner->datasync(ff(f)->inner);
    if (!file_fault_crashed(d))
        file_mem_fail_sync(ff(f)->inner, rnd);
    else if (v == FAIL_AFTER) /* all arrived, but the power went before anyone could be told */
        (void)!d->inner->datasync(ff(f)->inner);
    return rc;
}

static int fault_sync_dir(const struct file_ops *ops, const char *dir)
{
    ALL_OR_NOTHING(fault_of(ops), FAULT_SYNC_DIR, fault_of(ops)->inner->sync_dir(fault_of(ops)->inner, dir));
}

static int fault_rename(const struct file_ops *ops, const char *from, const char *to)
{
    ALL_OR_NOTHING(fault_of(ops), FAULT_RENAME, fault_of(ops)->inner->rename(fault_of(ops)->inner, from, to));
}

static int fault_remove(const struct file_ops *ops, const char *path)
{
    ALL_OR_NOTHING(fault_of(ops), FAULT_REMOVE, fault_of(ops)->inner->remove(fault_of(ops)->inner, path));
}

static int fault_mkdir(const struct file_ops *ops, const char *path)
{
    ALL_OR_NOTHING(fault_of(ops), FAULT_MKDIR, fault_of(ops)->inner->mkdir(fault_of(ops)->inner, path));
}

static int fault_list(const struct file_ops *ops, const char *dir, void (*fn)(void *arg, const char *name), void *arg)
{
    struct file_fault *d = fault_of(ops);
    uint64_t rnd;
    int rc;

    if (judge(d, FAULT_LIST, &rc, &rnd) != GO_ON)
        return rc;
    return d->inner->list(d->inner, dir, fn, arg);
}

static int fault_link_count(struct file *f, uint32_t *out)
{
    uint64_t rnd;
    int rc;

    *out = 0;
    if (judge(ff(f)->d, FAULT_LINK_COUNT, &rc, &rnd) != GO_ON)
        return rc;
    return ff(f)->d->inner->link_count(ff(f)->inner, out);
}

struct file_fault *file_fault_new(const struct fault_plan *plan)
{
    struct file_fault *d = ov_calloc(1, sizeof(*d));

    d->ops = (struct file_ops){
        .open = fault_open,
        .close = fault_close,
        .pread = fault_pread,
        .pwrite = fault_pwrite,
        .size = fault_size,
        .truncate = fault_truncate,
        .allocate = fault_allocate,
        .datasync = fault_datasync,
        .sync_dir = fault_sync_dir,
        .rename = fault_rename,
        .remove = fault_remove,
        .mkdir = fault_mkdir,
        .list = fault_list,
        .link_count = fault_link_count,
    };
    d->disk = file_mem_new();
    d->inner = file_mem_ops(d->disk);
    pthread_mutex_init(&d->lock, NULL);
    file_fault_restart(d, false, plan);
    return d;
}

void file_fault_free(struct file_fault *d)
{
    if (!d)
        return;
    file_mem_free(d->disk);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

const struct file_ops *file_fault_ops(struct file_fault *d)
{
    return &d->ops;
}

struct file_mem *file_fault_disk(struct file_fault *d)
{
    return d->disk;
}

bool file_fault_fired(struct file_fault *d)
{
    bool fired;

    pthread_mutex_lock(&d->lock);
    fired = d->fired;
    pthread_mutex_unlock(&d->lock);
    return fired;
}

bool file_fault_crashed(struct file_fault *d)
{
    bool off;

    pthread_mutex_lock(&d->lock);
    off = d->off;
    pthread_mutex_unlock(&d->lock);
    return off;
}

void file_fault_power_off(struct file_fault *d)
{
    pthread_mutex_lock(&d->lock);
    d->off = true;
    pthread_mutex_unlock(&d->lock);
}

uint64_t file_fault_calls(struct file_fault *d)
{
    uint64_t calls;

    pthread_mutex_lock(&d->lock);
    calls = d->calls;
    pthread_mutex_unlock(&d->lock);
    return calls;
}

const struct file_ops *file_fault_survivor(struct file_fault *d)
{
    file_mem_crash(d->disk, d->plan.seed);
    d->off = false;
    return d->inner;
}

void file_fault_set_plan(struct file_fault *d, const struct fault_plan *plan)
{
    pthread_mutex_lock(&d->lock);
    d->plan = *plan;
    d->calls = 0;
    d->fired = false;
    pthread_mutex_unlock(&d->lock);
}

void file_fault_restart(struct file_fault *d, bool power, const struct fault_plan *plan)
{
    if (power)
        file_mem_crash(d->disk, d->plan.seed);
    d->plan = *plan;
    d->calls = 0;
    d->fired = d->off = false;
    rand_seed(&d->rand, plan->seed ^ 0x9e3779b97f4a7c15ULL);
}
