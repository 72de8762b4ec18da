/* One pass over the raw document with the tree of paths: fields without a node are not looked into, fields with a leaf go to the operator,
 * what the document lacks is made at the end of its parent. Stops scanning a document once all children are found. */
#include "server/query/update/update_private.h"

int out_of_memory(struct err *err)
{
    return err_set(err, ERR_EXCEEDED_MEMORY_LIMIT, "The update needs more memory than one operation may use");
}

/* As long as a message may be: values have up to 16 MiB. */
const char *value_text(struct arena *a, struct bval v)
{
    struct buf text = {0};
    bval_to_shell(&text, v, 4096);
    const char *s = arena_strndup(a, (const char *)text.p, text.len);
    buf_free(&text);
    return s ? s : "...";
}

const char *elem_text(struct arena *a, const char *name, struct bval v)
{
    return arena_printf(a, "%.1000s: %s", name, value_text(a, v));
}

const char *apply_id_text(struct apply *ap)
{
    struct bval id = bdoc_get(ap->doc, "_id");
    return bval_is_missing(id) ? "no id" : elem_text(ap->a, "_id", id);
}

/* Will something be made here if it is missing? A $rename without a source and a $setOnInsert that inserts nothing make nothing. */
static bool will_create(const struct apply *ap, const struct node *n)
{
    if (n->leaf) {
        const struct update_op *op = n->leaf->op;
        return op->creates && !(op->idle && op->idle(ap, n->leaf));
    }
    for (uint32_t i = 0; i < n->n; i++)
        if (will_create(ap, &n->children[i]))
            return true;
    return false;
}

/* The first leaf that does not put up with a path that leads nowhere. */
static const struct node *find_strict(const struct node *n)
{
    const struct node *found = NULL;
    if (n->leaf)
        return n->leaf->op->strict ? n : NULL;
    for (uint32_t i = 0; i < n->n && !found; i++)
        found = find_strict(&n->children[i]);
    return found;
}

/* Below `self`, a scalar or an array, no field `child` can be. That matters to who would make or must find it. */
static int check_viable(struct apply *ap, const struct node *child, const struct belem *self)
{
    const struct node *strict;
    if (will_create(ap, child))
        return err_set(ap->err, ERR_PATH_NOT_VIABLE, "Cannot create field '%.*s' in element {%s}", (int)child->part.n,
                       child->part.s, elem_text(ap->a, self->name, self->v));
    if ((strict = find_strict(child)) != NULL)
        return err_set(ap->err, ERR_PATH_NOT_VIABLE,
                       "Cannot use the part (%.*s) of (%s) to traverse the element ({%s})", (int)child->part.n,
                       child->part.s, strict->path, elem_text(ap->a, self->name, self->v));
    return 0;
}

static int refuse_dollar_name(struct apply *ap, const struct part *part)
{
    return err_set(ap->err, ERR_DOLLAR_PREFIXED_FIELD_NAME,
                   "The dollar ($) prefixed field '%.*s' in '%.*s' is not allowed in the context of an update's "
                   "replacement document. "
                   "Consider using an aggregation pipeline with $replaceWith.",
                   (int)part->n, part->s, (int)part->n, part->s);
}

static int apply_leaf(struct apply *ap, const struct node *n, const struct target *t)
{
    const struct update_op *op = n->leaf->op;
    ap->path = n->path;
    if (op->idle && op->idle(ap, n->leaf))
        return 0;
    if (n->leaf->dollar_name && n->leaf->n_parts == 1)
        return refuse_dollar_name(ap, &n->part);
    return op->apply(ap, n->leaf, t);
}

static int create(struct apply *ap, const struct node *n, const char *name, uint32_t name_n)
{
    if (n->leaf) {
        const struct target t = {.path = n->path, .name = name, .name_n = name_n, .old = BVAL_MISSING};
        return apply_leaf(ap, n, &t);
    }
    if (!will_create(ap, n))
        return 0;
    buf_byte(ap->out, BSON_TYPE_DOCUMENT);
    buf_append(ap->out, name, name_n);
    buf_byte(ap->out, 0);
    size_t start = bw_begin(ap->out);
    for (uint32_t i = 0; i < n->n; i++) {
        int rc = create(ap, &n->children[i], n->children[i].part.s, n->children[i].part.n);
        if (rc)
            return rc;
    }
    bw_end(ap->out, start);
    return 0;
}

/* An element behind the end of an array that has *count: nulls fill the gap. */
static int create_element(struct apply *ap, const struct node *child, const struct belem *self, uint32_t *count)
{
    char scratch[12];

    if (child->part.index == UPDATE_NO_INDEX)
        return check_viable(ap, child, self);
    if (!will_create(ap, child))
        return 0;
    if (child->part.index - *count > UPDATE_PAD_MAX)
        return err_set(ap->err, ERR_CANNOT_BACKFILL_ARRAY, "can't backfill more than %d elements", UPDATE_PAD_MAX);
    while (*count < child->part.index)
        bw_null(ap->out, bw_index((*count)++, scratch));
    (*count)++;
    return create(ap, child, child->part.s, child->part.n);
}

static int apply_element(struct apply *ap, const struct node *n, const struct belem *e, bool in_array);

struct seen {
    uint64_t bits;
    uint8_t *bytes; /* of nodes with more than 64 children */
};

static bool seen_mark(struct seen *s, uint32_t i)
{
    if (s->bytes) {
        bool was = s->bytes[i];
        s->bytes[i] = 1;
        return was;
    }
    bool was = s->bits >> i & 1;
    s->bits |= 1ull << i;
    return was;
}

