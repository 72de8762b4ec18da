/* fsync, fsyncUnlock, logRotate: work that blocks on files, hence done on a worker. */
#include <string.h>

#include "server/base/log.h"
#include "server/commands/admin.h"

const char *const fsync_fields[] = {"lock", "async", "fsyncLockAcquisitionTimeoutMillis", NULL};

/* The first step runs on a loop; the one after AGAIN does not. */
static bool on_worker(struct command_ctx *cx)
{
    bool second = cx->state != NULL;
    cx->state = cx;
    return second;
}

enum op_status cmd_fsync(struct command_ctx *cx)
{
    struct engine *e = cx->server->engine;
    bool lock, async;
    if (arg_bool(cx, "lock", false, &lock) != 0 || arg_bool(cx, "async", false, &async) != 0)
        return OP_DONE;
    if (lock)
        return command_fail(cx, ERR_NOT_IMPLEMENTED, "the option 'lock' of fsync is not implemented");
    if (!on_worker(cx))
        return OP_AGAIN;
    eng_step_leave(e); /* it may take long, and a guard held so long keeps memory from being freed */
    enum eng_result r = eng_flush(e);
    eng_step_enter(e);
    if (r != ENG_OK)
        return command_engine_error(cx, r);
    bw_i32(cx->reply, "numFiles", 1);
    return OP_DONE;
}

enum op_status cmd_fsync_unlock(struct command_ctx *cx)
{
    return command_fail(cx, ERR_ILLEGAL_OPERATION, "fsyncUnlock called when not locked");
}

enum op_status cmd_log_rotate(struct command_ctx *cx)
{
    struct bval v = bdoc_get(cx->req->body, cx->req->name);
    uint32_t n;
    if (v.type == BSON_TYPE_UTF8 && strcmp(bval_str(v, &n), "server") != 0)
        return command_fail(cx, 6221500, "Unknown log type for rotation");
    if (!on_worker(cx))
        return OP_AGAIN;
    int rc = log_reopen();
    return rc == 0 ? OP_DONE : command_fail(cx, ERR_OPERATION_FAILED, "the log cannot be reopened: %s", strerror(rc));
}
