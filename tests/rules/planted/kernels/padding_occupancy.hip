#include <hip/hip_runtime.h>

// Out = in^T * scale of 64 x 64 tiles of doubles; rows padded against bank conflicts.
__global__ void transpose_scaled(const double* __restrict__ in, const double* __restrict__ scale,
                                 double* __restrict__ out, int n) {
  __shared__ double tile[64][64 + 1];  // planted
  int tx = threadIdx.x, ty = threadIdx.y;
  int x0 = blockIdx.x * 64, y0 = blockIdx.y * 64;
  for (int i = 0; i < 64; i += 4)
    tile[i + ty][tx] = in[(y0 + i + ty) * n + x0 + tx];
  __syncthreads();
  double s = scale[y0 + tx];
  for (int i = 0; i < 64; i += 4)
    out[(x0 + i + ty) * n + y0 + tx] = tile[tx][i + ty] * s;
}
