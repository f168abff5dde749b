"""The page of `wavecast model --html`: whole, self-contained, with what the text has."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.cli.test_main import call
from wavecast.arch.systems import system
from wavecast.report.kit import kernel_roofline, log_axes, timeline_plot
from wavecast.report.systems import model_pages, serving_plot, serving_words
from wavecast.systems.answer import Deployment
from wavecast.systems.huggingface import load
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load
from wavecast.systems.slices import TimelineSlice
from wavecast.systems.study import ModelStudy, StudyQuestions, study
from wavecast.systems.timeline import TRACKS

LOADS = (Load(512, 64, concurrency=1), Load(512, 64, concurrency=8))
_OPEN = {"meta", "path", "rect", "circle", "br"}


@pytest.fixture(scope="module")
def found() -> ModelStudy:
    deployed = [
        (system(name), Deployment(dtype="fp8", parallel=Parallelism(tensor=1)))
        for name in ("mi300x", "mi355x")
    ]
    return study(load("Llama-3.1-8B"), deployed, LOADS, StudyQuestions())


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
    page = model_pages.serving_page(found.answers)
    reader = _Balance()
    reader.feed(page)
    assert reader.stack == []
    assert reader.outside == []
    assert "<script" not in page
    for part in ("qkv_proj", "Throughput and speed", "Memory of a GPU", "8 at once", "1x mi355x"):
        assert part in page


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            ("Llama-3.1-8B", "--system", "8xMI300X", "--train", "--batch", "32", "--seq", "4096",
             "--pp", "4", "--tp", "2"),
            ("Memory of the fullest GPU", "A step of", "stage 3", "weight grad", "pipeline bubble"),
        ),
        (
            ("kernels.yaml", "--system", "mi300x,mi355x"),
            ("A run", "Kernels by operator", "Kernels by module", "AMD Instinct MI355X"),
        ),
    ],
)  # fmt: skip
def test_pages_of_training_and_modules(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch, arguments, parts
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.yaml").write_text(
        "dtype: bf16\nparameters: 1000\nkernels:\n"
        "  - {op: gemm, shape: 4096x4096x4096, module: block.up, times: 3}\n"
        "  - {op: norm, shape: 4096x4096, set: {function: rms_norm}, module: norm.last}\n"
    )
    page, trace = tmp_path / "m.html", tmp_path / "m.json"
    code, _, err = call(capsys, "model", *arguments, "--html", str(page), "--perfetto", str(trace))
    assert (code, err) == (0, "")
    text = page.read_text()
    reader = _Balance()
    reader.feed(text)
    assert (reader.stack, reader.outside) == ([], [])
    assert "<script" not in text
    assert [part for part in parts if part not in text] == []
    slices = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    assert slices
    assert min(event["dur"] for event in slices) > 0


def test_stages_of_a_pipeline_wait_for_each_other(capsys, tmp_path: Path) -> None:
    trace = tmp_path / "m.json"
    code, _, _ = call(
        capsys, "model", "Llama-3.1-8B", "--system", "8xMI300X", "--train", "--batch", "16",
        "--seq", "4096", "--pp", "4", "--tp", "2", "--perfetto", str(trace),
    )  # fmt: skip
    assert code == 0
    events = json.loads(trace.read_text())["traceEvents"]
    stages = {event["tid"]: event["args"]["name"] for event in events
              if event["name"] == "thread_name"}  # fmt: skip
    first = {stages[event["tid"]]: event for event in reversed(events)
             if event["ph"] == "X" and event["name"] == "forward, micro-batch 0"}  # fmt: skip
    ends = [first[f"stage {n}"]["ts"] + first[f"stage {n}"]["dur"] for n in range(4)]
    for before, stage in zip(ends, range(1, 4), strict=False):
        assert first[f"stage {stage}"]["ts"] >= before


def test_names_of_tracks_are_inside_of_the_timeline() -> None:
    slices = [TimelineSlice(track, "all_reduce", 0, 1, "norm") for track in TRACKS]
    drawn = timeline_plot.timeline(slices, TRACKS, ("norm",), "one layer")
    assert drawn is not None
    names = re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="end">(\w+)</text>', drawn.image)
    assert [name for _, name in names] == list(TRACKS)
    assert all(float(x) >= 7 * len(name) for x, name in names)


def test_parts_are_shares_of_the_whole(found: ModelStudy) -> None:
    answer = found.answers[0]
    for parts in (
        serving_plot.memory_parts(answer),
        serving_plot.step_parts(answer.servings[0].decode.modules),
    ):
        assert sum(part.share for part in parts) == pytest.approx(1)
        assert parts == sorted(parts, key=lambda part: -part.share)


def test_points_of_the_roofline_are_at_the_predicted_rates(found: ModelStudy) -> None:
    answer = found.answers[0]
    kernels = answer.servings[0].kernels
    rows = serving_words.rows(kernels)
    drawn = str(kernel_roofline.roofline(rows, answer.system.device, "step"))
    titles = dict(re.findall(r"<title>(\S+) x \d+: .*?; (\S+) FLOP/B", drawn))
    work = next(k for k in kernels if k.priced.node.name == "qkv_proj").priced.node.op.work()
    flops, moved = sum((work.flops or {}).values()), work.bytes
    assert moved
    assert float(titles["qkv_proj"]) == pytest.approx(flops / moved, rel=0.01)


def test_the_frontier_has_a_point_per_load(found: ModelStudy) -> None:
    drawn = str(serving_plot.frontier(found.answers))
    assert drawn.count("<circle") == 4
    one = ModelStudy(answers=())
    assert serving_plot.frontier(one.answers) is None


@pytest.mark.parametrize("values", [(1.0,), (3.0, 7.0), (0.02, 900.0), (1e12, 2.3e15)])
def test_axes_end_at_round_numbers(values: tuple[float, ...]) -> None:
    low, high = log_axes.round_range(values)
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
