#include <hip/hip_runtime.h>

// Sums of the values of 16 classes.
__global__ void class_sums(const float* __restrict__ x, const int* __restrict__ classes,
                           float* __restrict__ sums, int n) {
  int first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  for (int i = first; i < n; i += all) unsafeAtomicAdd(&sums[classes[i] & 15], x[i]);  // planted
}
