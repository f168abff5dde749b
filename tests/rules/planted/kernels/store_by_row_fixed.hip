#include <hip/hip_runtime.h>

// Powers of every number: out has a column per number.
__global__ void powers(const float* __restrict__ x, float* __restrict__ out, int n, int order) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], p = 1.0f;
  for (int k = 0; k < order; ++k) {
    out[k * n + i] = p;
    p *= v;
  }
}
