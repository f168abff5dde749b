"""Addresses of memory instructions: patterns, cache lines, bank conflicts."""

from __future__ import annotations

import pytest

from tests.analyze.values.support import Kernel
from wavecast import arch
from wavecast.analyze.values.access import classify
from wavecast.analyze.values.banks import conflict_ways, phases

POINTER = "s_load_dwordx2 s[4:5], s[0:1], 0x0\n"


def load(shift: int, instruction: str = "global_load_dword v2, v1, s[4:5]") -> Kernel:
    body = f"{POINTER}v_lshlrev_b32_e32 v1, {shift}, v0\n{instruction}"
    return Kernel(body, pointers=("x",))


@pytest.mark.parametrize("grid", [(1, 1, 1), None])
@pytest.mark.parametrize(
    ("shift", "instruction", "pattern", "stride", "lines", "ideal"),
    [
        (2, "global_load_dword v2, v1, s[4:5]", "contiguous", 4, 2, 2),
        (4, "global_load_dwordx4 v[4:7], v1, s[4:5]", "contiguous", 16, 8, 8),
        (4, "global_load_dword v2, v1, s[4:5]", "strided", 16, 8, 2),
        (7, "global_load_dword v2, v1, s[4:5]", "strided", 128, 64, 2),
    ],
)
def test_patterns_and_lines(
    grid, shift: int, instruction: str, pattern: str, stride: int, lines: int, ideal: int
) -> None:
    access = load(shift, instruction).access("global_load", grid)
    assert (access.pattern, access.stride, access.argument) == (pattern, stride, "x")
    assert (access.lines(128), access.ideal_lines(128)) == (lines, ideal)


@pytest.mark.parametrize(
    ("instruction", "stride"),
    [
        ("global_load_b32 v2, v1, s[4:5] scale_offset", 16),
        ("global_load_b64 v[2:3], v1, s[4:5] scale_offset", 32),
        ("global_store_b128 v1, v[4:7], s[4:5] scale_offset", 64),
        ("global_load_b64 v[2:3], v1, s[4:5]", 4),
    ],
)
def test_offsets_in_units_of_the_access(instruction: str, stride: int) -> None:
    """gfx1250: lane n takes unit 4n."""
    body = f"""s_load_b64 s[4:5], s[0:1], 0x8
v_lshlrev_b32_e32 v1, 2, v0
{instruction}"""
    kernel = Kernel(body, "gfx1250", lanes=32, pointers=("x", "y"), threads=32)
    access = kernel.access(instruction.split()[0].rpartition("_")[0])
    assert (access.argument, access.stride) == ("y", stride)


def test_an_addend_whose_high_half_nobody_wrote() -> None:
    """Compilers multiply and add in 64 bits and use the low 32."""
    body = f"""{POINTER}v_lshlrev_b32_e32 v6, 2, v0
v_mad_u64_u32 v[8:9], s[8:9], v0, 4, v[6:7]
global_load_dword v2, v8, s[4:5]"""
    access = Kernel(body, pointers=("x",)).access("global_load")
    assert (access.pattern, access.stride) == ("strided", 8)


@pytest.mark.parametrize("grid", [(1, 1, 1), None])
def test_one_address_for_all_lanes(grid) -> None:
    body = f"{POINTER}v_mov_b32_e32 v1, 0\nglobal_load_dword v2, v1, s[4:5]"
    access = Kernel(body, pointers=("x",)).access("global_load", grid)
    assert (access.pattern, access.stride, access.lines(128)) == ("broadcast", 0, 1)


@pytest.mark.parametrize("grid", [(8, 1, 1), None])
def test_sixty_four_bit_addresses_with_carry(grid) -> None:
    """base + workgroup * 256 + lane * 4, the way gfx90a adds 64 bits."""
    body = f"""{POINTER}s_lshl_b32 s6, s2, 8
v_lshl_or_b32 v1, v0, 2, s6
v_mov_b32_e32 v3, s5
v_add_co_u32_e32 v2, vcc, s4, v1
v_addc_co_u32_e32 v3, vcc, 0, v3, vcc
global_load_dword v4, v[2:3], off offset:16"""
    access = Kernel(body, target="gfx90a", pointers=("x",)).access("global_load", grid)
    assert (access.pattern, access.argument) == ("contiguous", "x")
    assert access.exact == (grid is not None)
    if access.exact:
        assert access.offsets is not None
        assert access.offsets[:2] == (16, 20)


def test_an_unknown_row_stride_leaves_the_pattern_unknown() -> None:
    body = f"""{POINTER}s_load_dword s6, s[0:1], 0x8
v_mul_lo_u32 v1, v0, s6
global_load_dword v2, v1, s[4:5]"""
    kernel = Kernel(body, pointers=("x",), scalars={"stride": 512})
    assert kernel.access("global_load", None).pattern == "unknown"
    known = kernel.access("global_load")
    assert (known.pattern, known.stride) == ("strided", 512)


def test_data_as_index_is_unknown() -> None:
    body = f"""{POINTER}v_lshlrev_b32_e32 v1, 2, v0
global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
v_lshlrev_b32_e32 v2, 2, v2
global_load_dword v3, v2, s[4:5] offset:4"""
    access = Kernel(body, pointers=("x",)).access("global_load_dword v3")
    assert (access.pattern, access.argument, access.lines(128)) == ("unknown", "x", None)


