// 8-bit floats: OCP (e4m3, e5m2) and the NANOO forms of gfx942 (e4m3_fnuz, e5m2_fnuz).
//
// A conversion is one instruction where the target has it for that format (gfx942: fnuz; gfx950 and
// gfx12: OCP), else integer code: that is what emulation costs on that target.
#pragma once

#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <wavecast/checked.h>

typedef unsigned char __hip_fp8_storage_t;

#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define __WC_FP8_FNUZ 1
#elif defined(__gfx950__) || defined(__GFX12__)
#define __WC_FP8_OCP 1
#endif

// Rounds to nearest even. M mantissa bits, largest finite magnitude `top`, which larger numbers are
// where they saturate; else they are infinite, or no number where the format has no infinity.
template <int M, bool FNUZ, bool SATURATES = true>
__WC_HD unsigned char __wc_fp8_encode(float x) {
    constexpr int E = 7 - M, bias = (1 << (E - 1)) - (FNUZ ? 0 : 1);
    constexpr unsigned top = FNUZ ? 0x7f : (M == 3 ? 0x7e : 0x7b), nan = FNUZ ? 0x80 : 0x7f;
    constexpr unsigned beyond = SATURATES ? top : FNUZ || M == 3 ? nan : 0x7c;
    unsigned bits = __builtin_bit_cast(unsigned, x), sign = bits >> 24 & 0x80;
    if (x != x) return (unsigned char)(FNUZ ? nan : sign | nan);
    float a = __builtin_fabsf(x);
    constexpr float smallest = 1.0f / (float)(1ull << (bias - 1));
    unsigned code;
    if (a < smallest) {
        code = (unsigned)__builtin_rintf(a * (float)(1ull << (bias - 1 + M)));
    } else {
        unsigned magnitude = bits & 0x7fffffff, below_half = (1u << (22 - M)) - 1;
        magnitude += below_half + (magnitude >> (23 - M) & 1);
        code = (magnitude >> (23 - M)) - ((127u - bias) << M);
    }
    code = code > top ? beyond : code;
    return (unsigned char)(FNUZ && code == 0 ? 0 : sign | code);
}
template <int M, bool FNUZ> __WC_HD float __wc_fp8_decode(unsigned char code) {
    constexpr int E = 7 - M, bias = (1 << (E - 1)) - (FNUZ ? 0 : 1);
    unsigned magnitude = code & 0x7f, exponent = magnitude >> M;
    unsigned normal = (magnitude << (23 - M)) + ((127u - bias) << 23);
    float a = exponent == 0 ? (float)magnitude / (float)(1ull << (bias - 1 + M))
                            : __builtin_bit_cast(float, normal);
    bool nan = FNUZ ? code == 0x80 : M == 3 ? magnitude == 0x7f : magnitude > 0x7c;
    if (nan) a = __builtin_nanf("");
    if (!FNUZ && M == 2 && magnitude == 0x7c) a = __builtin_inff();
    return code & 0x80 ? -a : a;
}

template <int M, bool FNUZ> struct __wc_fp8 {
    __hip_fp8_storage_t __x;
    __wc_fp8() = default;
    __host__ __device__ __wc_inline __wc_fp8(float x) : __x(from_float(x)) {}
    __host__ __device__ __wc_inline operator float() const { return to_float(__x); }
    __host__ __device__ __wc_inline operator __half() const { return __half(to_float(__x)); }
    __host__ __device__ __wc_inline operator __hip_bfloat16() const { return __hip_bfloat16(to_float(__x)); }

    static __host__ __device__ __wc_inline unsigned char from_float(float x) {
        __wc_mark<0x57430100 + (M == 2) + 2 * FNUZ>(x);
#if defined(__WC_FP8_FNUZ) || defined(__WC_FP8_OCP)
        if constexpr (FNUZ == native_fnuz) {
            constexpr float top = M == 3 ? (FNUZ ? 240.0f : 448.0f) : 57344.0f;
            float y = __builtin_isnan(x) ? x : __builtin_amdgcn_fmed3f(x, top, -top);
            return (unsigned char)(M == 3 ? __builtin_amdgcn_cvt_pk_fp8_f32(y, y, 0, false)
                                          : __builtin_amdgcn_cvt_pk_bf8_f32(y, y, 0, false));
        }
#endif
        return __wc_fp8_encode<M, FNUZ>(x);
    }
    // Of numbers that need not saturate.
    static __host__ __device__ __wc_inline unsigned char beyond(float x) {
        return __wc_fp8_encode<M, FNUZ, false>(x);
    }
    static __host__ __device__ __wc_inline float to_float(unsigned char code) {
#if defined(__WC_FP8_FNUZ) || defined(__WC_FP8_OCP)
        if constexpr (FNUZ == native_fnuz) {
            return M == 3 ? __builtin_amdgcn_cvt_f32_fp8(code, 0)
                          : __builtin_amdgcn_cvt_f32_bf8(code, 0);
        }
#endif
        return __wc_fp8_decode<M, FNUZ>(code);
    }
#if defined(__WC_FP8_FNUZ)
    static constexpr bool native_fnuz = true;
#else
    static constexpr bool native_fnuz = false;
#endif
};

