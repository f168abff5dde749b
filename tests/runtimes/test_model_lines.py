"""Launches of compiled models know the lines of the model they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from rich.console import Console  # noqa: E402

import wavecast  # noqa: E402
from tests.runtimes import compiled_net  # noqa: E402
from wavecast import arch  # noqa: E402
from wavecast.pipeline import SourceOptions, explain_path, select  # noqa: E402
from wavecast.pipeline.explain.model_lines import ModelLines, line_changes, model_lines  # noqa: E402
from wavecast.pipeline.explain.result import ExplainReport, ModelLineTime  # noqa: E402
from wavecast.pipeline.explain.run import explain_launches  # noqa: E402
from wavecast.pipeline.explain.steps import Given  # noqa: E402
from wavecast.report.explain import html  # noqa: E402
from wavecast.report.explain.terminal_model import model_changes, model_times  # noqa: E402
from wavecast.report.kit.terminal import plain  # noqa: E402
from wavecast.systems.sources.calls import GraphLibraryCall, OperatorCall  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
FILE = Path(compiled_net.__file__)
LINES = FILE.read_text().splitlines()


def place(comment: str) -> str:
    (number,) = (n for n, line in enumerate(LINES, 1) if line.endswith(f"# {comment}"))
    return f"{FILE.as_posix()}:{number}"


@pytest.fixture(scope="module")
def launches() -> Any:
    with wavecast.capture("gfx942") as found, torch.no_grad():
        model = torch.compile(compiled_net.Net().to("cuda"))
        model(torch.randn(8, 64, device="cuda"))
        model(torch.randn(8, 64, device="cuda"))
    return found


def test_every_kernel_has_its_line_and_configurations_that_are_tried_are_not_launches(
    launches: Any,
) -> None:
    lines = {launch.code.kernel: launch.model_lines for launch in launches}
    assert len(launches) == len(lines) == 2
    assert all(launch.count == 2 for launch in launches)
    assert set(lines.values()) == {(place("a line of the model"),), (place("another line"),)}


def test_calls_of_libraries_have_their_line(launches: Any) -> None:
    (found,) = launches.library_calls
    assert (found.call.name, found.count, found.lines) == (
        "aten.addmm",
        2,
        (place("another line"),),
    )
    assert [one.shape for one in found.call.inputs] == [(128,), (8, 64), (64, 128)]


def test_times_by_line(launches: Any) -> None:
    selection = select(["gfx942"])
    explanations, _ = explain_launches(launches, selection, Given())
    lines = model_lines(explanations, {"gfx942": launches.library_calls}, selection.devices)
    norm, gelu = lines.times
    assert norm.lines == (place("a line of the model"),)
    assert gelu.kernels[1:] == ("aten.addmm (128,) (8, 64) (64, 128)",)
    alone = [one.predicted.prediction.seconds for one in explanations]
    assert norm.seconds == pytest.approx(2 * alone[0])
    assert gelu.seconds > 2 * alone[1]

    def render(console: Console) -> None:
        for part in model_times(lines.times):
            console.print(part)

    text = plain(render)
    assert "h = self.norm(x)" in text
    assert text.count("%") == 2
    page = html.render(ExplainReport(explanations, (), (), (), lines=lines.times))
    assert "<code>aten.addmm (128,) (8, 64) (64, 128)</code>" in page


def test_launches_of_scripts_have_no_lines() -> None:
    device = arch.load("gfx942")
    call = GraphLibraryCall(OperatorCall("aten.mm", (), ()), ())
    assert model_lines((), {"gfx942": [call]}, [device]) == ModelLines(())


def line(seconds: float | None, kernel: str, *numbers: int) -> ModelLineTime:
    places = tuple(f"net.py:{one}" for one in numbers)
    return ModelLineTime(arch.load("gfx942"), places, (kernel,), seconds)


def test_rows_that_share_a_line_change_together() -> None:
    before = [line(3.0, "norm", 1), line(5.0, "mm", 2), line(1.0, "add", 9), line(1.0, "gelu", 4)]
    after = [line(4.0, "norm and mm", 2, 1), line(1.0, "add", 9), line(None, "gated", 4)]
    unknown, fused = sorted(line_changes(before, after), key=lambda one: len(one.lines))
    assert fused.lines == ("net.py:1", "net.py:2")
    assert fused.before.kernels == ("norm", "mm")
    assert fused.saved == 4.0
    assert unknown.saved is None
    (first, _) = line_changes(before, after)
    assert first is not unknown

    def render(console: Console) -> None:
        for part in model_changes((fused, unknown)):
            console.print(part)

    assert "not predicted" in plain(render)


@pytest.mark.thorough
def test_what_the_library_changes(tmp_path: Path) -> None:
    """A script's graph with operators of the library: a norm, a product, an activation."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(FILE.parents[2])!r})\nimport torch\n"
        "from tests.runtimes.compiled_net import Net\n"
        "with torch.no_grad():\n"
        "    torch.compile(Net().to('cuda'))(torch.randn(8, 64, device='cuda'))\n"
    )
    report = explain_path(script, select(["gfx942"]), SourceOptions(replace=True))
    by_line = {one.lines: one.after.kernels for one in report.changes}
    assert by_line[place("a line of the model"),] == ("norm_rows_kernel",)
    assert any("matmul" in name for name in by_line[place("another line"),])
    assert all(one.saved is not None for one in report.changes)
