/* Typed access to the fields of a command. A null counts as absent, as in the real server's parsers. */
#include "server/commands/command.h"

static bool absent(struct bval v)
{
    return bval_is_missing(v) || v.type == BSON_TYPE_NULL || v.type == BSON_TYPE_UNDEFINED;
}

int arg_wrong_type(struct command_ctx *cx, const char *field, struct bval v, const char *expected)
{
    return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "BSON field '%s.%s' is the wrong type '%s', expected %s",
                   cx->cmd->name, field, bval_type_name(v.type), expected);
}

int arg_missing(struct command_ctx *cx, const char *field)
{
    return err_set(&cx->op.err, ERR_IDL_FAILED_TO_PARSE, "BSON field '%s.%s' is missing but a required field",
                   cx->cmd->name, field);
}

int arg_string(struct command_ctx *cx, const char *field, const char **out, bool required)
{
    struct bval v = bdoc_get(cx->req->body, field);
    uint32_t n;
    *out = NULL;
    if (absent(v))
        return required ? arg_missing(cx, field) : 0;
    if (v.type != BSON_TYPE_UTF8)
        return arg_wrong_type(cx, field, v, "type 'string'");
    *out = bval_str(v, &n);
    if (strlen(*out) != n)
        return err_set(&cx->op.err, ERR_BAD_VALUE, "BSON field '%s.%s' must not have a null byte", cx->cmd->name,
                       field);
    return 0;
}

int arg_doc(struct command_ctx *cx, const char *field, const uint8_t **out)
{
    static const uint8_t empty[5] = {5};
    struct bval v = bdoc_get(cx->req->body, field);
    *out = empty;
    if (absent(v))
        return 0;
    if (v.type != BSON_TYPE_DOCUMENT)
        return arg_wrong_type(cx, field, v, "type 'object'");
    *out = bval_doc(v);
    return 0;
}

int arg_i64(struct command_ctx *cx, const char *field, int64_t dflt, int64_t min, int64_t *out)
{
    struct bval v = bdoc_get(cx->req->body, field);
    *out = dflt;
    if (absent(v))
        return 0;
    if (!bval_is_number(v))
        return arg_wrong_type(cx, field, v, "types '[long, int, decimal, double']");
    *out = bval_to_i64_clamped(v);
    if (*out < min) {
        long long found = *out;
        *out = dflt;
        return err_set(&cx->op.err, 51024, "BSON field '%s' value must be >= %lld, actual value '%lld'", field,
                       (long long)min, found);
    }
    return 0;
}

int arg_bool(struct command_ctx *cx, const char *field, bool dflt, bool *out)
{
    struct bval v = bdoc_get(cx->req->body, field);
    *out = dflt;
    if (absent(v))
        return 0;
    if (v.type != BSON_TYPE_BOOL && !bval_is_number(v))
        return arg_wrong_type(cx, field, v, "types '[bool, long, int, decimal, double']");
    *out = bval_truthy(v);
    return 0;
}

int arg_collection(struct command_ctx *cx, const char **out)
{
    struct biter it;
    struct belem e = {0};
    uint32_t n;
    *out = "";
    biter_init(&it, cx->req->body);
    if (!biter_next(&it, &e) || e.v.type != BSON_TYPE_UTF8)
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "collection name has invalid type %s",
                       bval_type_name(e.v.type));
    const char *name = bval_str(e.v, &n);
    if (strlen(name) != n)
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "namespaces cannot have embedded null characters");
    if (n == 0 || name[0] == '.' || strchr(name, '$'))
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE, "Invalid namespace specified '%s.%s'", cx->req->db, name);
    if (strlen(cx->req->db) + 1 + n > 255)
        return err_set(&cx->op.err, ERR_INVALID_NAMESPACE,
                       "Fully qualified namespace is too long. Namespace: %s.%s Max: 255", cx->req->db, name);
    *out = name;
    return 0;
}
