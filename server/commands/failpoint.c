/* The fail point failCommand: commands fail, wait, or lose their connection, as a test has asked for. What is asked for is checked when it is
 * set and copied for each command that is hit, so that it may be turned off meanwhile. */
#include "server/commands/failpoint.h"

#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/mutex.h"

enum mode { MODE_OFF, MODE_ALWAYS, MODE_TIMES, MODE_SKIP };

struct failpoints {
    _Atomic bool on; /* what commands look at first */
    struct mutex mutex;
    enum mode mode;
    int64_t left;    /* TIMES: hits to come; SKIP: passes to come */
    int64_t entered; /* hits since it was set */
    uint8_t *data;   /* the document `data`; NULL while it was never set */
};

const char *const configure_fail_point_fields[] = {"mode", "data", NULL};

struct failpoints *failpoints_new(void)
{
    struct failpoints *f = ov_calloc(1, sizeof(*f));
    mutex_init(&f->mutex, RANK_FAILPOINT);
    return f;
}

void failpoints_free(struct failpoints *f)
{
    if (!f)
        return;
    mutex_destroy(&f->mutex);
    free(f->data);
    free(f);
}

/* ---- hits ---- */

static bool in_array(const uint8_t *array, const char *text)
{
    struct biter it;
    struct belem e;
    uint32_t n;
    if (!text)
        return false;
    for (biter_init(&it, array); biter_next(&it, &e);)
        if (strcmp(bval_str(e.v, &n), text) == 0)
            return true;
    return false;
}

static bool applies(const struct command_ctx *cx, const uint8_t *data)
{
    const uint8_t *names = bval_doc(bdoc_get(data, "failCommands"));
    struct bval app = bdoc_get(data, "appName");
    uint32_t n;
    if (cx->cmd->fn == cmd_configure_fail_point)
        return false; /* or it could not be turned off */
    if (!in_array(names, cx->req->name) && !in_array(names, cx->cmd->name) && !in_array(names, cx->cmd->alias))
        return false;
    return bval_is_missing(app) || (cx->client && strcmp(bval_str(app, &n), cx->client->app_name) == 0);
}

/* Counts a command that applies. With the mutex held. */
static bool fires(struct failpoints *f)
{
    switch (f->mode) {
    case MODE_OFF:
        return false;
    case MODE_ALWAYS:
        break;
    case MODE_TIMES:
        if (--f->left == 0) {
            f->mode = MODE_OFF;
            atomic_store_explicit(&f->on, false, memory_order_relaxed);
        }
        break;
    case MODE_SKIP:
        if (f->left > 0) {
            f->left--;
            return false;
        }
    }
    f->entered++;
    return true;
}

static bool flag(const uint8_t *data, const char *name)
{
    struct bval v = bdoc_get(data, name);
    return !bval_is_missing(v) && bval_truthy(v);
}

static int64_t number(const uint8_t *data, const char *name)
{
    int64_t n = 0;
    struct bval v = bdoc_get(data, name);
    return bval_is_missing(v) || !bval_to_i64(v, false, &n) ? 0 : n;
}

const struct failpoint_hit *failpoint_check(struct command_ctx *cx)
{
    struct failpoints *f = cx->server->failpoints;
    const uint8_t *data = NULL;
    if (OV_LIKELY(!f || !atomic_load_explicit(&f->on, memory_order_relaxed)))
        return NULL;
    mutex_lock(&f->mutex);
    if (f->data && f->mode != MODE_OFF && applies(cx, f->data) && fires(f))
        data = arena_dup(cx->op.arena, f->data, bdoc_len(f->data));
    mutex_unlock(&f->mutex);
    if (!data)
        return NULL;
    struct failpoint_hit *hit = arena_zalloc(cx->op.arena, sizeof(*hit));
    struct bval labels = bdoc_get(data, "errorLabels"), concern = bdoc_get(data, "writeConcernError");
    hit->close_connection = flag(data, "closeConnection");
    hit->error_code = (int)number(data, "errorCode");
    hit->block_ms = flag(data, "blockConnection") ? number(data, "blockTimeMS") : 0;
    hit->has_labels = !bval_is_missing(labels);
    hit->labels = hit->has_labels ? bval_doc(labels) : NULL;
    hit->write_concern_error = bval_is_missing(concern) ? NULL : bval_doc(concern);
    return hit;
}

