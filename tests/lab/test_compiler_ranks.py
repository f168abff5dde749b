"""The ranking of code generators over a corpus of two kernels, by hand and by the command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import structs

from tests.lab.conftest import Captured
from tests.lab.test_passes import SCRIPT
from wavecast.cli.lab import command
from wavecast.lab import compilers as module
from wavecast.lab.codegen import TritonGenerator
from wavecast.lab.compiler_ranks import ALL, rank, rank_common
from wavecast.lab.compilers import PROGRAM, CompilerRow
from wavecast.lab.figures import CodeFigures
from wavecast.report.lab import compilers as report

FIGURES = CodeFigures(
    digest="d", instructions=100, vgprs=1, agprs=0, sgprs=1, spills=0, scratch_bytes=0, lds_bytes=0,
    peak=1, waves=1, waits=1, full_waits=0, loop_cycles=1, seconds=1e-3,
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    kernel: str
    target: str
    rows: tuple[CompilerRow, ...]
    device: str = "mi300x"


def row(name: str, seconds: float | None, **figures) -> CompilerRow:
    if seconds is None and not figures:
        return CompilerRow(name, name, refused="crash | stop")
    return CompilerRow(name, name, structs.replace(FIGURES, seconds=seconds, **figures))


CORPUS = [
    Compared("a", "gfx942", (row(PROGRAM, 1e-3), row("new", 2e-3, spills=3), row("old", None))),
    Compared(
        "b",
        "gfx942",
        (
            row(PROGRAM, 4e-3),
            row("new", 2e-3, instructions=400, faults=("missing wait",)),
            row("old", 4.02e-3),
        ),
    ),
    Compared("a", "gfx1100", (row(PROGRAM, 1e-3), row("new", 0.5e-3), row("never", None))),
]


def test_times_are_geometric_means_over_the_program_s_code() -> None:
    *_, new_other, own_other, never = rank(CORPUS)
    by_name = {(each.target, each.name): each for each in rank(CORPUS)}
    new = by_name["gfx942", "new"]
    assert (new.kernels, new.refused, new.faster, new.slower) == (2, 0, 1, 1)
    assert new.time == pytest.approx(1)
    assert new.instructions == pytest.approx(2)
    assert (new.best, new.best_time, new.worst, new.worst_time) == ("b", 0.5, "a", 2)
    assert (new.spills, new.faults) == (3, 1)
    last = by_name["gfx942", "old"]
    assert (last.kernels, last.refused, last.faster, last.slower) == (1, 1, 0, 0)
    assert last.time == pytest.approx(1.005)
    assert [each.name for each in (new_other, own_other)] == ["new", PROGRAM]
    assert (never.name, never.time) == ("never", None)


def test_launches_of_one_kernel_count_each() -> None:
    (own, new), *_ = [rank([CORPUS[2], CORPUS[2]])[1::-1]]
    assert (own.name, new.name, new.kernels, new.faster) == (PROGRAM, "new", 2, 2)


def test_all_targets_are_ranked_on_kernels_that_all_compile() -> None:
    new, own, old = rank_common(CORPUS)  # "never" compiles none, and "old" only b
    assert [each.name for each in (new, own, old)] == ["new", PROGRAM, "old"]
    assert {each.target for each in (new, own, old)} == {ALL}
    assert (new.kernels, new.time, new.worst) == (1, pytest.approx(0.5), "b gfx942")
    assert rank_common([]) == ()


def test_the_page_has_the_ranking_and_every_time() -> None:
    text = report.markdown(CORPUS)
    lines = text.splitlines()
    assert len(lines) == 2 + 3 + 6 + 1 + 2 + 3
    assert "| b | gfx942 | 4 ms | 2 ms ! | 4.02 ms |" in lines
    assert "| a | gfx942 | 1 ms | 2 ms | refused |" in lines
    assert "| a | gfx1100 | 1 ms | 500 µs |  |" in lines
    assert len({line.count("|") for line in lines[:8]}) == 1


def test_a_corpus_of_two_kernels_by_the_command(
    captured: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del captured  # skips without PyTorch
    monkeypatch.setattr(module, "installed_generators", lambda device: [TritonGenerator(device)])
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    devices = ["--arch", "gfx942,gfx1100"]
    done = CliRunner().invoke(command, ["compilers", str(script), *devices, "-f", "json"])
    ranking = json.loads(done.stdout)["ranking"]
    assert {each["target"] for each in ranking} == {"gfx942", "gfx1100"}
    assert all(each["time"] == pytest.approx(1) for each in ranking if each["name"] == "triton")
    page = tmp_path / "page.md"
    given = ["compilers", str(script), *devices, "-o", str(page)]
    CliRunner().invoke(command, given, catch_exceptions=False)
    assert page.read_text().startswith("| target | code generator | time |")
