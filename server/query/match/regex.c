/* $regex with $options, and regex literals (a value, in $in, $all, $not). PCRE2, compiled once with the tree, by JIT where
 * there is one. A regex matches strings and symbols in which it is found, and stored regexes that are the same.
 *
 * Trees are shared between threads and matching must not allocate, so the match data is the thread's. Patterns come from
 * clients: steps, stack and heap of one attempt are limited. An attempt that hits a limit counts as no match, as in the real
 * server: there is nobody to tell. Strings that are no UTF-8 match in their valid stretches. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>

#include "server/query/match/match_private.h"

#define PATTERN_MAX   32764   /* bytes, the server's limit */
#define MATCH_STEPS   1000000 /* about a tenth of a second */
#define DEPTH_STEPS   100000
#define HEAP_KIB      16384
#define JIT_STACK_MAX (1u << 20)

struct regex {
    pcre2_code *code;
    const char *pattern, *flags; /* in the node's value */
    struct slice prefix;         /* that a match begins with; empty if unknown */
    bool exact;                  /* and that is all */
};

/* ---- the thread's tools */

struct tools {
    pcre2_match_context *limits;
    pcre2_match_data *data;
    pcre2_jit_stack *stack;
};
static __thread struct tools tools;
static pthread_key_t tools_key;
static pthread_once_t tools_once = PTHREAD_ONCE_INIT;

static void tools_free(void *arg)
{
    struct tools *t = arg;
    pcre2_match_data_free(t->data);
    pcre2_match_context_free(t->limits);
    pcre2_jit_stack_free(t->stack);
    memset(t, 0, sizeof *t);
}

static void make_key(void)
{
    pthread_key_create(&tools_key, tools_free);
}

static bool tools_ready(void)
{
    if (OV_LIKELY(tools.data != NULL))
        return true;
    pthread_once(&tools_once, make_key);
    tools.limits = pcre2_match_context_create(NULL);
    tools.stack = pcre2_jit_stack_create(32 * 1024, JIT_STACK_MAX, NULL);
    tools.data = pcre2_match_data_create(1, NULL);
    if (!tools.limits || !tools.data) {
        tools_free(&tools);
        return false;
    }
    pcre2_set_match_limit(tools.limits, MATCH_STEPS);
    pcre2_set_depth_limit(tools.limits, DEPTH_STEPS);
    pcre2_set_heap_limit(tools.limits, HEAP_KIB);
    if (tools.stack)
        pcre2_jit_stack_assign(tools.limits, NULL, tools.stack);
    pthread_setspecific(tools_key, &tools);
    return true;
}

/* ---- parsing */

static void free_code(void *code)
{
    pcre2_code_free(code);
}

static int flags_of(struct parser *ps, const char *flags, uint32_t *out)
{
    *out = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
    for (const char *f = flags; *f; f++) {
        switch (*f) {
        case 'i':
            *out |= PCRE2_CASELESS;
            break;
        case 'm':
            *out |= PCRE2_MULTILINE;
            break;
        case 's':
            *out |= PCRE2_DOTALL;
            break;
        case 'x':
            *out |= PCRE2_EXTENDED;
            break;
        case 'u': /* always on */
            break;
        default:
            return err_set(ps->err, 51108, "invalid flag in regex options: %c", *f);
        }
    }
    return 0;
}

static int count_bytes(struct parser *ps, const pcre2_code *code)
{
    size_t size = 0, jit = 0;
    pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size);
    pcre2_pattern_info(code, PCRE2_INFO_JITSIZE, &jit);
    ps->regex_bytes += size + jit;
    return ps->regex_bytes > MATCH_REGEX_BYTES ? match_full(ps) : 0;
}

static int compile(struct parser *ps, struct regex *rx)
{
    uint32_t flags;
    int code, rc = flags_of(ps, rx->flags, &flags);
    PCRE2_SIZE at;
    if (rc != 0)
        return rc;
    if (strlen(rx->pattern) > PATTERN_MAX)
        return err_set(ps->err, 51091, "Regular expression is invalid: regular expression is too large");
    rx->code = pcre2_compile((PCRE2_SPTR)rx->pattern, PCRE2_ZERO_TERMINATED, flags, &code, &at, NULL);
    if (!rx->code) {
        PCRE2_UCHAR why[128] = {0};
        pcre2_get_error_message(code, why, sizeof why);
        return err_set(ps->err, 51091, "Regular expression is invalid: %s", (const char *)why);
    }
    arena_on_reset(ps->a, free_code, rx->code);
    if (ps->n_regexes++ < MATCH_REGEX_JIT) /* the others, and all where there is no JIT, are interpreted */
        (void)pcre2_jit_compile(rx->code, PCRE2_JIT_COMPLETE);
    return count_bytes(ps, rx->code);
}

