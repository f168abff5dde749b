"""Programs of several workgroups (`num_ctas`), which are clusters of gfx1250."""

from __future__ import annotations

from typing import Any

import pytest

import wavecast
from wavecast.emulate.check.collected import Reports

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
gluon: Any = pytest.importorskip("triton.experimental.gluon", reason="needs Gluon")
cdna5: Any = pytest.importorskip(
    "triton.experimental.gluon.language.amd.cdna5", reason="needs Triton 3.9"
)

from triton.experimental.gluon import language as gl  # noqa: E402
from triton.experimental.gluon.language import constexpr  # noqa: E402

pytestmark = pytest.mark.torch


@gluon.jit
def add_number(x, out, n, BLOCK: constexpr):
    layout: constexpr = gl.BlockedLayout([1], [32], [4], [0], cga_layout=[[1]])
    program = gl.program_id(0)
    offsets = program * BLOCK + gl.arange(0, BLOCK, layout)
    value = gl.load(x + offsets, mask=offsets < n)
    cdna5.cluster.arrive()
    cdna5.cluster.wait()
    gl.store(out + offsets, value + program, mask=offsets < n)


@pytest.mark.parametrize("check", [False, True])
def test_a_program_is_a_cluster(check: bool) -> None:
    x = torch.arange(1000.0)
    out = torch.zeros_like(x)
    reports = Reports()
    with wavecast.device("gfx1250", check=reports if check else False):
        add_number[(4,)](x, out, 1000, 256, num_warps=4, num_ctas=2)
    assert torch.equal(out, x + torch.arange(1000) // 256)
    assert not reports.take()
