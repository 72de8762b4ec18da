/* Keys first (what the change adds and removes), then the locks of unique keys, then their owners, then everything is buffered at once:
 * until the last stage nothing is in the batch, so that a failure leaves nothing behind.
 *
 * The order of locks is that of the collection's indexes, which is that of their keyspaces, and within one that of the keys; index builds
 * keep to it, too. A record that is inserted needs no lock: nobody knows its id before the commit.
 *
 * A building index may lack entries of older documents, or hold another document's under the same unique key (the build finds that out):
 * what is to be removed there is looked up before. */
#include "server/write/change.h"

#include "server/write/dup_error.h"
#include "server/write/validate.h"

struct change_index {
    struct index_def *def;
    struct keyset removed, added, after;
    uint32_t multikey;
    bool *gone; /* of a building index: removed[i] has an entry of this document */
};

static bool is_unique(const struct index_def *def)
{
    return def->unique || def->is_id;
}

/* ---- keys ---- */

static bool untouched(const struct change *ch, const struct index_def *def)
{
    if (!ch->before || !ch->after || !ch->update)
        return false;
    for (uint32_t i = 0; i < def->n_fields; i++)
        if (update_may_touch(ch->update, def->paths[i].text))
            return false;
    for (uint32_t i = 0; def->partial && i < def->partial->n_paths; i++)
        if (update_may_touch(ch->update, def->partial->paths[i]))
            return false;
    return true;
}

static enum write_result keys_of(struct change *ch, struct change_index *x, struct err *err)
{
    struct keyset before = {0}, after = {0};
    if (ch->after) {
        if (keygen(x->def, ch->after, ch->arena, &after, err) != 0)
            return WRITE_FAILED;
        x->multikey = after.multikey;
    }
    if (ch->before) {
        struct err ignored;
        err_init(&ignored, ch->arena);
        if (keygen(x->def, ch->before, ch->arena, &before, &ignored) != 0)
            before = (struct keyset){0}; /* it has no entries: only while a build is on its way to fail */
    }
    x->after = after;
    if (!ch->before)
        x->added = after;
    else if (!ch->after)
        x->removed = before;
    else
        keyset_diff(&before, &after, ch->arena, &x->removed, &x->added);
    if (x->def->state == INDEX_BUILDING && x->removed.n)
        x->gone = arena_zalloc(ch->arena, x->removed.n * sizeof(*x->gone));
    return WRITE_OK;
}

static enum write_result all_keys(struct writer *w, struct change *ch, struct err *err)
{
    struct collection *coll = w->coll;
    ch->indexes = arena_zalloc(ch->arena, coll->n_indexes * sizeof(*ch->indexes));
    ch->n_indexes = 0;
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        struct index_def *def = &coll->indexes[i];
        if (untouched(ch, def))
            continue;
        struct change_index *x = &ch->indexes[ch->n_indexes];
        x->def = def;
        if (keys_of(ch, x, err) != WRITE_OK)
            return WRITE_FAILED;
        if (x->removed.n || x->added.n)
            ch->n_indexes++;
        else
            *x = (struct change_index){0};
    }
    return WRITE_OK;
}

/* ---- locks: removed and added keys of each unique index, merged ---- */

static bool removed_is_next(const struct change *ch, const struct change_index *x)
{
    size_t r = ch->removed_key, a = ch->key;
    return r < x->removed.n && (a == x->added.n || slice_cmp(x->removed.keys[r], x->added.keys[a]) < 0);
}

static enum write_result lock_all(struct writer *w, struct change *ch)
{
    for (; ch->index < ch->n_indexes; ch->index++, ch->key = ch->removed_key = 0) {
        const struct change_index *x = &ch->indexes[ch->index];
        if (!is_unique(x->def))
            continue;
        while (ch->key + ch->removed_key < x->removed.n + x->added.n) {
            bool removed = removed_is_next(ch, x);
            struct slice key = removed ? x->removed.keys[ch->removed_key] : x->added.keys[ch->key];
            enum write_result r = writer_lock(w, x->def->keyspace, key);
            if (r != WRITE_OK)
                return r;
            *(removed ? &ch->removed_key : &ch->key) += 1;
        }
    }
    return WRITE_OK;
}

/* ---- owners ---- */

static struct slice entry_key(const struct change *ch, const struct index_def *def, struct slice key)
{
    if (is_unique(def))
        return key;
    uint8_t *whole = arena_alloc(ch->arena, key.n + 8);
    memcpy(whole, key.p, key.n);
    store_be64(whole + key.n, ch->rid);
    return slice_of(whole, key.n + 8);
}

static enum write_result duplicate(struct writer *w, struct change *ch, const struct change_index *x, size_t i,
                                   struct err *err)
{
    size_t at = 0; /* among all keys of the document, beside which the values stand */
    while (!slice_eq(x->after.keys[at], x->added.keys[i]))
        at++;
    ch->dup = x->def;
    ch->dup_values = x->after.values[at];
    dup_key_error(err, w->arena, w->coll->ns, x->def, x->after.values[at]);
    return WRITE_FAILED;
}

static enum write_result look_at_added(struct writer *w, struct change *ch, const struct change_index *x, size_t i,
                                       struct err *err)
{
    struct eng_row row;
    if (!is_unique(x->def))
        return WRITE_OK;
    enum eng_result r = eng_get(w->txn, x->def->keyspace, x->added.keys[i], ENG_GET_NEWEST, &row, w->call);
    if (OV_LIKELY(r == ENG_NOT_FOUND))
        return WRITE_OK;
    if (r != ENG_OK)
        return writer_engine(w, r);
    return ch->rid && load_be64(row.value.p) == ch->rid ? WRITE_OK : duplicate(w, ch, x, i, err);
}

