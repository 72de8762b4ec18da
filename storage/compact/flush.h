/* A sealed memtable into runs: the versions that somebody may need, nothing of keyspaces that are gone. */
#ifndef OV_COMPACT_FLUSH_H
#define OV_COMPACT_FLUSH_H

#include "storage/compact/keep.h"
#include "storage/compact/output.h"
#include "storage/memtable/memtable.h"

/* gone(arg, keyspace): dropped before the memtable was sealed, and no snapshot is older than the drop. The output is not finished. */
OV_MUST_CHECK enum eng_result flush_memtable(const struct memtable *m, const struct keep *keep,
                                             bool (*gone)(void *arg, uint64_t keyspace), void *arg, struct output *out,
                                             struct eng_error *err);
/* Calls fn for every keyspace in the memtable with the bytes of its newest versions: whoever has many gets a file of its own. */
void flush_measure(const struct memtable *m, void (*fn)(void *arg, uint64_t keyspace, uint64_t bytes), void *arg);

#endif
