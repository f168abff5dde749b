#include <hip/hip_runtime.h>

// Sums of the values of 16 classes, in LDS first.
__global__ void class_sums(const float* __restrict__ x, const int* __restrict__ classes,
                           float* __restrict__ sums, int n) {
  __shared__ float part[16];
  if (threadIdx.x < 16) part[threadIdx.x] = 0.0f;
  __syncthreads();
  int first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  for (int i = first; i < n; i += all) unsafeAtomicAdd(&part[classes[i] & 15], x[i]);
  __syncthreads();
  if (threadIdx.x < 16) unsafeAtomicAdd(&sums[threadIdx.x], part[threadIdx.x]);
}
