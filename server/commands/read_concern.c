/* Read concerns. Those that read documents take each level that this server has; for all other commands there is only the default, local. */
#include "server/commands/crud_read_private.h"
#include "server/commands/dispatch.h"

struct concern { /* missing: not given */
    struct bval level, after, at;
};

static bool one_of(const char *value, const char *const *allowed)
{
    for (; *allowed; allowed++)
        if (strcmp(value, *allowed) == 0)
            return true;
    return false;
}

static int wrong_type(struct command_ctx *cx, const struct belem *e, const char *expected)
{
    return err_set(&cx->op.err, ERR_TYPE_MISMATCH,
                   "BSON field 'readConcern.%s' is the wrong type '%s', expected type '%s'", e->name,
                   bval_type_name(e->v.type), expected);
}

static int take_word(struct command_ctx *cx, const struct belem *e, const char *const *allowed)
{
    uint32_t n;
    if (e->v.type != BSON_TYPE_UTF8)
        return wrong_type(cx, e, "string");
    const char *word = bval_str(e->v, &n);
    if (one_of(word, allowed))
        return 0;
    return err_set(&cx->op.err, ERR_BAD_VALUE,
                   "Enumeration value '%s' for field 'readConcern.%s' is not a valid value.", word, e->name);
}

static int take_field(struct command_ctx *cx, const struct belem *e, struct concern *c)
{
    static const char *const levels[] = {"local", "majority", "linearizable", "available", "snapshot", NULL};
    static const char *const sources[] = {"clientSupplied",       "implicitDefault",      "customDefault",
                                          "internalWriteDefault", "getLastErrorDefaults", NULL};
    bool after = strcmp(e->name, "afterClusterTime") == 0;
    if (strcmp(e->name, "level") == 0) {
        c->level = e->v;
        return take_word(cx, e, levels);
    }
    if (strcmp(e->name, "provenance") == 0)
        return take_word(cx, e, sources);
    if (!after && strcmp(e->name, "atClusterTime") != 0)
        return err_set(&cx->op.err, ERR_IDL_UNKNOWN_FIELD, "BSON field 'readConcern.%s' is an unknown field.", e->name);
    if (e->v.type != BSON_TYPE_TIMESTAMP)
        return wrong_type(cx, e, "timestamp");
    *(after ? &c->after : &c->at) = e->v;
    if (load_le64(e->v.p) == 0)
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS, "readConcern.%s cannot be a null timestamp", e->name);
    return 0;
}

static const char *level_of(const struct concern *c)
{
    uint32_t n;
    return bval_is_missing(c->level) ? "local" : bval_str(c->level, &n);
}

/* Is what was told to a client visible? Always; a time beyond that is from elsewhere. */
static int check_times(struct command_ctx *cx, const struct concern *c)
{
    struct err *err = &cx->op.err;
    if (!bval_is_missing(c->at) && strcmp(level_of(c), "snapshot") != 0)
        return err_set(err, ERR_INVALID_OPTIONS,
                       "readConcern.atClusterTime field can be set only if readConcern.level is equal to snapshot");
    if (!bval_is_missing(c->after) && !bval_is_missing(c->at))
        return err_set(err, ERR_INVALID_OPTIONS,
                       "Can not specify both readConcern.afterClusterTime and readConcern.atClusterTime");
    if (bval_is_missing(c->after) && bval_is_missing(c->at))
        return 0;
    if (!cx->server->set_name)
        return err_set(err, ERR_ILLEGAL_OPERATION,
                       "Cannot specify afterClusterTime or atClusterTime readConcern without replication enabled");
    if (!bval_is_missing(c->at))
        return err_set(err, ERR_NOT_IMPLEMENTED, "readConcern.atClusterTime is not implemented");
    if (load_le64(c->after.p) <= eng_visible(cx->server->engine))
        return 0;
    return err_set(err, ERR_INVALID_OPTIONS,
                   "readConcern afterClusterTime value must not be greater than the current clusterTime. Requested "
                   "clusterTime: %s",
                   bval_shell(cx->op.arena, c->after));
}

/* local, available, majority and linearizable are one on a single node. */
static int check_level(struct command_ctx *cx, const struct concern *c)
{
    const char *level = level_of(c);
    bool snapshot = strcmp(level, "snapshot") == 0;
    if (!snapshot && strcmp(level, "linearizable") != 0)
        return 0;
    if (!cx->server->set_name)
        return err_set(&cx->op.err, ERR_NOT_A_REPLICA_SET,
                       snapshot ? "node needs to be a replica set member to use readConcern: snapshot"
                                : "node needs to be a replica set member to use linearizable read concern");
    return snapshot ? err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "readConcern snapshot is not implemented") : 0;
}

int read_concern_check(struct command_ctx *cx, bool any_level)
{
    struct concern c = {BVAL_MISSING, BVAL_MISSING, BVAL_MISSING};
    const uint8_t *doc;
    struct biter it;
    struct belem e;
    int rc = arg_doc(cx, "readConcern", &doc);
    for (biter_init(&it, doc); rc == 0 && biter_next(&it, &e);)
        if (e.v.type != BSON_TYPE_NULL)
            rc = take_field(cx, &e, &c);
    if (rc != 0)
        return rc;
    if (!any_level && strcmp(level_of(&c), "local") != 0)
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS,
                       "Command %s does not support { readConcern: { level: \"%s\", provenance: \"clientSupplied\" } } "
                       ":: caused by :: read concern not supported",
                       cx->cmd->name, level_of(&c));
    rc = check_level(cx, &c);
    return rc == 0 ? check_times(cx, &c) : rc;
}

int arg_read_concern(struct command_ctx *cx)
{
    return read_concern_check(cx, true);
}
