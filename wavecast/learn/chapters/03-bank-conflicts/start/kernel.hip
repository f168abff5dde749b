// Sinkhorn normalisation of 64×64 tiles: rows and columns are scaled to the sum 1 in turn, in LDS.
#include <hip/hip_runtime.h>

constexpr int kSize = 64;
constexpr int kRounds = 8;

__global__ __launch_bounds__(64) void sinkhorn(const float* __restrict__ input,
                                               float* __restrict__ output, int count) {
  __shared__ float tile[kSize][kSize];
  const int lane = threadIdx.x;
  for (int index = blockIdx.x; index < count; index += gridDim.x) {
    const float* source = input + index * kSize * kSize;
    for (int row = 0; row < kSize; ++row) {
      tile[row][lane] = source[row * kSize + lane];
    }
    __syncthreads();
    for (int round = 0; round < kRounds; ++round) {
      float sum = 0.0f;  // of the row of this lane
      for (int column = 0; column < kSize; ++column) {
        sum += tile[lane][column];
      }
      float scale = 1.0f / sum;
      for (int column = 0; column < kSize; ++column) {
        tile[lane][column] *= scale;
      }
      __syncthreads();
      sum = 0.0f;  // of the column of this lane
      for (int row = 0; row < kSize; ++row) {
        sum += tile[row][lane];
      }
      scale = 1.0f / sum;
      for (int row = 0; row < kSize; ++row) {
        tile[row][lane] *= scale;
      }
      __syncthreads();
    }
    float* target = output + index * kSize * kSize;
    for (int row = 0; row < kSize; ++row) {
      target[row * kSize + lane] = tile[row][lane];
    }
    __syncthreads();
  }
}
