/* The catalog: databases, collections, their options and indexes. An operation resolves a name once and holds a reference to an immutable
 * definition; DDL publishes a new one. Stored as rows of keyspace KEYSPACE_CATALOG: key "db.coll", value BSON. */
#ifndef OV_CATALOG_H
#define OV_CATALOG_H

#include <stdatomic.h>

#include "index/index.h"
#include "server/base/mutex.h"

struct catalog;
struct match; /* server/query/match/match.h */

struct collection { /* immutable; reference counted */
    _Atomic int refs;
    const char *ns; /* "db.coll" */
    const char *db, *name;
    uint8_t uuid[16];
    uint64_t records;              /* keyspace of the documents: key = record id, 8 bytes big-endian */
    const uint8_t *options;        /* BSON, as listCollections shows it */
    const struct match *validator; /* what documents have to match; NULL: anything */
    bool validator_moderate;       /* not those that did not match before */
    bool validator_warns;          /* a failure is only logged */
    struct index_def *indexes;     /* [0] is _id_ */
    uint32_t n_indexes;
    struct collection_rt *rt; /* shared by all versions */
    struct arena *arena;
    uint64_t version; /* of this definition; writers need the newest (catalog_write_enter) */
};
struct collection_rt {
    _Atomic uint64_t next_rid; /* R26; 0 = not looked up yet */
    _Atomic bool dropped;      /* an operation that holds a reference answers 175 / sees an empty collection */
    _Atomic int writers;       /* write statements under way; DDL waits for 0 after announcing */
    _Atomic int ddl;           /* announced: new write statements wait (catalog_write_enter) */
    _Atomic uint64_t version;  /* the definition that writers must hold; 0 once dropped */
};

/* Loads all definitions. Start-up only; blocks. */
OV_MUST_CHECK int catalog_open(struct engine *e, struct catalog **out, struct err *err);
void catalog_close(struct catalog *c);

/* The collection, with a reference; NULL if absent. Thread: any; lock is short. */
struct collection *catalog_get(struct catalog *c, const char *db, const char *name);
void collection_unref(struct collection *c); /* accepts NULL */
static inline struct collection *collection_ref(struct collection *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

/* A write statement enters and leaves. OK: the definition stays the newest until it leaves. PENDING while DDL has announced itself (call->wake
 * comes; call again, or catalog_cancel). CONFLICT: the definition was changed or dropped since catalog_get; resolve the name again, then enter. */
OV_MUST_CHECK enum eng_result catalog_write_enter(struct catalog *c, struct collection *coll, struct eng_call *call);
void catalog_write_leave(struct catalog *c, struct collection *coll);

/* True: call->wake comes when the next change of this collection is over (the same changes as DDL below, drops included). False: `coll` is
 * not the definition in force any more; look again. For whoever waits for somebody else's index build. */
bool catalog_await_change(struct catalog *c, struct collection *coll, struct eng_call *call);

/* Ends what is pending for `call`, a write statement's wait as well as DDL (which then has not happened, or has happened as a whole): for
 * operations that end early. Nothing wakes the call afterwards. Cheap when nothing is pending at all. Thread: the operation's, inside a step. */
void catalog_cancel(struct catalog *c, struct eng_call *call);

/* DDL: each is polled (PENDING: call again with the same call), journaled in one engine batch, then published. One at a time a collection.
 * create: ERR_NAMESPACE_EXISTS only if the existing one has other options (*existed tells). Name rules: ERR_INVALID_NAMESPACE. Options of NULL:
 * whatever is there will do (implicit creation by inserts). */
enum ddl_result { DDL_OK, DDL_PENDING, DDL_ERROR };
enum ddl_result catalog_create(struct catalog *c, const char *db, const char *name, const uint8_t *options,
                               bool *existed, struct eng_call *call, struct err *err);
enum ddl_result catalog_drop(struct catalog *c, const char *db, const char *name, struct eng_call *call,
                             struct err *err); /* 26 if absent */
/* Sets def->partial of a parsed definition that has a filter; it lives in `a`. Errors: those of the filter; 67 if it is none for an index. */
OV_MUST_CHECK int catalog_index_filter(struct arena *a, struct index_def *def, struct err *err);
/* Adds building indexes; catalog_index_ready publishes them as ready; catalog_index_drop removes (also a failed build). */
enum ddl_result catalog_index_add(struct catalog *c, const char *db, const char *name, const struct index_def *defs,
                                  uint32_t n, struct eng_call *call, struct err *err);
enum ddl_result catalog_index_ready(struct catalog *c, const char *db, const char *name, const char *const *names,
                                    uint32_t n, struct eng_call *call, struct err *err);
enum ddl_result catalog_index_drop(struct catalog *c, const char *db, const char *name, const char *const *names,
                                   uint32_t n, struct eng_call *call, struct err *err);
/* In one batch the collection gets another name, also in another database (then with a new uuid, as if it had been copied), and takes the place of
 * what has that name if drop_target says so. Whoever holds the old definition sees a dropped collection. 26: no source; 48: the target is there;
 * 12587: an index of the source is being built. The names differ. */
enum ddl_result catalog_rename(struct catalog *c, const char *db, const char *name, const char *to_db,
                               const char *to_name, bool drop_target, struct eng_call *call, struct err *err);
/* Other options, made from those of `from` (a reference that the caller keeps until it is over); and where `index`, one of from's, is not NULL,
 * another specification for it, with the same key and the same entries. OK with *stale: `from` is not the definition in force any more, nothing
 * was changed. Errors: those of the validator's filter and of the specification; 26. */
enum ddl_result catalog_set_options(struct catalog *c, const struct collection *from, const uint8_t *options,
                                    const struct index_def *index, const uint8_t *spec, bool *stale,
                                    struct eng_call *call, struct err *err);

/* Walks: fn for each collection (with a reference held during the call), sorted by name; db NULL = all. */
void catalog_each(struct catalog *c, const char *db, void (*fn)(void *arg, struct collection *coll), void *arg);

/* To be called for every key set with multikey bits, before the commit of `t` that adds its keys, whatever rt->multikey says: sets the bits in
 * memory, and adds their rows to the batch unless a row is known to be committed already (another batch that set the bit may yet fail).
 * Cheap once they are. Inside catalog_write_enter … leave. */
void catalog_set_multikey(struct catalog *c, struct collection *coll, struct index_def *def, uint32_t bits,
                          struct eng_txn *t);
/* The next record id (R26). PENDING / OK. */
OV_MUST_CHECK enum eng_result catalog_next_rid(struct collection *coll, struct eng_txn *t, uint64_t *rid,
                                               struct eng_call *call);

#endif
