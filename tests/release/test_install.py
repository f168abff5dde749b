"""Pages and templates install Wavecast by a route that works without a release, with PyTorch's
build for CPUs first. `make installed` executes the route of the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.documents.pages import ROOT, shell_commands
from tests.release.documented_install import install_commands, script
from tests.release.test_ci_templates import action_steps, program, run_step
from wavecast.extras import CPU_BUILDS

WITH_TORCH = re.compile(r"pip install .*\btorch\b|additional_dependencies.*\btorch\b")
INSTALLING = [
    path
    for path in (
        *(ROOT / name for name in ("README.md", "Containerfile", "action.yml")),
        *(ROOT / name for name in (".pre-commit-hooks.yaml", "templates/gate.yml")),
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if WITH_TORCH.search(path.read_text(encoding="utf-8"))
]
PIP = """
import pathlib, sys
if sys.argv[1] == "-c":
    sys.exit(1)
with pathlib.Path("commands").open("a") as file:
    print(*sys.argv[1:], sep="|", file=file)
"""
"""Stands for a `python` without PyTorch, and for `pip`."""


def test_the_build_for_cpus_comes_first() -> None:
    """The default build brings gigabytes for NVIDIA GPUs, as a dependency too."""
    assert len(INSTALLING) >= 7
    first = {path.name: _first(path) for path in INSTALLING}
    assert [name for name, line in first.items() if CPU_BUILDS not in line] == []


def _first(path: Path) -> str:
    text = path.read_text(encoding="utf-8").replace('"$TORCH_INDEX"', CPU_BUILDS)
    text = text.replace("'$[[ inputs.torch-index-url ]]'", CPU_BUILDS)
    return next(line for line in text.splitlines() if WITH_TORCH.search(line))


def test_no_page_needs_a_release() -> None:
    """What adds an extra follows the README's installation; whole installations name a source."""
    for name in ("README.md", "docs/tutorial.md", "docs/ci.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        (*_, line) = [one for one in shell_commands(text) if re.search(r"pip install.*torch", one)]
        assert re.search(r"'\.\[torch|@ git\+https://", line), f"{name}: {line}"


def test_no_page_begins_without_a_source() -> None:
    """Where wavecast is not installed yet, next to other installations, its source is named."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
    lines = [line for text in texts.values() for line in shell_commands(text)]
    whole = [line for line in lines if re.search(r"pip install .*wavecast(\[\w+-cpu\])?\b", line)]
    begun = [line for line in whole if "--no-deps" in line or "-cpu]" in line]
    assert len(begun) >= 2
    assert [line for line in begun if " @ git+https://" not in line] == []


def test_the_documented_commands_make_an_environment() -> None:
    assert [command.split()[0] for command in install_commands()][:2] == ["python", "pip"]
    commands = script("torch==1.0").splitlines()
    assert commands[0] == "python -m venv .venv && . .venv/bin/activate"
    assert commands[1] == "pip install 'torch==1.0'"
    assert commands[-1] == "wavecast doctor"


@pytest.mark.parametrize(
    ("packages", "expected"),
    [("action", "{action}[torch]"), ("wavecast==1 torch", "wavecast==1|torch")],
)
def test_the_action_installs_its_revision(packages: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    program(tmp_path / "tools", "python", PIP)
    (step,) = (one for one in action_steps() if "PACKAGES" in one.get("env", {}))
    action = str(tmp_path / "a folder")
    variables = {"PACKAGES": packages, "TORCH_INDEX": CPU_BUILDS, "ACTION": action}
    assert run_step(step["run"], tmp_path, **variables) == 0
    assert (tmp_path / "commands").read_text().splitlines() == [
        f"-m|pip|install|torch|--index-url|{CPU_BUILDS}",
        "-m|pip|install|" + expected.format(action=action),
    ]


def test_the_component_installs_what_it_is_told(tmp_path: Path) -> None:
    head, job = yaml.safe_load_all((ROOT / "templates" / "gate.yml").read_text())
    inputs = head["spec"]["inputs"]
    assert "default" not in inputs["install"]
    assert inputs["torch-index-url"]["default"] == CPU_BUILDS
    (tmp_path / "tools").mkdir()
    for name in ("python", "pip"):
        program(tmp_path / "tools", name, PIP)
    source = "wavecast[torch] @ git+https://host/OWNER/wavecast@main"
    values = {"install": source, "torch-index-url": CPU_BUILDS}
    commands = "\n".join(job["wavecast-gate"]["script"][:2])
    text = re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda name: values[name[1]], commands)
    assert run_step(text, tmp_path) == 0
    assert (tmp_path / "commands").read_text().splitlines() == [
        f"install|torch|--index-url|{CPU_BUILDS}",
        f"install|{source}",
    ]
