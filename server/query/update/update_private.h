/* Inside of server/query/update: the parsed form, and the one pass that applies it. */
#ifndef OV_UPDATE_PRIVATE_H
#define OV_UPDATE_PRIVATE_H

#include "server/query/update/update.h"

#define UPDATE_PARTS_MAX  200          /* parts of one path: bounds recursion over the tree */
#define UPDATE_PAD_MAX    1500000      /* nulls that one numeric part may put behind an array's end */
#define UPDATE_NEST_MAX   100          /* levels of a stored document */
#define UPDATE_EXPAND_MAX (256u << 20) /* bytes of the plain paths that positional parts stand for, in one document */
#define UPDATE_NO_INDEX   UINT32_MAX
#define UPDATE_HUGE_INDEX (UINT32_MAX - 1) /* digits alone, but no array is that long */

enum part_kind { PART_NAME, PART_POSITIONAL /* $ */, PART_ALL /* $[] */, PART_FILTER /* $[id] */ };

struct part {
    const char *s; /* not NUL-terminated */
    uint32_t n;
    uint32_t index; /* digits without leading zeros; else UPDATE_NO_INDEX */
    enum part_kind kind;
};

struct leaf;
struct parse;
struct apply;
struct target;

/* One row of table.c. */
struct update_op {
    const char *name;
    bool creates; /* makes the field where it is missing */
    bool strict;  /* a path that a scalar bars is an error, though nothing would be made */
    int (*parse)(struct parse *p, struct leaf *l, struct err *err); /* checks l->arg and fills l->priv */
    int (*apply)(struct apply *ap, const struct leaf *l, const struct target *t);
    bool (*idle)(const struct apply *ap, const struct leaf *l); /* does nothing this time; NULL: never */
};
const struct update_op *update_op_find(const char *name);

/* One field of one operator. */
struct leaf {
    const struct update_op *op;
    const char *path;
    struct part *parts;
    uint32_t n_parts;
    bool positional;  /* some part is $, $[] or $[id] */
    bool dollar_name; /* the field of the document itself starts with $ */
    struct bval arg;
    const void *priv; /* the operator's own form of arg */
};

/* Where a leaf stands in one document: the same as its path unless that is positional. */
struct place {
    const struct leaf *leaf;
    const char *path;
    const struct part *parts;
    uint32_t n_parts;
    uint32_t order; /* as the client wrote it: conflicts name the later one */
};

/* Paths as a tree; children in the order in which new fields are added (digits by value, then names). */
struct node {
    struct part part;
    struct node *children;
    uint32_t n;
    const struct leaf *leaf; /* no children then */
    const char *path;        /* of a leaf */
};

struct array_filter {
    const char *id;
    uint32_t id_n;
    struct match *match; /* over {id: element} */
    bool used;
};

struct rename {
    struct leaf from, to;
    uint32_t index; /* in apply.renamed */
    struct rename *next;
};

struct update {
    bool replacement, positional;
    bool may_nest;      /* a result may be nested deeper than allowed: look */
    const uint8_t *doc; /* a copy of what the client sent */
    struct leaf *leaves;
    uint32_t n_leaves;
    struct node root; /* with positional parts as names: for conflicts, and to apply unless `positional` */
    struct array_filter *filters;
    uint32_t n_filters;
    struct map *filters_by_id; /* NULL: no filters */
    struct rename *renames;
    uint32_t n_renames;
};

/* State of update_parse. */
struct parse {
    struct arena *a;
    struct update *u;
    uint32_t cap_leaves;
};
OV_MUST_CHECK int parse_add_leaf(struct parse *p, const struct update_op *op, const char *path, struct bval arg,
                                 struct leaf **out, struct err *err);
OV_MUST_CHECK int parse_path(struct arena *a, const char *path, struct part **parts, uint32_t *n, struct err *err);
struct part part_of(const char *s, uint32_t n);
int part_cmp(const struct part *a, const struct part *b);

/* Sorts the places and makes the tree. Errors: ERR_CONFLICTING_UPDATE_OPERATORS. */
OV_MUST_CHECK int tree_build(struct arena *a, struct place *places, uint32_t n, struct node *root, struct err *err);
const struct node *tree_child(const struct node *n, const char *name, uint32_t name_n);
const struct node *tree_child_at(const struct node *n, uint32_t index);

OV_MUST_CHECK int array_filters_parse(struct parse *p, struct bval filters, struct err *err);
OV_MUST_CHECK int array_filters_check(struct parse *p,
                                      struct err *err); /* each path's filters are there, each filter is used */
