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
