"""Loads and stores of every width, space and target against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import TARGETS, lanes_of, masked, run, spill, whole
from tests.targets import swept
from wavecast.emulate.errors import ExecutionError, Unsupported

pytestmark = pytest.mark.llvm

LOADS = {
    "ubyte": (1, "u1"), "sbyte": (1, "i1"), "ushort": (2, "u2"), "sshort": (2, "i2"),
    "dword": (4, "u4"), "dwordx2": (8, "u4"), "dwordx3": (12, "u4"), "dwordx4": (16, "u4"),
}  # fmt: skip
STORES = {
    "byte": 1, "short": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16,
}  # fmt: skip
LDS_LOADS = {
    "u8": (1, "u1"), "i8": (1, "i1"), "u16": (2, "u2"), "i16": (2, "i2"),
    "b32": (4, "u4"), "b64": (8, "u4"), "b96": (12, "u4"), "b128": (16, "u4"),
}  # fmt: skip
LDS_STORES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}


def offsets(kind: str, lanes: int, size: int) -> np.ndarray:
    """Byte offsets per lane: side by side, shuffled, or not aligned."""
    line = np.arange(lanes, dtype=np.uint32) * size
    if kind == "line":
        return line
    mixed = np.random.default_rng(5).permutation(line)
    return mixed if kind == "shuffled" else mixed + 1


def expected(data: np.ndarray, where: np.ndarray, size: int, kind: str) -> np.ndarray:
    """`[dword][lane]` of what lanes load."""
    rows = []
    for offset in where:
        piece = data.view(np.uint8)[int(offset) : int(offset) + size].tobytes()
        values = np.frombuffer(piece, dtype=kind)
        rows.append(values.astype(np.int64).astype(np.uint32))
    return np.array(rows).T


def random_bytes(count: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, count, dtype=np.uint8)


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("kind", ["line", "shuffled", "unaligned"])
@pytest.mark.parametrize("suffix", LOADS)
def test_global_loads_by_base_and_by_address(target: str, suffix: str, kind: str) -> None:
    size, element = LOADS[suffix]
    lanes, data = lanes_of(target), random_bytes(64 * 16 + 64)
    where = offsets(kind, lanes, size)
    absolute = where.astype(np.uint64) + np.uint64(data.ctypes.data)
    rows = max(1, size // 4)
    register = "v4" if rows == 1 else f"v[4:{3 + rows}]"
    for operands in (f"v2, s[10:11] offset:{8}", "v[10:11], off offset:8"):
        out = np.zeros((rows, lanes), np.uint32)
        body = f"""
	v_lshlrev_b32_e32 v8, 3, v0
	global_load_dword v2, v1, s[8:9]
	global_load_dwordx2 v[10:11], v8, s[14:15]
	global_load_{suffix} {register}, {operands}
{spill(4, rows, lanes=lanes)}"""
        run(target, body, where, data, out, absolute)
        assert np.array_equal(out, expected(data, where + 8, size, element))


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("kind", ["line", "shuffled", "unaligned"])
@pytest.mark.parametrize("suffix", STORES)
def test_global_stores_under_a_mask(target: str, suffix: str, kind: str) -> None:
    size, lanes = STORES[suffix], lanes_of(target)
    where = offsets(kind, lanes, size)
    rows = max(1, size // 4)
    data = random_bytes(rows * lanes * 4)
    register = "v4" if rows == 1 else f"v[4:{3 + rows}]"
    loads = "\n".join(
        f"\tglobal_load_dword v{4 + row}, v1, s[10:11] offset:{4 * lanes * row}"
        for row in range(rows)
    )
    for mask in ((1 << lanes) - 1, 0xA5A5A5A5):
        out = np.zeros(lanes * 16 + 16, np.uint8)
        body = f"""
	global_load_dword v2, v1, s[8:9]
{loads}
{masked(target, mask)}
	global_store_{suffix} v2, {register}, s[12:13]"""
        run(target, body, where, data, out)
        wanted = np.zeros_like(out)
        table = data.view(np.uint32).reshape(rows, lanes)
        for lane in range(lanes):
            if mask >> lane & 1:
                piece = np.ascontiguousarray(table[:, lane]).view(np.uint8)[:size]
                wanted[where[lane] : where[lane] + size] = piece
        assert np.array_equal(out, wanted)


def half_wave_offsets(lanes: int, stride: int, distance: int) -> np.ndarray:
    """Byte offsets: lanes of the lower half `stride` apart, those of the upper half `distance`
    after their like."""
    lower = np.arange(lanes // 2) * stride
    return np.concatenate([lower, lower + distance]).astype(np.uint32)


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("suffix", ["dword", "dwordx2", "dwordx3", "dwordx4"])
def test_stores_of_half_waves_whose_lines_are_the_same(target: str, suffix: str) -> None:
    """Whatever order lanes move in: where they overlap, the last one wins."""
    size, lanes = STORES[suffix], lanes_of(target)
    rows = size // 4
    data = random_bytes(rows * lanes * 4)
    register = "v4" if rows == 1 else f"v[4:{3 + rows}]"
    loads = "\n".join(
        f"\tglobal_load_dword v{4 + row}, v1, s[10:11] offset:{4 * lanes * row}"
        for row in range(rows)
    )
    body = f"""
	global_load_dword v2, v1, s[8:9]
{loads}
	global_store_{suffix} v2, {register}, s[12:13]"""
    table = data.view(np.uint32).reshape(rows, lanes)
    for stride, distance in ((256, size), (128, 32), (160, 64), (80, size), (80, 64), (256, 4),
                             (16, 4), (4, 64), (256, 72), (0, 16)):  # fmt: skip
        where = half_wave_offsets(lanes, stride, distance)
        out, wanted = np.zeros(256 * 32 + 128, np.uint8), np.zeros(256 * 32 + 128, np.uint8)
        run(target, body, where, data, out)
        for lane in range(lanes):
            piece = np.ascontiguousarray(table[:, lane]).view(np.uint8)
            wanted[where[lane] : where[lane] + size] = piece
        np.testing.assert_array_equal(out, wanted, err_msg=f"{stride}, {distance}")


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("suffix", ["ubyte_d16", "sbyte_d16_hi", "short_d16", "short_d16_hi"])
def test_loads_into_half_a_register_keep_the_other(target: str, suffix: str) -> None:
    size = 1 if "byte" in suffix else 2
    lanes, data = lanes_of(target), random_bytes(256)
    for kind in ("line", "shuffled"):
        where, out = offsets(kind, lanes, size), np.zeros((1, lanes), np.uint32)
        body = f"""
	global_load_dword v2, v1, s[8:9]
	v_mov_b32_e32 v4, 0x12345678
	global_load_{suffix} v4, v2, s[10:11]
{spill(4, 1)}"""
        run(target, body, where, data, out)
        element = ("i" if suffix.startswith("s") and size == 1 else "u") + str(size)
        half = expected(data, where, size, element)[0] & 0xFFFF
        high = suffix.endswith("hi")
        wanted = half << 16 | 0x5678 if high else half | 0x12340000
        assert np.array_equal(out[0], wanted)


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("suffix", LDS_LOADS)
def test_lds_loads_and_their_bounds(target: str, suffix: str) -> None:
    size, element = LDS_LOADS[suffix]
    lanes, data = lanes_of(target), random_bytes(64 * 16)
    rows, limit = max(1, size // 4), lanes * 16
    register = "v4" if rows == 1 else f"v[4:{3 + rows}]"
    for kind in ("line", "shuffled", "unaligned", "broadcast", "far"):
        known = kind in ("line", "shuffled", "unaligned")
        where = offsets(kind if known else "line", lanes, size)
        if kind == "broadcast":
            where = np.full(lanes, 16, np.uint32)
        if kind == "far":
            where = np.where(np.arange(lanes) % 3 == 0, limit - size + 1, where).astype(np.uint32)
        out = np.zeros((rows, lanes), np.uint32)
        name = f"ds_{'load' if lanes == 32 else 'read'}_{suffix}"
        store = "ds_store_b128" if lanes == 32 else "ds_write_b128"
        body = f"""
	v_lshlrev_b32_e32 v3, 4, v0
	global_load_dwordx4 v[4:7], v3, s[10:11]
	{store} v3, v[4:7]
	global_load_dword v2, v1, s[8:9]
	{name} {register}, v2
{spill(4, rows, lanes=lanes)}"""
        run(target, body, where, data, out, lds=limit)
        inside = where + size <= limit
        wanted = expected(data, np.where(inside, where, 0), size, element)
        assert np.array_equal(out, np.where(inside, wanted, 0))


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("suffix", LDS_STORES)
def test_lds_stores(target: str, suffix: str) -> None:
    size, lanes = LDS_STORES[suffix], lanes_of(target)
    rows, data = max(1, size // 4), random_bytes(64 * 16)
    where = offsets("shuffled", lanes, size)
    register = "v4" if rows == 1 else f"v[4:{3 + rows}]"
    out = np.zeros(lanes * 16, np.uint8)
    word = "store" if lanes == 32 else "write"
    body = f"""
	v_lshlrev_b32_e32 v3, 4, v0
	global_load_dwordx4 v[4:7], v3, s[10:11]
	global_load_dword v2, v1, s[8:9]
	ds_{word}_{suffix} v2, {register}
	ds_{"load" if lanes == 32 else "read"}_b128 v[8:11], v3
	global_store_dwordx4 v3, v[8:11], s[12:13]"""
    run(target, body, where, data, out, lds=lanes * 16)
    wanted = np.zeros_like(out)
    for lane in range(lanes):
        wanted[where[lane] : where[lane] + size] = data[16 * lane : 16 * lane + size]
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("target", swept(TARGETS))
def test_two_places_that_overwrite_their_own_address(target: str) -> None:
    lanes, data = lanes_of(target), random_bytes(64 * 16).view(np.uint32)
    read, st = ("ds_load_2addr", "_stride64") if lanes == 32 else ("ds_read2", "st64")
    store = "ds_store_b32" if lanes == 32 else "ds_write_b32"
    out = np.zeros((2, lanes), np.uint32)
    step = 64
    name = f"{read}{st}_b32"
    body = f"""
	global_load_dword v4, v1, s[8:9]
	global_load_dword v5, v1, s[8:9] offset:512
	{store} v1, v4
	{store} v1, v5 offset:{4 * step}
	v_mov_b32_e32 v4, v1
	{name} v[4:5], v4 offset1:1
{spill(4, 2, lanes=lanes)}"""
    run(target, body, data, data, out, lds=1024)
    assert np.array_equal(out, np.stack([data[:lanes], data[128 : 128 + lanes]]))


@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_scratch_is_private_to_lanes(target: str) -> None:
    lanes, data = lanes_of(target), random_bytes(64 * 16)
    out = np.zeros((4, lanes), np.uint32)
    body = f"""
	v_lshlrev_b32_e32 v3, 4, v0
	v_mov_b32_e32 v12, 16
	s_mov_b32 s20, 32
	global_load_dwordx4 v[4:7], v3, s[8:9]
	scratch_store_dwordx4 off, v[4:7], off offset:48
	scratch_load_dwordx2 v[8:9], off, s20 offset:16
	scratch_load_dwordx2 v[10:11], v12, off offset:40
{spill(8, 4, lanes=lanes)}"""
    run(target, body, data, data, out, scratch=64)
    assert np.array_equal(out.T, data.view(np.uint32).reshape(-1, 4)[:lanes])
    with pytest.raises(ExecutionError, match="scratch_store"):
        run(target, body, data, data, out, scratch=48)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
def test_scratch_ahead_of_its_start(target: str) -> None:
    """Negative offsets: lane n writes at 4 n + 64 - 64, then without the 64."""
    lanes, out = lanes_of(target), np.zeros(64, np.uint32)
    store = "\tscratch_store_dword v2, v0, off offset:-64\n"
    body = f"\tv_add_u32_e32 v2, 64, v1\n{store}\tscratch_load_dword v4, v1, off\n"
    if target.startswith("gfx1"):
        body = body.replace("v_add_u32_e32", "v_add_nc_u32_e32")
    run(target, body + spill(4, 1, lanes=lanes), out, out, out, scratch=512)
    assert np.array_equal(out[:lanes], np.arange(lanes))
    with pytest.raises(ExecutionError, match="offset:-64' lane 0"):
        run(target, store.replace("v2", "v1"), out, scratch=512)


@pytest.mark.parametrize("target", swept(TARGETS))
def test_wild_addresses_name_lane_and_address(target: str) -> None:
    lanes, data = lanes_of(target), np.zeros(64, np.uint32)
    where = np.arange(lanes, dtype=np.uint32) * 4
    where[7] = 0x7FFFFFF0
    out = np.zeros(lanes, np.uint32)
    for form in ("global_load_dword v4, v2, s[10:11]", "global_store_dword v2, v1, s[10:11]"):
        body = f"\tglobal_load_dword v2, v1, s[8:9]\n\t{form}"
        with pytest.raises(ExecutionError, match=r"lane 7 .*0x[0-9a-f]+, [\d,]+ bytes after"):
            run(target, body, where, data, out)


@pytest.mark.parametrize("target", swept(TARGETS))
def test_a_wild_address_of_an_inactive_lane_is_no_error(target: str) -> None:
    lanes, data = lanes_of(target), np.arange(64, dtype=np.uint32)
    where = np.arange(lanes, dtype=np.uint32) * 4
    where[7] = 0xFFFFFFF0
    out = np.zeros((1, lanes), np.uint32)
    body = f"""
	global_load_dword v2, v1, s[8:9]
	v_mov_b32_e32 v4, 0
{masked(target, ~(1 << 7) & (1 << lanes) - 1)}
	global_load_dword v4, v2, s[10:11]
{whole(target)}
{spill(4, 1)}"""
    run(target, body, where, data, out)
    wanted = np.arange(lanes)
    wanted[7] = 0
    assert np.array_equal(out[0], wanted)


def test_scalar_loads_are_checked() -> None:
    data = np.zeros(16, np.uint32)
    with pytest.raises(ExecutionError, match="s_load_dwordx2"):
        run("gfx942", "\ts_load_dwordx2 s[20:21], s[8:9], 0x3c", data)


def test_unsupported_forms_name_the_instruction() -> None:
    data = np.zeros(16, np.uint32)
    with pytest.raises(Unsupported, match="buffer_load_format_x"):
        run("gfx942", "\tbuffer_load_format_x v4, off, s[8:11], 0", data)
