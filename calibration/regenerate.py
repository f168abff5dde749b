"""Everything that is generated from the published measurements.

    python -m calibration.regenerate DATA --sources CHECKOUT [--only STEP,…] [--keep] [--jobs 2]

in this order, each from what the steps before it wrote:

    left_out   calibration/left_out.json      errors on what is left out of the calibration
    intervals  wavecast/perfmodel/residuals.toml  intervals of predictions
    accuracy   calibration/accuracy.json      errors on a sample, which the tests compare
    docs       docs/accuracy.md, README.md    both kinds of errors

DATA is the folder of the measurements, CHECKOUT one of the HIP suite (`sarchlab/mgpusim`). The
coefficients stay as they are; `--keep` also keeps them where something is left out, which is quick
and says of most errors only what the fit misses.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from calibration import cells, datasets, residuals
from calibration.page import PAGE, README, page, readme
from wavecast.benchmarking.accuracy import importers

STEPS: Final = ("left_out", "intervals", "accuracy", "docs")
LIMIT: Final = 3000
"""Problems of a file that the second part of docs/accuracy.md predicts, about."""


def commands(step: str, data: Path, sources: Path, jobs: int, keep: bool) -> list[list[str]]:
    """The commands of a step, each the arguments of Python."""
    number = ["--jobs", str(jobs)]
    checkout = ["--sources", str(sources)]
    files = [str(path) for path in sorted(data.glob("*.parquet")) if _readable(path)]
    kept = ["--keep"] if keep else []
    return {
        "left_out": [["-m", "calibration.left_out", str(data), *checkout, *number, *kept]],
        "intervals": [["-m", "calibration.residuals"]],
        "accuracy": [["-m", "calibration.accuracy", str(data), "--write", *number]],
        "docs": [
            [
                "-m", "calibration.validate", *files, *checkout, *number,
                "--limit", str(LIMIT), "--write-docs", str(PAGE),
            ]
        ],
    }[step]  # fmt: skip


def _readable(path: Path) -> bool:
    """Whether an importer reads the file, by its columns."""
    columns = pq.read_schema(path).names
    known = (*datasets.importers(), *importers.all_importers())
    return any(importer.match(columns) for importer in known)


def joined() -> None:
    """Put the part on what was left out before the scores that `validate` wrote, and its summary
    into the README."""
    known = cells.read()
    groups = residuals.coverage(known)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(known, groups, text[text.index("## Errors by op") :]), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8"), known, groups), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--only", default=",".join(STEPS), help="steps, with commas")
    parser.add_argument("--keep", action="store_true", help="do not fit again")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    for step in given.only.split(","):
        started = time.perf_counter()
        for arguments in commands(step, given.data, given.sources, given.jobs, given.keep):
            subprocess.run([sys.executable, *arguments], check=True)
        if step == "docs":
            joined()
        print(f"{step}: {time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
