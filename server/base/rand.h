/* Random numbers. Thread: each generator one at a time; rand_secure any. */
#ifndef OV_RAND_H
#define OV_RAND_H

#include "server/base/base.h"

void rand_secure(void *out, size_t n); /* from the kernel; aborts if it has none */

struct rand_gen {
    uint64_t s[4]; /* xoshiro256** (Blackman and Vigna 2018) */
};
void rand_seed(struct rand_gen *g, uint64_t seed);
uint64_t rand_next(struct rand_gen *g);
uint64_t rand_below(struct rand_gen *g, uint64_t n); /* uniform in 0 .. n-1; n > 0 */

void oid_generate(uint8_t out[12]); /* an ObjectId: seconds, 5 random bytes a process, counter. Thread: any */

#endif
