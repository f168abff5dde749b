"""What each LLVM costs or brings on the kernels of `lab_kernels.py`: docs/lab-compilers.md.

    python benchmarks/lab_compilers.py FOLDER [-k REGEX] [--arch gfx942,gfx1100] [--triton RELEASE]…
        [--compiler PROGRAM]… [--seconds 3600] [--show]

Runs `wavecast lab compilers` on every kernel, one GPU after the other, and prints the tables of the
page. Results stay in FOLDER: a run that ends early, or after `--seconds`, goes on when it is
started again; `--show` prints what is there.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lab_kernels import KERNELS, TableKernel
from lab_table import SCRIPT, TARGETS

from wavecast import files
from wavecast.documents.lab import CompilerComparisonJson
from wavecast.report.lab import compilers


def main() -> None:
    parser = argparse.ArgumentParser(description="What each LLVM costs or brings.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("-k", "--kernels", default="", help="regular expression on rows")
    parser.add_argument("--arch", default=TARGETS)
    parser.add_argument("--triton", action="append", default=[])
    parser.add_argument("--compiler", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after these")
    parser.add_argument("--show", action="store_true", help="run nothing")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + given.seconds
    more = [word for release in given.triton for word in ("--triton", release)]
    more += [word for program in given.compiler for word in ("--compiler", program)]
    chosen = [kernel for name, kernel in KERNELS.items() if re.search(given.kernels, name)]
    for target in given.arch.split(","):
        for kernel in [] if given.show else chosen:
            _run(given.folder, kernel, target, more, end - time.monotonic())
    print(compilers.markdown(stored(given.folder)), end="")


def _run(folder: Path, kernel: TableKernel, target: str, more: list[str], left: float) -> None:
    """Compare a row's code generators and keep the document, or why there is none."""
    path = folder / f"{kernel.name.replace(' ', '.')}.{target}.json"
    if path.exists() or left <= 0:
        return
    command = [
        sys.executable, "-m", "wavecast", "lab", "compilers", str(SCRIPT), "--arch", target,
        "-k", kernel.kernels, *more, "--format", "json", "--", *kernel.name.split(),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=left)
    except subprocess.TimeoutExpired:
        return
    text = done.stdout
    if done.returncode:
        text = json.dumps({"failed": done.stderr.strip().splitlines()[-1:]})
    files.write_atomic(path, text)


def stored(folder: Path) -> list[CompilerComparisonJson]:
    """The comparisons of a folder by target and file, each kernel of a target once."""
    comparisons: dict[tuple[str, str], CompilerComparisonJson] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.suffixes[-2:]):
        for value in json.loads(path.read_text()).get("kernels", []):
            comparison = msgspec.convert(value, CompilerComparisonJson)
            comparisons.setdefault((comparison.target, comparison.kernel), comparison)
    return [*comparisons.values()]


if __name__ == "__main__":
    main()
