/* Indexes: definitions, the key encoding, key generation, bounds. Order and multiplicity of keys; never a decision. */
#ifndef OV_INDEX_H
#define OV_INDEX_H

#include "protocol/bson/bson.h"
#include "storage/engine.h"

#define INDEX_FIELDS_MAX 32
#define INDEX_MAX        64 /* a collection */

enum index_state { INDEX_BUILDING, INDEX_READY };

struct index_partial { /* which documents have keys */
    bool (*wanted)(const void *arg, const uint8_t *doc);
    const void *arg;          /* of the catalog: a struct match */
    const char *const *paths; /* what `wanted` looks at: an update that touches one may move a document in or out */
    uint32_t n_paths;
};
struct index_def { /* immutable but for the two atomics in `rt` */
    const char *name;
    uint64_t keyspace;          /* of its entries: kind KEYSPACE_INDEX or KEYSPACE_UNIQUE */
    const uint8_t *key_pattern; /* BSON {a: 1, "b.c": -1} */
    const uint8_t *spec;        /* the whole specification as listIndexes shows it */
    struct bpath *paths;
    int8_t *dirs;
    uint32_t n_fields;
    bool is_id, unique, sparse;
    bool hidden;           /* kept up to date, and not used by plans */
    int32_t expire_after;  /* expireAfterSeconds; -1: documents stay */
    const uint8_t *filter; /* partialFilterExpression; NULL: all documents have keys */
    const struct index_partial
        *partial; /* of the filter; set by the catalog, for the language of filters is not known here */
    enum index_state state;
    struct index_rt *rt; /* shared by all versions of the definition */
};
struct index_rt {
    _Atomic uint32_t multikey; /* bit i: field i has held an array; set in the commit that needs it, never cleared */
    _Atomic uint32_t multikey_stored; /* bits whose rows are committed; the catalog's own */
    _Atomic uint64_t ready_ts;        /* plans of older snapshots ignore the index */
    _Atomic uint64_t accesses;
};

enum keyspace_kind {
    KEYSPACE_CATALOG = 'm',
    KEYSPACE_DOCS = 'd',
    KEYSPACE_INDEX = 'i',
    KEYSPACE_UNIQUE = 'u',
    KEYSPACE_SESSION = 's',
    KEYSPACE_CONFIG = 'c'
};
static inline uint64_t keyspace_id(enum keyspace_kind kind, uint64_t n)
{
    return (uint64_t)kind << 56 | n;
}

/* Appends the order-preserving encoding of one value (descending: inverted). Self-terminating: a compound key is the concatenation. Numbers that
 * compare equal encode equally. A missing value encodes as null (as the real server's indexes). Format: index/README.md. */
void key_encode(struct buf *out, struct bval v, bool descending);
/* The same in an arena; small values without plain allocation. p is NULL past the arena's limit. */
struct slice key_encode_arena(struct arena *a, struct bval v, bool descending);
/* For bounds: a byte string below / above every encoding of the type class of v (type bracketing). */
void key_class_low(struct buf *out, uint8_t type, bool descending);
void key_class_high(struct buf *out, uint8_t type, bool descending);

struct keyset { /* the encoded keys of one document in one index, unique, sorted; in the arena given */
    struct slice *keys;
    size_t n;
    uint32_t multikey;          /* fields that held an array */
    const struct bval **values; /* per key: n_fields values (BVAL_MISSING where absent), for E11000 */
};
/* Errors: ERR_CANNOT_INDEX_PARALLEL_ARRAYS (171). A sparse index gives none for documents without any of its fields, a
 * partial one none for those that its filter does not want. */
OV_MUST_CHECK int keygen(const struct index_def *def, const uint8_t *doc, struct arena *a, struct keyset *out,
                         struct err *err);

/* What differs between two key sets of one index: keys to remove and to add. */
void keyset_diff(const struct keyset *before, const struct keyset *after, struct arena *a, struct keyset *removed,
                 struct keyset *added);

/* Entry layout: unique (and _id): key = encoding, value = record id (8 bytes big-endian). Others: key = encoding + record id, value empty. */
static inline uint64_t index_entry_rid(const struct index_def *def, const struct eng_row *row)
{
    return def->unique || def->is_id ? load_be64(row->value.p) : load_be64(row->key.p + row->key.n - 8);
}

/* Parses and checks one index specification as createIndexes gets it. Fills everything but keyspace, state and rt.
 * Errors: 67 CannotCreateIndex, 197 unknown option, 14; kinds (text, 2d, hashed, wildcard) and options (collation …) that are not there yet are
 * refused by name. `partial` stays NULL: see catalog_index_filter. */
OV_MUST_CHECK int index_parse(struct arena *a, const uint8_t *spec, struct index_def *out, struct err *err);

#endif
