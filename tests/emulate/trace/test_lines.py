"""Transactions of global memory, scratch and scalar memory, against sets of blocks in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import lanes_of, masked
from tests.emulate.trace.support import Traced, aligned, counts, index, trace
from tests.targets import swept
from wavecast.emulate.trace.mode import TraceMode
from wavecast.emulate.trace.result import MemoryCounts

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
WIDTHS = {1: "ubyte", 2: "ushort", 4: "dword", 8: "dwordx2", 12: "dwordx3", 16: "dwordx4"}
NEW = {1: "u8", 2: "u16", 4: "b32", 8: "b64", 12: "b96", 16: "b128"}


def load(target: str, width: int) -> str:
    """A load of `width` bytes per lane from s[10:11] + v2."""
    name = (WIDTHS if target.startswith("gfx9") else NEW)[width]
    last = 4 + max(width // 4, 1) - 1
    rows = f"v[4:{last}]" if width > 4 else "v4"
    return f"\tglobal_load_{name} {rows}, v2, s[10:11]"


def offsets_then(target: str, then: str) -> str:
    """v2 = the lane's dword of the first array."""
    name = "global_load_dword" if target.startswith("gfx9") else "global_load_b32"
    return f"\t{name} v2, v1, s[8:9]\n{then}"


def blocks(addresses: np.ndarray, width: int, size: int) -> int:
    """Different blocks of `size` bytes that accesses of `width` bytes touch."""
    touched: set[int] = set()
    for address in addresses.tolist():
        touched.update(range(address // size, (address + width - 1) // size + 1))
    return len(touched)


def check(found: MemoryCounts, offsets: np.ndarray, width: int) -> None:
    """Compare the counts of one request with what its lanes' offsets say."""
    assert (found.requests, found.lanes, found.width) == (1, len(offsets), width)
    assert [found.blocks(size) for size in (32, 64, 128)] == [
        blocks(offsets, width, size) for size in (32, 64, 128)
    ]
    strides = np.diff(offsets.astype(np.int64))
    assert (found.least_stride, found.most_stride) == (
        (int(strides.min()), int(strides.max())) if len(strides) else (None, None)
    )
    assert found.contiguous == int((strides == width).all())
    assert found.broadcast == int(len(strides) > 0 and not strides.any())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("target", swept(TARGETS))
def test_random_addresses(target: str, width: int) -> None:
    rng = np.random.default_rng(width)
    lanes, places, memory = lanes_of(target), aligned(64), aligned(1 << 14)
    shapes = [
        rng.integers(0, 60000, lanes),
        np.sort(rng.integers(0, 4000, lanes)),
        np.arange(lanes) * width,
        np.arange(lanes)[::-1] * width + 3,
        np.full(lanes, 77),
        np.arange(lanes) // 8 * 512 + np.arange(lanes) % 8 * width,
    ]
    kernel = Traced(target, offsets_then(target, load(target, width)), TraceMode())
    for offsets in shapes:
        places[:lanes] = offsets
        check(counts(kernel.run(places, memory), "global_load", 1), offsets, width)


@pytest.mark.parametrize("mask", [1, 0b1011 << 20, 0xF0F0F0F0, (1 << 32) - 2])
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_only_active_lanes_count(target: str, mask: int) -> None:
    rng = np.random.default_rng(mask)
    lanes, places, memory = lanes_of(target), aligned(64), aligned(1 << 14)
    for offsets in (rng.integers(0, 60000, lanes), np.arange(lanes) * 4):
        places[:lanes] = offsets
        body = offsets_then(target, masked(target, mask) + load(target, 4))
        found = trace(target, body, places, memory)
        active = [lane for lane in range(lanes) if mask >> lane & 1]
        check(counts(found, "global_load", 1), offsets[active], 4)


def test_no_lane_is_no_request() -> None:
    body = masked("gfx942", 0) + load("gfx942", 4)
    found = counts(trace("gfx942", body, aligned(64), aligned(64)), "global_load")
    assert (found.executions, found.requests, found.lanes, found.blocks_128) == (1, 0, 0, 0)
    assert found.least_stride is None


def test_lanes_beyond_a_buffer_touch_nothing() -> None:
    body = """	s_mov_b32 s10, 40
	s_mov_b32 s11, 0x27000
	s_and_b32 s9, s9, 0xffff
	buffer_load_dword v4, v1, s[8:11], 0 offen"""
    found = counts(trace("gfx942", body, aligned(64)), "buffer_load")
    assert (found.executions, found.requests, found.lanes) == (1, 1, 10)
    assert (found.blocks_32, found.blocks_64, found.contiguous) == (2, 1, 1)


def test_atomics_on_one_address_collide() -> None:
    places = aligned(64)
    places[:64] = np.arange(64) // 4 * 4
    body = offsets_then("gfx942", "\tglobal_atomic_add v2, v0, s[10:11]")
    found = counts(trace("gfx942", body, places, aligned(64)), "global_atomic")
    assert (found.collisions, found.blocks_32, found.blocks_64) == (48, 2, 1)
    assert (found.contiguous, found.least_stride, found.most_stride) == (0, 0, 4)


@pytest.mark.parametrize(("instruction", "rows"), [("dword v4", 1), ("dwordx4 v[4:7]", 4)])
def test_scratch_is_interleaved_by_lane(instruction: str, rows: int) -> None:
    """Every dword of 64 lanes is a row of 256 bytes."""
    body = f"\tscratch_load_{instruction}, off, off offset:16"
    found = counts(trace("gfx942", body, scratch=64), "scratch_load")
    assert (found.requests, found.lanes) == (1, 64)
    assert (found.blocks_64, found.blocks_128) == (4 * rows, 2 * rows)
    assert (found.contiguous, found.least_stride) == (1, 4)


def test_scalar_loads_touch_few_lines() -> None:
    body = """	s_load_dwordx4 s[20:23], s[8:9], 0x38
	s_load_dword s24, s[8:9], 0x0"""
    found = trace("gfx942", body, aligned(64), groups=2)
    crossing, inside = (counts(found, "s_load_dword", n) for n in (1, 2))
    assert (crossing.requests, crossing.bytes, crossing.blocks_64) == (2, 32, 4)
    assert (crossing.blocks_32, crossing.blocks_128) == (4, 2)
    assert (inside.requests, inside.bytes, inside.blocks_64) == (2, 8, 2)


def test_scalar_loads_through_a_descriptor_count_as_one() -> None:
    body = """	s_mov_b32 s10, 256
	s_mov_b32 s11, 0x27000
	s_and_b32 s9, s9, 0xffff
	s_buffer_load_dwordx8 s[20:27], s[8:11], 0x30"""
    found = counts(trace("gfx942", body, aligned(64)), "s_buffer_load")
    assert (found.requests, found.blocks_32, found.blocks_64, found.blocks_128) == (1, 2, 2, 1)


def test_results_are_those_of_plain_execution() -> None:
    rng = np.random.default_rng(5)
    source, out = aligned(64), aligned(64)
    source[:] = rng.integers(0, 1 << 32, 64, np.uint32)
    body = "\tglobal_load_dword v2, v1, s[8:9]\n\tglobal_store_dword v1, v2, s[10:11]"
    found = trace("gfx942", body, source, out, streams=1)
    assert np.array_equal(source, out)
    assert found.executions(index(found, "global_store")) == 1
