"""Counters of arrivals in Triton: reset, or not, before the next launch."""

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

import wavecast  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402
from wavecast.emulate.reports import Kind  # noqa: E402

pytestmark = pytest.mark.torch
SPLITS, TILES, BLOCK = 4, 2, 128


@triton.jit
def split_sum(
    x, parts, out, counters, epoch, MODE: tl.constexpr, SPLITS: tl.constexpr, BLOCK: tl.constexpr
):
    tile, split = tl.program_id(0), tl.program_id(1)
    offs = tl.arange(0, BLOCK)
    part = tl.load(x + (tile * SPLITS + split) * BLOCK + offs)
    tl.store(parts + (tile * SPLITS + split) * BLOCK + offs, part)
    tl.debug_barrier()
    arrived = tl.atomic_add(counters + tile, 1, sem="acq_rel")
    target = SPLITS - 1
    if MODE == "epoch":
        target = SPLITS * epoch - 1
    if arrived == target:
        total = tl.zeros((BLOCK,), tl.float32)
        for i in range(SPLITS):
            total += tl.load(parts + (tile * SPLITS + i) * BLOCK + offs, cache_modifier=".cv")
        tl.store(out + tile * BLOCK + offs, total)
        if MODE == "reset":
            tl.store(counters + tile, 0)
        if MODE == "exchange":
            tl.atomic_xchg(counters + tile, 0)


def unreset(mode: str, between=lambda _: None) -> list:
    """The counters reported after two launches."""
    reports = Reports()
    with wavecast.device("gfx942", check=reports):
        x = torch.ones(TILES * SPLITS * BLOCK, device="cuda")
        parts, out = torch.zeros_like(x), torch.zeros(TILES * BLOCK, device="cuda")
        counters = torch.zeros(TILES, dtype=torch.int32, device="cuda")
        for epoch in (1, 2):
            split_sum[(TILES, SPLITS)](x, parts, out, counters, epoch, mode, SPLITS, BLOCK)
            between(counters)
    return [report for report in reports if report.kind is Kind.COUNTER_NOT_RESET]


def test_counters_that_nobody_resets_are_reported():
    (report,) = unreset("")
    line = split_sum.starting_line_number
    assert report.location is not None
    assert report.other_location is not None
    assert (report.location.line - line, report.other_location.line - line) == (9, 13)
    assert "counts on from 4 in counters[0]" in report.message


@pytest.mark.parametrize("mode", ["reset", "exchange", "epoch"])
def test_kernels_that_reset_their_counters_are_clean(mode):
    assert unreset(mode) == []


def test_counters_that_pytorch_resets_are_clean():
    assert unreset("", lambda counters: counters.zero_()) == []
