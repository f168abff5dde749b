"""Functions of ROCm's headers that kernels call, executed against Python's integers and SciPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import special

import wavecast
from tests.emulate.memory_support import lanes_of

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("device_functions.hip")
TARGETS = ("gfx942", "gfx1201")
COUNT = 64


def _kernels(target: str, *, check: bool = True) -> wavecast.Module:
    return wavecast.load(SOURCE, target, check=check)


def _find(mask: int, bits: int, base: int, offset: int) -> int:
    """The place of the |offset|-th set bit from `base` on, up or down; -1 for none."""
    if not offset:
        return base if mask >> base & 1 else -1
    places = range(base, bits) if offset > 0 else range(base, -1, -1)
    set_bits = [place for place in places if mask >> place & 1]
    return set_bits[abs(offset) - 1] if len(set_bits) >= abs(offset) else -1


def _bits(x: int, y: int, z: int, lane: int) -> list[int]:
    wide, width = y << 32 | x, y >> 7

    def extract(value: int, size: int) -> int:
        return value >> y % size & (1 << z % size) - 1

    def insert(value: int, bits: int, size: int) -> int:
        mask = (1 << width % size) - 1
        cleared = value & ~(mask << z % size)
        return (cleared | (bits & mask) << z % size) & (1 << size) - 1

    pair, shift = y << 32 | x, min(z & 63, 32)
    trailing = wide if lane % 4 else wide & ~0xFFF
    return [
        extract(x, 32), insert(x, y, 32), extract(wide, 64), insert(wide, ~wide, 64),
        (pair << shift >> 32) & 0xFFFFFFFF, pair >> shift & 0xFFFFFFFF,
        (trailing & -trailing).bit_length() - 1, 0xFFFFFFFF,
        _find(x, 32, z & 31, y % 9 - 4) & 0xFFFFFFFF,
        _find(wide, 64, z & 63, y % 33 - 16) & 0xFFFFFFFF,
    ]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_bits(target: str) -> None:
    rng = np.random.default_rng(3)
    x, y, z = rng.integers(0, 1 << 32, (3, COUNT), np.uint32)
    out = np.zeros((10, 2, COUNT), np.uint32)
    _kernels(target)["bits"](1, COUNT, x, y, z, out)
    values = (out[:, 1].astype(object) << 32) | out[:, 0].astype(object)
    for lane in range(COUNT):
        expected = _bits(int(x[lane]), int(y[lane]), int(z[lane]), lane)
        assert [int(value) for value in values[:, lane]] == expected, lane


@pytest.mark.parametrize("target", TARGETS)
def test_lanes(target: str) -> None:
    size = lanes_of(target)
    out = np.zeros((7, size), np.uint32)
    _kernels(target)["lanes"](1, size, out)
    active = [lane for lane in range(size) if lane % 3 != 1]
    masks = (out[1:6:2].astype(object) << 32) | out[0:6:2].astype(object)
    for lane in active:
        below = sum(1 << other for other in active if other < lane)
        above = sum(1 << other for other in active if other > lane)
        assert [int(mask) for mask in masks[:, lane]] == [below, 1 << lane, above]
        assert out[6, lane] == lane + 5


@pytest.mark.parametrize("target", TARGETS)
def test_reductions(target: str) -> None:
    x = np.random.default_rng(4).normal(size=COUNT).astype(np.float32)
    largest, least = np.full(2, -np.inf, np.float32), np.full(2, np.inf)
    total = np.zeros(1, np.float32)
    _kernels(target)["reductions"](1, COUNT, largest, least, total, x)
    assert (largest == x.max()).all()
    assert (least == x.min()).all()
    assert total[0] == COUNT / 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [1, 7, 64])
def test_copies(target: str, size: int) -> None:
    source = np.random.default_rng(5).integers(0, 256, (COUNT, size), np.uint8)
    out = np.zeros((COUNT, 2, size), np.uint8)
    _kernels(target)["copies"](1, COUNT, out, source, size)
    assert (out[:, 0] == source).all()
    assert (out[:, 1] == np.arange(COUNT)[:, None]).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "dtype", "close"), [
    ("floats", np.float32, 3e-6), ("doubles", np.float64, 1e-13),
])  # fmt: skip
def test_math(target: str, name: str, dtype: type, close: float) -> None:
    rng = np.random.default_rng(6)
    x, y = rng.uniform(-6, 6, (2, COUNT)).astype(dtype)
    out, integers = np.zeros((19, COUNT), dtype), np.zeros((3, COUNT), np.int32)
    _kernels(target, check=False)[name](1, COUNT, x, y, out, integers)
    wide = np.stack([x, y, x + dtype(1), y - dtype(1)]).astype(np.float64)
    (a, b), whole = wide[:2], np.trunc(wide[1])
    lengths = [np.sqrt((wide[:count] ** 2).sum(0)) for count in (2, 3, 4)]
    ratio = np.rint(a / b)
    bessel = [special.iv(0, a), special.iv(1, a), special.jv(3, a), special.yv(3, abs(a) + 2)]
    expected = [
        1 / lengths[0], *lengths[1:], 1 / lengths[1], 1 / lengths[2], lengths[2], 1 / lengths[2],
        np.ldexp(a, whole.astype(int)), np.ldexp(a, whole.astype(int)),
        np.sin(np.pi * a), np.cos(np.pi * a), a - ratio * b, b**5, *bessel,
        special.jv(0, a), special.jv(1, a),
    ]  # fmt: skip
    scale = np.maximum(np.abs(expected), 1)
    errors = np.max(np.abs(out - expected) / scale, axis=1)
    limits = np.full(19, close)
    limits[[15, 16]] *= 1e5  # the recurrence loses digits below the order
    assert (errors <= limits).all(), errors
    signs = np.where(ratio < 0, -1, 1)
    assert (integers[0] == (signs * (np.abs(ratio).astype(int) % 128)) % 8).all()
    assert (integers[1] == np.floor(np.log2(np.abs(a)))).all()
    assert (integers[2] == 4 + 8 * (a < 0)).all()


@pytest.mark.parametrize("target", TARGETS)
def test_classes_of_special_numbers(target: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0] + [1.0] * (COUNT - 5), np.float32)
    out, integers = np.zeros((19, COUNT), np.float32), np.zeros((3, COUNT), np.int32)
    _kernels(target, check=False)["floats"](1, COUNT, x, np.ones(COUNT, np.float32), out, integers)
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    assert integers[1, :6].tolist() == [least, most, most, least, least, 0]
    assert (integers[2, 1:6]).tolist() == [2, 10, 4, 12, 4]
    assert integers[2, 0] & 7 == 1
