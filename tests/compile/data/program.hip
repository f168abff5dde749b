// An ordinary single-file HIP program: host and device code, the standard library, launches.
#include <hip/hip_bf16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                                \
    do {                                                                                           \
        hipError_t status = (call);                                                                \
        if (status != hipSuccess) {                                                                \
            fprintf(stderr, "%s\n", hipGetErrorString(status));                                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__constant__ float table[16];

template <int BLOCK, typename T>
__global__ void __launch_bounds__(BLOCK)
reduce(const T *__restrict__ in, T *__restrict__ out, int n) {
    __shared__ T partial[BLOCK / warpSize];
    T sum = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += BLOCK * gridDim.x) sum += in[i];
    for (int d = warpSize / 2; d > 0; d /= 2) sum += __shfl_down(sum, d);
    if (threadIdx.x % warpSize == 0) partial[threadIdx.x / warpSize] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        T total = 0;
        for (int i = 0; i < BLOCK / warpSize; ++i) total += partial[i];
        atomicAdd(out, total);
    }
}

__global__ void math(float *a, double *d, int n) {
    extern __shared__ float dynamic[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    dynamic[threadIdx.x] = a[i];
    __syncthreads();
    float x = dynamic[threadIdx.x ^ 1] + table[i & 15];
    a[i] = sqrtf(x) + std::sqrt(x) + expf(x) + std::exp(x) + logf(x) + sinf(x) + cosf(x) + tanhf(x) +
           powf(x, 1.5f) + pow(x, 2) + rsqrtf(x) + erff(x) + std::max(x, 1.0f) + fmaxf(x, 2.0f) +
           exp2f(x) + __expf(x) + log1pf(x) + fabsf(x) + std::abs(x) + floorf(x) + fmodf(x, 3.0f) +
           roundf(x) + atan2f(x, 1.0f) + cbrtf(x) + min(x, 3.0f);
    d[i] = sqrt(d[i]) + exp(d[i]) + log(d[i]) + sin(d[i]) + pow(d[i], 3.0) + fma(d[i], d[i], 1.0);
    assert(n > 0);
    if (i == 0) printf("%d\n", n);
}

__global__ void small_floats(__half *h, __half2 *h2, __hip_bfloat16 *b, __hip_bfloat162 *b2,
                             __hip_fp8_e4m3 *e4m3, __hip_fp8_e5m2_fnuz *e5m2, float x) {
    int i = threadIdx.x;
    h[i] = __float2half(x) + h[i] * (__half)2 + hexp(h[i]);
    h2[i] = __hfma2(h2[i], h2[i], __floats2half2_rn(1.0f, x)) + h2[i];
    b[i] = __float2bfloat16(__bfloat162float(b[i]) * x);
    b2[i] = __hadd2(b2[i], __floats2bfloat162_rn(x, 1.0f));
    e4m3[i] = __hip_fp8_e4m3((float)e4m3[i] * x);
    e5m2[i] = __hip_fp8_e5m2_fnuz((float)e5m2[i] * x);
    unsafeAtomicAdd(h2 + 64, h2[i]);
    atomicAdd(b2 + 64, b2[i]);
}

__global__ void lanes(int *p, unsigned long long *u, float *f, double *d, float4 *v) {
    int i = threadIdx.x;
    atomicAdd(p, 1), atomicMax(p + 1, i), atomicCAS(p + 2, 1, 2), atomicExch(p + 3, 7);
    atomicMin(p + 4, 3), atomicOr((unsigned *)p + 5, 1u), atomicInc((unsigned *)p + 6, 9u);
    atomicAdd(u, 1ull), atomicAdd(f, 1.0f), unsafeAtomicAdd(f + 1, 1.0f), atomicAdd(d, 1.0);
    p[i] = __popcll(__ballot(i > 3)) + __any(i > 1) + __shfl_xor(i, 1) + __clz(i) + __ffs(i) +
           __byte_perm(i, 3, 0x6420) + __shfl_sync(~0ull, i, 0);
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    f[i] = tile.shfl_down(f[i], 8);
    tile.sync();
    float4 w = v[i] * 2.0f + make_float4(1, 2, 3, 4);
    w.x += 1;
    v[i] = w;
}

int main() {
    std::vector<float> host(1024, 1.0f);
    float *in, *out;
    CHECK(hipMalloc(&in, 4096));
    CHECK(hipMalloc((void **)&out, 4));
    CHECK(hipMemcpy(in, host.data(), 4096, hipMemcpyHostToDevice));
    reduce<256><<<dim3(4), 256, 0, 0>>>(in, out, 1024);
    hipLaunchKernelGGL(HIP_KERNEL_NAME(reduce<128, float>), dim3(4), dim3(128), 0, 0, in, out, 9);
    CHECK(hipDeviceSynchronize());
    std::cout << host[0] << std::sqrt(2.0) << std::endl;
    return 0;
}
