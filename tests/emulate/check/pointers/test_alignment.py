"""Addresses that are not aligned: atomics break a launch off, scalar loads are reported."""

import numpy as np
import pytest

import wavecast
from tests.emulate.check.test_planted import found
from tests.targets import swept
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.reports import Kind

SOURCE = b"""
extern "C" __global__ void count(char* bytes, int shift) {
  atomicAdd((unsigned*)(bytes + shift), 1u);
}
extern "C" __global__ void load(int* out, const char* bytes, int shift) {
  __builtin_memcpy(&out[threadIdx.x], bytes + shift + threadIdx.x % 2, 4);
}
extern "C" __global__ void scalar(int* out, const char* bytes, int shift) {
  out[threadIdx.x] = *(const int*)(bytes + shift);
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


@pytest.mark.hip
@pytest.mark.parametrize("target", swept(("gfx90a", "gfx942", "gfx1100", "gfx1201")))
def test_scalar_loads_ignore_the_low_bits_of_their_address(target):
    kernel = wavecast.load(SOURCE, arch=target, check=True)["scalar"]
    out, data = np.zeros(64, np.int32), np.arange(16, dtype=np.int8)
    assert found(kernel, 1, 64, out, data, 4) == ()
    (report,) = found(kernel, 1, 64, out, data, 6)
    assert report.kind is Kind.MISALIGNED
    assert "is a scalar access at bytes[6], 2 bytes beyond a multiple of 4" in report.message
