/* START -> BY_ID | CANDIDATE -> LOCK -> READ -> CHANGE -> (COMMIT) -> CANDIDATE | DONE
 *                     |-> nothing left: COMMIT -> NONE -> UPSERT -> COMMIT -> DONE
 *
 * Candidates come from one snapshot, so that no document is met twice; what is changed is the newest version, read under the lock of its
 * record, and matched again if it is another one. A document that comes to nothing gives its lock back at once: whoever waits for a lock
 * holds none of another document. */
#include "server/write/modify.h"

enum { UPSERT_RETRIES = 16, SORTED_CANDIDATES = 16 };

static void close_plan(struct modify *m)
{
    exec_close(m->exec);
    eng_end(m->reader);
    m->exec = NULL;
    m->reader = NULL;
}

void modify_end(struct modify *m)
{
    close_plan(m);
}

static enum write_result failed(struct writer *w, const struct modify *m, struct err *err)
{
    err_prefix(err, arena_printf(w->arena, "Plan executor error during %s :: caused by :: ", m->verb));
    return WRITE_FAILED;
}

static void commit_then(struct modify *m, enum modify_stage next)
{
    m->stage = MODIFY_COMMIT;
    m->after_commit = next;
}

/* ---- finding ---- */

static bool can_be_id(struct bval v)
{
    switch (v.type) {
    case BSON_TYPE_ARRAY:
    case BSON_TYPE_REGEX:
    case BSON_TYPE_UNDEFINED:
    case BSON_TYPE_EOD:
        return false;
    default:
        return true;
    }
}

static bool names_one_id(const struct modify *m, struct bval *id)
{
    return m->hint.type == BSON_TYPE_EOD && match_equality(m->filter, "_id", id) && can_be_id(*id);
}

/* One document in an asked order: the sort need not keep all. Should others have taken the few, the search begins anew. */
static bool few_will_do(const struct modify *m)
{
    return m->sort && !m->multi;
}

static enum write_result start(struct writer *w, struct modify *m, struct err *err)
{
    enum write_result r = writer_enter(w, m->upsert, err);
    struct bval id;
    if (r != WRITE_OK)
        return r;
    m->exact = m->by_id = false;
    m->matched = m->changed = 0;
    if (!w->coll) {
        m->stage = MODIFY_DONE;
        return WRITE_OK;
    }
    if (names_one_id(m, &id)) {
        m->by_id = true;
        m->exact = m->filter->op == MATCH_EQ;
        w->key.len = 0;
        key_encode(&w->key, id, false);
        m->stage = MODIFY_BY_ID;
        return WRITE_OK;
    }
    m->reader = eng_begin(w->e, ENG_TXN_READ_ONLY, 0);
    if (plan_make(m->arena, w->coll, m->filter, m->sort, m->hint, eng_snapshot(m->reader), &m->plan, err) != 0) {
        close_plan(m);
        return WRITE_FAILED;
    }
    m->candidates = 0;
    m->exec = exec_open(m->arena, &m->plan, w->coll, m->reader, 0, few_will_do(m) ? SORTED_CANDIDATES : 0);
    m->stage = MODIFY_CANDIDATE;
    return WRITE_OK;
}

static enum write_result by_id(struct writer *w, struct modify *m)
{
    struct eng_row row;
    enum eng_result r =
        eng_get(w->txn, w->coll->indexes[0].keyspace, buf_slice(&w->key), ENG_GET_NEWEST, &row, w->call);
    if (r == ENG_NOT_FOUND) {
        m->stage = MODIFY_NONE;
        return WRITE_OK;
    }
    if (r != ENG_OK)
        return writer_engine(w, r);
    m->rid = load_be64(row.value.p);
    m->matched_ts = 0;
    m->stage = MODIFY_LOCK;
    return WRITE_OK;
}

