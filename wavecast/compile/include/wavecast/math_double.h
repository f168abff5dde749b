// Double precision: Taylor series after argument reduction.
#pragma once

#include <wavecast/math_base.h>

#define __WC_FN static __device__ __wc_inline

__WC_FN double __wc_exp_part(double r) {
    const double c[] = {
        1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
        1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    return __wc_horner(r, c);
}
__WC_FN double exp(double x) {
    double n = __builtin_rint(x * __WC_LOG2E);
    double r = __builtin_fma(n, -6.93147180369123816490e-01, x);
    r = __builtin_fma(n, -1.90821492927058770002e-10, r);
    double y = __builtin_ldexp(__wc_exp_part(r), (int)n);
    return x > 709.8 ? __builtin_inf() : x < -745.2 ? 0.0 : y;
}
__WC_FN double exp2(double x) {
    double n = __builtin_rint(x);
    double y = __builtin_ldexp(__wc_exp_part((x - n) * __WC_LN2), (int)n);
    return x >= 1024.0 ? __builtin_inf() : x < -1075.0 ? 0.0 : y;
}
__WC_FN double exp10(double x) { return exp(x * 2.30258509299404568402); }
__WC_FN double expm1(double x) {
    const double c[] = {
        1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
        1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    return __builtin_fabs(x) < 0.35 ? x * __wc_horner(x, c) : exp(x) - 1.0;
}
// log(m 2^e) = e ln2 + 2 atanh((m - 1) / (m + 1)).
__WC_FN double log(double x) {
    const double c[] = {
        1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
        1.0 / 21, 1.0 / 23};
    int e;
    double m = __builtin_frexp(x, &e);
    bool low = m < 0.70710678118654752440;
    m = low ? m + m : m;
    e = low ? e - 1 : e;
    double s = (m - 1.0) / (m + 1.0);
    double y = 2.0 * s * __wc_horner(s * s, c);
    y = __builtin_fma((double)e, 1.90821492927058770002e-10, y);
    y = __builtin_fma((double)e, 6.93147180369123816490e-01, y);
    y = x == 0.0 ? -__builtin_inf() : x < 0.0 ? __builtin_nan("") : y;
    return __builtin_isfinite(x) ? y : x < 0.0 ? __builtin_nan("") : x;
}
__WC_FN double log2(double x) { return log(x) * __WC_LOG2E; }
__WC_FN double log10(double x) { return log(x) * 0.43429448190325182765; }
__WC_FN double log1p(double x) {
    double u = 1.0 + x;
    return u == 1.0 ? x : log(u) * (x / (u - 1.0));
}
__WC_FN double __wc_reduce(double x, int *quadrant) {
    double n = __builtin_rint(x * 0.63661977236758134308);
    *quadrant = (int)(long long)n;
    double r = __builtin_fma(n, -1.57079632673412561417e+00, x);
    r = __builtin_fma(n, -6.07710050630396597660e-11, r);
    return __builtin_fma(n, -2.02226624879595063154e-21, r);
}
__WC_FN double __wc_sin_part(double r) {
    const double c[] = {
        1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800,
        -1.0 / 1307674368000.0, 1.0 / 355687428096000.0, -1.0 / 121645100408832000.0};
    return r * __wc_horner(r * r, c);
}
__WC_FN double __wc_cos_part(double r) {
    const double c[] = {
        1.0, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 /
        87178291200.0, 1.0 / 20922789888000.0, -1.0 / 6402373705728000.0, 1.0 /
        2432902008176640000.0};
    return __wc_horner(r * r, c);
}
__WC_FN double sin(double x) {
    int q;
    double r = __wc_reduce(x, &q);
    double y = q & 1 ? __wc_cos_part(r) : __wc_sin_part(r);
    return q & 2 ? -y : y;
}
__WC_FN double cos(double x) {
    int q;
    double r = __wc_reduce(x, &q);
    double y = q & 1 ? __wc_sin_part(r) : __wc_cos_part(r);
    return (q + 1) & 2 ? -y : y;
}
__WC_FN void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
__WC_FN double tan(double x) {
    int q;
    double r = __wc_reduce(x, &q);
    double s = __wc_sin_part(r), c = __wc_cos_part(r);
    return q & 1 ? -c / s : s / c;
}
__WC_FN double tanh(double x) {
    double a = __builtin_fabs(x), e = expm1(2.0 * a);
    return __builtin_copysign(a > 20.0 ? 1.0 : e / (e + 2.0), x);
}
__WC_FN double sinh(double x) { return 0.5 * (expm1(x) - expm1(-x)); }
__WC_FN double cosh(double x) { return 0.5 * (exp(x) + exp(-x)); }
__WC_FN double pow(double x, double y) {
    double r = exp(y * log(__builtin_fabs(x)));
    bool whole = __builtin_trunc(y) == y;
    bool odd = whole && __builtin_fabs(y) < 9007199254740992.0 && ((long long)y & 1);
    r = odd ? __builtin_copysign(r, x) : r;
    r = x < 0.0 && !whole ? __builtin_nan("") : r;
    return __wc_checked_pow(x, y, y == 0.0 || x == 1.0 ? 1.0 : r);
}
__WC_FN double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }

#undef __WC_FN
