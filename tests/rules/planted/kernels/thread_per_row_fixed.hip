#include <hip/hip_runtime.h>

// Sum of squares of every row, a wave per row.
__global__ void row_norm(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  int row = blockIdx.x * 4 + threadIdx.x / 64, lane = threadIdx.x % 64;
  float sum = 0.0f;
  for (int j = lane; j < columns; j += 64) sum += x[row * columns + j] * x[row * columns + j];
  for (int step = 32; step > 0; step /= 2) sum += __shfl_xor(sum, step);
  if (lane == 0) y[row] = sum;
}