static enum write_result candidate(struct writer *w, struct modify *m, struct err *err)
{
    struct exec_row row;
    switch (exec_next(m->exec, w->op, w->call, &row, err)) {
    case EXEC_ROW:
        m->candidates++;
        m->rid = row.rid;
        m->matched_ts = row.ts;
        m->array_index = row.array_index;
        m->stage = MODIFY_LOCK;
        return WRITE_OK;
    case EXEC_EOF:
        if (few_will_do(m) && m->candidates == SORTED_CANDIDATES) {
            close_plan(m);
            m->stage = MODIFY_START;
        } else {
            commit_then(m, m->matched ? MODIFY_DONE : MODIFY_NONE);
        }
        return WRITE_OK;
    case EXEC_AGAIN:
        m->again = true;
        commit_then(m, MODIFY_CANDIDATE); /* nothing is locked while others run */
        return WRITE_OK;
    case EXEC_WAIT:
        return WRITE_WAIT;
    case EXEC_ERROR:
        break;
    }
    return failed(w, m, err);
}

/* ---- one document ---- */

/* Not this one after all. */
static void pass_over(struct writer *w, struct modify *m)
{
    writer_drop_document(w);
    m->stage = m->by_id ? MODIFY_NONE : MODIFY_CANDIDATE;
}

static void count(struct writer *w, struct modify *m, bool changed)
{
    m->matched++;
    m->changed += changed;
    if (!changed)
        writer_drop_document(w);
    if (!m->multi || m->by_id)
        commit_then(m, MODIFY_DONE);
    else if (w->op && op_slice_over(w->op)) {
        m->again = true;
        commit_then(m, MODIFY_CANDIDATE);
    } else if (writer_batch_full(w))
        commit_then(m, MODIFY_CANDIDATE);
    else
        m->stage = MODIFY_CANDIDATE;
}

static enum write_result apply(struct writer *w, struct modify *m, struct arena *a, const struct eng_row *row,
                               struct err *err)
{
    m->effect = (struct update_effect){0};
    if (m->keep_before)
        m->before = arena_dup(w->arena, row->value.p, row->value.n);
    if (m->update) {
        if (update_apply(m->update, row->value.p, m->array_index, a, &w->doc, &m->effect, err) != 0)
            return failed(w, m, err);
        if (!m->effect.changed) {
            if (m->keep_after)
                m->after = arena_dup(w->arena, row->value.p, row->value.n);
            count(w, m, false);
            return WRITE_OK;
        }
    }
    m->change = (struct change){
        .arena = a,
        .rid = m->rid,
        .before = row->value.p,
        .before_ts = row->ts,
        .after = m->update ? w->doc.p : NULL,
        .update = m->update,
        .effect = &m->effect,
    };
    m->stage = MODIFY_CHANGE;
    return WRITE_OK;
}

static enum write_result read_newest(struct writer *w, struct modify *m, struct err *err)
{
    struct eng_row row;
    struct match_result found = {.array_index = -1};
    uint8_t rid[8];
    store_be64(rid, m->rid);
    enum eng_result r = eng_get(w->txn, w->coll->records, slice_of(rid, 8), ENG_GET_NEWEST, &row, w->call);
    if (r == ENG_NOT_FOUND && m->by_id) { /* removed; another record may have got the _id since */
        writer_drop_document(w);
        m->stage = MODIFY_BY_ID;
        return WRITE_OK;
    }
    if (r == ENG_NOT_FOUND) {
        pass_over(w, m);
        return WRITE_OK;
    }
    if (r != ENG_OK)
        return writer_engine(w, r);
    if (m->exact) {
        m->array_index = -1;
    } else if (!m->matched_ts || m->matched_ts != row.ts) {
        if (!match_doc(m->filter, row.value.p, &found)) {
            pass_over(w, m);
            return WRITE_OK;
        }
        m->array_index = found.array_index;
    }
    return apply(w, m, writer_next_document(w), &row, err);
}

static enum write_result lock_record(struct writer *w, struct modify *m)
{
    uint8_t rid[8];
    store_be64(rid, m->rid);
    enum write_result r = writer_lock(w, w->coll->records, slice_of(rid, 8));
    if (r == WRITE_OK)
        m->stage = MODIFY_READ;
    return r;
}

