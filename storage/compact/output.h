/* The runs that a flush or a merge writes. A big keyspace gets a file of its own, so that it can be merged, moved past and dropped alone;
 * small ones share. Thread: one at a time; blocks on disk. */
#ifndef OV_COMPACT_OUTPUT_H
#define OV_COMPACT_OUTPUT_H

#include "server/base/base.h"
#include "storage/manifest/manifest.h"
#include "storage/run/run.h"

enum { OUTPUT_TICK = 512 };

struct output {
    const struct file_ops *files;
    enum eng_compression codec;
    uint64_t order;
    uint64_t (*new_id)(void *arg);               /* of a run */
    bool (*alone)(void *arg, uint64_t keyspace); /* is it a big one? */
    bool (*stop)(void *arg);                     /* asked every OUTPUT_TICK entries; true: give up */
    void *arg;
    /* the output's own */
    struct run_writer *writer;
    uint64_t id, keyspace, entries, bytes;
    bool is_alone;
    struct manifest_run *runs; /* finished ones */
    struct run **opened;       /* the same, open for reading, by output_finish */
    size_t n, cap;
};

OV_MUST_CHECK enum eng_result output_add(struct output *o, uint64_t keyspace, struct slice key, uint64_t ts,
                                         uint8_t kind, struct slice value, struct eng_error *err);
/* Finishes the last file, syncs the folder, opens all. */
OV_MUST_CHECK enum eng_result output_finish(struct output *o, struct eng_error *err);
/* Gives up: removes what was written. Or, `kept`, forgets what now belongs to others. */
void output_free(struct output *o, bool kept);

#endif
