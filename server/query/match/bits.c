/* $bitsAllSet $bitsAllClear $bitsAnySet $bitsAnyClear. The mask is a whole number, binary data or an array of positions; the
 * value a whole number (two's complement, its sign going on for ever) or binary data (bit 0 is the lowest of the first byte;
 * zero beyond the end). All else does not match. */
#include <stdlib.h>

#include "server/query/match/match_private.h"

enum bits_test { ALL_SET, ALL_CLEAR, ANY_SET, ANY_CLEAR };

struct bits {
    enum bits_test test;
    uint32_t n;
    uint32_t *pos; /* ascending, unique */
};

static const char *const names[] = {
    [ALL_SET] = "$bitsAllSet", [ALL_CLEAR] = "$bitsAllClear", [ANY_SET] = "$bitsAnySet", [ANY_CLEAR] = "$bitsAnyClear"};

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int positions_of_array(struct parser *ps, struct bval arr, struct bits *b)
{
    struct biter it;
    struct belem e;
    uint32_t cap = arr.n / 3; /* an element has at least three bytes */
    if (!(b->pos = arena_alloc(ps->a, cap * sizeof *b->pos)))
        return match_full(ps);
    biter_init(&it, bval_doc(arr));
    while (biter_next(&it, &e)) {
        int64_t pos;
        int rc = match_operand_count(ps, &e, ERR_BAD_VALUE, "Failed to parse bit position. ", &pos);
        if (rc != 0)
            return rc;
        if (pos > INT32_MAX)
            return err_set(ps->err, ERR_BAD_VALUE, "Failed to parse bit position. Cannot represent %s in an int",
                           match_show(ps, &e));
        b->pos[b->n++] = (uint32_t)pos;
    }
    if (b->n)
        qsort(b->pos, b->n, sizeof *b->pos, by_number);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        if (n == 0 || b->pos[n - 1] != b->pos[i])
            b->pos[n++] = b->pos[i];
    b->n = n;
    return 0;
}

static int positions_of_bytes(struct parser *ps, const uint8_t *p, uint32_t n, struct bits *b)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < n; i++)
        set += (uint32_t)__builtin_popcount(p[i]);
    if (!(b->pos = arena_alloc(ps->a, (size_t)set * sizeof *b->pos)))
        return match_full(ps);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < 8; k++)
            if (p[i] >> k & 1)
                b->pos[b->n++] = i * 8 + k;
    return 0;
}

static const uint8_t *bin_bytes(struct bval v, uint32_t *n)
{
    *n = load_le32(v.p);
    return v.p + 5; /* length, subtype */
}

int match_parse_bits(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                     struct match_list *out)
{
    struct bits bits = {0};
    int rc;
    while (strcmp(names[bits.test], e->name) != 0)
        bits.test++;
    if (e->v.type == BSON_TYPE_ARRAY) {
        rc = positions_of_array(ps, e->v, &bits);
    } else if (e->v.type == BSON_TYPE_BINARY) {
        uint32_t n;
        const uint8_t *p = bin_bytes(e->v, &n);
        rc = positions_of_bytes(ps, p, n, &bits);
    } else if (bval_is_number(e->v)) {
        int64_t mask;
        uint8_t raw[8];
        if ((rc = match_operand_count(ps, e, ERR_FAILED_TO_PARSE, "", &mask)) != 0)
            return rc;
        store_le64(raw, (uint64_t)mask);
        rc = positions_of_bytes(ps, raw, 8, &bits);
    } else {
        rc = err_set(ps->err, ERR_BAD_VALUE, "%.*s takes an Array, a number, or a BinData but received: %s",
                     MATCH_SHOW_MAX, path ? path : "", match_show(ps, e));
    }
    if (rc != 0)
        return rc;
    struct match *m = match_leaf(ps, MATCH_BITS, path);
    if (m && !(m->priv = arena_dup(ps->a, &bits, sizeof bits)))
        return match_full(ps);
    return match_push(ps, out, m);
}

static bool bit_of(const uint8_t *p, uint32_t n, uint8_t beyond, uint32_t pos)
{
    return pos / 8 < n ? p[pos / 8] >> pos % 8 & 1 : beyond;
}

bool match_test_bits(const struct match *m, struct bval v, struct match_result *r)
{
    const struct bits *b = m->priv;
    uint8_t raw[8];
    const uint8_t *p = raw;
    uint32_t n = 8;
    bool beyond = false;
    if (v.type == BSON_TYPE_BINARY) {
        p = bin_bytes(v, &n);
    } else {
        int64_t value;
        if (!bval_is_number(v) || !bval_to_i64(v, true, &value))
            return false;
        store_le64(raw, (uint64_t)value);
        beyond = value < 0;
    }
    bool want = b->test == ALL_SET || b->test == ANY_SET;
    bool all = b->test == ALL_SET || b->test == ALL_CLEAR;
    for (uint32_t i = 0; i < b->n; i++)
        if ((bit_of(p, n, beyond, b->pos[i]) == want) != all)
            return !all;
    return all;
}
