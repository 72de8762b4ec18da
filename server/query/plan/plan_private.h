/* Bounds of fields, and what an index makes of them: what the files of this folder share. */
#ifndef OV_PLAN_PRIVATE_H
#define OV_PLAN_PRIVATE_H

#include "server/query/plan/plan.h"

#define PLAN_POINTS_MAX 4096 /* intervals that several lists of points may multiply to */
#define BOUNDS_KEEP_MIN 16   /* values of a list whose bounds are kept */
#define BOUNDS_KEEP_MAX 8    /* such lists */
#define PLAN_MERGE_MAX  200  /* intervals that are merged by their order: each is a scan that is open */

/* Encodings e of one value, ascending: lo <= e < hi; of a point (lo is a whole encoding) hi is not filled in. */
struct span {
    struct slice lo, hi;
    bool point;
};
struct bounds { /* of one field: in order, without overlaps */
    struct span *spans;
    uint32_t n, cap;
    bool points;  /* all of them are */
    bool full;    /* every value: only tells that the field is there */
    bool missing; /* a document without the field can match */
};

/* The bounds of one filter. Long lists are kept, for several indexes ask for them. */
struct bounds_ctx {
    struct arena *arena;
    struct bounds_kept {
        const struct match *m;
        struct bounds bounds;
        const struct bounds_kept *next;
    } * kept;
    uint32_t n_kept;
};

/* What `m` says about `path`: 1, and the bounds of the values; 0 if it says nothing; -1 past the arena's limit. Every document that matches
 * has a value among the path's index keys in the bounds. `multikey`: it may have others too, so ranges do not intersect. */
int bounds_of(struct bounds_ctx *cx, const struct match *m, const struct bpath *path, bool multikey,
              struct bounds *out);

/* Lists of spans (spans.c). False past the arena's limit. */
bool bounds_add(struct arena *a, struct bounds *b, struct span s);
void bounds_order(struct bounds *b); /* sorts, and joins what overlaps */
bool bounds_intersect(struct arena *a, const struct bounds *x, const struct bounds *y, struct bounds *out);

/* One index under consideration. */
struct choice {
    const struct index_def *def;
    uint32_t multikey;
    uint32_t n_points;  /* leading fields bounded by points */
    uint32_t n_bounded; /* n_points, or one more: a field bounded by ranges */
    uint32_t n_intervals;
    bool usable; /* loses no document that matches */
    bool empty;  /* nothing can match */
    bool sorted, reverse, merge;
    uint32_t merge_field; /* first field of the asked order */
    int score;
    struct bounds fields[INDEX_FIELDS_MAX];
};
/* Sets sorted, reverse, merge of a choice whose bounds are known (order.c). */
void choice_order(struct choice *c, const struct sort_spec *sort);
bool choice_shares_array(const struct choice *c, uint32_t i,
                         uint32_t j); /* fields that may go through the same array */
/* The byte ranges of its keys; false past the arena's limit (intervals.c). */
bool choice_intervals(struct arena *a, const struct choice *c, struct plan *out);

/* Every document that matches `x` matches `y`; false if that is not known (implies.c). */
bool filter_implies(const struct match *x, const struct match *y);

static inline bool path_equal(const struct bpath *a, const struct bpath *b)
{
    return strcmp(a->text, b->text) == 0;
}
static inline bool path_numeric(const struct bpath *p) /* may take an array's element by its place */
{
    for (uint32_t i = 1; i < p->n_parts; i++)
        if (p->parts[i].index >= 0)
            return true;
    return false;
}

#endif
