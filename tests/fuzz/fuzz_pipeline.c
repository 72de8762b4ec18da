/* The pipeline of an aggregate command: parsed or refused with words; what is parsed can be pushed down, opened, pulled and closed. */
#include "server/base/assert.h"
#include "server/query/stage/stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_on_nothing(struct arena *a, struct pipeline_spec *spec, const struct access_spec *access)
{
    struct err err;
    const uint8_t *doc;
    err_init(&err, a);
    struct plan plan = {.kind = PLAN_EMPTY, .filter = access->filter, .sort = &access->sort};
    struct exec *x = exec_open(a, &plan, NULL, NULL, access->skip, access->limit);
    struct pipeline *p = pipeline_new(a, x, spec, NULL);
    OV_ASSERT(pipeline_next(p, &(struct pull){.err = &err}, &doc) == EXEC_EOF);
    OV_ASSERT(pipeline_at_end(p));
    pipeline_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct pipeline_spec spec;
    struct access_spec access;
    err_init(&err, a);
    if (bson_check(data, size, BSON_DEPTH_MAX, &err) == 0) { /* an array is a document to its bytes */
        err_clear(&err);
        if (pipeline_parse(a, data, &spec, &err) != 0) {
            OV_ASSERT(err.code != 0 && err.msg && err.msg[0]);
        } else {
            if (spec.n && spec.stages[0].kind == STAGE_COLL_STATS) { /* as the command does */
                spec.stages++;
                spec.n--;
            }
            OV_ASSERT(pipeline_push_down(a, &spec, &access, &err) == 0);
            run_on_nothing(a, &spec, &access);
        }
    }
    arena_free(a);
    return 0;
}
