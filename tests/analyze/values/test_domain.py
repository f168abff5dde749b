"""The values of a wave: what the domain says holds for every value an unknown may have."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavecast.analyze.values.domain import WaveOps, join, lanes_mask, mask_lanes, split
from wavecast.analyze.values.kinds import LaneOffsets, LaneScalars, Scattered
from wavecast.isa.semantics import LaneOps, Unknown

LANES = 64
OPS = WaveOps(LANES)
EXACT = LaneOps(LANES)

OPERATIONS = ["add", "sub", "mul", "and_", "or_", "xor", "shl", "lshr"]


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    zeros=st.integers(4, 20),
    name=st.sampled_from(OPERATIONS),
    constant=st.integers(0, 4095),
    known_lanes=st.booleans(),
)
def test_lane_offsets_hold_for_every_base(
    seed: int, zeros: int, name: str, constant: int, known_lanes: bool
) -> None:
    """Evaluate with an unknown base, then with a base that fits it: lanes differ the same way."""
    random = Random(seed)
    offsets = np.array([random.randrange(1 << 12) for _ in range(LANES)], dtype=np.uint32)
    base = np.uint32(random.randrange(1 << (28 - zeros)) << zeros)
    if name in ("shl", "lshr"):
        constant %= 4
    other = offsets[::-1].copy() if known_lanes and name in ("add", "or_", "xor") else constant
    found = getattr(OPS, name)(LaneOffsets(Unknown(zeros), offsets), other, 32)
    array = other if isinstance(other, np.ndarray) else np.array([other], dtype=np.uint32)
    exact = getattr(EXACT, name)(base + offsets, array, 32)
    if isinstance(found, LaneOffsets):
        shared = exact - found.offsets
        assert (shared == shared[0]).all()
        assert int(shared[0]) % (1 << found.base.zeros) == 0
    elif isinstance(found, np.ndarray):
        assert np.array_equal(found, np.broadcast_to(exact, found.shape))
    elif not isinstance(found, (Scattered, Unknown)):
        assert (exact == found).all()


def test_decisions_on_lane_offsets_stay_unknown() -> None:
    value = LaneOffsets(Unknown(4, "n"), np.arange(LANES, dtype=np.uint32))
    assert OPS.less_signed(value, 5, 32) == Scattered("n")
    assert OPS.mask_of_lanes(OPS.less_signed(value, 5, 32)) == Unknown(0, "n")


def test_an_unknown_choice_against_a_constant_keeps_the_pattern_only() -> None:
    lanes = np.arange(LANES, dtype=np.uint32)
    found = OPS.select(Scattered("mask"), lanes, 0x80000000, 32)
    assert isinstance(found, LaneOffsets)
    assert np.array_equal(found.offsets, lanes)
    assert found.base == Unknown(0, "mask")
    assert OPS.select(Scattered("mask"), lanes, lanes * 2, 32) == Scattered("mask")


@pytest.mark.parametrize("value", [0x123456789ABCDEF0, 7, (1 << 64) - 1])
def test_halves_of_known_values(value: int) -> None:
    assert join(*split(value)) == value
    wide = np.full(4, value, dtype=np.uint64)
    assert np.array_equal(join(*split(wide)), wide)


def test_halves_of_addresses() -> None:
    offsets = np.array([0, 4, -8], dtype=np.int64).view(np.uint64)
    low, high = split(LaneOffsets(Unknown(4, "p"), offsets))
    assert isinstance(high, Unknown)
    again = join(low, high)
    assert isinstance(again, LaneOffsets)
    assert np.array_equal(again.offsets, offsets)
    assert again.base.zeros == 4
    known = np.arange(4, dtype=np.uint32)
    both = join(known, Unknown(0, "p"))
    assert isinstance(both, LaneOffsets)
    assert both.base.zeros == 32
    assert join(5, Scattered("d")) == Scattered("d")


@given(st.integers(0, (1 << 64) - 1))
def test_masks_and_lanes(mask: int) -> None:
    lanes = mask_lanes(mask, 64)
    if isinstance(lanes, int):
        assert mask == (0, (1 << 64) - 1)[lanes]
    else:
        assert lanes_mask(lanes) == mask


def test_lanes_as_storage() -> None:
    stored = OPS.write_lane(Scattered("empty"), 7, 3)
    stored = OPS.write_lane(stored, Unknown(2, "p"), 4)
    assert isinstance(stored, LaneScalars)
    assert OPS.read_lane(stored, 3) == 7
    assert OPS.read_lane(stored, 4) == Unknown(2, "p")
    assert OPS.read_lane(stored, 5) == Unknown(0, "empty")
    assert isinstance(OPS.add(stored, 1, 32), Scattered)


def test_first_active_lane() -> None:
    ops = WaveOps(32)
    lanes = np.arange(32, dtype=np.uint32) * np.uint32(2)
    assert ops.first_active_lane(lanes) == 0
    ops.set_exec(0b1000)
    assert ops.first_active_lane(lanes) == 6
    ops.set_exec(Unknown(0, "m"))
    assert ops.first_active_lane(lanes) == Unknown(0, "m")
    assert ops.first_active_lane(lanes * 0) == 0


def test_gathering_moves_offsets() -> None:
    offsets = np.arange(LANES, dtype=np.uint32)
    reverse = offsets[::-1].copy()
    found = OPS.gather(LaneOffsets(Unknown(4), offsets), reverse)
    assert isinstance(found, LaneOffsets)
    assert np.array_equal(found.offsets, reverse)
