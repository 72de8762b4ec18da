/* createIndexes, dropIndexes.
 *
 * createIndexes: ENSURE the collection, COMPARE with what is there (AWAIT the build of another command that makes the same), ADD as building,
 * BUILD, READY. What fails after ADD is taken back: UNDO. */
#include "server/base/rand.h"
#include "server/commands/ddl.h"
#include "server/write/index_build.h"

const char *const create_indexes_fields[] = {"indexes", "commitQuorum", "ignoreUnknownIndexOptions", NULL};
const char *const drop_indexes_fields[] = {"index", NULL};

enum phase { ENSURE, COMPARE, ADD, BUILD, READY, UNDO };

struct create_indexes {
    enum phase phase;
    const char *coll;
    struct index_def *defs; /* all that were asked for */
    uint32_t n;
    struct index_def *fresh; /* those that are not there yet */
    const char **names;      /* of them */
    uint32_t n_fresh;
    bool created;
    uint32_t before;
    uint8_t uuid[16]; /* of the collection */
    struct index_build *build;
    struct err failure; /* why UNDO */
};

/* ---- the specifications ---- */

static int parse_specs(struct command_ctx *cx, struct create_indexes *s)
{
    struct bval v = bdoc_get(cx->req->body, "indexes");
    struct biter it;
    struct belem e;
    if (bval_is_missing(v))
        return arg_missing(cx, "indexes");
    if (v.type != BSON_TYPE_ARRAY)
        return arg_wrong_type(cx, "indexes", v, "type 'array'");
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e); s->n++)
        if (e.v.type != BSON_TYPE_DOCUMENT)
            return arg_wrong_type(cx, arena_printf(cx->op.arena, "indexes.%s", e.name), e.v, "type 'object'");
    if (s->n == 0)
        return err_set(&cx->op.err, ERR_BAD_VALUE, "Must specify at least one index to create");
    s->defs = arena_zalloc(cx->op.arena, s->n * sizeof(*s->defs));
    s->fresh = arena_zalloc(cx->op.arena, s->n * sizeof(*s->fresh));
    s->names = arena_zalloc(cx->op.arena, s->n * sizeof(*s->names));
    biter_init(&it, bval_doc(v));
    for (uint32_t i = 0; biter_next(&it, &e); i++) {
        int rc = index_parse(cx->op.arena, bval_doc(e.v), &s->defs[i], &cx->op.err);
        if (rc == 0)
            rc = catalog_index_filter(cx->op.arena, &s->defs[i], &cx->op.err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static bool is_id_pattern(const struct index_def *def)
{
    return def->n_fields == 1 && strcmp(def->paths[0].text, "_id") == 0 && def->dirs[0] > 0;
}

/* Fields by which two indexes are told apart, or that have been looked at before; and whether it is hidden, which makes no difference. */
static bool identifying(const char *name)
{
    static const char *const names[] = {
        "v", "key", "name", "unique", "sparse", "hidden", "ns", "background", "partialFilterExpression"};
    for (size_t i = 0; i < OV_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool has_other_options_of(const uint8_t *a, const uint8_t *b)
{
    struct biter it;
    struct belem e;
    for (biter_init(&it, b); biter_next(&it, &e);)
        if (!identifying(e.name) && !bval_eq(bdoc_get(a, e.name), e.v))
            return false;
    return true;
}

static bool same_filter(const uint8_t *a, const uint8_t *b)
{
    return a && b ? bdoc_cmp(a, b) == 0 : a == b;
}

static bool same_index(const struct index_def *a, const struct index_def *b) /* by what identifies it, the name apart */
{
    return bdoc_cmp(a->key_pattern, b->key_pattern) == 0 && a->unique == b->unique && a->sparse == b->sparse &&
           same_filter(a->filter, b->filter);
}

static int conflict(struct command_ctx *cx, int code, const char *text, const struct index_def *asked,
                    const struct index_def *there)
{
    struct arena *a = cx->op.arena;
    return err_set(&cx->op.err, code, "%s Requested index: %s, existing index: %s", text,
                   bval_shell(a, bval_from_doc(asked->spec)), bval_shell(a, bval_from_doc(there->spec)));
}

/* 0: `there` is the one asked for (*same), or has nothing to do with it. */
static int compare_one(struct command_ctx *cx, const struct index_def *asked, const struct index_def *there, bool *same)
{
    bool equal = same_index(asked, there), named = strcmp(asked->name, there->name) == 0;
    bool identical = has_other_options_of(asked->spec, there->spec) && has_other_options_of(there->spec, asked->spec);
    *same = false;
    if (there->is_id && is_id_pattern(asked)) { /* whatever name it was given */
        *same = true;
        return 0;
    }
    if (named && !equal)
        return conflict(
            cx, ERR_INDEX_KEY_SPECS_CONFLICT,
            "An existing index has the same name as the requested index. When index names are not specified, they are "
            "auto generated and can cause conflicts. Please refer to our documentation.",
            asked, there);
    if (named && !identical)
        return conflict(cx, ERR_INDEX_OPTIONS_CONFLICT,
                        "An equivalent index already exists with the same name but different options.", asked, there);
    if (equal && !named && !identical)
        return conflict(cx, ERR_INDEX_OPTIONS_CONFLICT,
                        "An equivalent index already exists with a different name and options.", asked, there);
    if (equal && !named)
        return err_set(&cx->op.err, ERR_INDEX_OPTIONS_CONFLICT, "Index already exists with a different name: %s",
                       there->name);
    *same = equal;
    return 0;
}

/* Is the i-th index there, among the collection's or those asked for before it? *building: another command makes it just now. */
static int look_for(struct command_ctx *cx, struct create_indexes *s, const struct collection *coll, uint32_t i,
                    bool *there, bool *building)
{
    for (uint32_t j = 0; j < coll->n_indexes; j++) {
        bool same;
        int rc = compare_one(cx, &s->defs[i], &coll->indexes[j], &same);
        if (rc != 0)
            return rc;
        *there |= same;
        *building |= same && coll->indexes[j].state == INDEX_BUILDING;
    }
    for (uint32_t j = 0; j < s->n_fresh; j++) {
        bool same;
        int rc = compare_one(cx, &s->defs[i], &s->fresh[j], &same);
        if (rc != 0)
            return rc;
        *there |= same;
    }
    return 0;
}

static int compare_all(struct command_ctx *cx, struct create_indexes *s, const struct collection *coll, bool *building)
{
    s->n_fresh = 0;
    *building = false;
    for (uint32_t i = 0; i < s->n; i++) {
        bool there = false;
        int rc = look_for(cx, s, coll, i, &there, building);
        if (rc != 0)
            return rc;
        if (there)
            continue;
        s->names[s->n_fresh] = s->defs[i].name;
        s->fresh[s->n_fresh++] = s->defs[i];
    }
    return 0;
}

/* ---- createIndexes ---- */

static void create_cleanup(struct command_ctx *cx)
{
    struct create_indexes *s = cx->state;
    catalog_cancel(cx->server->catalog, &cx->call);
    eng_call_cancel(cx->server->engine, &cx->call);
    index_build_end(s->build);
}

static enum op_status create_reply(struct command_ctx *cx, const struct create_indexes *s)
{
    bw_i32(cx->reply, "numIndexesBefore", (int32_t)s->before);
    bw_i32(cx->reply, "numIndexesAfter", (int32_t)(s->before + s->n_fresh));
    bw_bool(cx->reply, "createdCollectionAutomatically", s->created);
    if (s->n_fresh == 0)
        bw_str(cx->reply, "note", "all indexes already exist");
    return OP_DONE;
}

static enum op_status undo(struct create_indexes *s, struct err *why)
{
    s->failure = *why;
    s->phase = UNDO;
    return OP_AGAIN;
}

static enum op_status ensure_step(struct command_ctx *cx, struct create_indexes *s)
{
    enum op_status out;
    bool existed;
    if (ddl_stops(cx, catalog_create(cx->server->catalog, cx->req->db, s->coll, NULL, &existed, &cx->call, &cx->op.err),
                  &out))
        return out;
    s->created |= !existed;
    s->phase = COMPARE;
    return OP_AGAIN;
}

static enum op_status compare_step(struct command_ctx *cx, struct create_indexes *s)
{
    struct collection *coll = catalog_get(cx->server->catalog, cx->req->db, s->coll);
    enum op_status out = OP_AGAIN;
    bool building;
    if (!coll) {
        s->phase = ENSURE;
    } else if (compare_all(cx, s, coll, &building) != 0) {
        out = OP_DONE;
    } else if (s->n_fresh == 0 && building) {
        if (catalog_await_change(cx->server->catalog, coll, &cx->call))
            out = OP_WAIT;
    } else {
        s->before = coll->n_indexes;
        memcpy(s->uuid, coll->uuid, sizeof(s->uuid));
        s->phase = ADD;
        if (s->n_fresh == 0)
            out = create_reply(cx, s);
    }
    collection_unref(coll);
    return out;
}

static enum op_status add_step(struct command_ctx *cx, struct create_indexes *s)
{
    enum op_status out;
    if (!ddl_stops(
            cx,
            catalog_index_add(cx->server->catalog, cx->req->db, s->coll, s->fresh, s->n_fresh, &cx->call, &cx->op.err),
            &out)) {
        s->build = index_build_new(cx->op.arena, cx->server->engine, cx->server->catalog, cx->req->db, s->coll,
                                   s->names, s->n_fresh);
        s->phase = BUILD;
        return OP_AGAIN;
    }
    if (out == OP_DONE && (cx->op.err.code == ERR_INDEX_ALREADY_EXISTS || cx->op.err.code == ERR_NAMESPACE_NOT_FOUND)) {
        err_clear(&cx->op.err); /* changed since it was compared */
        s->phase = COMPARE;
        return OP_AGAIN;
    }
    return out;
}

static const char *uuid_text(struct arena *a, const uint8_t u[16])
{
    return arena_printf(a, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2],
                        u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

static enum op_status build_step(struct command_ctx *cx, struct create_indexes *s)
{
    struct arena *a = cx->op.arena;
    uint8_t id[16];
    switch (index_build_step(s->build, &cx->op, &cx->call, &cx->op.err)) {
    case BUILD_AGAIN:
        return OP_AGAIN;
    case BUILD_WAIT:
        return OP_WAIT;
    case BUILD_DONE:
        s->phase = READY;
        return OP_AGAIN;
    case BUILD_FAILED:
        break;
    }
    rand_secure(id, sizeof(id));
    err_prefix(&cx->op.err, arena_printf(a, "Index build failed: %s: Collection %s.%s ( %s ) :: caused by :: ",
                                         uuid_text(a, id), cx->req->db, s->coll, uuid_text(a, s->uuid)));
    return undo(s, &cx->op.err);
}

static enum op_status ready_step(struct command_ctx *cx, struct create_indexes *s)
{
    enum op_status out;
    if (!ddl_stops(cx,
                   catalog_index_ready(cx->server->catalog, cx->req->db, s->coll, s->names, s->n_fresh, &cx->call,
                                       &cx->op.err),
                   &out))
        return create_reply(cx, s);
    return out == OP_DONE ? undo(s, &cx->op.err) : out;
}

/* Each index alone: some may have been dropped by others. */
static enum op_status undo_step(struct command_ctx *cx, struct create_indexes *s)
{
    struct err ignored;
    enum op_status out;
    index_build_end(s->build);
    s->build = NULL;
    for (; s->n_fresh; s->n_fresh--) {
        err_init(&ignored, cx->op.arena);
        if (ddl_stops(cx,
                      catalog_index_drop(cx->server->catalog, cx->req->db, s->coll, &s->names[s->n_fresh - 1], 1,
                                         &cx->call, &ignored),
                      &out) &&
            out == OP_WAIT)
            return OP_WAIT;
    }
    cx->op.err = s->failure;
    return OP_DONE;
}

/* An interrupt ends the command at once before there is something to take back, and goes to UNDO afterwards. */
static bool interrupted(struct command_ctx *cx, struct create_indexes *s)
{
    if (s->phase == UNDO || op_check_interrupt(&cx->op) == 0)
        return false;
    catalog_cancel(cx->server->catalog, &cx->call);
    eng_call_cancel(cx->server->engine, &cx->call);
    if (s->phase < BUILD)
        return true;
    undo(s, &cx->op.err);
    return false;
}

static struct create_indexes *start(struct command_ctx *cx)
{
    struct create_indexes *s = arena_zalloc(cx->op.arena, sizeof(*s));
    if (arg_collection(cx, &s->coll) != 0 || parse_specs(cx, s) != 0)
        return NULL;
    cx->state = s;
    cx->cleanup = create_cleanup;
    struct collection *coll = catalog_get(cx->server->catalog, cx->req->db, s->coll);
    s->phase = coll ? COMPARE : ENSURE;
    collection_unref(coll);
    return s;
}

enum op_status cmd_create_indexes(struct command_ctx *cx)
{
    static enum op_status (*const steps[])(struct command_ctx *, struct create_indexes *) = {
        [ENSURE] = ensure_step, [COMPARE] = compare_step, [ADD] = add_step,
        [BUILD] = build_step,   [READY] = ready_step,     [UNDO] = undo_step,
    };
    struct create_indexes *s = cx->state;
    if (!s && !(s = start(cx)))
        return OP_DONE;
    enum op_status out;
    do {
        if (interrupted(cx, s))
            return OP_DONE;
        out = steps[s->phase](cx, s);
    } while (out == OP_AGAIN && !op_slice_over(&cx->op));
    return out;
}

/* ---- dropIndexes ---- */

struct drop_indexes {
    const char *names[INDEX_MAX];
    uint32_t n, before;
    bool all;
};

static int add_name(struct command_ctx *cx, struct drop_indexes *s, const struct collection *coll, const char *name)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0)
            return 0;
    for (uint32_t i = 0; i < coll->n_indexes; i++)
        if (strcmp(coll->indexes[i].name, name) == 0) {
            if (i == 0)
                return err_set(&cx->op.err, ERR_INVALID_OPTIONS, "cannot drop _id index");
            s->names[s->n++] = arena_strndup(cx->op.arena, name, strlen(name));
            return 0;
        }
    return err_set(&cx->op.err, ERR_INDEX_NOT_FOUND, "index not found with name [%s]", name);
}

static int add_by_key(struct command_ctx *cx, struct drop_indexes *s, const struct collection *coll, const uint8_t *key)
{
    const struct index_def *found = NULL;
    struct arena *a = cx->op.arena;
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        const struct index_def *def = &coll->indexes[i];
        if (bdoc_cmp(def->key_pattern, key) != 0)
            continue;
        if (found)
            return err_set(&cx->op.err, ERR_AMBIGUOUS_INDEX_KEY_PATTERN,
                           "2 indexes found for key: %s, identify by name instead. Conflicting indexes: %s, %s",
                           bval_shell(a, bval_from_doc(key)), bval_shell(a, bval_from_doc(found->spec)),
                           bval_shell(a, bval_from_doc(def->spec)));
        found = def;
    }
    if (!found)
        return err_set(&cx->op.err, ERR_INDEX_NOT_FOUND, "can't find index with key: %s",
                       bval_shell(a, bval_from_doc(key)));
    return add_name(cx, s, coll, found->name);
}

static int wrong_index_type(struct command_ctx *cx, struct bval v)
{
    if (bval_is_missing(v))
        return arg_missing(cx, "index");
    return arg_wrong_type(cx, "index", v, "types '[string, object, array]'");
}

static int add_listed(struct command_ctx *cx, struct drop_indexes *s, const struct collection *coll,
                      const uint8_t *list)
{
    struct biter it;
    struct belem e;
    uint32_t n;
    for (biter_init(&it, list); biter_next(&it, &e);) {
        int rc = e.v.type == BSON_TYPE_UTF8 ? add_name(cx, s, coll, bval_str(e.v, &n)) : wrong_index_type(cx, e.v);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int choose(struct command_ctx *cx, struct drop_indexes *s, const struct collection *coll)
{
    struct bval v = bdoc_get(cx->req->body, "index");
    uint32_t n;
    s->before = coll->n_indexes;
    switch (v.type) {
    case BSON_TYPE_UTF8:
        if (strcmp(bval_str(v, &n), "*") != 0)
            return add_name(cx, s, coll, bval_str(v, &n));
        s->all = true;
        for (uint32_t i = 1; i < coll->n_indexes; i++)
            s->names[s->n++] = arena_strndup(cx->op.arena, coll->indexes[i].name, strlen(coll->indexes[i].name));
        return 0;
    case BSON_TYPE_DOCUMENT:
        return add_by_key(cx, s, coll, bval_doc(v));
    case BSON_TYPE_ARRAY:
        return add_listed(cx, s, coll, bval_doc(v));
    default:
        return wrong_index_type(cx, v);
    }
}

static struct drop_indexes *choose_indexes(struct command_ctx *cx, const char *name)
{
    struct collection *coll = catalog_get(cx->server->catalog, cx->req->db, name);
    if (!coll) {
        command_fail(cx, ERR_NAMESPACE_NOT_FOUND, "ns not found %s.%s", cx->req->db, name);
        return NULL;
    }
    struct drop_indexes *s = arena_zalloc(cx->op.arena, sizeof(*s));
    int rc = choose(cx, s, coll);
    collection_unref(coll);
    return rc == 0 ? s : NULL;
}

enum op_status cmd_drop_indexes(struct command_ctx *cx)
{
    struct drop_indexes *s = cx->state;
    const char *name;
    enum op_status out;
    if (op_check_interrupt(&cx->op) != 0 || arg_collection(cx, &name) != 0)
        return OP_DONE;
    if (!s) {
        if (!(s = choose_indexes(cx, name)))
            return OP_DONE;
        cx->state = s;
        ddl_begin(cx);
    }
    if (s->n &&
        ddl_stops(cx,
                  catalog_index_drop(cx->server->catalog, cx->req->db, name, s->names, s->n, &cx->call, &cx->op.err),
                  &out))
        return out;
    bw_i32(cx->reply, "nIndexesWas", (int32_t)s->before);
    if (s->all)
        bw_str(cx->reply, "msg", "non-_id indexes dropped for collection");
    return OP_DONE;
}
