// half and half2: structures, as in HIP, of the compiler's _Float16, which it converts to and from.
#pragma once

#include <hip/hip_runtime.h>
#include <wavecast/small_float.h>

typedef _Float16 __wc_half_pair __attribute__((ext_vector_type(2)));

struct __half_raw {
    union {
        _Float16 data;
        unsigned short x;
    };
};
struct alignas(2) __half {
    union {
        _Float16 data;
        unsigned short __x;
    };
    __half() = default;
    template <typename T, typename = typename __wc_type_if_number<void, T>::type>
    __host__ __device__ __wc_inline constexpr __half(T x) : data(__wc_number_as<_Float16>(x)) {}
    __host__ __device__ __wc_inline constexpr __half(__half_raw raw) : data(raw.data) {}
    __host__ __device__ __wc_inline constexpr operator _Float16() const { return data; }
    __host__ __device__ __wc_inline constexpr operator __half_raw() const { return {{data}}; }
    __WC_SMALL_FLOAT_OPERATORS(__half, _Float16)
};
typedef __half half;

struct __half2_raw {
    union {
        struct { __half_raw x, y; };
        __wc_half_pair data;
    };
};
struct alignas(4) __half2 {
    union {
        struct { __half x, y; };
        __wc_half_pair data;
    };
    __half2() = default;
    __host__ __device__ __wc_inline constexpr __half2(__half x, __half y) : x(x), y(y) {}
    __host__ __device__ __wc_inline constexpr __half2(__wc_half_pair data) : data(data) {}
    __host__ __device__ __wc_inline constexpr __half2(__half2_raw raw) : data(raw.data) {}
    __host__ __device__ __wc_inline operator __half2_raw() const {
        __half2_raw raw;
        raw.data = data;
        return raw;
    }
};
typedef __half2 half2;

#define __WC_FN static __device__ __wc_inline
#define __WC_HALF_PAIRS(op, a, b) __half2(a.data op b.data)
__WC_SMALL_FLOAT_FUNCTIONS(__half, __half2, _Float16, __WC_HALF_PAIRS)
#undef __WC_HALF_PAIRS
__WC_SMALL_FLOAT_MATHS(__half, __half2)

__WC_HD __half __float2half(float x) { return x; }
__WC_HD __half __float2half_rn(float x) { return x; }
__WC_HD float __half2float(__half x) { return (float)x; }
__WC_HD __half __double2half(double x) { return x; }
// The neighbour of the nearest half where that is on the wrong side.
__WC_HD __half __wc_towards(float x, bool up, bool down) {
    __half nearest(x);
    unsigned short bits = nearest.__x;
    if (x != x || (float)nearest == x) return nearest;
    bool is_above = (float)nearest > x;
    if (is_above ? up : down) return nearest;
    if (is_above == (bits >> 15 == 0)) bits -= 1;
    else bits += 1;
    return __half(__half_raw{{__builtin_bit_cast(_Float16, bits)}});
}
__WC_HD __half __float2half_rd(float x) { return __wc_towards(x, false, true); }
__WC_HD __half __float2half_ru(float x) { return __wc_towards(x, true, false); }
__WC_HD __half __float2half_rz(float x) { return __wc_towards(x, x < 0.0f, x > 0.0f); }

// As in ROCm's header integers of halves are cut off, whatever the name says, and halves of
// integers are the nearest (ROCm/clr f9f995c, amd_hip_fp16.h, line 750).
#define __WC_WHOLE(name, T)                                                                        \
    __WC_HD T __half2##name##_rn(__half x) { return (T)x.data; }                                   \
    __WC_HD T __half2##name##_rz(__half x) { return (T)x.data; }                                   \
    __WC_HD T __half2##name##_rd(__half x) { return (T)x.data; }                                   \
    __WC_HD T __half2##name##_ru(__half x) { return (T)x.data; }                                   \
    __WC_HD __half __##name##2half_rn(T x) { return x; }                                           \
    __WC_HD __half __##name##2half_rz(T x) { return x; }                                           \
    __WC_HD __half __##name##2half_rd(T x) { return x; }                                           \
    __WC_HD __half __##name##2half_ru(T x) { return x; }
