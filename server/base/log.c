/* The server log. A line is formatted by the thread that logs, outside the lock; under the lock it is written with one
 * write(2), so that lines never mix and none is lost when the process dies, and kept among the newest for getLog. A log that
 * cannot be written (full disk) is no reason to stop: the lines are still kept in memory. */
#include "server/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/base/arena.h"
#include "server/base/buf.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"

#define RECENT_MAX      1024  /* lines, and separately start-up warnings, that are kept */
#define RECENT_LINE_MAX 16384 /* bytes of a kept line */

struct kept {
    char *text;
    size_t n;
};

static struct {
    struct mutex lock;
    int fd;
    bool opened; /* fd is a file of ours */
    char *path;
    uint64_t rotate_bytes, bytes;
    struct kept recent[RECENT_MAX];
    uint64_t written; /* lines ever; the newest lies at (written - 1) % RECENT_MAX */
    struct kept warnings[RECENT_MAX];
    uint64_t warned;
    bool started;
} the_log = {.lock = {.m = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LOG}, .fd = STDOUT_FILENO};

static atomic_int verbosity;
static __thread char thread_name[32] = "main";

static int open_file(const char *path, int *fd, uint64_t *bytes)
{
    struct stat st;
    *fd = -1;
    *bytes = 0;
    int f = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (f < 0)
        return errno;
    if (fstat(f, &st) == 0)
        *bytes = (uint64_t)st.st_size;
    *fd = f;
    return 0;
}

/* Renames the log to PATH.2026-01-02T03-04-05, with -1, -2 … behind it while that name is taken. A missing file is fine. */
static int rename_old(const char *path)
{
    char when[32], target[4096];
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm tm;
    strftime(when, sizeof(when), "%Y-%m-%dT%H-%M-%S", gmtime_r(&now, &tm));
    for (int i = 0; i < 1000; i++) {
        int n = i ? snprintf(target, sizeof(target), "%s.%s-%d", path, when, i)
                  : snprintf(target, sizeof(target), "%s.%s", path, when);
        if (n < 0 || (size_t)n >= sizeof(target))
            return ENAMETOOLONG;
        if (access(target, F_OK) != 0)
            return rename(path, target) == 0 || errno == ENOENT ? 0 : errno;
    }
    return EEXIST;
}

/* Puts a new file in place of the current one; on failure the current one stays. */
static int swap_file_locked(void)
{
    int fd, rc;
    uint64_t bytes;
    if ((rc = open_file(the_log.path, &fd, &bytes)) != 0)
        return rc;
    if (the_log.opened)
        close(the_log.fd);
    the_log.fd = fd;
    the_log.bytes = bytes;
    the_log.opened = true;
    return 0;
}

int log_open(const struct log_options *opt)
{
    int rc = 0;
    log_set_verbosity(opt->verbosity);
    mutex_lock(&the_log.lock);
    free(the_log.path);
    the_log.path = opt->path ? ov_strdup(opt->path) : NULL;
    the_log.rotate_bytes = opt->rotate_bytes;
    if (opt->path && (opt->append || (rc = rename_old(opt->path)) == 0))
        rc = swap_file_locked();
    mutex_unlock(&the_log.lock);
    return rc;
}

int log_reopen(void)
{
    mutex_lock(&the_log.lock);
    int rc = the_log.path ? swap_file_locked() : 0;
    mutex_unlock(&the_log.lock);
    return rc;
}

static void forget(struct kept *k, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(k[i].text);
        k[i] = (struct kept){0};
    }
}

void log_close(void)
{
    mutex_lock(&the_log.lock);
    if (the_log.opened)
        close(the_log.fd);
    the_log.fd = STDOUT_FILENO;
    the_log.opened = false;
    free(the_log.path);
    the_log.path = NULL;
    forget(the_log.recent, RECENT_MAX);
    forget(the_log.warnings, RECENT_MAX);
    the_log.written = the_log.warned = 0;
    the_log.started = false;
    mutex_unlock(&the_log.lock);
}

void log_set_verbosity(int v)
{
    atomic_store_explicit(&verbosity, v, memory_order_relaxed);
}

void log_set_thread_name(const char *name)
{
    snprintf(thread_name, sizeof(thread_name), "%s", name);
}

bool log_enabled(enum log_level level)
{
    return level <= LOG_INFO || (int)level - (int)LOG_INFO <= atomic_load_explicit(&verbosity, memory_order_relaxed);
}

/* Bytes of the valid UTF-8 sequence at s, 0 if there is none: no overlong forms, no surrogates, nothing above U+10FFFF. */
static size_t utf8_length(const uint8_t *s, size_t n)
{
    size_t len;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] >= 0x90))
        return 0;
    return len;
}

