/* collMod: other options for a collection that is there. */
#include "server/commands/coll_mod.h"

#include "server/commands/admin.h"
#include "server/commands/ddl.h"

const char *const coll_mod_fields[] = {
    "index",    "validator",  "validationLevel",  "validationAction", "viewOn",
    "pipeline", "cappedSize", "cappedMax",        "timeseries",       "expireAfterSeconds",
    "flags",    "noPadding",  "usePowerOf2Sizes", "dryRun",           "changeStreamPreAndPostImages",
    NULL,
};

enum {
    POWER_OF_2_SIZES = 1,
    NO_PADDING = 2
}; /* bits of `flags`, by which old clients laid files out; kept, and nothing more */

/* ---- options ---- */

static bool one_of(const char *value, const char *const *allowed)
{
    for (; *allowed; allowed++)
        if (strcmp(value, *allowed) == 0)
            return true;
    return false;
}

static int check_enum(struct command_ctx *cx, const char *field, const char *const *allowed)
{
    const char *value;
    int rc = arg_string(cx, field, &value, false);
    if (rc != 0 || !value || one_of(value, allowed))
        return rc;
    return err_set(&cx->op.err, ERR_BAD_VALUE, "Enumeration value '%s' for field '%s.%s' is not a valid value.", value,
                   cx->cmd->name, field);
}

static int check_validator(struct command_ctx *cx, const char *name)
{
    static const char *const levels[] = {"off", "strict", "moderate", NULL}, *const actions[] = {"error", "warn", NULL};
    static const char *const internal[] = {"admin", "config", "local", NULL};
    const uint8_t *validator;
    int rc;
    if ((rc = arg_doc(cx, "validator", &validator)) != 0 || (rc = check_enum(cx, "validationLevel", levels)) != 0 ||
        (rc = check_enum(cx, "validationAction", actions)) != 0 || bdoc_empty(validator))
        return rc;
    if (strncmp(name, "system.", 7) == 0)
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS, "Document validators not allowed on system collection %s.%s",
                       cx->req->db, name);
    if (one_of(cx->req->db, internal))
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS,
                       "Document validators are not allowed on collection %s.%s in the %s internal database",
                       cx->req->db, name, cx->req->db);
    return 0;
}

static int64_t flags_of(const uint8_t *doc)
{
    int64_t flags = 0;
    (void)bval_to_i64(bdoc_get(doc, "flags"), false, &flags);
    return flags;
}

static int merge_flags(struct command_ctx *cx, const uint8_t *old, int64_t *out)
{
    bool power, dense;
    int64_t flags = flags_of(old);
    int rc;
    if ((rc = arg_i64(cx, "flags", flags, 0, &flags)) != 0 ||
        (rc = arg_bool(cx, "usePowerOf2Sizes", flags & POWER_OF_2_SIZES, &power)) != 0 ||
        (rc = arg_bool(cx, "noPadding", flags & NO_PADDING, &dense)) != 0)
        return rc;
    *out =
        (flags & ~(int64_t)(POWER_OF_2_SIZES | NO_PADDING)) | (power ? POWER_OF_2_SIZES : 0) | (dense ? NO_PADDING : 0);
    return 0;
}

static bool is_empty_doc(struct bval v)
{
    return v.type == BSON_TYPE_DOCUMENT && bdoc_empty(bval_doc(v));
}

const uint8_t *options_merge(struct command_ctx *cx, const char *name, const uint8_t *old)
{
    static const char *const kept[] = {"validator", "validationLevel", "validationAction"};
    struct biter it;
    struct belem e;
    int64_t flags;
    if (check_validator(cx, name) != 0 || merge_flags(cx, old, &flags) != 0)
        return NULL;
    struct buf b;
    buf_init(&b);
    size_t at = bw_begin(&b);
    for (biter_init(&it, old); biter_next(&it, &e);)
        if (strcmp(e.name, "flags") != 0 && strncmp(e.name, "validat", 7) != 0)
            bw_val(&b, e.name, e.v);
    if (flags <= INT32_MAX && flags)
        bw_i32(&b, "flags", (int32_t)flags);
    for (size_t i = 0; i < OV_LEN(kept); i++) {
        struct bval v = bdoc_get(cx->req->body, kept[i]);
        if (bval_is_missing(v) || v.type == BSON_TYPE_NULL)
            v = bdoc_get(old, kept[i]);
        if (!is_empty_doc(v)) /* no conditions: no validator */
            bw_val(&b, kept[i], v);
    }
    bw_end(&b, at);
    const uint8_t *out = arena_dup(cx->op.arena, b.p, b.len);
    buf_free(&b);
    return out;
}

/* ---- collMod ---- */

