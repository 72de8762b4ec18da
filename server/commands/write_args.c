/* Types of fields, in the real server's words. */
#include "server/commands/write_args.h"

#include "server/commands/shape.h"

const uint8_t WRITE_EMPTY_DOC[5] = {5, 0, 0, 0, 0};

int write_arg_type(struct command_ctx *cx, const char *where, const struct belem *e, const char *wanted)
{
    return err_set(&cx->op.err, ERR_TYPE_MISMATCH, "BSON field '%s.%s' is the wrong type '%s', expected type%s", where,
                   e->name, bval_type_name(e->v.type), wanted);
}

int write_arg_doc(struct command_ctx *cx, const char *where, const struct belem *e, const uint8_t **out)
{
    if (e->v.type != BSON_TYPE_DOCUMENT)
        return write_arg_type(cx, where, e, " 'object'");
    *out = bval_doc(e->v);
    return 0;
}

int write_arg_bool(struct command_ctx *cx, const char *where, const struct belem *e, bool *out)
{
    if (e->v.type != BSON_TYPE_BOOL && !bval_is_number(e->v))
        return write_arg_type(cx, where, e, "s '[bool, long, int, decimal, double']");
    *out = bval_truthy(e->v);
    return 0;
}

int write_arg_hint(struct command_ctx *cx, const char *where, const struct belem *e, struct bval *out)
{
    (void)where;
    if (e->v.type != BSON_TYPE_UTF8 && e->v.type != BSON_TYPE_DOCUMENT)
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "Hint must be a string or an object");
    bool none = e->v.type == BSON_TYPE_DOCUMENT && bdoc_empty(bval_doc(e->v));
    *out = none ? BVAL_MISSING : e->v;
    return 0;
}

int write_arg_array(struct command_ctx *cx, const char *where, const struct belem *e, struct bval *out)
{
    if (e->v.type != BSON_TYPE_ARRAY)
        return write_arg_type(cx, where, e, " 'array'");
    *out = e->v;
    return 0;
}

int write_arg_update(struct command_ctx *cx, const struct belem *e, struct bval *out)
{
    if (e->v.type != BSON_TYPE_DOCUMENT && e->v.type != BSON_TYPE_ARRAY)
        return err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "Update argument must be either an object or an array");
    *out = e->v;
    return 0;
}

int write_arg_collation(struct command_ctx *cx, const char *where, const struct belem *e)
{
    const uint8_t *doc = WRITE_EMPTY_DOC;
    int rc = write_arg_doc(cx, where, e, &doc);
    if (rc != 0)
        return rc;
    struct bval locale = bdoc_get(doc, "locale");
    uint32_t n;
    if (!bdoc_empty(doc) && (rc = shape_check_collation(&cx->op.err, doc)) != 0)
        return rc;
    if (bdoc_empty(doc) || (locale.type == BSON_TYPE_UTF8 && strcmp(bval_str(locale, &n), "simple") == 0))
        return 0;
    return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option '%s.collation' is not implemented", where);
}

int write_arg_variables(struct command_ctx *cx, const char *where, const struct belem *e)
{
    const uint8_t *doc = WRITE_EMPTY_DOC;
    int rc = write_arg_doc(cx, where, e, &doc);
    if (rc != 0 || bdoc_empty(doc))
        return rc;
    return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option '%s.%s' is not implemented", where, e->name);
}

int write_arg_empty_ts(struct command_ctx *cx, struct bval update)
{
    struct biter it;
    struct belem e;
    if (update.type != BSON_TYPE_DOCUMENT)
        return 0;
    for (biter_init(&it, bval_doc(update)); biter_next(&it, &e);)
        if (e.v.type == BSON_TYPE_TIMESTAMP && load_le64(e.v.p) == 0)
            return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED,
                           "the option 'bypassEmptyTsReplacement' is not implemented for updates");
    return 0;
}

int write_arg_unknown(struct command_ctx *cx, const char *where, const struct belem *e)
{
    return err_set(&cx->op.err, ERR_IDL_UNKNOWN_FIELD, "BSON field '%s.%s' is an unknown field.", where, e->name);
}

int write_arg_missing(struct command_ctx *cx, const char *where, const char *field)
{
    return err_set(&cx->op.err, ERR_IDL_FAILED_TO_PARSE, "BSON field '%s.%s' is missing but a required field", where,
                   field);
}
