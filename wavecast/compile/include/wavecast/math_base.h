// Math that LLVM or the hardware does: exact functions, exp and log of floats, approximations.
#pragma once

#include <hip/hip_runtime_api.h>
#include <wavecast/domain.h>
#include <wavecast/math_constants.h>

#define __WC_FN static __device__ __wc_inline

template <bool B> struct __wc_when {};
template <> struct __wc_when<true> { typedef double type; };
#define __WC_FOR_INTEGERS(T)                                                                       \
    template <typename T, typename = typename __wc_when<__is_integral(T)>::type>

// One builtin under its C names and, overloaded, under the plain one.
#define __WC_UNARY(name)                                                                           \
    __WC_FN float name##f(float x) { return __builtin_##name##f(x); }                              \
    __WC_FN double name(double x) { return __builtin_##name(x); }                                  \
    __WC_FN float name(float x) { return __builtin_##name##f(x); }                                 \
    __WC_FOR_INTEGERS(T) __WC_FN double name(T x) { return name((double)x); }
#define __WC_BINARY(name)                                                                          \
    __WC_FN float name##f(float x, float y) { return __builtin_##name##f(x, y); }                  \
    __WC_FN double name(double x, double y) { return __builtin_##name(x, y); }                     \
    __WC_FN float name(float x, float y) { return __builtin_##name##f(x, y); }
__WC_UNARY(fabs)
__WC_UNARY(floor)
__WC_UNARY(ceil)
__WC_UNARY(trunc)
__WC_UNARY(rint)
__WC_UNARY(nearbyint)
__WC_UNARY(round)
__WC_UNARY(sqrt)
__WC_BINARY(fmin)
__WC_BINARY(fmax)
__WC_BINARY(copysign)
#undef __WC_UNARY
#undef __WC_BINARY

__WC_FN float fmodf(float x, float y) { return __wc_checked_rest(x, y, __builtin_fmodf(x, y)); }
__WC_FN double fmod(double x, double y) { return __wc_checked_rest(x, y, __builtin_fmod(x, y)); }
__WC_FN float fmod(float x, float y) { return fmodf(x, y); }
__WC_FN float abs(float x) { return __builtin_fabsf(x); }
__WC_FN double abs(double x) { return __builtin_fabs(x); }
__WC_FN float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__WC_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__WC_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
__WC_FN float fdimf(float a, float b) { return a > b ? a - b : 0.0f; }
__WC_FN double fdim(double a, double b) { return a > b ? a - b : 0.0; }
__WC_FN float fdim(float a, float b) { return fdimf(a, b); }
__WC_FN double nan(const char *) { return __builtin_nan(""); }
__WC_FN float nanf(const char *) { return __builtin_nanf(""); }
__WC_FN float fdividef(float a, float b) { return a / b; }
// Lengths of vectors of 2, 3, 4 and any number of elements, and their reciprocals.
#define __WC_LENGTHS(T, f, root)                                                                   \
    __WC_FN T rhypot##f(T x, T y) { return 1 / root(x * x + y * y); }                              \
    __WC_FN T norm3d##f(T x, T y, T z) { return root(x * x + y * y + z * z); }                     \
    __WC_FN T norm4d##f(T x, T y, T z, T w) { return root(x * x + y * y + z * z + w * w); }        \
    __WC_FN T rnorm3d##f(T x, T y, T z) { return 1 / norm3d##f(x, y, z); }                         \
    __WC_FN T rnorm4d##f(T x, T y, T z, T w) { return 1 / norm4d##f(x, y, z, w); }                 \
    __WC_FN T norm##f(int count, const T *elements) {                                              \
        T squares = 0;                                                                             \
        for (int i = 0; i < count; ++i) squares += elements[i] * elements[i];                      \
        return root(squares);                                                                      \
    }                                                                                              \
    __WC_FN T rnorm##f(int count, const T *elements) { return 1 / norm##f(count, elements); }
__WC_LENGTHS(float, f, __builtin_sqrtf)
__WC_LENGTHS(double, , __builtin_sqrt)
#undef __WC_LENGTHS
__WC_FN float modff(float x, float *whole) {
    *whole = __builtin_truncf(x);
    return __builtin_copysignf(__builtin_isinf(x) ? 0.0f : x - *whole, x);
}
__WC_FN double modf(double x, double *whole) {
    *whole = __builtin_trunc(x);
    return __builtin_copysign(__builtin_isinf(x) ? 0.0 : x - *whole, x);
}
__WC_FN float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
__WC_FN float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
__WC_FN double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
__WC_FN float scalbnf(float x, int e) { return __builtin_ldexpf(x, e); }
__WC_FN double scalbn(double x, int e) { return __builtin_ldexp(x, e); }
__WC_FN int __wc_exponent(long e) { return e > 1 << 20 ? 1 << 20 : e < -(1 << 20) ? -(1 << 20) : (int)e; }
__WC_FN float scalblnf(float x, long e) { return __builtin_ldexpf(x, __wc_exponent(e)); }
__WC_FN double scalbln(double x, long e) { return __builtin_ldexp(x, __wc_exponent(e)); }
// The exponent: the least int of 0 and NaN, the largest of infinities.
#define __WC_ILOGB(T, f)                                                                           \
    __WC_FN int ilogb##f(T x) {                                                                    \
        int e;                                                                                     \
        if (x == 0 || __builtin_isnan(x)) return -2147483647 - 1;                                  \
        if (__builtin_isinf(x)) return 2147483647;                                                 \
        __builtin_frexp##f(x, &e);                                                                 \
        return e - 1;                                                                              \
    }
__WC_ILOGB(float, f)
__WC_ILOGB(double, )
#undef __WC_ILOGB
__WC_FN float frexpf(float x, int *e) { return __builtin_frexpf(x, e); }
__WC_FN double frexp(double x, int *e) { return __builtin_frexp(x, e); }
__WC_FN long lroundf(float x) { return (long)__builtin_roundf(x); }
__WC_FN long lrintf(float x) { return (long)__builtin_rintf(x); }
__WC_FN long lround(double x) { return (long)__builtin_round(x); }
__WC_FN long lrint(double x) { return (long)__builtin_rint(x); }
__WC_FN long long llround(double x) { return (long long)__builtin_round(x); }
__WC_FN long long llroundf(float x) { return (long long)__builtin_roundf(x); }
__WC_FN long long llrint(double x) { return (long long)__builtin_rint(x); }
__WC_FN long long llrintf(float x) { return (long long)__builtin_rintf(x); }
__WC_FN bool isnan(float x) { return __builtin_isnan(x); }
__WC_FN bool isnan(double x) { return __builtin_isnan(x); }
#define __WC_CLASS(T, f)                                                                           \
    __WC_FN int __isnan##f(T x) { return __builtin_isnan(x); }                                     \
    __WC_FN int __isinf##f(T x) { return __builtin_isinf(x); }                                     \
    __WC_FN int __finite##f(T x) { return __builtin_isfinite(x); }                                 \
    __WC_FN int __signbit##f(T x) { return __builtin_signbit(x); }
__WC_CLASS(float, f)
__WC_CLASS(double, )
#undef __WC_CLASS
__WC_FN bool isinf(float x) { return __builtin_isinf(x); }
__WC_FN bool isinf(double x) { return __builtin_isinf(x); }
__WC_FN bool isfinite(float x) { return __builtin_isfinite(x); }
__WC_FN bool isfinite(double x) { return __builtin_isfinite(x); }
__WC_FN bool signbit(float x) { return __builtin_signbit(x); }
__WC_FN bool signbit(double x) { return __builtin_signbit(x); }

// --- single precision: by LLVM's own expansion
__WC_FN float expf(float x) { return __builtin_expf(x); }
__WC_FN float exp2f(float x) { return __builtin_exp2f(x); }
__WC_FN float exp10f(float x) { return __builtin_exp10f(x); }
__WC_FN float logf(float x) { return __builtin_logf(x); }
__WC_FN float log2f(float x) { return __builtin_log2f(x); }
__WC_FN float log10f(float x) { return __builtin_log10f(x); }

// --- single precision: hardware approximations
#ifdef __AMDGCN__
__WC_FN float __wc_native_exp2(float x) { return __builtin_amdgcn_exp2f(x); }
__WC_FN float __wc_native_log2(float x) { return __builtin_amdgcn_logf(x); }
__WC_FN float __wc_native_sin(float x) { return __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x)); }
__WC_FN float __wc_native_cos(float x) { return __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x)); }
__WC_FN float __wc_native_rcp(float x) { return __builtin_amdgcn_rcpf(x); }
__WC_FN float __wc_native_rsqrt(float x) { return __builtin_amdgcn_rsqf(x); }
__WC_FN double __wc_native_rsqrt(double x) { return __builtin_amdgcn_rsq(x); }
#else  // for tests of the code below on the host
__WC_FN float __wc_native_exp2(float x) { return __builtin_exp2f(x); }
__WC_FN float __wc_native_log2(float x) { return __builtin_log2f(x); }
__WC_FN float __wc_native_sin(float x) { return __builtin_sinf(x * 6.283185307f); }
__WC_FN float __wc_native_cos(float x) { return __builtin_cosf(x * 6.283185307f); }
__WC_FN float __wc_native_rcp(float x) { return 1.0f / x; }
__WC_FN float __wc_native_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
__WC_FN double __wc_native_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
#endif
#define __WC_LOG2E 1.44269504088896340736
#define __WC_LN2 0.69314718055994530942

