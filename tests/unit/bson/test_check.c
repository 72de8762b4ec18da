/* What is a document and what is not. */
#include "protocol/bson/bson.h"

#include "tests/lib/json.h"
#include "tests/lib/test.h"
#include "tests/unit/bson/values.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* On the heap with exactly its size: reads past the end show under the sanitizer. */
static int check_bytes(const void *p, size_t n, int depth)
{
    uint8_t *copy = malloc(n ? n : 1);
    struct err err;
    err_init(&err, NULL);
    if (n)
        memcpy(copy, p, n);
    int rc = bson_check(copy, n, depth, &err);
    ck_assert(rc == 0 || rc == ERR_INVALID_BSON || rc == ERR_OVERFLOW);
    ck_assert_int_eq(rc, err.code);
    free(copy);
    return rc;
}

START_TEST(a_document_of_all_types_is_well_formed)
{
    for (size_t i = 0; i < OV_LEN(ORDER); i++) {
        const uint8_t *doc = J(ORDER[i].json);
        ck_assert_msg(check_bytes(doc, bdoc_len(doc), BSON_DEPTH_MAX) == 0, "%s", ORDER[i].json);
    }
}
END_TEST

START_TEST(no_beginning_of_a_document_is_one)
{
    for (size_t i = 0; i < OV_LEN(ORDER); i++) {
        const uint8_t *doc = J(ORDER[i].json);
        for (uint32_t cut = 0; cut < bdoc_len(doc); cut++)
            ck_assert_int_eq(check_bytes(doc, cut, BSON_DEPTH_MAX), ERR_INVALID_BSON);
    }
}
END_TEST

START_TEST(broken_documents_are_refused)
{
    static const struct {
        const char *why, *hex;
    } bad[] = {
        {"empty", ""},
        {"no NUL", "0500000001"},
        {"length 4", "04000000"},
        {"negative length", "ffffffff00"},
        {"longer than stated", "050000000000"},
        {"shorter than stated", "0600000000"},
        {"early NUL", "0600000000"
                      "00"},
        {"name without end", "070000001061"
                             "00"},
        {"unknown type", "080000002061"
                         "0000"},
        {"type 0 inside", "0d0000000061000100000000"
                          "00"},
        {"bool 2", "090000000861000200"},
        {"bool ff", "090000000861"
                    "00ff00"},
        {"int cut", "0b000000106100010000"
                    "00"},
        {"string length 0", "0c0000000261000000000000"},
        {"string without NUL", "0e00000002610002000000626200"},
        {"string too long", "0e00000002610003000000620000"},
        {"string length -1", "0e000000026100ffffffff620000"},
        {"inner document too long", "0d000000036100"
                                    "06000000"
                                    "0000"},
        {"inner document too short", "0d000000036100"
                                     "04000000"
                                     "0000"},
        {"inner document of -1", "0d000000036100"
                                 "ffffffff"
                                 "0000"},
        {"binary too long", "0e000000056100"
                            "02000000"
                            "006100"},
        {"binary of -1", "0e000000056100"
                         "ffffffff"
                         "006100"},
        {"regex without options", "0a0000000b6100"
                                  "6200"
                                  "00"},
        {"regex without end", "0a0000000b6100"
                              "626200"},
        {"scope too long", "1a0000000f6100"
                           "13000000"
                           "02000000"
                           "6200"
                           "05000000"
                           "00"
                           "00000000"},
        {"scope length 0", "160000000f6100"
                           "00000000"
                           "02000000"
                           "6200"
                           "0500000000"
                           "0000"},
    };
    for (size_t i = 0; i < OV_LEN(bad); i++) {
        uint8_t raw[64];
        size_t n = strlen(bad[i].hex) / 2;
        for (size_t j = 0; j < n; j++) {
            unsigned byte;
            ck_assert_int_eq(sscanf(bad[i].hex + 2 * j, "%2x", &byte), 1);
            raw[j] = (uint8_t)byte;
        }
        ck_assert_msg(check_bytes(raw, n, BSON_DEPTH_MAX) == ERR_INVALID_BSON, "%s", bad[i].why);
    }
}
END_TEST

/* {a: {a: … {}}}, `depth` documents inside the outermost one. */
static void nested(struct buf *b, int depth, bool array)
{
    size_t start[512];
    start[0] = bw_begin(b);
    for (int i = 1; i <= depth; i++)
        start[i] = array ? bw_arr(b, "0") : bw_doc(b, "a");
    for (int i = depth; i >= 0; i--)
        bw_end(b, start[i]);
}

