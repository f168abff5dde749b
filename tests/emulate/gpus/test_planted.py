"""Mistakes between two GPUs, planted in Triton kernels, and the kernels without them."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402
from tests.emulate.gpus import kernels  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402
from wavecast.emulate.check.report import Kind, Report  # noqa: E402

# pyright: reportArgumentType=false

pytestmark = pytest.mark.torch
N = 64
ONE_WAVE = {"num_warps": 1}


def _hand_over(early: bool) -> list[Report]:
    reports = Reports()
    node: Any
    with wavecast.device("gfx942", count=2, check=reports) as node:
        data = torch.zeros(N, dtype=torch.int32, device="cuda:0")
        flag = torch.zeros(1, dtype=torch.int32, device="cuda:1")
        out = torch.empty(N, dtype=torch.int32, device="cuda:1")

        def rank(number: int) -> None:
            if number == 0:
                kernels.send[(1,)](data, flag, 7, "release", "sys", N, **ONE_WAVE)
            elif early:
                kernels.receive_early[(1,)](data, flag, out, 7, N, **ONE_WAVE)
            else:
                kernels.receive[(1,)](data, flag, out, 7, "acquire", "sys", N, **ONE_WAVE)

        node.ranks(rank)
    return list(reports)


def test_data_read_before_the_signal() -> None:
    assert _hand_over(early=False) == []
    (found,) = _hand_over(early=True)
    assert found.kind is Kind.GPU_RACE
    assert "no release and acquire of system scope orders the two GPUs" in found.message
    assert {found.gpu, found.other_gpu} == {0, 1}
    assert {found.kernel, found.other_kernel} == {"send", "receive_early"}
    assert (found.workgroup, found.other_workgroup) == ((0, 0, 0), (0, 0, 0))
    assert found.location is not None
    assert found.other_location is not None
