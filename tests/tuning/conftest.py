"""A script with autotuned launches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtimes.conftest import fp_fusion

SCRIPT = """
import sys
import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK": 1024}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK": 32}, num_warps=4, num_stages=2),
    ],
    key=["n"],
)
@triton.jit
def scaled(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 64, "too small")
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    tl.store(out_ptr + offset, tl.load(x_ptr + offset, mask=inside) * factor, mask=inside)


def scale(x, factor=2.0):
    out = torch.empty_like(x)
    n = x.numel()
    scaled[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n, factor)
    return out
"""


@pytest.fixture
def script(tmp_path: Path):
    """Writes a script that starts with `scale` and ends with the given lines."""

    def write(body: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(f"{SCRIPT}\n\n{body}\n")
        return path

    return write


__all__ = ["fp_fusion", "script"]
