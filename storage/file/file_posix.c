/* The operating system's files. A file of its own because everything else in storage/ must run on other file_ops, too.
 * Happy path: every name is resolved relative to one directory descriptor, so a data directory that is renamed while
 * open stays ours.
 * What can go wrong: any call returns a positive errno. Only EINTR and short transfers are handled here; whether a
 * failed write or sync can be forgiven (it cannot, but for a full disk) is for the journal and the manifest to say. */
#include "storage/file/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/arena.h"

struct posix_fs {
    struct file_ops ops; /* first: a pointer to it is a pointer to us */
    int dirfd;
    int open_errno; /* why dirfd could not be opened; every call then answers it */
};

struct posix_file {
    int fd;
};

static const struct posix_fs *fs_of(const struct file_ops *ops)
{
    return (const struct posix_fs *)ops;
}

static int fd_of(struct file *f)
{
    return ((struct posix_file *)f)->fd;
}

static int posix_open_file(const struct file_ops *ops, const char *path, uint32_t flags, struct file **out)
{
    const struct posix_fs *fs = fs_of(ops);
    int how = O_CLOEXEC | (flags & FILE_READONLY ? O_RDONLY : O_RDWR);
    int fd;
    struct posix_file *f;

    *out = NULL;
    if (fs->dirfd < 0)
        return fs->open_errno;
    if (flags & FILE_CREATE)
        how |= O_CREAT;
    if (flags & FILE_EXCL)
        how |= O_EXCL;
    do {
        fd = openat(fs->dirfd, path, how, 0600);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno;
    f = ov_malloc(sizeof(*f));
    f->fd = fd;
    *out = (struct file *)f;
    return 0;
}

static void posix_close_file(struct file *f)
{
    if (!f)
        return;
    close(fd_of(f)); /* what mattered was synced before; an error here could not be acted on */
    free(f);
}

static int posix_pread(struct file *f, void *p, size_t n, uint64_t at, size_t *got)
{
    *got = 0;
    while (*got < n) {
        ssize_t r = pread(fd_of(f), (char *)p + *got, n - *got, (off_t)(at + *got));
        if (r == 0)
            return 0;
        if (r < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        *got += (size_t)r;
    }
    return 0;
}

static int posix_pwrite(struct file *f, const void *p, size_t n, uint64_t at)
{
    size_t done = 0;

    while (done < n) {
        ssize_t r = pwrite(fd_of(f), (const char *)p + done, n - done, (off_t)(at + done));
        if (r < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        if (r == 0)
            return EIO; /* cannot happen on a regular file; never loop on it */
        done += (size_t)r;
    }
    return 0;
}

static int posix_size(struct file *f, uint64_t *out)
{
    struct stat st;

    *out = 0;
    if (fstat(fd_of(f), &st) != 0)
        return errno;
    *out = (uint64_t)st.st_size;
    return 0;
}

static int posix_truncate(struct file *f, uint64_t size)
{
    int rc;

    do {
        rc = ftruncate(fd_of(f), (off_t)size);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

/* File systems without fallocate (some network ones) get real zero bytes, so that a full disk still shows here and not
 * at a later sync. */
static int allocate_by_writing(struct file *f, uint64_t size)
{
    static const char zeros[65536];
    uint64_t at;
    int rc = posix_size(f, &at);

    while (rc == 0 && at < size) {
        size_t n = (size_t)OV_MIN(size - at, (uint64_t)sizeof(zeros));
        rc = posix_pwrite(f, zeros, n, at);
        at += n;
    }
    return rc;
}

static int posix_allocate(struct file *f, uint64_t size)
{
    int rc;

    do {
        rc = fallocate(fd_of(f), 0, 0, (off_t)size);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS)
        return allocate_by_writing(f, size);
    return errno;
}

static int posix_datasync(struct file *f)
{
    /* Not retried on EINTR either: after any failed sync the kernel may have dropped the dirty pages (R5). */
    return fdatasync(fd_of(f)) == 0 ? 0 : errno;
}

static int posix_sync_dir(const struct file_ops *ops, const char *dir)
{
    const struct posix_fs *fs = fs_of(ops);
    int fd, rc = 0;

    if (fs->dirfd < 0)
        return fs->open_errno;
    fd = openat(fs->dirfd, *dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fsync(fd) != 0)
        rc = errno;
    close(fd);
    return rc;
}

static int posix_rename(const struct file_ops *ops, const char *from, const char *to)
{
    const struct posix_fs *fs = fs_of(ops);

    if (fs->dirfd < 0)
        return fs->open_errno;
    return renameat(fs->dirfd, from, fs->dirfd, to) == 0 ? 0 : errno;
}

static int posix_remove(const struct file_ops *ops, const char *path)
{
    const struct posix_fs *fs = fs_of(ops);

    if (fs->dirfd < 0)
        return fs->open_errno;
    return unlinkat(fs->dirfd, path, 0) == 0 ? 0 : errno;
}

static int posix_mkdir(const struct file_ops *ops, const char *path)
{
    const struct posix_fs *fs = fs_of(ops);
    struct stat st;

    if (fs->dirfd < 0)
        return fs->open_errno;
    if (mkdirat(fs->dirfd, path, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return errno;
    if (fstatat(fs->dirfd, path, &st, 0) != 0)
        return errno;
    return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

static int posix_list(const struct file_ops *ops, const char *dir, void (*fn)(void *arg, const char *name), void *arg)
{
    const struct posix_fs *fs = fs_of(ops);
    struct dirent *e;
    DIR *d;
    int fd, rc;

    if (fs->dirfd < 0)
        return fs->open_errno;
    fd = openat(fs->dirfd, *dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    d = fdopendir(fd);
    if (!d) {
        rc = errno;
        close(fd);
        return rc;
    }
    for (errno = 0; (e = readdir(d)) != NULL; errno = 0) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            fn(arg, e->d_name);
    }
    rc = errno;
    closedir(d);
    return rc;
}

static int posix_link_count(struct file *f, uint32_t *out)
{
    struct stat st;

    *out = 0;
    if (fstat(fd_of(f), &st) != 0)
        return errno;
    *out = (uint32_t)st.st_nlink;
    return 0;
}

const struct file_ops *file_posix_new(const char *dir)
{
    struct posix_fs *fs = ov_calloc(1, sizeof(*fs));

    fs->ops = (struct file_ops){
        .open = posix_open_file,
        .close = posix_close_file,
        .pread = posix_pread,
        .pwrite = posix_pwrite,
        .size = posix_size,
        .truncate = posix_truncate,
        .allocate = posix_allocate,
        .datasync = posix_datasync,
        .sync_dir = posix_sync_dir,
        .rename = posix_rename,
        .remove = posix_remove,
        .mkdir = posix_mkdir,
        .list = posix_list,
        .link_count = posix_link_count,
    };
    fs->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fs->open_errno = fs->dirfd < 0 ? errno : 0;
    return &fs->ops;
}

void file_posix_free(const struct file_ops *ops)
{
    struct posix_fs *fs = (struct posix_fs *)ops;

    if (!fs)
        return;
    if (fs->dirfd >= 0)
        close(fs->dirfd);
    free(fs);
}
