"""Devices and scripts for the capture tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wavecast.runtimes.devices import DeviceFacts

# Inductor compiles a program for each vector extension of the CPU, to see which it may use
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")

GFX942 = DeviceFacts(
    "gfx942", "amd", "AMD Instinct MI300X", 304, 64, 65536, 2048, 4, 512, 512, 192 << 30, 32 << 20
)
GFX1100 = DeviceFacts(
    "gfx1100", "amd", "AMD Radeon RX 7900 XTX", 48, 32, 65536, 2048, 4, 256, 1536, 24 << 30
)
SM_90 = DeviceFacts("sm_90", "nvidia", "NVIDIA H100", 132, 32, 232448, 2048, 4, 255, 512, 80 << 30)

ADD = """
import torch
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < n
    total = tl.load(x_ptr + offset, mask=inside) + tl.load(y_ptr + offset, mask=inside)
    tl.store(out_ptr + offset, total, mask=inside)


def launch(n, block=256):
    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    out = torch.empty_like(x)
    add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=block)
    return x, y, out
"""


@pytest.fixture
def script(tmp_path: Path):
    """Writes a script that starts with the `add` kernel and ends with the given lines."""

    def write(body: str, name: str = "script.py") -> Path:
        path = tmp_path / name
        path.write_text(ADD + "\n\n" + body)
        return path

    return write


@pytest.fixture(scope="session", autouse=True)
def fp_fusion():
    """Triton's default, whatever the environment says."""
    patch = pytest.MonkeyPatch()
    patch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    yield
    patch.undo()
