/* Replay: a batch of the journal into the memtable, as its commit did it. Runs at start-up, before anybody else is there; the locks are
 * taken all the same, since the flush thread's assertions want them.
 *
 * What can go wrong: bytes that are no batch (a newer version, or damage that its checksum does not show), and a splice whose base is
 * missing or whose result differs (R24). All are ENG_CORRUPT, except in a keyspace that has been dropped. */
#include <inttypes.h>
#include <stdio.h>

#include "storage/engine_private.h"

static enum eng_result corrupt(struct eng_error *err, const struct journal_record *r, const char *what)
{
    err->result = ENG_CORRUPT;
    snprintf(err->msg, sizeof(err->msg), "journal record at position %" PRIu64 ": %s", r->lsn, what);
    return ENG_CORRUPT;
}

static bool is_dropped(const struct engine *e, uint64_t keyspace)
{
    const struct count *k = counts_find(&e->counts, keyspace);
    return k && atomic_load_explicit(&k->dropped, memory_order_relaxed) != 0;
}

/* The whole value of a splice, into *out. */
static enum eng_result rebuild(struct engine *e, const struct journal_record *rec, const struct mutation *m,
                               uint64_t hash, struct buf *out, struct eng_error *err)
{
    struct slice base;
    uint64_t ts;
    enum eng_result r = layers_get(e, layers_now(e), hash, m->keyspace, m->key, UINT64_MAX, &base, &ts);
    if (r != ENG_OK && r != ENG_NOT_FOUND)
        return r;
    if (r == ENG_NOT_FOUND || ts != splice_base(m->value))
        return corrupt(err, rec, "the version that a splice changes is missing");
    out->len = 0;
    if (!splice_apply(m->value, base, e->caps.max_value_bytes, out))
        return corrupt(err, rec, "a splice does not give the value that was written");
    return ENG_OK;
}

static enum eng_result apply_one(struct engine *e, const struct journal_record *rec, const struct mutation *m,
                                 struct buf *scratch, struct eng_error *err)
{
    if (m->type == MUT_LOG)
        return ENG_OK;
    if (m->type == MUT_DROP) {
        engine_apply_drop(e, m->keyspace, m->ts);
        return ENG_OK;
    }
    if (m->key.n > e->caps.max_key_bytes || m->value.n > e->caps.max_value_bytes + SPLICE_HEADER)
        return corrupt(err, rec, "a key or value is too large");
    uint64_t hash = key_hash(m->keyspace, m->key);
    struct memtable *table = layers_now(e)->active;
    struct slice value = m->value;
    if (m->type == MUT_SPLICE) {
        if (is_dropped(e, m->keyspace)) /* R24 */
            return ENG_OK;
        enum eng_result r = rebuild(e, rec, m, hash, scratch, err);
        if (r != ENG_OK)
            return r;
        value = buf_slice(scratch);
    }
    const struct mt_node *n = memtable_find(table, hash, m->keyspace, m->key);
    if (n && atomic_load_explicit(&n->newest, memory_order_relaxed)->ts >= m->ts)
        return corrupt(err, rec, "a key is written twice at one timestamp, or timestamps go back");
    enum version_kind kind = m->type == MUT_INSERT   ? VERSION_INSERT
                             : m->type == MUT_DELETE ? VERSION_DELETE
                                                     : VERSION_UPDATE;
    memtable_add(table, hash, m->keyspace, m->key, m->ts, kind, value, NULL);
    if (kind != VERSION_UPDATE)
        counts_add(&e->counts, counts_get(&e->counts, m->keyspace), kind == VERSION_INSERT ? 1 : -1);
    return ENG_OK;
}

enum eng_result replay_batch(void *arg, const struct journal_record *rec, struct eng_error *err)
{
    struct engine *e = arg;
    struct batch_reader reader;
    struct mutation m;
    struct buf scratch;
    enum eng_result r = ENG_OK;
    int more;
    if (!batch_open(&reader, rec->payload, rec->first_ts))
        return corrupt(err, rec, "not a batch of a version that this program knows");
    if (flush_wanted(e) && !flush_seal(e, false))
        OV_ASSERT(false); /* start-up knows no limit */
    buf_init(&scratch);
    epoch_enter(e, &e->visible); /* blocks of runs that bases are read from stay */
    mutex_lock(&e->commit_lock);
    while (r == ENG_OK && (more = batch_next(&reader, &m)) != 0) {
        if (more < 0)
            r = corrupt(err, rec, "a mutation does not fit");
        else
            r = apply_one(e, rec, &m, &scratch, err);
    }
    struct mt_version *large = NULL;
    memtable_trim(layers_now(e)->active, UINT64_MAX, &large); /* no reader is there yet */
    e->replay_end = rec->end;
    e->last_ts = OV_MAX(e->last_ts, rec->first_ts + (rec->count ? rec->count - 1 : 0));
    atomic_store(&e->visible, e->last_ts);
    mutex_unlock(&e->commit_lock);
    epoch_leave();
    while (large) {
        struct mt_version *v = large;
        large = atomic_load_explicit(&v->older, memory_order_relaxed);
        memtable_large_free(v);
    }
    e->replayed_bytes += rec->end - rec->lsn;
    buf_free(&scratch);
    return r;
}
