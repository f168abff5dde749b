#include <hip/hip_runtime.h>

// Threshold of an 8-bit image, a pixel per thread.
__global__ void threshold(const unsigned char* __restrict__ in, unsigned char* __restrict__ out,
                          int level, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] > level ? 255 : 0;  // planted
}
