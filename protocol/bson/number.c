/* Numbers of the four types as one: conversion, exact comparison, arithmetic. Doubles meet decimals in two ways: comparison is exact, arithmetic
 * first rounds the double to 15 digits, as the real server does, so that 0.1 + Decimal("0.2") is 0.3. */
#include "protocol/bson/decimal_private.h"
#include "protocol/bson/number_private.h"

#include <math.h>
#include <stdio.h>

#define TWO_63 9223372036854775808.0

static unsigned __int128 ten_34(void)
{
    return (unsigned __int128)10000000000000000u * 1000000000000000000u;
}

struct dec_parts dec_unpack(BID_UINT128 d)
{
    struct dec_parts out = {(d.w[1] >> 63) != 0, 0, 0};
    if ((d.w[1] & 0x6000000000000000u) == 0x6000000000000000u) { /* a coefficient of 2^113 and more: past 34 digits */
        out.exponent = (int)(d.w[1] >> 47 & 0x3fff) - 6176;
        return out;
    }
    out.exponent = (int)(d.w[1] >> 49 & 0x3fff) - 6176;
    out.coefficient = (unsigned __int128)(d.w[1] & 0x1ffffffffffffu) << 64 | d.w[0];
    if (out.coefficient >= ten_34())
        out.coefficient = 0;
    return out;
}

bool bval_to_i64(struct bval v, bool exact, int64_t *out)
{
    switch (v.type) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        *out = bval_i64(v);
        return true;
    case BSON_TYPE_DOUBLE: {
        double d = bval_f64(v);
        if (!(d >= -TWO_63 && d < TWO_63)) /* NaN too */
            return false;
        *out = (int64_t)d;
        return !exact || (double)*out == d;
    }
    case BSON_TYPE_DECIMAL128: {
        unsigned flags = 0;
        int64_t n = __bid128_to_int64_xint(dec_load(v.p), &flags);
        if (flags & DEC_INVALID || (exact && flags & DEC_INEXACT))
            return false;
        *out = n;
        return true;
    }
    default:
        return false;
    }
}

int64_t bval_to_i64_clamped(struct bval v)
{
    int64_t n;
    unsigned flags = 0;
    if (v.type == BSON_TYPE_DECIMAL128) {
        n = __bid128_to_int64_xrnint(dec_load(v.p), &flags);
        if (!(flags & DEC_INVALID))
            return n;
    } else if (bval_to_i64(v, false, &n)) {
        return n;
    }
    double d = bval_to_f64(v);
    return d > 0 ? INT64_MAX : d < 0 ? INT64_MIN : 0;
}

double bval_to_f64(struct bval v)
{
    switch (v.type) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        return (double)bval_i64(v);
    case BSON_TYPE_DOUBLE:
        return bval_f64(v);
    case BSON_TYPE_DECIMAL128: {
        unsigned flags = 0;
        return __bid128_to_binary64(dec_load(v.p), DEC_NEAREST_EVEN, &flags);
    }
    default:
        return NAN;
    }
}

bool bval_truthy(struct bval v)
{
    switch (v.type) {
    case BSON_TYPE_EOD:
    case BSON_TYPE_NULL:
    case BSON_TYPE_UNDEFINED:
        return false;
    case BSON_TYPE_BOOL:
        return bval_bool(v);
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        return bval_i64(v) != 0;
    case BSON_TYPE_DOUBLE:
        return bval_f64(v) != 0; /* NaN is true */
    case BSON_TYPE_DECIMAL128: {
        BID_UINT128 d = dec_load(v.p);
        return dec_is_nan(d) || dec_is_inf(d) || dec_unpack(d).coefficient != 0;
    }
    default:
        return true;
    }
}

/* ---- order ---- */

static int cmp_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int cmp_f64(double a, double b)
{
    if (OV_UNLIKELY(isnan(a) || isnan(b)))
        return !isnan(a) - !isnan(b);
    return (a > b) - (a < b);
}

static int cmp_i64_f64(int64_t a, double b)
{
    if (isnan(b))
        return 1;
    if (b >= TWO_63)
        return -1;
    if (b < -TWO_63)
        return 1;
    int64_t whole = (int64_t)b;
    if (a != whole)
        return a < whole ? -1 : 1;
    double rest = b - (double)whole; /* exact: b below 2^53 when it has a fraction */
    return (rest < 0) - (rest > 0);
}

static int cmp_dec(BID_UINT128 a, BID_UINT128 b)
{
    if (dec_is_nan(a) || dec_is_nan(b))
        return !dec_is_nan(a) - !dec_is_nan(b);
    unsigned flags = 0;
    if (__bid128_quiet_less(a, b, &flags))
        return -1;
    return __bid128_quiet_equal(a, b, &flags) ? 0 : 1;
}

