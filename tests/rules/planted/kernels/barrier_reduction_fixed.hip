#include <hip/hip_runtime.h>

// Sums of rows: every 256 columns are added up in registers first.
__global__ void row_sums(const float* __restrict__ x, float* __restrict__ y, int columns) {
  __shared__ float part[256];
  int t = threadIdx.x;
  float total = 0.0f;
  for (int start = 0; start < columns; start += 256) total += x[blockIdx.x * columns + start + t];
  part[t] = total;
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  total = part[0];
  if (t == 0) y[blockIdx.x] = total;
}
