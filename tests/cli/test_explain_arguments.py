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


def test_a_block_the_kernel_was_not_compiled_for_is_refused(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "bounds.hip"
    path.write_text(SCALE.replace("void scale", "void __launch_bounds__(256) scale"))
    explained(capsys, str(path), "--block", "256")
    found = explained(capsys, str(path), "--block", "1024", code=2)
    assert "1024 work-items (it was compiled for at most 256)" in found["error"]


def test_a_script_makes_its_own(tmp_path: Path, capsys: Capture) -> None:
    script = tmp_path / "a.py"
    script.write_text("")
    found = explained(capsys, str(script), "--arg", "n=4", code=2)
    assert "makes its own launches" in found["error"]


def diffed(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        run(["diff", *arguments, "-f", "json"])
    captured = capsys.readouterr()
    return int(end.value.code or 0), captured.out, captured.err


def test_diff_takes_the_same_arguments(source: Path, capsys: Capture, tmp_path: Path) -> None:
    after = tmp_path / "after.hip"
    after.write_text(SCALE.replace("factor * in", "factor + in"))
    given = [part for argument in ARGUMENTS for part in ("--arg", argument)]
    code, out, err = diffed(capsys, str(source), str(after), *LAUNCH, *given)
    assert code == 0, err
    (kernel,) = json.loads(out)["kernels"]
    assert "predicted_seconds" in json.dumps(kernel["figures"])
    script = tmp_path / "script.py"
    script.write_text("")
    code, _, err = diffed(capsys, str(source), str(script), *LAUNCH, "--arg", "n=4")
    assert (code, "it makes its own launches" in err) == (2, True)


def test_what_if_is_shown_in_brief_or_says_why_not(source: Path, capsys: Capture) -> None:
    asked = ["explain", str(source), *LAUNCH, "--what-if", "--detail", "brief"]
    for arguments, shown in ((ARGUMENTS, "what if"), ((), "note no what-ifs for scale on gfx942:")):
        given = [part for argument in arguments for part in ("--arg", argument)]
        with pytest.raises(SystemExit):
            run([*asked, *given])
        assert shown in " ".join(capsys.readouterr().out.split())