/* The tree with array indexes in place of positional parts, for one document. */
OV_MUST_CHECK int positional_expand(struct apply *ap, struct node *root);

/* ---- applying ---- */

struct apply {
    const struct update *u;
    const uint8_t *doc;
    uint32_t doc_n;
    int32_t array_index;
    bool insert;          /* an upsert inserts: $setOnInsert counts */
    bool in_id;           /* inside the field _id, which may not change */
    const char *path;     /* of the leaf at work */
    struct bval *renamed; /* values of u->renames in doc */
    struct arena *a;
    struct err *err;

    struct buf *out;
    size_t base;     /* where the new document starts in out */
    uint32_t copied; /* bytes of doc that are done */
    struct update_edit *edits;
    uint32_t n_edits, cap_edits;
    struct update_edit first_edits[8];
};

/* The field that an operator is to change. */
struct target {
    const char *path;
    const char *name;
    uint32_t name_n;
    struct bval old;   /* missing: the field is being made, at the end of out */
    uint32_t elem_off; /* of the type byte in doc */
    uint32_t val_off;
    bool in_array;
};

static inline uint32_t apply_pos(const struct apply *ap)
{
    return (uint32_t)(ap->out->len - ap->base);
}

/* Edits go in ascending order: open copies doc up to `off`, the caller appends to out, close says how many bytes of doc that replaces.
 * An edit that changes nothing leaves no trace. Errors: 66 in _id. */
uint32_t edit_open(struct apply *ap, uint32_t off);
OV_MUST_CHECK int edit_close(struct apply *ap, uint32_t off, uint32_t at, uint32_t removed);
/* Around the edits inside a document or array whose length stands at `off`. */
struct edit_header {
    uint32_t slot, off, at, copied_delta;
};
OV_MUST_CHECK int edit_header_open(struct apply *ap, uint32_t off, struct edit_header *h);
void edit_header_close(struct apply *ap, const struct edit_header *h);
void edit_finish(struct apply *ap, struct update_effect *effect); /* the rest of doc; edits merged */

OV_MUST_CHECK int target_set(struct apply *ap, const struct target *t, struct bval v);
OV_MUST_CHECK int target_remove(struct apply *ap, const struct target *t); /* an array element becomes null */
OV_MUST_CHECK int target_set_array(struct apply *ap, const struct target *t, const struct bval *items, uint32_t n);
/* Puts items behind an array that is there and has `count` elements. */
OV_MUST_CHECK int target_append(struct apply *ap, const struct target *t, uint32_t count, const struct bval *items,
                                uint32_t n);

OV_MUST_CHECK int apply_tree(struct apply *ap, const struct node *root);
OV_MUST_CHECK int renames_find(struct apply *ap);
const char *apply_id_text(struct apply *ap);                             /* _id: 1 */
const char *value_text(struct arena *a, struct bval v);                  /* as the shell shows it, 4 KiB at most */
const char *elem_text(struct arena *a, const char *name, struct bval v); /* a: 1 */
OV_MUST_CHECK int out_of_memory(struct err *err);

/* Operators of an update, on any document (an upsert's too). */
OV_MUST_CHECK int apply_operators(const struct update *u, const uint8_t *doc, int32_t array_index, bool insert,
                                  struct arena *a, struct buf *out, struct update_effect *effect, struct err *err);
/* The replacement with _id first: its own or `old_id`, which may be missing. */
OV_MUST_CHECK int apply_replacement(const struct update *u, struct bval old_id, struct buf *out, struct err *err);

/* What every stored document must keep to. */
OV_MUST_CHECK int id_check(struct bval id, struct err *err);
bool nests_deeper(const uint8_t *doc, int levels);
uint64_t timestamp_now(void);
bool timestamp_is_zero(struct bval v);

/* A set of values by equality, for arrays of any length. */
struct value_set {
    struct bval *slots;
    uint32_t mask, n;
    uint64_t seed;
};
bool value_set_init(struct value_set *s, struct arena *a, uint32_t max); /* false: no memory */
bool value_set_add(struct value_set *s, struct bval v);                  /* false: is there already */
bool value_set_has(const struct value_set *s, struct bval v);
/* Elements of an array in the arena. NULL: no memory. */
struct bval *array_items(struct arena *a, const uint8_t *arr, uint32_t more, uint32_t *n);
uint32_t array_count(const uint8_t *arr);

#endif
