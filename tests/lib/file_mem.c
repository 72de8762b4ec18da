/* The disk in memory: see file_mem.h for what it models. Each inode holds two images, `now` (what reads see) and `safe`
 * (what a power cut leaves at least), and the log of what led from one to the other since the last sync. Names work
 * alike: two lists and a log. */
#include "tests/lib/file_mem.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"
#include "server/base/rand.h"

#define SECTOR 512
#define PAGE   4096

struct change { /* of a file's contents; size_after alone when n is 0 */
    uint64_t at;
    size_t n;
    uint8_t *bytes;
    uint64_t size_after;
};

struct inode {
    uint8_t *now, *safe; /* both `cap` bytes, zero behind the size */
    uint64_t size, safe_size;
    size_t cap;
    struct change *log;
    size_t n_log, cap_log;
    uint8_t *ghost; /* one byte a page: shown by `now`, taken for clean, but not in `safe` */
    bool has_ghosts;
    uint32_t refs; /* names in either list, log entries, open files */
};

struct name {
    char path[96];
    struct inode *inode; /* NULL: a directory */
};

struct names {
    struct name *v;
    size_t n, cap;
};

struct rename_op { /* an unsynced change of names: `from` goes (if set), `to` comes (if set) */
    char from[96], to[96];
    struct inode *inode; /* NULL: mkdir */
};

struct file_mem {
    struct file_ops ops; /* first */
    pthread_mutex_t lock;
    struct names now, safe;
    struct rename_op *log;
    size_t n_log, cap_log;
    uint64_t capacity;
};

struct mem_file {
    struct file_mem *m;
    struct inode *inode;
    bool readonly;
};

static struct file_mem *mem_of(const struct file_ops *ops)
{
    return (struct file_mem *)ops;
}

static struct mem_file *file_of(struct file *f)
{
    return (struct mem_file *)f;
}

/* ---- inodes ---- */

static void inode_unref(struct inode *i)
{
    if (!i || --i->refs > 0)
        return;
    for (size_t k = 0; k < i->n_log; k++)
        free(i->log[k].bytes);
    free(i->log);
    free(i->now);
    free(i->safe);
    free(i->ghost);
    free(i);
}

static void inode_room(struct inode *i, uint64_t size)
{
    size_t cap = i->cap ? i->cap : PAGE;

    if (size <= i->cap)
        return;
    OV_ASSERT(size < (uint64_t)1 << 32);
    while (cap < size)
        cap *= 2;
    i->now = ov_realloc(i->now, cap);
    i->safe = ov_realloc(i->safe, cap);
    i->ghost = ov_realloc(i->ghost, cap / PAGE);
    memset(i->now + i->cap, 0, cap - i->cap);
    memset(i->safe + i->cap, 0, cap - i->cap);
    memset(i->ghost + i->cap / PAGE, 0, (cap - i->cap) / PAGE);
    i->cap = cap;
}

/* Notes that now[at .. at+n) changed. A page that a failed sync left behind becomes dirty as a whole. */
static void inode_log(struct inode *i, uint64_t at, size_t n)
{
    uint64_t end = at + n;
    struct change *c;

    if (i->has_ghosts && n) {
        for (uint64_t p = at / PAGE; p <= (end - 1) / PAGE; p++) {
            if (!i->ghost[p])
                continue;
            i->ghost[p] = 0;
            at = OV_MIN(at, p * PAGE);
            end = OV_MAX(end, (p + 1) * PAGE);
        }
    }
    if (i->n_log == i->cap_log) {
        i->cap_log = i->cap_log ? i->cap_log * 2 : 16;
        i->log = ov_realloc(i->log, i->cap_log * sizeof(*i->log));
    }
    c = &i->log[i->n_log++];
    *c = (struct change){.at = at, .n = n ? (size_t)(end - at) : 0, .size_after = i->size};
    if (c->n) {
        c->bytes = ov_malloc(c->n);
        memcpy(c->bytes, i->now + at, c->n);
    }
}

