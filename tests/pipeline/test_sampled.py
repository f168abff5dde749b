"""`explain --sample`: times from executed samples, also where the code alone does not tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from wavecast.pipeline import SourceOptions, explain_path, select
from wavecast.pipeline.explain.result import ExplainReport

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

rows = 64
x = torch.ones(rows, 65536, device="cuda")
out = torch.zeros(rows, device="cuda")
for length, block in ((8192, 256), (65536, 512)):
    lengths = torch.full((rows,), length, dtype=torch.int32, device="cuda")
    ragged[(rows,)](x, lengths, out, BLOCK=block)
"""


def explained(folder: Path, *, sample: bool) -> ExplainReport:
    script = folder / "ragged.py"
    script.write_text(SCRIPT)
    return explain_path(script, select(["mi300x", "mi325x"]), SourceOptions(sample=sample))


def test_data_decides_how_long_and_a_sample_tells(tmp_path: Path) -> None:
    plain = explained(tmp_path, sample=False)
    assert {e.predicted.prediction for e in plain.explanations} == {None}
    assert all("depends on data" in e.predicted.why_not for e in plain.explanations)
    report = explained(tmp_path, sample=True)
    for device in ("mi300x", "mi325x"):
        own = [e.predicted.prediction for e in report.explanations if e.device.id == device]
        found = [p for p in own if p is not None]
        assert {p.fidelity for p in found} == {"executed"}
        short, long = (p.seconds for p in found)
        assert long > 3 * short
