/* validate: every document against the indexes, then every index against the documents, on one snapshot, in slices.
 *
 *   RECORDS   each document: is it one, does the validator accept it, has it all its entries?
 *   COUNT     each index: as many entries as the documents have keys? Then, as none was missing, there are no others
 *   IDENTIFY  only where the numbers differ: each entry's document is read, to tell the entries that belong to none
 *
 * A step may end within a page of a scan: what is in hand is copied, and the scan opened again behind it. */
#include "server/commands/admin.h"
#include "server/query/match/match.h"

const char *const validate_fields[] = {"full",           "background",           "repair",
                                       "metadata",       "fixMultikey",          "enforceFastCount",
                                       "logDiagnostics", "checkBSONConformance", NULL};

enum { LISTED_MAX = 100, SCRATCH_KEEP = 1024 * 1024 };
enum phase { RECORDS, COUNT, IDENTIFY };

struct list { /* an array of the reply */
    struct buf b;
    uint32_t n;
};
struct tally { /* of one index */
    int64_t expected, entries, missing, extra;
};
struct check {
    struct collection *coll;
    struct eng_txn *txn;
    struct eng_scan *scan;
    struct arena *scratch; /* of what is in hand */
    enum phase phase;
    uint32_t at;     /* the index that is counted or identified */
    struct buf last; /* the key behind which the scan goes on; empty: from the start */
    /* in hand: a document, or an entry with its record id */
    bool in_hand;
    struct slice doc, entry;
    uint64_t rid;
    uint32_t index; /* of the document: the next index to look into */
    int64_t n_records, n_invalid, n_failing;
    struct tally tally[INDEX_MAX];
    struct list missing, extra, corrupt;
};

static bool is_unique(const struct index_def *def)
{
    return def->unique || def->is_id;
}

static void close_scan(struct check *c)
{
    eng_scan_close(c->scan);
    c->scan = NULL;
}

static void cleanup(struct command_ctx *cx)
{
    struct check *c = cx->state;
    eng_call_cancel(cx->server->engine, &cx->call);
    close_scan(c);
    eng_end(c->txn);
    c->txn = NULL;
    collection_unref(c->coll);
    c->coll = NULL;
    arena_free(c->scratch);
    c->scratch = NULL;
    buf_free(&c->last);
    buf_free(&c->missing.b);
    buf_free(&c->extra.b);
    buf_free(&c->corrupt.b);
}

/* ---- findings ---- */

static bool list_room(struct list *l)
{
    return l->n < LISTED_MAX;
}

static size_t list_add(struct list *l)
{
    char scratch[12];
    return bw_doc(&l->b, bw_index(l->n++, scratch));
}

static void note_missing(struct check *c, uint32_t i, const struct bval *values)
{
    const struct index_def *def = &c->coll->indexes[i];
    c->tally[i].missing++;
    if (!list_room(&c->missing))
        return;
    size_t at = list_add(&c->missing);
    bw_str(&c->missing.b, "indexName", def->name);
    bw_i64(&c->missing.b, "recordId", (int64_t)c->rid);
    size_t id = bw_doc(&c->missing.b, "idKey");
    bw_val(&c->missing.b, "_id", bdoc_get(c->doc.p, "_id"));
    bw_end(&c->missing.b, id);
    size_t key = bw_doc(&c->missing.b, "indexKey");
    for (uint32_t f = 0; f < def->n_fields; f++)
        bw_val(&c->missing.b, def->paths[f].text, bval_is_missing(values[f]) ? BVAL_NULL : values[f]);
    bw_end(&c->missing.b, key);
    bw_end(&c->missing.b, at);
}

static void note_extra(struct check *c)
{
    c->tally[c->at].extra++;
    if (!list_room(&c->extra))
        return;
    size_t at = list_add(&c->extra);
    bw_str(&c->extra.b, "indexName", c->coll->indexes[c->at].name);
    bw_i64(&c->extra.b, "recordId", (int64_t)c->rid);
    bw_end(&c->extra.b, at);
}

static void note_corrupt(struct check *c)
{
    char scratch[12];
    c->n_invalid++;
    if (list_room(&c->corrupt))
        bw_i64(&c->corrupt.b, bw_index(c->corrupt.n++, scratch), (int64_t)c->rid);
}

/* ---- what is in hand ---- */

static void take(struct check *c)
{
    if (c->scratch && arena_used(c->scratch) > SCRATCH_KEEP) {
        arena_free(c->scratch);
        c->scratch = NULL;
    }
    if (c->scratch)
        arena_reset(c->scratch);
    else
        c->scratch = arena_new(0);
    c->in_hand = true;
    c->index = 0;
}

