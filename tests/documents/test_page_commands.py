"""Commands that pages show run: each page in a folder of its own, with the files that it names.

`commands.toml` has these files, and the commands that are not executed, with the reason.
test_executed_pages.py compares what the commands of the tutorial print.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.documents.pages import EXECUTED, ROOT, environment, shell_commands

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
SHARED = ROOT.parent / "shared"
INPUTS = Path(__file__).with_name("inputs")
TABLE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
_CODE = re.compile(r"# exit code (\d)")
_SECONDS = 600


def reason(command: str) -> str:
    """Why a command is not executed, "" if it is."""
    words = command.split("  #")[0]
    return next((why for part, why in TABLE["not_executed"].items() if part in words), "")


def executed(page: Path) -> list[str]:
    return [one for one in shell_commands(page.read_text(encoding="utf-8")) if not reason(one)]


def prepare(folder: Path, commands: list[str]) -> None:
    """Put the files into `folder` that `commands` name."""
    text = "\n".join(commands)
    shutil.copytree(ROOT / "examples", folder / "examples")
    for part, source in TABLE["files"].items():
        if part in text:
            name = part.strip() if "." in part else Path(source).name
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(_source(source), folder / name)


def _source(name: str) -> Path:
    if name.startswith("samples/"):
        return SHARED / name
    return (ROOT if "/" in name else INPUTS) / name


def needs_samples(commands: list[str]) -> bool:
    text = "\n".join(commands)
    return any(
        name in text for name, source in TABLE["files"].items() if source.startswith("samples/")
    )


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.hip
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name)
        for page in PAGES
        if (name := str(page.relative_to(ROOT))) not in EXECUTED and executed(page)
    ],
)
def test_commands_run(page: Path, tmp_path: Path) -> None:
    shown = executed(page)
    if needs_samples(shown) and not SHARED.is_dir():
        pytest.skip("needs the shared samples")
    prepare(tmp_path, shown)
    variables = {**environment(tmp_path), "INPUTS": str(INPUTS)}
    wrong = []
    for command in (*TABLE["before"].get(str(page.relative_to(ROOT)), ()), *shown):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
        expected = _CODE.search(command)
        if done.returncode != (int(expected[1]) if expected else 0):
            wrong.append(f"{command}\nexit code {done.returncode}\n{done.stdout[-1000:]}")
    assert not wrong, "\n\n".join(wrong)


def test_what_is_not_executed_is_shown() -> None:
    every = [one for page in PAGES for one in shell_commands(page.read_text(encoding="utf-8"))]
    stale = [
        part for part in TABLE["not_executed"] if not any(part in command for command in every)
    ]
    assert stale == []
    assert all(TABLE["not_executed"].values())


def test_files_are_named_by_pages() -> None:
    text = "\n".join(command for page in PAGES for command in executed(page))
    assert [name for name in TABLE["files"] if name not in text] == []


def test_commands_of_blocks() -> None:
    fenced = "```\nwavecast a \\\n    --b  # why\nVAR=1 python x.py\nprinted\n```\n"
    other = "```python\nmake\n```\n\n    wavecast c\n"
    assert shell_commands(fenced + other) == [
        "wavecast a --b  # why", "VAR=1 python x.py", "wavecast c",
    ]  # fmt: skip