static void inode_forget_log(struct inode *i)
{
    for (size_t k = 0; k < i->n_log; k++)
        free(i->log[k].bytes);
    i->n_log = 0;
}

static void inode_sync(struct inode *i)
{
    for (size_t k = 0; k < i->n_log; k++) {
        struct change *c = &i->log[k];
        if (c->n)
            memcpy(i->safe + c->at, c->bytes, c->n);
        i->safe_size = c->size_after;
    }
    inode_forget_log(i);
}

/* One sector after a power cut: the first `keep` of its writes arrived, and perhaps a part of the next one. */
static void sector_crash(struct inode *i, uint64_t sector, int mood, struct rand_gen *g)
{
    uint64_t from = sector * SECTOR, to = from + SECTOR;
    size_t writes = 0, keep, seen = 0;

    for (size_t k = 0; k < i->n_log; k++)
        writes += i->log[k].n && i->log[k].at < to && i->log[k].at + i->log[k].n > from;
    if (!writes)
        return;
    switch (mood) {
    case 0:
        keep = rand_below(g, writes + 1);
        break;
    case 1: /* nearly everything arrived */
        keep = rand_below(g, 8) ? writes : rand_below(g, writes + 1);
        break;
    case 2: /* nearly nothing did */
        keep = rand_below(g, 8) ? 0 : rand_below(g, writes + 1);
        break;
    default:
        keep = rand_below(g, 2) ? writes : 0;
        break;
    }
    for (size_t k = 0; k < i->n_log && seen <= keep; k++) {
        struct change *c = &i->log[k];
        uint64_t a = OV_MAX(c->at, from), b = OV_MIN(c->at + c->n, to);
        if (!c->n || a >= b)
            continue;
        if (seen++ == keep) { /* the first that did not arrive: torn now and then */
            if (rand_below(g, 6))
                break;
            b = a + rand_below(g, b - a);
        }
        memcpy(i->safe + a, c->bytes + (a - c->at), (size_t)(b - a));
    }
}

static void inode_crash(struct inode *i, int mood, struct rand_gen *g)
{
    uint64_t lo = UINT64_MAX, hi = 0;

    for (size_t k = 0; k < i->n_log; k++) {
        if (i->log[k].n) {
            lo = OV_MIN(lo, i->log[k].at);
            hi = OV_MAX(hi, i->log[k].at + i->log[k].n);
        }
    }
    for (uint64_t s = lo / SECTOR; lo < hi && s <= (hi - 1) / SECTOR; s++)
        sector_crash(i, s, mood, g);
    if (i->n_log) {
        uint64_t k = rand_below(g, i->n_log + 1);
        i->safe_size = k ? i->log[k - 1].size_after : i->safe_size;
    }
    inode_forget_log(i);
    if (i->cap) {
        memset(i->safe + i->safe_size, 0, i->cap - i->safe_size);
        memcpy(i->now, i->safe, i->cap);
        memset(i->ghost, 0, i->cap / PAGE);
    }
    i->has_ghosts = false;
    i->size = i->safe_size;
}

/* ---- names ---- */

static struct name *names_find(struct names *ns, const char *path)
{
    for (size_t k = 0; k < ns->n; k++) {
        if (strcmp(ns->v[k].path, path) == 0)
            return &ns->v[k];
    }
    return NULL;
}

static void names_remove(struct names *ns, const char *path)
{
    struct name *n = names_find(ns, path);

    if (!n)
        return;
    inode_unref(n->inode);
    *n = ns->v[--ns->n];
}

static void names_set(struct names *ns, const char *path, struct inode *i)
{
    struct name *n;

    if (i)
        i->refs++;
    names_remove(ns, path);
    if (ns->n == ns->cap) {
        ns->cap = ns->cap ? ns->cap * 2 : 16;
        ns->v = ov_realloc(ns->v, ns->cap * sizeof(*ns->v));
    }
    n = &ns->v[ns->n++];
    snprintf(n->path, sizeof(n->path), "%s", path);
    n->inode = i;
}