/* Cutting the double to 34 digits gives the decimal next to it on the side of zero; no decimal lies between the two. */
static int cmp_dec_f64(BID_UINT128 a, double b)
{
    if (dec_is_nan(a) || isnan(b))
        return !dec_is_nan(a) - !isnan(b);
    unsigned flags = 0;
    BID_UINT128 cut = __binary64_to_bid128(b, DEC_TOWARD_ZERO, &flags);
    int c = cmp_dec(a, cut);
    if (c != 0 || !(flags & DEC_INEXACT))
        return c;
    return b > 0 ? -1 : 1;
}

static int cmp_with_dec(BID_UINT128 a, struct bval b)
{
    switch (b.type) {
    case BSON_TYPE_DECIMAL128:
        return cmp_dec(a, dec_load(b.p));
    case BSON_TYPE_DOUBLE:
        return cmp_dec_f64(a, bval_f64(b));
    default:
        return cmp_dec(a, __bid128_from_int64(bval_i64(b)));
    }
}

int number_cmp(struct bval a, struct bval b)
{
    if (a.type == BSON_TYPE_DECIMAL128)
        return cmp_with_dec(dec_load(a.p), b);
    if (b.type == BSON_TYPE_DECIMAL128)
        return -cmp_with_dec(dec_load(b.p), a);
    if (a.type == BSON_TYPE_DOUBLE)
        return b.type == BSON_TYPE_DOUBLE ? cmp_f64(bval_f64(a), bval_f64(b)) : -cmp_i64_f64(bval_i64(b), bval_f64(a));
    return b.type == BSON_TYPE_DOUBLE ? cmp_i64_f64(bval_i64(a), bval_f64(b)) : cmp_i64(bval_i64(a), bval_i64(b));
}

/* ---- arithmetic ---- */

static BID_UINT128 dec_of(struct bval v)
{
    if (v.type == BSON_TYPE_DECIMAL128)
        return dec_load(v.p);
    if (v.type != BSON_TYPE_DOUBLE)
        return __bid128_from_int64(bval_i64(v));
    double d = bval_f64(v);
    unsigned flags = 0;
    if (d == 0 || !isfinite(d))
        return __binary64_to_bid128(d, DEC_NEAREST_EVEN, &flags);
    char text[40];
    snprintf(text, sizeof(text), "%.14e", d); /* 15 digits */
    return __bid128_from_string(text, DEC_NEAREST_EVEN, &flags);
}

static struct bval out_f64(double d, uint8_t out16[16])
{
    memcpy(out16, &d, 8);
    return (struct bval){BSON_TYPE_DOUBLE, 8, out16};
}

static struct bval out_dec(BID_UINT128 d, uint8_t out16[16])
{
    dec_store(out16, d);
    return (struct bval){BSON_TYPE_DECIMAL128, 16, out16};
}

/* Two ints give an int if it fits, else a long. */
static struct bval out_int(struct bval a, struct bval b, int64_t n, uint8_t out16[16])
{
    if (a.type == BSON_TYPE_INT32 && b.type == BSON_TYPE_INT32 && n == (int32_t)n)
        return bval_from_i32((int32_t)n, out16);
    return bval_from_i64(n, out16);
}

int bval_add(struct bval a, struct bval b, uint8_t out16[16], struct bval *out)
{
    int64_t n;
    unsigned flags = 0;
    if (a.type == BSON_TYPE_DECIMAL128 || b.type == BSON_TYPE_DECIMAL128)
        *out = out_dec(__bid128_add(dec_of(a), dec_of(b), DEC_NEAREST_EVEN, &flags), out16);
    else if (a.type == BSON_TYPE_DOUBLE || b.type == BSON_TYPE_DOUBLE)
        *out = out_f64(bval_to_f64(a) + bval_to_f64(b), out16);
    else if (__builtin_add_overflow(bval_i64(a), bval_i64(b), &n))
        return ERR_BAD_VALUE;
    else
        *out = out_int(a, b, n, out16);
    return 0;
}

int bval_mul(struct bval a, struct bval b, uint8_t out16[16], struct bval *out)
{
    int64_t n;
    unsigned flags = 0;
    if (a.type == BSON_TYPE_DECIMAL128 || b.type == BSON_TYPE_DECIMAL128)
        *out = out_dec(__bid128_mul(dec_of(a), dec_of(b), DEC_NEAREST_EVEN, &flags), out16);
    else if (a.type == BSON_TYPE_DOUBLE || b.type == BSON_TYPE_DOUBLE)
        *out = out_f64(bval_to_f64(a) * bval_to_f64(b), out16);
    else if (__builtin_mul_overflow(bval_i64(a), bval_i64(b), &n))
        return ERR_BAD_VALUE;
    else
        *out = out_int(a, b, n, out16);
    return 0;
}
