/* Tables for the match tests: a filter, a document, does it match; a filter and the error it must give. */
#ifndef OV_TEST_MATCH_TABLE_H
#define OV_TEST_MATCH_TABLE_H

#include "server/query/match/match.h"
#include "tests/lib/json.h"
#include "tests/lib/test.h"

struct row {
    const char *filter, *doc;
    bool want;
};
struct bad {
    const char *filter;
    int code;
    const char *msg;
};

static inline struct match *must_parse(struct arena *a, const char *filter)
{
    struct match *m;
    struct err err;
    err_init(&err, a);
    ck_assert_msg(match_parse(a, J(filter), &m, &err) == 0, "%s: %s", filter, err.msg);
    return m;
}

static inline void check_rows(const struct row *rows, size_t n)
{
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < n; i++) {
        bool got = match_doc(must_parse(a, rows[i].filter), J(rows[i].doc), NULL);
        ck_assert_msg(got == rows[i].want, "%s on %s: %d", rows[i].filter, rows[i].doc, got);
    }
    arena_free(a);
}

static inline void check_bad(const struct bad *rows, size_t n)
{
    struct arena *a = arena_new(0);
    for (size_t i = 0; i < n; i++) {
        struct match *m;
        struct err err;
        err_init(&err, a);
        ck_assert_msg(match_parse(a, J(rows[i].filter), &m, &err) != 0, "%s is accepted", rows[i].filter);
        ck_assert_msg(err.code == rows[i].code && strcmp(err.msg, rows[i].msg) == 0, "%s: %d %s", rows[i].filter,
                      err.code, err.msg);
    }
    arena_free(a);
}

#define CHECK_ROWS(...)                                  \
    do {                                                 \
        static const struct row rows_[] = {__VA_ARGS__}; \
        check_rows(rows_, OV_LEN(rows_));                \
    } while (0)
#define CHECK_BAD(...)                                   \
    do {                                                 \
        static const struct bad rows_[] = {__VA_ARGS__}; \
        check_bad(rows_, OV_LEN(rows_));                 \
    } while (0)

#endif