static void names_clear(struct names *ns)
{
    while (ns->n)
        inode_unref(ns->v[--ns->n].inode);
}

static size_t dir_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

static bool in_dir(const char *path, const char *dir)
{
    size_t n = dir_len(path);
    return n == strlen(dir) && strncmp(path, dir, n) == 0;
}

static bool dir_exists(struct names *ns, const char *path, size_t n)
{
    char dir[96];
    struct name *found;

    if (n == 0)
        return true;
    snprintf(dir, sizeof(dir), "%.*s", (int)n, path);
    found = names_find(ns, dir);
    return found && !found->inode;
}

static void op_apply(struct names *ns, const struct rename_op *op)
{
    if (*op->from) {
        struct name *n = names_find(ns, op->from);
        if (n && n->inode == op->inode)
            names_remove(ns, op->from);
    }
    if (*op->to && dir_exists(ns, op->to, dir_len(op->to)))
        names_set(ns, op->to, op->inode);
}

/* Does it now, and notes that it is not yet on the disk. */
static void op_do(struct file_mem *m, const char *from, const char *to, struct inode *i)
{
    struct rename_op *op;

    OV_ASSERT(strlen(from) < sizeof(op->from) && strlen(to) < sizeof(op->to));
    if (m->n_log == m->cap_log) {
        m->cap_log = m->cap_log ? m->cap_log * 2 : 16;
        m->log = ov_realloc(m->log, m->cap_log * sizeof(*m->log));
    }
    op = &m->log[m->n_log++];
    memset(op, 0, sizeof(*op));
    strcpy(op->from, from);
    strcpy(op->to, to);
    op->inode = i;
    if (i)
        i->refs++;
    op_apply(&m->now, op);
}

/* ---- file_ops ---- */