typedef __wc_fp8<3, false> __hip_fp8_e4m3;
typedef __wc_fp8<2, false> __hip_fp8_e5m2;
typedef __wc_fp8<3, true> __hip_fp8_e4m3_fnuz;
typedef __wc_fp8<2, true> __hip_fp8_e5m2_fnuz;

typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned __hip_fp8x4_storage_t;
typedef enum { __HIP_NOSAT, __HIP_SATFINITE } __hip_saturation_t;
typedef enum {
    __HIP_E4M3, __HIP_E5M2, __HIP_E4M3_FNUZ, __HIP_E5M2_FNUZ
} __hip_fp8_interpretation_t;

#define __WC_FP8_OF(F, sat) ((sat) == __HIP_SATFINITE ? F::from_float(x) : F::beyond(x))
__WC_HD __hip_fp8_storage_t __hip_cvt_float_to_fp8(float x, __hip_saturation_t sat,
                                                   __hip_fp8_interpretation_t format) {
    switch (format) {
        case __HIP_E4M3: return __WC_FP8_OF(__hip_fp8_e4m3, sat);
        case __HIP_E5M2: return __WC_FP8_OF(__hip_fp8_e5m2, sat);
        case __HIP_E4M3_FNUZ: return __WC_FP8_OF(__hip_fp8_e4m3_fnuz, sat);
        default: return __WC_FP8_OF(__hip_fp8_e5m2_fnuz, sat);
    }
}
#undef __WC_FP8_OF
__WC_HD __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t x,
                                            __hip_fp8_interpretation_t format) {
    switch (format) {
        case __HIP_E4M3: return __half(__hip_fp8_e4m3::to_float(x));
        case __HIP_E5M2: return __half(__hip_fp8_e5m2::to_float(x));
        case __HIP_E4M3_FNUZ: return __half(__hip_fp8_e4m3_fnuz::to_float(x));
        default: return __half(__hip_fp8_e5m2_fnuz::to_float(x));
    }
}
__WC_HD __half2_raw __hip_cvt_fp8x2_to_halfraw2(__hip_fp8x2_storage_t x,
                                                __hip_fp8_interpretation_t format) {
    return __half2(__hip_cvt_fp8_to_halfraw(x & 0xff, format),
                   __hip_cvt_fp8_to_halfraw(x >> 8, format));
}
// One conversion of what `to_float` makes a float, and one of pairs.
#define __WC_FP8_CONVERSION(name, T, to_float, pairs, T2, to_float2)                               \
    __WC_HD __hip_fp8_storage_t name(T v, __hip_saturation_t sat,                                  \
                                     __hip_fp8_interpretation_t format) {                          \
        return __hip_cvt_float_to_fp8(to_float(v), sat, format);                                   \
    }                                                                                              \
    __WC_HD __hip_fp8x2_storage_t pairs(T2 v, __hip_saturation_t sat,                              \
                                        __hip_fp8_interpretation_t format) {                       \
        float2 both = to_float2(v);                                                                \
        return (unsigned short)(__hip_cvt_float_to_fp8(both.x, sat, format) |                      \
                                __hip_cvt_float_to_fp8(both.y, sat, format) << 8);                 \
    }
__WC_HD float __wc_single(double x) { return (float)x; }
__WC_HD float2 __wc_singles(double2 v) { return {(float)v.x, (float)v.y}; }
__WC_FP8_CONVERSION(__hip_cvt_double_to_fp8, double, __wc_single, __hip_cvt_double2_to_fp8x2,
                    double2, __wc_singles)
