"""Tunings and choices as terminal text."""

from __future__ import annotations

import io

from rich.console import Console

from wavecast.compile.configuration import Configuration
from wavecast.pipeline.explain.result import ConfigurationChoice
from wavecast.report.explain.terminal_choices import choices
from wavecast.report.lab import tuning
from wavecast.runtimes.triton.recorder import CaptureFailure
from wavecast.tuning.records import Result, TuningProblem
from wavecast.tuning.run import TuneResult
from wavecast.tuning.table import TuningTable

PROBLEM = TuningProblem(
    "matmul", {"M": 64}, {"a": "bfloat16:16", "M": "int:16", "step": "int:1"}, "0123", "gfx942",
    "mi300x", "triton 3.9.0",
)  # fmt: skip


def _result(block: int, **known) -> tuple[TuningProblem, Result]:
    return PROBLEM, Result(Configuration.of({"BLOCK": block, "num_warps": 4}), **known)


def _text(tuned: TuneResult, top: int = 10, width: int = 160) -> str:
    out = io.StringIO()
    tuning.render(tuned, Console(file=out, width=width), top=top)
    return out.getvalue()


def test_a_ranking_shows_times_resources_and_why_others_were_refused() -> None:
    timed = {"low": 1e-5, "high": 3e-5, "limiter": "matrix", "registers": 128, "spills": 0}
    table = TuningTable.of(
        [
            _result(64, seconds=2e-5, fidelity="executed", lds_bytes=32768, waves=2.0, **timed),
            _result(32, seconds=4e-5, fidelity="static", lds_bytes=16384, waves=4.0, **timed),
            _result(512, reason="takes 131,072 bytes of LDS, a workgroup can have 65,536"),
            _result(1024, reason="takes 262,144 bytes of LDS, a workgroup can have 65,536"),
        ]
    )
    failure = CaptureFailure("other", "gfx942", "compile", "no such thing")
    text = _text(TuneResult(table, (failure,), ("mi300x is assumed",)))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "note mi300x is assumed" in lines
    assert "failed other for gfx942 (compile): no such thing" in lines
    assert "matmul on mi300x M=64 bfloat16 step=1" in lines
    assert "4 configurations tried, 2 of them refused" in lines
    assert "1 20 µs 10 µs … 30 µs sample matrix 128 0 32 KiB 2 BLOCK=64, num_warps=4" in lines
    assert "2 40 µs 10 µs … 30 µs code matrix 128 0 16 KiB 4 BLOCK=32, num_warps=4" in lines
    assert (
        "sample: predicted from executed workgroups, as by `explain --sample`; `explain` alone "
        "predicts from the code"
    ) in lines
    assert "2 refused: takes … bytes of LDS, a workgroup can have …" in lines
    assert "40 µs" not in _text(TuneResult(table, (), ()), top=1)
    narrow = _text(TuneResult(table, (), ()), width=80)
    assert "predicted" in narrow
    shown = [line.strip() for line in narrow.splitlines()]
    assert shown.count("1  BLOCK=64, num_warps=4") == shown.count("2  BLOCK=32, num_warps=4") == 1
    assert max(map(len, narrow.splitlines())) <= 80


def test_choices_mark_the_one_that_is_explained() -> None:
    out = io.StringIO()
    found = (
        ConfigurationChoice("k", "mi300x", "B=1", 2e-6, "memory", "", True),
        ConfigurationChoice("k", "mi300x", "B=2", None, "", "a loop", False),
    )
    console = Console(file=out, width=120)
    for part in choices(found):
        console.print(part)
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert "k mi300x 2 µs memory B=1 ← explained" in lines
    assert "k mi300x – a loop B=2" in lines
    assert not list(choices(()))
