// Single precision: argument reduction and a polynomial.
#pragma once

#include <wavecast/math_base.h>

#define __WC_FN static __device__ __wc_inline

// x minus the nearest multiple of pi/2, and that multiple. pi/2 is split in three.
__WC_FN float __wc_reduce(float x, int *quadrant) {
    float n = __builtin_rintf(x * 0.636619772367581f);
    *quadrant = (int)n;
    float r = __builtin_fmaf(n, -1.5707962513e+00f, x);
    r = __builtin_fmaf(n, -7.5497894159e-08f, r);
    return __builtin_fmaf(n, -5.3903029534e-15f, r);
}
// Taylor series on [-pi/4, pi/4].
__WC_FN float __wc_sin_part(float r) {
    const float c[] = {1.0f, -1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880};
    return r * __wc_horner(r * r, c);
}
__WC_FN float __wc_cos_part(float r) {
    const float c[] = {1.0f, -0.5f, 1.0f / 24, -1.0f / 720, 1.0f / 40320, -1.0f / 3628800};
    return __wc_horner(r * r, c);
}
__WC_FN float sinf(float x) {
    int q;
    float r = __wc_reduce(x, &q);
    float y = q & 1 ? __wc_cos_part(r) : __wc_sin_part(r);
    return q & 2 ? -y : y;
}
__WC_FN float cosf(float x) {
    int q;
    float r = __wc_reduce(x, &q);
    float y = q & 1 ? __wc_sin_part(r) : __wc_cos_part(r);
    return (q + 1) & 2 ? -y : y;
}
__WC_FN void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
__WC_FN float tanf(float x) {
    int q;
    float r = __wc_reduce(x, &q);
    float s = __wc_sin_part(r), c = __wc_cos_part(r);
    return q & 1 ? -c / s : s / c;
}
__WC_FN float sinpif(float x) { return sinf((x - 2.0f * __builtin_rintf(0.5f * x)) * 3.14159265f); }
__WC_FN float cospif(float x) { return cosf((x - 2.0f * __builtin_rintf(0.5f * x)) * 3.14159265f); }

