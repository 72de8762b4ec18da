/* The request of bulkWrite: its namespaces, its operations, field by field. */
#include "server/commands/bulk_write_private.h"
#include "server/commands/crud_read_private.h"
#include "server/commands/write_args.h"

static const char OPS[] = "bulkWrite.ops", NS_INFO[] = "bulkWrite.nsInfo";

/* ---- nsInfo ---- */

static int bad_namespace(struct command_ctx *cx, const char *ns)
{
    return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "Invalid namespace specified '%s'", ns);
}

static int split_namespace(struct command_ctx *cx, const struct belem *e, struct bulk_ns *out)
{
    enum { DB_MAX = 63, NS_MAX = 255 };
    uint32_t n;
    if (e->v.type != BSON_TYPE_UTF8)
        return write_arg_type(cx, NS_INFO, e, " 'string'");
    const char *ns = bval_str(e->v, &n), *dot = strchr(ns, '.');
    if (strlen(ns) != n)
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "namespaces cannot have embedded null characters");
    if (!dot || dot == ns || dot - ns > DB_MAX || dot[1] == 0 || dot[1] == '.' || strchr(dot, '$'))
        return bad_namespace(cx, ns);
    if (n > NS_MAX)
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE,
                       "Fully qualified namespace is too long. Namespace: %s Max: %d", ns, NS_MAX);
    out->db = arena_strndup(cx->op.arena, ns, (size_t)(dot - ns));
    out->coll = arena_strndup(cx->op.arena, dot + 1, n - (size_t)(dot + 1 - ns));
    return strpbrk(out->db, "/\\ \"$") ? bad_namespace(cx, ns) : write_check_ns(cx, out->db, out->coll);
}

static int read_namespace(struct command_ctx *cx, const uint8_t *item, struct bulk_ns *out)
{
    struct biter it;
    struct belem e;
    int rc = 0;
    *out = (struct bulk_ns){0};
    for (biter_init(&it, item); rc == 0 && biter_next(&it, &e);) {
        if (strcmp(e.name, "ns") == 0)
            rc = split_namespace(cx, &e, out);
        else if (strcmp(e.name, "collectionUUID") == 0 || strcmp(e.name, "encryptionInformation") == 0)
            rc = err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option '%s.%s' is not implemented", NS_INFO, e.name);
        else
            rc = write_arg_unknown(cx, NS_INFO, &e);
    }
    return rc != 0 || out->coll ? rc : write_arg_missing(cx, NS_INFO, "ns");
}

static int read_namespaces(struct command_ctx *cx, struct bulk_request *r)
{
    struct write_items items;
    const uint8_t *item;
    int rc = write_items_open(cx, "nsInfo", &items);
    if (rc != 0)
        return rc;
    r->ns = arena_alloc(cx->op.arena, (items.n + 1) * sizeof(*r->ns));
    while (rc == 0 && write_items_next(&items, &item))
        rc = read_namespace(cx, item, &r->ns[r->n_ns++]);
    return rc;
}

/* ---- operations ---- */

static int read_kind(struct command_ctx *cx, const struct belem *e, struct bulk_op *op)
{
    static const char *const names[] = {[BULK_INSERT] = "insert", [BULK_UPDATE] = "update", [BULK_DELETE] = "delete"};
    int64_t ns;
    size_t kind = 0;
    while (kind < OV_LEN(names) && strcmp(e->name, names[kind]) != 0)
        kind++;
    if (kind == OV_LEN(names))
        return write_arg_unknown(cx, OPS, e);
    if (!bval_is_number(e->v))
        return write_arg_type(cx, OPS, e, "s '[long, int, decimal, double']");
    if (!bval_to_i64(e->v, false, &ns) || ns < 0)
        return err_set(&cx->op.err, 51024, "BSON field '%s' value must be >= 0, actual value '%s'", e->name,
                       bval_shell(cx->op.arena, e->v));
    op->kind = (enum bulk_kind)kind;
    op->ns = (uint32_t)OV_MIN(ns, (int64_t)UINT32_MAX);
    return 0;
}

static int read_update_field(struct command_ctx *cx, const struct belem *e, struct bulk_op *op)
{
    bool ignored;
    if (strcmp(e->name, "updateMods") == 0)
        return write_arg_update(cx, e, &op->u);
    if (strcmp(e->name, "upsert") == 0)
        return write_arg_bool(cx, OPS, e, &op->upsert);
    if (strcmp(e->name, "arrayFilters") == 0)
        return write_arg_array(cx, OPS, e, &op->array_filters);
    if (strcmp(e->name, "sort") == 0)
        return write_arg_doc(cx, OPS, e, &op->sort);
    if (strcmp(e->name, "constants") == 0)
        return write_arg_variables(cx, OPS, e);
    if (strcmp(e->name, "upsertSupplied") == 0)
        return write_arg_bool(cx, OPS, e, &ignored); /* of a router: says what updateMods do anyway */
    return write_arg_unknown(cx, OPS, e);
}

