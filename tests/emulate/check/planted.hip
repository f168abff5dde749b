// One kernel per kind of mistake, and beside it the kernel without the mistake.
#include <hip/hip_runtime.h>

extern "C" __global__ void rotate(float* out, const float* in) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 256 + threadIdx.x] = tile[(threadIdx.x + 64) % 256];
}

extern "C" __global__ void rotate_without_barrier(float* out, const float* in) {
    __shared__ volatile float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[(threadIdx.x + 64) % 256];
}

extern "C" __global__ void overwrite_what_others_read(float* out, const float* in) {
    __shared__ volatile float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[(threadIdx.x + 192) % 256];
    tile[threadIdx.x] = 1.0f;
}

extern "C" __global__ void two_waves_one_place(float* out, const float* in) {
    __shared__ volatile float place[1];
    if (threadIdx.x % 64 == 0) place[0] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = place[0];
}

extern "C" __global__ void same_value_by_all(float* out, const float* in) {
    __shared__ volatile float place[1];
    if (threadIdx.x % 64 == 0) place[0] = in[0];
    __syncthreads();
    out[threadIdx.x] = place[0];
}

extern "C" __global__ void lds_never_written(float* out, const float* in) {
    __shared__ volatile float tile[256];
    if (threadIdx.x < 128) tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void bytes_side_by_side(unsigned char* out, const unsigned char* in) {
    __shared__ volatile unsigned char tile[256];
    unsigned at = threadIdx.x % 64 * 4 + threadIdx.x / 64;
    tile[at] = in[at];
    out[at] = tile[at];
}

extern "C" __global__ void through_memory(float* out, volatile float* between) {
    between[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = between[255 - threadIdx.x];
}

extern "C" __global__ void through_memory_without_barrier(float* out, volatile float* between) {
    between[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = between[255 - threadIdx.x];
}

extern "C" __global__ void neighbour_workgroup(float* data) {
    unsigned at = blockIdx.x * 64 + threadIdx.x;
    data[at + 64] = data[at] + 1.0f;
}

extern "C" __global__ void count_with_atomics(unsigned* bins, const unsigned* in) {
    atomicAdd(&bins[in[blockIdx.x * 256 + threadIdx.x] % 8], 1u);
}

extern "C" __global__ void count_without_atomics(unsigned* bins, const unsigned* in) {
    if (threadIdx.x == 0) bins[0] += in[blockIdx.x];
}

extern "C" __global__ void handed_over(float* out, float* data, unsigned* flag) {
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 3.0f;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(flag, 1u);
    } else {
        while (atomicAdd(flag, 0u) == 0u) {}
        __threadfence();
        out[threadIdx.x] = data[threadIdx.x];
    }
}

extern "C" __global__ void beyond_its_tensor(float* out, const float* in, long far) {
    out[threadIdx.x] = in[threadIdx.x + far];
}

extern "C" __global__ void beyond_lds(float* out, const float* in, int far) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x + far];
}

extern "C" __global__ void barrier_in_a_branch(float* out, const float* in, int limit) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    if (in[threadIdx.x] < limit) {
        __syncthreads();
        out[threadIdx.x] = tile[threadIdx.x ^ 1];
    }
}

extern "C" __global__ void two_barriers(float* out, const float* in) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    if (__builtin_amdgcn_readfirstlane(threadIdx.x) < 64) {
        __syncthreads();
        out[threadIdx.x] = tile[threadIdx.x ^ 1];
    } else {
        __syncthreads();
        out[threadIdx.x] = tile[threadIdx.x ^ 2] * 2.0f;
    }
}
