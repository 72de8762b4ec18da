/* Write concerns. One that our set cannot satisfy is no error of the command: the write is done, then the reply tells. Nothing is ever waited for
 * but the disk, for there are no other members: so wtimeout never strikes. */
#include "server/commands/dispatch.h"

static int w_number(struct command_ctx *cx, struct bval v)
{
    int64_t w;
    if (!bval_to_i64(v, false, &w) || w < 0 || w > 50)
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE,
                       "w has to be a non-negative number and not greater than 50; found: %s",
                       bval_shell(cx->op.arena, v));
    cx->w0 = w == 0;
    if (w <= 1)
        return 0;
    if (!cx->server->set_name)
        return err_set(&cx->op.err, ERR_BAD_VALUE, "cannot use 'w' > 1 when a host is not replicated");
    cx->concern_code = ERR_UNSATISFIABLE_WRITE_CONCERN;
    return 0;
}

static int w_mode(struct command_ctx *cx, struct bval v)
{
    uint32_t n;
    const char *mode = bval_str(v, &n);
    if (strcmp(mode, "majority") == 0) {
        cx->journaled = true;
        return 0;
    }
    if (!cx->server->set_name)
        return err_set(&cx->op.err, ERR_BAD_VALUE,
                       "cannot use non-majority 'w' mode \"%s\" when a host is not replicated", mode);
    cx->concern_code = ERR_UNKNOWN_REPL_WRITE_CONCERN;
    return 0;
}

static int write_concern_field(struct command_ctx *cx, const struct belem *e, bool *j, bool *fsync)
{
    if (strcmp(e->name, "w") == 0) {
        if (bval_is_number(e->v))
            return w_number(cx, e->v);
        if (e->v.type == BSON_TYPE_UTF8)
            return w_mode(cx, e->v);
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "w has to be a number, string, or object; found: %s",
                       bval_type_name(e->v.type));
    }
    if (strcmp(e->name, "j") == 0 || strcmp(e->name, "fsync") == 0) {
        if (!bval_is_number(e->v) && e->v.type != BSON_TYPE_BOOL)
            return arg_wrong_type(cx, arena_printf(cx->op.arena, "writeConcern.%s", e->name), e->v,
                                  "types '[bool, long, int, decimal, double']");
        *(e->name[0] == 'j' ? j : fsync) = bval_truthy(e->v);
        return 0;
    }
    if (strcmp(e->name, "wtimeout") == 0)
        return bval_is_number(e->v)
                   ? 0
                   : arg_wrong_type(cx, "writeConcern.wtimeout", e->v, "types '[long, int, decimal, double']");
    if (strncmp(e->name, "wOpTime", 7) == 0 || strcmp(e->name, "provenance") == 0 ||
        strcmp(e->name, "getLastError") == 0 || strcmp(e->name, "wElectionId") == 0)
        return 0;
    return err_set(&cx->op.err, ERR_IDL_UNKNOWN_FIELD, "BSON field 'writeConcern.%s' is an unknown field.", e->name);
}

int write_concern_read(struct command_ctx *cx, const struct belem *wc)
{
    struct biter it;
    struct belem e;
    bool j = false, fsync = false;
    int rc = 0;
    if (wc->v.type == BSON_TYPE_NULL || wc->v.type == BSON_TYPE_UNDEFINED)
        return 0;
    if (wc->v.type != BSON_TYPE_DOCUMENT)
        return arg_wrong_type(cx, wc->name, wc->v, "type 'object'");
    if (!bval_is_missing(bdoc_get(bval_doc(wc->v), "w")))
        cx->journaled = false; /* instead of the default */
    for (biter_init(&it, bval_doc(wc->v)); rc == 0 && biter_next(&it, &e);)
        rc = write_concern_field(cx, &e, &j, &fsync);
    if (rc != 0)
        return rc;
    if (j && fsync)
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "fsync and j options cannot be used together");
    if (!(cx->cmd->flags & (CMD_WRITE | CMD_ANY_WC)) && !bdoc_empty(bval_doc(wc->v)))
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS, "Command %s does not support writeConcern", cx->cmd->name);
    cx->journaled |= j || fsync;
    cx->concern = bval_doc(wc->v);
    return 0;
}

static void put_concern(struct command_ctx *cx)
{
    struct bval w = bdoc_get(cx->concern, "w"), j = bdoc_get(cx->concern, "j");
    struct bval timeout = bdoc_get(cx->concern, "wtimeout");
    int64_t ms = 0;
    if (bval_is_number(timeout) && !bval_to_i64(timeout, false, &ms))
        ms = 0;
    size_t at = bw_doc(cx->reply, "writeConcern");
    if (bval_is_number(w))
        bw_i32(cx->reply, "w", (int32_t)bval_to_f64(w));
    else
        bw_val(cx->reply, "w", w);
    if (!bval_is_missing(j))
        bw_bool(cx->reply, "j", bval_truthy(j));
    if (ms == (int32_t)ms)
        bw_i32(cx->reply, "wtimeout", (int32_t)ms);
    else
        bw_i64(cx->reply, "wtimeout", ms);
    bw_str(cx->reply, "provenance", "clientSupplied");
    bw_end(cx->reply, at);
}

void write_concern_put_error(struct command_ctx *cx)
{
    char scratch[32];
    uint32_t n;
    if (OV_LIKELY(!cx->concern_code) || !(cx->cmd->flags & CMD_WRITE))
        return;
    size_t at = bw_doc(cx->reply, "writeConcernError");
    bw_i32(cx->reply, "code", cx->concern_code);
    bw_str(cx->reply, "codeName", err_code_name(cx->concern_code, scratch));
    bw_str(cx->reply, "errmsg",
           cx->concern_code == ERR_UNSATISFIABLE_WRITE_CONCERN
               ? "Not enough data-bearing nodes"
               : arena_printf(cx->op.arena, "No write concern mode named '%s' found in replica set configuration",
                              bval_str(bdoc_get(cx->concern, "w"), &n)));
    size_t info = bw_doc(cx->reply, "errInfo");
    put_concern(cx);
    bw_end(cx->reply, info);
    bw_end(cx->reply, at);
}
