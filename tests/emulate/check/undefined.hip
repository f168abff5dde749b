// Undefined results; every kernel is right for some arguments.
#include <hip/hip_runtime.h>

extern "C" __global__ void shuffle(float* out, const float* in, int active) {
    float v = in[threadIdx.x];
    if ((int)threadIdx.x < active) v += __shfl(v, threadIdx.x ^ 16);
    out[threadIdx.x] = v;
}

extern "C" __global__ void divide(int* out, const int* a, const int* b) {
    out[threadIdx.x] = a[threadIdx.x] / b[threadIdx.x];
}

extern "C" __global__ void divide_unsigned(unsigned* out, const unsigned* a, unsigned b) {
    out[threadIdx.x] = a[threadIdx.x] % b;
}

extern "C" __global__ void divide_long(long* out, const long* a, const long* b) {
    out[threadIdx.x] = a[threadIdx.x] / b[threadIdx.x];
}

extern "C" __global__ void early_exit(float* out, const float* in, int n) {
    __shared__ float tile[256];
    if ((int)threadIdx.x >= n) return;
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

extern "C" __global__ void barriers_per_wave(float* out, const float* in, int more) {
    __shared__ float tile[256];
    tile[threadIdx.x] = 0.0f;
    int count = 1 + more * __builtin_amdgcn_readfirstlane(threadIdx.x / 64);
    for (int i = 0; i < count; ++i) {
        tile[threadIdx.x] += in[threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void from_fp8(float* out, const unsigned char* in) {
#if defined(__gfx942__) || defined(__gfx1201__)
    out[threadIdx.x] = __builtin_amdgcn_cvt_f32_fp8(in[threadIdx.x], 0);
#endif
}

extern "C" __global__ void to_fp8(unsigned char* out, const float* in) {
#if defined(__gfx942__) || defined(__gfx1201__)
    float half = in[threadIdx.x] * 0.5f;
    out[threadIdx.x] = __builtin_amdgcn_cvt_pk_fp8_f32(half, half, 0, false);
#endif
}

extern "C" __global__ void private_array(float* out, const int* index, int count) {
    float own[256];
    for (int i = 0; i < count; ++i) own[index[i]] = (float)i;
    float value = own[index[threadIdx.x % 16]];
    out[threadIdx.x] = value;
}

extern "C" __global__ void private_bytes(int* out, const int* index, int count) {
    unsigned char own[1024];
    for (int i = 0; i < count; ++i) own[index[i]] = (unsigned char)i;
    int value = own[index[threadIdx.x % 16]];
    out[threadIdx.x] = value;
}
