// Math functions of AMD's device library, which is linked (wavecast/compile/device_library.py):
// what ROCm's headers map the same names to.
#pragma once

#include <wavecast/math_base.h>

#define __WC_FN static __device__ __wc_inline
#define __WC_PRIVATE __attribute__((address_space(5)))

#define __WC_LIBRARY(name)                                                                         \
    extern "C" __device__ float __ocml_##name##_f32(float);                                        \
    extern "C" __device__ double __ocml_##name##_f64(double);                                      \
    __WC_FN float name##f(float x) { return __ocml_##name##_f32(x); }                              \
    __WC_FN double name(double x) { return __ocml_##name##_f64(x); }
__WC_LIBRARY(sin) __WC_LIBRARY(cos) __WC_LIBRARY(tan) __WC_LIBRARY(sinpi) __WC_LIBRARY(cospi)
__WC_LIBRARY(asin) __WC_LIBRARY(acos) __WC_LIBRARY(atan)
__WC_LIBRARY(sinh) __WC_LIBRARY(cosh) __WC_LIBRARY(tanh)
__WC_LIBRARY(asinh) __WC_LIBRARY(acosh) __WC_LIBRARY(atanh)
__WC_LIBRARY(expm1) __WC_LIBRARY(log1p) __WC_LIBRARY(erf) __WC_LIBRARY(erfc)
__WC_LIBRARY(cbrt) __WC_LIBRARY(rcbrt) __WC_LIBRARY(tgamma) __WC_LIBRARY(lgamma)
#undef __WC_LIBRARY

#define __WC_LIBRARY(name)                                                                         \
    extern "C" __device__ float __ocml_##name##_f32(float, float);                                 \
    extern "C" __device__ double __ocml_##name##_f64(double, double);                              \
    __WC_FN float name##f(float x, float y) { return __ocml_##name##_f32(x, y); }                  \
    __WC_FN double name(double x, double y) { return __ocml_##name##_f64(x, y); }
__WC_LIBRARY(atan2) __WC_LIBRARY(hypot)
#undef __WC_LIBRARY

// LLVM has these for floats only (math_base.h).
#define __WC_LIBRARY(name)                                                                         \
    extern "C" __device__ double __ocml_##name##_f64(double);                                      \
    __WC_FN double name(double x) { return __ocml_##name##_f64(x); }
__WC_LIBRARY(exp) __WC_LIBRARY(exp2) __WC_LIBRARY(exp10)
__WC_LIBRARY(log) __WC_LIBRARY(log2) __WC_LIBRARY(log10) __WC_LIBRARY(rsqrt)
#undef __WC_LIBRARY

// Functions that LLVM has no code for, of one argument.
#define __WC_LIBRARY(name, symbol)                                                                 \
    extern "C" __device__ float __ocml_##symbol##_f32(float);                                      \
    extern "C" __device__ double __ocml_##symbol##_f64(double);                                    \
    __WC_FN float name##f(float x) { return __ocml_##symbol##_f32(x); }                            \
    __WC_FN double name(double x) { return __ocml_##symbol##_f64(x); }
__WC_LIBRARY(erfinv, erfinv) __WC_LIBRARY(erfcinv, erfcinv) __WC_LIBRARY(erfcx, erfcx)
__WC_LIBRARY(j0, j0) __WC_LIBRARY(j1, j1) __WC_LIBRARY(y0, y0) __WC_LIBRARY(y1, y1)
__WC_LIBRARY(cyl_bessel_i0, i0) __WC_LIBRARY(cyl_bessel_i1, i1)
__WC_LIBRARY(logb, logb) __WC_LIBRARY(normcdfinv, ncdfinv)
#undef __WC_LIBRARY
extern "C" __device__ double __ocml_ncdf_f64(double);
__WC_FN double normcdf(double x) { return __ocml_ncdf_f64(x); }
#define __WC_LIBRARY(name)                                                                         \
    extern "C" __device__ float __ocml_##name##_f32(float, float);                                 \
    extern "C" __device__ double __ocml_##name##_f64(double, double);                              \
    __WC_FN float name##f(float x, float y) { return __ocml_##name##_f32(x, y); }                  \
    __WC_FN double name(double x, double y) { return __ocml_##name##_f64(x, y); }
__WC_LIBRARY(nextafter)
#undef __WC_LIBRARY
#define __WC_LIBRARY(name, checked)                                                                \
    extern "C" __device__ float __ocml_##name##_f32(float, float);                                 \
    extern "C" __device__ double __ocml_##name##_f64(double, double);                              \
    __WC_FN float name##f(float x, float y) { return checked(x, y, __ocml_##name##_f32(x, y)); }   \
    __WC_FN double name(double x, double y) { return checked(x, y, __ocml_##name##_f64(x, y)); }
__WC_LIBRARY(pow, __wc_checked_pow) __WC_LIBRARY(remainder, __wc_checked_rest)
#undef __WC_LIBRARY
__WC_FN float nextafter(float x, float y) { return nextafterf(x, y); }

extern "C" __device__ float __ocml_pown_f32(float, int);
extern "C" __device__ float __ocml_ncdf_f32(float);
extern "C" __device__ float __ocml_sincos_f32(float, __WC_PRIVATE float *);
extern "C" __device__ double __ocml_sincos_f64(double, __WC_PRIVATE double *);
__WC_FN float powif(float x, int n) { return __ocml_pown_f32(x, n); }
__WC_FN float normcdff(float x) { return __ocml_ncdf_f32(x); }
extern "C" __device__ double __ocml_pown_f64(double, int);
__WC_FN double powi(double x, int n) { return __ocml_pown_f64(x, n); }
// Sine and cosine of pi x, and what is left of a division with the last bits of the quotient.
#define __WC_PAIRS(T, f, bits)                                                                     \
    extern "C" __device__ T __ocml_sincospi_f##bits(T, __WC_PRIVATE T *);                          \
    extern "C" __device__ T __ocml_remquo_f##bits(T, T, __WC_PRIVATE int *);                       \
    __WC_FN void sincospi##f(T x, T *s, T *c) {                                                    \
        T cosine;                                                                                  \
        *s = __ocml_sincospi_f##bits(x, (__WC_PRIVATE T *)&cosine);                                \
        *c = cosine;                                                                               \
    }                                                                                              \
    __WC_FN T remquo##f(T x, T y, int *quotient) {                                                 \
        int last;                                                                                  \
        T rest = __ocml_remquo_f##bits(x, y, (__WC_PRIVATE int *)&last);                           \
        *quotient = last;                                                                          \
        return rest;                                                                               \
    }
__WC_PAIRS(float, f, 32)
__WC_PAIRS(double, , 64)
#undef __WC_PAIRS
// Bessel functions of any order, by their recurrence from orders 0 and 1 on.
#define __WC_ORDERS(T, name, f)                                                                    \
    __WC_FN T name##n##f(int n, T x) {                                                             \
        T lower = name##0##f(x), value = n ? name##1##f(x) : lower;                                \
        for (int i = 1; i < n; ++i) {                                                              \
            T next = 2 * i / x * value - lower;                                                    \
            lower = value;                                                                         \
            value = next;                                                                          \
        }                                                                                          \
        return value;                                                                              \
    }
__WC_ORDERS(float, j, f)
__WC_ORDERS(double, j, )
__WC_ORDERS(float, y, f)
__WC_ORDERS(double, y, )
#undef __WC_ORDERS
__WC_FN void sincosf(float x, float *s, float *c) {
    float cosine;
    *s = __ocml_sincos_f32(x, (__WC_PRIVATE float *)&cosine);
    *c = cosine;
}
__WC_FN void sincos(double x, double *s, double *c) {
    double cosine;
    *s = __ocml_sincos_f64(x, (__WC_PRIVATE double *)&cosine);
    *c = cosine;
}

#undef __WC_PRIVATE
#undef __WC_FN
