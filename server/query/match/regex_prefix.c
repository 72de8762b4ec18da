/* The literal prefix of an anchored pattern: /^abc/ and /\\Aabc.*d/ need "abc" at the start, so an index need only be read there.
 * Anything doubtful means no prefix: a flag that changes how letters, blanks or anchors read, an alternative anywhere. */
#include "server/query/match/match_private.h"

/* Drops the last character of the n bytes, all of its bytes. */
static size_t drop_last(const char *s, size_t n)
{
    while (n && ((unsigned char)s[n - 1] & 0xc0) == 0x80)
        n--;
    return n ? n - 1 : 0;
}

size_t match_prefix_of(const char *pattern, const char *flags, char *out, bool *exact)
{
    const char *p = pattern;
    size_t n = 0;
    *exact = false;
    if (strpbrk(flags, "imx") || strchr(pattern, '|'))
        return 0;
    if (*p == '^')
        p++;
    else if (p[0] == '\\' && p[1] == 'A')
        p += 2;
    else
        return 0;
    for (; *p; p++) {
        if (*p == '\\') {
            unsigned char next = (unsigned char)p[1];
            if (next >= 0x80 || !strchr(".^$*+?()[]{}/\\-_:@#&%!\"'=<>,; ~`", next) || !next)
                return n; /* \d, \b, \Q …: not a character */
            p++;
        } else if (*p == '*' || *p == '?' || *p == '{') {
            return drop_last(out, n); /* what they repeat may be absent */
        } else if (strchr(".^$+()[]}", *p)) {
            return n;
        }
        out[n++] = *p;
    }
    *exact = true;
    return n;
}
