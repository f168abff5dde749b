"""Thread traces: which instructions are compared, and with what."""

from __future__ import annotations

import pytest

from tests.calibration.support import importer
from wavecast.benchmarking.accuracy.cases import MeasuredFigure

pd = pytest.importorskip("pandas")


def test_rows_of_a_trace() -> None:
    frame = pd.DataFrame(
        [
            ("gfx942", "; Begin ATT ASM", 0, 0),
            ("gfx942", "v_add_u32_e32 v1, 1, v1", 10, 45),
            ("gfx942", "s_waitcnt lgkmcnt(0)", 10, 4000),
            ("gfx950", "v_exp_f32_e32 v1, v2", 0, 0),
            ("gfx950", "v_exp_f32_e32 v1, v2", 4, 40),
        ],
        columns=["arch", "instruction", "hitcount", "latency_cycles_total"],
    )
    cases = importer(frame.columns).cases(frame)
    figures = [case for case in cases if isinstance(case, MeasuredFigure)]
    label, add, wait, never, exp = figures
    assert (label.expected, label.reason) == (None, "the row is not an instruction")
    assert (add.kind, add.measured, add.expected, add.device) == ("issue valu", 4.5, 4, "mi300x")
    assert (wait.expected, never.expected) == (None, None)
    assert (exp.kind, exp.measured, exp.expected) == ("issue trans", 10.0, 8)
