/* The filter of a fragment: says for sure that a key is not there, or that it may be (about one in a hundred wrongly).
 * A blocked Bloom filter (Putze, Sanders, Singler 2007): a key's six bits lie in one 64-byte line, 10 bits a key in all. */
#ifndef OV_RUN_FILTER_H
#define OV_RUN_FILTER_H

#include "server/base/base.h"

enum { FILTER_LINE = 64, FILTER_BITS_A_KEY = 10 };

static inline size_t filter_bytes(size_t keys)
{
    return (keys * FILTER_BITS_A_KEY / 8 / FILTER_LINE + 1) * FILTER_LINE;
}

static inline uint64_t filter_mix(uint64_t hash)
{
    hash = (hash ^ hash >> 31) * 0x9E3779B97F4A7C15u; /* the line and the bits in it shall not depend on each other */
    return hash ^ hash >> 29;
}

static inline const uint8_t *filter_line(struct slice filter, uint64_t hash)
{
    return filter.p + ((hash >> 32) * (filter.n / FILTER_LINE) >> 32) * FILTER_LINE;
}

static inline void filter_add(uint8_t *filter, size_t bytes, uint64_t hash)
{
    uint8_t *line = filter + (filter_line(slice_of(filter, bytes), hash) - filter);
    uint64_t bits = filter_mix(hash);
    for (int i = 0; i < 6; i++, bits >>= 9)
        line[(bits & 511) >> 3] |= (uint8_t)(1u << (bits & 7));
}

static inline bool filter_may_have(struct slice filter, uint64_t hash)
{
    if (filter.n == 0)
        return true;
    const uint8_t *line = filter_line(filter, hash);
    uint64_t bits = filter_mix(hash);
    for (int i = 0; i < 6; i++, bits >>= 9)
        if (!(line[(bits & 511) >> 3] & 1u << (bits & 7)))
            return false;
    return true;
}

#endif