/* `v` is a regex in the arena: pattern, NUL, flags, NUL. */
static int push_regex(struct parser *ps, const char *path, struct bval v, struct match_list *out)
{
    struct regex rx = {.pattern = (const char *)v.p};
    rx.flags = rx.pattern + strlen(rx.pattern) + 1;
    int rc = compile(ps, &rx);
    if (rc != 0)
        return rc;
    struct match *m = match_leaf(ps, MATCH_REGEX, path);
    if (!m)
        return ps->err->code;
    m->value = v;
    char *prefix = arena_alloc(ps->a, v.n);
    if (!prefix)
        return match_full(ps);
    rx.prefix = slice_of(prefix, match_prefix_of(rx.pattern, rx.flags, prefix, &rx.exact));
    if (!(m->priv = arena_dup(ps->a, &rx, sizeof rx)))
        return match_full(ps);
    return match_push(ps, out, m);
}

int match_regex_literal(struct parser *ps, const char *path, struct bval v, struct match_list *out)
{
    int rc = match_copy_value(ps, v, &v);
    return rc ? rc : push_regex(ps, path, v, out);
}

/* A string operand: without NULs, which the pattern could not hold. */
static int text_of(struct parser *ps, const struct belem *e, const char **s, uint32_t *n)
{
    if (e->v.type != BSON_TYPE_UTF8)
        return err_set(ps->err, ERR_BAD_VALUE, "%s has to be a string", e->name);
    *s = bval_str(e->v, n);
    bool pattern = e->name[1] == 'r';
    if (memchr(*s, 0, *n))
        return err_set(ps->err, pattern ? ERR_BAD_VALUE : 51108, "%s cannot contain an embedded null byte",
                       pattern ? "Regular expression" : "Regular expression options string");
    return 0;
}

/* $regex and $options, whichever comes first. */
int match_parse_regex(struct parser *ps, const char *path, const struct belem *e, const uint8_t *sub,
                      struct match_list *out)
{
    const char *pattern = "", *flags = "";
    uint32_t pattern_n = 0, flags_n = 0;
    struct biter it;
    struct belem f;
    bool found = false;
    int rc;
    biter_init(&it, sub);
    while (biter_next(&it, &f)) {
        found |= strcmp(f.name, "$regex") == 0;
        if (strcmp(f.name, "$regex") == 0 && f.v.type == BSON_TYPE_REGEX) {
            const char *own = (const char *)f.v.p + strlen((const char *)f.v.p) + 1;
            own += *own == 'u'; /* what Python adds to every literal; patterns are UTF-8 anyway */
            pattern = (const char *)f.v.p;
            pattern_n = (uint32_t)strlen(pattern);
            if (*own && flags_n)
                return err_set(ps->err, 51074, "options set in both $regex and $options");
            if (*own) {
                flags = own;
                flags_n = (uint32_t)strlen(own);
            }
        } else if (strcmp(f.name, "$regex") == 0) {
            if ((rc = text_of(ps, &f, &pattern, &pattern_n)) != 0)
                return rc;
        } else if (strcmp(f.name, "$options") == 0) {
            if (f.v.type == BSON_TYPE_UTF8 && flags_n)
                return err_set(ps->err, 51075, "options set in both $regex and $options");
            if ((rc = text_of(ps, &f, &flags, &flags_n)) != 0)
                return rc;
        }
    }
    if (!found)
        return err_set(ps->err, ERR_BAD_VALUE, "$options needs a $regex");
    struct bval v = {BSON_TYPE_REGEX, pattern_n + flags_n + 2, NULL};
    uint8_t *p = arena_zalloc(ps->a, v.n);
    if (!p)
        return match_full(ps);
    memcpy(p, pattern, pattern_n);
    memcpy(p + pattern_n + 1, flags, flags_n);
    v.p = p;
    return push_regex(ps, path, v, out);
}

/* ---- matching */

bool match_regex_text(const struct match *m, const char *s, uint32_t n)
{
    const struct regex *rx = m->priv;
    if (rx->prefix.n) {
        bool begins = n >= rx->prefix.n && memcmp(s, rx->prefix.p, rx->prefix.n) == 0;
        if (!begins || rx->exact)
            return begins;
    }
    if (!tools_ready())
        return false;
    int rc = pcre2_match(rx->code, (PCRE2_SPTR)s, n, 0, 0, tools.data, tools.limits);
    if (OV_UNLIKELY(rc == PCRE2_ERROR_JIT_STACKLIMIT))
        rc = pcre2_match(rx->code, (PCRE2_SPTR)s, n, 0, PCRE2_NO_JIT, tools.data, tools.limits);
    return rc >= 0;
}

bool match_test_regex(const struct match *m, struct bval v, struct match_result *r)
{
    uint32_t n;
    if (v.type == BSON_TYPE_REGEX)
        return v.n == m->value.n && memcmp(v.p, m->value.p, v.n) == 0;
    if (v.type != BSON_TYPE_UTF8 && v.type != BSON_TYPE_SYMBOL)
        return false;
    const char *s = bval_str(v, &n);
    return match_regex_text(m, s, n);
}

bool match_regex_prefix(const struct match *m, struct slice *prefix, bool *exact)
{
    const struct regex *rx = m->priv;
    *prefix = rx->prefix;
    *exact = rx->exact;
    return rx->prefix.n > 0;
}
