#include <hip/hip_runtime.h>

// Horner evaluation of 48 polynomials at once per thread.
__global__ void __launch_bounds__(256) horner(const float* __restrict__ x,
                                               const float* __restrict__ c,
                                               float* __restrict__ y, int terms, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  float p[96];
#pragma unroll
  for (int j = 0; j < 96; ++j) p[j] = x[i + j * n];
  for (int k = 0; k < terms; ++k) {
#pragma unroll
    for (int j = 0; j < 96; ++j) p[j] = p[j] * v + c[(k * 96 + j) & 1023];
  }
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 96; ++j) sum += p[j] * p[j ^ 1];
  y[i] = sum;
}
