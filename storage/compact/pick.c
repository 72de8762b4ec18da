/* Choosing a merge. Size-tiered: runs that lie on each other and are of about one size are merged when there are `width` of them, so that
 * each byte is rewritten once for each power of `width`, and a key is looked for in few places. Runs that overlap nothing are never
 * rewritten for their own sake: inserts in order are written once.
 *
 * Besides, tiny runs are gathered wherever their keys lie, so that files do not pile up; and a run is rewritten when much of it is
 * garbage: dropped keyspaces, or keys that newer runs delete. */
#include "storage/compact/pick.h"

#include <stdlib.h>

#include "server/base/arena.h"

enum { TINY_RUNS = 8, MANY_RUNS = 96, MANY_WIDTH = 16, MANY_BYTES = 256 * 1024 * 1024 };
enum { SIZE_RATIO = 2 }; /* the next older run joins if it is no larger than so many times the newer ones together */

struct chosen {
    const struct run_set *set;
    bool *in; /* by position in set->runs, newest first */
    size_t n;
    uint64_t bytes;
};

static bool overlaps_chosen(const struct chosen *c, size_t i)
{
    for (size_t k = 0; k < c->set->n_runs; k++)
        if (c->in[k] && run_overlap(c->set->runs[k], c->set->runs[i]))
            return true;
    return false;
}

static void put(struct chosen *c, size_t i)
{
    c->in[i] = true;
    c->n++;
    c->bytes += c->set->runs[i]->bytes;
}

/* Adds all runs from position `newest` on that overlap a chosen one below them. False if one of them is busy. */
static bool close_up(struct chosen *c, size_t newest)
{
    bool again = true;
    while (again) { /* a run that joins may lie under others */
        again = false;
        for (size_t x = newest; x < c->set->n_runs; x++) {
            if (!c->in[x])
                continue;
            for (size_t y = newest; y < x; y++) {
                const struct run *above = c->set->runs[y], *below = c->set->runs[x];
                if (c->in[y] || above->order == below->order || !run_overlap(above, below))
                    continue;
                if (above->busy)
                    return false;
                put(c, y);
                again = true;
            }
        }
    }
    return true;
}

static bool put_closed(struct chosen *c, size_t i, size_t newest)
{
    put(c, i);
    return close_up(c, newest);
}

/* The position of the first run with the same order: all runs of one flush are equally new. */
static size_t first_of_order(const struct run_set *s, size_t i)
{
    while (i > 0 && s->runs[i - 1]->order == s->runs[i]->order)
        i--;
    return i;
}

static size_t layers_of(const struct chosen *c)
{
    size_t n = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < c->set->n_runs; i++)
        if (c->in[i] && (n == 0 || c->set->runs[i]->order != last)) {
            last = c->set->runs[i]->order;
            n++;
        }
    return n;
}

static void choose_none(struct chosen *c)
{
    memset(c->in, 0, c->set->n_runs * sizeof(*c->in));
    c->n = 0;
    c->bytes = 0;
}

/* Run i and older ones that it lies on, as long as they are not much larger. */
static bool choose_by_size(struct chosen *c, size_t i, uint32_t width)
{
    size_t newest = first_of_order(c->set, i);
    choose_none(c);
    put(c, i);
    for (size_t k = i + 1; k < c->set->n_runs; k++) {
        const struct run *r = c->set->runs[k];
        if (c->in[k] || !overlaps_chosen(c, k))
            continue;
        if (r->busy || r->bytes > SIZE_RATIO * c->bytes)
            break;
        if (!put_closed(c, k, newest))
            return false;
    }
    return layers_of(c) >= width;
}

/* Tiny runs, as many as there are, if that does not drag large ones along. */
static bool choose_tiny(struct chosen *c, const struct pick_options *opt)
{
    size_t tiny = 0;
    uint64_t bytes = 0;
    choose_none(c);
    for (size_t i = 0, newest = SIZE_MAX; i < c->set->n_runs; i++) {
        const struct run *r = c->set->runs[i];
        if (r->busy || r->bytes >= opt->tiny_bytes)
            continue;
        if (newest == SIZE_MAX)
            newest = first_of_order(c->set, i);
        tiny++;
        bytes += r->bytes;
        if (!c->in[i] && !put_closed(c, i, newest))
            return false;
    }
    return tiny >= TINY_RUNS && c->bytes <= SIZE_RATIO * bytes;
}

