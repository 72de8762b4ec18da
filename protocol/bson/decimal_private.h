/* The Intel decimal library as this folder calls it: arguments by value, rounding and flags local. */
#ifndef OV_DECIMAL_PRIVATE_H
#define OV_DECIMAL_PRIVATE_H

#include "protocol/bson/bson.h"

#define DECIMAL_CALL_BY_REFERENCE      0
#define DECIMAL_GLOBAL_ROUNDING        0
#define DECIMAL_GLOBAL_EXCEPTION_FLAGS 0
#include <bid_conf.h>
#include <bid_functions.h>

enum { DEC_NEAREST_EVEN = 0, DEC_TOWARD_ZERO = 3 }; /* rounding modes */
enum { DEC_INVALID = 0x01, DEC_OVERFLOW = 0x08, DEC_UNDERFLOW = 0x10, DEC_INEXACT = 0x20 };

static inline BID_UINT128 dec_load(const uint8_t *p)
{
    BID_UINT128 d;
    d.w[0] = load_le64(p);
    d.w[1] = load_le64(p + 8);
    return d;
}
static inline void dec_store(uint8_t *p, BID_UINT128 d)
{
    store_le64(p, d.w[0]);
    store_le64(p + 8, d.w[1]);
}
static inline bool dec_is_nan(BID_UINT128 d)
{
    return (d.w[1] & 0x7c00000000000000u) == 0x7c00000000000000u;
}
static inline bool dec_is_inf(BID_UINT128 d)
{
    return (d.w[1] & 0x7c00000000000000u) == 0x7800000000000000u;
}

/* sign, coefficient and exponent of a finite number; a coefficient past 34 digits is zero, as the standard has it. */
struct dec_parts {
    bool negative;
    int exponent;
    unsigned __int128 coefficient;
};
struct dec_parts dec_unpack(BID_UINT128 d);

#endif
