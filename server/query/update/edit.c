/* Edits: out grows from copied ranges of the old document and new bytes; each change is noted with its place in both. Lengths of enclosing
 * documents are edits too: a slot is kept for them before what is inside, and dropped if the length stays. */
#include "server/query/update/update_private.h"

static void flush(struct apply *ap, uint32_t off)
{
    buf_append(ap->out, ap->doc + ap->copied, off - ap->copied);
    ap->copied = off;
}

static int edit_add(struct apply *ap, struct update_edit e)
{
    if (ap->n_edits == ap->cap_edits) {
        struct update_edit *more = arena_alloc(ap->a, 2 * sizeof(*more) * ap->cap_edits);
        if (!more)
            return out_of_memory(ap->err);
        memcpy(more, ap->edits, ap->n_edits * sizeof(*more));
        ap->edits = more;
        ap->cap_edits *= 2;
    }
    ap->edits[ap->n_edits++] = e;
    return 0;
}

uint32_t edit_open(struct apply *ap, uint32_t off)
{
    flush(ap, off);
    return apply_pos(ap);
}

int edit_close(struct apply *ap, uint32_t off, uint32_t at, uint32_t removed)
{
    uint32_t added = apply_pos(ap) - at, head = 0;
    const uint8_t *old = ap->doc + off, *new = ap->out->p + ap->base + at;

    ap->copied = off + removed;
    uint32_t least = OV_MIN(added, removed);
    while (head + 8 <= least && load_le64(old + head) == load_le64(new + head))
        head += 8;
    while (head < least && old[head] == new[head])
        head++;
    if (added == removed && head == added)
        return 0;
    uint32_t tail = 0;
    while (tail + 8 <= least - head && load_le64(old + removed - tail - 8) == load_le64(new + added - tail - 8))
        tail += 8;
    while (tail < least - head && old[removed - tail - 1] == new[added - tail - 1])
        tail++;
    if (ap->in_id)
        return err_set(ap->err, ERR_IMMUTABLE_FIELD,
                       "Performing an update on the path '%s' would modify the immutable field '_id'", ap->path);
    return edit_add(ap, (struct update_edit){off + head, removed - head - tail, at + head, added - head - tail});
}

int edit_header_open(struct apply *ap, uint32_t off, struct edit_header *h)
{
    *h = (struct edit_header){.slot = ap->n_edits, .off = off, .copied_delta = apply_pos(ap) - ap->copied};
    h->at = off + h->copied_delta;
    return edit_add(ap, (struct update_edit){off, 0, h->at, 0});
}

void edit_header_close(struct apply *ap, const struct edit_header *h)
{
    uint32_t grown = apply_pos(ap) - ap->copied - h->copied_delta; /* wraps when the document shrinks */
    if (grown == 0)
        return;
    uint8_t *header = ap->out->p + ap->base + h->at;
    store_le32(header, load_le32(ap->doc + h->off) + grown);
    ap->edits[h->slot].removed = ap->edits[h->slot].added = 4;
}

void edit_finish(struct apply *ap, struct update_effect *effect)
{
    flush(ap, ap->doc_n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < ap->n_edits; i++) {
        struct update_edit e = ap->edits[i], *last = n ? &ap->edits[n - 1] : NULL;
        if (e.removed == 0 && e.added == 0)
            continue;
        if (last && last->offset + last->removed == e.offset && last->added_at + last->added == e.added_at) {
            last->removed += e.removed;
            last->added += e.added;
        } else {
            ap->edits[n++] = e;
        }
    }
    effect->changed = n > 0;
    effect->n_edits = n;
    effect->edits = NULL;
    if (n) {
        effect->edits = arena_dup(ap->a, ap->edits, n * sizeof(*ap->edits));
        if (!effect->edits)
            effect->n_edits = 0; /* the whole document is stored instead */
    }
}

/* ---- the field that an operator changes ---- */

int target_set(struct apply *ap, const struct target *t, struct bval v)
{
    if (bval_is_missing(t->old)) {
        bw_valn(ap->out, t->name, t->name_n, v);
        return 0;
    }
    if (ap->in_id && strcmp(t->path, "_id") == 0 && bval_eq(t->old, v))
        ap->in_id = false; /* 1 and 1.0 are the same _id: its type may change */
    if (t->old.type == v.type) {
        if (t->old.n == v.n && memcmp(t->old.p, v.p, v.n) == 0)
            return 0;
        uint32_t at = edit_open(ap, t->val_off);
        buf_append(ap->out, v.p, v.n);
        return edit_close(ap, t->val_off, at, t->old.n);
    }
    uint32_t at = edit_open(ap, t->elem_off);
    bw_valn(ap->out, t->name, t->name_n, v);
    return edit_close(ap, t->elem_off, at, t->val_off + t->old.n - t->elem_off);
}

int target_remove(struct apply *ap, const struct target *t)
{
    if (t->in_array)
        return target_set(ap, t, BVAL_NULL);
    uint32_t at = edit_open(ap, t->elem_off);
    return edit_close(ap, t->elem_off, at, t->val_off + t->old.n - t->elem_off);
}

static void write_items(struct buf *out, uint32_t first, const struct bval *items, uint32_t n)
{
    char scratch[12];
    for (uint32_t i = 0; i < n; i++)
        bw_val(out, bw_index(first + i, scratch), items[i]);
}

int target_set_array(struct apply *ap, const struct target *t, const struct bval *items, uint32_t n)
{
    if (bval_is_missing(t->old)) {
        buf_byte(ap->out, BSON_TYPE_ARRAY);
        buf_append(ap->out, t->name, t->name_n);
        buf_byte(ap->out, 0);
        size_t start = bw_begin(ap->out);
        write_items(ap->out, 0, items, n);
        bw_end(ap->out, start);
        return 0;
    }
    uint32_t at = edit_open(ap, t->val_off);
    size_t start = bw_begin(ap->out);
    write_items(ap->out, 0, items, n);
    bw_end(ap->out, start);
    return edit_close(ap, t->val_off, at, t->old.n);
}

int target_append(struct apply *ap, const struct target *t, uint32_t count, const struct bval *items, uint32_t n)
{
    struct edit_header h;
    uint32_t end = t->val_off + t->old.n - 1;
    int rc = edit_header_open(ap, t->val_off, &h);
    if (rc)
        return rc;
    uint32_t at = edit_open(ap, end);
    write_items(ap->out, count, items, n);
    if ((rc = edit_close(ap, end, at, 0)) != 0)
        return rc;
    edit_header_close(ap, &h);
    return 0;
}
