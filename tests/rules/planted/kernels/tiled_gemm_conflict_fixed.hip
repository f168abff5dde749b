#include <hip/hip_runtime.h>

// C = A * B^T of floats, one 32 x 32 tile per workgroup.
__global__ void gemm_nt(const float* __restrict__ a, const float* __restrict__ b,
                        float* __restrict__ c, int n, int k) {
  __shared__ float as[32][32];
  __shared__ float bs[32][33];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 32 + ty, col = blockIdx.x * 32 + ty;
  float acc[4] = {};
  for (int start = 0; start < k; start += 32) {
    for (int i = 0; i < 32; i += 8) {
      as[ty + i][tx] = a[(row + i) * k + start + tx];
      bs[ty + i][tx] = b[(col + i) * k + start + tx];
    }
    __syncthreads();
    for (int j = 0; j < 32; ++j)
      for (int i = 0; i < 4; ++i) acc[i] += as[ty + 8 * i][j] * bs[tx][j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) c[(row + 8 * i) * n + blockIdx.x * 32 + tx] = acc[i];
}
