#include <hip/hip_runtime.h>

// Threshold of an 8-bit image, 16 pixels per thread.
__global__ void threshold(const uint4* __restrict__ in, uint4* __restrict__ out,
                          int level, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 16 >= n) return;
  uint4 packed = in[i];
  unsigned char* pixels = reinterpret_cast<unsigned char*>(&packed);
  for (int j = 0; j < 16; ++j) pixels[j] = pixels[j] > level ? 255 : 0;
  out[i] = packed;
}
