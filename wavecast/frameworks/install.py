"""A framework next to a build of PyTorch for CPUs, without packages for GPUs, in one command:

    python -m wavecast.frameworks.install vllm

It installs into the environment of this Python, which has Wavecast: PyTorch for CPUs, the engine
without what it asks for, and the rest of that from the extra `NAME-cpu`, in the releases of
`constraints/NAME.txt`, which the tests passed with. The environment variable `TORCH` is another
requirement for PyTorch, with options of pip: `TORCH="torch==2.13.0 --index-url …"`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import requires
from pathlib import Path
from typing import Final

from wavecast.extras import CPU_BUILDS

CONSTRAINTS: Final = Path(__file__).with_name("constraints")
ENGINES: Final = ("vllm",)
"""Frameworks whose distributions ask for packages for GPUs."""
NAMES: Final = (*ENGINES, "jax", "tensorflow")
TORCH: Final = f"torch==2.13.0 --index-url {CPU_BUILDS}"


def commands(name: str, torch: str) -> Iterator[list[str]]:
    """Arguments of pip, one command after the other, for a framework of `NAMES` and a requirement
    for PyTorch."""
    tested = ["--constraint", str(CONSTRAINTS / f"{name}.txt")]
    yield ["install", *shlex.split(torch)]
    if name not in ENGINES:
        yield ["install", *tested, f"wavecast[{name}]"]
        return
    yield ["install", "--no-deps", *tested, _requirement(name)]
    yield ["install", *tested, f"wavecast[{name}-cpu]"]


def _requirement(engine: str) -> str:
    """What Wavecast's extra says of an engine: `vllm<0.34,>=0.33`."""
    declared = (text.partition(";")[0].strip() for text in requires("wavecast") or ())
    return next(text for text in declared if text.startswith(engine))


def main(arguments: Sequence[str]) -> int:
    """Run the commands; the exit code of the first that fails, else 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("name", choices=NAMES)
    name = parser.parse_args(arguments).name
    for command in commands(name, os.environ.get("TORCH") or TORCH):
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", *command]
        status = subprocess.run(pip, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
