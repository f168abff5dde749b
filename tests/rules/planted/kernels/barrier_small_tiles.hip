#include <hip/hip_runtime.h>

// y = A x for 256 rows per workgroup; x is staged in LDS, 16 numbers at a time.
__global__ void matvec(const float* __restrict__ at, const float* __restrict__ x,
                       float* __restrict__ y, int rows, int columns) {
  __shared__ float part[256];
  int t = threadIdx.x, row = blockIdx.x * 256 + t;
  float sum = 0.0f;
  for (int start = 0; start < columns; start += 16) {
    __syncthreads();  // planted
    if (t < 16) part[t] = x[start + t];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += part[j] * at[(start + j) * rows + row];
  }
  y[row] = sum;
}
