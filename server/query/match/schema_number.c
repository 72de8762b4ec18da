/* multipleOf: exact on decimal digits. A double counts as the decimal of 15 digits next to it, as in the real server's arithmetic. */
#include <stdio.h>
#include <stdlib.h>

#include "server/query/match/schema.h"

struct digits {                    /* coefficient * 10^exponent, the sign left out */
    unsigned __int128 coefficient; /* below 10^34 */
    int32_t exponent;
};

static bool to_text(struct bval v, char out[BSON_DECIMAL128_STRING])
{
    double d;
    switch (v.type) {
    case BSON_TYPE_DOUBLE:
        d = bval_f64(v);
        if (d - d != 0)
            return false;
        snprintf(out, BSON_DECIMAL128_STRING, "%.14e", d);
        return true;
    case BSON_TYPE_DECIMAL128: {
        bson_decimal128_t dec = {.low = load_le64(v.p), .high = load_le64(v.p + 8)};
        bson_decimal128_to_string(&dec, out);
        return true;
    }
    default:
        snprintf(out, BSON_DECIMAL128_STRING, "%lld", (long long)bval_i64(v));
        return true;
    }
}

/* False: NaN or infinite. */
static bool to_digits(struct bval v, struct digits *out)
{
    char text[BSON_DECIMAL128_STRING];
    bool fraction = false;
    *out = (struct digits){0, 0};
    if (!to_text(v, text))
        return false;
    const char *s = text + (text[0] == '-');
    if (*s != '.' && (*s < '0' || *s > '9'))
        return false;
    for (; *s == '.' || (*s >= '0' && *s <= '9'); s++) {
        if (*s == '.') {
            fraction = true;
            continue;
        }
        out->coefficient = out->coefficient * 10 + (unsigned)(*s - '0');
        out->exponent -= fraction;
    }
    if (*s == 'e' || *s == 'E')
        out->exponent += atoi(s + 1);
    while (out->coefficient && out->coefficient % 10 == 0) {
        out->coefficient /= 10;
        out->exponent++;
    }
    return true;
}

bool schema_is_multiple(struct bval v, struct bval of)
{
    struct digits x, y;
    if (!to_digits(v, &x))
        return false;
    if (x.coefficient == 0)
        return bval_to_f64(of) == bval_to_f64(of); /* zero is one of all but NaN */
    if (!to_digits(of, &y) || y.coefficient == 0)
        return false;
    if (x.exponent < y.exponent)
        return false; /* neither ends in 0: x has digits that no multiple of y has */
    unsigned __int128 rest = x.coefficient % y.coefficient; /* below 10^34: ten times it fits into 128 bits */
    for (int32_t i = y.exponent; i < x.exponent && rest != 0; i++)
        rest = rest * 10 % y.coefficient;
    return rest == 0;
}
