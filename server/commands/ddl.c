/* create, drop, dropDatabase. */
#include "server/commands/ddl.h"

#include "server/commands/coll_mod.h"
#include "server/commands/create_options.h"

const char *const create_fields[] = {
    "capped",
    "size",
    "max",
    "autoIndexId",
    "idIndex",
    "validator",
    "validationLevel",
    "validationAction",
    "storageEngine",
    "indexOptionDefaults",
    "viewOn",
    "pipeline",
    "collation",
    "timeseries",
    "expireAfterSeconds",
    "clusteredIndex",
    "changeStreamPreAndPostImages",
    "encryptedFields",
    "flags",
    "usePowerOf2Sizes",
    "temp",
    NULL,
};
const char *const drop_fields[] = {NULL};
const char *const drop_database_fields[] = {NULL};

/* ---- shared ---- */

static void cleanup(struct command_ctx *cx)
{
    catalog_cancel(cx->server->catalog, &cx->call);
}

void ddl_begin(struct command_ctx *cx)
{
    if (!cx->cleanup)
        cx->cleanup = cleanup;
}

bool ddl_stops(struct command_ctx *cx, enum ddl_result r, enum op_status *out)
{
    *out = r == DDL_PENDING ? OP_WAIT : OP_DONE;
    return r != DDL_OK;
}

/* ---- create ---- */

enum op_status cmd_create(struct command_ctx *cx)
{
    static const uint8_t no_options[] = {5, 0, 0, 0, 0};
    const uint8_t *options = cx->state; /* may not move while the catalog is at it */
    const char *name;
    bool existed;
    enum op_status out;
    if (op_check_interrupt(&cx->op) != 0 || arg_collection(cx, &name) != 0 ||
        (!cx->cleanup && create_options_check(cx) != 0))
        return OP_DONE;
    if (!options && !(options = options_merge(cx, name, no_options)))
        return OP_DONE;
    cx->state = (void *)options;
    ddl_begin(cx);
    ddl_stops(cx, catalog_create(cx->server->catalog, cx->req->db, name, options, &existed, &cx->call, &cx->op.err),
              &out);
    return out;
}

/* ---- drop ---- */

struct drop {
    int32_t n_indexes;
};

enum op_status cmd_drop(struct command_ctx *cx)
{
    struct drop *d = cx->state;
    const char *name;
    enum op_status out;
    if (op_check_interrupt(&cx->op) != 0 || arg_collection(cx, &name) != 0)
        return OP_DONE;
    if (!d) {
        struct collection *coll = catalog_get(cx->server->catalog, cx->req->db, name);
        if (!coll)
            return OP_DONE; /* nothing to drop is no error */
        d = cx->state = arena_alloc(cx->op.arena, sizeof(*d));
        d->n_indexes = (int32_t)coll->n_indexes;
        collection_unref(coll);
        ddl_begin(cx);
    }
    if (!ddl_stops(cx, catalog_drop(cx->server->catalog, cx->req->db, name, &cx->call, &cx->op.err), &out)) {
        bw_i32(cx->reply, "nIndexesWas", d->n_indexes);
        bw_str(cx->reply, "ns", arena_printf(cx->op.arena, "%s.%s", cx->req->db, name));
    } else if (out == OP_DONE && cx->op.err.code == ERR_NAMESPACE_NOT_FOUND) {
        err_clear(&cx->op.err); /* somebody else was faster */
    }
    return out;
}

/* ---- dropDatabase ---- */

struct drop_database {
    struct arena *arena;
    const char **names;
    size_t n, cap, at;
    bool second_round, dropped_any;
};

static void note_name(void *arg, struct collection *coll)
{
    struct drop_database *d = arg;
    if (d->n == d->cap) {
        size_t cap = OV_MAX(64, d->cap * 2);
        const char **names = arena_alloc(d->arena, cap * sizeof(*names));
        if (d->n)
            memcpy(names, d->names, d->n * sizeof(*names));
        d->names = names;
        d->cap = cap;
    }
    d->names[d->n++] = arena_strndup(d->arena, coll->name, strlen(coll->name));
}

static void list_names(struct command_ctx *cx, struct drop_database *d)
{
    d->n = d->at = 0;
    catalog_each(cx->server->catalog, cx->req->db, note_name, d);
}

static enum op_status start_drop_database(struct command_ctx *cx)
{
    static const char *const kept[] = {"admin", "config", "local"};
    for (size_t i = 0; i < OV_LEN(kept); i++)
        if (strcmp(cx->req->db, kept[i]) == 0)
            return command_fail(cx, ERR_ILLEGAL_OPERATION, "Dropping the '%s' database is prohibited.", kept[i]);
    int64_t one;
    if (!bval_to_i64(bdoc_get(cx->req->body, cx->req->name), false, &one) || one != 1)
        return command_fail(cx, 5255100, "Have to pass 1 as 'dropDatabase' parameter");
    struct drop_database *d = cx->state = arena_zalloc(cx->op.arena, sizeof(*d));
    d->arena = cx->op.arena;
    list_names(cx, d);
    ddl_begin(cx);
    return OP_AGAIN;
}

enum op_status cmd_drop_database(struct command_ctx *cx)
{
    struct drop_database *d = cx->state;
    enum op_status out;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!d) {
        out = start_drop_database(cx);
        if (out == OP_DONE)
            return out;
        d = cx->state;
    }
    while (d->at < d->n) {
        if (ddl_stops(cx, catalog_drop(cx->server->catalog, cx->req->db, d->names[d->at], &cx->call, &cx->op.err),
                      &out)) {
            if (out == OP_WAIT || cx->op.err.code != ERR_NAMESPACE_NOT_FOUND)
                return out;
            err_clear(&cx->op.err);
        } else {
            d->dropped_any = true;
        }
        if (++d->at == d->n && !d->second_round) { /* what came meanwhile */
            d->second_round = true;
            list_names(cx, d);
        }
        if (op_slice_over(&cx->op))
            return OP_AGAIN;
    }
    if (d->dropped_any)
        bw_str(cx->reply, "dropped", cx->req->db);
    return OP_DONE;
}
