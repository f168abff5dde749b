"""Atomics on global memory, buffers, flat addresses and LDS against numpy; lanes in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.emulate.memory_support import TARGETS, lanes_of, masked, run, spill, whole
from tests.targets import swept
from wavecast.emulate.errors import ExecutionError

pytestmark = pytest.mark.llvm

Change = Callable[[int, int, int], int]


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


OPERATIONS: dict[str, tuple[str, Change]] = {
    "add": ("add_u", lambda old, data, bits: old + data),
    "sub": ("sub_u", lambda old, data, bits: old - data),
    "smin": ("min_i", lambda old, data, bits: min(old, data, key=lambda v: signed(v, bits))),
    "smax": ("max_i", lambda old, data, bits: max(old, data, key=lambda v: signed(v, bits))),
    "umin": ("min_u", lambda old, data, bits: min(old, data)),
    "umax": ("max_u", lambda old, data, bits: max(old, data)),
    "and": ("and_b", lambda old, data, bits: old & data),
    "or": ("or_b", lambda old, data, bits: old | data),
    "xor": ("xor_b", lambda old, data, bits: old ^ data),
    "swap": ("swap_b", lambda old, data, bits: data),
    "inc": ("inc_u", lambda old, data, bits: 0 if old >= data else old + 1),
    "dec": ("dec_u", lambda old, data, bits: data if old == 0 or old > data else old - 1),
}


def spelled(target: str, name: str, bits: int, space: str) -> str:
    """The mnemonic of an operation in the words of the target."""
    if space == "lds":
        new = OPERATIONS[name][0]
        if new == "swap_b":
            new = "storexchg_rtn_b" if lanes_of(target) == 32 else "wrxchg_rtn_b"
            return f"ds_{new}{bits}"
        stem, letter = new.split("_")
        return f"ds_{stem}_rtn_{letter}{bits}"
    if lanes_of(target) == 64:
        return f"{space}_atomic_{name}{'_x2' if bits == 64 else ''}"
    return f"{space}_atomic_{OPERATIONS[name][0]}{bits}"


def returning(target: str) -> str:
    if target == "gfx90a" or target == "gfx1100":
        return "glc"
    return "th:TH_ATOMIC_RETURN" if target == "gfx1201" else "sc0"


def sample(bits: int, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << bits - 1, count, dtype=np.uint64) * 2 + rng.integers(0, 2, count)
    values[::3] = rng.integers(0, 5, len(values[::3]))
    return values.astype(np.uint32 if bits == 32 else np.uint64)


def replay(
    memory: np.ndarray, where: np.ndarray, data: np.ndarray, change: Change, bits: int
) -> np.ndarray:
    """Apply the operation lane after lane; the old values."""
    olds = []
    for place, value in zip(where, data, strict=True):
        old = int(memory[place])
        olds.append(old)
        memory[place] = change(old, int(value), bits) & (1 << bits) - 1
    return np.array(olds, memory.dtype)


def body_of(target: str, name: str, bits: int, space: str) -> str:
    """Lanes change memory at the offsets of the first argument with their data."""
    lanes, returns = lanes_of(target), returning(target)
    wide = bits == 64
    data = "v[4:5]" if wide else "v4"
    load = "dwordx2" if wide else "dword"
    mnemonic = spelled(target, name, bits, space)
    fetch = f"""
	v_lshlrev_b32_e32 v3, {3 if wide else 2}, v0
	global_load_dword v2, v1, s[8:9]
	global_load_{load} {data}, v3, s[10:11]"""
    old = "v[8:9]" if wide else "v8"
    if space == "lds":
        word = "store" if lanes == 32 else "write"
        read = "load" if lanes == 32 else "read"
        act = f"""
	global_load_{load} v[10:11], v3, s[14:15]
	ds_{word}_b{bits} v3, v[10:11]
	{mnemonic} {old}, v2, {data}
	ds_{read}_b{bits} v[10:11], v3
	global_store_{load} v3, v[10:11], s[14:15]"""
        act = act if wide else act.replace("v[10:11]", "v10")
    elif space == "global":
        act = f"\t{mnemonic} {old}, v2, {data}, s[14:15] {returns}"
    else:
        carry = "v_addc_co_u32" if lanes == 64 else "v_add_co_ci_u32"
        suffix = "_e32" if lanes == 64 else ""
        mask = "vcc" if lanes == 64 else "vcc_lo"
        act = f"""
	v_mov_b32_e32 v6, s14
	v_mov_b32_e32 v7, s15
	v_add_co_u32{suffix} v6, {mask}, v6, v2
	{carry}_e32 v7, {mask}, 0, v7, {mask}
	{mnemonic} {old}, v[6:7], {data} {returns}"""
    return f"{fetch}\n{act}\n\tglobal_store_{load} v3, {old}, s[12:13]"


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("space", ["global", "lds", "flat"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_integer_operations(target: str, space: str, name: str) -> None:
    lanes = lanes_of(target)
    for bits in (32, 64):
        memory, data = sample(bits, lanes, 1), sample(bits, lanes, 2)
        where = np.random.default_rng(3).integers(0, 9, lanes, dtype=np.uint32)
        out, wanted = np.zeros_like(data), memory.copy()
        olds = replay(wanted, where, data, OPERATIONS[name][1], bits)
        body = body_of(target, name, bits, space)
        run(target, body, where * (bits // 8), data, out, memory, lds=1024)
        assert np.array_equal(out, olds)
        assert np.array_equal(memory, wanted)


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("space", ["global", "lds"])
def test_compare_and_swap(target: str, space: str) -> None:
    lanes = lanes_of(target)
    memory = np.arange(lanes, dtype=np.uint32) % 3
    before = memory.copy()
    out, new, old = np.zeros(lanes, np.uint32), "v4", "v5"
    suffix = "cmpswap_b32" if lanes == 32 else "cmpswap"
    if space == "global":
        act = f"\tglobal_atomic_{suffix} v8, v1, v[4:5], s[14:15] {returning(target)}"
    else:
        name = "ds_cmpstore_rtn_b32" if lanes == 32 else "ds_cmpst_rtn_b32"
        word = "store" if lanes == 32 else "write"
        read = "load" if lanes == 32 else "read"
        operands = f"{new}, {old}" if lanes == 32 else f"{old}, {new}"
        act = f"""
	global_load_dword v9, v1, s[14:15]
	ds_{word}_b32 v1, v9
	{name} v8, v1, {operands}
	ds_{read}_b32 v9, v1
	global_store_dword v1, v9, s[14:15]"""
    body = f"""
	v_mov_b32_e32 v4, 77
	v_mov_b32_e32 v5, 1
{act}
	global_store_dword v1, v8, s[12:13]"""
    run(target, body, memory, memory, out, memory, lds=256)
    assert np.array_equal(out, before)
    assert np.array_equal(memory, np.where(before == 1, 77, before))


FLOATS = [
    ("gfx90a", "add_f32", np.float32), ("gfx90a", "add_f64", np.float64),
    ("gfx942", "add_f32", np.float32), ("gfx950", "max_f64", np.float64),
    ("gfx942", "min_f64", np.float64), ("gfx1100", "add_f32", np.float32),
    ("gfx1100", "max_f32", np.float32), ("gfx1201", "min_num_f32", np.float32),
]  # fmt: skip


@pytest.mark.parametrize(("target", "name", "kind"), FLOATS)
def test_floating_point_operations(target: str, name: str, kind: type) -> None:
    lanes, wide = lanes_of(target), kind is np.float64
    rng = np.random.default_rng(8)
    data, memory = rng.normal(size=lanes).astype(kind), rng.normal(size=4).astype(kind)
    wanted, out = memory.copy(), np.zeros(lanes, kind)
    change = {"add": np.add, "max": np.maximum, "min": np.minimum}[name.split("_")[0]]
    olds = []
    for lane in range(lanes):
        olds.append(wanted[lane % 4])
        wanted[lane % 4] = change(wanted[lane % 4], data[lane])
    load, shift = ("dwordx2", 3) if wide else ("dword", 2)
    value, old = ("v[4:5]", "v[8:9]") if wide else ("v4", "v8")
    body = f"""
	v_and_b32_e32 v2, 3, v0
	v_lshlrev_b32_e32 v2, {shift}, v2
	v_lshlrev_b32_e32 v3, {shift}, v0
	global_load_{load} {value}, v3, s[8:9]
	global_atomic_{name} {old}, v2, {value}, s[14:15] {returning(target)}
	global_store_{load} v3, {old}, s[12:13]"""
    run(target, body, data, data, out, memory)
    assert np.array_equal(out, np.array(olds, kind))
    assert np.array_equal(memory, wanted)


@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1201"])
@pytest.mark.parametrize("space", ["global", "lds"])
def test_packed_additions(target: str, space: str) -> None:
    torch = pytest.importorskip("torch")
    lanes = lanes_of(target)
    for name, kind in (("f16", torch.float16), ("bf16", torch.bfloat16)):
        generator = torch.Generator().manual_seed(1)
        data = torch.randn(lanes, 2, generator=generator).to(kind)
        memory = torch.randn(2, generator=generator).to(kind)
        wanted = memory.clone()
        for lane in range(lanes):
            wanted = wanted + data[lane]
        values = data.view(torch.int16).numpy().view(np.uint32).ravel().copy()
        result = memory.view(torch.int16).numpy().view(np.uint32).copy()
        act = f"\tglobal_atomic_pk_add_{name} v2, v4, s[14:15]"
        if space == "lds":
            word, read = ("store", "load") if lanes == 32 else ("write", "read")
            act = f"""
	global_load_dword v5, v2, s[14:15]
	ds_{word}_b32 v2, v5
	ds_pk_add_{name} v2, v4
	ds_{read}_b32 v5, v2
	global_store_dword v2, v5, s[14:15]"""
        body = f"""
	v_mov_b32_e32 v2, 0
	global_load_dword v4, v1, s[8:9]
{act}"""
        run(target, body, values, values, values, result, lds=64)
        assert result.view(np.uint16).tolist() == [
            int(v) & 0xFFFF for v in wanted.view(torch.int16)
        ]


@pytest.mark.parametrize("target", swept(TARGETS))
def test_buffer_atomics_beyond_the_records_do_nothing(target: str) -> None:
    lanes = lanes_of(target)
    memory, out = np.arange(lanes, dtype=np.uint32), np.zeros((1, lanes), np.uint32)
    base = memory.ctypes.data
    flags = 0x27000 if lanes == 64 else 0x31004000
    table = np.array([base & 0xFFFFFFFF, base >> 32, 4 * 10, flags], np.uint32)
    load = "s_load_b128" if lanes == 32 else "s_load_dwordx4"
    name = "buffer_atomic_add_u32" if lanes == 32 else "buffer_atomic_add"
    body = f"""
	{load} s[20:23], s[8:9], 0x0
	s_mov_b32 s24, 0
	v_mov_b32_e32 v4, 5
	{name} v4, v1, s[20:23], s24 offen {returning(target)}
	v_mov_b32_e32 v5, 1
	{name} v5, v1, s[20:23], s24 offen
{spill(4, 1)}"""
    run(target, body, table, memory, out)
    index = np.arange(lanes)
    assert np.array_equal(out[0], np.where(index < 10, index, 0))
    assert np.array_equal(memory, index + np.where(index < 10, 6, 0))


@pytest.mark.parametrize("target", swept(TARGETS))
def test_inactive_lanes_do_not_take_part(target: str) -> None:
    lanes = lanes_of(target)
    memory = np.zeros(1, np.uint32)
    name = "global_atomic_add_u32" if lanes == 32 else "global_atomic_add"
    body = f"""
	v_mov_b32_e32 v2, 0
	v_mov_b32_e32 v4, 1
{masked(target, 0x10F)}
	{name} v2, v4, s[8:9]
{whole(target)}"""
    run(target, body, memory)
    assert memory[0] == 5


def test_misaligned_atomics_fail() -> None:
    memory = np.zeros(4, np.uint32)
    body = "\tv_mov_b32_e32 v2, 2\n\tglobal_atomic_add v2, v0, s[8:9]"
    with pytest.raises(ExecutionError, match="lane 0"):
        run("gfx942", body, memory)


@pytest.mark.parametrize("name", ["add", "inc", "add_f32"])
def test_host_threads_lose_no_update(name: str) -> None:
    """Two threads change the same few places; nothing may get lost."""
    memory, groups = np.zeros(4, np.uint32), 2000
    body = f"""
	v_and_b32_e32 v2, 3, v0
	v_lshlrev_b32_e32 v2, 2, v2
	v_mov_b32_e32 v4, {"-1" if name == "inc" else "1.0" if name == "add_f32" else "1"}
	global_atomic_{name} v2, v4, s[8:9]"""
    run("gfx942", body, memory, groups=groups, host_threads=2)
    found = memory.view(np.float32) if name == "add_f32" else memory
    assert found.tolist() == [groups * 16] * 4
