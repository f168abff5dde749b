"""What the hardware faults on breaks a launch off, with or without checks."""

import numpy as np
import pytest

import wavecast
from wavecast.emulate.errors import ExecutionError

SOURCE = b"""
extern "C" __global__ void count(char* bytes, int shift) {
  atomicAdd((unsigned*)(bytes + shift), 1u);
}
extern "C" __global__ void load(int* out, const char* bytes, int shift) {
  __builtin_memcpy(&out[threadIdx.x], bytes + shift + threadIdx.x % 2, 4);
}
"""


@pytest.mark.hip
def test_atomics_that_are_not_aligned():
    kernels = wavecast.load(SOURCE, arch="gfx942")
    data = np.zeros(16, np.uint32)
    kernels["count"](1, 64, data, 8)
    assert data[2] == 64
    with pytest.raises(ExecutionError, match=r"not aligned to 4 bytes"):
        kernels["count"](1, 64, data, 6)


@pytest.mark.hip
def test_loads_need_no_alignment():
    out, data = np.zeros(64, np.int32), np.arange(16, dtype=np.uint8)
    wavecast.load(SOURCE, arch="gfx942")["load"](1, 64, out, data, 1)
    assert out[:2].tolist() == [0x04030201, 0x05040302]
