/* Documents against validators, and the report on those that fail: the filter is walked as it was written, each condition parsed and tried
 * alone, and those that do not hold (or under $nor and $not: those that do) are told. */
#include "server/write/validate.h"

#include "server/base/log.h"
#include "server/query/match/match.h"

enum { DETAILS_MAX = 256 * 1024 }; /* a longer report is left out */

/* ---- conditions ---- */

struct condition {
    const char *name;      /* the field, or $and, $or, $nor, … */
    const char *op;        /* the operator; NULL: an equality that names none, or a tree */
    const uint8_t *filter; /* it alone, as a filter */
    struct bval operand;
    bool holds;
};
struct conditions {
    struct condition *c;
    uint32_t n;
};
struct report {
    struct arena *a;
    const uint8_t *doc;
    struct buf *out;
};

static bool holds(struct report *r, const uint8_t *filter)
{
    struct match *m;
    struct err err;
    err_init(&err, r->a);
    return match_parse(r->a, filter, &m, &err) == 0 && match_doc(m, r->doc, NULL);
}

static const uint8_t *keep(struct report *r, struct buf *b)
{
    const uint8_t *doc = arena_dup(r->a, b->p, b->len);
    buf_free(b);
    return doc;
}

static const uint8_t *one_field(struct report *r, const char *name, struct bval v)
{
    struct buf b;
    buf_init(&b);
    size_t at = bw_begin(&b);
    bw_val(&b, name, v);
    bw_end(&b, at);
    return keep(r, &b);
}

static const uint8_t *one_operator(struct report *r, const char *field, const struct belem *op, struct bval options)
{
    struct buf b;
    buf_init(&b);
    size_t at = bw_begin(&b), in = bw_doc(&b, field);
    bw_val(&b, op->name, op->v);
    bw_val(&b, "$options", options);
    bw_end(&b, in);
    bw_end(&b, at);
    return keep(r, &b);
}

static bool is_operators(struct bval v)
{
    struct biter it;
    struct belem e;
    if (v.type != BSON_TYPE_DOCUMENT)
        return false;
    biter_init(&it, bval_doc(v));
    return biter_next(&it, &e) && e.name[0] == '$' && strcmp(e.name, "$ref") != 0 && strcmp(e.name, "$id") != 0 &&
           strcmp(e.name, "$db") != 0;
}

static uint32_t count_fields(const uint8_t *doc)
{
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    for (biter_init(&it, doc); biter_next(&it, &e);)
        n++;
    return n;
}

static void add_operators(struct report *r, const char *field, const uint8_t *ops, struct conditions *out)
{
    struct biter it;
    struct belem e;
    struct bval options = bdoc_get(ops, "$options");
    for (biter_init(&it, ops); biter_next(&it, &e);) {
        if (strcmp(e.name, "$options") == 0)
            continue;
        bool regex = strcmp(e.name, "$regex") == 0;
        out->c[out->n++] = (struct condition){.name = field,
                                              .op = e.name,
                                              .operand = e.v,
                                              .filter = one_operator(r, field, &e, regex ? options : BVAL_MISSING)};
    }
}

static struct conditions split(struct report *r, const uint8_t *filter)
{
    struct conditions out = {0};
    struct biter it;
    struct belem e;
    uint32_t n = 0;
    for (biter_init(&it, filter); biter_next(&it, &e);)
        n += is_operators(e.v) ? count_fields(bval_doc(e.v)) : 1;
    out.c = arena_zalloc(r->a, (n + 1) * sizeof(*out.c));
    for (biter_init(&it, filter); biter_next(&it, &e);) {
        if (strcmp(e.name, "$comment") == 0)
            continue;
        if (e.name[0] != '$' && is_operators(e.v))
            add_operators(r, e.name, bval_doc(e.v), &out);
        else
            out.c[out.n++] = (struct condition){.name = e.name, .operand = e.v, .filter = one_field(r, e.name, e.v)};
    }
    for (uint32_t i = 0; i < out.n; i++)
        out.c[i].holds = holds(r, out.c[i].filter);
    return out;
}

/* ---- what is wrong with one ---- */

