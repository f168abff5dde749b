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
_SECONDS = 300
_COLUMNS = 100


def executed(text: str, folder: Path) -> str:
    """The page `text` with what its commands print now, run one after the other in `folder`."""
    environment = _environment(folder)

    def block(match: re.Match[str]) -> str:
        if match["file"]:
            (folder / match["file"]).write_text(match["body"], encoding="utf-8")
        if match["info"] != "console":
            return match[0]
        printed = (
            f"$ {command}\n{_output(command, folder, environment)}"
            for command in commands(match["body"])
        )
        return match[0].replace(match["body"], "".join(printed))

    return _BLOCK.sub(block, text)


def commands(body: str) -> Iterator[str]:
    """The commands of a `console` block."""
    for line in body.splitlines():
        if line.startswith("$ "):
            yield line[2:]


def _output(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
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


def _environment(folder: Path) -> dict[str, str]:
    """`wavecast` is this checkout; what Triton warns about its own settings is silenced."""
    programs = folder / ".bin"
    programs.mkdir()
    program = programs / "wavecast"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m wavecast "$@"\n')
    program.chmod(0o755)
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(("WAVECAST_", "GITHUB_"))},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(_COLUMNS),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }


def main() -> None:
    """Update the pages that the command line names."""
    import tempfile

    for name in sys.argv[1:]:
        page = Path(name)
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(executed(page.read_text("utf-8"), Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
