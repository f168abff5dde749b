#include <hip/hip_runtime.h>

// Sum of rows by one wave per row, four loads in flight.
__global__ void wave_sum(const float* __restrict__ x, float* __restrict__ y, int columns) {
  const float* row = x + blockIdx.x * columns;
  float sum = 0.0f;
#pragma clang loop unroll(disable)
  for (int j = threadIdx.x; j < columns; j += 256) {
    float a = row[j], b = row[j + 64], c = row[j + 128], d = row[j + 192];
    sum += (a + b) + (c + d);
  }
  for (int step = 32; step > 0; step /= 2) sum += __shfl_xor(sum, step);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
