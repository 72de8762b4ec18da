/* $set $setOnInsert $unset $currentDate $rename: operators that do not look at the old value. */
#include "server/query/update/operators.h"

#include <stdatomic.h>

#include "server/base/clock.h"

int any_parse(struct parse *p, struct leaf *l, struct err *err)
{
    return 0;
}

int set_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    return target_set(ap, t, l->arg);
}

bool set_on_insert_idle(const struct apply *ap, const struct leaf *l)
{
    return !ap->insert;
}

int unset_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    return bval_is_missing(t->old) ? 0 : target_remove(ap, t);
}

/* ---- $currentDate ---- */

/* Seconds << 32 | counter: no two calls of this process give the same one. */
uint64_t timestamp_now(void)
{
    static _Atomic uint64_t last;
    uint64_t now = ((uint64_t)clock_wall_ms() / 1000) << 32 | 1, seen = atomic_load(&last), next;
    do
        next = seen >= now ? seen + 1 : now;
    while (!atomic_compare_exchange_weak(&last, &seen, next));
    return next;
}

int current_date_parse(struct parse *p, struct leaf *l, struct err *err)
{
    static const bool timestamp = true;
    struct biter it;
    struct belem e;
    const char *kind = NULL;
    uint32_t n;

    if (l->arg.type == BSON_TYPE_BOOL)
        return 0;
    if (l->arg.type != BSON_TYPE_DOCUMENT)
        return err_set(
            err, ERR_BAD_VALUE,
            "%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: "
            "'timestamp/date'}).",
            bval_type_name(l->arg.type));
    biter_init(&it, bval_doc(l->arg));
    while (biter_next(&it, &e)) {
        if (strcmp(e.name, "$type") != 0)
            return err_set(err, ERR_BAD_VALUE, "Unrecognized $currentDate option: %s", e.name);
        kind = e.v.type == BSON_TYPE_UTF8 ? bval_str(e.v, &n) : "";
    }
    if (!kind || (strcmp(kind, "date") != 0 && strcmp(kind, "timestamp") != 0))
        return err_set(err, ERR_BAD_VALUE,
                       "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : "
                       "{$type: 'date'}}}");
    l->priv = kind[0] == 't' ? &timestamp : NULL;
    return 0;
}

int current_date_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    uint8_t raw[8];
    store_le64(raw, l->priv ? timestamp_now() : (uint64_t)clock_wall_ms());
    return target_set(ap, t,
                      (struct bval){.type = l->priv ? BSON_TYPE_TIMESTAMP : BSON_TYPE_DATE_TIME, .n = 8, .p = raw});
}

/* ---- $rename: one leaf takes the field away, another sets it; values are looked up before anything changes ---- */

static const struct update_op rename_to = {"$rename", true, false, any_parse, rename_to_apply, rename_to_idle};

static bool is_prefix(const struct leaf *a, const struct leaf *b)
{
    if (a->n_parts > b->n_parts)
        return false;
    for (uint32_t i = 0; i < a->n_parts; i++)
        if (part_cmp(&a->parts[i], &b->parts[i]) != 0)
            return false;
    return true;
}

static int check_rename(struct arena *a, const struct leaf *from, const struct leaf *to, struct err *err)
{
    if (from->positional)
        return err_set(err, ERR_BAD_VALUE, "The source field for $rename may not be dynamic: %s", from->path);
    if (to->positional)
        return err_set(err, ERR_BAD_VALUE, "The destination field for $rename may not be dynamic: %s", to->path);
    if (strcmp(from->path, to->path) == 0)
        return err_set(err, ERR_BAD_VALUE, "The source and target field for $rename must differ: %s",
                       elem_text(a, from->path, from->arg));
    if (is_prefix(from, to) || is_prefix(to, from))
        return err_set(err, ERR_BAD_VALUE, "The source and target field for $rename must not be on the same path: %s",
                       elem_text(a, from->path, from->arg));
    return 0;
}