static const struct reason {
    const char *op, *fails, *holds;
} reasons[] = {
    {"$exists", "path does not exist", "path does exist"},
    {"$type", "type did not match", "type did match"},
    {"$in", "no matching value found in array", "matching value found in array"},
    {"$nin", "matching value found in array", "no matching value found in array"},
    {"$ne", "comparison succeeded", "comparison failed"},
    {"$regex", "regular expression did not match", "regular expression did match"},
    {"$size", "array length was not equal to given size", "array length was equal to given size"},
    {"$mod", "$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"},
    {"$elemMatch", "array did not satisfy the child predicate", "array did satisfy the child predicate"},
    {"$all", "array did not contain all specified values", "array did contain all specified values"},
    {"$bitsAllSet", "bitwise operator failed to match", "bitwise operator matched successfully"},
    {"$bitsAllClear", "bitwise operator failed to match", "bitwise operator matched successfully"},
    {"$bitsAnySet", "bitwise operator failed to match", "bitwise operator matched successfully"},
    {"$bitsAnyClear", "bitwise operator failed to match", "bitwise operator matched successfully"},
    {"", "comparison failed", "comparison succeeded"},
};

static const char *reason_of(const char *op, bool inverted)
{
    const struct reason *r = reasons;
    while (*r->op && strcmp(r->op, op) != 0)
        r++;
    return inverted ? r->holds : r->fails;
}

struct considered {
    struct report *r;
    struct bval v[16]; /* the first ones */
    uint32_t n;
};

static bool note_value(void *arg, struct bval v, bool in_array, int32_t index)
{
    struct considered *c = arg;
    (void)in_array;
    (void)index;
    if (!bval_is_missing(v) && c->n < OV_LEN(c->v))
        c->v[c->n++] = v;
    return false;
}

static void put_considered(struct report *r, const struct considered *c, bool type)
{
    char scratch[12];
    if (c->n == 1) {
        bw_val(r->out, "consideredValue", c->v[0]);
        if (type)
            bw_str(r->out, "consideredType", bval_type_name(c->v[0].type));
        return;
    }
    size_t at = bw_arr(r->out, "consideredValues");
    for (uint32_t i = 0; i < c->n; i++)
        bw_val(r->out, bw_index(i, scratch), c->v[i]);
    bw_end(r->out, at);
}

static void put_filter(struct report *r, const uint8_t *filter, bool inverted);

static void put_not(struct report *r, const struct condition *c, bool inverted)
{
    size_t at = bw_doc(r->out, "details");
    put_filter(r, one_field(r, c->name, c->operand), !inverted);
    bw_end(r->out, at);
}

static void put_leaf(struct report *r, const struct condition *c, bool inverted)
{
    const char *op = c->op                                ? c->op
                     : c->operand.type == BSON_TYPE_REGEX ? "$regex"
                     : c->name[0] == '$'                  ? c->name
                                                          : "$eq";
    struct considered values = {.r = r};
    struct bpath path;
    struct err err;
    err_init(&err, r->a);
    bw_str(r->out, "operatorName", op);
    if (strcmp(op, "$not") == 0 && is_operators(c->operand)) {
        put_not(r, c, inverted);
        return;
    }
    bw_rawdoc(r->out, "specifiedAs", c->filter);
    if (c->name[0] == '$') /* $alwaysFalse and the like */
        return;
    if (bpath_parse_any(r->a, c->name, &path, &err) == 0)
        bpath_walk(&path, r->doc, true, note_value, &values);
    bool exists = strcmp(op, "$exists") == 0;
    if (exists && !bval_truthy(c->operand))
        inverted = !inverted;
    bw_str(r->out, "reason", values.n || exists ? reason_of(op, inverted) : "field was missing");
    if (values.n && !exists)
        put_considered(r, &values, strcmp(op, "$type") == 0);
}

/* ---- several ---- */

static void put_condition(struct report *r, const struct condition *c, bool inverted);

