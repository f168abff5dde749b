// Sum of a float array: one partial sum per workgroup, then one atomic per workgroup.
//
//   wavecast explain examples/hip/reduction.hip --arch gfx942,gfx1100 --grid 1024 --block 256
#include <hip/hip_runtime.h>

constexpr int kBlock = 256;
constexpr int kItemsPerThread = 16;

__device__ float waveSum(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value += __shfl_xor(value, offset);
  }
  return value;
}

__global__ __launch_bounds__(kBlock) void sumKernel(const float4* __restrict__ input,
                                                    float* __restrict__ output, int quads) {
  __shared__ float partial[kBlock / 32];

  float sum = 0.0f;
  int first = blockIdx.x * kBlock * kItemsPerThread / 4 + threadIdx.x;
  for (int item = 0; item < kItemsPerThread / 4; ++item) {
    int index = first + item * kBlock;
    if (index < quads) {
      float4 quad = input[index];
      sum += (quad.x + quad.y) + (quad.z + quad.w);
    }
  }

  sum = waveSum(sum);
  int lane = threadIdx.x % warpSize;
  int wave = threadIdx.x / warpSize;
  if (lane == 0) {
    partial[wave] = sum;
  }
  __syncthreads();

  if (wave == 0) {
    int waves = kBlock / warpSize;
    float total = waveSum(lane < waves ? partial[lane] : 0.0f);
    if (lane == 0) {
      atomicAdd(output, total);
    }
  }
}