int rename_parse(struct parse *p, struct leaf *l, struct err *err)
{
    struct update *u = p->u;
    struct leaf from = *l, *to;
    uint32_t n;

    if (l->arg.type != BSON_TYPE_UTF8)
        return err_set(err, ERR_BAD_VALUE, "The 'to' field for $rename must be a string: %s",
                       elem_text(p->a, l->path, l->arg));
    const char *path = bval_str(l->arg, &n);
    if (strlen(path) != n)
        return err_set(err, ERR_BAD_VALUE, "The 'to' field for $rename cannot contain an embedded null byte");
    int rc = parse_add_leaf(p, &rename_to, path, l->arg, &to, err); /* may move l */
    if (rc || (rc = check_rename(p->a, &from, to, err)) != 0)
        return rc;
    struct rename *r = arena_alloc(p->a, sizeof(*r));
    if (!r)
        return out_of_memory(err);
    *r = (struct rename){.from = from, .to = *to, .index = u->n_renames++, .next = u->renames};
    u->renames = r;
    to->priv = r;
    return 0;
}

struct walk {
    struct bval value;     /* at the end of the path, or missing */
    const struct part *in; /* the part whose value is the innermost array on the way; NULL: none */
    const struct part *at; /* the part whose value bars the way; NULL: nothing does */
    struct bval bar;
};

static struct bval child_of(struct bval v, const struct part *part)
{
    struct biter it;
    struct belem e;
    uint32_t i = 0;
    biter_init(&it, bval_doc(v));
    for (; biter_next(&it, &e); i++)
        if (v.type == BSON_TYPE_ARRAY ? i == part->index : e.name_n == part->n && memcmp(e.name, part->s, part->n) == 0)
            return e.v;
    return BVAL_MISSING;
}

/* Walks as far as the document goes. */
static void walk(const uint8_t *doc, const struct leaf *l, struct walk *w)
{
    struct bval v = bval_from_doc(doc);
    *w = (struct walk){.value = BVAL_MISSING};
    for (uint32_t i = 0; i < l->n_parts; i++) {
        if (v.type == BSON_TYPE_ARRAY)
            w->in = &l->parts[i - 1];
        if (v.type != BSON_TYPE_DOCUMENT && (v.type != BSON_TYPE_ARRAY || l->parts[i].index == UPDATE_NO_INDEX)) {
            w->at = &l->parts[i - 1];
            w->bar = v;
            return;
        }
        v = child_of(v, &l->parts[i]);
        if (bval_is_missing(v))
            return;
    }
    w->value = v;
}

static int refuse_array(struct apply *ap, const struct leaf *l, const char *which, const struct part *array)
{
    return err_set(ap->err, ERR_BAD_VALUE,
                   "The %s field cannot be an array element, '%s' in doc with %s has an array field called '%.*s'",
                   which, l->path, apply_id_text(ap), (int)array->n, array->s);
}

static int rename_find(struct apply *ap, const struct rename *r)
{
    struct walk from, to;

    walk(ap->doc, &r->from, &from);
    if (from.at) {
        const char *name = arena_strndup(ap->a, from.at->s, from.at->n);
        return err_set(ap->err, ERR_PATH_NOT_VIABLE, "cannot use the part (%s of %s) to traverse the element ({%s})",
                       name, r->from.path, elem_text(ap->a, name, from.bar));
    }
    if (bval_is_missing(from.value))
        return 0;
    if (from.in)
        return refuse_array(ap, &r->from, "source", from.in);
    walk(ap->doc, &r->to, &to);
    if (to.in)
        return refuse_array(ap, &r->to, "destination", to.in);
    ap->renamed[r->index] = from.value;
    return 0;
}

int renames_find(struct apply *ap)
{
    ap->renamed = arena_zalloc(ap->a, ap->u->n_renames * sizeof(*ap->renamed));
    if (!ap->renamed)
        return out_of_memory(ap->err);
    for (const struct rename *r = ap->u->renames; r; r = r->next) {
        int rc = rename_find(ap, r);
        if (rc)
            return rc;
    }
    return 0;
}

bool rename_to_idle(const struct apply *ap, const struct leaf *l)
{
    const struct rename *r = l->priv;
    return bval_is_missing(ap->renamed[r->index]);
}

int rename_to_apply(struct apply *ap, const struct leaf *l, const struct target *t)
{
    const struct rename *r = l->priv;
    struct bval v = ap->renamed[r->index];
    if (!bval_is_missing(t->old) && bval_eq(t->old, v))
        return 0; /* 1 and 1.0 are the same here: what is there stays */
    return target_set(ap, t, v);
}
