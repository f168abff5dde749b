#include <hip/hip_runtime.h>

#include <hip/hip_fp16.h>

// y = a x + y in half precision, grid-stride, eight numbers at a time.
__global__ void axpy(const __half* __restrict__ x, __half* __restrict__ y, float a, int n) {
  int first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  typedef _Float16 half8 __attribute__((ext_vector_type(8)));
  const half8* xs = reinterpret_cast<const half8*>(x);
  half8* ys = reinterpret_cast<half8*>(y);
  for (int i = first; i < n / 8; i += all) {
    half8 v = xs[i], w = ys[i];
    for (int j = 0; j < 8; ++j) w[j] = (_Float16)(a * (float)v[j] + (float)w[j]);
    ys[i] = w;
  }
}
