"""Kernels of `wavecast.load` on narrow tensors that `torch.empty` has allocated in a session."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import wavecast  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402
from wavecast.emulate.reports import Kind  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.hip]
SOURCE = Path(__file__).parents[2] / "emulate" / "check" / "undefined.hip"


@pytest.mark.parametrize("written", [64, 60])
@pytest.mark.parametrize("who", ["kernel", "torch"])
def test_the_end_of_a_tensor_is_unwritten(who: str, written: int) -> None:
    reports = Reports()
    kernels = wavecast.load(SOURCE, arch="gfx942", check=reports, threads=1)
    with wavecast.device("gfx942", check=True):
        bytes_ = torch.empty(64, dtype=torch.uint8, device="cuda")
        out = torch.zeros(64, dtype=torch.int32, device="cuda")
        if who == "kernel":
            kernels["store_bytes"](1, 64, bytes_, written)
        else:
            bytes_[:written] = 7
        kernels["triple_bytes"](1, 64, out, bytes_)
    kinds = [report.kind for report in reports]
    assert kinds == ([] if written == 64 else [Kind.UNINITIALISED_GLOBAL])