// Fit of atan(x)/x in x^2 on [0, 1].
__WC_FN float atanf(float x) {
    const float c[] = {
        9.999999975e-01f, -3.333328230e-01f, 1.999823064e-01f, -1.426157368e-01f,
        1.094019896e-01f, -8.372063941e-02f, 5.746355775e-02f, -3.071750881e-02f,
        1.068071940e-02f, -1.743701135e-03f};
    float a = __builtin_fabsf(x);
    bool large = a > 1.0f;
    float t = large ? 1.0f / a : a;
    float y = t * __wc_horner(t * t, c);
    y = large ? 1.57079632679f - y : y;
    return __builtin_copysignf(y, x);
}
__WC_FN float atan2f(float y, float x) {
    const float c[] = {
        9.999999975e-01f, -3.333328230e-01f, 1.999823064e-01f, -1.426157368e-01f,
        1.094019896e-01f, -8.372063941e-02f, 5.746355775e-02f, -3.071750881e-02f,
        1.068071940e-02f, -1.743701135e-03f};
    float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y);
    float high = __builtin_fmaxf(ax, ay), low = __builtin_fminf(ax, ay);
    float t = high == 0.0f ? 0.0f : low == high ? 1.0f : low / high;
    float a = t * __wc_horner(t * t, c);
    a = ay > ax ? 1.57079632679f - a : a;
    a = __builtin_signbit(x) ? 3.14159265359f - a : a;
    return __builtin_isnan(x) || __builtin_isnan(y) ? x + y : __builtin_copysignf(a, y);
}
// Fit of asin(x)/x in x^2 on [0, 1/4]; beyond it asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
__WC_FN float asinf(float x) {
    const float c[] = {
        1.000000000e+00f, 1.666665721e-01f, 7.500591502e-02f, 4.450524200e-02f, 3.188414314e-02f,
        1.419882730e-02f, 3.780636250e-02f};
    float a = __builtin_fabsf(x);
    bool large = a > 0.5f;
    float u = large ? 0.5f * (1.0f - a) : a * a;
    float t = large ? __builtin_sqrtf(u) : a;
    float y = t * __wc_horner(u, c);
    return __builtin_copysignf(large ? 1.57079632679f - 2.0f * y : y, x);
}
__WC_FN float acosf(float x) {
    const float c[] = {
        1.000000000e+00f, 1.666665721e-01f, 7.500591502e-02f, 4.450524200e-02f, 3.188414314e-02f,
        1.419882730e-02f, 3.780636250e-02f};
    float a = __builtin_fabsf(x);
    bool large = a > 0.5f;
    float u = large ? 0.5f * (1.0f - a) : a * a;
    float t = large ? __builtin_sqrtf(u) : a;
    float y = t * __wc_horner(u, c);
    if (large) return x > 0.0f ? 2.0f * y : 3.14159265359f - 2.0f * y;
    return 1.57079632679f - (x < 0.0f ? -y : y);
}
// Fit of expm1(x)/x on [-0.35, 0.35], scaled by powers of two.
__WC_FN float expm1f(float x) {
    const float c[] = {
        1.000000000e+00f, 5.000000050e-01f, 1.666666679e-01f, 4.166634025e-02f, 8.333281534e-03f,
        1.394215044e-03f, 1.990889126e-04f};
    float n = __builtin_rintf(x * (float)__WC_LOG2E);
    float r = __builtin_fmaf(n, -6.93145751953e-01f, x);
    r = __builtin_fmaf(n, -1.42860677e-06f, r);
    float scale = __builtin_ldexpf(1.0f, (int)n);
    float y = __builtin_fmaf(scale, r * __wc_horner(r, c), scale - 1.0f);
    return x > 88.8f ? __builtin_inff() : x < -17.4f ? -1.0f : y;
}
// Fit of log1p(x)/x on [-0.3, 0.42]; elsewhere 1 + x loses nothing that matters.
__WC_FN float log1pf(float x) {
    const float c[] = {
        1.000000000e+00f, -5.000000042e-01f, 3.333333164e-01f, -2.499991901e-01f,
        2.000008588e-01f, -1.667108637e-01f, 1.428699075e-01f, -1.240171575e-01f,
        1.099332293e-01f, -1.091274520e-01f, 1.090005592e-01f, -6.116910588e-02f};
    return x > -0.3f && x < 0.42f ? x * __wc_horner(x, c) : __builtin_logf(1.0f + x);
}
// Fit of tanh(x)/x in x^2 on [0, 0.6].
__WC_FN float tanhf(float x) {
    const float c[] = {
        9.999999976e-01f, -3.333328397e-01f, 1.333170470e-01f, -5.376992179e-02f,
        2.075747545e-02f, -5.856427866e-03f};
    float a = __builtin_fabsf(x);
    float small = a * __wc_horner(a * a, c);
    float large = 1.0f - 2.0f / (__builtin_expf(2.0f * a) + 1.0f);
    return __builtin_copysignf(a < 0.6f ? small : large, x);
}
__WC_FN float sinhf(float x) {
    const float c[] = {
        1.000000000e+00f, 1.666666642e-01f, 8.333353218e-03f, 1.983571183e-04f, 2.819029001e-06f};
    float a = __builtin_fabsf(x), root = __builtin_expf(0.5f * a);
    float half = 0.5f * root * root;
    float y = a < 1.0f ? a * __wc_horner(a * a, c) : half - 0.25f / half;
    return __builtin_copysignf(y, x);
}
__WC_FN float coshf(float x) {
    float root = __builtin_expf(0.5f * __builtin_fabsf(x));
    float half = 0.5f * root * root;
    return half + 0.25f / half;
}
__WC_FN float asinhf(float x) {
    float a = __builtin_fabsf(x);
    float y = log1pf(a + a * a / (1.0f + __builtin_sqrtf(1.0f + a * a)));
    return __builtin_copysignf(a > 1e18f ? __builtin_logf(a) + (float)__WC_LN2 : y, x);
}
__WC_FN float acoshf(float x) {
    return log1pf(x - 1.0f + __builtin_sqrtf((x - 1.0f) * (x + 1.0f)));
}
__WC_FN float atanhf(float x) { return 0.5f * log1pf(2.0f * x / (1.0f - x)); }
// Fit of erf(x)/x in x^2 on [0, 1], and of -log(erfc(x)) on [1, 4].
__WC_FN float __wc_erfc_exponent(float a) {
    const float c[] = {
        -4.005004029e-04f, 1.130604469e+00f, 6.310888688e-01f, 1.109074162e-01f,
        -2.699949656e-02f, 5.021044523e-03f, -6.733374851e-04f, 6.006878470e-05f,
        -3.095203551e-06f, 6.582853227e-08f};
    return __wc_horner(a > 4.0f ? 4.0f : a, c);
}
__WC_FN float erff(float x) {
    const float c[] = {
        1.128379167e+00f, -3.761263848e-01f, 1.128378262e-01f, -2.686543831e-02f,
        5.221053412e-03f, -8.484396546e-04f, 1.126825386e-04f, -9.673590698e-06f};
    float a = __builtin_fabsf(x);
    float y = a < 1.0f ? a * __wc_horner(a * a, c) : 1.0f - __builtin_expf(-__wc_erfc_exponent(a));
    return __builtin_copysignf(y, x);
}
// Beyond 4 the continued fraction exp(-x^2) / (sqrt(pi) (x + 1/(2x + 2/(x + 3/(2x + ...))))).
__WC_FN float erfcf(float x) {
    float a = __builtin_fabsf(x);
    if (a < 1.0f) return 1.0f - erff(x);
    float square = a * a, rest = __builtin_fmaf(a, a, -square);
    float far = __builtin_expf(-square) * (1.0f - rest) * 0.564189583548f /
                (a + 0.5f / (a + 1.0f / (a + 1.5f / (a + 2.0f / (a + 2.5f / a)))));
    float y = a < 4.0f ? __builtin_expf(-__wc_erfc_exponent(a)) : a > 11.0f ? 0.0f : far;
    return x < 0.0f ? 2.0f - y : y;
}
__WC_FN float cbrtf(float x) {
    float a = __builtin_fabsf(x);
    float y = __wc_native_exp2(__wc_native_log2(a) * 0.333333333f);
    y = y - (y * y * y - a) / (3.0f * y * y);
    return a == 0.0f || !__builtin_isfinite(a) ? x : __builtin_copysignf(y, x);
}
__WC_FN float rcbrtf(float x) { return 1.0f / cbrtf(x); }
__WC_FN float hypotf(float x, float y) {
    float a = __builtin_fabsf(x), b = __builtin_fabsf(y);
    float high = __builtin_fmaxf(a, b), low = __builtin_fminf(a, b);
    int e;
    __builtin_frexpf(high, &e);
    float p = __builtin_ldexpf(high, -e), q = __builtin_ldexpf(low, -e);
    return __builtin_ldexpf(__builtin_sqrtf(p * p + q * q), e);
}
// exp2(y log2 |x|): the relative error grows with the exponent of the result.
__WC_FN float powf(float x, float y) {
    float a = __builtin_fabsf(x);
    float r = __builtin_exp2f(y * __builtin_log2f(a));
    bool whole = __builtin_truncf(y) == y;
    bool odd = whole && __builtin_fabsf(y) < 16777216.0f && ((long long)y & 1);
    r = odd ? __builtin_copysignf(r, x) : r;
    r = x < 0.0f && !whole ? __builtin_nanf("") : r;
    return __wc_checked_pow(x, y, y == 0.0f || x == 1.0f ? 1.0f : r);
}
__WC_FN float powif(float x, int n) {
    float y = 1.0f, base = n < 0 ? 1.0f / x : x;
    for (unsigned k = n < 0 ? -(unsigned)n : n; k; k >>= 1, base *= base) y = k & 1 ? y * base : y;
    return y;
}
__WC_FN float normcdff(float x) { return 0.5f * erfcf(x * -0.707106781187f); }

#undef __WC_FN