struct coll_mod {
    const char *name;
    struct collection *from;
    const uint8_t *options;
    const struct index_def *index; /* of `from`; NULL: none is changed */
    const uint8_t *spec;           /* what it becomes; NULL: it stays */
    bool hides, expires;           /* what the reply tells */
    int64_t expire_after;
};

static void cleanup(struct command_ctx *cx)
{
    struct coll_mod *m = cx->state;
    catalog_cancel(cx->server->catalog, &cx->call);
    collection_unref(m->from);
    m->from = NULL;
}

static int refuse(struct command_ctx *cx)
{
    static const char *const refused[] = {"viewOn",
                                          "pipeline",
                                          "cappedSize",
                                          "cappedMax",
                                          "timeseries",
                                          "expireAfterSeconds",
                                          "changeStreamPreAndPostImages",
                                          "dryRun"};
    static const char *const of_index[] = {"unique", "prepareUnique"};
    struct bval index = bdoc_get(cx->req->body, "index");
    for (size_t i = 0; index.type == BSON_TYPE_DOCUMENT && i < OV_LEN(of_index); i++)
        if (!bval_is_missing(bdoc_get(bval_doc(index), of_index[i])))
            return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option 'index.%s' of collMod is not implemented",
                           of_index[i]);
    for (size_t i = 0; i < OV_LEN(refused); i++)
        if (!bval_is_missing(bdoc_get(cx->req->body, refused[i])))
            return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option '%s' of collMod is not implemented",
                           refused[i]);
    return 0;
}

static int start(struct command_ctx *cx)
{
    struct coll_mod *m = arena_zalloc(cx->op.arena, sizeof(*m));
    int rc;
    if ((rc = arg_collection(cx, &m->name)) != 0 || (rc = refuse(cx)) != 0)
        return rc;
    cx->state = m;
    cx->cleanup = cleanup;
    return 0;
}

/* ---- one index ---- */

static int find_index(struct command_ctx *cx, struct coll_mod *m, const uint8_t *asked)
{
    struct bval name = bdoc_get(asked, "name"), key = bdoc_get(asked, "keyPattern");
    struct err *err = &cx->op.err;
    uint32_t n, found = 0;
    if (bval_is_missing(name) == bval_is_missing(key))
        return err_set(err, ERR_INVALID_OPTIONS, "%s",
                       bval_is_missing(name) ? "must specify either index name or key pattern"
                                             : "Cannot specify both key pattern and name.");
    if (!bval_is_missing(name) && name.type != BSON_TYPE_UTF8)
        return arg_wrong_type(cx, "index.name", name, "type 'string'");
    if (!bval_is_missing(key) && key.type != BSON_TYPE_DOCUMENT)
        return arg_wrong_type(cx, "index.keyPattern", key, "type 'object'");
    for (uint32_t i = 0; i < m->from->n_indexes; i++) {
        const struct index_def *def = &m->from->indexes[i];
        bool fits = bval_is_missing(key) ? strcmp(def->name, bval_str(name, &n)) == 0
                                         : bdoc_cmp(def->key_pattern, bval_doc(key)) == 0;
        if (fits && found++ == 0)
            m->index = def;
    }
    if (found > 1)
        return err_set(err, ERR_AMBIGUOUS_INDEX_KEY_PATTERN,
                       "index keyPattern %s matches %u indexes, must use index name.", bval_shell(cx->op.arena, key),
                       found);
    if (!found)
        return err_set(err, ERR_INDEX_NOT_FOUND, "cannot find index %s for ns %s",
                       bval_is_missing(key) ? bval_str(name, &n) : bval_shell(cx->op.arena, key), m->from->ns);
    return 0;
}

static int check_index(struct command_ctx *cx, struct coll_mod *m, struct bval hidden, struct bval expiry)
{
    struct err *err = &cx->op.err;
    if (bval_is_missing(hidden) && bval_is_missing(expiry))
        return err_set(err, ERR_INVALID_OPTIONS, "no expireAfterSeconds, hidden, unique, or prepareUnique field");
    if (!bval_is_missing(hidden) && hidden.type != BSON_TYPE_BOOL && !bval_is_number(hidden))
        return arg_wrong_type(cx, "index.hidden", hidden, "types '[bool, long, int, decimal, double']");
    if (!bval_is_missing(expiry) && !bval_is_number(expiry))
        return arg_wrong_type(cx, "index.expireAfterSeconds", expiry, "types '[long, int, decimal, double']");
    if (!bval_is_missing(hidden) && m->index->is_id)
        return err_set(err, ERR_BAD_VALUE, "can't hide _id index");
    if (bval_is_missing(expiry))
        return 0;
    if (m->index->is_id)
        return err_set(err, ERR_INVALID_OPTIONS, "the _id field does not support TTL indexes");
    if (m->index->n_fields != 1)
        return err_set(err, ERR_INVALID_OPTIONS,
                       "TTL indexes are single-field indexes, compound indexes do not support TTL");
    if (!bval_to_i64(expiry, false, &m->expire_after) || m->expire_after < 0 || m->expire_after > INT32_MAX)
        return err_set(err, ERR_INVALID_OPTIONS,
                       "TTL index 'expireAfterSeconds' option must be within an acceptable range, it was: %s",
                       bval_shell(cx->op.arena, expiry));
    return 0;
}

