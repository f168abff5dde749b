"""Lane exchange through LDS hardware, counters, transposing reads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import TARGETS, lanes_of, masked, run, spill, whole
from tests.targets import swept
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.swizzle import offset_number, source_lanes

pytestmark = pytest.mark.llvm


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("name", ["permute", "bpermute"])
def test_permutes(target: str, name: str) -> None:
    lanes = lanes_of(target)
    rng = np.random.default_rng(2)
    where = (rng.permutation(lanes) * 4 + 4 * lanes * 3).astype(np.uint32)
    data = np.arange(100, 100 + lanes, dtype=np.uint32)
    mask = (1 << lanes) - 1 & ~0x30
    out = np.zeros((1, lanes), np.uint32)
    body = f"""
	global_load_dword v2, v1, s[8:9]
	global_load_dword v4, v1, s[10:11]
	v_mov_b32_e32 v5, v4
{masked(target, mask)}
	ds_{name}_b32 v4, v2, v5
{whole(target)}
{spill(4, 1)}"""
    run(target, body, where, data, out)
    wanted = np.zeros(lanes, np.uint32)
    for lane in range(lanes):
        other = where[lane] // 4 % lanes
        if name == "permute" and mask >> lane & 1:
            wanted[other] = data[lane]
        if name == "bpermute" and mask >> int(other) & 1:
            wanted[lane] = data[other]
    for lane in range(lanes):
        if not mask >> lane & 1:
            wanted[lane] = data[lane]
    assert np.array_equal(out[0], wanted)


@pytest.mark.parametrize(
    ("text", "lane", "source"),
    [
        ("swizzle(QUAD_PERM,3,2,1,0)", 5, 6),
        ('swizzle(BITMASK_PERM,"00p11")', 6, 7),
        ('swizzle(BITMASK_PERM,"ipppp")', 3, 19),
        ("swizzle(SWAP,16)", 40, 56),
        ("swizzle(REVERSE,8)", 9, 14),
        ("swizzle(BROADCAST,8,3)", 21, 19),
        ("swizzle(ROTATE,0,1)", 31, 0),
        ("swizzle(ROTATE,1,2)", 33, 63),
        ("0x8000", 7, 4),
    ],
)
def test_swizzle_modes(text: str, lane: int, source: int) -> None:
    assert source_lanes(text, 64)[lane] == source
    assert source_lanes(str(offset_number(text)), 64) == source_lanes(text, 64)


def test_the_fft_swizzle_is_refused() -> None:
    with pytest.raises(Unsupported):
        source_lanes("swizzle(FFT,1)", 64)


@pytest.mark.parametrize("target", swept(TARGETS))
def test_swizzle_reads_zero_from_inactive_lanes(target: str) -> None:
    lanes = lanes_of(target)
    out = np.zeros((1, lanes), np.uint32)
    body = f"""
	v_mov_b32_e32 v4, 9
{masked(target, (1 << lanes) - 1 & ~2)}
	ds_swizzle_b32 v4, v1 offset:swizzle(SWAP,1)
{whole(target)}
{spill(4, 1)}"""
    run(target, body, out, out, out)
    wanted = (np.arange(lanes) ^ 1) * 4
    wanted[0], wanted[1] = 0, 9
    assert np.array_equal(out[0], wanted)


@pytest.mark.parametrize("target", swept(TARGETS))
def test_append_and_consume(target: str) -> None:
    lanes = lanes_of(target)
    out = np.zeros((3, lanes), np.uint32)
    word = "store" if lanes == 32 else "write"
    load = "ds_load_b32" if lanes == 32 else "ds_read_b32"
    body = f"""
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v3, 0x64
	v_mov_b32_e32 v4, 1
	v_mov_b32_e32 v5, 1
	ds_{word}_b32 v2, v3 offset:24
	s_movk_i32 m0, 0x10
{masked(target, 7)}
	ds_append v4 offset:8
{masked(target, 3)}
	ds_consume v5 offset:8
{whole(target)}
	{load} v6, v2 offset:24
{spill(4, 3, lanes=lanes)}"""
    run(target, body, out, out, out, lds=64)
    assert out[0, :4].tolist() == [100, 100, 100, 1]
    assert out[1, :4].tolist() == [103, 103, 1, 1]
    assert set(out[2]) == {101}


@pytest.mark.parametrize(
    ("suffix", "bits", "dwords"), [("b16", 16, 2), ("b8", 8, 2), ("b4", 4, 2), ("b6", 6, 3)]
)
def test_transposing_reads(suffix: str, bits: int, dwords: int) -> None:
    """Lane n of 16 gets column n of rows of 16 elements laid one after another."""
    lanes, per_lane = 64, 32 * dwords // bits
    rng = np.random.default_rng(4)
    table = rng.integers(0, 1 << bits, (4, per_lane, 16)).astype(object)
    rows = table.reshape(4 * 16, per_lane)
    packed = [sum(int(v) << bits * i for i, v in enumerate(row)) for row in rows]
    data = np.zeros((lanes, 4), np.uint32)
    for lane, number in enumerate(packed):
        data[lane, :dwords] = [number >> 32 * i & 0xFFFFFFFF for i in range(dwords)]
    out = np.zeros((dwords, lanes), np.uint32)
    name = f"ds_read_{'b64' if dwords == 2 else 'b96'}_tr_{suffix}"
    body = f"""
	v_lshlrev_b32_e32 v3, 4, v0
	global_load_dwordx4 v[4:7], v3, s[8:9]
	ds_write_b128 v3, v[4:7]
	{name} v[4:{3 + dwords}], v3
{spill(4, dwords)}"""
    run("gfx950", body, data, data, out, lds=1024)
    for lane in range(lanes):
        column = [int(v) for v in table[lane // 16, :, lane % 16]]
        wanted = sum(v << bits * i for i, v in enumerate(column))
        assert [int(v) for v in out[:, lane]] == [
            wanted >> 32 * i & 0xFFFFFFFF for i in range(dwords)
        ]
