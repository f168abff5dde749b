// Results that depend on the order of workgroups or waves, and one that does not.
#include <hip/hip_runtime.h>

extern "C" __global__ void sum(float* out, const float* in) {
    atomicAdd(out, in[blockIdx.x * blockDim.x + threadIdx.x]);
}

extern "C" __global__ void last_wins(int* out) {
    if (threadIdx.x == 0) out[2] = blockIdx.x;
}

extern "C" __global__ void last_wave_wins(int* out) {
    out[1] = __builtin_amdgcn_readfirstlane(threadIdx.x);
}

extern "C" __global__ void count(int* out) {
    atomicAdd(&out[threadIdx.x % 8], (int)blockIdx.x);
}
