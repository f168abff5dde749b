// What CUDA defines for warps of 32 threads; the host code compares it.
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>

namespace cg = cooperative_groups;

constexpr int VALUES = 12, ALL = -1;

__global__ void warps(unsigned *out) {
    unsigned t = threadIdx.x, *o = out + t * VALUES;
    o[0] = warpSize;
    o[1] = __ballot_sync(ALL, (t / 3) & 1);
    o[2] = __shfl_sync(ALL, t, 5);
    o[3] = __shfl_down_sync(ALL, t, 7);
    o[4] = __shfl_up_sync(ALL, t, 7);
    o[5] = __shfl_xor_sync(ALL, t, 31);
    o[6] = __any_sync(ALL, t == 40) + 2 * __all_sync(ALL, t < 32);
    o[7] = __match_any_sync(ALL, t & 3);
    o[8] = __reduce_add_sync(ALL, t);
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    o[9] = cg::reduce(tile, t, cg::plus<unsigned>());
    if (t & 1) {
        auto active = cg::coalesced_threads();
        o[10] = active.size() * 100 + active.thread_rank();
    } else {
        o[10] = __activemask();
    }
    o[11] = __popc(~__ballot_sync(ALL, 1));
}

__global__ void sum(const __half *x, float *out, int n) {
    __shared__ float parts[32];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += __half2float(x[blockIdx.x * n + i]);
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(ALL, v, o);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        v = 0;
        for (int i = 0; i < blockDim.x / 32; ++i) v += parts[i];
        out[blockIdx.x] = v;
    }
}

int main() {
    const unsigned n = 96;
    unsigned *device, h[n * VALUES];
    cudaMalloc(&device, sizeof h);
    warps<<<1, n>>>(device);
    if (cudaMemcpy(h, device, sizeof h, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
    int wrong = 0;
    for (unsigned t = 0; t < n; ++t) {
        unsigned w = t & ~31u, l = t & 31, want[VALUES] = {32};
        for (unsigned i = 0; i < 32; ++i) {
            want[1] |= (((w + i) / 3) & 1) << i;
            want[7] |= ((i & 3) == (t & 3)) << i;
            want[8] += w + i;
        }
        want[2] = w + 5;
        want[3] = l + 7 < 32 ? t + 7 : t;
        want[4] = l >= 7 ? t - 7 : t;
        want[5] = t ^ 31;
        want[6] = (w == 32) + 2 * (w == 0);
        for (unsigned i = 0; i < 16; ++i) want[9] += (t & ~15u) + i;
        want[10] = t & 1 ? 1600 + l / 2 : 0x55555555u;
        for (int k = 0; k < VALUES; ++k) wrong += h[t * VALUES + k] != want[k];
    }
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    printf("%d wrong, warps of %d\n", wrong, properties.warpSize);
    return wrong != 0;
}