static void put_down(struct check *c, struct slice key)
{
    c->in_hand = false;
    c->last.len = 0;
    buf_append(&c->last, key.p, key.n);
    buf_byte(&c->last, 0); /* the next key there can be */
}

static enum eng_result look_into(struct check *c, struct command_ctx *cx, uint32_t i)
{
    struct index_def *def = &c->coll->indexes[i];
    struct keyset set = {0};
    struct err err;
    err_init(&err, c->scratch);
    if (def->state != INDEX_READY || keygen(def, c->doc.p, c->scratch, &set, &err) != 0 || set.n == 0)
        return ENG_OK;
    struct slice *keys = arena_alloc(c->scratch, set.n * sizeof(*keys));
    struct eng_row *rows = arena_zalloc(c->scratch, set.n * sizeof(*rows));
    for (size_t k = 0; k < set.n; k++) {
        keys[k] = set.keys[k];
        if (is_unique(def))
            continue;
        uint8_t *whole = arena_alloc(c->scratch, keys[k].n + 8);
        memcpy(whole, keys[k].p, keys[k].n);
        store_be64(whole + keys[k].n, c->rid);
        keys[k] = slice_of(whole, keys[k].n + 8);
    }
    enum eng_result r = eng_multi_get(c->txn, def->keyspace, keys, set.n, ENG_GET_SNAPSHOT, rows, &cx->call);
    if (r != ENG_OK)
        return r;
    c->tally[i].expected += (int64_t)set.n;
    for (size_t k = 0; k < set.n; k++)
        if (!rows[k].value.p || (is_unique(def) && (rows[k].value.n != 8 || load_be64(rows[k].value.p) != c->rid)))
            note_missing(c, i, set.values[k]);
    return ENG_OK;
}

static enum eng_result check_document(struct check *c, struct command_ctx *cx)
{
    for (; c->index < c->coll->n_indexes; c->index++) {
        enum eng_result r = look_into(c, cx, c->index);
        if (r != ENG_OK)
            return r;
    }
    uint8_t key[8];
    store_be64(key, c->rid);
    put_down(c, slice_of(key, 8));
    return ENG_OK;
}

static enum eng_result take_document(struct check *c, struct command_ctx *cx, const struct eng_row *row)
{
    struct err err;
    take(c);
    err_init(&err, c->scratch);
    c->n_records++;
    c->rid = row->key.n == 8 ? load_be64(row->key.p) : 0;
    if (row->key.n != 8 || bson_check(row->value.p, row->value.n, BSON_DEPTH_MAX, &err) != 0) {
        note_corrupt(c);
        put_down(c, row->key);
        return ENG_OK;
    }
    c->doc = arena_slice(c->scratch, row->value);
    if (c->coll->validator && !match_doc(c->coll->validator, c->doc.p, NULL))
        c->n_failing++;
    return check_document(c, cx);
}

/* Has the document that the entry in hand points to this key? */
static enum eng_result check_entry(struct check *c, struct command_ctx *cx)
{
    struct index_def *def = &c->coll->indexes[c->at];
    struct keyset set = {0};
    struct eng_row row;
    struct err err;
    uint8_t rid[8];
    store_be64(rid, c->rid);
    err_init(&err, c->scratch);
    enum eng_result r = eng_get(c->txn, c->coll->records, slice_of(rid, 8), ENG_GET_SNAPSHOT, &row, &cx->call);
    if (r != ENG_OK && r != ENG_NOT_FOUND)
        return r;
    if (r == ENG_OK && bson_check(row.value.p, row.value.n, BSON_DEPTH_MAX, &err) == 0 &&
        keygen(def, row.value.p, c->scratch, &set, &err) != 0)
        set.n = 0;
    struct slice key = slice_of(c->entry.p, c->entry.n - (is_unique(def) ? 0 : 8));
    size_t k = 0;
    while (k < set.n && !slice_eq(set.keys[k], key))
        k++;
    if (k == set.n)
        note_extra(c);
    put_down(c, c->entry);
    return ENG_OK;
}

static enum eng_result take_entry(struct check *c, struct command_ctx *cx, const struct eng_row *row)
{
    const struct index_def *def = &c->coll->indexes[c->at];
    bool whole = is_unique(def) ? row->value.n == 8 : row->key.n >= 8;
    take(c);
    c->rid = whole ? index_entry_rid(def, row) : 0;
    c->entry = arena_slice(c->scratch, row->key);
    if (whole)
        return check_entry(c, cx);
    note_extra(c);
    put_down(c, c->entry);
    return ENG_OK;
}

