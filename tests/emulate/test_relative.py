"""Registers with computed numbers, against arrays indexed the same way.

Source: AMD instruction set architecture guides, "V_MOVRELS_B32", "S_MOVRELS_B32", "VGPR indexing".
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import masked, run, whole
from wavecast.emulate.errors import ExecutionError, Unsupported

_FILL = "".join(f"\tv_mov_b32_e32 v{8 + i}, {100 + i}\n" for i in range(8))
_SCALARS = "".join(f"\ts_movk_i32 s{20 + i}, {100 + i}\n" for i in range(8))


def _rows(target: str, body: str, count: int = 8) -> list[int]:
    """Lane 1 of v8 to v15 after the body."""
    out = np.zeros(64 * count, np.uint32)
    stores = "".join(
        f"\tglobal_store_dword v1, v{8 + i}, s[8:9] offset:{256 * i}\n" for i in range(count)
    )
    run(target, f"{_FILL}{_SCALARS}{body}{whole(target)}{stores}", out)
    return out.reshape(count, 64)[:, 1].tolist()


START = [100, 101, 102, 103, 104, 105, 106, 107]


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("index", [0, 1, 5])
def test_moves_relative_to_m0(target: str, index: int) -> None:
    move = f"\ts_mov_b32 m0, {index}\n"
    found = _rows(target, f"{move}\tv_movrels_b32_e32 v8, v10\n")
    assert found == [START[2 + index], *START[1:]]
    found = _rows(target, f"{move}\tv_movreld_b32_e32 v10, v15\n")
    assert found[2 + index] == 107
    assert [x for i, x in enumerate(found) if i != 2 + index] == [
        x for i, x in enumerate(START) if i != 2 + index
    ]
    if index < 2:
        found = _rows(target, f"{move}\tv_movrelsd_b32_e32 v8, v9\n")
        assert found[index] == START[1 + index]


def test_two_offsets() -> None:
    found = _rows("gfx1100", "\ts_mov_b32 m0, 0x30001\n\tv_movrelsd_2_b32_e32 v8, v9\n")
    assert found == [*START[:3], 102, *START[4:]]


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("index", [0, 3, 5])
def test_index_mode(target: str, index: int) -> None:
    on = f"\ts_mov_b32 s2, {index}\n\ts_set_gpr_idx_on s2, gpr_idx({{}})\n"
    off = "\ts_set_gpr_idx_off\n"
    found = _rows(target, f"{on.format('SRC0')}\tv_mov_b32_e32 v8, v10\n{off}")
    assert found == [START[2 + index], *START[1:]]
    found = _rows(target, f"{on.format('DST')}\tv_mov_b32_e32 v10, 5\n{off}")
    assert found == [*START[: 2 + index], 5, *START[3 + index :]]


def test_only_active_lanes_are_written() -> None:
    body = f"{masked('gfx1100', 1)}\ts_mov_b32 m0, 4\n\tv_movrels_b32_e32 v8, v8\n"
    assert _rows("gfx1100", body) == START


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("index", [0, 2, 6])
def test_scalar_moves(target: str, index: int) -> None:
    shown = "\tv_mov_b32_e32 v8, s2\n\tv_mov_b32_e32 v9, s3\n"
    move = f"\ts_mov_b32 s3, 0\n\ts_mov_b32 m0, {index}\n"
    found = _rows(target, f"{move}\ts_movrels_b32 s2, s20\n{shown}")
    assert found[0] == START[index]
    found = _rows(target, f"{move}\ts_movrels_b64 s[2:3], s[20:21]\n{shown}")
    assert found[:2] == START[index : index + 2]
    last = f"\tv_mov_b32_e32 v8, s{20 + index}\n\tv_mov_b32_e32 v9, s27\n"
    assert _rows(target, f"{move}\ts_movreld_b32 s20, s27\n{last}")[:2] == [107, 107]


def test_a_register_the_program_has_not() -> None:
    with pytest.raises(ExecutionError, match="a register the program has not"):
        _rows("gfx1100", "\ts_movk_i32 m0, 0x200\n\tv_movrels_b32_e32 v8, v10\n")


@pytest.mark.parametrize("index", [0, 1, 3])
@pytest.mark.parametrize("fields", ["SRC0", "SRC1", "DST", "SRC0, DST", "SRC0, SRC1, DST"])
def test_any_operand_in_index_mode(fields: str, index: int) -> None:
    """v8 + v10 -> v12, those in `fields` moved; inactive lanes stay."""
    moved = {name: index * (name in fields.split(", ")) for name in ("SRC0", "SRC1", "DST")}
    expected = list(START)
    expected[4 + moved["DST"]] = START[moved["SRC0"]] + START[2 + moved["SRC1"]]
    on = f"\ts_mov_b32 s2, {index}\n\ts_set_gpr_idx_on s2, gpr_idx({fields})\n"
    body = f"{on}\tv_add_u32_e32 v12, v8, v10\n\ts_set_gpr_idx_off\n"
    assert _rows("gfx942", body) == expected
    assert _rows("gfx942", masked("gfx942", 1) + body) == START


@pytest.mark.parametrize("index", [0, 2])
def test_a_lane_written_in_index_mode(index: int) -> None:
    on = f"\ts_mov_b32 s2, {index}\n\ts_set_gpr_idx_on s2, gpr_idx(DST)\n"
    body = f"{on}\tv_writelane_b32 v9, s20, 1\n\ts_set_gpr_idx_off\n"
    expected = list(START)
    expected[1 + index] = 100
    assert _rows("gfx942", body) == expected


@pytest.mark.parametrize(
    "instruction", ["v_add_u32_e32 v9, v9, v10", "v_add_f64 v[8:9], v[10:11], 1.0"]
)
def test_what_index_mode_refuses(instruction: str) -> None:
    body = f"\ts_set_gpr_idx_on s2, gpr_idx(SRC0)\n\t{instruction}\n"
    with pytest.raises(Unsupported, match="in index mode"):
        _rows("gfx942", f"{body}\ts_set_gpr_idx_off\n")


@pytest.mark.parametrize("bit", [0, 1])
def test_vector_instructions_are_skipped(bit: int) -> None:
    """Those between, of lanes and of memory; scalar ones are executed."""
    body = f"""
	s_movk_i32 s3, {bit << 5}
	s_setvskip s3, 5
	v_mov_b32_e32 v8, 1
	global_load_dword v9, v1, s[8:9]
	s_movk_i32 s3, 7
	s_waitcnt vmcnt(0)
	s_setvskip 0, 0
	v_mov_b32_e32 v10, s3
"""
    expected = [100, 101, 7] if bit else [1, 0, 7]
    assert _rows("gfx942", body) == [*expected, *START[3:]]


@pytest.mark.parametrize(
    "instruction", ["v_cmp_eq_u32_e32 vcc, 1, v8", "s_cbranch_scc0 next\nnext:"]
)
def test_what_cannot_be_skipped(instruction: str) -> None:
    body = f"\ts_setvskip s20, 5\n\t{instruction}\n\ts_setvskip 0, 0\n"
    with pytest.raises(Unsupported, match="skipped"):
        _rows("gfx942", body)
