/* renameCollection. Keyspaces have numbers, not names: also from one database to another only the catalog's row moves. */
#include "server/commands/admin.h"
#include "server/commands/ddl.h"

const char *const rename_collection_fields[] = {"to", "dropTarget", "stayTemp", NULL};

struct rename {
    const char *db, *name, *to_db, *to_name;
    bool drop_target;
};

static int split(struct command_ctx *cx, const char *which, const char *ns, const char **db, const char **name)
{
    const char *dot = strchr(ns, '.');
    size_t n = dot ? (size_t)(dot - ns) : 0;
    if (!dot || n == 0 || n > 63 || dot[1] == 0 || dot[1] == '.' || strpbrk(ns, "$ ") || strlen(ns) > 255)
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "Invalid %s namespace: %s", which, ns);
    *db = arena_strndup(cx->op.arena, ns, n);
    *name = dot + 1;
    return 0;
}

static bool is_system(const char *name)
{
    return strncmp(name, "system.", 7) == 0;
}

static int check(struct command_ctx *cx, const struct rename *r)
{
    struct err *err = &cx->op.err;
    bool same_db = strcmp(r->db, r->to_db) == 0;
    if (same_db && strcmp(r->name, r->to_name) == 0)
        return err_set(err, ERR_ILLEGAL_OPERATION, "Can't rename a collection to itself");
    if ((strcmp(r->db, "local") == 0) != (strcmp(r->to_db, "local") == 0))
        return err_set(err, ERR_ILLEGAL_OPERATION,
                       "Cannot rename collections between a replicated and an unreplicated database");
    if (is_system(r->name))
        return err_set(err, ERR_ILLEGAL_OPERATION, "renaming system collections is not allowed: %s.%s", r->db, r->name);
    if (is_system(r->to_name))
        return err_set(err, ERR_ILLEGAL_OPERATION, "renaming to a system collection is not allowed: %s.%s", r->to_db,
                       r->to_name);
    return 0;
}

static struct rename *start(struct command_ctx *cx)
{
    struct rename *r = arena_zalloc(cx->op.arena, sizeof(*r));
    const char *from, *to;
    bool stay;
    if (arg_string(cx, cx->req->name, &from, true) != 0 || arg_string(cx, "to", &to, true) != 0 ||
        arg_bool(cx, "dropTarget", false, &r->drop_target) != 0 || arg_bool(cx, "stayTemp", false, &stay) != 0 ||
        split(cx, "source", from, &r->db, &r->name) != 0 || split(cx, "target", to, &r->to_db, &r->to_name) != 0 ||
        check(cx, r) != 0)
        return NULL;
    cx->state = r;
    ddl_begin(cx);
    return r;
}

enum op_status cmd_rename_collection(struct command_ctx *cx)
{
    struct rename *r = cx->state;
    enum op_status out;
    if (op_check_interrupt(&cx->op) != 0 || (!r && !(r = start(cx))))
        return OP_DONE;
    ddl_stops(cx,
              catalog_rename(cx->server->catalog, r->db, r->name, r->to_db, r->to_name, r->drop_target, &cx->call,
                             &cx->op.err),
              &out);
    return out;
}
