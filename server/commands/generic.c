/* Arguments that every command takes, and the check of the others by name: unknown or doubled fields are refused. One pass over the body. */
#include "server/commands/dispatch.h"

#include <math.h>

#include "server/base/clock.h"

#define MAX_FIELDS 64

typedef int (*generic_fn)(struct command_ctx *cx, const struct belem *e);

static bool absent(struct bval v)
{
    return v.type == BSON_TYPE_NULL || v.type == BSON_TYPE_UNDEFINED;
}

static int take_anything(struct command_ctx *cx, const struct belem *e)
{
    return 0;
}

static int take_doc(struct command_ctx *cx, const struct belem *e)
{
    return e->v.type == BSON_TYPE_DOCUMENT || absent(e->v) ? 0 : arg_wrong_type(cx, e->name, e->v, "type 'object'");
}

static int take_bool(struct command_ctx *cx, const struct belem *e)
{
    return e->v.type == BSON_TYPE_BOOL || absent(e->v) ? 0 : arg_wrong_type(cx, e->name, e->v, "type 'bool'");
}

static int take_lsid(struct command_ctx *cx, const struct belem *e)
{
    int rc = take_doc(cx, e);
    if (rc != 0 || absent(e->v))
        return rc;
    struct bval id = bdoc_get(bval_doc(e->v), "id");
    if (bval_is_missing(id))
        return err_set(&cx->op.err, ERR_IDL_FAILED_TO_PARSE,
                       "BSON field 'OperationSessionInfo.lsid.id' is missing but a required field");
    if (id.type != BSON_TYPE_BINARY)
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH,
                       "BSON field 'OperationSessionInfo.lsid.id' is the wrong type '%s', expected type 'binData'",
                       bval_type_name(id.type));
    if (load_le32(id.p) != 16 || id.p[4] != 4)
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH,
                       "BSON field 'OperationSessionInfo.lsid.id' is the wrong binData type '%s', expected type 'UUID'",
                       id.p[4] == 0 ? "general" : "other");
    cx->lsid = id.p + 5;
    return 0;
}

static int take_max_time(struct command_ctx *cx, const struct belem *e)
{
    int64_t ms;
    if (absent(e->v))
        return 0;
    if (!bval_is_number(e->v))
        return arg_wrong_type(cx, e->name, e->v, "types '[long, int, decimal, double']");
    double d = bval_to_f64(e->v);
    if (!isfinite(d))
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE,
                       isnan(d) ? "Expected an integer, but found NaN in: %s: %s"
                                : "Cannot represent as a 64-bit integer: %s: %s",
                       e->name, bval_shell(cx->op.arena, e->v));
    if (!bval_to_i64(e->v, true, &ms) && bval_to_i64(e->v, false, &ms))
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "Expected an integer: %s: %s", e->name,
                       bval_shell(cx->op.arena, e->v));
    ms = bval_to_i64_clamped(e->v);
    if (ms < 0 || ms > INT32_MAX)
        return err_set(&cx->op.err, ERR_BAD_VALUE, "%lld value for %s is out of range [0, 2147483647]", (long long)ms,
                       e->name);
    if (ms > 0)
        cx->op.deadline_us = clock_mono_us() + ms * 1000;
    return 0;
}

static int take_read_preference(struct command_ctx *cx, const struct belem *e)
{
    static const char *const modes[] = {"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"};
    int rc = take_doc(cx, e);
    if (rc != 0 || absent(e->v))
        return rc;
    struct bval mode = bdoc_get(bval_doc(e->v), "mode");
    uint32_t n;
    if (bval_is_missing(mode))
        return 0;
    if (mode.type != BSON_TYPE_UTF8)
        return arg_wrong_type(cx, "$readPreference.mode", mode, "type 'string'");
    for (size_t i = 0; i < OV_LEN(modes); i++)
        if (strcmp(modes[i], bval_str(mode, &n)) == 0)
            return 0;
    return err_set(&cx->op.err, ERR_BAD_VALUE,
                   "Enumeration value '%s' for field '$readPreference.mode' is not a valid value.", bval_str(mode, &n));
}

static int take_read_concern(struct command_ctx *cx, const struct belem *e)
{
    return read_concern_check(cx, cx->cmd->flags & CMD_READ_CONCERN);
}

/* ---- the stable API, transactions ---- */

static int take_api_version(struct command_ctx *cx, const struct belem *e)
{
    uint32_t n;
    if (e->v.type != BSON_TYPE_UTF8)
        return arg_wrong_type(cx, e->name, e->v, "type 'string'");
    if (strcmp(bval_str(e->v, &n), "1") != 0)
        return err_set(&cx->op.err, ERR_API_VERSION_ERROR, "API version must be \"1\"");
    return 0;
}

static int needs_api_version(struct command_ctx *cx, const struct belem *e)
{
    int rc = take_bool(cx, e);
    if (rc == 0 && bval_is_missing(bdoc_get(cx->req->body, "apiVersion")))
        return err_set(&cx->op.err, 4886600,
                       "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion");
    return rc;
}

static int take_api_strict(struct command_ctx *cx, const struct belem *e)
{
    int rc = needs_api_version(cx, e);
    if (rc == 0 && e->v.type == BSON_TYPE_BOOL && bval_bool(e->v) && !(cx->cmd->flags & CMD_API_V1))
        return err_set(&cx->op.err, ERR_API_STRICT_ERROR,
                       "Provided apiStrict:true, but the command %s is not in API Version 1. Information on supported "
                       "commands and migrations in API Version 1 can be found at "
                       "https://dochub.mongodb.org/core/manual-versioned-api",
                       cx->cmd->name);
    return rc;
}