/* With very many runs, though none of them need it: some of the older ones that came one after the other, so that the number of files
 * grows with the logarithm of the data only. */
static bool choose_many(struct chosen *c)
{
    const struct run_set *s = c->set;
    uint64_t bytes = 0;
    size_t newest = 0;
    choose_none(c);
    for (size_t i = s->n_runs; i-- > 0 && c->n < MANY_WIDTH;) {
        const struct run *r = s->runs[i];
        if (r->busy || r->bytes > MANY_BYTES || c->in[i])
            continue;
        bytes += r->bytes;
        put(c, i);
        newest = i;
    }
    return c->n && close_up(c, first_of_order(s, newest)) && layers_of(c) >= MANY_WIDTH / 2 &&
           c->bytes <= SIZE_RATIO * bytes;
}

/* Bytes of fragments that hold nothing but dropped keyspaces. */
static uint64_t gone_bytes(const struct run *r, const struct pick_options *opt)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->n_fragments; i++) {
        const struct fragment *f = &r->fragments[i];
        if (f->first_keyspace == f->last_keyspace && opt->gone(opt->arg, f->first_keyspace))
            bytes += f->disk_bytes;
    }
    return bytes;
}

/* Deletions in newer runs, and in run i itself, that hide what it holds: an estimate by fragments. */
static uint64_t deletions_over(const struct run_set *s, size_t i, uint64_t oldest)
{
    uint64_t n = 0;
    for (size_t k = 0; k <= i; k++) {
        const struct run *r = s->runs[k];
        if (k != i && !run_overlap(r, s->runs[i]))
            continue;
        for (size_t f = 0; f < r->n_fragments; f++)
            if (r->fragments[f].max_ts <= oldest)
                n += r->fragments[f].deletions;
    }
    return n;
}

static bool lies_on_older(const struct run_set *s, size_t i)
{
    for (size_t k = i + 1; k < s->n_runs; k++)
        if (run_overlap(s->runs[k], s->runs[i]))
            return true;
    return false;
}

/* Run i and all newer ones that overlap it. */
static bool choose_above(struct chosen *c, size_t i)
{
    size_t newest = i;
    choose_none(c);
    for (size_t k = 0; k < i; k++)
        if (run_overlap(c->set->runs[k], c->set->runs[i])) {
            newest = first_of_order(c->set, k);
            break;
        }
    return put_closed(c, i, newest);
}

static bool choose_garbage(struct chosen *c, size_t i, const struct pick_options *opt)
{
    const struct run *r = c->set->runs[i];
    if (gone_bytes(r, opt) * 2 >= r->bytes && r->bytes) {
        choose_none(c);
        put(c, i);
        return true;
    }
    if (!lies_on_older(c->set, i) && deletions_over(c->set, i, opt->oldest) * 4 >= r->entries && r->entries)
        return choose_above(c, i);
    return false;
}

size_t pick_merge(const struct run_set *set, const struct pick_options *opt, struct run **out)
{
    struct chosen c = {.set = set, .in = ov_calloc(set->n_runs + 1, sizeof(bool))};
    size_t n = 0;
    for (size_t i = 0; i < set->n_runs && n == 0; i++) {
        if (set->runs[i]->busy)
            continue;
        if (choose_by_size(&c, i, opt->width) || choose_garbage(&c, i, opt))
            for (size_t k = 0; k < set->n_runs; k++)
                if (c.in[k])
                    out[n++] = set->runs[k];
    }
    if (n == 0 && (choose_tiny(&c, opt) || (set->n_runs > MANY_RUNS && choose_many(&c))))
        for (size_t k = 0; k < set->n_runs; k++)
            if (c.in[k])
                out[n++] = set->runs[k];
    free(c.in);
    return n;
}
