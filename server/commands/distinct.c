/* distinct: the different values of a field, in the order in which they are met; arrays give their elements. */
#include <stdlib.h>

#include "server/commands/crud_read_private.h"

const char *const distinct_fields[] = {"key",         "query",   "hint",      "collation",
                                       "readConcern", "comment", "maxTimeMS", NULL};

struct distinct {
    struct bpath key;
    size_t array_at, start; /* of the values in the reply */
    struct found {          /* hash table of what is in the reply; at 0: free */
        uint64_t hash;
        uint32_t at, n; /* bytes of the value */
        uint8_t type;
    } * slots;
    size_t n, cap;
    struct command_ctx *cx;
};

static struct bval value_at(const struct distinct *d, const struct found *f)
{
    return (struct bval){f->type, f->n, d->cx->reply->p + f->at};
}

static struct found *slot_of(const struct distinct *d, uint64_t hash, struct bval v)
{
    size_t i = (size_t)hash & (d->cap - 1);
    while (d->slots[i].at && (d->slots[i].hash != hash || !bval_eq(value_at(d, &d->slots[i]), v)))
        i = (i + 1) & (d->cap - 1);
    return &d->slots[i];
}

static void grow(struct distinct *d)
{
    struct found *old = d->slots;
    size_t n = d->cap;
    d->cap = OV_MAX((size_t)64, n * 2);
    d->slots = ov_calloc(d->cap, sizeof(*d->slots));
    for (size_t i = 0; i < n; i++)
        if (old[i].at)
            *slot_of(d, old[i].hash, value_at(d, &old[i])) = old[i];
    free(old);
}

/* True: the reply would be too large. */
static bool add(struct distinct *d, struct bval v)
{
    struct buf *reply = d->cx->reply;
    char scratch[12];
    if (d->n * 2 >= d->cap)
        grow(d);
    uint64_t hash = bval_hash(v, 0);
    struct found *f = slot_of(d, hash, v);
    if (f->at)
        return false;
    bw_val(reply, bw_index((uint32_t)d->n++, scratch), v);
    *f = (struct found){hash, (uint32_t)(reply->len - v.n), v.n, v.type};
    return reply->len - d->start > BSON_DOC_MAX;
}

static bool visit(void *arg, struct bval v)
{
    struct biter it;
    struct belem e;
    if (v.type != BSON_TYPE_ARRAY)
        return add(arg, v);
    for (biter_init(&it, bval_doc(v)); biter_next(&it, &e);)
        if (add(arg, e.v))
            return true;
    return false;
}

/* ---- the command ---- */

static void free_slots(void *arg)
{
    free(((struct distinct *)arg)->slots);
}

static struct reading *start(struct command_ctx *cx)
{
    const char *coll, *key;
    const uint8_t *query;
    struct bval hint;
    struct match *filter;
    struct distinct *d = arena_zalloc(cx->op.arena, sizeof(*d));
    if (arg_collection(cx, &coll) != 0 || arg_string(cx, "key", &key, true) != 0 || arg_doc(cx, "query", &query) != 0 ||
        arg_hint(cx, &hint) != 0 || arg_simple_collation(cx) != 0 || arg_read_concern(cx) != 0 ||
        bpath_parse(cx->op.arena, key, &d->key, &cx->op.err) != 0)
        return NULL;
    struct reading *r = read_new(cx, false);
    if (match_parse(cx->op.arena, query, &filter, &cx->op.err) != 0)
        return NULL;
    read_begin(cx, r, coll);
    if (read_open(cx, r, filter, NULL, hint, 0, 0) != 0)
        return NULL;
    r->cur->pipe = pipeline_new(r->cur->arena, r->exec, NULL, NULL);
    r->during = "Executor error during distinct command";
    r->own = d;
    d->cx = cx;
    d->start = cx->reply->len;
    d->array_at = bw_arr(cx->reply, "values");
    arena_on_reset(cx->op.arena, free_slots, d);
    return r;
}

enum op_status cmd_distinct(struct command_ctx *cx)
{
    struct reading *r = cx->state;
    enum exec_status s;
    struct exec_row row;
    if (op_check_interrupt(&cx->op) != 0)
        return OP_DONE;
    if (!r) {
        if (!read_caught_up(cx))
            return OP_WAIT;
        if (!(r = start(cx)))
            return OP_DONE;
    } else if (read_still_there(cx, r) != 0) {
        return OP_DONE;
    }
    struct distinct *d = r->own;
    while ((s = exec_next(r->exec, &cx->op, &cx->call, &row, &cx->op.err)) == EXEC_ROW)
        if (bpath_values(&d->key, row.doc, visit, d))
            return command_fail(cx, 17217, "distinct too big, 16mb cap");
    if (s != EXEC_EOF)
        return read_stopped(cx, r, s);
    bw_end(cx->reply, d->array_at);
    return OP_DONE;
}
