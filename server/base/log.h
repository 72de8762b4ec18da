/* The server log: one JSON line an event, in mongod's shape:
 * {"t":{"$date":"2026-01-02T03:04:05.678+00:00"},"s":"I","c":"NETWORK","id":22943,"ctx":"loop0","msg":"…","attr":{…}}
 * Thread: any. Quiet by default: no line per connection below verbosity 1. */
#ifndef OV_LOG_H
#define OV_LOG_H

#include "server/base/base.h"

enum log_level { LOG_FATAL, LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG1, LOG_DEBUG2 };

struct log_options {
    const char *path;      /* NULL: standard output */
    int verbosity;         /* 0 .. 5: LOG_DEBUGn lines are written where n <= verbosity */
    uint64_t rotate_bytes; /* rename to PATH.<UTC time> and start anew at this size; 0 = never */
    bool append;           /* false: an existing file is renamed first, as mongod does */
};

/* Opens the log. Returns 0 or errno. Until then lines go to standard output. Start-up only. */
int log_open(const struct log_options *opt);
int log_reopen(void); /* closes and opens the same path again (logrotate's way): 0 or errno */
void log_close(void);
void log_set_verbosity(int verbosity);
void log_set_thread_name(const char *name); /* "ctx" of this thread's lines; copied, at most 31 bytes */

/* One line. `component` as mongod names them: CONTROL NETWORK STORAGE COMMAND INDEX ACCESS QUERY WRITE RECOVERY FTDC.
 * `id`: a number of this call site, unique in the tree. `attr_fmt`: the fields of attr as JSON without the braces, printf rules;
 * NULL for none. Text values must pass log_quote. */
void log_line(enum log_level level, const char *component, int id, const char *msg, const char *attr_fmt, ...)
    OV_PRINTF(5, 6);
bool log_enabled(enum log_level level);

/* Writes s as a JSON string with its quotes into out (cut to fit), returns out. */
const char *log_quote(const char *s, size_t n, char *out, size_t out_bytes);

/* The newest lines, for getLog: calls fn for each, oldest first (at most 1024 are kept). Returns how many were ever written.
 * warnings_only: those of LOG_WARNING or worse that were written before log_startup_done. */
uint64_t log_recent(bool warnings_only, void (*fn)(void *arg, const char *line, size_t n), void *arg);
void log_startup_done(void);

#endif
