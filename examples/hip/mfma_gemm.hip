// C = A * B^T with matrix instructions of CDNA: fp16 inputs, fp32 sums.
//
// A is M x K, B is N x K, both row-major; C is M x N. Each wave computes a 32 x 32 tile with
// v_mfma_f32_32x32x8f16, a workgroup of four waves a 64 x 64 tile from LDS.
//
//   wavecast explain examples/hip/mfma_gemm.hip --arch gfx90a,gfx942,gfx950 --grid 64,64 --block 256
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

using half4 = __attribute__((__vector_size__(4 * sizeof(_Float16)))) _Float16;
using half8 = __attribute__((__vector_size__(8 * sizeof(_Float16)))) _Float16;
using float16 = __attribute__((__vector_size__(16 * sizeof(float)))) float;

constexpr int kTile = 64;
constexpr int kDepth = 32;
constexpr int kPadded = kDepth + 8;  // eight halves of padding keep LDS reads free of conflicts

__global__ __launch_bounds__(256) void mfmaGemm(const _Float16* __restrict__ a,
                                                const _Float16* __restrict__ b,
                                                float* __restrict__ c, int m, int n, int k) {
  __shared__ _Float16 aTile[kTile * kPadded];
  __shared__ _Float16 bTile[kTile * kPadded];

  int wave = threadIdx.x / 64;
  int lane = threadIdx.x % 64;
  int tileRow = blockIdx.y * kTile;
  int tileColumn = blockIdx.x * kTile;
  int waveRow = (wave / 2) * 32;
  int waveColumn = (wave % 2) * 32;

  // Each thread copies eight halves of A and of B per step.
  int loadRow = threadIdx.x / 4;
  int loadColumn = (threadIdx.x % 4) * 8;
  const _Float16* aSource = a + (tileRow + loadRow) * k + loadColumn;
  const _Float16* bSource = b + (tileColumn + loadRow) * k + loadColumn;
  int loadSlot = loadRow * kPadded + loadColumn;

  float16 sum = {};
  for (int depth = 0; depth < k; depth += kDepth) {
    *reinterpret_cast<half8*>(&aTile[loadSlot]) = *reinterpret_cast<const half8*>(aSource + depth);
    *reinterpret_cast<half8*>(&bTile[loadSlot]) = *reinterpret_cast<const half8*>(bSource + depth);
    __syncthreads();
    for (int step = 0; step < kDepth; step += 8) {
      int row = lane % 32;
      int column = step + (lane / 32) * 4;
      half4 aPart = *reinterpret_cast<half4*>(&aTile[(waveRow + row) * kPadded + column]);
      half4 bPart = *reinterpret_cast<half4*>(&bTile[(waveColumn + row) * kPadded + column]);
      sum = __builtin_amdgcn_mfma_f32_32x32x8f16(aPart, bPart, sum, 0, 0, 0);
    }
    __syncthreads();
  }

  for (int element = 0; element < 16; ++element) {
    int row = tileRow + waveRow + (element / 4) * 8 + (lane / 32) * 4 + element % 4;
    int column = tileColumn + waveColumn + lane % 32;
    if (row < m && column < n) {
      c[row * n + column] = sum[element];
    }
  }
}
