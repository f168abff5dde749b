"""Pages of the documentation whose commands are executed: `python -m tests.documents.pages PAGE …`
writes what they print into the pages.

A fenced block after `<!-- file: NAME -->` is a file. In a `console` block a line that starts with
`$ ` is a command of bash and the lines after it are what it prints.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:<!-- file: (?P<file>[\w./-]+) -->\n)?^```(?P<info>\w*)\n(?P<body>.*?)^```$", re.M | re.S
)
EXECUTED = ("docs/tutorial.md",)
"""Pages whose commands print what the pages say."""
SHELLS = ("", "console", "bash", "sh")
PROGRAMS = ("wavecast", "pip", "pytest", "make", "jq", "git", "podman", "cc", "python")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_INDENTED = re.compile(r"^\n((?: {4}.*\n)+)", re.M)
_ASSIGNMENTS = re.compile(r"^(\w+=\S+ )+")
_SECONDS = 300
_COLUMNS = 100


def executed(text: str, folder: Path) -> str:
    """The page `text` with what its commands print now, run one after the other in `folder`."""
    variables = environment(folder)

    def block(match: re.Match[str]) -> str:
        if match["file"]:
            (folder / match["file"]).write_text(match["body"], encoding="utf-8")
        if match["info"] != "console":
            return match[0]
        printed = (
            f"$ {command}\n{_output(command, folder, variables)}"
            for command in commands(match["body"])
        )
        return match[0].replace(match["body"], "".join(printed))

    return _BLOCK.sub(block, text)


def commands(body: str) -> Iterator[str]:
    """The commands of a `console` block."""
    for line in body.splitlines():
        if line.startswith("$ "):
            yield line[2:]


def shell_commands(text: str) -> list[str]:
    """The commands of a page's blocks of shell commands, fenced or indented."""
    blocks = [body for language, body in _FENCED.findall(text) if language in SHELLS]
    blocks += _INDENTED.findall(_FENCED.sub("", text))
    lines = "\n".join(re.sub(r" *\\\n *", " ", block) for block in blocks).splitlines()
    shown = (line.strip().removeprefix("$ ") for line in lines)
    return [line for line in shown if _ASSIGNMENTS.sub("", line).split(" ")[0] in PROGRAMS]


def _output(command: str, folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "\n".join([*lines, ""]) if lines else ""


def environment(folder: Path) -> dict[str, str]:
    """`wavecast`, `pytest` and `python` are those of the folder of programs that `WAVECAST_PAGES`
    names, else of this checkout. What Triton warns about its settings is silenced."""
    variables = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("WAVECAST_", "GITHUB_"))},
        "COLUMNS": str(_COLUMNS),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    if installed := os.environ.get("WAVECAST_PAGES"):
        variables.pop("PYTHONPATH", None)
        return variables | {"PATH": f"{Path(installed).absolute()}{os.pathsep}{variables['PATH']}"}
    programs = folder / ".bin"
    programs.mkdir()
    for name, module in (("wavecast", "-m wavecast"), ("pytest", "-m pytest"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n')
        program.chmod(0o755)
    path = f"{programs}{os.pathsep}{variables['PATH']}"
    return variables | {"PATH": path, "PYTHONPATH": str(ROOT)}


def main() -> None:
    """Update the pages that the command line names."""
    import tempfile

    for name in sys.argv[1:]:
        page = Path(name)
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(executed(page.read_text("utf-8"), Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