static int mem_open(const struct file_ops *ops, const char *path, uint32_t flags, struct file **out)
{
    struct file_mem *m = mem_of(ops);
    struct mem_file *f;
    struct name *n;
    int rc = 0;

    *out = NULL;
    pthread_mutex_lock(&m->lock);
    n = names_find(&m->now, path);
    if (n && !n->inode)
        rc = EISDIR;
    else if (n && (flags & FILE_CREATE) && (flags & FILE_EXCL))
        rc = EEXIST;
    else if (!n && !(flags & FILE_CREATE))
        rc = ENOENT;
    else if (!n && !dir_exists(&m->now, path, dir_len(path)))
        rc = ENOENT;
    if (rc == 0) {
        if (!n) {
            op_do(m, "", path, ov_calloc(1, sizeof(struct inode)));
            n = names_find(&m->now, path);
        }
        f = ov_calloc(1, sizeof(*f));
        f->m = m;
        f->inode = n->inode;
        f->inode->refs++;
        f->readonly = flags & FILE_READONLY;
        *out = (struct file *)f;
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static void mem_close(struct file *f)
{
    struct file_mem *m;

    if (!f)
        return;
    m = file_of(f)->m;
    pthread_mutex_lock(&m->lock);
    inode_unref(file_of(f)->inode);
    pthread_mutex_unlock(&m->lock);
    free(f);
}

static int mem_pread(struct file *f, void *p, size_t n, uint64_t at, size_t *got)
{
    struct inode *i = file_of(f)->inode;

    *got = 0;
    pthread_mutex_lock(&file_of(f)->m->lock);
    if (at < i->size) {
        *got = (size_t)OV_MIN((uint64_t)n, i->size - at);
        memcpy(p, i->now + at, *got);
    }
    pthread_mutex_unlock(&file_of(f)->m->lock);
    return 0;
}

static uint64_t used_locked(struct file_mem *m)
{
    uint64_t sum = 0;

    for (size_t k = 0; k < m->now.n; k++)
        sum += m->now.v[k].inode ? m->now.v[k].inode->size : 0;
    return sum;
}

static bool full(struct file_mem *m, struct inode *i, uint64_t size)
{
    return m->capacity && size > i->size && used_locked(m) + (size - i->size) > m->capacity;
}

static int mem_pwrite(struct file *f, const void *p, size_t n, uint64_t at)
{
    struct file_mem *m = file_of(f)->m;
    struct inode *i = file_of(f)->inode;
    int rc = 0;

    if (file_of(f)->readonly)
        return EBADF;
    if (n == 0)
        return 0;
    pthread_mutex_lock(&m->lock);
    if (full(m, i, at + n)) {
        rc = ENOSPC;
    } else {
        inode_room(i, at + n);
        memcpy(i->now + at, p, n);
        i->size = OV_MAX(i->size, at + n);
        inode_log(i, at, n);
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int mem_size(struct file *f, uint64_t *out)
{
    pthread_mutex_lock(&file_of(f)->m->lock);
    *out = file_of(f)->inode->size;
    pthread_mutex_unlock(&file_of(f)->m->lock);
    return 0;
}

static int set_size(struct file *f, uint64_t size)
{
    struct file_mem *m = file_of(f)->m;
    struct inode *i = file_of(f)->inode;
    uint64_t old = i->size;

    if (file_of(f)->readonly)
        return EBADF;
    if (full(m, i, size))
        return ENOSPC;
    inode_room(i, size);
    i->size = size;
    if (size < old) {
        memset(i->now + size, 0, (size_t)(old - size));
        inode_log(i, size, (size_t)(old - size));
    } else if (size > old) {
        inode_log(i, 0, 0);
    }
    return 0;
}

static int mem_truncate(struct file *f, uint64_t size)
{
    int rc;

    pthread_mutex_lock(&file_of(f)->m->lock);
    rc = set_size(f, size);
    pthread_mutex_unlock(&file_of(f)->m->lock);
    return rc;
}

static int mem_allocate(struct file *f, uint64_t size)
{
    int rc = 0;

    pthread_mutex_lock(&file_of(f)->m->lock);
    if (size > file_of(f)->inode->size)
        rc = set_size(f, size);
    pthread_mutex_unlock(&file_of(f)->m->lock);
    return rc;
}

static int mem_datasync(struct file *f)
{
    pthread_mutex_lock(&file_of(f)->m->lock);
    inode_sync(file_of(f)->inode);
    pthread_mutex_unlock(&file_of(f)->m->lock);
    return 0;
}

static int mem_sync_dir(const struct file_ops *ops, const char *dir)
{
    struct file_mem *m = mem_of(ops);
    size_t left = 0;
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    if (!dir_exists(&m->now, dir, strlen(dir)))
        rc = ENOENT;
    for (size_t k = 0; rc == 0 && k < m->n_log; k++) {
        struct rename_op *op = &m->log[k];
        if (in_dir(*op->to ? op->to : op->from, dir)) {
            op_apply(&m->safe, op);
            inode_unref(op->inode);
        } else {
            m->log[left++] = *op;
        }
    }
    if (rc == 0)
        m->n_log = left;
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int mem_rename(const struct file_ops *ops, const char *from, const char *to)
{
    struct file_mem *m = mem_of(ops);
    struct name *n;
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    n = names_find(&m->now, from);
    if (!n || !n->inode)
        rc = ENOENT;
    else
        op_do(m, from, to, n->inode);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int mem_remove(const struct file_ops *ops, const char *path)
{
    struct file_mem *m = mem_of(ops);
    struct name *n;
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    n = names_find(&m->now, path);
    if (!n || !n->inode)
        rc = ENOENT;
    else
        op_do(m, path, "", n->inode);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int mem_mkdir(const struct file_ops *ops, const char *path)
{
    struct file_mem *m = mem_of(ops);
    struct name *n;
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    n = names_find(&m->now, path);
    if (n)
        rc = n->inode ? ENOTDIR : 0;
    else if (!dir_exists(&m->now, path, dir_len(path)))
        rc = ENOENT;
    else
        op_do(m, "", path, NULL);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static int mem_list(const struct file_ops *ops, const char *dir, void (*fn)(void *arg, const char *name), void *arg)
{
    struct file_mem *m = mem_of(ops);
    struct name *copy;
    size_t n;

    pthread_mutex_lock(&m->lock);
    if (!dir_exists(&m->now, dir, strlen(dir))) {
        pthread_mutex_unlock(&m->lock);
        return ENOENT;
    }
    n = m->now.n;
    copy = ov_malloc(n * sizeof(*copy) + 1);
    if (n)
        memcpy(copy, m->now.v, n * sizeof(*copy)); /* fn may open, rename and remove */
    pthread_mutex_unlock(&m->lock);
    for (size_t k = 0; k < n; k++) {
        if (in_dir(copy[k].path, dir))
            fn(arg, copy[k].path + (*dir ? strlen(dir) + 1 : 0));
    }
    free(copy);
    return 0;
}

static int mem_link_count(struct file *f, uint32_t *out)
{
    struct file_mem *m = file_of(f)->m;

    *out = 0;
    pthread_mutex_lock(&m->lock);
    for (size_t k = 0; k < m->now.n; k++)
        *out += m->now.v[k].inode == file_of(f)->inode;
    pthread_mutex_unlock(&m->lock);
    return 0;
}

/* ---- the disk ---- */

struct file_mem *file_mem_new(void)
{
    struct file_mem *m = ov_calloc(1, sizeof(*m));

    mallopt(M_MMAP_THRESHOLD, 256 << 20); /* thousands of disks a test: do not give their memory back each time */
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    m->ops = (struct file_ops){
        .open = mem_open,
        .close = mem_close,
        .pread = mem_pread,
        .pwrite = mem_pwrite,
        .size = mem_size,
        .truncate = mem_truncate,
        .allocate = mem_allocate,
        .datasync = mem_datasync,
        .sync_dir = mem_sync_dir,
        .rename = mem_rename,
        .remove = mem_remove,
        .mkdir = mem_mkdir,
        .list = mem_list,
        .link_count = mem_link_count,
    };
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static void forget_name_log(struct file_mem *m)
{
    for (size_t k = 0; k < m->n_log; k++)
        inode_unref(m->log[k].inode);
    m->n_log = 0;
}

void file_mem_free(struct file_mem *m)
{
    if (!m)
        return;
    forget_name_log(m);
    names_clear(&m->now);
    names_clear(&m->safe);
    free(m->now.v);
    free(m->safe.v);
    free(m->log);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

const struct file_ops *file_mem_ops(struct file_mem *m)
{
    return &m->ops;
}

void file_mem_crash(struct file_mem *m, uint64_t seed)
{
    struct rand_gen g;
    int mood;

    rand_seed(&g, seed);
    mood = (int)rand_below(&g, 4);
    pthread_mutex_lock(&m->lock);
    for (size_t k = 0; k < m->n_log; k++) {
        if (rand_below(&g, mood == 1 ? 8 : 2))
            op_apply(&m->safe, &m->log[k]);
    }
    forget_name_log(m);
    names_clear(&m->now);
    for (size_t k = 0; k < m->safe.n; k++) {
        struct name *n = &m->safe.v[k];
        if (n->inode)
            inode_crash(n->inode, mood, &g);
        names_set(&m->now, n->path, n->inode);
    }
    pthread_mutex_unlock(&m->lock);
}

void file_mem_fail_sync(struct file *file, uint64_t seed)
{
    struct mem_file *f = file_of(file);
    struct inode *i = f->inode;
    struct rand_gen g;

    rand_seed(&g, seed);
    pthread_mutex_lock(&f->m->lock);
    for (size_t k = 0; k < i->n_log; k++) {
        struct change *c = &i->log[k];
        for (uint64_t at = c->at; at < c->at + c->n;) {
            uint64_t end = OV_MIN((at / SECTOR + 1) * SECTOR, c->at + c->n);
            if (!rand_below(&g, 3))
                memcpy(i->safe + at, c->bytes + (at - c->at), (size_t)(end - at));
            at = end;
        }
        i->safe_size =
            c->size_after; /* the inode itself was written: else nothing behind the old size could be read back */
    }
    inode_forget_log(i);
    for (uint64_t p = 0; p < i->cap / PAGE; p++) {
        if (memcmp(i->now + p * PAGE, i->safe + p * PAGE, PAGE) != 0)
            i->ghost[p] = i->has_ghosts = true;
    }
    pthread_mutex_unlock(&f->m->lock);
}

void file_mem_set_capacity(struct file_mem *m, uint64_t bytes)
{
    pthread_mutex_lock(&m->lock);
    m->capacity = bytes;
    pthread_mutex_unlock(&m->lock);
}

uint64_t file_mem_used(struct file_mem *m)
{
    uint64_t sum;

    pthread_mutex_lock(&m->lock);
    sum = used_locked(m);
    pthread_mutex_unlock(&m->lock);
    return sum;
}

/* ---- damage and inspection ---- */

static struct inode *must_find(struct file_mem *m, const char *path)
{
    struct name *n = names_find(&m->now, path);

    OV_ASSERT(n && n->inode);
    inode_sync(n->inode);
    return n->inode;
}

void file_mem_cut(struct file_mem *m, const char *path, uint64_t size)
{
    struct inode *i = must_find(m, path);

    OV_ASSERT(size <= i->size);
    file_mem_zero(m, path, size, i->size - size);
    i->size = i->safe_size = size;
}

void file_mem_zero(struct file_mem *m, const char *path, uint64_t at, uint64_t n)
{
    struct inode *i = must_find(m, path);

    OV_ASSERT(at + n <= i->size);
    if (n) {
        memset(i->now + at, 0, (size_t)n);
        memset(i->safe + at, 0, (size_t)n);
    }
}

void file_mem_flip(struct file_mem *m, const char *path, uint64_t at)
{
    struct inode *i = must_find(m, path);

    OV_ASSERT(at < i->size);
    i->now[at] ^= 1;
    i->safe[at] ^= 1;
}

void file_mem_put(struct file_mem *m, const char *path, const void *p, size_t n)
{
    struct name *old = names_find(&m->now, path);
    struct inode *i = old ? old->inode : NULL;

    if (!i) {
        i = ov_calloc(1, sizeof(*i));
        names_set(&m->now, path, i);
        names_set(&m->safe, path, i);
    }
    file_mem_cut(m, path, 0);
    inode_room(i, n);
    if (n) {
        memcpy(i->now, p, n);
        memcpy(i->safe, p, n);
    }
    i->size = i->safe_size = n;
}

const uint8_t *file_mem_get(struct file_mem *m, const char *path, size_t *n)
{
    struct name *found = names_find(&m->now, path);

    OV_ASSERT(found && found->inode);
    *n = (size_t)found->inode->size;
    return found->inode->now;
}

bool file_mem_exists(struct file_mem *m, const char *path)
{
    return names_find(&m->now, path) != NULL;
}

void file_mem_link(struct file_mem *m, const char *from, const char *to)
{
    struct name *n = names_find(&m->now, from);
    struct inode *i;

    OV_ASSERT(n && n->inode);
    i = n->inode;
    names_set(&m->now, to, i);
    names_set(&m->safe, to, i);
}

struct file_mem *file_mem_copy(struct file_mem *m)
{
    struct file_mem *c = file_mem_new();

    for (size_t k = 0; k < m->now.n; k++) {
        struct name *n = &m->now.v[k];
        if (n->inode) {
            file_mem_put(c, n->path, n->inode->now, (size_t)n->inode->size);
        } else {
            names_set(&c->now, n->path, NULL);
            names_set(&c->safe, n->path, NULL);
        }
    }
    return c;
}