__WC_FP8_CONVERSION(__hip_cvt_halfraw_to_fp8, __half_raw, __half2float,
                    __hip_cvt_halfraw2_to_fp8x2, __half2_raw, __half22float2)
__WC_FP8_CONVERSION(__hip_cvt_bfloat16raw_to_fp8, __hip_bfloat16_raw, __bfloat162float,
                    __hip_cvt_bfloat16raw2_to_fp8x2, __hip_bfloat162_raw, __bfloat1622float2)
#undef __WC_FP8_CONVERSION
__WC_HD __hip_fp8x2_storage_t __hip_cvt_float2_to_fp8x2(float2 v, __hip_saturation_t sat,
                                                        __hip_fp8_interpretation_t format) {
    return (unsigned short)(__hip_cvt_float_to_fp8(v.x, sat, format) |
                            __hip_cvt_float_to_fp8(v.y, sat, format) << 8);
}

template <typename One> struct __wc_fp8x2 {
    __hip_fp8x2_storage_t __x;
    __wc_fp8x2() = default;
    __host__ __device__ __wc_inline __wc_fp8x2(float2 v)
        : __x((unsigned short)(One::from_float(v.x) | One::from_float(v.y) << 8)) {}
    __host__ __device__ __wc_inline __wc_fp8x2(__half2 v) : __wc_fp8x2(__half22float2(v)) {}
    __host__ __device__ __wc_inline __wc_fp8x2(__hip_bfloat162 v) : __wc_fp8x2(__bfloat1622float2(v)) {}
    __host__ __device__ __wc_inline __wc_fp8x2(double2 v) : __wc_fp8x2(__wc_singles(v)) {}
    __host__ __device__ __wc_inline operator __half2() const { return __float22half2_rn(*this); }
    __host__ __device__ __wc_inline operator float2() const {
        return {One::to_float(__x & 0xff), One::to_float(__x >> 8)};
    }
};
template <typename One> struct __wc_fp8x4 {
    __hip_fp8x4_storage_t __x;
    __wc_fp8x4() = default;
    __host__ __device__ __wc_inline __wc_fp8x4(float4 v)
        : __x(One::from_float(v.x) | One::from_float(v.y) << 8 | One::from_float(v.z) << 16 |
              (unsigned)One::from_float(v.w) << 24) {}
    __host__ __device__ __wc_inline __wc_fp8x4(double4 v)
        : __wc_fp8x4(float4((float)v.x, (float)v.y, (float)v.z, (float)v.w)) {}
    __host__ __device__ __wc_inline __wc_fp8x4(__half2 low, __half2 high)
        : __wc_fp8x4(of(__half22float2(low), __half22float2(high))) {}
    __host__ __device__ __wc_inline __wc_fp8x4(__hip_bfloat162 low, __hip_bfloat162 high)
        : __wc_fp8x4(of(__bfloat1622float2(low), __bfloat1622float2(high))) {}
    __host__ __device__ __wc_inline operator float4() const {
        return {One::to_float(__x & 0xff), One::to_float(__x >> 8 & 0xff),
                One::to_float(__x >> 16 & 0xff), One::to_float(__x >> 24)};
    }

  private:
    static __host__ __device__ __wc_inline float4 of(float2 low, float2 high) {
        return {low.x, low.y, high.x, high.y};
    }
};
typedef __wc_fp8x2<__hip_fp8_e4m3> __hip_fp8x2_e4m3;
typedef __wc_fp8x2<__hip_fp8_e5m2> __hip_fp8x2_e5m2;
typedef __wc_fp8x2<__hip_fp8_e4m3_fnuz> __hip_fp8x2_e4m3_fnuz;
typedef __wc_fp8x2<__hip_fp8_e5m2_fnuz> __hip_fp8x2_e5m2_fnuz;
typedef __wc_fp8x4<__hip_fp8_e4m3> __hip_fp8x4_e4m3;
typedef __wc_fp8x4<__hip_fp8_e5m2> __hip_fp8x4_e5m2;
typedef __wc_fp8x4<__hip_fp8_e4m3_fnuz> __hip_fp8x4_e4m3_fnuz;
typedef __wc_fp8x4<__hip_fp8_e5m2_fnuz> __hip_fp8x4_e5m2_fnuz;

#undef __WC_FP8_FNUZ
#undef __WC_FP8_OCP
