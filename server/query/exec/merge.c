/* Intervals of one index whose rows each come in the asked order, merged into one: a heap of their scans, by what follows the prefix. */
#include "server/query/exec/exec_private.h"

static struct slice rest_of_key(const struct exec *x, uint32_t scan)
{
    struct slice key = range_scan_row(&x->scans[scan])->key;
    uint32_t prefix = x->plan->intervals[scan].prefix;
    return prefix < key.n ? slice_of(key.p + prefix, key.n - prefix) : slice_of(key.p, 0);
}

/* Equal ones: the earlier interval first, so that the order is the same each time. */
static bool before(const struct exec *x, uint32_t a, uint32_t b)
{
    int c = slice_cmp(rest_of_key(x, a), rest_of_key(x, b));
    return c ? (x->plan->reverse ? c > 0 : c < 0) : a < b;
}

static void sift_down(struct exec *x, uint32_t i)
{
    uint32_t *h = x->heap, moving = h[i];
    for (uint32_t child; (child = 2 * i + 1) < x->n_heap; i = child) {
        if (child + 1 < x->n_heap && before(x, h[child + 1], h[child]))
            child++;
        if (!before(x, h[child], moving))
            break;
        h[i] = h[child];
    }
    h[i] = moving;
}

static void sift_up(struct exec *x, uint32_t i)
{
    uint32_t *h = x->heap, moving = h[i];
    for (; i && before(x, moving, h[(i - 1) / 2]); i = (i - 1) / 2)
        h[i] = h[(i - 1) / 2];
    h[i] = moving;
}

/* Every scan that has a row, in the heap. */
static enum exec_status prime(struct exec *x, struct eng_call *call, struct err *err)
{
    const struct eng_row *row;
    for (; x->primed < x->n_scans; x->primed++) {
        enum exec_status s = range_scan_peek(&x->scans[x->primed], x->txn, call, &row, err);
        if (s == EXEC_ROW) {
            x->heap[x->n_heap] = x->primed;
            sift_up(x, x->n_heap++);
        } else if (s != EXEC_EOF) {
            return s;
        }
    }
    return EXEC_ROW;
}

/* The first scan's next row instead of the one that was taken. */
static enum exec_status advance_root(struct exec *x, struct eng_call *call, struct err *err)
{
    const struct eng_row *row;
    enum exec_status s = range_scan_peek(&x->scans[x->heap[0]], x->txn, call, &row, err);
    if (s == EXEC_EOF)
        x->heap[0] = x->heap[--x->n_heap];
    else if (s != EXEC_ROW)
        return s;
    x->root_taken = false;
    if (x->n_heap)
        sift_down(x, 0);
    return EXEC_ROW;
}

enum exec_status merge_fill(struct exec *x, struct eng_call *call, struct err *err)
{
    struct fetch *b = x->fetch;
    enum exec_status s = prime(x, call, err);
    while (s == EXEC_ROW) {
        if (x->root_taken && (s = advance_root(x, call, err)) != EXEC_ROW)
            return s;
        if (x->n_heap == 0 || b->n >= b->want)
            return b->n ? EXEC_ROW : EXEC_EOF;
        struct range_scan *first = &x->scans[x->heap[0]];
        fetch_add(x, index_entry_rid(x->plan->index, range_scan_row(first)));
        x->keys_examined++;
        range_scan_take(first);
        x->root_taken = true;
    }
    return s;
}
