/* A file_ops around a disk in memory that lets the n-th call fail or cuts the power there. Calls are counted from 1
 * (close is none); `kinds` says which count. Run a workload for n = 1, 2, … until file_fault_fired is false: then every
 * point has been visited.
 *     struct file_fault *d = file_fault_new(&(struct fault_plan){.crash_at = n, .seed = seed});
 *     workload(file_fault_ops(d));              errors are expected; close everything
 *     check(file_fault_survivor(d));            what the disk holds after the power cut; or file_fault_restart for a second one
 *     file_fault_free(d);
 * Thread: any. */
#ifndef OV_TEST_FILE_FAULT_H
#define OV_TEST_FILE_FAULT_H

#include "storage/file/file.h"
#include "tests/lib/file_mem.h"

enum fault_kind {
    FAULT_OPEN = 1 << 0,
    FAULT_PREAD = 1 << 1,
    FAULT_PWRITE = 1 << 2,
    FAULT_SIZE = 1 << 3,
    FAULT_TRUNCATE = 1 << 4,
    FAULT_ALLOCATE = 1 << 5,
    FAULT_DATASYNC = 1 << 6,
    FAULT_SYNC_DIR = 1 << 7,
    FAULT_RENAME = 1 << 8,
    FAULT_REMOVE = 1 << 9,
    FAULT_MKDIR = 1 << 10,
    FAULT_LIST = 1 << 11,
    FAULT_LINK_COUNT = 1 << 12,
    FAULT_WRITES = FAULT_OPEN | FAULT_PWRITE | FAULT_TRUNCATE | FAULT_ALLOCATE | FAULT_DATASYNC | FAULT_SYNC_DIR |
                   FAULT_RENAME | FAULT_REMOVE | FAULT_MKDIR, /* all that can change the disk */
};

struct fault_plan {
    uint64_t crash_at; /* this call cuts the power; it and all later ones return EIO. 0 = never */
    uint64_t
        fail_at; /* this call fails. 0 = never. A failing pwrite may write a part first; a failing datasync drops dirty marks */
    uint64_t fail_for; /* so many calls fail in a row; 0 = one */
    int fail_errno;    /* 0 = EIO */
    uint32_t kinds;    /* fault_kind bits that count (and fail); 0 = all. Power is off for every kind */
    uint64_t seed;
};

struct file_fault;

struct file_fault *file_fault_new(const struct fault_plan *plan); /* around an empty disk of its own */
void file_fault_free(struct file_fault *d);                       /* after all files are closed; accepts NULL */
const struct file_ops *file_fault_ops(struct file_fault *d);
struct file_mem *file_fault_disk(struct file_fault *d); /* for damage and inspection; owned by d */
bool file_fault_fired(struct file_fault *d);            /* the plan's call was reached */
bool file_fault_crashed(struct file_fault *d);          /* … and cut the power */
void file_fault_power_off(struct file_fault *d); /* from now on every call returns EIO, until restart or survivor */
uint64_t file_fault_calls(struct file_fault *d); /* counted so far */

void file_fault_set_plan(struct file_fault *d,
                         const struct fault_plan *plan); /* a new plan in mid-run, counting from 1 */

/* Power comes back: unsynced changes are kept, lost or torn by the seed, and the disk behaves from now on. All files
 * are closed before. */
const struct file_ops *file_fault_survivor(struct file_fault *d);
/* The same, but with a new plan, counting from 1. power = false: only the process died (or gave up); nothing is lost. */
void file_fault_restart(struct file_fault *d, bool power, const struct fault_plan *plan);

#endif
