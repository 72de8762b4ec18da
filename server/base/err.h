/* Errors as clients see them: a code of errcode.def, a message that is never cut, labels, an optional document. */
#ifndef OV_ERR_H
#define OV_ERR_H

#include "server/base/arena.h"

enum errcode {
    ERR_OK = 0,
#define X(sym, code, name) sym = code,
#include "server/base/errcode.def"
#undef X
};

enum err_label {
    ERR_LABEL_TRANSIENT_TXN = 1 << 0,    /* TransientTransactionError */
    ERR_LABEL_RETRYABLE_WRITE = 1 << 1,  /* RetryableWriteError */
    ERR_LABEL_NO_WRITES = 1 << 2,        /* NoWritesPerformed */
    ERR_LABEL_RESUMABLE_STREAM = 1 << 3, /* ResumableChangeStreamError */
    ERR_LABEL_NONRESUMABLE_STREAM = 1 << 4,
};

struct err {
    int code;        /* the code on the wire; 0 = no error. Any Location code may be used beside enum errcode */
    uint32_t labels; /* enum err_label bits, sent as errorLabels */
    const char *msg; /* one line for the client, in `arena`, never cut; no secrets, no addresses */
    struct slice
        info; /* a BSON document whose fields are added to the error (keyPattern, keyValue, errInfo); or {NULL, 0} */
    const char *where; /* "file.c:123" of the first err_set: for the log, never for the client */
    struct arena
        *arena; /* where messages live; set once by err_init, kept by err_clear. NULL: messages are static text only */
};

void err_init(struct err *e, struct arena *arena);
void err_clear(struct err *e); /* no error; keeps the arena */

/* Fills *e (an older error is replaced) and returns the code. printf rules for fmt. */
#define err_set(e, code, ...) err_set_at((e), (code), __FILE__, __LINE__, __VA_ARGS__)
int err_set_at(struct err *e, int code, const char *file, int line, const char *fmt, ...) OV_PRINTF(5, 6);

/* Puts "text" in front of the message: "Plan executor error during update :: caused by :: ". */
void err_prefix(struct err *e, const char *text);

/* The name of a code on the wire: "BadValue"; "Location51024" for a code without a name. `scratch` holds at least 24 bytes. */
const char *err_code_name(int code, char *scratch);

#endif
