"""Buffer descriptors, scalar memory, and loads that go to LDS."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import TARGETS, lanes_of, run, spill
from tests.targets import swept
from wavecast.emulate.errors import ExecutionError, Unsupported

pytestmark = pytest.mark.llvm

RAW = {"gfx1100": 0x31004000, "gfx1201": 0x31004000}


WIDE = "gfx1250"


def descriptor(
    data: np.ndarray, records: int, stride: int = 0, flags: int = 0, target: str = ""
) -> np.ndarray:
    """The four dwords of a buffer over an array; `flags` are those of the older form."""
    base = data.ctypes.data
    if target == WIDE:
        whole = base | records << 57 | stride << 108 | ((stride == 0) << 127)
        return np.frombuffer(whole.to_bytes(16, "little"), np.uint32).copy()
    words = [base & 0xFFFFFFFF, base >> 32 | stride << 16, records, flags]
    return np.array(words, np.uint32)


def load4(target: str, first: str = "s[20:23]", source: str = "s[8:9]") -> str:
    name = "s_load_b128" if lanes_of(target) == 32 else "s_load_dwordx4"
    return f"\t{name} {first}, {source}, 0x0"


@pytest.mark.parametrize("target", [*swept(TARGETS), WIDE])
@pytest.mark.parametrize("suffix", ["dword", "dwordx2", "dwordx4", "ushort"])
def test_raw_buffers_give_zero_beyond_their_records(target: str, suffix: str) -> None:
    size = {"dword": 4, "dwordx2": 8, "dwordx4": 16, "ushort": 2}[suffix]
    lanes, rows = lanes_of(target), max(1, size // 4)
    data = np.arange(1, lanes * 8 + 1, dtype=np.uint32)
    limit = lanes * size - size // 2 if size > 2 else lanes
    table = descriptor(data, limit, flags=RAW.get(target, 0x27000), target=target)
    where = np.arange(lanes, dtype=np.uint32) * size
    where[3] = 0x80000000
    out = np.zeros((rows, lanes), np.uint32)
    register = "v4" if rows == 1 else f"v[4:{3 + rows}]"
    body = f"""
{load4(target)}
	s_mov_b32 s24, 0
	global_load_dword v2, v1, s[10:11]
	buffer_load_{suffix} {register}, v2, s[20:23], s24 offen
{spill(4, rows, lanes=lanes)}"""
    run(target, body, table, where, out, data)
    padded = np.concatenate([data.view(np.uint8)[:limit], np.zeros(64, np.uint8)])
    wanted = np.zeros((rows, lanes), np.uint32)
    for lane in range(lanes):
        for row in range(rows):
            place, unit = int(where[lane]) + 4 * row, min(size, 4)
            if place + unit <= limit:
                wanted[row, lane] = int.from_bytes(padded[place : place + unit].tobytes(), "little")
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("target", [*swept(TARGETS), WIDE])
def test_buffer_stores_beyond_the_records_are_dropped(target: str) -> None:
    lanes = lanes_of(target)
    out = np.zeros(lanes * 4, np.uint32)
    limit = lanes * 8 + 4
    table = descriptor(out, limit, flags=RAW.get(target, 0x27000), target=target)
    body = f"""
{load4(target)}
	v_lshlrev_b32_e32 v2, 3, v0
	v_add_u32_e32 v4, 1, v0
	v_add_u32_e32 v5, 2, v0
	s_movk_i32 s24, 0x8
	buffer_store_dwordx2 v[4:5], v2, s[20:23], s24 offen offset:8"""
    if lanes == 32:
        body = body.replace("v_add_u32_e32", "v_add_nc_u32_e32")
    run(target, body, table, out)
    wanted = np.zeros_like(out)
    for lane in range(lanes):
        for row in range(2):
            place = lane * 8 + 16 + 4 * row
            if place + 4 <= limit:
                wanted[place // 4] = lane + 1 + row
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("target", [*swept(TARGETS), WIDE])
@pytest.mark.parametrize("suffix", ["dword", "dwordx2"])
def test_offsets_of_register_and_instruction_wrap_at_32_bits(target: str, suffix: str) -> None:
    """The scalar offset is added to the wrapped sum, and lanes that stay negative read 0."""
    lanes, rows = lanes_of(target), 2 if suffix == "dwordx2" else 1
    data = np.arange(1, lanes * 2 + 65, dtype=np.uint32)
    table = descriptor(data, 0x7FFFFFFE, flags=RAW.get(target, 0x27000), target=target)
    last = 4 * (lanes - 5)
    where = (-4 * np.arange(lanes)).astype(np.uint32)
    out = np.zeros((rows, lanes), np.uint32)
    register = "v4" if rows == 1 else "v[4:5]"
    body = f"""
{load4(target)}
	s_mov_b32 s24, 32
	global_load_dword v2, v1, s[10:11]
	buffer_load_{suffix} {register}, v2, s[20:23], s24 offen offset:{last}
{spill(4, rows, lanes=lanes)}"""
    run(target, body, table, where, out, data)
    first = last - 4 * np.arange(lanes)
    for row in range(rows):
        wanted = np.where(first >= 0, data[(first + 32) // 4 % len(data) + row], 0)
        assert np.array_equal(out[row], wanted)


@pytest.mark.parametrize("target", [*swept(TARGETS), WIDE])
def test_indexed_buffers(target: str) -> None:
    lanes = lanes_of(target)
    data = np.arange(1, 513, dtype=np.uint32)
    flags = 0x27000 if lanes == 64 else 0x01004000
    structured = descriptor(data, 20, stride=12, flags=flags, target=target)
    out = np.zeros((1, lanes), np.uint32)
    body = f"""
{load4(target)}
	s_mov_b32 s24, 0
	v_mov_b32_e32 v2, v0
	v_mov_b32_e32 v3, 4
	buffer_load_dword v4, v[2:3], s[20:23], s24 idxen offen offset:4
{spill(4, 1)}"""
    run(target, body, structured, data, out)
    index = np.arange(lanes)
    assert np.array_equal(out[0], np.where(index < 20, data[index * 3 + 2], 0))


@pytest.mark.parametrize("target", [*swept(TARGETS), WIDE])
def test_buffers_over_unknown_memory_fail(target: str) -> None:
    lanes, data = lanes_of(target), np.zeros(256, np.uint32)
    table = descriptor(data, 0x7FFFFFFF, flags=RAW.get(target, 0x27000), target=target)
    body = f"{load4(target)}\n\tbuffer_load_dword v4, off, s[20:23], 0 offset:2048"
    with pytest.raises(ExecutionError, match="lane 0 "):
        run(target, body, table, data)
    del lanes


def test_gfx90a_reaches_scratch_through_its_descriptor() -> None:
    """Here the descriptor is made by hand; a scalar offset counts bytes of all 64 lanes."""
    table = np.array([0, 0, 0xFFFFFFFF, 1 << 23], np.uint32)
    data, out = np.arange(256, dtype=np.uint32), np.zeros((2, 64), np.uint32)
    body = f"""
{load4("gfx90a")}
	global_load_dword v4, v1, s[10:11]
	v_mov_b32_e32 v6, 4
	buffer_store_dword v4, off, s[20:23], 0 offset:8
	s_movk_i32 s24, {8 * 64}
	buffer_store_dword v1, off, s[20:23], s24 offset:4
	buffer_load_dwordx2 v[4:5], v6, s[20:23], 0 offen offset:4
{spill(4, 2)}"""
    run("gfx90a", body, table, data, out, scratch=16)
    assert np.array_equal(out[0], data[:64])
    assert np.array_equal(out[1], np.arange(64) * 4)


@pytest.mark.parametrize("target", [*swept(TARGETS), WIDE])
def test_scalar_loads(target: str) -> None:
    lanes = lanes_of(target)
    data = np.random.default_rng(1).integers(0, 1 << 32, 64, dtype=np.uint32)
    table = descriptor(data, 24, target=target)
    names = ("b512", "b32", "b64") if lanes == 32 else ("dwordx16", "dword", "dwordx2")
    moves = "\n".join(f"\tv_mov_b32_e32 v{4 + i}, s{32 + i}" for i in range(20))
    out = np.zeros((20, lanes), np.uint32)
    stores = "\n".join(
        f"\tglobal_store_dword v1, v{4 + row}, s[12:13] offset:{4 * lanes * row}"
        if row < 14
        else f"\tglobal_store_dword v3, v{4 + row}, s[12:13] offset:{4 * lanes * (row - 14)}"
        for row in range(20)
    )
    body = f"""
{load4(target)}
	s_movk_i32 s24, 0x10
	s_load_{names[0]} s[32:47], s[10:11], 0x8
	s_load_{names[1]} s48, s[10:11], s24
	s_buffer_load_{names[1]} s49, s[20:23], s24
	s_buffer_load_{names[2]} s[50:51], s[20:23], 0x14
{moves}
	s_movk_i32 s24, {4 * lanes * 14:#x}
	v_mov_b32_e32 v3, s24
	v_or_b32_e32 v3, v3, v1
{stores}"""
    if lanes == 64:
        body = body.replace("v_or_b32_e32", "v_add_u32_e32")
    else:
        body = body.replace("v_or_b32_e32", "v_add_nc_u32_e32")
    run(target, body, table, data, out)
    wanted = [*data[2:18], data[4], data[4], data[5], 0]
    assert np.array_equal(out[:, 5], np.array(wanted, np.uint32))


@pytest.mark.parametrize("suffix", ["u8", "i8", "u16", "i16"])
def test_scalar_loads_of_less_than_a_dword(suffix: str) -> None:
    data = np.array([0xFEDCBA98], np.uint32)
    out = np.zeros((1, 32), np.uint32)
    body = f"\ts_load_{suffix} s20, s[8:9], 0x1\n\tv_mov_b32_e32 v4, s20\n{spill(4, 1)}"
    run("gfx1201", body, data, data, out)
    kind = {"u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2"}[suffix]
    raw = data.view(np.uint8)[1 : 1 + int(kind[1])].copy().view(kind)
    assert out[0, 0] == raw.astype(np.int64).astype(np.uint32)[0]


@pytest.mark.parametrize("name", ["s_memtime", "s_memrealtime"])
def test_clocks_advance(name: str) -> None:
    out = np.zeros((4, 64), np.uint32)
    moves = "\n".join(f"\tv_mov_b32_e32 v{4 + i}, s{20 + i}" for i in range(4))
    body = f"\t{name} s[20:21]\n\t{name} s[22:23]\n{moves}\n{spill(4, 4)}"
    run("gfx942", body, out, out, out)
    first, second = (int(out[i, 0]) | int(out[i + 1, 0]) << 32 for i in (0, 2))
    assert 0 < first <= second


def test_the_time_by_message() -> None:
    out = np.zeros((2, 32), np.uint32)
    body = f"""
	s_sendmsg_rtn_b64 s[20:21], sendmsg(MSG_RTN_GET_REALTIME)
	v_mov_b32_e32 v4, s20
	v_mov_b32_e32 v5, s21
{spill(4, 2, lanes=32)}"""
    run("gfx1100", body, out, out, out)
    assert out.any()
    with pytest.raises(Unsupported, match="message"):
        run("gfx1100", "\ts_sendmsg_rtn_b32 s20, sendmsg(MSG_RTN_GET_DOORBELL)", out)


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_loads_to_lds(target: str) -> None:
    data = np.arange(64 * 8, dtype=np.uint32)
    table = descriptor(data, 40 * 4, flags=0x27000)
    out = np.zeros((2, 64), np.uint32)
    body = f"""
{load4(target)}
	s_movk_i32 m0, 0x40
	v_mov_b32_e32 v3, 7
	ds_write_b32 v1, v3 offset:320
	buffer_load_dword v1, s[20:23], 0 offen lds
	s_movk_i32 m0, 0x240
	global_load_lds_dword v1, s[10:11] offset:16
	ds_read_b32 v4, v1 offset:64
	ds_read_b32 v5, v1 offset:592
{spill(4, 2)}"""
    run(target, body, table, data, out, lds=1024)
    lanes = np.arange(64)
    assert np.array_equal(out[0], np.where(lanes < 40, lanes, 0))
    assert np.array_equal(out[1], lanes + 4)


def test_wide_loads_to_lds_are_bounded_dword_by_dword() -> None:
    data = np.arange(1, 257, dtype=np.uint32)
    table, out = descriptor(data, 4 * 42, flags=0x27000), np.zeros((64, 4), np.uint32)
    body = f"""
{load4("gfx950")}
	s_mov_b32 m0, 0
	v_lshlrev_b32_e32 v3, 4, v0
	buffer_load_dwordx4 v3, s[20:23], 0 offen lds
	ds_read_b128 v[4:7], v3
	global_store_dwordx4 v3, v[4:7], s[12:13]"""
    run("gfx950", body, table, data, out, lds=1024)
    assert np.array_equal(out.ravel(), np.where(np.arange(256) < 42, data, 0))


def test_wide_loads_to_lds_of_gfx950() -> None:
    data = np.arange(64 * 4, dtype=np.uint32)
    out = np.zeros((64, 4), np.uint32)
    body = """
	s_mov_b32 m0, 0x10000
	v_lshlrev_b32_e32 v3, 4, v0
	v_add_u32_e32 v2, 0x10000, v3
	global_load_lds_dwordx4 v3, s[8:9]
	ds_read_b128 v[4:7], v2
	global_store_dwordx4 v3, v[4:7], s[10:11]"""
    run("gfx950", body, data, out, lds=0x10000 + 1024)
    assert np.array_equal(out.ravel(), data)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("kind", ["ubyte", "sbyte", "ushort", "sshort"])
def test_loads_of_less_than_a_dword_to_lds(target: str, kind: str) -> None:
    """Every lane writes a dword, four bytes after the lane before; the last 24 lanes are out of
    the buffer's bounds."""
    element = np.dtype({"ubyte": "u1", "sbyte": "i1", "ushort": "u2", "sshort": "i2"}[kind])
    size = element.itemsize
    data = np.random.default_rng(3).integers(0, 256, 64 * size + 8, dtype=np.uint8)
    table = descriptor(data, 40 * size, flags=0x27000)
    out = np.zeros((2, 64), np.uint32)
    to_lds = f"global_load_{kind} v3, s[10:11] offset:4 lds"
    if target != "gfx90a":
        to_lds = f"global_load_lds_{kind} v3, s[10:11] offset:4"
    body = f"""
{load4(target)}
	v_mov_b32_e32 v4, -1
	ds_write_b32 v1, v4 offset:64
	ds_write_b32 v1, v4 offset:512
	v_lshlrev_b32_e32 v3, {size // 2}, v0
	s_movk_i32 m0, 0x40
	buffer_load_{kind} v3, s[20:23], 0 offen lds
	s_movk_i32 m0, 0x1fc
	{to_lds}
	ds_read_b32 v4, v1 offset:64
	ds_read_b32 v5, v1 offset:512
{spill(4, 2)}"""
    run(target, body, table, data, out, lds=1024)
    values = data.view(element).astype(np.int64).astype(np.uint32)
    assert np.array_equal(out[0], np.where(np.arange(64) < 40, values[:64], 0))
    assert np.array_equal(out[1], values[4 // size : 64 + 4 // size])


def test_loads_of_three_dwords_to_lds_leave_every_fourth_dword() -> None:
    data, out = np.arange(1, 193, dtype=np.uint32), np.zeros((64, 4), np.uint32)
    body = """
	s_mov_b32 m0, 0
	v_lshlrev_b32_e32 v2, 4, v0
	v_mov_b32_e32 v4, 7
	ds_write_b32 v2, v4 offset:12
	v_mul_u32_u24_e32 v3, 12, v0
	global_load_lds_dwordx3 v3, s[8:9]
	ds_read_b128 v[4:7], v2
	global_store_dwordx4 v2, v[4:7], s[10:11]"""
    run("gfx950", body, data, out, lds=1024)
    assert np.array_equal(out[:, :3], data.reshape(64, 3))
    assert (out[:, 3] == 7).all()