__WC_FN float __expf(float x) { return __wc_native_exp2(x * (float)__WC_LOG2E); }
__WC_FN float __exp10f(float x) { return __wc_native_exp2(x * 3.32192809488736f); }
__WC_FN float __logf(float x) { return __wc_native_log2(x) * (float)__WC_LN2; }
__WC_FN float __log2f(float x) { return __wc_native_log2(x); }
__WC_FN float __log10f(float x) { return __wc_native_log2(x) * 0.301029995663981f; }
__WC_FN float __sinf(float x) { return __wc_native_sin(x * 0.159154943091895f); }
__WC_FN float __cosf(float x) { return __wc_native_cos(x * 0.159154943091895f); }
__WC_FN void __sincosf(float x, float *s, float *c) { *s = __sinf(x), *c = __cosf(x); }
__WC_FN float __tanf(float x) { return __sinf(x) * __wc_native_rcp(__cosf(x)); }
__WC_FN float __powf(float x, float y) { return __wc_native_exp2(y * __wc_native_log2(x)); }
__WC_FN float __fdividef(float x, float y) { return x * __wc_native_rcp(y); }
__WC_FN float __frcp_rn(float x) { return 1.0f / x; }
__WC_FN float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
__WC_FN float __frsqrt_rn(float x) { return __wc_native_rsqrt(x); }
__WC_FN float __fadd_rn(float x, float y) { return x + y; }
__WC_FN float __fsub_rn(float x, float y) { return x - y; }
__WC_FN float __fmul_rn(float x, float y) { return x * y; }
__WC_FN float __fdiv_rn(float x, float y) { return x / y; }
__WC_FN float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__WC_FN double __dadd_rn(double x, double y) { return x + y; }
__WC_FN double __dsub_rn(double x, double y) { return x - y; }
__WC_FN double __dmul_rn(double x, double y) { return x * y; }
__WC_FN double __ddiv_rn(double x, double y) { return x / y; }
__WC_FN double __drcp_rn(double x) { return 1.0 / x; }
__WC_FN double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
__WC_FN double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
__WC_FN float __saturatef(float x) { return __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f); }
__WC_FN float rsqrtf(float x) { return __wc_native_rsqrt(x); }
__WC_FN float rsqrt(float x) { return __wc_native_rsqrt(x); }

// c[0] + c[1] x + c[2] x^2 + ...
template <typename T, int N> __WC_FN T __wc_horner(T x, const T (&c)[N]) {
    T sum = c[N - 1];
    for (int i = N - 2; i >= 0; --i) sum = __builtin_elementwise_fma(sum, x, c[i]);
    return sum;
}

#undef __WC_FN
