// half and half2. `__half` is _Float16 itself, so that all operators and conversions are the
// compiler's; packed operations work on pairs.
#pragma once

#include <hip/hip_runtime.h>

#define __WC_FN static __device__ __wc_inline
#define __WC_HD __host__ __device__ __wc_inline

typedef _Float16 __half;
typedef _Float16 half;
typedef _Float16 __wc_half_pair __attribute__((ext_vector_type(2)));

struct alignas(4) __half2 {
    union {
        struct { __half x, y; };
        __wc_half_pair data;
    };
    __half2() = default;
    __WC_HD __half2(__half x, __half y) : x(x), y(y) {}
    __WC_HD __half2(__wc_half_pair data) : data(data) {}
};
typedef __half2 half2;

__WC_HD __half __float2half(float x) { return (__half)x; }
__WC_HD __half __float2half_rn(float x) { return (__half)x; }
__WC_HD float __half2float(__half x) { return (float)x; }
__WC_HD __half __double2half(double x) { return (__half)x; }
__WC_HD __half __int2half_rn(int x) { return (__half)x; }
__WC_HD __half __uint2half_rn(unsigned x) { return (__half)x; }
__WC_HD int __half2int_rz(__half x) { return (int)x; }
__WC_FN int __half2int_rn(__half x) { return (int)__builtin_rintf((float)x); }
__WC_HD short __half_as_short(__half x) { return __builtin_bit_cast(short, x); }
__WC_HD unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, x); }
__WC_HD __half __short_as_half(short x) { return __builtin_bit_cast(__half, x); }
__WC_HD __half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(__half, x); }

__WC_HD __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__WC_HD __half2 make_half2(__half x, __half y) { return {x, y}; }
__WC_HD __half2 __half2half2(__half x) { return {x, x}; }
__WC_HD __half2 __float2half2_rn(float x) { return {(__half)x, (__half)x}; }
__WC_HD __half2 __floats2half2_rn(float x, float y) { return {(__half)x, (__half)y}; }
__WC_HD __half2 __float22half2_rn(float2 v) { return {(__half)v.x, (__half)v.y}; }
__WC_HD float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
__WC_HD __half __low2half(__half2 v) { return v.x; }
__WC_HD __half __high2half(__half2 v) { return v.y; }
__WC_HD float __low2float(__half2 v) { return (float)v.x; }
__WC_HD float __high2float(__half2 v) { return (float)v.y; }
__WC_HD __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
__WC_HD __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
__WC_HD __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }

#define __WC_PAIR_OPERATOR(op, scalar, packed)                                                     \
    __WC_HD __half2 operator op(__half2 a, __half2 b) { return __half2(a.data op b.data); }        \
    __WC_HD __half2 &operator op##=(__half2 &a, __half2 b) { return a = a op b; }                  \
    __WC_HD __half scalar(__half a, __half b) { return a op b; }                                   \
    __WC_HD __half2 packed(__half2 a, __half2 b) { return a op b; }
__WC_PAIR_OPERATOR(+, __hadd, __hadd2)
__WC_PAIR_OPERATOR(-, __hsub, __hsub2)
__WC_PAIR_OPERATOR(*, __hmul, __hmul2)
__WC_PAIR_OPERATOR(/, __hdiv, __h2div)
#undef __WC_PAIR_OPERATOR
__WC_HD __half2 operator-(__half2 a) { return __half2(-a.data); }

#define __WC_COMPARISON(op, name)                                                                  \
    __WC_HD bool name(__half a, __half b) { return a op b; }                                       \
    __WC_HD __half2 name##2(__half2 a, __half2 b) {                                                \
        return {(__half)(a.x op b.x), (__half)(a.y op b.y)};                                       \
    }
__WC_COMPARISON(==, __heq)
__WC_COMPARISON(!=, __hne)
__WC_COMPARISON(<, __hlt)
__WC_COMPARISON(<=, __hle)
__WC_COMPARISON(>, __hgt)
__WC_COMPARISON(>=, __hge)
#undef __WC_COMPARISON

__WC_FN bool __hisnan(__half x) { return x != x; }
__WC_FN __half __hneg(__half x) { return -x; }
__WC_FN __half2 __hneg2(__half2 x) { return -x; }
// A template, since sources define it for _Float16, which is another type in ROCm's headers.
template <int = 0> __WC_FN __half __habs(__half x) { return __builtin_elementwise_abs(x); }
__WC_FN __half2 __habs2(__half2 x) { return __half2(__builtin_elementwise_abs(x.data)); }
__WC_FN __half __hmax(__half a, __half b) { return __builtin_fmaxf16(a, b); }
__WC_FN __half __hmin(__half a, __half b) { return __builtin_fminf16(a, b); }
__WC_FN __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
__WC_FN __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
__WC_FN __half __hfma(__half a, __half b, __half c) { return __builtin_fmaf16(a, b, c); }
__WC_FN __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return __half2(__builtin_elementwise_fma(a.data, b.data, c.data));
}

#define __WC_FUNCTION(name, expression)                                                            \
    __WC_FN __half h##name(__half x) { return (__half)(expression); }                              \
    __WC_FN __half2 h2##name(__half2 v) { return {h##name(v.x), h##name(v.y)}; }
__WC_FUNCTION(sqrt, __builtin_sqrtf((float)x))
__WC_FUNCTION(rsqrt, rsqrtf((float)x))
__WC_FUNCTION(rcp, 1.0f / (float)x)
__WC_FUNCTION(exp, __expf((float)x))
__WC_FUNCTION(exp2, __wc_native_exp2((float)x))
__WC_FUNCTION(log, __logf((float)x))
__WC_FUNCTION(log2, __log2f((float)x))
__WC_FUNCTION(sin, sinf((float)x))
__WC_FUNCTION(cos, cosf((float)x))
__WC_FUNCTION(floor, __builtin_floorf((float)x))
__WC_FUNCTION(ceil, __builtin_ceilf((float)x))
__WC_FUNCTION(trunc, __builtin_truncf((float)x))
__WC_FUNCTION(rint, __builtin_rintf((float)x))
#undef __WC_FUNCTION

// Adds to both halves at once: an instruction where the target has one, else compare and swap.
__WC_FN __half2 unsafeAtomicAdd(__half2 *p, __half2 v) {
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
    typedef __attribute__((address_space(1))) __wc_half_pair *global;
    return __half2(__builtin_amdgcn_global_atomic_fadd_v2f16((global)p, v.data));
#else
    return __wc_atomic_update(p, [=](__half2 old) { return old + v; });
#endif
}
__WC_FN __half2 atomicAdd(__half2 *p, __half2 v) {
    return __wc_atomic_update(p, [=](__half2 old) { return old + v; });
}

#undef __WC_FN
#undef __WC_HD
