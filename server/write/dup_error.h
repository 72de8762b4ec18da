/* What a client sees when a unique key is taken: E11000, with keyPattern and keyValue. */
#ifndef OV_DUP_ERROR_H
#define OV_DUP_ERROR_H

#include "index/index.h"

/* Fills *e with code 11000 and the message `E11000 duplicate key error collection: DB.COLL index: NAME dup key: { a: 1 }`, and e->info with
 * {keyPattern, keyValue}; returns the code. `values`: def->n_fields values of the key (BVAL_MISSING where absent: shown as null).
 * Message and info live in e->arena and `a`. Thread: any. */
int dup_key_error(struct err *e, struct arena *a, const char *ns, const struct index_def *def,
                  const struct bval *values);

#endif
