// Workgroups that wait for others, with 64 KiB of LDS each: a compute unit holds few.
#include <hip/hip_runtime.h>

#define AGENT __HIP_MEMORY_SCOPE_AGENT
#define LDS __shared__ float tile[16384]; tile[threadIdx.x] = out[threadIdx.x]; __syncthreads()

extern "C" __global__ void barrier(float* out, unsigned* sync) {
    LDS;
    if (threadIdx.x == 0) {
        __hip_atomic_fetch_add(sync, 1u, __ATOMIC_ACQ_REL, AGENT);
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) < gridDim.x) {}  // SPIN
    }
    __syncthreads();
    out[64 + blockIdx.x * blockDim.x + threadIdx.x] = tile[threadIdx.x ^ 1];
}

extern "C" __global__ void chain(float* out, unsigned* sync) {
    LDS;
    if (threadIdx.x == 0) {
        while (__hip_atomic_load(sync, __ATOMIC_ACQUIRE, AGENT) != blockIdx.x) {}
        __hip_atomic_fetch_add(sync, 1u, __ATOMIC_ACQ_REL, AGENT);
    }
    __syncthreads();
    out[64 + blockIdx.x * blockDim.x + threadIdx.x] = tile[threadIdx.x ^ 1];
}

extern "C" __global__ void pairs(float* out, unsigned* sync) {
    LDS;
    if (threadIdx.x == 0) {
        __hip_atomic_fetch_add(sync + blockIdx.x / 2, 1u, __ATOMIC_ACQ_REL, AGENT);
        while (__hip_atomic_load(sync + blockIdx.x / 2, __ATOMIC_ACQUIRE, AGENT) < 2) {}
    }
    __syncthreads();
    out[64 + blockIdx.x * blockDim.x + threadIdx.x] = tile[threadIdx.x ^ 1];
}
