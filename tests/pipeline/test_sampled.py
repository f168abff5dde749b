"""`explain --sample`: times from executed samples, also where the code alone does not tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.pipeline import ExplainOptions, explain_path, select
from wavecast.pipeline.result import ExplainReport

pytest.importorskip("torch")
pytest.importorskip("triton")

SCRIPT = """
import torch, triton
import triton.language as tl

@triton.jit
def ragged(x, lengths, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, tl.load(lengths + row), BLOCK):
        total += tl.load(x + row * 65536 + start + tl.arange(0, BLOCK))
    tl.store(out + row, tl.sum(total))

rows, length = 64, {length}
x = torch.ones(rows, 65536, device="cuda")
lengths = torch.full((rows,), length, dtype=torch.int32, device="cuda")
out = torch.zeros(rows, device="cuda")
ragged[(rows,)](x, lengths, out, BLOCK=256)
"""


def explained(folder: Path, length: int, *, sample: bool) -> ExplainReport:
    script = folder / "ragged.py"
    script.write_text(SCRIPT.format(length=length))
    return explain_path(script, select(["mi300x", "mi325x"]), ExplainOptions(sample=sample))


def test_data_decides_how_long_and_a_sample_tells(tmp_path: Path) -> None:
    plain = explained(tmp_path, 8192, sample=False)
    assert {e.predicted.prediction for e in plain.explanations} == {None}
    assert all("depends on data" in e.predicted.why_not for e in plain.explanations)
    times = []
    for length in (8192, 65536):
        report = explained(tmp_path, length, sample=True)
        found = [e.predicted.prediction for e in report.explanations]
        assert [p.device for p in found if p is not None] == ["mi300x", "mi325x"]
        assert {p.fidelity for p in found if p is not None} == {"executed"}
        times.append(min(p.seconds for p in found if p is not None))
    assert times[1] > 3 * times[0]
