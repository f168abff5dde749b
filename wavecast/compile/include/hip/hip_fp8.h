// 8-bit floats: OCP (e4m3, e5m2) and the NANOO forms of gfx942 (e4m3_fnuz, e5m2_fnuz).
//
// A conversion is one instruction where the target has it for that format (gfx942: fnuz; gfx950 and
// gfx12: OCP), else integer code: that is what emulation costs on that target.
#pragma once

#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <wavecast/checked.h>

#define __WC_FN static __device__ __wc_inline

typedef unsigned char __hip_fp8_storage_t;

#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define __WC_FP8_FNUZ 1
#elif defined(__gfx950__) || defined(__GFX12__)
#define __WC_FP8_OCP 1
#endif

// Rounds to nearest even and saturates. M mantissa bits, largest finite magnitude `top`.
template <int M, bool FNUZ> __WC_FN unsigned char __wc_fp8_encode(float x) {
    constexpr int E = 7 - M, bias = (1 << (E - 1)) - (FNUZ ? 0 : 1);
    constexpr unsigned top = FNUZ ? 0x7f : (M == 3 ? 0x7e : 0x7b), nan = FNUZ ? 0x80 : 0x7f;
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
    code = code > top ? top : code;
    return (unsigned char)(FNUZ && code == 0 ? 0 : sign | code);
}
template <int M, bool FNUZ> __WC_FN float __wc_fp8_decode(unsigned char code) {
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
    __device__ __wc_inline __wc_fp8(float x) : __x(from_float(x)) {}
    __device__ __wc_inline operator float() const { return to_float(__x); }

    static __device__ __wc_inline unsigned char from_float(float x) {
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
    static __device__ __wc_inline float to_float(unsigned char code) {
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

// Saturates always: __HIP_NOSAT is for values that fit.
__WC_FN __hip_fp8_storage_t __hip_cvt_float_to_fp8(float x, __hip_saturation_t,
                                                   __hip_fp8_interpretation_t format) {
    switch (format) {
        case __HIP_E4M3: return __hip_fp8_e4m3::from_float(x);
        case __HIP_E5M2: return __hip_fp8_e5m2::from_float(x);
        case __HIP_E4M3_FNUZ: return __hip_fp8_e4m3_fnuz::from_float(x);
        default: return __hip_fp8_e5m2_fnuz::from_float(x);
    }
}

template <typename One> struct __wc_fp8x2 {
    __hip_fp8x2_storage_t __x;
    __wc_fp8x2() = default;
    __device__ __wc_inline __wc_fp8x2(float2 v)
        : __x((unsigned short)(One::from_float(v.x) | One::from_float(v.y) << 8)) {}
    __device__ __wc_inline __wc_fp8x2(__half2 v) : __wc_fp8x2(__half22float2(v)) {}
    __device__ __wc_inline __wc_fp8x2(__hip_bfloat162 v) : __wc_fp8x2(__bfloat1622float2(v)) {}
    __device__ __wc_inline operator float2() const {
        return {One::to_float(__x & 0xff), One::to_float(__x >> 8)};
    }
};
template <typename One> struct __wc_fp8x4 {
    __hip_fp8x4_storage_t __x;
    __wc_fp8x4() = default;
    __device__ __wc_inline __wc_fp8x4(float4 v)
        : __x(One::from_float(v.x) | One::from_float(v.y) << 8 | One::from_float(v.z) << 16 |
              (unsigned)One::from_float(v.w) << 24) {}
    __device__ __wc_inline __wc_fp8x4(__half2 low, __half2 high)
        : __wc_fp8x4(of(__half22float2(low), __half22float2(high))) {}
    __device__ __wc_inline __wc_fp8x4(__hip_bfloat162 low, __hip_bfloat162 high)
        : __wc_fp8x4(of(__bfloat1622float2(low), __bfloat1622float2(high))) {}
    __device__ __wc_inline operator float4() const {
        return {One::to_float(__x & 0xff), One::to_float(__x >> 8 & 0xff),
                One::to_float(__x >> 16 & 0xff), One::to_float(__x >> 24)};
    }

  private:
    static __device__ __wc_inline float4 of(float2 low, float2 high) {
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
#undef __WC_FN
