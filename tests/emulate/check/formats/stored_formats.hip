// Bytes that one kernel stores as an 8-bit float and another reads as one, or as bytes.
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

extern "C" __global__ void store_ocp(const float *in, unsigned char *bytes) {
    bytes[threadIdx.x] = __hip_cvt_float_to_fp8(in[threadIdx.x], __HIP_SATFINITE, __HIP_E4M3);
}

extern "C" __global__ void store_fnuz(const float *in, unsigned char *bytes) {
    bytes[threadIdx.x] = __hip_fp8_e4m3_fnuz(in[threadIdx.x]).__x;
}

__device__ float value_of(unsigned char code) {
    __hip_fp8_e4m3 value;
    value.__x = code;
    return (float)value;
}

extern "C" __global__ void load_ocp(const uint8_t *bytes, float *out) {
    if (threadIdx.x < 256) out[threadIdx.x] = value_of(bytes[threadIdx.x]);
}

extern "C" __global__ void load_fnuz(const uint8_t *bytes, float *out) {
    __hip_fp8_e4m3_fnuz value;
    value.__x = bytes[threadIdx.x];
    out[threadIdx.x] = (float)value;
}

#ifdef __gfx942__
extern "C" __global__ void load_native(const uint8_t *bytes, float *out) {
    out[threadIdx.x] = __builtin_amdgcn_cvt_f32_fp8(bytes[threadIdx.x], 0);
}
#endif

extern "C" __global__ void load_bytes(const uint8_t *bytes, float *out) {
    out[threadIdx.x] = bytes[threadIdx.x];
}

extern "C" __global__ void copy_bytes(const uint8_t *bytes, unsigned char *out) {
    out[threadIdx.x] = bytes[threadIdx.x];
}

extern "C" __global__ void convert(const uint8_t *bytes, unsigned char *out) {
    out[threadIdx.x] = __hip_fp8_e4m3_fnuz(value_of(bytes[threadIdx.x])).__x;
}

template <__hip_fp8_interpretation_t FORMAT>
__global__ void store_as(const float *in, unsigned char *bytes) {
    bytes[threadIdx.x] = __hip_cvt_float_to_fp8(in[threadIdx.x], __HIP_SATFINITE, FORMAT);
}
template __global__ void store_as<__HIP_E4M3>(const float *, unsigned char *);
template __global__ void store_as<__HIP_E4M3_FNUZ>(const float *, unsigned char *);

template <typename T> __global__ void load_as(const uint8_t *bytes, float *out) {
    T value;
    value.__x = bytes[threadIdx.x];
    out[threadIdx.x] = (float)value;
}
template __global__ void load_as<__hip_fp8_e4m3>(const uint8_t *, float *);
template __global__ void load_as<__hip_fp8_e4m3_fnuz>(const uint8_t *, float *);

using Wide = __hip_fp8_e4m3_fnuz;
#define CODE(value) value.__x
struct Fnuz {
    using Number = Wide;
};

extern "C" __global__ void load_alias(const uint8_t *bytes, float *out) {
    Fnuz::Number value;
    CODE(value) = bytes[threadIdx.x];
    out[threadIdx.x] = (float)value;
}

constexpr auto FORMAT_OF_STORES = __HIP_E4M3;

extern "C" __global__ void store_alias(const float *in, unsigned char *bytes) {
    unsigned char code =
        __hip_cvt_float_to_fp8(in[threadIdx.x], __HIP_SATFINITE, FORMAT_OF_STORES);
    bytes[threadIdx.x] = code;
}

extern "C" __global__ void store_fnuz_in_second_half(const float *in, unsigned char *bytes) {
    if (threadIdx.x >= 128) bytes[threadIdx.x] = __hip_fp8_e4m3_fnuz(in[threadIdx.x]).__x;
}

extern "C" __global__ void load_second_half(const uint8_t *bytes, float *out) {
    __hip_fp8_e4m3_fnuz value;
    value.__x = bytes[128 + (threadIdx.x & 127)];
    out[threadIdx.x] = (float)value;
}

// Conversions by arithmetic on bits.
typedef unsigned char Code;

__device__ float widen(unsigned code, float scale) {
    return __uint_as_float((code & 0x80) << 24 | (code & 0x7f) << 20) * scale;
}
static __device__ inline float value_of_ocp(Code code) { return widen(code, 0x1p120f); }
__device__ float value_of_fnuz(Code code) {
    unsigned exponent = code >> 3 & 15, mantissa = code & 7;
    float value = exponent ? ldexpf(8 + mantissa, (int)exponent - 11) : ldexpf(mantissa, -10);
    if (code == 0x80) return __builtin_nanf("");
    return code >> 7 ? -value : value;
}
__device__ Code code_of(float value, float scale, unsigned most) {
    unsigned bits = __float_as_uint(fabsf(value) * scale);
    unsigned code = min((bits + 0x7ffff + (bits >> 20 & 1)) >> 20, most);
    return code ? __float_as_uint(value) >> 24 & 0x80 | code : 0;
}
__device__ Code ocp_of(float value) { return code_of(value, 0x1p-120f, 0x7e); }
__device__ uint8_t fnuz_of(const float value) { return code_of(value, 0x1p-119f, 0x7f); }
__device__ float half_of(unsigned code) { return code * 0.5f; }

extern "C" __global__ void load_bits_ocp(const Code *bytes, float *out) {
    out[threadIdx.x] = value_of_ocp(bytes[threadIdx.x]);
}
extern "C" __global__ void load_bits_fnuz(const Code *bytes, float *out) {
    out[threadIdx.x] = value_of_fnuz(bytes[threadIdx.x]);
}
extern "C" __global__ void store_bits_ocp(const float *in, Code *bytes) {
    bytes[threadIdx.x] = ocp_of(in[threadIdx.x]);
}
extern "C" __global__ void store_bits_fnuz(const float *in, Code *bytes) {
    bytes[threadIdx.x] = fnuz_of(in[threadIdx.x]);
}
extern "C" __global__ void load_halves(const Code *bytes, float *out) {
    out[threadIdx.x] = half_of(bytes[threadIdx.x]);
}

// Bytes that travel through LDS, and are stored four at once.
extern "C" __global__ void store_tile_ocp(const float *in, Code *bytes) {
    __shared__ Code tile[256];
    tile[threadIdx.x] = __hip_cvt_float_to_fp8(in[threadIdx.x], __HIP_SATFINITE, __HIP_E4M3);
    __syncthreads();
    if (threadIdx.x < 64) ((unsigned *)bytes)[threadIdx.x] = ((unsigned *)tile)[threadIdx.x];
}
extern "C" __global__ void load_tile_fnuz(const Code *bytes, float *out) {
    __shared__ Code tile[256];
    if (threadIdx.x < 64) ((unsigned *)tile)[threadIdx.x] = ((unsigned *)bytes)[threadIdx.x];
    __syncthreads();
    __hip_fp8_e4m3_fnuz value;
    value.__x = tile[255 - threadIdx.x];
    out[threadIdx.x] = (float)value;
}
