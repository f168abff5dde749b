"""Launches of compiled models know the lines of the model they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from rich.console import Console  # noqa: E402

import wavecast  # noqa: E402
from tests.integrations import compiled_net  # noqa: E402
from wavecast.pipeline import select  # noqa: E402
from wavecast.pipeline.run import explain_launches  # noqa: E402
from wavecast.pipeline.steps import Given  # noqa: E402
from wavecast.report.terminal_model import line_times, model_times  # noqa: E402
from wavecast.report.terminal_text import plain  # noqa: E402

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
    return list(found)


def test_every_kernel_has_its_line_and_configurations_that_are_tried_are_not_launches(
    launches: Any,
) -> None:
    lines = {launch.code.kernel: launch.model_lines for launch in launches}
    assert len(launches) == len(lines) == 2
    assert all(launch.count == 2 for launch in launches)
    assert set(lines.values()) == {(place("a line of the model"),), (place("another line"),)}


def test_times_by_line(launches: Any) -> None:
    explanations, _ = explain_launches(launches, select(["gfx942"]), Given())
    rows = line_times(explanations)
    assert [row.lines[0].split("  ")[0] for row in rows] == [
        Path(launch.model_lines[0]).name for launch in launches
    ]
    for row, launch, one in zip(rows, launches, explanations, strict=True):
        assert row.kernels == [launch.code.kernel]
        assert one.predicted.prediction is not None
        assert row.seconds == pytest.approx(2 * one.predicted.prediction.seconds)

    def render(console: Console) -> None:
        for part in model_times(explanations):
            console.print(part)

    text = plain(render)
    assert "h = self.norm(x)" in text
    assert text.count("%") == 2


def test_launches_of_scripts_have_no_table() -> None:
    assert list(model_times(())) == []
