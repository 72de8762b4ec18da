/* All file access of the engine goes through this table, so that tests can put faults there (tests/lib/file_fault.h).
 * Every function returns 0 or a positive errno; nothing is retried inside, except EINTR and short transfers in
 * file_posix.c. Paths are relative to the data directory given to file_ops' maker. Thread: any; one file's writes come
 * from one thread at a time unless said. */
#ifndef OV_FILE_H
#define OV_FILE_H

#include "server/base/base.h"

struct file; /* an open file; each implementation has its own */

enum file_open_flags { FILE_CREATE = 1, FILE_EXCL = 2, FILE_READONLY = 4 };

struct file_ops {
    int (*open)(const struct file_ops *fs, const char *path, uint32_t flags, struct file **out);
    void (*close)(struct file *f); /* accepts NULL */
    int (*pread)(struct file *f, void *p, size_t n, uint64_t at,
                 size_t *got);                                           /* *got < n only at the end of the file */
    int (*pwrite)(struct file *f, const void *p, size_t n, uint64_t at); /* all n bytes or an error */
    int (*size)(struct file *f, uint64_t *out);
    int (*truncate)(struct file *f, uint64_t size);
    int (*allocate)(struct file *f, uint64_t size); /* size becomes at least that, with room: ENOSPC strikes here */
    int (*datasync)(struct file *f);                /* contents and size are on the disk */
    int (*sync_dir)(const struct file_ops *fs,
                    const char *dir); /* creates, renames and removes in dir are on the disk */
    int (*rename)(const struct file_ops *fs, const char *from, const char *to); /* replaces `to` atomically */
    int (*remove)(const struct file_ops *fs, const char *path);
    int (*mkdir)(const struct file_ops *fs, const char *path); /* 0 also if it exists */
    int (*list)(const struct file_ops *fs, const char *dir, void (*fn)(void *arg, const char *name), void *arg);
    int (*link_count)(struct file *f, uint32_t *out); /* hard links to the file: R7 */
};

/* The operating system's files under `dir`, which must exist: if it cannot be opened, every call answers why. Free with
 * file_posix_free, after every file is closed. (For tests: files in memory in tests/lib/file_mem.h, faults and power
 * cuts in tests/lib/file_fault.h.) */
const struct file_ops *file_posix_new(const char *dir);
void file_posix_free(const struct file_ops *fs); /* accepts NULL */

#endif
