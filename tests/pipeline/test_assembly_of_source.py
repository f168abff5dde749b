"""Assembly is predicted as the source that it comes from, in the same launch."""

from __future__ import annotations

from wavecast.pipeline.plan import Plan

SOURCE = """
#include <hip/hip_runtime.h>
extern "C" __global__ void chain(const float* __restrict__ x, float* __restrict__ o, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int i = 0; i < n; ++i) s = fmaf(x[(t + i * 256) & 4095], s, x[(t * 3 + i) & 4095]);
  o[t] = s;
}
extern "C" __global__ void rows(const float* x, float* o, int n, float scale) {
  extern __shared__ float part[];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[blockIdx.x * n + i];
  part[threadIdx.x] = s;
  __syncthreads();
  for (int step = blockDim.x / 2; step; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) o[blockIdx.x] = part[0] * scale;
}
"""
LAUNCHES = {
    "chain": Plan(
        grid=(4, 1, 1),
        block=(256, 1, 1),
        arguments={"x": "f32[4096]:random(1)", "o": "f32[1024]", "n": "64"},
    ),
    "rows": Plan(
        grid=(16, 1, 1),
        block=(256, 1, 1),
        dynamic_lds=1024,
        arguments={"x": "f32[16x4096]:random(1)", "o": "f32[16]", "n": "4096", "scale": "0.5"},
    ),
}
