#include <hip/hip_runtime.h>

// Sum of rows by one wave per row.
__global__ void wave_sum(const float* __restrict__ x, float* __restrict__ y, int columns) {
  const float* row = x + blockIdx.x * columns;
  float sum = 0.0f;
#pragma clang loop unroll(disable)
  for (int j = threadIdx.x; j < columns; j += 64) sum += row[j];  // planted
  for (int step = 32; step > 0; step /= 2) sum += __shfl_xor(sum, step);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
