"""Registers of the hardware by number, as inline assembly gives them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import TARGETS, lanes_of, run
from wavecast.emulate.errors import Unsupported


def _read(target: str, register: str) -> np.ndarray:
    out = np.full(lanes_of(target), 7, np.uint32)
    store = "global_store_dword" if lanes_of(target) == 64 else "global_store_b32"
    body = f"\ts_getreg_b32 s4, {register}\n\tv_mov_b32_e32 v4, s4\n\t{store} v1, v4, s[8:9]"
    run(target, body, out)
    return out


@pytest.mark.parametrize("target", TARGETS)
def test_where_a_wave_runs_is_the_first_place(target: str) -> None:
    number = 4 if target.startswith("gfx9") else 23
    assert not _read(target, f"hwreg({number}, 8, 8)").any()


@pytest.mark.parametrize("target", TARGETS)
def test_mode_by_number_is_mode_by_name(target: str) -> None:
    mode = "HW_REG_WAVE_MODE" if target == "gfx1201" else "HW_REG_MODE"
    assert (_read(target, "hwreg(1, 0, 8)") == _read(target, f"hwreg({mode}, 0, 8)")).all()


def test_a_number_that_stands_for_something_else() -> None:
    with pytest.raises(Unsupported, match="a read of 4"):
        _read("gfx1100", "hwreg(4, 8, 8)")
