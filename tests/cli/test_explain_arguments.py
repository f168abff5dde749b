"""`wavecast explain --arg` and `--args`: launches of code with their arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wavecast.cli.main import run

pytest.importorskip("ziglang")
pytestmark = pytest.mark.hip

Capture = pytest.CaptureFixture[str]

SCALE = """
__global__ void scale(const float* in, float* out, float factor, int n) {
  for (int i = threadIdx.x; i < n; i += 256)
    out[blockIdx.x * n + i] = factor * in[blockIdx.x * n + i];
}
"""
LAUNCH = ("--grid", "608", "--block", "256")
ARGUMENTS = ("in=f32[608x1024]", "out=f32[608x1024]", "factor=2.0", "n=1024")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "scale.hip"
    path.write_text(SCALE)
    return path


def explained(capsys: Capture, *arguments: str, code: int = 0) -> dict[str, Any]:
    with pytest.raises(SystemExit) as end:
        run(["explain", *arguments, "-f", "json"])
    captured = capsys.readouterr()
    assert end.value.code == code, captured.err
    return json.loads(captured.out)["kernels"][0] if code == 0 else {"error": captured.err}


def test_trip_counts_and_lanes_follow_from_the_arguments(source: Path, capsys: Capture) -> None:
    bare = explained(capsys, str(source), *LAUNCH)
    assert bare["prediction"] is None
    given = [part for argument in ARGUMENTS for part in ("--arg", argument)]
    known = explained(capsys, str(source), *LAUNCH, *given)
    assert known["prediction"]["seconds"] > 0
    assert [loop["trip_count"] for loop in known["loops"]] == [4]
    assert {access["pattern"] for access in known["memory"] if access["argument"] == "in"} == {
        "contiguous"
    }
    assert [a["name"] for a in known["launch"]["arguments"]] == ["in", "out", "factor", "n"]


def test_a_file_states_the_launch(source: Path, capsys: Capture, tmp_path: Path) -> None:
    plan = tmp_path / "launch.toml"
    lines = ["grid = 608", "block = 256", "[args]"]
    lines += [f'{name} = "{value}"' for name, _, value in (a.partition("=") for a in ARGUMENTS)]
    plan.write_text("\n".join(lines))
    known = explained(capsys, str(source), "--args", str(plan))
    assert known["launch"]["grid"] == [608, 1, 1]
    assert known["prediction"]["seconds"] > 0


def test_missing_and_unknown_arguments_are_one_line(source: Path, capsys: Capture) -> None:
    found = explained(capsys, str(source), *LAUNCH, "--arg", "n=4", code=2)
    assert "no value for in, out, factor" in found["error"]
    found = explained(capsys, str(source), *LAUNCH, "--arg", "m=4", code=2)
    assert "argument of scale" in found["error"]


def test_arguments_need_a_grid_and_a_block(source: Path, capsys: Capture) -> None:
    found = explained(capsys, str(source), "--arg", "n=4", code=2)
    assert "needs a grid and a block" in found["error"]


def test_a_script_makes_its_own(tmp_path: Path, capsys: Capture) -> None:
    script = tmp_path / "a.py"
    script.write_text("")
    found = explained(capsys, str(script), "--arg", "n=4", code=2)
    assert "makes its own launches" in found["error"]
