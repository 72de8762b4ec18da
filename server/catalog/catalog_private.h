/* Inside the catalog.
 *
 * LOCKS. `ddl_lock` (RANK_DDL): the lists of DDL and of writers that wait for it; wake-ups are made under it, so that whoever has left a list
 * is woken no more. A shard's lock (RANK_CATALOG): its table; one at a time, never across anything else.
 * ROWS of keyspace CATALOG_ROWS: "db.coll" -> definition.c; COUNTER_KEY -> the next number of a keyspace, 8 bytes little-endian.
 * ROWS of keyspace MULTIKEY_ROWS: index keyspace (8 bytes big-endian), bit (1 byte) -> nothing. Rows of dropped indexes stay: ids return never. */
#ifndef OV_CATALOG_PRIVATE_H
#define OV_CATALOG_PRIVATE_H

#include <stdatomic.h>

#include "server/base/arena.h"
#include "server/base/map.h"
#include "server/catalog/catalog.h"

enum { SHARDS = 64, NS_MAX = 255, DB_MAX = 63 };

#define CATALOG_ROWS  keyspace_id(KEYSPACE_CATALOG, 0)
#define MULTIKEY_ROWS keyspace_id(KEYSPACE_CATALOG, 1)
#define COUNTER_KEY   slice_of("", 1) /* one NUL: no namespace begins with it */

struct shard {
    struct mutex lock;
    struct map *table; /* "db" NUL "coll" -> struct collection, which holds a reference */
} __attribute__((aligned(64)));

struct ddl;
struct waiter;

struct catalog {
    struct engine *e;
    struct shard shards[SHARDS];
    struct mutex ddl_lock;
    struct ddl *ddl, **ddl_end;     /* running or waiting for their turn, first come first served */
    struct waiter *waiters;         /* of write statements */
    _Atomic int pending;            /* length of both lists */
    struct mutex db_lock;           /* RANK_CATALOG */
    struct map *dbs;                /* name in lower case -> struct db_entry */
    _Atomic uint64_t next_keyspace; /* changed only under the document lock of COUNTER_KEY, or at start-up */
    _Atomic uint64_t next_version;
};

/* ---- definition.c ---- */

/* What a definition is made from. */
struct definition {
    const char *db, *name;
    const uint8_t *uuid;
    uint64_t records;
    const uint8_t *options;
    uint32_t n_indexes;
    struct definition_index {
        const uint8_t *spec;
        uint64_t keyspace;
        enum index_state state;
        struct index_rt *rt; /* shared with the definition before; NULL: a new one */
    } indexes[INDEX_MAX];
    struct collection_rt *rt; /* likewise */
};
/* A new definition with one reference; copies everything. NULL: err says which index cannot be. */
struct collection *definition_new(const struct definition *d, struct err *err);
/* What `coll` is made from; points into it. */
void definition_of(const struct collection *coll, struct definition *out);
void definition_write(const struct definition *d, struct buf *out); /* as a row's value */
/* Reads a row: points into it, except for the names, which are in `a`. False: it makes no sense. */
OV_MUST_CHECK bool definition_read(struct slice key, struct slice value, struct arena *a, struct definition *out);
extern const uint8_t ID_INDEX_SPEC[], EMPTY_DOC[];

/* ---- validator.c ---- */

/* Sets the validator of a new definition by its options. Errors: those of the filter. */
OV_MUST_CHECK int definition_validator(struct collection *coll, struct err *err);

/* ---- names.c ---- */

/* May a collection of this name be made? ERR_INVALID_NAMESPACE. */
OV_MUST_CHECK int names_check(const char *db, const char *name, struct err *err);
/* Takes part in a database: 13297 if there is one whose name differs in case only. names_leave gives it back. */
OV_MUST_CHECK int names_enter(struct catalog *c, const char *db, struct err *err);
void names_leave(struct catalog *c, const char *db);
void names_free(struct catalog *c);

/* ---- catalog.c ---- */

struct ns_key {
    uint8_t bytes[NS_MAX + 1];
    size_t n;
};
/* False if the names are too long to exist. */
static inline bool ns_key_make(struct ns_key *k, const char *db, const char *name)
{
    size_t nd = strlen(db), nn = strlen(name);
    if (nd + nn + 1 > NS_MAX)
        return false;
    memcpy(k->bytes, db, nd + 1);
    memcpy(k->bytes + nd + 1, name, nn);
    k->n = nd + 1 + nn;
    return true;
}
/* Puts the definition (whose reference goes over) in place of what is there; NULL: removes. */
void catalog_publish(struct catalog *c, const char *db, const char *name, struct collection *coll);

/* ---- ddl.c ---- */

/* A writer has left (or not got in) while DDL was announced. */
void ddl_writer_left(struct catalog *c, struct collection_rt *rt);
/* Registers for a wake-up; false if nothing is announced any more. */
bool ddl_wait_for(struct catalog *c, struct collection_rt *rt, struct eng_call *call);

/* ---- load.c ---- */

OV_MUST_CHECK int catalog_load(struct catalog *c, struct err *err);

#endif
