/* What the tests of updates share: one update applied to one document, its edits replayed on the old bytes. */
#ifndef OV_TEST_UPDATE_HARNESS_H
#define OV_TEST_UPDATE_HARNESS_H

#include <stdio.h>
#include <stdlib.h>

#include "server/query/update/update.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

struct run {
    struct arena *a;
    struct err err;
    struct update *u;
    struct update_effect effect;
    struct buf out;
    int rc;
};

static inline void run_init(struct run *r)
{
    memset(r, 0, sizeof(*r));
    r->a = arena_new(0);
    err_init(&r->err, r->a);
    buf_append(&r->out, "before", 6); /* what is there already stays */
}

static inline void run_free(struct run *r)
{
    buf_free(&r->out);
    arena_free(r->a);
}

static inline const uint8_t *run_doc(const struct run *r)
{
    return r->out.p + 6;
}

static inline struct bval val_of(const uint8_t *doc, uint8_t type)
{
    return (struct bval){.type = type, .n = bdoc_len(doc), .p = doc};
}

/* The edits, ascending and apart, make the new document from the old one. */
static inline void check_edits(const struct run *r, const uint8_t *old, const char *what)
{
    struct buf made = {0};
    uint32_t at = 0, n = bdoc_len(old);
    const uint8_t *new = run_doc(r);

    for (uint32_t i = 0; i < r->effect.n_edits; i++) {
        const struct update_edit *e = &r->effect.edits[i];
        ck_assert_msg(i == 0 || e->offset > at, "%s: edit %u touches the one before", what, i);
        ck_assert_msg(e->offset >= at && e->offset + e->removed <= n, "%s: edit %u is out of place", what, i);
        ck_assert_msg(e->removed || e->added, "%s: edit %u is empty", what, i);
        buf_append(&made, old + at, e->offset - at);
        ck_assert_msg(made.len == e->added_at, "%s: edit %u is at %zu, not %u", what, i, made.len, e->added_at);
        buf_append(&made, new + e->added_at, e->added);
        at = e->offset + e->removed;
    }
    buf_append(&made, old + at, n - at);
    ck_assert_msg(made.len == bdoc_len(new) && memcmp(made.p, new, made.len) == 0,
                  "%s: the edits give another document", what);
    buf_free(&made);
}

static inline void run_update(struct run *r, const uint8_t *doc, struct bval u, struct bval filters, int32_t index)
{
    run_init(r);
    r->rc = update_parse(r->a, u, filters, false, &r->u, &r->err);
    if (r->rc == 0)
        r->rc = update_apply(r->u, doc, index, r->a, &r->out, &r->effect, &r->err);
    ck_assert_msg(memcmp(r->out.p, "before", 6) == 0, "what was in the buffer is gone");
    ck_assert_msg(r->rc == r->err.code, "returned %d, error says %d", r->rc, r->err.code);
    if (r->rc)
        ck_assert_msg(r->out.len == 6, "a failed update left bytes behind");
}

static inline const char *text_of(struct arena *a, const uint8_t *doc)
{
    return bval_shell(a, bval_from_doc(doc));
}

static inline void check_doc(struct run *r, const uint8_t *want, const char *what)
{
    struct err err;
    const uint8_t *got = run_doc(r);

    ck_assert_msg(r->rc == 0, "%s: %d %s", what, r->rc, r->err.msg);
    err_init(&err, r->a);
    ck_assert_msg(bson_check(got, r->out.len - 6, BSON_DEPTH_MAX, &err) == 0, "%s: bad BSON: %s", what, err.msg);
    ck_assert_msg(bdoc_len(got) == bdoc_len(want) && memcmp(got, want, bdoc_len(want)) == 0, "%s: got %s, want %s",
                  what, text_of(r->a, got), text_of(r->a, want));
}

#endif