/* ---- what dispatch does with a hit ---- */

bool failpoint_acts(struct command_ctx *cx, enum op_status *out)
{
    const struct failpoint_hit *hit = cx->hit;
    *out = OP_DONE;
    if (cx->state)
        return false; /* the handler runs already */
    if (hit->block_ms > 0) {
        int64_t now = clock_mono_us();
        if (!cx->blocked_until_us)
            cx->blocked_until_us = now + hit->block_ms * 1000;
        if (op_check_interrupt(&cx->op) != 0)
            return true;
        if (now < cx->blocked_until_us) {
            cx->op.wake_at_us = cx->blocked_until_us;
            *out = OP_WAIT;
            return true;
        }
    }
    if (!hit->close_connection && !hit->error_code)
        return false;
    cx->close_connection = hit->close_connection;
    (void)err_set(&cx->op.err, hit->error_code ? hit->error_code : ERR_SOCKET_EXCEPTION,
                  "Failing command via 'failCommand' failpoint");
    return true;
}

bool failpoint_labels(struct command_ctx *cx)
{
    const struct failpoint_hit *hit = cx->hit;
    if (!hit || !hit->has_labels)
        return false;
    if (!bdoc_empty(hit->labels))
        bw_val(cx->reply, "errorLabels", (struct bval){BSON_TYPE_ARRAY, bdoc_len(hit->labels), hit->labels});
    return true;
}

void failpoint_write_concern(struct command_ctx *cx)
{
    const struct failpoint_hit *hit = cx->hit;
    if (!hit || !hit->write_concern_error || !(cx->cmd->flags & CMD_WRITE))
        return;
    bw_rawdoc(cx->reply, "writeConcernError", hit->write_concern_error);
    (void)failpoint_labels(cx);
}

/* ---- configureFailPoint ---- */

enum data_type { DATA_STRINGS, DATA_CODE, DATA_BOOL, DATA_MS, DATA_STRING, DATA_DOC };
static const struct {
    const char *name;
    enum data_type type;
} data_fields[] = {
    {"failCommands", DATA_STRINGS}, {"errorCode", DATA_CODE},        {"closeConnection", DATA_BOOL},
    {"blockConnection", DATA_BOOL}, {"blockTimeMS", DATA_MS},        {"appName", DATA_STRING},
    {"errorLabels", DATA_STRINGS},  {"writeConcernError", DATA_DOC}, {"failInternalCommands", DATA_BOOL},
};

static bool strings_only(const uint8_t *array)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, array); biter_next(&it, &e);)
        if (e.v.type != BSON_TYPE_UTF8)
            return false;
    return true;
}

static bool fits(struct bval v, enum data_type type)
{
    int64_t n;
    switch (type) {
    case DATA_STRINGS:
        return v.type == BSON_TYPE_ARRAY && strings_only(bval_doc(v));
    case DATA_CODE:
        return bval_is_number(v) && bval_to_i64(v, true, &n) && n > 0 && n <= INT32_MAX;
    case DATA_BOOL:
        return v.type == BSON_TYPE_BOOL || bval_is_number(v);
    case DATA_MS:
        return bval_is_number(v) && bval_to_i64(v, false, &n) && n >= 0 && n <= INT32_MAX;
    case DATA_STRING:
        return v.type == BSON_TYPE_UTF8;
    case DATA_DOC:
        return v.type == BSON_TYPE_DOCUMENT;
    }
    return false;
}

