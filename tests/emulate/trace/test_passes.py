"""Passes through the LDS banks: by hand, and against the static analysis' own count."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.emulate.memory_support import lanes_of, masked
from tests.emulate.trace.support import Traced, aligned, counts, trace
from tests.emulate.trace.test_lines import offsets_then
from tests.targets import swept
from wavecast.analyze.values.banks import conflict_ways, phases
from wavecast.emulate.trace.mode import TraceMode, lds_banks
from wavecast.emulate.trace.result import MemoryCounts

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
LDS = 32768
OLD = {1: "u8", 2: "u16", 4: "b32", 8: "b64", 12: "b96", 16: "b128"}


def instruction(target: str, use: str, width: int) -> str:
    """An LDS access of `width` bytes per lane at v2."""
    name = OLD[width]
    if use == "atomic":
        return f"\tds_add_u{8 * width} v2, v{'4' if width == 4 else '[4:5]'}"
    rows = f"v[4:{3 + width // 4}]" if width > 4 else "v4"
    new = not target.startswith("gfx9")
    if use == "read":
        return f"\tds_{'load' if new else 'read'}_{name} {rows}, v2"
    name = name.replace("u", "b")
    return f"\tds_{'store' if new else 'write'}_{name} v2, {rows}"


def kernel(target: str, use: str, width: int, mask: int = 0) -> Traced:
    then = (masked(target, mask) if mask else "") + instruction(target, use, width)
    return Traced(target, offsets_then(target, then), TraceMode(), lds=LDS)


def run(traced: Traced, offsets: np.ndarray) -> MemoryCounts:
    places = aligned(64)
    places[: len(offsets)] = offsets
    return counts(traced.run(places), "ds_")


def shapes(lanes: int, width: int, seed: int) -> list[np.ndarray]:
    """Offsets by lane: rows, columns, swizzles, one place, anything; multiples of the width."""
    rng = np.random.default_rng(seed)
    lane = np.arange(lanes)
    unit = 4 if width == 12 else width
    most = (LDS - 16) // unit
    return [
        lane * width,
        lane * 128 % (LDS - 128),
        lane % 16 * 128 + lane // 16 * 16,
        (lane % 32 * 64 ^ (lane % 8 * 16)) + lane // 32 * 4096,
        np.full(lanes, 4 * unit),
        lane // 2 * unit,
        rng.integers(0, most, lanes) * unit,
        rng.integers(0, 24, lanes) * unit,
    ]


@pytest.mark.parametrize(
    ("use", "width"),
    [("read", w) for w in OLD] + [("write", w) for w in OLD] + [("atomic", 4), ("atomic", 8)],
)
@pytest.mark.parametrize("target", swept(TARGETS))
def test_passes_are_those_of_the_static_analysis(target: str, use: str, width: int) -> None:
    lanes = lanes_of(target)
    groups = phases(target, width, use == "write", lanes, lds_banks(target))
    kernels = {mask: kernel(target, use, width, mask) for mask in (0, 0x7FFF0F0F)}
    for mask, offsets in product(kernels, shapes(lanes, width, width)):
        active = [
            int(o) if not mask or mask >> lane & 1 else None for lane, o in enumerate(offsets)
        ]
        found = run(kernels[mask], offsets)
        wanted = conflict_ways(active, width, groups, serial=use == "atomic")
        assert (found.conflict_ways, found.worst) == wanted
        assert found.lanes == sum(offset is not None for offset in active)
        assert found.conflicted == int(found.passes > found.groups)


@pytest.mark.parametrize(
    ("target", "use", "width", "stride", "passes", "groups"),
    [
        ("gfx942", "read", 4, 4, 2, 2),  # 32 lanes over 32 banks, twice
        ("gfx942", "read", 4, 8, 4, 2),  # every second bank
        ("gfx942", "read", 4, 128, 64, 2),  # all on one bank
        ("gfx942", "read", 4, 132, 2, 2),  # padded
        ("gfx942", "read", 4, 0, 2, 2),  # the same dword is served once
        ("gfx942", "atomic", 4, 0, 64, 2),  # atomics one after another
        ("gfx942", "read", 16, 16, 8, 8),  # eight lanes of four dwords
        ("gfx950", "read", 16, 16, 4, 4),  # 64 banks
        ("gfx950", "read", 16, 128, 32, 4),  # 8 places of 16 bytes, sixteen lanes: two banks sets
        ("gfx950", "write", 8, 8, 4, 4),  # 16 lanes over 32 banks
        ("gfx1100", "read", 4, 4, 1, 1),
    ],
)
def test_passes_by_hand(
    target: str, use: str, width: int, stride: int, passes: int, groups: int
) -> None:
    found = run(kernel(target, use, width), np.arange(lanes_of(target)) * stride)
    assert (found.passes, found.groups) == (passes, groups)


def test_two_places_make_two_requests() -> None:
    body = "\tv_lshlrev_b32_e32 v2, 3, v0\n\tds_read2_b32 v[4:5], v2 offset1:1"
    found = counts(trace("gfx942", body, lds=4096), "ds_read2")
    assert (found.executions, found.requests, found.lanes, found.bytes) == (1, 2, 128, 512)
    assert (found.passes, found.groups) == (8, 4)
