"""Check mode on programs with calls, data and recursion."""

import numpy as np
import pytest

import wavecast

SOURCE = b"""
__constant__ int table[4] = {3, 1, 4, 1};
__device__ __attribute__((noinline)) int twice(int x) { return 2 * x + table[x & 3]; }
__device__ __attribute__((noinline)) int down(int n) { return n < 2 ? 1 : n * down(n - 1); }
extern "C" __global__ void calls(int* out) {
  out[threadIdx.x] = twice(threadIdx.x) + down(threadIdx.x % 5);
}
"""


@pytest.mark.hip
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_calls_are_clean(target):
    out = np.zeros(64, np.int32)
    wavecast.load(SOURCE, arch=target, check=True)["calls"](1, 64, out)
    factorials = [1, 1, 2, 6, 24]
    expected = [2 * x + [3, 1, 4, 1][x & 3] + factorials[x % 5] for x in range(64)]
    assert out.tolist() == expected
