/* What every stored document keeps to: an _id in front and of a type that can be one, at most so many levels and bytes. Inserts are checked
 * against it, and rewritten only when they have to be. */
#include "server/query/update/update_private.h"

#include "server/base/rand.h"

static bool is_id(const struct belem *e)
{
    return e->name_n == 3 && memcmp(e->name, "_id", 3) == 0;
}

static const char *dollar_field(const uint8_t *doc, int levels)
{
    struct biter it;
    struct belem e;
    const char *found;

    biter_init(&it, doc);
    while (biter_next(&it, &e)) {
        if (e.name[0] == '$')
            return e.name;
        if (levels && (e.v.type == BSON_TYPE_DOCUMENT || e.v.type == BSON_TYPE_ARRAY) &&
            (found = dollar_field(bval_doc(e.v), levels - 1)) != NULL)
            return found;
    }
    return NULL;
}

int id_check(struct bval id, struct err *err)
{
    const char *field;
    if (id.type == BSON_TYPE_ARRAY || id.type == BSON_TYPE_REGEX || id.type == BSON_TYPE_UNDEFINED)
        return err_set(err, ERR_INVALID_ID_FIELD, "The '_id' value cannot be of type %s", bval_type_name(id.type));
    if (id.type == BSON_TYPE_DOCUMENT && (field = dollar_field(bval_doc(id), BSON_DEPTH_MAX)) != NULL)
        return err_set(err, ERR_DOLLAR_PREFIXED_FIELD_NAME,
                       "_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", field);
    return 0;
}

/* Is some document or array that is not empty below the given level? The document itself is level 1. */
bool nests_deeper(const uint8_t *doc, int levels)
{
    struct biter it;
    struct belem e;

    if (levels > 0 && bdoc_len(doc) < 7u * (uint32_t)levels) /* a level takes 7 bytes at least */
        return false;
    biter_init(&it, doc);
    while (biter_next(&it, &e)) {
        if (e.v.type != BSON_TYPE_DOCUMENT && e.v.type != BSON_TYPE_ARRAY)
            continue;
        if (bdoc_empty(bval_doc(e.v)))
            continue;
        if (levels <= 1 || nests_deeper(bval_doc(e.v), levels - 1))
            return true;
    }
    return false;
}

bool timestamp_is_zero(struct bval v)
{
    return v.type == BSON_TYPE_TIMESTAMP && load_le64(v.p) == 0;
}

struct insert_facts {
    struct bval id;
    bool id_first;
    bool zero_timestamp;
};

static int look(const uint8_t *doc, bool fill, struct insert_facts *f, struct err *err)
{
    struct biter it;
    struct belem e;
    bool first = true;

    *f = (struct insert_facts){.id = BVAL_MISSING};
    biter_init(&it, doc);
    for (; biter_next(&it, &e); first = false) {
        if (is_id(&e)) {
            if (!bval_is_missing(f->id))
                return err_set(err, ERR_BAD_VALUE, "can't have multiple _id fields in one document");
            f->id = e.v;
            f->id_first = first;
        } else {
            f->zero_timestamp |= fill && timestamp_is_zero(e.v);
        }
    }
    return id_check(f->id, err);
}

int insert_prepare(const uint8_t *doc, uint64_t ts, struct buf *out, bool *same, struct err *err)
{
    struct insert_facts f;
    struct biter it;
    struct belem e;
    uint8_t raw[8];
    uint32_t n = bdoc_len(doc);

    *same = false;
    if (n > BSON_DOC_MAX)
        return err_set(err, ERR_BAD_VALUE, "object to insert too large. size in bytes: %u, max size: %u", n,
                       BSON_DOC_MAX);
    if (nests_deeper(doc, UPDATE_NEST_MAX))
        return err_set(err, ERR_OVERFLOW, "cannot insert document because it exceeds %d levels of nesting",
                       UPDATE_NEST_MAX);
    int rc = look(doc, ts != 0, &f, err);
    if (rc)
        return rc;
    if (f.id_first && !f.zero_timestamp) {
        *same = true;
        return 0;
    }
    buf_reserve(out, n + 32);
    size_t start = bw_begin(out);
    if (bval_is_missing(f.id)) {
        uint8_t oid[12];
        oid_generate(oid);
        bw_oid(out, "_id", oid);
    } else {
        bw_val(out, "_id", f.id);
    }
    if (!f.zero_timestamp && bval_is_missing(f.id)) {
        buf_append(out, doc + 4, n - 5);
    } else {
        store_le64(raw, ts);
        biter_init(&it, doc);
        while (biter_next(&it, &e)) {
            if (timestamp_is_zero(e.v))
                e.v.p = raw;
            if (!is_id(&e))
                bw_valn(out, e.name, e.name_n, e.v);
        }
    }
    bw_end(out, start);
    return 0;
}
