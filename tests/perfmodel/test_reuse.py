"""Reuse between workgroups, against sets of the tiles that they take by their own order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from wavecast import analyze, arch
from wavecast.compile.parsing import parse_kernel
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.reuse import Reuse, reuse
from wavecast.runtimes.triton import capture

TILE, STEP = 256, 256
Order = Callable[[int], tuple[int, int]]


@triton.jit
def tiles(
    a_ptr, b_ptr, out_ptr, pitch, steps, TILE: tl.constexpr, STEP: tl.constexpr, ORDER: tl.constexpr
):
    """Reads a row of tiles of A and a column of tiles of B, as the workgroup's number says."""
    pid = tl.program_id(0)
    if ORDER == "rows":
        row, column = pid % 8, pid // 8
    elif ORDER == "grouped":
        group, within = pid // 32, pid % 32
        row, column = group * 4 + within % 4, within // 4
    else:
        row, column = pid, 0
    place = tl.arange(0, TILE)
    total = tl.zeros((TILE,), tl.float32)
    for step in range(steps):
        if ORDER == "windows":  # the next workgroup is where this one will be 16 steps later
            total += tl.load(a_ptr + (row * 16 + step) * TILE + place)
        elif ORDER == "taps":  # three tiles again and again
            total += tl.load(a_ptr + (row * 3 + step % 3) * TILE + place)
        else:
            total += tl.load(a_ptr + row * pitch + step * STEP + place)
        total += tl.load(b_ptr + column * pitch + step * STEP + place)
    tl.store(out_ptr + pid * TILE + place, total)


def rows(pid: int) -> tuple[int, int]:
    return pid % 8, pid // 8


def grouped(pid: int) -> tuple[int, int]:
    return pid // 32 * 4 + pid % 4, pid % 32 // 4


def found(order: str, count: int, steps: int, device_id: str) -> Mapping[str, Reuse]:
    """The reuse of the loads of A and B in the loop, and of the store."""
    device = arch.load(device_id)
    a, b = (torch.empty(1 << 24, dtype=torch.float32) for _ in range(2))
    out = torch.empty(count * TILE)
    constants: dict[str, Any] = {"TILE": TILE, "STEP": STEP, "ORDER": order, "num_stages": 1}
    with capture(device) as launches:
        tiles[(count,)](a, b, out, 1 << 14, steps, **constants)
    (launch,) = launches
    kernel = parse_kernel(launch.code)
    analysis = analyze.analyze(launch.code, device, kernel.program, kernel.descriptor, launch)
    lanes = kernel.descriptor.wave_size
    placement = LaunchPlacement.of(launch, analysis.occupancy, device, lanes)
    assert len(placement.first_round()) == count
    moved = {entry.index: 256.0 for entry in analysis.memory if entry.argument}
    each = reuse(launch, analysis, kernel, Chip.of(device), placement, moved, 64.0)
    return {
        entry.argument: each[entry.index]
        for entry in analysis.memory
        if entry.index in each and (entry.loop is not None or entry.argument == "out_ptr")
    }


def counted(order: Order, count: int, dies: int, side: int) -> tuple[float, float]:
    """Tiles that dies fetch over those asked for, and tiles that differ over those fetched."""
    asked: Sequence[tuple[int, int]] = [(pid % dies, order(pid)[side]) for pid in range(count)]
    fetched = set(asked)
    return len(fetched) / count, len({tile for _, tile in fetched}) / len(fetched)


@pytest.mark.parametrize("device", ["mi300x", "mi210", "rx7900xtx"])
@pytest.mark.parametrize(("name", "order"), [("rows", rows), ("grouped", grouped)])
def test_workgroups_reuse_the_tiles_they_have_in_common(name, order, device) -> None:
    dies = {"mi300x": 8}.get(device, 1)
    reused = found(name, 96, 40, device)
    for argument, side in (("a_ptr", 0), ("b_ptr", 1)):
        die, chip = counted(order, 96, dies, side)
        assert reused[argument].die == pytest.approx(die), argument
        assert reused[argument].chip == pytest.approx(chip), argument
    assert reused["out_ptr"] == Reuse(1.0, 1.0)


def test_what_follows_some_steps_later_is_still_in_the_cache(monkeypatch) -> None:
    """96 windows of 400 tiles, each 16 tiles further, are 95 · 16 + 400 different ones. A die sees
    every eighth window, and those of eight dies lie like those of one."""
    monkeypatch.setattr(Chip, "l2_slice", property(lambda _: 1e9))
    one, dies = (found("windows", 96, 400, device)["a_ptr"] for device in ("mi210", "mi300x"))
    whole, die = (95 * 16 + 400) / (96 * 400), (11 * 128 + 400) / (12 * 400)
    assert (one.die, one.chip) == pytest.approx((whole, 1.0), rel=0.02)
    assert (dies.die, dies.chip) == pytest.approx((die, whole / die), rel=0.02)


@pytest.fixture(autouse=True)
def _chips() -> None:
    """Chips are kept; they are made before a test replaces a field of all of them."""
    for name in ("mi300x", "rx7900xtx"):
        Chip.of(arch.load(name))


@pytest.mark.parametrize("device", ["mi300x", "rx7900xtx"])
def test_a_loop_that_comes_back_finds_its_lines(device, monkeypatch) -> None:
    monkeypatch.setattr(Chip, "l2_slice", property(lambda _: 1e9))
    reused = found("taps", 96, 40, device)
    assert reused["a_ptr"].die == pytest.approx(3 / 40)
    assert reused["a_ptr"].chip == pytest.approx(1.0)
    monkeypatch.setattr(Chip, "l2_slice", property(lambda _: 1024.0))
    assert found("taps", 96, 40, device)["a_ptr"].die > 0.3


def test_what_the_cache_does_not_keep_is_fetched_by_each(monkeypatch) -> None:
    monkeypatch.setattr(Chip, "l2_slice", property(lambda _: 1024.0))
    assert found("windows", 96, 40, "mi210")["a_ptr"].die == pytest.approx(1.0)