static enum eng_result count_entry(struct check *c, struct command_ctx *cx, const struct eng_row *row)
{
    (void)cx;
    (void)row;
    c->tally[c->at].entries++;
    return ENG_OK;
}

/* ---- the walk ---- */

static void open_scan(struct check *c)
{
    const struct index_def *def = &c->coll->indexes[c->at];
    struct eng_range range = {.keyspace = c->phase == RECORDS ? c->coll->records : def->keyspace,
                              .keys_only = c->phase == COUNT};
    if (c->last.len)
        range.from = buf_slice(&c->last);
    c->scan = eng_scan_open(c->txn, &range);
}

/* Through what is left of the present keyspace. AGAIN, PENDING … ; DONE with no error: it is through. */
static enum op_status walk(struct check *c, struct command_ctx *cx)
{
    static enum eng_result (*const each[])(struct check *, struct command_ctx *, const struct eng_row *) = {
        [RECORDS] = take_document, [COUNT] = count_entry, [IDENTIFY] = take_entry};
    struct eng_page page = {.more = true};
    enum eng_result r = ENG_OK;
    if (c->in_hand)
        r = c->phase == RECORDS ? check_document(c, cx) : check_entry(c, cx);
    while (r == ENG_OK && page.more) {
        if (!c->scan)
            open_scan(c);
        if ((r = eng_scan_next(c->scan, &page, &cx->call)) == ENG_PENDING)
            return OP_WAIT; /* the scan is kept */
        for (size_t i = 0; r == ENG_OK && i < page.n; i++)
            r = each[c->phase](c, cx, &page.rows[i]);
        if (r == ENG_OK && page.more && op_slice_over(&cx->op))
            return OP_AGAIN;
    }
    close_scan(c);
    if (r == ENG_PENDING)
        return OP_WAIT;
    return r == ENG_OK ? OP_DONE : command_engine_error(cx, r);
}

/* What is to be walked through next; false: nothing is left. */
static bool next_keyspace(struct check *c)
{
    const struct tally *t = &c->tally[c->at];
    c->last.len = 0;
    if (c->phase == RECORDS) {
        c->phase = COUNT;
    } else {
        bool differ = t->missing || t->entries != t->expected;
        if (c->phase == COUNT && differ) {
            c->phase = IDENTIFY;
            return true;
        }
        c->phase = COUNT;
        c->at++;
    }
    while (c->at < c->coll->n_indexes && c->coll->indexes[c->at].state != INDEX_READY)
        c->at++;
    return c->at < c->coll->n_indexes;
}

/* ---- the reply ---- */

static void put_list(struct command_ctx *cx, const char *name, const struct list *l)
{
    size_t at = bw_arr(cx->reply, name);
    buf_append(cx->reply, l->b.p, l->b.len);
    bw_end(cx->reply, at);
}

static void put_texts(struct buf *b, const char *name, const char *const *texts, uint32_t n)
{
    char scratch[12];
    size_t at = bw_arr(b, name);
    for (uint32_t i = 0; i < n; i++)
        bw_str(b, bw_index(i, scratch), texts[i]);
    bw_end(b, at);
}

static bool index_fits(const struct tally *t)
{
    return t->missing == 0 && t->extra == 0 && t->entries == t->expected;
}

static void put_indexes(struct check *c, struct command_ctx *cx)
{
    struct buf *b = cx->reply;
    size_t at = bw_doc(b, "keysPerIndex");
    for (uint32_t i = 0; i < c->coll->n_indexes; i++)
        if (c->coll->indexes[i].state == INDEX_READY)
            bw_i64(b, c->coll->indexes[i].name, c->tally[i].entries);
    bw_end(b, at);
    at = bw_doc(b, "indexDetails");
    for (uint32_t i = 0; i < c->coll->n_indexes; i++) {
        if (c->coll->indexes[i].state != INDEX_READY)
            continue;
        size_t one = bw_doc(b, c->coll->indexes[i].name);
        bw_bool(b, "valid", index_fits(&c->tally[i]));
        bw_end(b, one);
    }
    bw_end(b, at);
}

