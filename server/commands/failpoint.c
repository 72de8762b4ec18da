/* Fail points. failCommand: commands fail, wait, or lose their connection, as a test has asked for; onPrimaryTransactionalWrite: the same for
 * retryable writes as they commit. What is asked for is checked when it is
 * set and copied for each command that is hit, so that it may be turned off meanwhile. */
#include "server/commands/failpoint.h"

#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/mutex.h"

enum mode { MODE_OFF, MODE_ALWAYS, MODE_TIMES, MODE_SKIP };

struct point {
    _Atomic bool on; /* what commands look at first */
    enum mode mode;
    int64_t left;    /* TIMES: hits to come; SKIP: passes to come */
    int64_t entered; /* hits since it was set */
    uint8_t *data;   /* the document `data`; NULL while it was never set */
};

enum point_name { FAIL_COMMAND, TRANSACTIONAL_WRITE, POINTS };
struct failpoints {
    struct mutex mutex;
    struct point points[POINTS];
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
    for (size_t i = 0; i < POINTS; i++)
        free(f->points[i].data);
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
static bool fires(struct point *f)
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

static bool is_on(const struct command_ctx *cx, enum point_name name)
{
    const struct failpoints *f = cx->server->failpoints;
    return f && atomic_load_explicit(&f->points[name].on, memory_order_relaxed);
}

/* The data of a fail point that fires now, in the operation's arena; NULL: it does not. */
static const uint8_t *hit_of(struct command_ctx *cx, enum point_name name)
{
    struct failpoints *f = cx->server->failpoints;
    const uint8_t *data = NULL;
    if (OV_LIKELY(!is_on(cx, name)))
        return NULL;
    struct point *p = &f->points[name];
    mutex_lock(&f->mutex);
    if (p->data && p->mode != MODE_OFF && (name != FAIL_COMMAND || applies(cx, p->data)) && fires(p))
        data = arena_dup(cx->op.arena, p->data, bdoc_len(p->data));
    mutex_unlock(&f->mutex);
    return data;
}

bool failpoint_on_commit(const struct command_ctx *cx)
{
    return is_on(cx, TRANSACTIONAL_WRITE);
}

bool failpoint_fails_commit(struct command_ctx *cx)
{
    const uint8_t *data = hit_of(cx, TRANSACTIONAL_WRITE);
    if (!data)
        return false;
    int code = (int)number(data, "failBeforeCommitExceptionCode");
    cx->close_connection |= bval_is_missing(bdoc_get(data, "closeConnection")) || flag(data, "closeConnection");
    return code && err_set(&cx->op.err, code, "Failing write due to failpoint. The write must not be reflected.") != 0;
}

const struct failpoint_hit *failpoint_check(struct command_ctx *cx)
{
    const uint8_t *data = hit_of(cx, FAIL_COMMAND);
    if (OV_LIKELY(!data))
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

const uint8_t *failpoint_write_concern(struct command_ctx *cx)
{
    const struct failpoint_hit *hit = cx->hit;
    if (!hit || !hit->write_concern_error || !(cx->cmd->flags & CMD_WRITE))
        return NULL;
    bw_rawdoc(cx->reply, "writeConcernError", hit->write_concern_error);
    return hit->write_concern_error;
}

/* ---- configureFailPoint ---- */

enum data_type { DATA_STRINGS, DATA_CODE, DATA_BOOL, DATA_MS, DATA_STRING, DATA_DOC };
struct data_field {
    const char *name;
    enum data_type type;
};
static const struct data_field fail_command_fields[] = {
    {"failCommands", DATA_STRINGS},
    {"errorCode", DATA_CODE},
    {"closeConnection", DATA_BOOL},
    {"blockConnection", DATA_BOOL},
    {"blockTimeMS", DATA_MS},
    {"appName", DATA_STRING},
    {"errorLabels", DATA_STRINGS},
    {"writeConcernError", DATA_DOC},
    {"failInternalCommands", DATA_BOOL},
    {NULL, DATA_DOC},
};
static const struct data_field transactional_write_fields[] = {
    {"closeConnection", DATA_BOOL}, {"failBeforeCommitExceptionCode", DATA_CODE}, {NULL, DATA_DOC}};
static const struct {
    const char *name;
    const struct data_field *fields;
} points[POINTS] = {
    [FAIL_COMMAND] = {"failCommand", fail_command_fields},
    [TRANSACTIONAL_WRITE] = {"onPrimaryTransactionalWrite", transactional_write_fields},
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

static int check_data(struct command_ctx *cx, enum point_name point, const uint8_t *data)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, data); biter_next(&it, &e);) {
        const struct data_field *f = points[point].fields;
        while (f->name && strcmp(f->name, e.name) != 0)
            f++;
        if (!f->name)
            return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the field 'data.%s' of %s is not implemented", e.name,
                           points[point].name);
        if (!fits(e.v, f->type))
            return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "%s: wrong type or value of 'data.%s'", points[point].name,
                           e.name);
    }
    if (point != FAIL_COMMAND)
        return 0;
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
    enum point_name point = FAIL_COMMAND;
    while (point < POINTS && strcmp(bval_str(name, &n), points[point].name) != 0)
        point++;
    if (!f || point == POINTS)
        return command_fail(cx, ERR_BAD_VALUE, "fail point '%s' not found", bval_str(name, &n));
    if (read_mode(cx, &mode, &count) != 0 || arg_doc(cx, "data", &data) != 0 ||
        (mode != MODE_OFF && check_data(cx, point, data) != 0))
        return OP_DONE;
    uint8_t *copy = ov_malloc(bdoc_len(data));
    memcpy(copy, data, bdoc_len(data));
    struct point *p = &f->points[point];
    mutex_lock(&f->mutex);
    uint8_t *old = p->data;
    int64_t entered = p->entered;
    p->data = copy;
    p->mode = mode;
    p->left = count;
    p->entered = 0;
    atomic_store_explicit(&p->on, mode != MODE_OFF, memory_order_relaxed);
    mutex_unlock(&f->mutex);
    free(old);
    bw_i64(cx->reply, "count", entered);
    return OP_DONE;
}
