"""Time by instruction, on a kernel whose loop waits for memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.pipeline import SourceOptions, explain_path, select
from wavecast.report.explain.instruction_times import instruction_times

EXAMPLE = Path(__file__).resolve().parents[3] / "examples/matmul.py"


@pytest.mark.torch
@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_instructions_are_those_of_the_lines_with_most_time(arch: str) -> None:
    (explanation,) = explain_path(EXAMPLE, select([arch]), SourceOptions()).explanations
    rows = instruction_times(explanation)
    assert list(rows) == sorted(rows, key=lambda row: -row.seconds)
    prediction = explanation.predicted.prediction
    assert prediction is not None
    assert sum(row.seconds for row in rows) <= prediction.seconds
    of_lines: dict[str, float] = {}
    for row in rows:
        name = str(row.location.outermost) if row.location else ""
        of_lines[name] = of_lines.get(name, 0.0) + row.seconds
    shares = {share.name: share.seconds for share in prediction.lines if share.kind == "line"}
    for name, seconds in of_lines.items():
        assert seconds <= shares.get(name, prediction.seconds) * 1.001
    assert all(0 < sum(part for _, part in row.causes) <= 1.001 for row in rows)
    assert any(row.executed and row.executed > 1 for row in rows)