static void put_clauses(struct report *r, const char *op, const struct conditions *all, bool inverted)
{
    bool which = strcmp(op, "$nor") == 0 ? !inverted : inverted; /* those that hold */
    char scratch[12];
    uint32_t n = 0;
    bw_str(r->out, "operatorName", op);
    size_t at = bw_arr(r->out, which ? "clausesSatisfied" : "clausesNotSatisfied");
    for (uint32_t i = 0; i < all->n && r->out->len < DETAILS_MAX; i++) {
        if (all->c[i].holds != which)
            continue;
        size_t one = bw_doc(r->out, bw_index(n++, scratch));
        bw_i32(r->out, "index", (int32_t)i);
        size_t details = bw_doc(r->out, "details");
        put_condition(r, &all->c[i], which);
        bw_end(r->out, details);
        bw_end(r->out, one);
    }
    bw_end(r->out, at);
}

static void put_tree(struct report *r, const struct condition *c, bool inverted)
{
    struct conditions all = {.c = arena_zalloc(r->a, (count_fields(bval_doc(c->operand)) + 1) * sizeof(*all.c))};
    struct biter it;
    struct belem e;
    for (biter_init(&it, bval_doc(c->operand)); biter_next(&it, &e);)
        if (e.v.type == BSON_TYPE_DOCUMENT)
            all.c[all.n++] = (struct condition){.name = "", .filter = bval_doc(e.v), .holds = holds(r, bval_doc(e.v))};
    put_clauses(r, c->name, &all, inverted);
}

static void put_condition(struct report *r, const struct condition *c, bool inverted)
{
    bool tree = strcmp(c->name, "$and") == 0 || strcmp(c->name, "$or") == 0 || strcmp(c->name, "$nor") == 0;
    if (*c->name == 0 && !c->op && bval_is_missing(c->operand)) /* a clause: a filter of its own */
        put_filter(r, c->filter, inverted);
    else if (tree && c->operand.type == BSON_TYPE_ARRAY)
        put_tree(r, c, inverted);
    else
        put_leaf(r, c, inverted);
}

static void put_filter(struct report *r, const uint8_t *filter, bool inverted)
{
    struct conditions all = split(r, filter);
    if (all.n == 1)
        put_condition(r, &all.c[0], inverted);
    else
        put_clauses(r, "$and", &all, inverted);
}

void validate_explain(struct arena *a, const uint8_t *filter, const uint8_t *doc, struct buf *out)
{
    struct report r = {.a = a, .doc = doc, .out = out};
    put_filter(&r, filter, false);
}

/* ---- the check ---- */

static struct slice error_info(struct writer *w, const struct change *ch)
{
    struct bval filter = bdoc_get(w->coll->options, "validator");
    struct buf b, details;
    buf_init(&b);
    buf_init(&details);
    size_t at = bw_begin(&details);
    validate_explain(ch->arena, bval_doc(filter), ch->after, &details);
    bw_end(&details, at);
    at = bw_begin(&b);
    size_t info = bw_doc(&b, "errInfo");
    bw_val(&b, "failingDocumentId", bdoc_get(ch->after, "_id"));
    if (details.len <= DETAILS_MAX)
        bw_rawdoc(&b, "details", details.p);
    bw_end(&b, info);
    bw_end(&b, at);
    struct slice out = arena_slice(w->arena, buf_slice(&b));
    buf_free(&b);
    buf_free(&details);
    return out;
}

static void warn(struct writer *w, const struct change *ch)
{
    char ns[300], id[300];
    const char *shown = bval_shell(ch->arena, bdoc_get(ch->after, "_id"));
    log_line(LOG_WARNING, "STORAGE", 20294, "Document would fail validation", "\"namespace\":%s,\"document\":%s",
             log_quote(w->coll->ns, strlen(w->coll->ns), ns, sizeof(ns)),
             log_quote(shown, strlen(shown), id, sizeof(id)));
}

int validate_change(struct writer *w, const struct change *ch, struct err *err)
{
    const struct collection *coll = w->coll;
    if (!ch->after || w->bypass_validation || match_doc(coll->validator, ch->after, NULL))
        return 0;
    if (coll->validator_moderate && ch->before && !match_doc(coll->validator, ch->before, NULL))
        return 0;
    if (coll->validator_warns) {
        warn(w, ch);
        return 0;
    }
    err_set(err, ERR_DOCUMENT_VALIDATION_FAILURE, "Document failed validation");
    err->info = error_info(w, ch);
    return err->code;
}
