"""The page of `wavecast model --html`: whole, self-contained, with what the text has."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.cli.test_main import call
from wavecast.arch.systems import system
from wavecast.report import systems_html, systems_plot
from wavecast.systems.answer import Deployment
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load
from wavecast.systems.study import ModelStudy, StudyQuestions, study

LOADS = (Load(512, 64, concurrency=1), Load(512, 64, concurrency=8))
_OPEN = {"meta", "path", "rect", "circle", "br"}


@pytest.fixture(scope="module")
def found() -> ModelStudy:
    deployed = [
        (system(name), Deployment(dtype="fp8", parallel=Parallelism(tensor=1)))
        for name in ("mi300x", "mi355x")
    ]
    return study("Llama-3.1-8B", deployed, LOADS, StudyQuestions())


class _Balance(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.outside += [v or "" for k, v in attrs if k in ("src", "href") and "//" in (v or "")]
        if tag not in _OPEN:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _OPEN:
            assert self.stack.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_outside(found: ModelStudy) -> None:
    page = systems_html.render(found)
    reader = _Balance()
    reader.feed(page)
    assert reader.stack == []
    assert reader.outside == []
    assert "<script" not in page
    for part in ("qkv_proj", "Throughput and speed", "Memory of a GPU", "8 at once", "1x mi355x"):
        assert part in page


def test_parts_are_shares_of_the_whole(found: ModelStudy) -> None:
    answer = found.answers[0]
    for parts in (
        systems_plot.memory_parts(answer),
        systems_plot.step_parts(answer.servings[0].decode.modules),
    ):
        assert sum(part.share for part in parts) == pytest.approx(1)
        assert parts == sorted(parts, key=lambda part: -part.share)


def test_points_of_the_roofline_are_at_the_predicted_rates(found: ModelStudy) -> None:
    answer = found.answers[0]
    kernels = answer.servings[0].kernels
    drawn = str(systems_plot.step_roofline(answer, kernels))
    titles = dict(re.findall(r"<title>(\S+) x \d+: .*?; (\S+) FLOP/B", drawn))
    work = next(k for k in kernels if k.priced.node.name == "qkv_proj").priced.node.op.work()
    flops, moved = sum((work.flops or {}).values()), work.bytes
    assert moved
    assert float(titles["qkv_proj"]) == pytest.approx(flops / moved, rel=0.01)


def test_the_frontier_has_a_point_per_load(found: ModelStudy) -> None:
    drawn = str(systems_plot.frontier(found.answers))
    assert drawn.count("<circle") == 4
    one = ModelStudy(answers=())
    assert systems_plot.frontier(one.answers) is None


@pytest.mark.parametrize("values", [(1.0,), (3.0, 7.0), (0.02, 900.0), (1e12, 2.3e15)])
def test_axes_end_at_round_numbers(values: tuple[float, ...]) -> None:
    low, high = systems_plot._round_range(values)
    assert low < min(values) <= max(values) < high
    for end in (low, high):
        assert round(end / 10 ** math.floor(math.log10(end) + 1e-9)) in (1, 2, 5)


def test_the_page_is_written_and_the_text_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "m.html"
    code, out, _ = call(
        capsys, "model", "Llama-3.1-8B", "--system", "mi300x", "--dtype", "fp8",
        "--concurrency", "1", "--detail", "brief", "--html", str(file),
    )  # fmt: skip
    assert code == 0
    assert "Llama-3.1-8B" in out
    assert file.read_text().startswith("<!doctype html>")
