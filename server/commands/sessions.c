/* Logical sessions, as far as clients see them without transactions: an identifier that a driver makes up or asks for. What ends with
 * one are its cursors. */
#include "server/base/rand.h"
#include "server/commands/diagnostic.h"
#include "server/session/cursors.h"

#define TIMEOUT_MINUTES 30

enum op_status cmd_start_session(struct command_ctx *cx)
{
    uint8_t id[16];
    rand_secure(id, sizeof(id));
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40); /* UUID version 4, variant 1 */
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    size_t at = bw_doc(cx->reply, "id");
    bw_bin(cx->reply, "id", BSON_SUBTYPE_UUID, id, sizeof(id));
    bw_end(cx->reply, at);
    bw_i32(cx->reply, "timeoutMinutes", TIMEOUT_MINUTES);
    return OP_DONE;
}

static int check_id(struct command_ctx *cx, struct bval v)
{
    struct bval id = BVAL_MISSING;
    if (v.type == BSON_TYPE_DOCUMENT)
        id = bdoc_get(bval_doc(v), "id");
    if (v.type != BSON_TYPE_DOCUMENT || (!bval_is_missing(id) && id.type != BSON_TYPE_BINARY))
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "BSON field '%s.%s' holds what is no session identifier",
                       cx->cmd->name, cx->cmd->name);
    if (bval_is_missing(id))
        return err_set(&cx->op.err, ERR_IDL_FAILED_TO_PARSE, "BSON field '%s.id' is missing but a required field",
                       cx->cmd->name);
    if (id.p[4] != BSON_SUBTYPE_UUID || load_le32(id.p) != 16)
        return err_set(&cx->op.err, 207, "uuid must be a 16-byte binary field with UUID (4) subtype");
    return 0;
}

static enum op_status check_ids(struct command_ctx *cx)
{
    struct bval v = bdoc_get(cx->req->body, cx->req->name);
    struct biter it;
    struct belem e;
    if (v.type != BSON_TYPE_ARRAY) {
        arg_wrong_type(cx, cx->cmd->name, v, "type 'array'");
        return OP_DONE;
    }
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e);)
        if (check_id(cx, e.v) != 0)
            break;
    return OP_DONE;
}

enum op_status cmd_refresh_sessions(struct command_ctx *cx)
{
    return check_ids(cx);
}

enum op_status cmd_end_sessions(struct command_ctx *cx)
{
    enum { UUID_AT = 5, UUID_BYTES = 16 }; /* behind length and subtype */
    struct biter it;
    struct belem e;
    if (check_ids(cx) != OP_DONE || cx->op.err.code)
        return OP_DONE;
    struct map *sessions = map_new();
    for (biter_init(&it, bval_doc(bdoc_get(cx->req->body, cx->req->name))); biter_next(&it, &e);)
        map_put(sessions, slice_of(bdoc_get(bval_doc(e.v), "id").p + UUID_AT, UUID_BYTES), sessions);
    cursors_kill_sessions(cx->server->cursors, sessions);
    map_free(sessions);
    return OP_DONE;
}
