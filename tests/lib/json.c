/* JSON to BSON for tests. Everything made is kept in one list: test programs are short, and a leak checker sees it reachable. */
#include "tests/lib/json.h"

#include <bson/bson.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kept {
    struct kept *next;
    bson_t *doc;
} * all;

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || strchr("_$~", c);
}

/* Appends the string that starts at `p` (at its quote) in double quotes; the position behind it. */
static const char *put_string(bson_string_t *out, const char *p)
{
    char quote = *p++;
    bson_string_append_c(out, '"');
    for (; *p && *p != quote; p++) {
        if (p[0] == '\\' && p[1] == '\'') {
            bson_string_append_c(out, *++p);
        } else if (p[0] == '\\' && p[1]) {
            bson_string_append_c(out, *p++);
            bson_string_append_c(out, *p);
        } else if (*p == '"') {
            bson_string_append(out, "\\\"");
        } else {
            char one[2] = {*p, 0};
            bson_string_append(out, one);
        }
    }
    bson_string_append_c(out, '"');
    return *p ? p + 1 : p;
}

/* Strict JSON out of ours: quotes, and bare words before a colon become strings. */
static char *to_strict(const char *p)
{
    bson_string_t *out = bson_string_new(NULL);
    while (*p) {
        if (*p == '\'' || *p == '"') {
            p = put_string(out, p);
        } else if (isalpha((unsigned char)*p) || strchr("_$~", *p)) {
            const char *end = p;
            while (*end && is_name(*end))
                end++;
            const char *after = end + strspn(end, " \n\t");
            bool name = *after == ':';
            if (name)
                bson_string_append_c(out, '"');
            for (; p < end; p++)
                bson_string_append_c(out, *p);
            if (name)
                bson_string_append_c(out, '"');
        } else {
            char one[2] = {*p++, 0};
            bson_string_append(out, one);
        }
    }
    return bson_string_free(out, false);
}

static void tilde_to_dollar(bson_iter_t *it)
{
    while (bson_iter_next(it)) {
        char *name = (char *)bson_iter_key(it); /* into a document of our own */
        bson_iter_t child;
        if (*name == '~')
            *name = '$';
        if ((BSON_ITER_HOLDS_DOCUMENT(it) || BSON_ITER_HOLDS_ARRAY(it)) && bson_iter_recurse(it, &child))
            tilde_to_dollar(&child);
    }
}

const uint8_t *J(const char *json)
{
    char *strict = to_strict(json);
    bson_error_t why;
    bson_t *doc = bson_new_from_json((const uint8_t *)strict, -1, &why);
    if (!doc) {
        fprintf(stderr, "bad JSON in a test: %s: %s\n", strict, why.message);
        abort();
    }
    bson_free(strict);
    bson_iter_t it;
    if (bson_iter_init(&it, doc))
        tilde_to_dollar(&it);
    struct kept *k = malloc(sizeof *k);
    *k = (struct kept){all, doc};
    all = k;
    return bson_get_data(doc);
}
