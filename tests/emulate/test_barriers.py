"""Split barriers: who signalled first, and barriers that are not the workgroup's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulate.memory_support import run
from wavecast.emulate.errors import ExecutionError, Unsupported

_ONE = (
    "\ts_barrier_signal_isfirst -1\n\ts_cselect_b32 s2, 1, 0\n\tv_mov_b32_e32 v{0}, s2\n"
    "\ts_barrier_wait -1\n"
)


def test_one_wave_of_four_signals_first() -> None:
    """At every barrier, in every workgroup."""
    out = np.zeros(256, np.uint32)
    body = (
        _ONE.format(2)
        + _ONE.format(3)
        + ("\tglobal_store_b32 v1, v2, s[8:9]\n\tglobal_store_b32 v1, v3, s[8:9] offset:512\n")
    )
    for _ in range(2):
        out[:] = 9
        run("gfx1201", body, out, threads=128, groups=3)
        waves = out.reshape(2, 4, 32)
        assert (waves == waves[:, :, :1]).all()
        assert (waves[:, :, 0].sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    "text",
    ["s_barrier_signal 1", "s_barrier_signal m0", "s_barrier_leave", "s_barrier_join -1"],
)
def test_other_barriers_are_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="barrier"):
        run("gfx1201", f"\t{text}\n", np.zeros(1, np.uint32))


def test_a_wait_needs_a_signal_of_its_own() -> None:
    twice = "\ts_barrier_signal -1\n\ts_barrier_wait -1\n"
    run("gfx1201", twice * 2, np.zeros(1, np.uint32), threads=128)
    with pytest.raises(ExecutionError, match="'s_barrier_wait -1' waits for a barrier the"):
        run("gfx1201", twice + "\ts_barrier_wait -1\n", np.zeros(1, np.uint32), threads=128)
