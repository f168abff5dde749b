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


def test_other_instructions_in_index_mode_are_refused() -> None:
    body = "\ts_set_gpr_idx_on s2, gpr_idx(SRC0)\n\tv_add_u32_e32 v8, v9, v10\n"
    with pytest.raises(Unsupported, match="in index mode"):
        _rows("gfx942", f"{body}\ts_set_gpr_idx_off\n")