def test_lanes_beyond_a_buffer_are_off() -> None:
    """Masked lanes get an offset no buffer reaches."""
    body = f"""{POINTER}s_load_dword s6, s[0:1], 0x8
s_mov_b32 s7, 0x27000
s_and_b32 s5, s5, 0xffff
v_lshlrev_b32_e32 v1, 2, v0
v_mov_b32_e32 v2, 0x80000000
v_cmp_gt_u32_e32 vcc, 10, v0
v_cndmask_b32_e32 v1, v2, v1, vcc
buffer_load_dword v3, v1, s[4:7], 0 offen"""
    kernel = Kernel(body, pointers=("x",), scalars={"size": 4096})
    access = kernel.access("buffer_load")
    assert access.offsets is not None
    assert sum(offset is not None for offset in access.offsets) == 10
    assert (access.pattern, access.argument, access.lines(128)) == ("contiguous", "x", 1)


def test_work_item_ids_share_a_register() -> None:
    """x in bits 9:0, y in bits 19:10: rows of 8 work-items, 1 KiB apart."""
    body = f"""{POINTER}v_and_b32_e32 v1, 0x3ff, v0
v_bfe_u32 v2, v0, 10, 10
v_lshlrev_b32_e32 v2, 10, v2
v_lshl_or_b32 v1, v1, 2, v2
global_load_dword v3, v1, s[4:5]"""
    kernel = Kernel(body, pointers=("x",))
    launch = kernel.launch()
    from dataclasses import replace

    from wavecast.analyze import values

    launch = replace(launch, block=(8, 8, 1))
    found = values.evaluate(kernel.program, kernel.descriptor, kernel.code, launch)
    access = next(a for a in found.accesses.values() if a.pattern == "rows")
    assert access.row_bytes == 32
    assert access.offsets is not None
    assert access.offsets[:9] == (0, 4, 8, 12, 16, 20, 24, 28, 1024)
    assert access.lines(128) == 8


def lds(shift: int, instruction: str, target: str = "gfx942") -> float | None:
    body = f"v_lshlrev_b32_e32 v1, {shift}, v0\n{instruction}"
    lanes = 64 if target.startswith("gfx9") else 32
    device = {"gfx942": "mi300x", "gfx950": "mi355x", "gfx1201": "rx9070xt"}[target]
    name = instruction.split()[0]
    return Kernel(body, target=target, lanes=lanes).access(name).conflict_ways(arch.load(device))


@pytest.mark.parametrize(
    ("shift", "instruction", "target", "ways"),
    [
        (2, "ds_read_b32 v2, v1", "gfx942", 1),
        (3, "ds_read_b32 v2, v1", "gfx942", 2),
        (7, "ds_read_b32 v2, v1", "gfx942", 32),
        (4, "ds_read_b128 v[4:7], v1", "gfx942", 1),
        (4, "ds_write_b128 v1, v[4:7]", "gfx942", 1),
        (4, "ds_read_b128 v[4:7], v1", "gfx950", 1),
        (3, "ds_read_b64 v[4:5], v1", "gfx950", 1),
        (3, "ds_read2_b32 v[4:5], v1 offset1:1", "gfx942", 2),
    ],
)
def test_bank_conflicts(shift: int, instruction: str, target: str, ways: float) -> None:
    assert lds(shift, instruction, target) == ways


def test_rows_of_128_bytes_conflict_in_the_documented_groups() -> None:
    """Eight lanes per group, each 128 bytes apart: all on the same four banks."""
    assert lds(7, "ds_read_b128 v[4:7], v1") == 8


def test_the_same_address_is_served_once() -> None:
    groups = phases("gfx942", 4, False, 64, 32)
    assert conflict_ways([128] * 64, 4, groups) == (1.0, 1)
    assert conflict_ways([None] * 64, 4, groups) is None


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1201"])
@pytest.mark.parametrize("width", [4, 8, 12, 16])
@pytest.mark.parametrize("write", [False, True])
def test_phases_serve_every_lane_once(target: str, width: int, write: bool) -> None:
    lanes = 64 if target.startswith("gfx9") else 32
    groups = phases(target, width, write, lanes, 64 if target == "gfx950" else 32)
    served = [lane for group in groups.groups for lane in group]
    assert sorted(served) == list(range(lanes))


@pytest.mark.parametrize(
    ("offsets", "width", "expected"),
    [
        ([0, 4, 8, 12], 4, ("contiguous", 4)),
        ([0, None, 8, 12], 4, ("contiguous", 4)),
        ([12, 8, 4, 0], 4, ("strided", -4)),
        ([0, 4, 4, 8], 4, ("rows", None)),
        ([0, 4, 64, 68, 128, 132], 4, ("rows", None)),
        ([0, 4, 64, 68, 72], 4, ("irregular", None)),
        ([0, 64, 4, 72], 4, ("irregular", None)),
        ([5, 5, 5], 4, ("broadcast", 0)),
        ([None, 64], 4, ("broadcast", 0)),
    ],
)
def test_classification(offsets, width: int, expected) -> None:
    assert classify(offsets, width) == expected


def test_addresses_written_under_a_mask_hold_while_it_lasts() -> None:
    """Only four lanes are active; the register held nothing before."""
    body = """v_cmp_gt_u32_e32 vcc, 4, v0
s_and_saveexec_b64 s[6:7], vcc
v_lshlrev_b32_e32 v9, 2, v0
ds_write_b32 v9, v1
s_or_b64 exec, exec, s[6:7]
ds_write_b16 v9, v1"""
    kernel = Kernel(body)
    inside = kernel.access("ds_write_b32")
    assert inside.offsets is not None
    assert inside.offsets[:5] == (0, 4, 8, 12, None)
    assert kernel.access("ds_write_b16").pattern == "unknown"