static enum op_status reply(struct check *c, struct command_ctx *cx)
{
    struct arena *a = cx->op.arena;
    const char *errors[INDEX_MAX + 1], *warnings[3];
    uint32_t n_errors = 0, n_warnings = 0;
    int64_t missing = 0, extra = 0;
    for (uint32_t i = 0; i < c->coll->n_indexes; i++) {
        missing += c->tally[i].missing;
        extra += c->tally[i].extra;
        if (!index_fits(&c->tally[i]))
            errors[n_errors++] = arena_printf(a, "Index with name '%s' has inconsistencies.", c->coll->indexes[i].name);
    }
    if (c->n_invalid)
        errors[n_errors++] = arena_printf(a, "Detected %lld invalid documents.", (long long)c->n_invalid);
    if (missing)
        warnings[n_warnings++] = arena_printf(a, "Detected %lld missing index entries.", (long long)missing);
    if (extra)
        warnings[n_warnings++] = arena_printf(a, "Detected %lld extra index entries.", (long long)extra);
    if (c->n_failing)
        warnings[n_warnings++] = arena_printf(a, "Detected %lld documents not compliant with the collection's schema.",
                                              (long long)c->n_failing);
    bw_str(cx->reply, "ns", c->coll->ns);
    bw_bin(cx->reply, "uuid", 4, c->coll->uuid, 16);
    bw_i64(cx->reply, "nInvalidDocuments", c->n_invalid);
    bw_i64(cx->reply, "nNonCompliantDocuments", c->n_failing);
    bw_i64(cx->reply, "nrecords", c->n_records);
    bw_i32(cx->reply, "nIndexes", (int32_t)c->coll->n_indexes);
    put_indexes(c, cx);
    put_list(cx, "corruptRecords", &c->corrupt);
    bw_bool(cx->reply, "repaired", false);
    bw_bool(cx->reply, "valid", n_errors == 0);
    put_texts(cx->reply, "warnings", warnings, n_warnings);
    put_texts(cx->reply, "errors", errors, n_errors);
    put_list(cx, "extraIndexEntries", &c->extra);
    put_list(cx, "missingIndexEntries", &c->missing);
    return OP_DONE;
}

/* ---- the command ---- */

static int check_options(struct command_ctx *cx)
{
    static const char *const refused[] = {"repair", "metadata", "fixMultikey", "enforceFastCount",
                                          "checkBSONConformance"};
    bool full, background, on;
    int rc;
    if ((rc = arg_bool(cx, "full", false, &full)) != 0 || (rc = arg_bool(cx, "background", false, &background)) != 0 ||
        (rc = arg_bool(cx, "logDiagnostics", false, &on)) != 0)
        return rc;
    for (size_t i = 0; i < OV_LEN(refused); i++) {
        if ((rc = arg_bool(cx, refused[i], false, &on)) != 0)
            return rc;
        if (on)
            return err_set(&cx->op.err, ERR_NOT_IMPLEMENTED, "the option '%s' of validate is not implemented",
                           refused[i]);
    }
    if (full && background)
        return err_set(&cx->op.err, ERR_INVALID_OPTIONS,
                       "Running the validate command with both { background: true } and { full: true } is not "
                       "supported.");
    return 0;
}

static struct check *start(struct command_ctx *cx)
{
    const char *name;
    if (arg_collection(cx, &name) != 0 || check_options(cx) != 0)
        return NULL;
    struct collection *coll = catalog_get(cx->server->catalog, cx->req->db, name);
    if (!coll) {
        command_fail(cx, ERR_NAMESPACE_NOT_FOUND, "Collection '%s.%s' does not exist to validate.", cx->req->db, name);
        return NULL;
    }
    struct check *c = cx->state = arena_zalloc(cx->op.arena, sizeof(*c));
    cx->cleanup = cleanup;
    c->coll = coll;
    c->txn = eng_begin(cx->server->engine, ENG_TXN_READ_ONLY, 0); /* after the definition: what it calls ready is */
    return c;
}

enum op_status cmd_validate(struct command_ctx *cx)
{
    struct check *c = cx->state;
    if (op_check_interrupt(&cx->op) != 0 || (!c && !(c = start(cx))))
        return OP_DONE;
    do {
        enum op_status st = walk(c, cx);
        if (st != OP_DONE) {
            eng_txn_hold(c->txn);
            return st;
        }
        if (cx->op.err.code)
            return OP_DONE;
    } while (next_keyspace(c));
    if (atomic_load(&c->coll->rt->version) != c->coll->version) /* keyspaces may be gone */
        return command_fail(cx, ERR_QUERY_PLAN_KILLED, "the collection %s was changed while it was validated",
                            c->coll->ns);
    return reply(c, cx);
}
