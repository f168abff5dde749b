"""Works of a HIP program that no stream, event or wait of the host orders."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.targets import thorough_beyond
from wavecast.cli.main import run as run_command
from wavecast.compile.toolchain import find
from wavecast.errors import MissingTool
from wavecast.pipeline.execute import hip_programs

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).parent / "streams.hip"
SMALL = ("-fno-exceptions", "-include", str(SOURCE.with_name("small.h")))
CASES = tuple(re.findall(r"// (\w+)$", SOURCE.read_text(), re.M))
QUICK = ("events", "copied", "read_back", "reused", "null_stream", "freed")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    made = tmp_path_factory.mktemp("streams") / "streams"
    hip_programs.build(SOURCE, "gfx942", made, SMALL, checked=True)
    return made


@cache
def marked(name: str) -> int:
    lines = SOURCE.read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"// {name}"))


def reports(
    program: Path, capfd: pytest.CaptureFixture[str], name: str, how: str
) -> list[dict[str, Any]]:
    path = program.with_name(f"{name}.{how}.json")
    options = ("--threads", "1", "--check-format", "json", "--check-output", str(path))
    with pytest.raises(SystemExit):
        run_command(["run", str(program), "--check", *options, "--", name, how])
    assert capfd.readouterr().err == ""
    return json.loads(path.read_text())["reports"]


@pytest.mark.parametrize("name", thorough_beyond(QUICK, CASES))
def test_what_nothing_orders_is_reported_at_its_line(
    program: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (report,) = reports(program, capfd, name, "wrong")
    on_host = name in ("read_back", "reused", "managed")
    assert report["kind"] == ("host-race" if on_host else "launch-race")
    assert (
        report["location"]["line"] == marked(name) or f"(line {marked(name)})" in report["message"]
    )
    assert reports(program, capfd, name, "right") == []


def test_what_is_ordered_otherwise_is_clean(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert reports(program, capfd, "legal", "") == []
