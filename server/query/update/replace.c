/* Replacement documents: everything but the _id is new. */
#include "server/query/update/update_private.h"

static bool is_id(const struct belem *e)
{
    return e->name_n == 3 && memcmp(e->name, "_id", 3) == 0;
}

static int check_fields(const struct update *u, struct err *err)
{
    struct biter it;
    struct belem e;
    uint32_t ids = 0;

    biter_init(&it, u->doc);
    while (biter_next(&it, &e)) {
        if (e.name[0] == '$')
            return err_set(err, ERR_DOLLAR_PREFIXED_FIELD_NAME,
                           "The dollar ($) prefixed field '%s' in '%s' is not allowed in the context of an update's "
                           "replacement document. "
                           "Consider using an aggregation pipeline with $replaceWith.",
                           e.name, e.name);
        if (is_id(&e) && ++ids > 1)
            return err_set(err, ERR_BAD_VALUE, "can't have multiple _id fields in one document");
    }
    if (nests_deeper(u->doc, UPDATE_NEST_MAX))
        return err_set(err, ERR_OVERFLOW, "Document exceeds maximum nesting depth of %d", UPDATE_NEST_MAX);
    return 0;
}

int apply_replacement(const struct update *u, struct bval old_id, struct buf *out, struct err *err)
{
    struct bval id = bdoc_get(u->doc, "_id");
    struct biter it;
    struct belem e;
    uint8_t raw[8];
    int rc = check_fields(u, err);

    if (rc)
        return rc;
    if (!bval_is_missing(id) && !bval_is_missing(old_id) && !bval_eq(id, old_id)) {
        struct buf text = {0};
        bval_to_shell(&text, id, 4096);
        rc = err_set(
            err, ERR_IMMUTABLE_FIELD,
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: %.*s",
            (int)text.len, (const char *)text.p);
        buf_free(&text);
        return rc;
    }
    if (bval_is_missing(id))
        id = old_id;
    if ((rc = id_check(id, err)) != 0)
        return rc;
    buf_reserve(out, bdoc_len(u->doc) + id.n + 16);
    size_t start = bw_begin(out);
    bw_val(out, "_id", id);
    biter_init(&it, u->doc);
    while (biter_next(&it, &e)) {
        if (is_id(&e))
            continue;
        if (timestamp_is_zero(e.v)) {
            store_le64(raw, timestamp_now());
            e.v.p = raw;
        }
        bw_valn(out, e.name, e.name_n, e.v);
    }
    bw_end(out, start);
    return 0;
}
