"""Data of a code object: tables compilers make, and variables of a HIP file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.emulate.memory_support import TARGETS, run
from tests.targets import swept
from wavecast.emulate.errors import Unsupported

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402

import wavecast  # noqa: E402

pytestmark = pytest.mark.torch


@triton.jit(noinline=True)
def _product(x_ptr, out_ptr, SIZE: tl.constexpr):
    row, column = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    x = tl.load(x_ptr + SIZE * row + column)
    tl.store(out_ptr + SIZE * row + column, tl.dot(x, x))


@triton.jit
def _shared_memory_of_a_function(x_ptr, out_ptr, SIZE: tl.constexpr):
    _product(x_ptr, out_ptr, SIZE)


@triton.jit
def _asserted(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offset = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset)
    tl.device_assert(x < 100, "too large")
    tl.store(out_ptr + offset, x)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_a_function_that_finds_its_shared_memory_in_a_table(target: str) -> None:
    x, out = torch.randn(32, 32).half(), torch.zeros(32, 32)
    with wavecast.device(target):
        _shared_memory_of_a_function[(1,)](x, out, 32, num_warps=4)
    torch.testing.assert_close(out, x.float() @ x.float(), atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize("target", swept(TARGETS))
def test_an_assertion_that_holds(target: str) -> None:
    x, out = torch.arange(64.0), torch.zeros(64)
    with wavecast.device(target):
        _asserted[(1,)](x, out, BLOCK=64, debug=True)
    assert torch.equal(out, x)


VARIABLES = """
__device__ int table[4] = {10, 20, 30, 40};
__device__ int *entry = &table[2];
__device__ int zeroed[8];
__constant__ float weights[2] = {0.5f, 0.25f};
extern "C" __attribute__((global)) void k(float *out, int i) {
    out[0] = table[i];
    out[1] = *entry;
    out[2] = weights[i & 1];
    out[3] = zeroed[i];
    zeroed[i] += 7;
}
"""


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_variables_of_a_file(tmp_path: Path, target: str) -> None:
    pytest.importorskip("ziglang", reason="needs ziglang")
    source = tmp_path / "variables.hip"
    source.write_text(VARIABLES)
    kernel = wavecast.load(source, arch=target)["k"]
    out = np.zeros(4, np.float32)
    kernel(1, 1, out, 1)
    assert out.tolist() == [20, 30, 0.25, 0]
    kernel(1, 1, out, 1)
    assert out.tolist() == [20, 30, 0.25, 7], "what a launch wrote, the next one finds"


def test_a_symbol_that_is_not_there() -> None:
    body = "\ts_getpc_b64 s[2:3]\n\ts_add_u32 s2, s2, nowhere@rel32@lo+4"
    with pytest.raises(Unsupported, match="the symbol 'nowhere'"):
        run("gfx942", body, np.zeros(4, np.uint32))


@triton.jit
def _bessel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offset = tl.arange(0, BLOCK)
    tl.store(out_ptr + offset, libdevice.y1(tl.load(x_ptr + offset)))


@pytest.mark.parametrize("target", swept(TARGETS))
def test_a_place_in_the_middle_of_a_table(target: str) -> None:
    """The polynomials of Bessel functions are read at offsets into tables."""
    x, out = torch.linspace(0.5, 30, 128), torch.zeros(128)
    with wavecast.device(target):
        _bessel[(1,)](x, out, BLOCK=128)
    torch.testing.assert_close(out, torch.special.bessel_y1(x), atol=2e-6, rtol=1e-5)


@triton.jit
def _powers(x_ptr, y_ptr, n, out_ptr, whole_ptr, BLOCK: tl.constexpr):
    offset = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offset)
    tl.store(out_ptr + offset, libdevice.pow(x, tl.load(y_ptr + offset)))
    tl.store(whole_ptr + offset, libdevice.pow(x, n + offset * 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("target", swept(TARGETS))
def test_powers_of_the_device_library(target: str, dtype: torch.dtype) -> None:
    """Also those of negative numbers, zeros and infinities, some of which are NaN."""
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, torch.inf, -torch.inf], dtype=dtype)
    x, y = (each.contiguous().view(-1) for each in torch.meshgrid(special, special, indexing="ij"))
    out, whole = torch.zeros(64, dtype=dtype), torch.zeros(64, dtype=dtype)
    with wavecast.device(target):
        _powers[(1,)](x, y, -3, out, whole, BLOCK=64)
    torch.testing.assert_close(out, torch.pow(x, y), equal_nan=True)
    torch.testing.assert_close(whole, torch.pow(x, -3), equal_nan=True)
