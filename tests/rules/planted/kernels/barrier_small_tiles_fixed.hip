#include <hip/hip_runtime.h>

// y = A x for 256 rows per workgroup; x is staged in LDS, 256 numbers at a time.
__global__ void matvec(const float* __restrict__ at, const float* __restrict__ x,
                       float* __restrict__ y, int rows, int columns) {
  __shared__ float part[256];
  int t = threadIdx.x, row = blockIdx.x * 256 + t;
  float sum = 0.0f;
  for (int start = 0; start < columns; start += 256) {
    __syncthreads();
    part[t] = x[start + t];
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 256; i += 16)
      for (int j = 0; j < 16; ++j) sum += part[i + j] * at[(start + i + j) * rows + row];
  }
  y[row] = sum;
}