__WC_WHOLE(short, short)
__WC_WHOLE(ushort, unsigned short)
__WC_WHOLE(int, int)
__WC_WHOLE(uint, unsigned)
__WC_WHOLE(ll, long long)
__WC_WHOLE(ull, unsigned long long)
#undef __WC_WHOLE
__WC_HD short __half_as_short(__half x) { return __builtin_bit_cast(short, x); }
__WC_HD unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, x); }
__WC_HD __half __short_as_half(short x) { return __builtin_bit_cast(_Float16, x); }
__WC_HD __half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(_Float16, x); }

__WC_HD __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__WC_HD __half2 make_half2(__half x, __half y) { return {x, y}; }
__WC_HD __half2 __half2half2(__half x) { return {x, x}; }
__WC_HD __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
__WC_HD __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
__WC_HD __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
__WC_HD float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
__WC_HD __half __low2half(__half2 v) { return v.x; }
__WC_HD __half __high2half(__half2 v) { return v.y; }
__WC_HD __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
__WC_HD __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
__WC_HD __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
__WC_HD __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }

__WC_HD __half max(__half a, __half b) { return __hmax(a, b); }
__WC_HD __half min(__half a, __half b) { return __hmin(a, b); }
__WC_HD __half __hmax_nan(__half a, __half b) {
    return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b);
}
__WC_HD __half __hmin_nan(__half a, __half b) {
    return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b);
}
__WC_HD __half2 __hisinf2(__half2 v) { return {__half(__hisinf(v.x)), __half(__hisinf(v.y))}; }
// As in ROCm's header, those of pairs with `u` are those without.
__WC_HD __half2 __hequ2(__half2 a, __half2 b) { return __heq2(a, b); }
__WC_HD __half2 __hneu2(__half2 a, __half2 b) { return __hne2(a, b); }
__WC_HD __half2 __hltu2(__half2 a, __half2 b) { return __hlt2(a, b); }
__WC_HD __half2 __hleu2(__half2 a, __half2 b) { return __hle2(a, b); }
__WC_HD __half2 __hgtu2(__half2 a, __half2 b) { return __hgt2(a, b); }
__WC_HD __half2 __hgeu2(__half2 a, __half2 b) { return __hge2(a, b); }
__WC_HD bool __hbequ2(__half2 a, __half2 b) { return __hbeq2(a, b); }
__WC_HD bool __hbneu2(__half2 a, __half2 b) { return __hbne2(a, b); }
__WC_HD bool __hbltu2(__half2 a, __half2 b) { return __hblt2(a, b); }
__WC_HD bool __hbleu2(__half2 a, __half2 b) { return __hble2(a, b); }
__WC_HD bool __hbgtu2(__half2 a, __half2 b) { return __hbgt2(a, b); }
__WC_HD bool __hbgeu2(__half2 a, __half2 b) { return __hbge2(a, b); }

__WC_HD __half __hfma(__half a, __half b, __half c) {
    return __builtin_elementwise_fma(a.data, b.data, c.data);
}
__WC_HD __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return __half2(__builtin_elementwise_fma(a.data, b.data, c.data));
}
__WC_HD __half __clamp_01(__half x) { return x < 0 ? __half(0) : x > 1 ? __half(1) : x; }
#define __WC_SATURATED(name)                                                                       \
    __WC_HD __half name##_sat(__half a, __half b) { return __clamp_01(name(a, b)); }               \
    __WC_HD __half2 name##2_sat(__half2 a, __half2 b) {                                            \
        return {name##_sat(a.x, b.x), name##_sat(a.y, b.y)};                                       \
    }
__WC_SATURATED(__hadd)
__WC_SATURATED(__hsub)
__WC_SATURATED(__hmul)
#undef __WC_SATURATED
__WC_HD __half __hfma_sat(__half a, __half b, __half c) { return __clamp_01(__hfma(a, b, c)); }
__WC_HD __half2 __hfma2_sat(__half2 a, __half2 b, __half2 c) {
    return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)};
}
__WC_FN float amd_mixed_dot(__half2 a, __half2 b, float c, bool saturate) {
    float sum = (float)a.x * (float)b.x + (float)a.y * (float)b.y + c;
    return saturate ? (sum < 0.0f ? 0.0f : sum > 1.0f ? 1.0f : sum) : sum;
}

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