static enum write_result look_at_removed(struct writer *w, struct change *ch, const struct change_index *x, size_t i)
{
    struct eng_row row;
    if (OV_LIKELY(!x->gone))
        return WRITE_OK;
    struct slice key = entry_key(ch, x->def, x->removed.keys[i]);
    enum eng_result r = eng_get(w->txn, x->def->keyspace, key, ENG_GET_NEWEST, &row, w->call);
    if (r != ENG_OK && r != ENG_NOT_FOUND)
        return writer_engine(w, r);
    x->gone[i] = r == ENG_OK && (!is_unique(x->def) || load_be64(row.value.p) == ch->rid);
    return WRITE_OK;
}

static enum write_result look_at_owners(struct writer *w, struct change *ch, struct err *err)
{
    for (; ch->index < ch->n_indexes; ch->index++, ch->key = 0) {
        const struct change_index *x = &ch->indexes[ch->index];
        for (; ch->key < x->added.n + x->removed.n; ch->key++) {
            enum write_result r = ch->key < x->added.n ? look_at_added(w, ch, x, ch->key, err)
                                                       : look_at_removed(w, ch, x, ch->key - x->added.n);
            if (r != WRITE_OK)
                return r;
        }
    }
    return WRITE_OK;
}

/* ---- the batch ---- */

static void store_record(struct writer *w, const struct change *ch)
{
    uint8_t rid[8];
    store_be64(rid, ch->rid);
    struct slice key = slice_of(rid, 8), value = ch->after ? slice_of(ch->after, bdoc_len(ch->after)) : slice_of("", 0);
    const struct update_effect *f = ch->effect;
    if (!ch->after) {
        eng_del(w->txn, w->coll->records, key);
    } else if (!ch->before || !f || !f->n_edits || !ch->before_ts || !eng_caps(w->e)->splice) {
        eng_put(w->txn, w->coll->records, key, value, ch->before ? ENG_UPDATE : ENG_INSERT);
    } else {
        struct eng_edit *edits = arena_alloc(ch->arena, f->n_edits * sizeof(*edits));
        for (uint32_t i = 0; i < f->n_edits; i++)
            edits[i] = (struct eng_edit){f->edits[i].offset, f->edits[i].removed,
                                         slice_of(ch->after + f->edits[i].added_at, f->edits[i].added)};
        eng_splice(w->txn, w->coll->records, key, ch->before_ts, value, edits, f->n_edits);
    }
}

static void store_entries(struct writer *w, struct change *ch)
{
    uint8_t rid[8];
    store_be64(rid, ch->rid);
    for (uint32_t i = 0; i < ch->n_indexes; i++) {
        const struct change_index *x = &ch->indexes[i];
        bool unique = is_unique(x->def);
        if (x->multikey)
            catalog_set_multikey(w->c, w->coll, x->def, x->multikey, w->txn);
        for (size_t k = 0; k < x->removed.n; k++)
            if (!x->gone || x->gone[k])
                eng_del(w->txn, x->def->keyspace, entry_key(ch, x->def, x->removed.keys[k]));
        for (size_t k = 0; k < x->added.n; k++)
            eng_put(w->txn, x->def->keyspace, entry_key(ch, x->def, x->added.keys[k]),
                    unique ? slice_of(rid, 8) : slice_of("", 0), ENG_INSERT);
    }
}

/* ---- the whole ---- */

static enum write_result go_on(struct writer *w, struct change *ch, struct err *err)
{
    enum write_result r;
    switch (ch->stage) {
    case CHANGE_KEYS:
        if (OV_UNLIKELY(w->coll->validator) && validate_change(w, ch, err) != 0)
            return WRITE_FAILED;
        if ((r = all_keys(w, ch, err)) != WRITE_OK)
            return r;
        ch->index = 0;
        ch->key = ch->removed_key = 0;
        ch->stage = CHANGE_LOCK; /* fall through */
    case CHANGE_LOCK:
        if ((r = lock_all(w, ch)) != WRITE_OK)
            return r;
        ch->index = 0;
        ch->key = 0;
        ch->stage = CHANGE_OWNERS; /* fall through */
    case CHANGE_OWNERS:
        if ((r = look_at_owners(w, ch, err)) != WRITE_OK)
            return r;
        ch->stage = CHANGE_STORE; /* fall through */
    case CHANGE_STORE:
        if (!ch->rid) {
            enum eng_result er = catalog_next_rid(w->coll, w->txn, &ch->rid, w->call);
            if (er != ENG_OK)
                return writer_engine(w, er);
        }
        store_record(w, ch);
        store_entries(w, ch);
        if (OV_UNLIKELY(w->outcomes != NULL))
            w->outcomes->note(w->outcomes, ch->before, ch->after);
        w->batch++;
    }
    return WRITE_OK;
}

enum write_result change_step(struct writer *w, struct change *ch, struct err *err)
{
    const uint8_t *before = ch->before;
    enum write_result r = go_on(w, ch, err);
    if (r == WRITE_WAIT && before && !ch->before_kept) { /* it was borrowed from the engine, for this step only */
        ch->before = arena_dup(ch->arena, before, bdoc_len(before));
        ch->before_kept = true;
    }
    return r;
}