static int create_missing(struct apply *ap, const struct node *n, const struct belem *self, struct seen *seen,
                          uint32_t count)
{
    uint32_t end = (uint32_t)(self->v.p - ap->doc) + self->v.n - 1;
    uint32_t at = edit_open(ap, end);
    int rc = 0;

    for (uint32_t i = 0; i < n->n && rc == 0; i++) {
        const struct node *child = &n->children[i];
        if (seen_mark(seen, i))
            continue;
        if (self->v.p == ap->doc && child->part.s[0] == '$' && will_create(ap, child))
            rc = refuse_dollar_name(ap, &child->part);
        else if (self->v.type == BSON_TYPE_ARRAY)
            rc = create_element(ap, child, self, &count);
        else
            rc = create(ap, child, child->part.s, child->part.n);
        if (apply_pos(ap) > 2 * BSON_INPUT_MAX) /* far too large already: not worth going on */
            break;
    }
    return rc ? rc : edit_close(ap, end, at, 0);
}

static int apply_inside(struct apply *ap, const struct node *n, const struct belem *self)
{
    struct edit_header h;
    struct seen seen = {0};
    struct biter it;
    struct belem e;
    bool array = self->v.type == BSON_TYPE_ARRAY, root = self->v.p == ap->doc;
    uint32_t left = n->n, i = 0;
    int rc = edit_header_open(ap, (uint32_t)(self->v.p - ap->doc), &h);

    if (rc)
        return rc;
    if (n->n > 64 && !(seen.bytes = arena_zalloc(ap->a, n->n)))
        return out_of_memory(ap->err);
    biter_init(&it, self->v.p);
    for (; left && biter_next(&it, &e); i++) {
        const struct node *child = array ? tree_child_at(n, i) : tree_child(n, e.name, e.name_n);
        if (!child || seen_mark(&seen, (uint32_t)(child - n->children)))
            continue;
        left--;
        if (root)
            ap->in_id = e.name_n == 3 && memcmp(e.name, "_id", 3) == 0;
        rc = apply_element(ap, child, &e, array);
        if (root)
            ap->in_id = false;
        if (rc)
            return rc;
    }
    if (left && (rc = create_missing(ap, n, self, &seen, i)) != 0)
        return rc;
    edit_header_close(ap, &h);
    return 0;
}

static int apply_element(struct apply *ap, const struct node *n, const struct belem *e, bool in_array)
{
    if (n->leaf) {
        const struct target t = {
            .path = n->path,
            .name = e->name,
            .name_n = e->name_n,
            .old = e->v,
            .elem_off = (uint32_t)((const uint8_t *)e->name - ap->doc) - 1,
            .val_off = (uint32_t)((const uint8_t *)e->name - ap->doc) + e->name_n + 1,
            .in_array = in_array,
        };
        return apply_leaf(ap, n, &t);
    }
    if (e->v.type == BSON_TYPE_DOCUMENT || e->v.type == BSON_TYPE_ARRAY)
        return apply_inside(ap, n, e);
    for (uint32_t i = 0; i < n->n; i++) {
        int rc = check_viable(ap, &n->children[i], e);
        if (rc)
            return rc;
    }
    return 0;
}

int apply_tree(struct apply *ap, const struct node *root)
{
    const struct belem self = {.name = "", .v = bval_from_doc(ap->doc)};
    return root->n ? apply_inside(ap, root, &self) : 0;
}

int apply_operators(const struct update *u, const uint8_t *doc, int32_t array_index, bool insert, struct arena *a,
                    struct buf *out, struct update_effect *effect, struct err *err)
{
    struct apply ap = {
        .u = u, .doc = doc, .doc_n = bdoc_len(doc), .array_index = array_index, .insert = insert, .a = a, .err = err};
    struct node expanded;
    const struct node *root = &u->root;
    int rc;

    ap.out = out;
    ap.base = out->len;
    ap.edits = ap.first_edits;
    ap.cap_edits = OV_LEN(ap.first_edits);
    buf_reserve(out, ap.doc_n + 64);
    if (u->n_renames && (rc = renames_find(&ap)) != 0)
        goto fail;
    if (u->positional) {
        if ((rc = positional_expand(&ap, &expanded)) != 0)
            goto fail;
        root = &expanded;
    }
    if ((rc = apply_tree(&ap, root)) != 0)
        goto fail;
    edit_finish(&ap, effect);
    if (apply_pos(&ap) > BSON_DOC_MAX && effect->changed) {
        rc = insert ? err_set(err, 17420, "Document to upsert is larger than %u", BSON_DOC_MAX)
                    : err_set(err, 17419, "Resulting document after update is larger than %u", BSON_DOC_MAX);
        goto fail;
    }
    if (u->may_nest && effect->changed && nests_deeper(out->p + ap.base, UPDATE_NEST_MAX)) {
        rc = err_set(err, ERR_OVERFLOW, "Document exceeds maximum nesting depth of %d", UPDATE_NEST_MAX);
        goto fail;
    }
    return 0;
fail:
    out->len = ap.base;
    *effect = (struct update_effect){0};
    return rc;
}

int update_apply(const struct update *u, const uint8_t *doc, int32_t array_index, struct arena *a, struct buf *out,
                 struct update_effect *effect, struct err *err)
{
    *effect = (struct update_effect){0};
    if (!u->replacement)
        return apply_operators(u, doc, array_index, false, a, out, effect, err);
    size_t base = out->len;
    int rc = apply_replacement(u, bdoc_get(doc, "_id"), out, err);
    if (rc)
        return rc;
    size_t n = out->len - base;
    if (n > BSON_DOC_MAX) {
        out->len = base;
        return err_set(err, 17419, "Resulting document after update is larger than %u", BSON_DOC_MAX);
    }
    effect->changed = n != bdoc_len(doc) || memcmp(out->p + base, doc, n) != 0;
    return 0;
}