/* The specification with other values of what is asked for. */
static const uint8_t *new_spec(struct command_ctx *cx, const struct coll_mod *m)
{
    struct biter it;
    struct belem e;
    struct buf b;
    buf_init(&b);
    size_t at = bw_begin(&b);
    for (biter_init(&it, m->index->spec); biter_next(&it, &e);)
        if (!(m->hides && strcmp(e.name, "hidden") == 0) && !(m->expires && strcmp(e.name, "expireAfterSeconds") == 0))
            bw_val(&b, e.name, e.v);
    if (m->expires)
        bw_i32(&b, "expireAfterSeconds", (int32_t)m->expire_after);
    if (m->hides && !m->index->hidden)
        bw_bool(&b, "hidden", true);
    bw_end(&b, at);
    const uint8_t *out = arena_dup(cx->op.arena, b.p, b.len);
    buf_free(&b);
    return out;
}

static int look_at_index(struct command_ctx *cx, struct coll_mod *m)
{
    struct bval asked = bdoc_get(cx->req->body, "index");
    m->index = NULL;
    m->spec = NULL;
    if (bval_is_missing(asked))
        return 0;
    if (asked.type != BSON_TYPE_DOCUMENT)
        return arg_wrong_type(cx, "index", asked, "type 'object'");
    struct bval hidden = bdoc_get(bval_doc(asked), "hidden"), expiry = bdoc_get(bval_doc(asked), "expireAfterSeconds");
    int rc = find_index(cx, m, bval_doc(asked));
    if (rc != 0 || (rc = check_index(cx, m, hidden, expiry)) != 0)
        return rc;
    m->hides = !bval_is_missing(hidden) && bval_truthy(hidden) != m->index->hidden; /* else there is nothing to tell */
    m->expires = !bval_is_missing(expiry);
    if (m->hides || (m->expires && m->expire_after != m->index->expire_after))
        m->spec = new_spec(cx, m);
    return 0;
}

static void reply_index(struct command_ctx *cx, const struct coll_mod *m)
{
    if (m->expires && m->index->expire_after >= 0)
        bw_i64(cx->reply, "expireAfterSeconds_old", m->index->expire_after);
    if (m->expires)
        bw_i64(cx->reply, "expireAfterSeconds_new", m->expire_after);
    if (m->hides) {
        bw_bool(cx->reply, "hidden_old", m->index->hidden);
        bw_bool(cx->reply, "hidden_new", !m->index->hidden);
    }
}

/* ---- the whole ---- */

/* The definition as it is now, and what its options become. */
static int look(struct command_ctx *cx, struct coll_mod *m)
{
    m->from = catalog_get(cx->server->catalog, cx->req->db, m->name);
    if (!m->from)
        return err_set(&cx->op.err, ERR_NAMESPACE_NOT_FOUND, "ns does not exist");
    m->options = options_merge(cx, m->name, m->from->options);
    return m->options ? look_at_index(cx, m) : cx->op.err.code;
}

static void reply_flag(struct command_ctx *cx, const struct coll_mod *m, const char *field, int64_t bit)
{
    if (bval_is_missing(bdoc_get(cx->req->body, field)))
        return;
    bw_bool(cx->reply, arena_printf(cx->op.arena, "%s_old", field), (flags_of(m->from->options) & bit) != 0);
    bw_bool(cx->reply, arena_printf(cx->op.arena, "%s_new", field), (flags_of(m->options) & bit) != 0);
}

enum op_status cmd_coll_mod(struct command_ctx *cx)
{
    enum op_status out;
    bool stale;
    if (op_check_interrupt(&cx->op) != 0 || (!cx->state && start(cx) != 0))
        return OP_DONE;
    struct coll_mod *m = cx->state;
    for (;;) {
        if (!m->from && look(cx, m) != 0)
            return OP_DONE;
        if (!m->spec && bdoc_cmp(m->options, m->from->options) == 0)
            break; /* as it is */
        if (ddl_stops(cx,
                      catalog_set_options(cx->server->catalog, m->from, m->options, m->spec ? m->index : NULL, m->spec,
                                          &stale, &cx->call, &cx->op.err),
                      &out))
            return out;
        if (!stale)
            break;
        collection_unref(m->from);
        m->from = NULL;
    }
    reply_index(cx, m);
    reply_flag(cx, m, "usePowerOf2Sizes", POWER_OF_2_SIZES);
    reply_flag(cx, m, "noPadding", NO_PADDING);
    return OP_DONE;
}
