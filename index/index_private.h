/* What the files of index/ share. */
#ifndef OV_INDEX_PRIVATE_H
#define OV_INDEX_PRIVATE_H

#include "index/index.h"

struct keygen_key { /* one key while they are made */
    size_t at, n;   /* in the buffer of all */
    const uint8_t *p;
    const struct bval *values;
};
void keygen_sort(struct keygen_key *list, size_t n); /* by bytes */

#endif
