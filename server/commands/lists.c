/* listDatabases, listCollections, listIndexes: what the catalog holds, as documents. They are built in slices from references taken at the
 * start; those of a cursor are built to the last before the first batch, so that all of them are of the same moment. */
#include "server/commands/crud_read_private.h"
#include "server/commands/ddl.h"

const char *const list_databases_fields[] = {"filter", "nameOnly", "authorizedDatabases", NULL};
const char *const list_collections_fields[] = {"filter", "nameOnly", "authorizedCollections", "cursor", NULL};
const char *const list_indexes_fields[] = {"cursor", "includeBuildUUIDs", "includeIndexBuildInfo", NULL};

struct listing {
    struct command_ctx *cx;
    struct collection **all;
    size_t n, cap, at;
    struct match *filter;
    bool name_only;
    struct buf one;  /* the document being tried */
    struct buf docs; /* listCollections: those that have passed */
    size_t array;    /* listDatabases: where it begins in the reply */
    uint32_t shown;
    int64_t batch_size;
    int64_t total;
};

static void note(void *arg, struct collection *coll)
{
    struct listing *l = arg;
    if (l->n == l->cap) {
        size_t cap = OV_MAX(64, l->cap * 2);
        struct collection **all = arena_alloc(l->cx->op.arena, cap * sizeof(struct collection *));
        if (l->n)
            memcpy(all, l->all, l->n * sizeof(struct collection *));
        l->all = all;
        l->cap = cap;
    }
    l->all[l->n++] = collection_ref(coll);
}

static void cleanup(struct command_ctx *cx)
{
    struct listing *l = cx->state;
    for (; l->at < l->n; l->at++)
        collection_unref(l->all[l->at]);
    buf_free(&l->one);
    buf_free(&l->docs);
}

/* NULL: op.err tells. */
static struct listing *start(struct command_ctx *cx, const char *db)
{
    const uint8_t *filter;
    struct listing *l = arena_zalloc(cx->op.arena, sizeof(*l));
    if (arg_doc(cx, "filter", &filter) != 0 || arg_bool(cx, "nameOnly", false, &l->name_only) != 0 ||
        match_parse(cx->op.arena, filter, &l->filter, &cx->op.err) != 0)
        return NULL;
    l->cx = cx;
    buf_init(&l->one);
    buf_init(&l->docs);
    catalog_each(cx->server->catalog, db, note, l);
    cx->state = l;
    cx->cleanup = cleanup;
    return l;
}

/* ---- listDatabases ---- */

static int64_t size_on_disk(struct engine *e, const struct collection *coll)
{
    uint64_t disk = 0, logical, sum;
    eng_keyspace_size(e, coll->records, &sum, &logical);
    for (uint32_t i = 0; i < coll->n_indexes; i++) {
        eng_keyspace_size(e, coll->indexes[i].keyspace, &disk, &logical);
        sum += disk;
    }
    return (int64_t)sum;
}

/* The database whose first collection is next. */
static void show_database(struct listing *l)
{
    const struct collection *first = l->all[l->at];
    int64_t size = 0;
    size_t end = l->at;
    for (; end < l->n && strcmp(l->all[end]->db, first->db) == 0; end++)
        size += l->name_only ? 0 : size_on_disk(l->cx->server->engine, l->all[end]);
    l->one.len = 0;
    size_t doc = bw_begin(&l->one);
    bw_str(&l->one, "name", first->db);
    if (!l->name_only) {
        bw_i64(&l->one, "sizeOnDisk", size);
        bw_bool(&l->one, "empty", false);
    }
    bw_end(&l->one, doc);
    if (match_doc(l->filter, l->one.p, NULL)) {
        char scratch[12];
        bw_rawdoc(l->cx->reply, bw_index(l->shown++, scratch), l->one.p);
        l->total += size;
    }
    while (l->at < end)
        collection_unref(l->all[l->at++]);
}

enum op_status cmd_list_databases(struct command_ctx *cx)
{
    struct listing *l = cx->state;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!l) {
        if (!(l = start(cx, NULL)))
            return OP_DONE;
        l->array = bw_arr(cx->reply, "databases");
    }
    while (l->at < l->n) {
        show_database(l);
        if (op_slice_over(&cx->op))
            return OP_AGAIN;
    }
    bw_end(cx->reply, l->array);
    if (!l->name_only) {
        bw_i64(cx->reply, "totalSize", l->total);
        bw_i64(cx->reply, "totalSizeMb", l->total >> 20);
    }
    return OP_DONE;
}

/* ---- listCollections ---- */

static void describe(struct listing *l, const struct collection *coll)
{
    enum { UUID_SUBTYPE = 4 };
    struct buf *b = &l->one;
    b->len = 0;
    size_t doc = bw_begin(b);
    bw_str(b, "name", coll->name);
    bw_str(b, "type", "collection");
    if (!l->name_only) {
        bw_rawdoc(b, "options", coll->options);
        size_t info = bw_doc(b, "info");
        bw_bool(b, "readOnly", false);
        bw_bin(b, "uuid", UUID_SUBTYPE, coll->uuid, sizeof(coll->uuid));
        bw_end(b, info);
        bw_rawdoc(b, "idIndex", coll->indexes[0].spec);
    }
    bw_end(b, doc);
}

enum op_status cmd_list_collections(struct command_ctx *cx)
{
    struct listing *l = cx->state;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!l && (!(l = start(cx, cx->req->db)) || arg_cursor_batch_size(cx, &l->batch_size) != 0))
        return OP_DONE;
    while (l->at < l->n) {
        describe(l, l->all[l->at]);
        if (match_doc(l->filter, l->one.p, NULL))
            buf_append(&l->docs, l->one.p, l->one.len);
        collection_unref(l->all[l->at++]);
        if (op_slice_over(&cx->op))
            return OP_AGAIN;
    }
    const char *ns = arena_printf(cx->op.arena, "%s.$cmd.listCollections", cx->req->db);
    enum op_status s = read_documents(cx, ns, buf_slice(&l->docs), l->batch_size); /* over documents it never waits */
    buf_free(&l->one);
    buf_free(&l->docs);
    return s;
}

/* ---- listIndexes ---- */

enum op_status cmd_list_indexes(struct command_ctx *cx)
{
    const char *name;
    int64_t batch_size;
    if (op_check_interrupt(&cx->op) != 0 || arg_collection(cx, &name) != 0 ||
        arg_cursor_batch_size(cx, &batch_size) != 0)
        return OP_DONE;
    struct collection *coll = catalog_get(cx->server->catalog, cx->req->db, name);
    if (!coll)
        return command_fail(cx, ERR_NAMESPACE_NOT_FOUND, "ns does not exist: %s.%s", cx->req->db, name);
    struct buf docs;
    buf_init(&docs);
    for (uint32_t i = 0; i < coll->n_indexes; i++)
        buf_append(&docs, coll->indexes[i].spec, bdoc_len(coll->indexes[i].spec));
    enum op_status s = read_documents(cx, coll->ns, buf_slice(&docs), batch_size);
    buf_free(&docs);
    collection_unref(coll);
    return s;
}