static int read_field(struct command_ctx *cx, const struct belem *e, struct bulk_op *op)
{
    if (op->kind == BULK_INSERT)
        return strcmp(e->name, "document") == 0 ? write_arg_doc(cx, OPS, e, &op->document)
                                                : write_arg_unknown(cx, OPS, e);
    if (strcmp(e->name, "filter") == 0)
        return write_arg_doc(cx, OPS, e, &op->filter);
    if (strcmp(e->name, "multi") == 0)
        return write_arg_bool(cx, OPS, e, &op->multi);
    if (strcmp(e->name, "hint") == 0)
        return write_arg_hint(cx, OPS, e, &op->hint);
    if (strcmp(e->name, "collation") == 0)
        return write_arg_collation(cx, OPS, e);
    return op->kind == BULK_UPDATE ? read_update_field(cx, e, op) : write_arg_unknown(cx, OPS, e);
}

int bulk_op_read(struct command_ctx *cx, const uint8_t *item, struct bulk_op *out)
{
    struct biter it;
    struct belem e;
    int rc;
    *out = (struct bulk_op){0};
    biter_init(&it, item);
    if (!biter_next(&it, &e))
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "BSON field '%s' holds an empty operation", OPS);
    rc = read_kind(cx, &e, out);
    while (rc == 0 && biter_next(&it, &e))
        rc = read_field(cx, &e, out);
    if (rc != 0)
        return rc;
    if (out->kind == BULK_INSERT)
        return out->document ? 0 : write_arg_missing(cx, OPS, "document");
    if (!out->filter)
        return write_arg_missing(cx, OPS, "filter");
    if (out->kind == BULK_UPDATE && bval_is_missing(out->u))
        return write_arg_missing(cx, OPS, "updateMods");
    return 0;
}

static int check_all(struct command_ctx *cx, const struct bulk_request *r)
{
    struct write_items items = r->ops;
    struct bulk_op op;
    const uint8_t *item;
    while (write_items_next(&items, &item)) {
        int rc = bulk_op_read(cx, item, &op);
        if (rc != 0)
            return rc;
        if (op.ns >= r->n_ns)
            return err_set(&cx->op.err, ERR_BAD_VALUE, "BulkWrite ops entry %s has an invalid nsInfo index.",
                           bval_shell(cx->op.arena, (struct bval){BSON_TYPE_DOCUMENT, (uint32_t)bdoc_len(item), item}));
    }
    return 0;
}

int bulk_request_read(struct command_ctx *cx, struct bulk_request *out)
{
    struct belem let = {.name = "let", .v = bdoc_get(cx->req->body, "let")};
    bool bypass;
    int rc;
    *out = (struct bulk_request){0};
    if ((!bval_is_missing(let.v) && (rc = write_arg_variables(cx, "bulkWrite", &let)) != 0) ||
        (rc = arg_bool(cx, "ordered", true, &out->ordered)) != 0 ||
        (rc = arg_bool(cx, "errorsOnly", false, &out->errors_only)) != 0 ||
        (rc = arg_bool(cx, "bypassDocumentValidation", false, &bypass)) != 0 ||
        (rc = arg_cursor_batch_size(cx, &out->batch_size)) != 0 || (rc = write_items_open(cx, "ops", &out->ops)) != 0)
        return rc;
    rc = write_items_check(cx, &out->ops);
    if (rc == 0)
        rc = read_namespaces(cx, out);
    return rc == 0 ? check_all(cx, out) : rc;
}

/* ---- meaning ---- */

int bulk_op_parse(struct command_ctx *cx, const struct bulk_op *op, struct arena *a, struct sort_spec *sort,
                  struct modify *out)
{
    struct err *err = &cx->op.err;
    struct match *filter;
    struct update *update = NULL;
    int rc;
    if (op->multi && cx->has_txn_number)
        return err_set(err, ERR_INVALID_OPTIONS, "Cannot use retryable writes with multi=true");
    if (op->sort && op->multi)
        return err_set(err, ERR_FAILED_TO_PARSE, "Cannot specify sort with multi=true");
    if ((rc = match_parse(a, op->filter, &filter, err)) != 0 ||
        (op->kind == BULK_UPDATE && (rc = update_parse(a, op->u, op->array_filters, op->multi, &update, err)) != 0) ||
        (op->sort && (rc = sort_parse(a, op->sort, sort, err)) != 0))
        return rc;
    *out = (struct modify){
        .arena = a,
        .filter = filter,
        .update = update,
        .multi = op->multi,
        .upsert = op->upsert,
        .sort = op->sort && (sort->n || sort->natural) ? sort : NULL,
        .hint = op->hint,
        .verb = op->kind == BULK_UPDATE ? "update" : "delete",
    };
    return 0;
}
