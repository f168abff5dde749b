"""Memory of narrow values that a HIP program has not written to its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.targets import thorough_beyond
from wavecast.cli.main import run as run_command
from wavecast.compile.toolchain import find
from wavecast.errors import MissingTool
from wavecast.pipeline.execute import hip_programs

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).parent / "unwritten.hip"
SMALL = ("-fno-exceptions", "-include", str(SOURCE.with_name("small.h")))
WRONG = {
    **dict.fromkeys(("set", "copied", "filled", "cleared", "rows", "again"), "bytes"),
    **dict.fromkeys(("set_halves", "copied_halves"), "halves"),
}
QUICK = ("copied", "filled", "set_halves")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    made = tmp_path_factory.mktemp("unwritten") / "unwritten"
    hip_programs.build(SOURCE, "gfx942", made, SMALL, checked=True)
    return made


def reports(program: Path, name: str, how: str) -> list[dict[str, Any]]:
    path = program.with_name(f"{name}.{how}.json")
    options = ("--threads", "1", "--check-format", "json", "--check-output", str(path))
    with pytest.raises(SystemExit):
        run_command(["run", str(program), "--check", *options, "--", name, how])
    return json.loads(path.read_text())["reports"]


@pytest.mark.parametrize("name", thorough_beyond(QUICK, tuple(WRONG)))
def test_an_end_that_nobody_has_written_is_reported(program: Path, name: str) -> None:
    (report,) = reports(program, name, "wrong")
    assert report["kind"] == "uninitialised-global"
    line = SOURCE.read_text().splitlines()[report["location"]["line"] - 1]
    assert line.endswith(f"= x[i] * 3;  // {WRONG[name]}")


@pytest.mark.parametrize("name", thorough_beyond(QUICK, tuple(WRONG)))
def test_what_is_written_to_its_end_is_clean(program: Path, name: str) -> None:
    assert reports(program, name, "right") == []


def test_the_access_that_ends_a_launch_is_reported(program: Path) -> None:
    """Nothing says how far a pointer to memory that was freed reaches."""
    assert reports(program, "freed", "right") == []
    (report,) = reports(program, "freed", "wrong")
    assert report["kind"] == "out-of-bounds"
    assert "where the launch has no memory; the launch ended here" in report["message"]
    line = SOURCE.read_text().splitlines()[report["location"]["line"] - 1]
    assert line.endswith("= x[i] * 3;  // bytes")


def test_a_pool_takes_the_memory_that_is_used(program: Path) -> None:
    """128 GiB, of which a kernel reads some bytes; all of them were filled before."""
    assert reports(program, "pooled", "right") == []
    (report,) = reports(program, "pooled", "wrong")
    assert report["kind"] == "uninitialised-global"
    line = SOURCE.read_text().splitlines()[report["location"]["line"] - 1]
    assert line.endswith("out[i] = x[i];")


@pytest.mark.parametrize("name", ["padded", "pinned", "only_what_is_there"])
def test_memory_that_is_read_as_it_was_written_is_clean(program: Path, name: str) -> None:
    assert reports(program, name, "right") == []