const char *log_quote(const char *s, size_t n, char *out, size_t out_bytes)
{
    if (out_bytes < 3) {
        if (out_bytes)
            out[0] = '\0';
        return out;
    }
    size_t o = 0, room = out_bytes - 2; /* for the closing quote and the NUL */
    out[o++] = '"';
    for (size_t i = 0; i < n;) {
        char piece[8];
        size_t take = utf8_length((const uint8_t *)s + i, n - i), len;
        uint8_t c = (uint8_t)s[i];
        if (take == 0) {
            len = (size_t)snprintf(piece, sizeof(piece), "\\ufffd");
            take = 1;
        } else if (c == '"' || c == '\\') {
            len = (size_t)snprintf(piece, sizeof(piece), "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            len = (size_t)snprintf(piece, sizeof(piece), "\\u%04x", c);
        } else {
            memcpy(piece, s + i, take);
            len = take;
        }
        if (o + len > room)
            break;
        memcpy(out + o, piece, len);
        o += len;
        i += take;
    }
    out[o++] = '"';
    out[o] = '\0';
    return out;
}

static void format_line(struct buf *b, enum log_level level, const char *component, int id, const char *msg)
{
    static const char *const severity[] = {"F", "E", "W", "I", "D1", "D2"};
    char when[32], quoted[512], ctx[80];
    int64_t now = clock_wall_ms();
    time_t seconds = (time_t)(now / 1000);
    struct tm tm;
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
    buf_printf(b, "{\"t\":{\"$date\":\"%s.%03d+00:00\"},\"s\":\"%s\",\"c\":\"%s\",\"id\":%d,\"ctx\":%s,\"msg\":%s",
               when, (int)(now % 1000), severity[level], component, id,
               log_quote(thread_name, strlen(thread_name), ctx, sizeof(ctx)),
               log_quote(msg, strlen(msg), quoted, sizeof(quoted)));
}

static void keep(struct kept *k, const struct buf *line)
{
    size_t n = OV_MIN(line->len - 1, (size_t)RECENT_LINE_MAX); /* without the newline */
    k->text = ov_realloc(k->text, n);
    memcpy(k->text, line->p, n);
    k->n = n;
}

static void write_all(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return; /* nowhere to report it; the line is kept in memory */
        p += w;
        n -= (size_t)w;
    }
}

static void write_locked(enum log_level level, const struct buf *line)
{
    if (the_log.opened && the_log.rotate_bytes && the_log.bytes && the_log.bytes + line->len > the_log.rotate_bytes &&
        rename_old(the_log.path) == 0)
        (void)swap_file_locked(); /* if it fails, the renamed file goes on being written: better than no log */
    write_all(the_log.fd, line->p, line->len);
    the_log.bytes += line->len;
    keep(&the_log.recent[the_log.written++ % RECENT_MAX], line);
    if (level <= LOG_WARNING && !the_log.started)
        keep(&the_log.warnings[the_log.warned++ % RECENT_MAX], line);
}

void log_line(enum log_level level, const char *component, int id, const char *msg, const char *attr_fmt, ...)
{
    if (!log_enabled(level))
        return;
    int saved = errno; /* callers log before they look at it */
    struct buf line;
    buf_init(&line);
    format_line(&line, level, component, id, msg);
    if (attr_fmt) {
        char small[1024];
        va_list ap, again;
        va_start(ap, attr_fmt);
        va_copy(again, ap);
        int n = vsnprintf(small, sizeof(small), attr_fmt, ap);
        buf_printf(&line, ",\"attr\":{");
        if (n > 0 && (size_t)n < sizeof(small)) {
            buf_append(&line, small, (size_t)n);
        } else if (n > 0) {
            vsnprintf((char *)buf_reserve(&line, (size_t)n + 1), (size_t)n + 1, attr_fmt, again);
            line.len += (size_t)n;
        }
        buf_byte(&line, '}');
        va_end(again);
        va_end(ap);
    }
    buf_printf(&line, "}\n");
    mutex_lock(&the_log.lock);
    write_locked(level, &line);
    mutex_unlock(&the_log.lock);
    buf_free(&line);
    errno = saved;
}

uint64_t log_recent(bool warnings_only, void (*fn)(void *arg, const char *line, size_t n), void *arg)
{
    struct buf copy; /* fn runs without the lock: it may log or lock */
    size_t ends[RECENT_MAX], lines = 0;
    buf_init(&copy);
    mutex_lock(&the_log.lock);
    const struct kept *k = warnings_only ? the_log.warnings : the_log.recent;
    uint64_t total = warnings_only ? the_log.warned : the_log.written;
    for (uint64_t i = total > RECENT_MAX ? total - RECENT_MAX : 0; i < total; i++) {
        buf_append(&copy, k[i % RECENT_MAX].text, k[i % RECENT_MAX].n);
        ends[lines++] = copy.len;
    }
    mutex_unlock(&the_log.lock);
    for (size_t i = 0, from = 0; i < lines; from = ends[i++])
        fn(arg, (const char *)copy.p + from, ends[i] - from);
    buf_free(&copy);
    return total;
}

void log_startup_done(void)
{
    mutex_lock(&the_log.lock);
    the_log.started = true;
    mutex_unlock(&the_log.lock);
}
