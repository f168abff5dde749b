// Conversions to bfloat16 that compilers call in host code, and that zig's runtime library lacks.
#include "runtime.h"

#include <math.h>

static __bf16 of_bits(unsigned short bits) {
    __bf16 value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Rounds to nearest, ties to even.
API __bf16 __truncsfbf2(float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return of_bits(bits >> 16 | 0x40);
    return of_bits((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// By way of a float that is rounded to odd, so that the second rounding sees what the first lost.
API __bf16 __truncdfbf2(double value) {
    float narrow = (float)value;
    if (isfinite(narrow) && narrow != value) {
        unsigned bits;
        if (fabs(narrow) > fabs(value)) narrow = nextafterf(narrow, 0);
        memcpy(&bits, &narrow, sizeof bits);
        bits |= 1;
        memcpy(&narrow, &bits, sizeof bits);
    }
    return __truncsfbf2(narrow);
}
