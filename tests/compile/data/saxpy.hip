#include <hip/hip_runtime.h>

extern "C" __global__ void __launch_bounds__(256)
saxpy(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) y[i] += a * x[i];
}
