#include <hip/hip_runtime.h>

// Sum of squares of every row, a thread per row.
__global__ void row_norm(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int j = 0; j < columns; ++j) sum += x[row * columns + j] * x[row * columns + j];  // planted
  y[row] = sum;
}
