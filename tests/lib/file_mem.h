/* A disk in memory behind file_ops. It remembers what was synced and what was not, so that file_mem_crash can cut the
 * power:
 *   contents   of each 512-byte sector, any number of its unsynced writes arrived, in order; sometimes the last one torn in the middle
 *   size       any of the sizes the file had since its last sync
 *   names      each unsynced create, rename, remove or mkdir of a directory happened or did not, a rename always as one
 * A process that merely dies loses nothing: open the same disk again. A sync that fails drops the dirty marks without
 * writing (as Linux does): the bytes can be read until power is lost, later syncs succeed without them, unless their 4
 * KiB page is written to again.
 * Thread: any; one mutex for all. */
#ifndef OV_TEST_FILE_MEM_H
#define OV_TEST_FILE_MEM_H

#include "storage/file/file.h"

struct file_mem;

struct file_mem *file_mem_new(void);    /* an empty disk without limit */
void file_mem_free(struct file_mem *m); /* after all files are closed; accepts NULL */
const struct file_ops *file_mem_ops(struct file_mem *m);

/* Cuts the power: what was not synced is kept, lost or torn by seed. Files still open must only be closed after it. */
void file_mem_crash(struct file_mem *m, uint64_t seed);
/* What a failed datasync leaves behind: by seed some sectors have arrived, all are taken for clean. */
void file_mem_fail_sync(struct file *f, uint64_t seed);
/* Growing files beyond `bytes` in all is ENOSPC; 0 = no limit. */
void file_mem_set_capacity(struct file_mem *m, uint64_t bytes);
uint64_t file_mem_used(struct file_mem *m); /* bytes of all files */

/* Damage and inspection. They act on the durable and the visible state alike, and abort if there is no such file. */
void file_mem_cut(struct file_mem *m, const char *path, uint64_t size); /* the file ends here */
void file_mem_zero(struct file_mem *m, const char *path, uint64_t at, uint64_t n);
void file_mem_flip(struct file_mem *m, const char *path, uint64_t at);            /* flips the lowest bit of a byte */
void file_mem_put(struct file_mem *m, const char *path, const void *p, size_t n); /* creates or replaces, synced */
const uint8_t *file_mem_get(struct file_mem *m, const char *path, size_t *n);     /* borrowed until the next change */
bool file_mem_exists(struct file_mem *m, const char *path);
void file_mem_link(struct file_mem *m, const char *from, const char *to); /* a hard link, as a backup makes */
struct file_mem *file_mem_copy(struct file_mem *m); /* a disk with the same visible contents, all of it synced */

#endif