START_TEST(nesting_is_bounded)
{
    for (int depth = 0; depth < 300; depth++)
        for (int array = 0; array < 2; array++) {
            struct buf b;
            buf_init(&b);
            nested(&b, depth, array);
            ck_assert_int_eq(check_bytes(b.p, b.len, BSON_DEPTH_MAX), depth <= BSON_DEPTH_MAX ? 0 : ERR_OVERFLOW);
            ck_assert_int_eq(check_bytes(b.p, b.len, 100), depth <= 100 ? 0 : ERR_OVERFLOW);
            buf_free(&b);
        }
}
END_TEST

/* ---- the corpus of the BSON specification ---- */

static size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (unsigned byte; hex[0] && hex[1] && sscanf(hex, "%2x", &byte) == 1; hex += 2)
        out[n++] = (uint8_t)byte;
    return n;
}

/* Of the broken documents the server lets in: text that is no UTF-8, and lengths inside old binary. */
static bool let_in(const char *why)
{
    return strstr(why, "UTF-8") || strstr(why, "subtype 0x02");
}

static int corpus_cases(const uint8_t *file, const char *list, const char *field, bool good)
{
    struct bval cases = bdoc_get(file, list);
    struct biter it;
    struct belem e;
    int n = 0;
    if (cases.type != BSON_TYPE_ARRAY)
        return 0;
    biter_init(&it, bval_doc(cases));
    while (biter_next(&it, &e)) {
        uint32_t len;
        struct bval hex = bdoc_get(e.v.p, field);
        const char *why = bval_str(bdoc_get(e.v.p, "description"), &len);
        ck_assert_int_eq(hex.type, BSON_TYPE_UTF8);
        const char *text = bval_str(hex, &len);
        uint8_t *raw = malloc(len / 2 + 1);
        int rc = check_bytes(raw, unhex(text, raw), BSON_DEPTH_MAX);
        ck_assert_msg((rc == 0) == (good || let_in(why)), "%s: %s gives %d", why, text, rc);
        free(raw);
        n++;
    }
    return n;
}

static int corpus_file(const char *folder, const char *name)
{
    char path[4096];
    bson_error_t why;
    snprintf(path, sizeof(path), "%s/%s.json", folder, name);
    bson_json_reader_t *r = bson_json_reader_new_from_file(path, &why);
    ck_assert_msg(r != NULL, "%s: %s", path, why.message);
    bson_t doc = BSON_INITIALIZER;
    ck_assert_int_eq(bson_json_reader_read(r, &doc, &why), 1);
    int n = corpus_cases(bson_get_data(&doc), "valid", "canonical_bson", true) +
            corpus_cases(bson_get_data(&doc), "decodeErrors", "bson", false);
    bson_destroy(&doc);
    bson_json_reader_destroy(r);
    return n;
}

START_TEST(the_corpus_of_the_specification_holds)
{
    static const char *const names[] = {
        "array",        "binary",
        "boolean",      "code",
        "code_w_scope", "datetime",
        "dbpointer",    "dbref",
        "decimal128-1", "decimal128-2",
        "decimal128-3", "decimal128-4",
        "decimal128-5", "decimal128-6",
        "decimal128-7", "document",
        "double",       "int32",
        "int64",        "maxkey",
        "minkey",       "multi-type-deprecated",
        "multi-type",   "null",
        "oid",          "regex",
        "string",       "symbol",
        "timestamp",    "top",
        "undefined",
    };
    const char *folder = getenv("BSON_CORPUS");
    int n = 0;
    if (!folder) {
        fprintf(stderr, "the corpus of the BSON specification is NOT read: BSON_CORPUS names no folder\n");
        return;
    }
    for (size_t i = 0; i < OV_LEN(names); i++)
        n += corpus_file(folder, names[i]);
    fprintf(stderr, "corpus of the BSON specification: %d documents\n", n);
    ck_assert_int_gt(n, 500);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_document_of_all_types_is_well_formed);
    tcase_add_test(tc, no_beginning_of_a_document_is_one);
    tcase_add_test(tc, broken_documents_are_refused);
    tcase_add_test(tc, nesting_is_bounded);
    tcase_add_test(tc, the_corpus_of_the_specification_holds);
}

TEST_MAIN("bson/check", add_tests)
