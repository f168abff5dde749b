// Complex numbers as pairs, for host and device.
#pragma once

#ifndef __cplusplus
typedef struct {
    float x, y;
} hipFloatComplex, hipComplex;
typedef struct {
    double x, y;
} hipDoubleComplex;
#else
#include <hip/hip_runtime.h>

#define __WC_FN static __host__ __device__ __wc_inline

typedef float2 hipFloatComplex;
typedef double2 hipDoubleComplex;
typedef hipFloatComplex hipComplex;

#define __WC_COMPLEX(type, real, f, root)                                                          \
    __WC_FN real hipCreal##f(type z) { return z.x; }                                               \
    __WC_FN real hipCimag##f(type z) { return z.y; }                                               \
    __WC_FN type hipConj##f(type z) { return type(z.x, -z.y); }                                    \
    __WC_FN real hipCsqabs##f(type z) { return z.x * z.x + z.y * z.y; }                            \
    __WC_FN real hipCabs##f(type z) { return root(z.x * z.x + z.y * z.y); }                        \
    __WC_FN type hipCadd##f(type a, type b) { return type(a.x + b.x, a.y + b.y); }                 \
    __WC_FN type hipCsub##f(type a, type b) { return type(a.x - b.x, a.y - b.y); }                 \
    __WC_FN type hipCmul##f(type a, type b) {                                                      \
        return type(a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y);                                 \
    }                                                                                              \
    __WC_FN type hipCdiv##f(type a, type b) {                                                      \
        real size = hipCsqabs##f(b);                                                               \
        return type((a.x * b.x + a.y * b.y) / size, (a.y * b.x - a.x * b.y) / size);               \
    }                                                                                              \
    __WC_FN type hipCfma##f(type a, type b, type c) { return hipCadd##f(hipCmul##f(a, b), c); }
__WC_COMPLEX(hipFloatComplex, float, f, __builtin_sqrtf)
__WC_COMPLEX(hipDoubleComplex, double, , __builtin_sqrt)
#undef __WC_COMPLEX

__WC_FN hipFloatComplex make_hipFloatComplex(float x, float y) { return {x, y}; }
__WC_FN hipDoubleComplex make_hipDoubleComplex(double x, double y) { return {x, y}; }
__WC_FN hipComplex make_hipComplex(float x, float y) { return {x, y}; }
__WC_FN hipFloatComplex hipComplexDoubleToFloat(hipDoubleComplex z) {
    return {(float)z.x, (float)z.y};
}
__WC_FN hipDoubleComplex hipComplexFloatToDouble(hipFloatComplex z) { return {z.x, z.y}; }

#undef __WC_FN
#endif