static int check_data(struct command_ctx *cx, const uint8_t *data)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, data); biter_next(&it, &e);) {
        size_t i = 0;
        while (i < OV_LEN(data_fields) && strcmp(data_fields[i].name, e.name) != 0)
            i++;
        if (i == OV_LEN(data_fields))
            return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the field 'data.%s' of failCommand is not implemented",
                           e.name);
        if (!fits(e.v, data_fields[i].type))
            return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "failCommand: wrong type or value of 'data.%s'", e.name);
    }
    if (bval_is_missing(bdoc_get(data, "failCommands")))
        return err_set(&cx->op.err, ERR_BAD_VALUE, "failCommand: 'data.failCommands' is missing");
    if (flag(data, "blockConnection") && bval_is_missing(bdoc_get(data, "blockTimeMS")))
        return err_set(&cx->op.err, ERR_BAD_VALUE,
                       "failCommand: 'data.blockTimeMS' must be given with blockConnection");
    return 0;
}

static int read_mode(struct command_ctx *cx, enum mode *mode, int64_t *count)
{
    struct bval v = bdoc_get(cx->req->body, "mode");
    struct err *err = &cx->op.err;
    uint32_t n;
    struct biter it;
    struct belem e;
    *count = 0;
    if (v.type == BSON_TYPE_UTF8) {
        const char *s = bval_str(v, &n);
        *mode = strcmp(s, "off") == 0 ? MODE_OFF : MODE_ALWAYS;
        return *mode == MODE_OFF || strcmp(s, "alwaysOn") == 0 ? 0 : err_set(err, ERR_BAD_VALUE, "unknown mode: %s", s);
    }
    if (v.type != BSON_TYPE_DOCUMENT)
        return err_set(err, ERR_TYPE_MISMATCH, "'mode' must be a string or JSON object");
    biter_init(&it, bval_doc(v));
    if (!biter_next(&it, &e) || (strcmp(e.name, "times") != 0 && strcmp(e.name, "skip") != 0))
        return err_set(err, ERR_BAD_VALUE, "'mode' must be one of 'times' or 'skip'");
    *mode = strcmp(e.name, "times") == 0 ? MODE_TIMES : MODE_SKIP;
    if (!bval_is_number(e.v) || !bval_to_i64(e.v, true, count))
        return err_set(err, ERR_TYPE_MISMATCH, "'%s' option to 'mode' must be a whole number", e.name);
    if (*count < 0)
        return err_set(err, ERR_BAD_VALUE, "'%s' option to 'mode' must be positive", e.name);
    if (*mode == MODE_TIMES && *count == 0)
        *mode = MODE_OFF;
    return 0;
}

enum op_status cmd_configure_fail_point(struct command_ctx *cx)
{
    struct failpoints *f = cx->server->failpoints;
    struct bval name = bdoc_get(cx->req->body, cx->req->name);
    const uint8_t *data;
    enum mode mode = MODE_OFF;
    int64_t count;
    uint32_t n;
    if (name.type != BSON_TYPE_UTF8)
        return command_fail(cx, ERR_TYPE_MISMATCH, "configureFailPoint takes the name of a fail point");
    if (!f || strcmp(bval_str(name, &n), "failCommand") != 0)
        return command_fail(cx, ERR_BAD_VALUE, "fail point '%s' not found", bval_str(name, &n));
    if (read_mode(cx, &mode, &count) != 0 || arg_doc(cx, "data", &data) != 0 ||
        (mode != MODE_OFF && check_data(cx, data) != 0))
        return OP_DONE;
    uint8_t *copy = ov_malloc(bdoc_len(data));
    memcpy(copy, data, bdoc_len(data));
    mutex_lock(&f->mutex);
    uint8_t *old = f->data;
    int64_t entered = f->entered;
    f->data = copy;
    f->mode = mode;
    f->left = count;
    f->entered = 0;
    atomic_store_explicit(&f->on, mode != MODE_OFF, memory_order_relaxed);
    mutex_unlock(&f->mutex);
    free(old);
    bw_i64(cx->reply, "count", entered);
    return OP_DONE;
}
