// __hip_bfloat16 and pairs of it: structures, as in HIP, of the compiler's __bf16. Arithmetic is that
// of single precision, rounded to nearest even, by gfx950's conversion instruction where it exists.
#pragma once

#include <hip/hip_bfloat16.h>

typedef __bf16 __wc_bf16_pair __attribute__((ext_vector_type(2)));

struct __hip_bfloat16_raw {
    unsigned short x;
};
struct alignas(2) __hip_bfloat16 {
    union {
        __bf16 data;
        unsigned short __x;
    };
    __hip_bfloat16() = default;
    template <typename T, typename = typename __wc_type_if_number<void, T>::type>
    __host__ __device__ __wc_inline constexpr __hip_bfloat16(T x)
        : data(__wc_number_as<__bf16>(x)) {}
    __host__ __device__ __wc_inline constexpr __hip_bfloat16(__hip_bfloat16_raw raw)
        : data(__builtin_bit_cast(__bf16, raw.x)) {}
    __host__ __device__ __wc_inline constexpr __hip_bfloat16(hip_bfloat16 x)
        : data(__builtin_bit_cast(__bf16, x.data)) {}
    __host__ __device__ __wc_inline constexpr operator float() const { return (float)data; }
    __host__ __device__ __wc_inline operator __hip_bfloat16_raw() const {
        return {__builtin_bit_cast(unsigned short, data)};
    }
    __WC_SMALL_FLOAT_OPERATORS(__hip_bfloat16, float)
};

struct __hip_bfloat162_raw {
    unsigned short x, y;
};
struct alignas(4) __hip_bfloat162 {
    union {
        struct { __hip_bfloat16 x, y; };
        __wc_bf16_pair data;
    };
    __hip_bfloat162() = default;
    __host__ __device__ __wc_inline constexpr __hip_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y)
        : x(x), y(y) {}
    __host__ __device__ __wc_inline constexpr __hip_bfloat162(__hip_bfloat162_raw raw)
        : x(__hip_bfloat16_raw{raw.x}), y(__hip_bfloat16_raw{raw.y}) {}
    __host__ __device__ __wc_inline __hip_bfloat162(float2 v) : x(v.x), y(v.y) {}
    __host__ __device__ __wc_inline operator float2() const { return {(float)x, (float)y}; }
    __host__ __device__ __wc_inline operator __hip_bfloat162_raw() const {
        return {((__hip_bfloat16_raw)x).x, ((__hip_bfloat16_raw)y).x};
    }
};

#define __WC_FN static __device__ __wc_inline
#define __WC_BF16_PAIRS(op, a, b) __hip_bfloat162(a.x op b.x, a.y op b.y)
__WC_SMALL_FLOAT_FUNCTIONS(__hip_bfloat16, __hip_bfloat162, float, __WC_BF16_PAIRS)
#undef __WC_BF16_PAIRS
__WC_SMALL_FLOAT_MATHS(__hip_bfloat16, __hip_bfloat162)

__WC_HD __hip_bfloat16 __float2bfloat16(float x) { return x; }
__WC_HD __hip_bfloat16 __float2bfloat16_rn(float x) { return x; }
__WC_HD float __bfloat162float(__hip_bfloat16 x) { return (float)x; }
__WC_HD __hip_bfloat16 __double2bfloat16(double x) { return x; }
__WC_FN int __bfloat162int_rn(__hip_bfloat16 x) { return (int)__builtin_rintf((float)x); }
__WC_HD short __bfloat16_as_short(__hip_bfloat16 x) { return __builtin_bit_cast(short, x); }
__WC_HD unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) {
    return __builtin_bit_cast(unsigned short, x);
}
__WC_HD __hip_bfloat16 __short_as_bfloat16(short x) { return __builtin_bit_cast(__bf16, x); }
__WC_HD __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) {
    return __builtin_bit_cast(__bf16, x);
}

__WC_HD __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
__WC_HD __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return {x, x}; }
__WC_HD __hip_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return {__hip_bfloat16(x), __hip_bfloat16(y)};
}
__WC_HD __hip_bfloat162 make_bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
__WC_HD __hip_bfloat162 __float2bfloat162_rn(float x) {
    return {__hip_bfloat16(x), __hip_bfloat16(x)};
}
__WC_HD __hip_bfloat162 __float22bfloat162_rn(float2 v) {
    return {__hip_bfloat16(v.x), __hip_bfloat16(v.y)};
}
__WC_HD float2 __bfloat1622float2(__hip_bfloat162 v) { return {(float)v.x, (float)v.y}; }
__WC_HD __hip_bfloat16 __low2bfloat16(__hip_bfloat162 v) { return v.x; }
__WC_HD __hip_bfloat16 __high2bfloat16(__hip_bfloat162 v) { return v.y; }
__WC_HD __hip_bfloat162 __low2bfloat162(__hip_bfloat162 v) { return {v.x, v.x}; }
__WC_HD __hip_bfloat162 __high2bfloat162(__hip_bfloat162 v) { return {v.y, v.y}; }
__WC_HD __hip_bfloat162 __lows2bfloat162(__hip_bfloat162 a, __hip_bfloat162 b) {
    return {a.x, b.x};
}
__WC_HD __hip_bfloat162 __highs2bfloat162(__hip_bfloat162 a, __hip_bfloat162 b) {
    return {a.y, b.y};
}
__WC_HD __hip_bfloat16 max(__hip_bfloat16 a, __hip_bfloat16 b) { return __hmax(a, b); }
__WC_HD __hip_bfloat16 min(__hip_bfloat16 a, __hip_bfloat16 b) { return __hmin(a, b); }
#define __WC_BOTH(name, one, both)                                                                 \
    __WC_HD bool name(__hip_bfloat162 a, __hip_bfloat162 b) {                                      \
        return one(a.x, b.x) both one(a.y, b.y);                                                   \
    }
__WC_BOTH(__hbequ2, __hequ, &&)
__WC_BOTH(__hbneu2, __hneu, ||)
__WC_BOTH(__hbltu2, __hltu, &&)
__WC_BOTH(__hbleu2, __hleu, &&)
__WC_BOTH(__hbgtu2, __hgtu, &&)
__WC_BOTH(__hbgeu2, __hgeu, &&)
#undef __WC_BOTH
__WC_FN __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
    return __builtin_fmaf((float)a, (float)b, (float)c);
}
__WC_FN __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}

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