static enum write_result change(struct writer *w, struct modify *m, struct err *err)
{
    enum write_result r = change_step(w, &m->change, err);
    if (r == WRITE_FAILED)
        return failed(w, m, err);
    if (r != WRITE_OK)
        return r;
    if (m->keep_after)
        m->after = m->change.after;
    count(w, m, true);
    return WRITE_OK;
}

/* ---- upserts ---- */

/* Another one has inserted what the filter looks for by equality on a whole unique key: it is to be found now. */
static bool is_race(const struct modify *m, const struct err *err)
{
    const struct index_def *dup = m->change.dup;
    struct bval v;
    if (err->code != ERR_DUPLICATE_KEY || !dup || m->retries >= UPSERT_RETRIES)
        return false;
    for (uint32_t i = 0; i < dup->n_fields; i++)
        if (!match_equality(m->filter, dup->paths[i].text, &v) || !bval_eq(v, m->change.dup_values[i]))
            return false;
    return true;
}

static enum write_result none(struct writer *w, struct modify *m, struct err *err)
{
    struct bval id;
    close_plan(m);
    if (!m->upsert) {
        commit_then(m, MODIFY_DONE);
        return WRITE_OK;
    }
    struct arena *a = writer_next_document(w);
    if (update_upsert(m->update, m->filter, a, &w->doc, &id, err) != 0)
        return failed(w, m, err);
    m->upserted = (struct bval){id.type, id.n, arena_dup(w->arena, id.p, id.n)};
    m->change = (struct change){.arena = a, .after = w->doc.p};
    m->stage = MODIFY_UPSERT;
    return WRITE_OK;
}

static enum write_result upsert(struct writer *w, struct modify *m, struct err *err)
{
    enum write_result r = change_step(w, &m->change, err);
    if (r == WRITE_FAILED) {
        m->upserted = BVAL_MISSING;
        if (!is_race(m, err))
            return failed(w, m, err);
        err_clear(err);
        m->retries++;
        writer_drop_document(w);
        m->stage = MODIFY_START;
        return WRITE_OK;
    }
    if (r == WRITE_OK) {
        if (m->keep_after)
            m->after = m->change.after;
        commit_then(m, MODIFY_DONE);
    }
    return r;
}

/* ---- the whole ---- */

static enum write_result commit(struct writer *w, struct modify *m)
{
    enum write_result r = writer_commit(w);
    if (r != WRITE_OK)
        return r;
    m->stage = m->after_commit;
    if (!m->again)
        return WRITE_OK;
    m->again = false;
    return WRITE_AGAIN;
}

static enum write_result once(struct writer *w, struct modify *m, struct err *err)
{
    switch (m->stage) {
    case MODIFY_START:
        return start(w, m, err);
    case MODIFY_BY_ID:
        return by_id(w, m);
    case MODIFY_CANDIDATE:
        return candidate(w, m, err);
    case MODIFY_LOCK:
        return lock_record(w, m);
    case MODIFY_READ:
        return read_newest(w, m, err);
    case MODIFY_CHANGE:
        return change(w, m, err);
    case MODIFY_COMMIT:
        return commit(w, m);
    case MODIFY_NONE:
        return none(w, m, err);
    case MODIFY_UPSERT:
        return upsert(w, m, err);
    case MODIFY_DONE:
        break;
    }
    return WRITE_OK;
}

static void hold(struct writer *w, struct modify *m)
{
    if (m->exec) {
        exec_suspend(m->exec);
        eng_txn_hold(m->reader);
    }
    writer_hold(w);
}

enum write_result modify_step(struct writer *w, struct modify *m, struct err *err)
{
    enum write_result r = WRITE_OK;
    while (r == WRITE_OK && m->stage != MODIFY_DONE) {
        r = once(w, m, err);
        if (r == WRITE_RESTART) { /* the batch's locks go; the document is met anew */
            m->matched_ts = 0;
            commit_then(m, m->stage == MODIFY_UPSERT ? MODIFY_START : MODIFY_LOCK);
            r = WRITE_OK;
        }
    }
    if (r == WRITE_WAIT || r == WRITE_AGAIN)
        hold(w, m);
    else
        close_plan(m);
    return r;
}
