"""A test suite of its own, for `pytest --wavecast`."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, 2 * tl.load(x + offs, mask=mask), mask=mask)


def test_double() -> None:
    x = torch.randn(1000, device="cuda")
    out = torch.empty_like(x)
    double[(8,)](x, out, 1000, BLOCK=128)
    torch.testing.assert_close(out, 2 * x)
