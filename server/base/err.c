/* Filling in errors, and the names of their codes. */
#include "server/base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/base/arena_private.h"

static const struct {
    int code;
    const char *name;
} names[] = {
#define X(sym, code, name) {code, name},
#include "server/base/errcode.def"
#undef X
};

void err_init(struct err *e, struct arena *arena)
{
    *e = (struct err){.arena = arena};
}

void err_clear(struct err *e)
{
    *e = (struct err){.arena = e->arena};
}

/* "file.c:123"; the bare file name where there is no arena to write in. */
static const char *place(struct arena *arena, const char *file, int line)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;
    if (!arena)
        return base;
    size_t n = strlen(base) + 16;
    char *p = arena_alloc_past_limit(arena, n);
    snprintf(p, n, "%s:%d", base, line);
    return p;
}

int err_set_at(struct err *e, int code, const char *file, int line, const char *fmt, ...)
{
    const char *msg = fmt; /* without an arena only static text can be kept */
    if (e->arena) {
        va_list ap;
        va_start(ap, fmt);
        msg = arena_vprintf_past_limit(e->arena, fmt, ap); /* before *e changes: an argument may be the old message */
        va_end(ap);
    }
    *e = (struct err){.code = code, .msg = msg, .where = place(e->arena, file, line), .arena = e->arena};
    return code;
}

void err_prefix(struct err *e, const char *text)
{
    if (!e->arena)
        return;
    const char *msg = e->msg ? e->msg : "";
    size_t front = strlen(text), back = strlen(msg);
    char *p = arena_alloc_past_limit(e->arena, front + back + 1);
    memcpy(p, text, front);
    memcpy(p + front, msg, back + 1);
    e->msg = p;
}

const char *err_code_name(int code, char *scratch)
{
    size_t lo = 0, hi = OV_LEN(names);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (names[mid].code == code)
            return names[mid].name;
        if (names[mid].code < code)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (code == 0)
        return "OK";
    snprintf(scratch, 24, "Location%d", code);
    return scratch;
}
