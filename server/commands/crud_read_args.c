/* Arguments that several reading commands share. */
#include "server/commands/crud_read_private.h"

#include "server/commands/shape.h"

uint64_t fields_present(const uint8_t *body, const char *const *names)
{
    struct biter it;
    struct belem e;
    uint64_t present = 0;
    for (biter_init(&it, body); biter_next(&it, &e);)
        for (unsigned i = 0; names[i]; i++)
            if (names[i][0] == e.name[0] && strcmp(names[i], e.name) == 0) {
                present |= (uint64_t)1 << i;
                break;
            }
    return present;
}

int arg_simple_collation(struct command_ctx *cx)
{
    const uint8_t *collation;
    uint32_t n;
    int rc = arg_doc(cx, "collation", &collation);
    if (rc != 0 || bdoc_empty(collation))
        return rc;
    if ((rc = shape_check_collation(&cx->op.err, collation)) != 0)
        return rc;
    struct bval locale = bdoc_get(collation, "locale");
    if (locale.type == BSON_TYPE_UTF8 && strcmp(bval_str(locale, &n), "simple") == 0)
        return 0;
    return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "a collation other than simple is not implemented");
}

int arg_empty_let(struct command_ctx *cx)
{
    const uint8_t *let;
    int rc = arg_doc(cx, "let", &let);
    if (rc != 0 || bdoc_empty(let))
        return rc;
    return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "variables (let) are not implemented");
}

/* ---- others ---- */

int arg_hint(struct command_ctx *cx, struct bval *out)
{
    *out = bdoc_get(cx->req->body, "hint");
    if (out->type == BSON_TYPE_NULL || (out->type == BSON_TYPE_DOCUMENT && bdoc_empty(bval_doc(*out))))
        *out = BVAL_MISSING;
    if (out->type == BSON_TYPE_EOD || out->type == BSON_TYPE_UTF8 || out->type == BSON_TYPE_DOCUMENT)
        return 0;
    return err_set(&cx->op.err, ERR_FAILED_TO_PARSE, "Hint must be a string or an object");
}

int arg_refused_flag(struct command_ctx *cx, const char *field)
{
    bool on;
    int rc = arg_bool(cx, field, false, &on);
    if (rc != 0 || !on)
        return rc;
    return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option '%s' of %s is not implemented", field, cx->cmd->name);
}

int arg_cursor_batch_size(struct command_ctx *cx, int64_t *out)
{
    const uint8_t *cursor;
    struct biter it;
    struct belem e;
    int rc = arg_doc(cx, "cursor", &cursor);
    *out = INT64_MAX;
    for (biter_init(&it, cursor); rc == 0 && biter_next(&it, &e);) {
        if (strcmp(e.name, "batchSize") != 0)
            rc = err_set(&cx->op.err, ERR_IDL_UNKNOWN_FIELD, "BSON field '%s.cursor.%s' is an unknown field.",
                         cx->cmd->name, e.name);
        else if (e.v.type == BSON_TYPE_NULL)
            continue;
        else if (!bval_is_number(e.v))
            rc = err_set(&cx->op.err, ERR_TYPE_MISMATCH,
                         "BSON field '%s.cursor.batchSize' is the wrong type '%s', expected types "
                         "'[long, int, decimal, double']",
                         cx->cmd->name, bval_type_name(e.v.type));
        else if ((*out = bval_to_i64_clamped(e.v)) < 0)
            rc = err_set(&cx->op.err, ERR_BAD_VALUE,
                         "BSON field '%s.cursor.batchSize' value must be >= 0, actual value '%lld'", cx->cmd->name,
                         (long long)*out);
    }
    return rc;
}
