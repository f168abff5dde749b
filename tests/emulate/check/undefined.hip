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

// Sums of 32 lanes in a branch: lanes from 16 on read lanes that are not active on waves of 64.
__device__ float sum_of_32(float v) {
    for (int offset = 16; offset; offset >>= 1) v += __shfl_down(v, offset);
    return v;
}

extern "C" __global__ void ported_reduction(float* out, const float* in) {
    float v = in[threadIdx.x];
    if (threadIdx.x < 32) {
        v = sum_of_32(v);
        if (threadIdx.x == 0) out[0] = v;
    }
}

extern "C" __global__ void ported_block_reduction(float* out, const float* in) {
    __shared__ float sums[32];
    float v = in[threadIdx.x];
    for (int offset = warpSize / 2; offset; offset >>= 1) v += __shfl_down(v, offset);
    if (threadIdx.x < 32) sums[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = v;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    v = sum_of_32(sums[threadIdx.x]);
    if (threadIdx.x == 0) out[0] = v;
}

extern "C" __global__ void ported_quarter(float* out, const float* in) {
    float v = in[threadIdx.x];
    if (threadIdx.x < 8) {
        for (int offset = 4; offset; offset >>= 1) v += __shfl_down(v, offset);
        if (threadIdx.x == 0) out[0] = v;
    }
}

extern "C" __global__ void ported_maximum(int* out, const float* in) {
    float v = in[threadIdx.x];
    int index = threadIdx.x;
    if (threadIdx.x < 16) {
        for (int offset = 8; offset; offset >>= 1) {
            float other = __shfl_down(v, offset);
            int there = __shfl_down(index, offset);
            if (other > v) { v = other; index = there; }
        }
        if (threadIdx.x == 0) out[0] = index;
    }
}

extern "C" __global__ void all_lanes_stored(float* out, const float* in) {
    float v = in[threadIdx.x];
    if (threadIdx.x < 16) {
        for (int offset = 8; offset; offset >>= 1) v += __shfl_down(v, offset);  // inactive
        out[threadIdx.x] = v;
    }
}

extern "C" __global__ void as_an_address(float* out, const int* in) {
    int v = in[threadIdx.x];
    if (threadIdx.x < 8) {
        int other = __shfl(v, threadIdx.x + 8);  // inactive
        out[other & 63] = 1;
    }
}

extern "C" __global__ void as_a_condition(float* out, const int* in) {
    int v = in[threadIdx.x];
    if (threadIdx.x < 8) {
        int other = __shfl(v, threadIdx.x + 8);  // inactive
        if (other > 3) out[threadIdx.x] = 1;
    }
}

extern "C" __global__ void triple_bytes(int* out, const unsigned char* in) {
    out[threadIdx.x] = in[threadIdx.x] * 3;
}

extern "C" __global__ void store_bytes(unsigned char* out, int count) {
    if ((int)threadIdx.x < count) out[threadIdx.x] = threadIdx.x;
}

extern "C" __global__ void swizzled(int* out, const int* in, int active) {
    int v = in[threadIdx.x];
    if ((int)threadIdx.x < active) v += __builtin_amdgcn_ds_swizzle(v, 0x401f);  // lane ^ 16
    out[threadIdx.x] = v;
}
