"""Memory that the GPUs of a HIP program share, and flags for the host: scopes and grains."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from wavecast.cli.main import run as run_command
from wavecast.compile.toolchain import find
from wavecast.errors import MissingTool
from wavecast.pipeline.execute import hip_programs

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).parent / "devices.hip"
SMALL = ("-fno-exceptions", "-include", str(SOURCE.with_name("small.h")))
CASES = {
    "scope": ("gpu-race", "atomicAdd_system"),
    "grain": ("gpu-race", "coarse-grained"),
    "flag": ("host-race", "coarse-grained"),
    "advised": ("host-race", "coarse-grained"),
    "plain": ("gpu-race", "no event or wait"),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find("gfx942")
    except MissingTool as error:
        pytest.skip(str(error))
    made = tmp_path_factory.mktemp("devices") / "devices"
    hip_programs.build(SOURCE, "gfx942", made, SMALL, checked=True)
    return made


def _marked(name: str) -> int:
    lines = SOURCE.read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"// {name}"))


def _reports(program: Path, name: str, how: str) -> list[dict[str, Any]]:
    path = program.with_name(f"{name}.{how}.json")
    options = ("--threads", "1", "--gpus", "2", "--check-format", "json")
    with pytest.raises(SystemExit):
        run_command(
            ["run", str(program), "--check", *options, "--check-output", str(path), "--", name, how]
        )
    return json.loads(path.read_text())["reports"]


@pytest.mark.parametrize("name", CASES)
def test_what_devices_may_not_share(program: Path, name: str) -> None:
    (report,) = _reports(program, name, "wrong")
    kind, text = CASES[name]
    assert report["kind"] == kind
    assert text in report["message"]
    lines = {report["location"]["line"], *map(int, re.findall(r"line (\d+)", report["message"]))}
    assert _marked(name) in lines
    assert _reports(program, name, "right") == []
