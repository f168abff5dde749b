"""Scalar atomics of gfx9: one operation for the whole wave."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import run

OLD = 7


@pytest.mark.parametrize(
    ("name", "data", "result"),
    [
        ("inc", 9, 8),
        ("inc", 7, 0),
        ("dec", 9, 6),
        ("dec", 3, 3),
        ("add", 5, 12),
        ("sub", 5, 2),
        ("smax", -1, 7),
        ("umax", -1, 0xFFFFFFFF),
        ("swap", 4, 4),
        ("and", 3, 3),
    ],
)
def test_memory_and_the_old_value(name: str, data: int, result: int) -> None:
    memory, out = np.full(1, OLD, np.uint32), np.zeros(64, np.uint32)
    body = (
        f"\ts_mov_b32 s4, {data}\n\ts_atomic_{name} s4, s[8:9], 0x0 glc\n"
        "\ts_waitcnt lgkmcnt(0)\n\tv_mov_b32_e32 v2, s4\n\tv_lshlrev_b32_e32 v3, 2, v0\n"
        "\tglobal_store_dword v3, v2, s[10:11]\n"
    )
    run("gfx942", body, memory, out)
    assert memory[0] == result
    assert (out == OLD).all()


def test_without_glc_the_data_register_stays() -> None:
    memory, out = np.full(1, (1 << 40) + 5, np.uint64), np.zeros(64, np.uint32)
    body = (
        "\ts_mov_b64 s[4:5], 3\n\ts_atomic_add_x2 s[4:5], s[8:9], 0x0\n"
        "\ts_waitcnt lgkmcnt(0)\n\tv_mov_b32_e32 v2, s4\n\tv_lshlrev_b32_e32 v3, 2, v0\n"
        "\tglobal_store_dword v3, v2, s[10:11]\n"
    )
    run("gfx942", body, memory, out)
    assert memory[0] == (1 << 40) + 8
    assert (out == 3).all()


@pytest.mark.parametrize(("expected", "result"), [(7, 9), (8, 7)])
def test_compare_and_swap(expected: int, result: int) -> None:
    memory, out = np.full(1, OLD, np.uint32), np.zeros(64, np.uint32)
    body = (
        f"\ts_mov_b32 s4, 9\n\ts_mov_b32 s5, {expected}\n"
        "\ts_atomic_cmpswap s[4:5], s[8:9], 0x0 glc\n\ts_waitcnt lgkmcnt(0)\n"
        "\tv_mov_b32_e32 v2, s4\n\tv_lshlrev_b32_e32 v3, 2, v0\n"
        "\tglobal_store_dword v3, v2, s[10:11]\n"
    )
    run("gfx942", body, memory, out)
    assert memory[0] == result
    assert (out == OLD).all()
