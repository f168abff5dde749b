"""The installation that the README describes, executed: `python -m tests.release.documented_install
FOLDER` runs the README's commands in a copy of the tracked files, and so makes FOLDER/.venv.

The variable `TORCH` has the build of PyTorch that the environment gets, as in the Makefile:
its index may be out of reach.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.documents.pages import ROOT, shell_commands
from tests.release.sources import copy_sources

_SECTION = re.compile(r"^## Install\n(.*?)^## ", re.M | re.S)
TORCH_LINE = re.compile(r"pip install torch --index-url \S+")


def install_commands() -> list[str]:
    """The commands of the README's section on installation, without their comments."""
    section = _SECTION.search((ROOT / "README.md").read_text(encoding="utf-8"))
    if section is None:
        raise ValueError("README.md has no section Install")
    return [command.partition("  #")[0].strip() for command in shell_commands(section[1])]


def script(torch: str) -> str:
    """The commands as one script of bash, with `torch` for the README's build of PyTorch."""
    text = "\n".join(install_commands())
    replaced, count = TORCH_LINE.subn(f"pip install '{torch}'", text)
    if count != 1:
        raise ValueError("the README does not install PyTorch's build for CPUs in one line")
    return replaced


def variables() -> dict[str, str]:
    """Those of this process without its environment, so that only the commands make one."""
    programs = str(Path(sys.executable).parent)
    folders = [name for name in os.environ["PATH"].split(os.pathsep) if name != programs]
    quiet = {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_REQUIRE_VIRTUALENV": "1"}
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, **quiet, "PATH": os.pathsep.join(folders)}


def main() -> int:
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    copy_sources(folder)
    commands = script(os.environ.get("TORCH", "torch"))
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=variables(), check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
