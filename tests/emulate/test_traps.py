"""Traps end a launch and say so."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import TARGETS, run
from tests.targets import swept
from wavecast.emulate.errors import ExecutionError

_STORE = "\tv_mov_b32_e32 v2, 7\n\tglobal_store_dword v1, v2, s[8:9]\n"


@pytest.mark.parametrize("target", swept(TARGETS))
def test_trap_two_is_an_error(target: str) -> None:
    out = np.zeros(64, np.uint32)
    with pytest.raises(ExecutionError, match=r"s_trap 2.*gave up"):
        run(target, f"{_STORE}\ts_trap 2\n", out)
    assert out[0] == 7


def test_a_trap_not_reached_does_nothing() -> None:
    out = np.zeros(64, np.uint32)
    run("gfx942", f"{_STORE}\ts_mov_b32 s2, 0\n\ts_cmp_eq_u32 s2, 0\n\ts_cbranch_scc1 .Lend\n"
        "\ts_trap 2\n.Lend:\n", out)  # fmt: skip
    assert (out == 7).all()


def test_trap_three_waits_for_a_debugger_that_is_not_there() -> None:
    out = np.zeros(64, np.uint32)
    run("gfx1100", f"\ts_trap 3\n{_STORE}", out)
    assert (out[:32] == 7).all()
