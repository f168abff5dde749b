"""FlyDSL's own compiler, its launches on the emulator."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.warm_python import run_python
from wavecast.compile import toolchain

pytest.importorskip("flydsl", reason="needs FlyDSL")
pytestmark = [pytest.mark.hip, pytest.mark.torch]

SCRIPT = Path(__file__).parent / "flydsl_vector_add.py"
CAPTURE = """
import runpy, sys
from wavecast.compile.parsing import parse_kernel
from wavecast.runtimes.triton import capture

with capture(sys.argv[2]) as launches:
    runpy.run_path(sys.argv[1], run_name="__main__")
(launch,) = launches
print([argument.name for argument in launch.arguments])
print(launch.arguments[0].shape, launch.arguments[1].value, launch.arguments[-1].value)
instructions = parse_kernel(launch.code).program.instructions
print({i.location.outermost.file for i in instructions if i.location is not None})
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_a_script_runs_and_is_checked(target: str) -> None:
    if not toolchain.find(target).linker:
        pytest.skip("the HIP compiler here has no linker")
    words = ("run", str(SCRIPT), "--arch", target, "--check")
    result = run_python("-m", "wavecast", *words)
    assert result.stdout.splitlines()[0] == "right", result.stderr
    assert "nothing found" in result.stdout + result.stderr


def test_captured_launches_have_names_and_lines() -> None:
    result = run_python("-c", CAPTURE, str(SCRIPT), "gfx942")
    lines = [line for line in result.stdout.splitlines() if line not in ("right", "wrong")]
    assert lines == [
        "['A', 'A.layout', 'B', 'B.layout', 'C', 'C.layout', 'count']",
        "(100,) 100 100",
        str({os.fspath(SCRIPT)}),
    ], result.stderr


def test_other_targets_are_refused_in_a_line() -> None:
    result = run_python("-m", "wavecast", "explain", str(SCRIPT), "--arch", "sm_90")
    assert result.returncode == 2
    assert result.stderr == (
        f"wavecast: {SCRIPT.name} launched no kernel before it ended: FlyDSL compiles for AMD GPUs "
        "only, not for sm_90\n"
    )


def test_its_autotuner_is_tuned_by_predictions(tmp_path: Path) -> None:
    """The two configurations that a workgroup can have are ranked by time, for each device."""
    script, table = Path(__file__).parent / "flydsl_tuned.py", tmp_path / "table.json"
    words = ("tune", str(script), "--arch", "mi300x,mi325x", "-o", str(table))
    result = run_python("-m", "wavecast", *words)
    assert result.returncode == 0, result.stderr
    first, second = json.loads(table.read_text())["entries"]
    assert [first["device"], second["device"]] == ["mi300x", "mi325x"]
    assert (first["kernel"], first["key"]) == ("add", {"count": 4096})
    assert first["arguments"] == dict.fromkeys("ABC", "float32 4096")
    rows = first["configurations"]
    assert {row["configuration"]["BLOCK"] for row in rows} == {64, 256}
    assert rows == sorted(rows, key=lambda row: row["seconds"])
    assert all(row["fidelity"] == "executed" and row["registers"] > 0 for row in rows)
    assert [row["configuration"] for row in first["refused"]] == [{"BLOCK": 4096}]


@pytest.mark.parametrize("wide", [False, True])
def test_what_cannot_be_tuned_is_told(wide: bool) -> None:
    script = Path(__file__).parent / "flydsl_tuned.py" if wide else SCRIPT
    options = ("--space", "wide") if wide else ()
    result = run_python("-m", "wavecast", "tune", str(script), "--arch", "gfx942", *options)
    assert result.returncode == (2 if wide else 3)
    if wide:
        output = " ".join(result.stdout.split())
        assert "the configurations of a kernel, not their neighbours" in output
    else:
        assert f"wavecast: {SCRIPT.name} launches no autotuned kernel" in result.stderr
