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

extern "C" __global__ void chosen_by_lane(float* out, const float* a, const float* b, int offset) {
    const float* chosen = threadIdx.x % 2 ? a : b;
    out[threadIdx.x] = chosen[(int)threadIdx.x + offset];
}

extern "C" __global__ void of_first_lane(float* out, const float* a, const float* b, int offset) {
    const float* chosen = offset % 3 ? a : b;
    unsigned long bits = (unsigned long)chosen;
    unsigned low = __builtin_amdgcn_readfirstlane((unsigned)bits + 4 * (threadIdx.x / 64));
    unsigned high = __builtin_amdgcn_readfirstlane((unsigned)(bits >> 32) | threadIdx.x >> 30);
    chosen = (const float*)(low | (unsigned long)high << 32);
    out[threadIdx.x] = chosen[(int)threadIdx.x + offset];
}

extern "C" __global__ void chosen_store(float* a, float* b, int offset, int which) {
    float* chosen = which ? a : b;
    chosen[(int)threadIdx.x + offset] = 1.0f;
}

extern "C" __global__ void table_of_pointers(float* out, const float* const* table, int offset) {
    const float* row = table[blockIdx.x];
    out[blockIdx.x * 64 + threadIdx.x] = row[(int)threadIdx.x + offset];
}

extern "C" __global__ void pointer_per_lane(float* out, const float* const* table, int offset) {
    out[threadIdx.x] = table[threadIdx.x % 3][(int)threadIdx.x + offset];
}

struct Node {
    Node* next;
    float* data;
    long size;
};

extern "C" __global__ void linked(float* out, const Node* node, int offset) {
    float sum = 0.0f;
    for (; node; node = node->next)
        if ((long)threadIdx.x < node->size) sum += node->data[(int)threadIdx.x + offset];
    out[threadIdx.x] = sum;
}

extern "C" __global__ void indexed_by_long(float* out, const float* in, const long* index) {
    out[threadIdx.x] = in[index[threadIdx.x]];
}

extern "C" __global__ void from_the_end(float* out, const float* const* table) {
    const float* end = table[3];
    out[threadIdx.x] = end[-1 - (int)threadIdx.x];
}

extern "C" __global__ void exchanged(float* a, float* b, int steps, int offset) {
    for (int i = 0; i < steps; ++i) {
        b[threadIdx.x] = a[(int)threadIdx.x + (i == steps - 1 ? offset : 0)] + 1.0f;
        float* kept = a;
        a = b;
        b = kept;
    }
}