static int take_txn_number(struct command_ctx *cx, const struct belem *e)
{
    if (e->v.type != BSON_TYPE_INT64)
        return err_set(&cx->op.err, ERR_TYPE_MISMATCH,
                       "BSON field 'OperationSessionInfo.txnNumber' is the wrong type '%s', expected type 'long'",
                       bval_type_name(e->v.type));
    cx->has_txn_number = true;
    cx->txn_number = bval_i64(e->v);
    return 0;
}

/* Retryable writes run on a stand-alone server, too. Whoever retries must say who he is. */
static int check_txn_number(struct command_ctx *cx)
{
    if (!cx->has_txn_number)
        return 0;
    if (!cx->lsid)
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS,
                       "Transaction number requires a session ID to also be specified");
    if (cx->txn_number < 0)
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS, "Transaction number cannot be negative");
    if (!(cx->cmd->flags & CMD_RETRY))
        return err_set(&cx->op.err, ERR_NOT_A_RETRYABLE_WRITE_COMMAND,
                       "txnNumber may only be provided for multi-document transactions and retryable write commands. "
                       "autocommit:false was not provided, and %s is not a retryable write command.",
                       cx->cmd->name);
    return 0;
}

static int refuse_transactions(struct command_ctx *cx, const struct belem *e)
{
    return err_set(&cx->op.err, ERR_ILLEGAL_OPERATION,
                   "Transaction numbers are only allowed on a replica set member or mongos");
}

static const struct {
    const char *name;
    generic_fn fn;
} generic[] = {
    {"$db", take_anything}, /* checked before */
    {"lsid", take_lsid},
    {"$clusterTime", take_doc},
    {"$readPreference", take_read_preference},
    {"readConcern", take_read_concern},
    {"writeConcern", write_concern_read},
    {"maxTimeMS", take_max_time},
    {"comment", take_anything},
    {"apiVersion", take_api_version},
    {"apiStrict", take_api_strict},
    {"apiDeprecationErrors", needs_api_version},
    {"txnNumber", take_txn_number},
    {"autocommit", refuse_transactions},
    {"startTransaction", refuse_transactions},
    {"$client", take_doc},
    {"$audit", take_doc},
    {"$configServerState", take_doc},
    {"$configTime", take_anything},
    {"$topologyTime", take_anything},
    {"mayBypassWriteBlocking", take_bool},
    {"allowImplicitCollectionCreation", take_bool},
    {"serializationContext", take_doc},
    {"clientOperationKey", take_anything},
    {"maxTimeMSOpOnly", take_anything},
};
_Static_assert(OV_LEN(generic) <= 32, "bits of `seen`");

static int find_generic(const char *name)
{
    for (size_t i = 0; i < OV_LEN(generic); i++)
        if (generic[i].name[0] == name[0] && strcmp(generic[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int find_own(const char *const *fields, const char *name)
{
    for (int i = 0; fields[i]; i++)
        if (fields[i][0] == name[0] && strcmp(fields[i], name) == 0)
            return i;
    return -1;
}

/* A field of the command itself: known, and for the first time. */
static int check_own(struct command_ctx *cx, const char *name, uint64_t *seen)
{
    const char *const *fields = cx->cmd->fields;
    if (!fields)
        return 0;
    int i = find_own(fields, name);
    if (i < 0)
        return err_set(&cx->op.err, ERR_IDL_UNKNOWN_FIELD, "BSON field '%s.%s' is an unknown field.", cx->cmd->name,
                       name);
    OV_DASSERT(i < MAX_FIELDS);
    if (*seen >> i & 1)
        return err_set(&cx->op.err, ERR_IDL_DUPLICATE_FIELD, "BSON field '%s.%s' is a duplicate field", cx->cmd->name,
                       name);
    *seen |= (uint64_t)1 << i;
    return 0;
}

int generic_args(struct command_ctx *cx)
{
    struct biter it;
    struct belem e;
    uint64_t seen = 0;
    uint32_t seen_generic = 0;
    int rc = 0;
    /* the default is w: "majority" in a set, unless it was set, and w: 1 outside */
    cx->journaled =
        cx->server->set_name && !atomic_load_explicit(&cx->server->default_is_unsynced, memory_order_relaxed);
    biter_init(&it, cx->req->body);
    (void)biter_next(&it, &e); /* the command's own name */
    while (rc == 0 && biter_next(&it, &e)) {
        int i = find_generic(e.name);
        if (i < 0) {
            rc = check_own(cx, e.name, &seen);
            continue;
        }
        if (seen_generic >> i & 1)
            return err_set(&cx->op.err, ERR_IDL_DUPLICATE_FIELD, "BSON field '%s.%s' is a duplicate field",
                           cx->cmd->name, e.name);
        seen_generic |= 1u << i;
        rc = generic[i].fn(cx, &e);
    }
    for (uint32_t i = 0; rc == 0 && i < cx->req->n_seqs; i++)
        rc = check_own(cx, cx->req->seqs[i].name, &seen);
    return rc == 0 ? check_txn_number(cx) : rc;
}
