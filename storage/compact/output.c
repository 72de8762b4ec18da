/* Output files of a flush or a merge: when to begin a new one, and what to leave behind when something fails (nothing). */
#include "storage/compact/output.h"

#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"

#define FILE_MAX (1024ull * 1024 * 1024) /* merges need as much room again: files stay handy */

static enum eng_result end_file(struct output *o, struct eng_error *err)
{
    if (!o->writer)
        return ENG_OK;
    if (o->n == o->cap) {
        o->cap = OV_MAX(4, o->cap * 2);
        o->runs = ov_realloc(o->runs, o->cap * sizeof(*o->runs));
    }
    struct manifest_run *r = &o->runs[o->n];
    *r = (struct manifest_run){.id = o->id, .order = o->order};
    enum eng_result res = run_writer_finish(o->writer, &r->bytes, &r->min_ts, &r->max_ts, err);
    if (res == ENG_OK) {
        o->n++;
        o->bytes += r->bytes;
    }
    run_writer_free(o->writer);
    o->writer = NULL;
    return res;
}

enum eng_result output_add(struct output *o, uint64_t keyspace, struct slice key, uint64_t ts, uint8_t kind,
                           struct slice value, struct eng_error *err)
{
    enum eng_result r = ENG_OK;
    if (!o->writer || keyspace != o->keyspace) {
        bool alone = o->alone(o->arg, keyspace);
        if (alone || o->is_alone)
            r = end_file(o, err);
        o->is_alone = alone;
        o->keyspace = keyspace;
    } else if (run_writer_bytes(o->writer) >= FILE_MAX && !run_writer_same_key(o->writer, keyspace, key)) {
        r = end_file(o, err);
    }
    if (r == ENG_OK && !o->writer) {
        o->id = o->new_id(o->arg);
        r = run_writer_new(o->files, o->id, o->codec, &o->writer, err);
    }
    if (r != ENG_OK)
        return r;
    if (++o->entries % OUTPUT_TICK == 0 && o->stop(o->arg)) {
        err->result = ENG_CANCELLED;
        return ENG_CANCELLED;
    }
    return run_writer_add(o->writer, keyspace, key, ts, kind, value, err);
}

enum eng_result output_finish(struct output *o, struct eng_error *err)
{
    enum eng_result r = end_file(o, err);
    if (r != ENG_OK || o->n == 0)
        return r;
    int rc = o->files->sync_dir(o->files, "runs");
    if (rc != 0)
        return run_io_error(err, rc, "sync the folder", "runs", 0);
    o->opened = ov_calloc(o->n, sizeof(struct run *));
    for (size_t i = 0; i < o->n && r == ENG_OK; i++)
        r = run_open(o->files, o->runs[i].id, o->order, &o->opened[i], err);
    return r;
}

void output_free(struct output *o, bool kept)
{
    run_writer_free(o->writer);
    for (size_t i = 0; i < o->n; i++) {
        if (o->opened)
            run_unref(o->opened[i]);
        if (!kept) {
            char path[RUN_PATH_MAX];
            run_path(o->runs[i].id, path);
            (void)o->files->remove(o->files, path);
        }
    }
    free(o->opened);
    free(o->runs);
    o->writer = NULL;
    o->opened = NULL;
    o->runs = NULL;
    o->n = 0;
}
