#include <hip/hip_runtime.h>

#include <hip/hip_fp16.h>

// y = a x + y in half precision, grid-stride, a number at a time.
__global__ void axpy(const __half* __restrict__ x, __half* __restrict__ y, float a, int n) {
  int first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  for (int i = first; i < n; i += all)
    y[i] = (__half)(a * (float)x[i] + (float)y[i]);  // planted
}
