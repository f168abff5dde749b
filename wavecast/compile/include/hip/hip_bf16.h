// __hip_bfloat16 and pairs of it. The scalar type is the compiler's __bf16: arithmetic happens in
// single precision and rounds to nearest even, by gfx950's conversion instruction where it exists.
#pragma once

#include <hip/hip_runtime.h>

#define __WC_FN static __device__ __wc_inline
#define __WC_HD __host__ __device__ __wc_inline

typedef __bf16 __hip_bfloat16;
typedef __bf16 hip_bfloat16;
typedef __bf16 __wc_bf16_pair __attribute__((ext_vector_type(2)));

struct alignas(4) __hip_bfloat162 {
    union {
        struct { __hip_bfloat16 x, y; };
        __wc_bf16_pair data;
    };
    __hip_bfloat162() = default;
    __WC_HD __hip_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) : x(x), y(y) {}
};

__WC_HD __hip_bfloat16 __float2bfloat16(float x) { return (__hip_bfloat16)x; }
__WC_HD __hip_bfloat16 __float2bfloat16_rn(float x) { return (__hip_bfloat16)x; }
__WC_HD float __bfloat162float(__hip_bfloat16 x) { return (float)x; }
__WC_HD __hip_bfloat16 __double2bfloat16(double x) { return (__hip_bfloat16)(float)x; }
__WC_HD unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) {
    return __builtin_bit_cast(unsigned short, x);
}
__WC_HD __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) {
    return __builtin_bit_cast(__hip_bfloat16, x);
}
__WC_HD __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
__WC_HD __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
__WC_HD __hip_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return {(__hip_bfloat16)x, (__hip_bfloat16)y};
}
__WC_HD __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
__WC_HD __hip_bfloat162 __float2bfloat162_rn(float x) {
    return {(__hip_bfloat16)x, (__hip_bfloat16)x};
}
__WC_FN int __bfloat162int_rn(__hip_bfloat16 x) { return (int)__builtin_rintf((float)x); }
__WC_HD __hip_bfloat162 __float22bfloat162_rn(float2 v) {
    return {(__hip_bfloat16)v.x, (__hip_bfloat16)v.y};
}
__WC_HD float2 __bfloat1622float2(__hip_bfloat162 v) { return {(float)v.x, (float)v.y}; }
__WC_HD __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
__WC_HD __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
__WC_HD float __low2float(__hip_bfloat162 v) { return (float)v.x; }
__WC_HD float __high2float(__hip_bfloat162 v) { return (float)v.y; }

#define __WC_PAIR_OPERATOR(op, scalar, packed)                                                     \
    __WC_HD __hip_bfloat162 operator op(__hip_bfloat162 a, __hip_bfloat162 b) {                    \
        return {(__hip_bfloat16)((float)a.x op (float)b.x),                                        \
                (__hip_bfloat16)((float)a.y op (float)b.y)};                                       \
    }                                                                                              \
    __WC_HD __hip_bfloat162 &operator op##=(__hip_bfloat162 &a, __hip_bfloat162 b) {               \
        return a = a op b;                                                                         \
    }                                                                                              \
    __WC_HD __hip_bfloat16 scalar(__hip_bfloat16 a, __hip_bfloat16 b) {                            \
        return (__hip_bfloat16)((float)a op (float)b);                                             \
    }                                                                                              \
    __WC_HD __hip_bfloat162 packed(__hip_bfloat162 a, __hip_bfloat162 b) { return a op b; }
__WC_PAIR_OPERATOR(+, __hadd, __hadd2)
__WC_PAIR_OPERATOR(-, __hsub, __hsub2)
__WC_PAIR_OPERATOR(*, __hmul, __hmul2)
__WC_PAIR_OPERATOR(/, __hdiv, __h2div)
#undef __WC_PAIR_OPERATOR

#define __WC_COMPARISON(op, name)                                                                  \
    __WC_HD bool name(__hip_bfloat16 a, __hip_bfloat16 b) { return (float)a op (float)b; }
__WC_COMPARISON(==, __heq)
__WC_COMPARISON(!=, __hne)
__WC_COMPARISON(<, __hlt)
__WC_COMPARISON(<=, __hle)
__WC_COMPARISON(>, __hgt)
__WC_COMPARISON(>=, __hge)
#undef __WC_COMPARISON

__WC_FN bool __hisnan(__hip_bfloat16 x) { return (float)x != (float)x; }
__WC_FN __hip_bfloat16 __hneg(__hip_bfloat16 x) { return (__hip_bfloat16)(-(float)x); }
template <int = 0> __WC_FN __hip_bfloat16 __habs(__hip_bfloat16 x) {  // as for __half
    return (__hip_bfloat16)__builtin_fabsf((float)x);
}
__WC_FN __hip_bfloat16 __hmax(__hip_bfloat16 a, __hip_bfloat16 b) {
    return (__hip_bfloat16)__builtin_fmaxf((float)a, (float)b);
}
__WC_FN __hip_bfloat16 __hmin(__hip_bfloat16 a, __hip_bfloat16 b) {
    return (__hip_bfloat16)__builtin_fminf((float)a, (float)b);
}
__WC_FN __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
    return (__hip_bfloat16)__builtin_fmaf((float)a, (float)b, (float)c);
}
__WC_FN __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
__WC_FN __hip_bfloat16 hsqrt(__hip_bfloat16 x) { return (__hip_bfloat16)__builtin_sqrtf((float)x); }
__WC_FN __hip_bfloat16 hexp(__hip_bfloat16 x) { return (__hip_bfloat16)__expf((float)x); }
__WC_FN __hip_bfloat16 hlog(__hip_bfloat16 x) { return (__hip_bfloat16)__logf((float)x); }

// Adds to both halves at once: an instruction where the target has one, else compare and swap.
__WC_FN __hip_bfloat162 unsafeAtomicAdd(__hip_bfloat162 *p, __hip_bfloat162 v) {
#if defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
    typedef short pair __attribute__((ext_vector_type(2)));
    typedef __attribute__((address_space(1))) pair *global;
    pair old = __builtin_amdgcn_global_atomic_fadd_v2bf16((global)p, __builtin_bit_cast(pair, v));
    return __builtin_bit_cast(__hip_bfloat162, old);
#else
    return __wc_atomic_update(p, [=](__hip_bfloat162 old) { return old + v; });
#endif
}
__WC_FN __hip_bfloat162 atomicAdd(__hip_bfloat162 *p, __hip_bfloat162 v) {
    return __wc_atomic_update(p, [=](__hip_bfloat162 old) { return old + v; });
}

#undef __WC_FN
#undef __WC_HD
