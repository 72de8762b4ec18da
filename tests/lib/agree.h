/* Do the indexes of a collection say what its documents say? To be asked after each test that writes. */
#ifndef OV_TEST_AGREE_H
#define OV_TEST_AGREE_H

#include "server/catalog/catalog.h"
#include "tests/lib/db.h"

/* Walks the documents and the entries of every index as of now: each document has exactly its entries, there are no others, and the counts
 * are exact. NULL if so, else what is wrong first (static text). Outside a step. */
const char *agree(struct db *d, struct collection *coll);

#endif
