/* A blocking sort of rows in memory. With a small `top` only so many are kept; else they are sorted in runs as they come and merged as
 * they leave, so that no step has to sort everything. Thread: one at a time. */
#ifndef OV_SORTER_H
#define OV_SORTER_H

#include "server/query/exec/exec.h"

#define SORT_MEMORY_MAX (100u * 1024 * 1024)

struct sorter;
struct sorter *sorter_new(const struct sort_spec *spec, uint64_t top); /* top 0: all */
/* Copies the row and its document. ERR_QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED. */
OV_MUST_CHECK int sorter_add(struct sorter *s, const struct exec_row *row, struct err *err);
void sorter_finish(struct sorter *s); /* no more is added */
/* The next row; its document lives as long as the sorter. Rows that compare as equal come as they were added. */
bool sorter_next(struct sorter *s, struct exec_row *row);
void sorter_unget(struct sorter *s); /* the row that sorter_next gave last is the next one again */
bool sorter_at_end(const struct sorter *s);
void sorter_free(struct sorter *s); /* accepts NULL */

#endif
