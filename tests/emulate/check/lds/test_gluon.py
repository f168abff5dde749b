"""Accesses beyond an allocation of shared memory in Gluon kernels, and the kernels without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wavecast
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Kind, Report

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
gluon: Any = pytest.importorskip("triton.experimental.gluon", reason="needs Gluon")

gl: Any = pytest.importorskip("triton.experimental.gluon.language")

from triton.experimental.gluon.language import constexpr  # noqa: E402

from wavecast.runtimes.triton import shared_allocations  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not hasattr(gl, "barrier"), reason="needs gl.barrier, of Triton 3.7"),
]
TARGETS = {"gfx942": 64, "gfx1201": 32}


@gluon.jit
def filled(buffers, value, n):
    for i in range(n):
        buffers.index(i).store(value + i)  # PLANTED


@gluon.jit
def rings(x, out, stores, loads, LANES: constexpr, PADDED: constexpr):
    flat: constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    wide: constexpr = gl.BlockedLayout([1, 4], [LANES // 8, 8], [4, 1], [1, 0])
    shared: constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    padded: constexpr = gl.PaddedSharedLayout.with_identity_for([[64, 4]], [64, 32], [1, 0])
    square: constexpr = gl.SwizzledSharedLayout(4, 1, 8, order=[1, 0])
    offs = gl.arange(0, 256, layout=flat)
    value = gl.load(x + offs)
    first = gl.allocate_shared_memory(gl.float32, [2, 256], shared)
    second = gl.allocate_shared_memory(gl.float32, [2, 256], shared)
    filled(first, value, stores)
    second.index(0).store(value)
    second.index(1).store(value)
    gl.barrier()
    total = value
    for i in range(loads):
        total += second.index(i).load(flat)  # PLANTED
    total += first.index(0).load(flat)
    tile = gl.allocate_shared_memory(gl.float32, [64, 32], padded if PADDED else square)
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, wide))
    tile.store(
        gl.convert_layout(gl.expand_dims(rows.to(gl.float32), 1), wide)
        + gl.zeros([64, 32], gl.float32, wide)
    )
    gl.barrier()
    turned = tile.permute([1, 0]).load(wide)
    part = tile.slice(16, 16).load(wide)
    total += gl.sum(gl.sum(turned, 0), 0) + gl.sum(gl.sum(part, 0), 0)
    gl.store(out + offs, total)


def line_of(marked: int) -> int:
    lines = Path(__file__).read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith("# PLANTED")][marked]


def found(target: str, stores: int, loads: int, *, padded: bool = False) -> list[Report]:
    reports = Reports()
    with wavecast.device(target, check=reports, threads=1):
        x, out = torch.ones(256, device="cuda"), torch.zeros(256, device="cuda")
        rings[(1,)](x, out, stores, loads, TARGETS[target], padded)
    return reports.errors


@pytest.mark.parametrize("target", TARGETS)
def test_buffers_of_an_allocation(target: str) -> None:
    assert found(target, 2, 2) == []
    assert found(target, 2, 2, padded=True) == []
    for stores, loads, marked in ((3, 2, 0), (2, 3, 1)):
        reports = found(target, stores, loads)
        beyond = [report for report in reports if report.kind is Kind.OUT_OF_BOUNDS]
        assert beyond, reports
        location = beyond[0].location
        assert location is not None
        assert location.line == line_of(marked)
        assert "outside the array that its address is made from" in beyond[0].message


def test_a_triton_that_allocates_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_allocations, "_ALLOCATION", "add_no_such_pass")
    with pytest.warns(UserWarning, match="offsets of its shared allocations are not known"):
        assert found("gfx942", 3, 2) == []
