// Accesses outside their tensor and of memory nobody wrote; every kernel is right for some arguments.
#include <hip/hip_runtime.h>

extern "C" __global__ void copy(float* out, const float* in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

extern "C" __global__ void difference(float* out, const float* in, int first) {
    int i = threadIdx.x;
    if (i >= first) out[i] = in[i] - in[i - 1];
}

extern "C" __global__ void uniform(float* out, const int* table, int offset) {
    out[threadIdx.x] = table[blockIdx.x + offset];
}

extern "C" __global__ void count(unsigned* bins) {
    atomicAdd(&bins[threadIdx.x % 8], 1u);
}

struct Pair { float* out; const float* in; };
extern "C" __global__ void pair(Pair both, long offset) {
    both.out[threadIdx.x] = both.in[threadIdx.x + offset];
}

extern "C" __global__ void either(float* out, const float* a, const float* b, int offset) {
    const float* chosen = threadIdx.x & 1 ? a : b;
    out[threadIdx.x] = chosen[threadIdx.x + offset];
}

#define KERNEL extern "C" __global__ void
KERNEL unnamed(float* out, const float* in) {
    out[threadIdx.x] = in[threadIdx.x];
}
